# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The registers and memory of the threads that `.ptx_interpreter` executes.

A register is its bits in an array of 64-bit integers, one for each thread; a predicate is an array of booleans.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.emit.numbers import FORMATS, decoded, encoded, wrap

Bits = NDArray[np.uint64]

_SHARED = 1 << 16  # bytes of shared memory of a block
_INTEGER = re.compile(r"^([bsu])(8|16|32|64)$")


def integer_type(type: str) -> tuple[str, int]:
    """The letter and width of an integer type, or of one of bits. ValueError for any other."""
    match = _INTEGER.match(type)
    if match is None:
        raise ValueError(f"no type {type}")
    return match[1], int(match[2])


class Registers(dict[str, NDArray[Any]]):
    """What each thread has in each register; the threads that do not execute an instruction keep it."""

    active: NDArray[np.bool_] | None = None
    """The threads that execute the instruction; None for all of them."""

    def __setitem__(self, name: str, value: NDArray[Any]) -> None:
        if self.active is not None and name in self:
            value = np.where(self.active, value, self[name])
        super().__setitem__(name, value)


class Machine:
    """What the threads of a grid have. An argument that is an array is its number in the upper half of an address;
    `parameters` are the arguments as a kernel reads them.
    """

    def __init__(self, blocks: int, threads: int, arguments: list[Any]) -> None:
        self.count = blocks * threads
        self.memory = [np.frombuffer(np.asarray(each).tobytes(), np.uint8).copy() for each in arguments]
        self.parameters = [
            np.uint64(number + 1 << 32) if np.ndim(each) else np.uint64(int(each) & 2**64 - 1)
            for number, each in enumerate(arguments)
        ]
        block, thread = np.divmod(np.arange(self.count, dtype=np.uint64), np.uint64(threads))
        self.shared, self._block = np.zeros(blocks * _SHARED, np.uint8), block.astype(np.int64)
        self.special = {"%tid.x": thread, "%ctaid.x": block}
        self.active = np.ones(self.count, np.bool_)
        self.registers, self.predicates = Registers(), Registers()

    def only(self, active: NDArray[np.bool_]) -> None:
        """The threads that execute the instructions from here on."""
        self.active = active
        self.registers.active = self.predicates.active = None if active.all() else active

    def predicate(self, text: str) -> NDArray[np.bool_]:
        """An operand that is a predicate, or a number for all threads."""
        return self.predicates[text] if text.startswith("%") else np.full(self.count, int(text) != 0)

    def bits(self, text: str) -> Bits:
        """An operand's bits: of a register, a special register or a number."""
        if text in self.registers:
            return self.registers[text]
        if text in self.special:
            return self.special[text]
        if text.endswith("$shared"):
            return np.zeros(self.count, np.uint64)
        if text.startswith(("0f", "0d")):
            return np.full(self.count, int(text[2:], 16), np.uint64)
        return np.full(self.count, int(text.removesuffix("U"), 0) & 2**64 - 1, np.uint64)

    def read(self, text: str, type: str) -> Any:
        """An operand as numbers of a type: doubles, or integers of 64 bits, with a sign where the type has one."""
        raw = self.bits(text)
        if type in FORMATS:
            return decoded(raw & np.uint64((1 << FORMATS[type].bits) - 1), type)
        sign, width = integer_type(type)
        raw = raw & np.uint64((1 << width) - 1)
        return wrap(raw.view(np.int64), width) if sign == "s" else raw

    def write(self, text: str, type: str, value: Any) -> None:
        """A result; what a type narrower than its register leaves there is its extension."""
        if type in FORMATS:
            self.registers[text] = encoded(np.asarray(value, np.float64), type)
            return
        sign, width = integer_type(type)
        whole = np.array(np.broadcast_to(np.asarray(value).astype(np.int64), (self.count,)))
        narrow = wrap(whole, width)
        self.registers[text] = narrow.view(np.uint64) & np.uint64((1 << (64 if sign == "s" else width)) - 1)

    def pair(self, text: str, type: str) -> tuple[Any, Any]:
        """A register of two numbers of 16 bits: the lower and the upper."""
        raw = self.bits(text)
        return decoded(raw & np.uint64(0xFFFF), type), decoded(raw >> np.uint64(16) & np.uint64(0xFFFF), type)

    def write_pair(self, text: str, type: str, low: Any, high: Any) -> None:
        """The two numbers of 16 bits as one register."""
        self.registers[text] = encoded(low, type) | encoded(high, type) << np.uint64(16)

    def place(self, text: str, space: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The array that an address lies in, and where in it; `space` is the state space."""
        base, _, offset = text[1:-1].partition("+")
        address = self.bits(base) + np.uint64(int(offset or 0) & 2**64 - 1)
        if space == "shared":
            return self.shared, np.where(self.active, (address & np.uint64(_SHARED - 1)).astype(np.int64), 0) + (
                self._block * _SHARED
            )
        array = int(address[self.active][0] >> np.uint64(32)) - 1
        at = (address & np.uint64(0xFFFFFFFF)).astype(np.int64)
        return self.memory[array], np.where(self.active, at, 0)
