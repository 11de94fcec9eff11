# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of the kernel that is being built: integers, floats and predicates with Python's operators, and conversions.

Python's own numbers stay numbers, and take the type of the value that they meet. So static numbers are computed while
the kernel is built, and only numbers that depend on a `Value` become operations.
"""

from typing import Any, TypeAlias, TypeGuard

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, Operation, SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects.arith.integer_range import Range, absolute, contains, limits, reduce_range
from ...layout.algebra.integers import Unknown
from ..tracing.state import current, host_number, insert_value, is_of_host
from ..tracing.truth import refuse_truth
from . import casts
from .arithmetic import (
    FUNCTIONS,
    binary_type,
    comparison,
    float_operation,
    floor_divide,
    integer_facts,
    integer_operation,
    power,
    promote,
    unary_type,
)
from .casts import (
    Number,
    check_numbers,
    common_type,
    float_attribute,
    integer_attribute,
    is_number,
    number_of,
    shown_number,
    weak_type,
)
from .dtypes import Boolean, DType, Index, Int32, as_dtype, dtype_of
from .operators import Arithmetic, Bitwise, Comparable, Operand, not_combined

Scalar: TypeAlias = "Value | int | float | bool"
"""An operand of arithmetic: a value of the kernel, or a Python number."""


class Value(Comparable):
    """A run-time value of the kernel: `ssa` in the IR, of type `dtype`."""

    __slots__ = ("dtype", "ssa")

    def __init__(self, ssa: SSAValue, dtype: DType | None = None) -> None:
        if not isinstance(ssa, SSAValue):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "write cute.Int32(x), cute.Float32(x) and so on"
            raise TilefoldError(Code.BUILD_VALUE, f"{type(self).__name__} is a class of values, not a type", hint)
        self.ssa = ssa
        self.dtype = dtype_of(ssa.type) if dtype is None else dtype

    def to(self, dtype: DType) -> Operand:
        """Converts the value to another type: floats round to nearest even, and towards zero to an integer; a wider
        integer keeps its low bits.
        """
        return convert(self, as_dtype(dtype))

    @property
    def width(self) -> int:
        """The bits of its type."""
        return self.dtype.width

    @property
    def type(self) -> Attribute:
        """Its type in the IR; that of an index is `Int32`'s, as programs see it."""
        return Int32.ir if self.dtype.name == "Index" else self.dtype.ir

    def ir_value(self) -> "Value":
        """The value itself, for programs that pass it to an operation of an IR."""
        return self

    def __bool__(self) -> bool:
        if is_of_host(self.ssa):
            truth: Any = self if self.dtype is Boolean else self != 0  # a host function depends on this bit alone
            return bool(host_number(truth.ssa) if isinstance(truth, Value) else truth)
        refuse_truth(
            f"Python cannot branch on a {self.dtype} that is known only when the kernel runs",
            "in a function decorated with @cute.kernel or @cute.jit write `if`, `while` and `for` on it as statements, "
            "or use cute.if_, cute.while_, cute.for_ and cute.where",
        )

    def __index__(self) -> int:
        if (number := host_number(self.ssa)) is not None:
            return int(number)
        raise TilefoldError(
            Code.BUILD_RUN_TIME,
            f"Python needs a number here, but this {self.dtype} is known only when the kernel runs",
            "pass it as a cute.Constexpr; choose by 'if', or from a tensor instead of a list; count by cute.range",
        )

    __int__ = __index__

    def __float__(self) -> float:
        if (number := host_number(self.ssa)) is not None:
            return float(number)
        raise TilefoldError(
            Code.BUILD_RUN_TIME,
            f"Python needs a number here, but this {self.dtype} is known only when the kernel runs",
            "take the function from cute, such as cute.sqrt, or convert by .to(...)",
        )

    def __format__(self, spec: str) -> str:
        if spec:
            hint = 'print it by cute.printf("{}", x) when the kernel runs'
            raise TilefoldError(
                Code.BUILD_RUN_TIME,
                f"Python formats text while the kernel is built, but {self!r} is known only when it runs",
                hint,
            )
        return repr(self)

    def __repr__(self) -> str:
        return f"{self.dtype}(?)"

    def _binary(self, name: str, a: object, b: object) -> Operand:
        return binary(name, a, b)

    def _compare(self, predicate: str, a: object, b: object) -> Operand:
        return compare(predicate, a, b)

    def _unary(self, name: str) -> Operand:
        return unary(name, self)


