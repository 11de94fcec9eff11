# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a PTX module as they are written (PTX ISA, Syntax, and State Spaces, Types, and Variables)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...base.element_types import BY_PTX
from ...base.errors import Code, TilefoldError

_OF_FUNCTION = re.compile(r"_ZZ\w*E\d+([A-Za-z_]\w*?)(?:_\d+)?")
"""A variable of a function of C++ (Itanium C++ ABI, local names)."""
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the text: line and column, both from 1."""

    line: int
    column: int


class PtxError(TilefoldError):
    """PTX that is malformed, or that tilefold does not know; `place` is where, in the file `file`."""

    def __init__(self, code: Code, message: str, place: Place, hint: str = "", file: str = "<ptx>") -> None:
        super().__init__(code, f"{file}:{place.line}:{place.column}: {message}", hint)
        self.place, self.problem, self.file = place, message, file


@dataclass(frozen=True, slots=True)
class Register:
    """A register, or a special register such as `%tid.x`, by its name; one of an inner scope has a name of its own."""

    name: str


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer constant."""

    value: int


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point constant, by its value and the bits of its type: 32 for `0f3F800000`, else 64."""

    value: float
    bits: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A label, a variable or a function, by its name, and bytes after it."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Not:
    """A predicate that is negated: `!%p`."""

    register: Register


@dataclass(frozen=True, slots=True)
class Subword:
    """Bytes or halves of a register in a video instruction, `%r1.b0`, `%r1.h10`, or of its negation."""

    register: Register
    parts: str
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations: `%p|%q`."""

    first: Register
    second: Register


@dataclass(frozen=True, slots=True)
class Vector:
    """Operands in braces: `{%r1, %r2}`."""

    items: "tuple[Operand, ...]"


@dataclass(frozen=True, slots=True)
class Address:
    """Memory: `[%rd1+16]`, `[name]`, or of a tensor `[%rd1, {%r1, %r2}]`."""

    base: Register | Symbol | Integer
    offset: int = 0
    coordinates: "tuple[Operand, ...]" = ()


@dataclass(frozen=True, slots=True)
class Arguments:
    """Operands in parentheses, of a call."""

    items: "tuple[Operand, ...]"


Operand: TypeAlias = Register | Integer | Float | Symbol | Not | Subword | Pair | Vector | Address | Arguments


@dataclass(frozen=True, slots=True)
class Location:
    """The place in a source file that `.loc` says: the number of the file, line and column; and, of a function that is
    inlined, the place of its call, and its name as the debugging information numbers it.
    """

    file: int
    line: int
    column: int
    call: "Location | None" = None
    function: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Instruction:
    """`@%p opcode.modifiers operands;` with its place, and the place in the source from the `.loc` before it."""

    place: Place
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | Not | None = None
    location: Location | None = None

    @property
    def name(self) -> str:
        """The opcode with its modifiers, as in the text."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Label:
    """A place that branches lead to. One of an inner scope has a name of its own."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Table:
    """The labels that a `brx.idx` chooses from: `name: .branchtargets A, B;`."""

    name: str
    labels: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Pragma:
    """A directive for the assembler or a prototype of calls, as it is written; neither affects the results."""

    text: str
    place: Place


Statement: TypeAlias = Instruction | Label | Table | Pragma


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: its state space, its size and alignment in bytes, and its initial bytes, if the text gives any. The
    size is 0 for an array that the launch sizes.
    """

    name: str
    space: str
    size: int
    align: int
    initial: bytes | None
    place: Place
    addresses: "Mapping[int, Symbol]" = field(default_factory=dict[int, Symbol])
    """The addresses of 8 bytes in the initial bytes, by their places there."""
    linkage: str = ""
    scalar: str = ""
    """The type of a variable that is not an array."""
    attribute: str = ""
    """Its other attributes in the text: `.attribute(.managed)`."""

    @property
    def plain_name(self) -> str | None:
        """The name in a function of C++ that has the variable, or its own. None for one that no value of the IR has."""
        match = _OF_FUNCTION.fullmatch(self.name)
        name = self.name if match is None else match[1]
        return name if _NAME.fullmatch(name) else None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function: its type, such as `u64`, or `b8` for an array of `size` bytes, and the alignment that
    the caller promises for a pointer.
    """

    name: str
    type: str
    size: int
    align: int
    place: Place
    is_structure: bool = False
    """Whether it is an array, as structures are, also of one element."""
    is_register: bool = False
    """Whether it is a register, as it may be of a function."""
    attributes: str = ""
    """Its other attributes in the text, such as `.ptr .global .align 16`."""


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel (`.entry`) or a function. `registers` are its types by name; `block` is the size of a block that
    `.reqntid` requires. The body is None of a declaration. `results` are the parameters that a function returns, and
    `directives` are linkage and bounds as they are written, before and behind the name.
    """

    name: str
    is_entry: bool
    parameters: tuple[Parameter, ...]
    place: Place
    body: tuple[Statement, ...] | None = None
    registers: Mapping[str, str] = field(default_factory=dict[str, str])
    variables: tuple[Variable, ...] = ()
    block: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    results: tuple[Parameter, ...] = ()
    directives: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX module: version and target as in the text, source files by number, variables and functions by name."""

    version: str
    target: str
    files: Mapping[int, str]
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """The functions that other names stand for."""
    options: tuple[str, ...] = ()
    """The words behind the target in the text, such as `texmode_independent`."""

    def function(self, name: str) -> Function | None:
        """A function by its name, or by one that stands for it."""
        return self.functions.get(self.aliases.get(name, name))

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels, in the order of the text."""
        return tuple(function for function in self.functions.values() if function.is_entry)


TYPE_BITS: Mapping[str, int] = {
    "pred": 1,
    **{f"{kind}{bits}": bits for kind in "bsu" for bits in (8, 16, 32, 64, 128)},
    **{element.ptx: element.bits for element in BY_PTX.values()},
    **{f"{element.ptx}x2": 2 * element.bits for element in BY_PTX.values() if element.bits in (8, 16)},
    "f32x2": 64,
}
"""The bits of the types of PTX (PTX ISA, Fundamental Types, and Packed Data Types)."""
