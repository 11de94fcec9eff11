# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads declarations of variables and their initial values (PTX ISA, Variables); and the environment of a kernel, which
its text does not declare: special registers and variables of the driver.
"""

import struct

from ...base.errors import Code
from .constants import MAX_DEPTH, ConstantParser
from .syntax import Integer, Place, Symbol, Variable

MAX_BYTES = 1 << 30
"""The largest variable."""


class VariableParser(ConstantParser):
    """A parser of variables."""

    def variables(self) -> list[Variable]:
        """A declaration of variables, such as `.shared .align 16 .b8 s[64];`. PtxError (E1008) for other text."""
        place, space, type, align, lanes, attribute = self.place(), "", "", 0, 1, ""
        while self.token.kind == "directive":
            word = self.advance().text[1:]
            if word in ("shared", "global", "const", "local", "param"):
                space = word
            elif word == "align":
                align = self.integer()
            elif word in ("v2", "v4"):
                lanes = int(word[1])
            elif self.is_type(word):
                type = word
            elif word == "attribute":
                attribute = self._attribute()
            elif word in ("tex", "texref", "samplerref", "surfref"):
                self.fail("textures and surfaces are not supported", Code.PTX_UNSUPPORTED, place=place)
            else:
                self.fail(f"unknown directive '.{word}'", place=place)
        if not space or not type:
            self.fail("expected a directive, a declaration or an instruction", place=place)
        made: list[Variable] = []
        while True:
            name = self.word("the name of a variable")
            element = self.type_bytes(type)
            size, is_open = element * lanes, False
            scalar = type if self.token.text != "[" and lanes == 1 else ""
            while self.accept("["):
                if self.token.text == "]":
                    is_open = True
                else:
                    size *= self.integer()
                self.expect("]")
            self._addresses: dict[int, Symbol] = {}
            initial = self._initial(element) if self.accept("=") else None
            size = len(initial or b"") if is_open else size
            if not 0 <= size <= MAX_BYTES:
                self.fail(f"a variable of {size} bytes; at most {MAX_BYTES} are possible", place=place)
            align = align or element * lanes
            made.append(Variable(name, space, size, align, initial, place, self._addresses, "", scalar, attribute))
            if not self.accept(","):
                break
        self.expect(";")
        return made

    def _attribute(self) -> str:
        """An attribute as it is written: `.managed` is memory that the host may access too."""
        begin = self.token.at
        self.expect("(")
        depth = 1
        while depth:
            text = self.advance().text
            depth += (text == "(") - (text == ")")
        return f".attribute{''.join(self.text_from(begin).split())}"

    def _initial(self, element: int, at: int = 0, depth: int = 0) -> bytes:
        """The bytes of an initialiser `at` bytes behind the first: a number, an address, or a list of them."""
        if self.token.text != "{":
            return self._bytes_of(element, at)
        if depth > MAX_DEPTH:
            self.fail(f"lists nest more than {MAX_DEPTH} deep")
        self.expect("{")
        whole = bytearray()
        while not self.accept("}"):
            if whole:
                self.expect(",")
            whole += self._initial(element, at + len(whole), depth + 1)
        return bytes(whole)

    def _bytes_of(self, element: int, at: int) -> bytes:
        if self.token.kind == "word":
            name = self.advance().text
            if is_generic := name == "generic" and self.accept("("):
                name = self.word("the name of a variable")
            if is_generic:
                self.expect(")")
            if element != 8:
                self.fail("an address has 8 bytes", Code.PTX_UNSUPPORTED)
            self._addresses[at] = Symbol(name, self.offset())
            return bytes(8)
        number = self.constant()
        if isinstance(number, Integer):
            return (number.value & ((1 << 8 * element) - 1)).to_bytes(element, "little")
        return struct.pack("<f" if element == 4 else "<d", number.value)

    def offset(self) -> int:
        """The integers that are added to an address, behind it."""
        offset = 0
        while self.token.text in ("+", "-"):
            sign = -1 if self.advance().text == "-" else 1
            offset += sign * self.product()
        return offset


GRID_WORKSPACE = "%envreg"
"""The variable in global memory at the address that CUDA's driver gives in %envreg1 and %envreg2: cooperative groups
count there the blocks of a grid that have arrived.
"""
RESERVED_SHARED = "%reserved_smem_offset_1"
"""Where shared memory begins that cooperative groups of several warps use."""
RESERVED_BYTES = 1024
"""Its size, of which the ISA says nothing; they use less."""
HEAP = "%heap"
"""The variable in global memory that malloc takes memory from, and gives it back to by free."""
HEAP_BYTES = 8 << 20
"""Its size: cudaLimitMallocHeapSize, unless a program sets it."""


def variables_of_driver(place: Place) -> tuple[Variable, ...]:
    """The variables of the system that a kernel may have, as if its text declared them there."""
    return (
        Variable(GRID_WORKSPACE, "global", 16, 16, None, place),
        Variable(HEAP, "global", HEAP_BYTES, 256, None, place),
        Variable(RESERVED_SHARED, "shared", RESERVED_BYTES, 16, None, place),
    )