class Float(Arithmetic, Value):
    """A floating-point value."""

    __slots__ = ()


class Bool(Arithmetic, Bitwise, Value):
    """A predicate. `&`, `|`, `^` and `~` combine predicates, other arithmetic treats it as the Int32 0 or 1; `and`,
    `or` and `not` need the rewriting of a kernel.
    """

    __slots__ = ()


class Int(Arithmetic, Bitwise, Value):
    """An integer. Arithmetic wraps at its width; `//` and `%` round down, as in Python.

    `known` has its divisor, `range` its limits; both follow the arithmetic, prove the alignment
    of views and save instructions. Only powers of two are known to divide a result that may wrap.
    """

    __slots__ = ("known", "range")

    def __init__(
        self, ssa: SSAValue, dtype: DType | None = None, known: Unknown | None = None, range: Range | None = None
    ) -> None:
        super().__init__(ssa, dtype)
        self.known = Unknown(self.dtype.bits) if known is None else known
        self.range = self.dtype.limits if range is None else range

    def __index__(self) -> int:
        first, last = self.range
        return first if first == last and _is_constant(self.ssa) else super().__index__()

    __int__ = __index__

    @property
    def nonnegative(self) -> bool:
        """Whether the value is known to be at least 0."""
        return self.range[0] >= 0

    def ceil_div(self, a: "Int | int", b: "Int | int") -> Operand:
        """`a / b` rounded up; one of them is this integer."""
        return self._binary("ceildiv", a, b)

    def minimum(self, other: "Int | int") -> Operand:
        """The smaller of two integers."""
        return self._binary("min", self, other)

    def maximum(self, other: "Int | int") -> Operand:
        """The larger of two integers."""
        return self._binary("max", self, other)


def _is_constant(ssa: SSAValue) -> bool:
    """Whether a value is computed from constants alone, as `cute.Int32(5) - 1` is."""
    waiting, seen = [ssa], {ssa}
    while waiting:
        owner = waiting.pop().owner
        if not isinstance(owner, Operation) or not (owner.operands or isinstance(owner, arith.ConstantOp)):
            return False
        fresh = [operand for operand in owner.operands if operand not in seen]
        seen.update(fresh)
        waiting += fresh
    return True


MOST = 1 << 48
"""More than any extent, stride or coordinate in memory is."""


def wrap(ssa: SSAValue, dtype: DType | None = None, range: Range | None = None) -> Operand:
    """The Python value for an SSA value of a scalar type: `Int`, `Float` or `Bool`."""
    dtype = dtype_of(ssa.type) if dtype is None else dtype
    if dtype.kind == "int":
        return Int(ssa, dtype, range=range)
    return Float(ssa, dtype) if dtype.kind == "float" else Bool(ssa, dtype)


def is_scalar(x: object) -> TypeGuard[Scalar]:
    """Whether `x` is a value of the kernel or a number."""
    return isinstance(x, Value) or is_number(x)


def constant(x: Number, dtype: DType) -> Operand:
    """A number as a value. Raises TilefoldError (E5002) for one that the type does not have, and for no number."""
    if not is_number(x):
        raise TilefoldError(
            Code.BUILD_VALUE, f"expected a value or a number, got {type(x).__name__}", "load an element of a tensor"
        )
    x = number_of(x)
    if dtype.kind == "float":
        return Float(current().constant(float_attribute(x, dtype)), dtype)
    if dtype.kind == "bool":
        return Bool(current().constant(integer_attribute(-int(bool(x)), dtype.ir)), dtype)
    if isinstance(x, float) and not x.is_integer():
        raise TilefoldError(Code.BUILD_VALUE, f"{x} is not a number of type {dtype}", f"write int({x})")
    number = int(x)
    if dtype.kind == "packed" or not dtype.least <= number < 1 << dtype.bits:
        hint = "" if dtype.kind == "packed" else f"it has {dtype.least} to {dtype.greatest}"
        raise TilefoldError(Code.BUILD_VALUE, f"{shown_number(number)} is not a number of type {dtype}", hint)
    (held, _), (own, _) = (reduce_range((number, number), span) for span in (limits(dtype.bits), dtype.limits))
    ssa = current().constant(integer_attribute(held, dtype.ir))
    return Int(ssa, dtype, Unknown(dtype.bits, abs(own) or 1), (own, own))


