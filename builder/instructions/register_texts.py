# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts that multiply into tensor memory, and those whose registers other texts use, as the operations that they are.

A text in braces declares its own registers. One without declares registers of the function, which later texts read and
write (PTX ISA, Identifiers; Inline PTX Assembly in CUDA). Their contents are fragments, as control flow may change
them. Instructions are `tcgen05.mma`, `elect.sync`, a loop that waits for an mbarrier, and integers that make
descriptors.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...base.spaces import SMEM
from ...dialects import ptx
from ...dialects.arith.integer_range import wrap_signed
from ..control.control_functions import if_
from ..scalars.dtypes import Boolean, DType, Int32, Int64, Uint32
from ..scalars.operators import Operand
from ..scalars.values import Int, convert, wrap
from ..tensors.allocation import make_rmem_tensor
from ..tensors.pointers import make_ptr
from ..tracing.state import current, emit
from .mbarriers import mbarrier_wait

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WAIT = re.compile(
    r"(\w+)\s*:\s*mbarrier\.try_wait\.parity(?:\.shared(?:::cta)?)?\.b64\s+(\w+)\s*,\s*\[([\w$]+)\]\s*,\s*([\w$]+)"
    r"(?:\s*,\s*\w+)?\s*;\s*@\2\s+bra(?:\.uni)?\s+(\w+)\s*;\s*bra(?:\.uni)?\s+\1\s*;\s*\5\s*:"
)
_DECLARATION = re.compile(r"\.reg\s+\.(pred|[bus]32|[bus]64)\s+(.+)", re.DOTALL)
_STATEMENT = re.compile(r"(?:@(!?)(\w+)\s+)?([a-z][\w.:]*)\s+(.+)", re.DOTALL)
_OPERAND = re.compile(r"\[[^\]]*\]|\{[^}]*\}|[^,\s][^,]*")
_RANGE = re.compile(r"(\w+)<(\d+)>")
_CELL = re.compile(r"\[\s*([\w$]+)\s*(?:\+\s*(\w+)\s*)?\]")
_MMA = re.compile(r"tcgen05\.mma\.cta_group::([12])\.kind::(\w+)")
_BINARY: Mapping[str, Callable[[Operand, Operand], Operand]] = MappingProxyType({
    "add.s32": lambda a, b: a + b, "add.u32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b, "sub.u32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b, "mul.lo.u32": lambda a, b: a * b,
    "and.b32": lambda a, b: a & b, "or.b32": lambda a, b: a | b, "xor.b32": lambda a, b: a ^ b,
})  # fmt: skip
_COMPARISONS: Mapping[str, Callable[[Operand, Operand], Operand]] = MappingProxyType({
    f"setp.{name}.{letter}32": function
    for name, function in (("eq", operator.eq), ("ne", operator.ne)) for letter in "bus"
})  # fmt: skip
_MOVES = ("mov.b32", "mov.u32", "mov.s32", "mov.b64", "mov.u64", "mov.s64")
_WAITS = "wait"
"""A loop that waits, of an mbarrier and a parity, once it is recognised."""
_ALL_LANES = ("-1", "0xffffffff", "0xFFFFFFFF")


@dataclass(frozen=True, slots=True)
class _Statement:
    """An instruction, which a thread executes where the predicate `guard` is not `unless`."""

    word: str
    operands: tuple[str, ...]
    guard: str = ""
    unless: bool = False


@dataclass(slots=True)
class _Text:
    """A text in instructions, with the types of the registers that it declares, and whether they are of its own."""

    statements: list[_Statement]
    types: dict[str, DType]
    is_block: bool
    values: dict[str, Operand] = field(default_factory=lambda: {})


def register_text(text: str, operands: Sequence[object]) -> tuple[Operand, ...] | None:
    """Emits a text without results that multiplies into tensor memory, or that has registers of the function; None for
    any other text.

    Raises TilefoldError (E5002) for a register that no text declares, or none on this path.
    """
    read = _read(text)
    if read is None:
        return None
    run = _Run(read, operands)
    for statement in read.statements:
        run.execute(statement)
    return ()


def _read(text: str) -> _Text | None:
    body = _WAIT.sub(lambda loop: f"{_WAITS} {loop[3]}, {loop[4]};", _COMMENT.sub(" ", text)).strip()
    is_block = body.startswith("{") and body.endswith("}")
    body = body[1:-1] if is_block else body
    declares = not is_block and ".reg" in body
    known = current().registers
    if not declares and _MMA.search(body) is None and not any(name in known for name in re.findall(r"\w+", body)):
        return None
    made = _Text([], {}, is_block)
    for part in filter(None, map(str.strip, body.split(";"))):
        if declaration := _DECLARATION.fullmatch(part):
            dtype = _type_of(declaration[1])
            made.types |= dict.fromkeys(_names(declaration[2]), dtype)
            continue
        found = _STATEMENT.fullmatch(part)
        if found is None or not _is_known(found[3], is_guarded=found[2] is not None):
            return None
        places = tuple(operand.strip() for operand in _OPERAND.findall(found[4]))
        made.statements.append(_Statement(found[3], places, found[2] or "", found[1] == "!"))
    return made


