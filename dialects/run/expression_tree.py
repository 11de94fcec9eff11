# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The syntax tree of the expressions of `.cute` files; `expression` has their grammar."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
})  # fmt: skip
"""What comparisons of two values compute, of numbers and element by element of arrays. `~=` is one of checks alone."""


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of an expression; `start` and `end` are its character offsets in the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Number(Node):
    """An integer or a floating-point literal."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A reference to an argument, a parameter, or a function without arguments such as `zeros`."""

    name: str


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """Unary minus."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """One of `+ - * / // % @ **`."""

    op: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`==` (equal), `~=` (within a tolerance), `!=`, `<`, `<=`, `>` or `>=`."""

    op: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class And(Node):
    """All of the parts hold."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """One of the parts holds; only a parameter's expression has it."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The operand does not hold; only a parameter's expression has it."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`value if condition else otherwise`; only a parameter's expression has it."""

    value: "Expression"
    condition: "Expression"
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class Quoted(Node):
    """`'text'`; only a parameter's expression has it."""

    text: str


@dataclass(frozen=True, slots=True)
class Tuple(Node):
    """A parenthesised list, `(2, 3)`."""

    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`name(arguments, keyword=value)`; `A.T` is read as `transpose(A)`."""

    name: str
    arguments: tuple["Expression", ...]
    keywords: tuple[tuple[str, "Expression"], ...] = ()


@dataclass(frozen=True, slots=True)
class Slice(Node):
    """`lower:upper:step` inside brackets; absent parts are None."""

    lower: "Expression | None"
    upper: "Expression | None"
    step: "Expression | None"


@dataclass(frozen=True, slots=True)
class Subscript(Node):
    """`value[indices]`."""

    value: "Expression"
    indices: "tuple[Expression | Slice, ...]"


Expression: TypeAlias = (
    Number | Name | Negate | Binary | Compare | And | Tuple | Call | Subscript | Or | Not | Conditional | Quoted
)