def convert(x: Scalar, dtype: DType) -> Operand:
    """A value or a number as a value of a type. Raises TilefoldError (E5002) if the types do not convert."""
    if isinstance(x, Value):
        if x.dtype == dtype:
            return x
        ssa = casts.cast(x.ssa, x.dtype, dtype)
        if isinstance(x, Int) and dtype.kind == "int":
            return _resize(x, ssa, dtype)
        return wrap(ssa, dtype, (0, 1) if x.dtype.kind == "bool" else None)
    return constant(x, dtype)


def _resize(x: Int, ssa: SSAValue, dtype: DType) -> Int:
    """`x` in another width or with another sign, held by `ssa`."""
    return limit_range(ssa, dtype, x.known, x.range)


def limit_range(ssa: SSAValue, dtype: DType, known: Unknown, exact: Range | None) -> Int:
    """The integer that `ssa` holds: one with the divisor `known` in the range `exact` (None for any), modulo the
    numbers of its type.
    """
    if exact is not None and contains(dtype.limits, exact):
        return Int(ssa, dtype, Unknown(dtype.bits, known.div), exact)
    power = min(known.div & -known.div, 1 << (dtype.bits - 1))
    return Int(ssa, dtype, Unknown(dtype.bits, power), None if exact is None else reduce_range(exact, dtype.limits))


def compare(predicate: str, a: Operand, b: Operand) -> Operand:
    """A comparison of two values or numbers: `eq`, `ne`, `lt`, `le`, `gt` or `ge`. Equality is that of bits, as in C++:
    an Int32 may equal 0x80008000.
    """
    if not (is_scalar(a) and is_scalar(b)):
        return not_combined(a, b)
    a, b = number_of(a), number_of(b)
    dtype = promote(common_type(a, b))
    check_numbers(dtype, a, b, are_bits=predicate in ("eq", "ne"))
    return Bool(insert_value(comparison(predicate, dtype, convert(a, dtype).ssa, convert(b, dtype).ssa)), Boolean)


def binary(name: str, a: Operand, b: Operand) -> Operand:
    """An operation on two values or numbers, in their common type. Raises TilefoldError (E5002) without one."""
    if not (is_scalar(a) and is_scalar(b)):
        return not_combined(a, b)
    if name == "pow":
        return power(a, b, unary, constant_like)
    a, b = number_of(a), number_of(b)
    dtype = binary_type(name, a, b)
    if (same := _neutral(name, a, b, dtype)) is not None:
        return same
    if name == "and":  # of a number only the bits that the type has count: x & ~(1 << 31)
        a, b = (x & ((1 << dtype.bits) - 1) if type(x) is int and x < dtype.least else x for x in (a, b))
    elif name not in ("or", "xor"):
        check_numbers(dtype, a, b)
    x, y = convert(a, dtype), convert(b, dtype)
    if dtype.kind == "float":
        return _float_binary(name, x, y)
    if dtype.kind == "bool":
        return Bool(integer_operation(name, x, y, b), dtype)
    return _int_binary(name, x, y, b)


