# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of elements and values, as Python objects: `Float16`, `Int32`, ..., and their promotion."""

import ctypes
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Union

from xdsl.dialects.builtin import IndexType, i8
from xdsl.ir import Attribute

from ...base.element_types import ELEMENT_TYPES, ElementKind
from ...base.errors import Code, TilefoldError
from ...base.parameters import SCALARS
from ...dialects.arith.integer_range import Range, limits
from ...dialects.element_types import element_of, ir_type
from ..tracing.state import current, is_building


def _operators(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator of `HostNumber`, with it on the left and on the right."""
    apply: Callable[[Any, Any], Any] = getattr(operator, name)

    def of(a: Any, b: Any) -> Any:
        made = apply(number_on_host(a), number_on_host(b))
        if not isinstance(made, int | float):  # with an array, or a value of a kernel
            return made
        first, *others = [x.dtype for x in (a, b) if isinstance(x, HostNumber)]
        common = promote(first, *others) if others else first
        return HostNumber(made, Float32 if isinstance(made, float) and common.kind == "int" else common)

    return of, lambda self, other: of(other, self)


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    apply: Callable[[Any, Any], Any] = getattr(operator, name)
    return lambda self, other: apply(self.value, number_on_host(other))


class HostNumber:
    """An integer or a float of a type that a program makes outside kernels, such as `Float32(42)`.

    It computes as the Python number `value`. But it is none: functions compiled for it take any other one of the type,
    also in an object of the program's own that tells the constants among its parts from the rest.
    """

    __slots__ = ("_memory", "dtype", "value")
    __array_ufunc__ = None  # an array of NumPy on the left leaves the operation to this class

    def __init__(self, value: float, dtype: "DType") -> None:
        self.value = value
        self.dtype = dtype
        self._memory: Any = None

    @property
    def __tilefold_number__(self) -> float:
        return self.value

    def to(self, dtype: "DType") -> Any:
        """The number as one of another type."""
        return dtype(self)

    def ir_value(self) -> Any:
        """The number as a value of the kernel that is being built."""
        return self.dtype(self)

    def __get_mlir_types__(self) -> Sequence[Attribute]:
        return [self.dtype.ir]

    def __c_pointers__(self) -> Sequence[int]:
        element = element_of(self.dtype.ir)
        assert element is not None, "it is a type of numbers"
        kind = SCALARS[element.mlir]
        self._memory = ctypes.create_string_buffer(kind.pack(self.value), kind.size)
        return [ctypes.addressof(self._memory)]

    def __new_from_mlir_values__(self, values: Sequence[Any]) -> Any:
        return values[0]

    def __index__(self) -> int:
        return operator.index(self.value)  # pyright: ignore[reportArgumentType] - which refuses floats

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"{self.dtype}({self.value})"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __neg__(self) -> "HostNumber":
        return HostNumber(-self.value, self.dtype)

    def __abs__(self) -> "HostNumber":
        return HostNumber(abs(self.value), self.dtype)

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("truediv")
    __floordiv__, __rfloordiv__ = _operators("floordiv")
    __mod__, __rmod__ = _operators("mod")
    __pow__, __rpow__ = _operators("pow")
    __lshift__, __rlshift__ = _operators("lshift")
    __rshift__, __rrshift__ = _operators("rshift")
    __and__, __rand__ = _operators("and_")
    __or__, __ror__ = _operators("or_")
    __xor__, __rxor__ = _operators("xor")
    __eq__, __ne__ = _comparison("eq"), _comparison("ne")  # pyright: ignore[reportAssignmentType]
    __lt__, __le__ = _comparison("lt"), _comparison("le")
    __gt__, __ge__ = _comparison("gt"), _comparison("ge")


def number_on_host(x: object) -> Any:
    """The Python number of one with a type; anything else as it is."""
    return x.value if isinstance(x, HostNumber) else x


@dataclass(frozen=True)
class DType:
    """A type of values and elements. `dtype(x)` is a number or a value as a value of this type in the kernel.

    `ir` is the type in the IR, `bits` its width, `kind` its arithmetic: floats, integers, predicates, or
    nothing (elements of less than a byte, which are only moved and multiplied). Integers of the IR have no sign:
    operations are `unsigned`. `TFloat32` is `Float32` in memory and in the IR; a conversion to it rounds to the
    precision of tensor cores.
    """

    name: str
    ir: Attribute
    kind: ElementKind
    bits: int
    unsigned: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "__qualname__", self.name)  # as of a class, which allows no property of this name

    def __call__(self, x: object) -> Any:
        number = number_on_host(x)
        if not is_building() and isinstance(number, int | float):
            if self.kind == "bool":
                return bool(number)
            return HostNumber(float(number) if self.kind == "float" else int(number), self)
        return current().convert(number, self)

    def __instancecheck__(self, x: object) -> bool:
        dtype = getattr(x, "dtype", None)  # of values, which are defined above types
        is_own = dtype == self or (self.name == "Int32" and getattr(dtype, "name", "") == "Index")  # as programs see it
        is_value = hasattr(x, "ssa") and not hasattr(x, "iterator")  # which tensors have
        return is_own and (is_value or isinstance(x, HostNumber))

    def __subclasscheck__(self, kind: object) -> bool:
        return kind == self

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        raise TilefoldError(
            Code.BUILD_VALUE, f"{self} cannot be the base of a class", "write functions of its values instead"
        )

    def __or__(self, other: object) -> Any:  # of annotations: `Int32 | None`, as of classes
        return Union[self, other]  # noqa: UP007 - which would be this again

    def __ror__(self, other: object) -> Any:
        return Union[other, self]  # noqa: UP007

    @property
    def least(self) -> int:
        """The smallest number of an integer type."""
        return 0 if self.unsigned else -(1 << (self.bits - 1))

    @property
    def greatest(self) -> int:
        """The greatest number of an integer type."""
        return (1 << (self.bits if self.unsigned else self.bits - 1)) - 1

    @property
    def limits(self) -> Range:
        """The least and the greatest number of an integer type."""
        return limits(self.bits, unsigned=self.unsigned)

    @property
    def width(self) -> int:
        """The bits of an element."""
        return self.bits

    @property
    def bytes(self) -> int:
        """The bytes of an element, of types of whole bytes."""
        return self.bits // 8

    @property
    def __name__(self) -> str:  # as of a class
        return self.name

    @property
    def mlir_type(self) -> Attribute:
        """The type in the IR."""
        return self.ir

    @property
    def is_integer(self) -> bool:
        """Whether it is a type of integers."""
        return self.kind == "int" or self.name in ("Int4", "Uint4", "Uint1")

    @property
    def is_float(self) -> bool:
        """Whether it is a type of floats."""
        return self.kind == "float" or self.name.startswith("Float")

    def is_same_kind(self, other: "DType") -> bool:
        """Whether both are types of integers, or of floats."""
        return (self.is_integer, self.is_float) == (other.is_integer, other.is_float)

    @property
    def signed(self) -> bool:
        """Whether it is a type of integers with a sign."""
        return self.is_integer and not self.unsigned

    @property
    def zero(self) -> float:
        """Zero, as a Python number."""
        return 0.0 if self.is_float else 0

    @property
    def inf(self) -> float:
        """Infinity, of a type of floats. TilefoldError (E5002) for others."""
        return self._special("inf")

    @property
    def nan(self) -> float:
        """Not a number, of a type of floats. TilefoldError (E5002) for others."""
        return self._special("nan")

    def _special(self, name: str) -> float:
        if not self.is_float:
            hint = "integers have cute.Int32.least and .greatest"
            raise TilefoldError(Code.BUILD_VALUE, f"{self} has no {name}", hint)
        return float(name)

    @property
    def has_arithmetic(self) -> bool:
        """Whether the type has arithmetic; kernels only load, store and convert elements of other types."""
        return self.kind != "packed" and not (self.kind == "float" and self.bits == 8)

    @property
    def in_memory(self) -> Attribute:
        """The type in the IR of an element in memory that threads share: a predicate is a byte there."""
        return i8 if self.kind == "bool" else self.ir

    @property
    def of_tensor(self) -> "DType":
        """The element type of a tensor made for this type."""
        return Float32 if self.name == "TFloat32" else self

    def __repr__(self) -> str:
        return self.name


Index = DType("Index", IndexType(), "int", 64)
DTYPES: Mapping[str, DType] = MappingProxyType({
    **{
        element.name: DType(element.name, ir_type(element), element.kind, element.bits, element.unsigned)
        for element in ELEMENT_TYPES
    },
    "Index": Index,
})  # fmt: skip
"""Every type by its name, those of one type in the IR after the one that stands for it."""

Float32, Float64, Int32, Int64, Uint16, Uint32, Boolean = [
    DTYPES[name] for name in ("Float32", "Float64", "Int32", "Int64", "Uint16", "Uint32", "Boolean")
]


def dtype_of(type: Attribute) -> DType:
    """The Python type for a type of the IR. Raises TilefoldError (E5002) for a type that values cannot have."""
    dtype = next((dtype for dtype in DTYPES.values() if dtype.ir == type), None)
    if dtype is None:
        raise TilefoldError(Code.BUILD_VALUE, f"{type} is not a type of values in a kernel", "such as cute.Float16")
    return dtype


def as_dtype(x: object) -> DType:
    """Converts a function's argument to a type: one of this file, or a type of the IR. Raises TilefoldError (E5002)."""
    if isinstance(x, DType):
        return x
    if isinstance(x, Attribute):
        return dtype_of(x)
    given = getattr(x, "name", None) or getattr(x, "__name__", None) or x
    raise TilefoldError(Code.BUILD_VALUE, f"expected an element type, got {given!r}", "such as cute.Float16")


def promote(a: DType, b: DType) -> DType:
    """The type in which values of two types are computed.

    The wider of two floats, and Float32 of Float16 and BFloat16; the wider of two integers, of one width the unsigned
    one, as in C++; a float before any integer, an integer before a predicate. Raises TilefoldError (E5002) for a type
    without arithmetic.
    """
    if a == b:
        return a
    for dtype in (a, b):
        if dtype.kind == "packed":
            raise TilefoldError(Code.BUILD_VALUE, f"{dtype} does not support arithmetic", "convert it first")
    if a.kind != b.kind:
        rank = ("bool", "int", "float")
        return a if rank.index(a.kind) > rank.index(b.kind) else b
    if a.kind == "int" and Index in (a, b):
        return Index
    if a.kind == "int" and a.bits == b.bits:
        return a if a.unsigned else b
    if a.bits == b.bits:
        # TFloat32 is Float32 once it is computed with; the others of one width have no common type but Float32
        return Float32
    return a if a.bits > b.bits else b


def of_sign(kind: str, dtype: DType) -> str:
    """PTX's name for `min` and `max` of a type: `umin` and `umax` where it is unsigned. Other words stay."""
    return f"u{kind}" if dtype.unsigned and kind in ("min", "max") else kind