def _type_of(word: str) -> DType:
    return Boolean if word == "pred" else Int64 if word.endswith("64") else Int32


def _names(declared: str) -> Iterator[str]:
    for name in declared.split(","):
        several = _RANGE.fullmatch(name.strip())
        if several is None:
            yield name.strip()
        else:
            yield from (f"{several[1]}{number}" for number in range(int(several[2])))


def _is_known(word: str, *, is_guarded: bool) -> bool:
    if _MMA.fullmatch(word):
        return True
    plain = (*_MOVES, *_BINARY, *_COMPARISONS, "mad.lo.s32", "mad.lo.u32", "elect.sync", _WAITS)
    return not is_guarded and word in plain


class _Run:
    """A text whose instructions become operations one after the other."""

    def __init__(self, text: _Text, operands: Sequence[object]) -> None:
        self.text, self.operands = text, operands
        if not text.is_block:
            shared = {name: make_rmem_tensor(1, dtype) for name, dtype in text.types.items()}
            current().registers.update(shared)

    def execute(self, statement: _Statement) -> None:
        """Emits an instruction."""
        word, places = statement.word, statement.operands
        if (mma := _MMA.fullmatch(word)) is not None:
            if statement.guard:
                holds = self.read(statement.guard)
                holds = ~holds if statement.unless else holds
                if_(holds, lambda: self._multiply(mma[2], int(mma[1]), places))
            else:
                self._multiply(mma[2], int(mma[1]), places)
        elif word == _WAITS:
            mbarrier_wait(make_ptr(Int64, self.read(places[0]), SMEM.name, 8), self.read(places[1]))
        elif word == "elect.sync":
            lanes = None if places[1] in _ALL_LANES else self.read(places[1]).ssa
            self.write(places[0].rpartition("|")[2].strip(), wrap(emit(ptx.ElectSyncOp(lanes)).results[0]))
        elif word in _MOVES:
            self._move(places)
        elif word in _COMPARISONS:
            self.write(places[0], _COMPARISONS[word](self.read(places[1]), self.read(places[2])))
        elif word in _BINARY:
            self.write(places[0], _BINARY[word](self.read(places[1]), self.read(places[2])))
        else:
            a, b, c = (self.read(place) for place in places[1:])
            self.write(places[0], a * b + c)

    def read(self, place: str) -> Operand:
        """A register, an operand of the text, or a number."""
        if place.startswith("$"):
            value = self.operands[int(place[1:])]
            return convert(value, Int32) if type(value) is int else value
        if place[0].isdigit() or place[0] == "-":
            return Int32(wrap_signed(int(place.rstrip("U"), 0), 32))
        if place in self.text.values:
            return self.text.values[place]
        held = current().registers.get(place)
        if held is None or not current().sees(held.ssa):
            message = f"no earlier text declares the register '{place}'"
            raise TilefoldError(Code.BUILD_VALUE, message, "declare it by .reg in this text or in an earlier one")
        return held[0]

    def write(self, place: str, value: Operand) -> None:
        """Writes a register."""
        dtype = self.text.types.get(place)
        if dtype is not None and self.text.is_block:
            self.text.values[place] = convert(value, dtype)
            return
        self.read(place) if place not in self.text.types else None
        current().registers[place][0] = value

    def _move(self, places: Sequence[str]) -> None:
        target, source = places
        if source.startswith("{"):
            low, high = (convert(self.read(part), Uint32) for part in _parts(source))
            self.write(target, convert(high, Int64) << 32 | convert(low, Int64))
        elif target.startswith("{"):
            low, high = _parts(target)
            whole = self.read(source)
            self.write(low, convert(whole, Int32))
            self.write(high, convert(whole >> 32, Int32))
        else:
            self.write(target, self.read(source))

    def _cell(self, place: str) -> SSAValue | None:
        """An address in tensor memory; None for a descriptor."""
        found = _CELL.fullmatch(place)
        if found is None:
            return None
        number = convert(self.read(found[1]), Int32)
        number = number + self.read(found[2]) if found[2] else number
        return emit(ptx.IntToPtrOp(number.ssa, 4, ptx.TENSOR)).results[0]

    def _multiply(self, kind: str, group: int, places: Sequence[str]) -> None:
        d, a, b, descriptor, *rest = places
        mask = [convert(self.read(part), Int32).ssa for part in _parts(rest.pop(0))] if rest[0][0] == "{" else []
        flag = self.read(rest[0])
        adds = convert(flag != 0, Boolean) if isinstance(flag, Int) else flag
        first = self._cell(a)
        first = convert(self.read(a), Int64).ssa if first is None else first
        if (sums := self._cell(d)) is None:
            message = f"the multiplication has '{d}' as D, which is not an address in tensor memory"
            raise TilefoldError(Code.BUILD_VALUE, message, "write it as [address]")
        operands = [sums, first, convert(self.read(b), Int64).ssa, convert(self.read(descriptor), Int32).ssa]
        emit(ptx.TensorMmaOp(kind, group, [*operands, adds.ssa], mask=mask))


def _parts(place: str) -> list[str]:
    return [part.strip() for part in place.strip("{}").split(",")]