def _neutral(name: str, a: object, b: object, dtype: DType) -> Operand:
    """The operand that is the result already: x + 0, x * 1, x // 1; None otherwise."""
    if dtype.kind != "int":
        return None
    if isinstance(a, Value) and a.dtype == dtype and type(b) is int:
        if b == 0 and name in ("add", "sub", "or", "xor", "shl", "shr"):
            return a
        if b == 1 and name in ("mul", "floordiv"):
            return a
    neutral = (a == 0 and name in ("add", "or", "xor")) or (a == 1 and name == "mul") if type(a) is int else False
    return b if neutral and isinstance(b, Value) and b.dtype == dtype else None


def _float_binary(name: str, x: Float, y: Float) -> Operand:
    if name in ("floordiv", "mod"):
        return floor_divide(x, y, unary, _fma, _select)[name == "mod"]
    return Float(float_operation(name, x.ssa, y.ssa), x.dtype)


def _fma(a: Float, b: Float, c: Float) -> Float:
    return Float(insert_value(math.FmaOp(a.ssa, b.ssa, c.ssa)), c.dtype)


def _select(condition: Bool, a: Float, b: Float) -> Float:
    return Float(insert_value(arith.SelectOp(condition.ssa, a.ssa, b.ssa)), a.dtype)


class NoStages(int):
    """The number of stages of a ring that has none, 0. Nothing advances in it: `i // n` is 0, and `i % n` is `i`."""

    def __new__(cls) -> "NoStages":
        return super().__new__(cls, 0)

    def __rfloordiv__(self, position: int) -> int:
        return 0

    def __rmod__(self, position: int) -> int:
        return position


def _int_binary(name: str, x: Int, y: Int, written: object) -> Int:
    if isinstance(written, NoStages) and name in ("floordiv", "mod"):
        return constant(0, x.dtype) if name == "floordiv" else x
    if name in ("floordiv", "ceildiv", "mod") and type(written) is int and written == -1 and not x.dtype.unsigned:
        return constant(0, x.dtype) if name == "mod" else unary("neg", x)  # also of the least integer
    known, exact = integer_facts(name, x, y, written)
    return limit_range(integer_operation(name, x, y, written), x.dtype, known, exact)


def unary(name: str, x: Operand) -> Operand:
    """`neg`, `abs`, `not` (of bits) or one of the mathematical `FUNCTIONS` of a value."""
    dtype = unary_type(name, x.dtype)
    if name == "not":
        ones = dtype.greatest if dtype.unsigned else -1
        return binary("xor", x, True if dtype.kind == "bool" else ones)
    if name in FUNCTIONS:
        return Float(insert_value(FUNCTIONS[name](convert(x, dtype).ssa)), dtype)
    x = convert(x, dtype)
    if name == "abs" and dtype.unsigned:
        return x
    if name == "neg":
        return Float(insert_value(arith.NegfOp(x.ssa)), dtype) if dtype.kind == "float" else binary("sub", 0, x)
    if dtype.kind == "float":
        return Float(insert_value(math.AbsFOp(x.ssa)), dtype)
    return limit_range(insert_value(math.AbsIOp(x.ssa)), dtype, x.known, absolute(x.range))


def constant_like(x: Value, number: Number) -> Operand:
    """A number as a value of the type of another value."""
    return constant(number, x.dtype)


def as_value(x: Scalar, like: DType | None = None) -> Operand:
    """`x` as a value: a number takes the type `like`, or the narrowest usual one."""
    return x if isinstance(x, Value) else constant(x, weak_type(x, like))


def index_of(x: Operand) -> Int:
    """An integer as a coordinate, of type `index`. Raises TilefoldError (E5002) for anything but integers."""
    check_integer("a coordinate", x)
    return convert(x, Index)


def check_integer(subject: str, x: object) -> None:
    """Raises TilefoldError (E5002), which names `subject`, for anything but integers."""
    if isinstance(x, bool) or not isinstance(x, int | Int):
        shown = x.dtype if isinstance(x, Value) else type(x).__name__
        hint = "write a // b, or x.to(cute.Int32)" if isinstance(x, Float) else ""
        if isinstance(x, tuple):
            hint = "take one of its numbers: x, y, z = cute.arch.thread_idx()"
        raise TilefoldError(Code.BUILD_VALUE, f"{subject} is an integer, not {shown}", hint)
