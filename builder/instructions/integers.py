# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic by the names of PTX's instructions (PTX ISA, Integer Arithmetic and Logic and Shift Instructions):
fields of bits, products of other widths, sums that saturate, functions of three words, lanes as masks.
"""

from ...base.errors import Code, TilefoldError
from ...layout.algebra.inttuple import unflatten
from ..scalars.casts import common_type
from ..scalars.dtypes import DTYPES, DType, Int32, Int64, Uint32
from ..scalars.operators import Operand
from ..scalars.values import Int, Value, as_value, convert
from ..tensors.tuples import flatten_to_tuple
from ..tracing.attributes import Stateful
from .arch import lane_idx
from .bits import bitcast, clz, mulhi
from .inline import inline_ptx
from .math import maximum, minimum, where

Uint64 = DTYPES["Uint64"]


def _word(x: Operand, bits: tuple[int, ...] = (32, 64)) -> Operand:
    value: Value = as_value(x, Int32)
    if value.dtype.kind != "int" or value.dtype.bits not in bits:
        widths = " or ".join(map(str, bits))
        hint = "convert it by .to, or its bits by cute.arch.bitcast"
        raise TilefoldError(Code.BUILD_VALUE, f"expected an integer of {widths} bits, got a {value.dtype}", hint)
    return value


def _field(name: str, words: list[Operand], start: Operand, length: Operand) -> Operand:
    value = _word(words[-1])
    bits, signed = value.dtype.bits, name == "bfe" and not value.dtype.unsigned
    kind = f"{'s' if signed else 'u' if name == 'bfe' else 'b'}{bits}"
    places = [convert(as_value(x, Int32), Uint32) for x in (start, length)]
    letter = "r" if bits == 32 else "l"
    count = len(words)
    text = f"{name}.{kind} {', '.join(f'${i}' for i in range(count + 3))};"
    given = [convert(_word(word), value.dtype) for word in words]
    constraints = f"={letter},{f'{letter},' * count}r,r"
    return inline_ptx(text, constraints, *given, *places, results=value.dtype)


def bfe(value: object, start: object, length: object) -> Operand:
    """`length` bits of an integer of 32 or 64 bits from bit `start` on, with its sign where the type has one; 0 and the
    sign stand for bits above the highest (PTX ISA, bfe).
    """
    return _field("bfe", [value], start, length)


def bfi(replacement: object, value: object, start: object, length: object) -> Operand:
    """An integer of 32 or 64 bits whose `length` bits from `start` on are the lowest of another (PTX ISA, bfi)."""
    return _field("bfi", [replacement, value], start, length)


def bfind(value: object) -> Int:
    """The place of the highest bit of an integer of 32 or 64 bits that differs from its sign, a Uint32; all ones if
    there is none (PTX ISA, bfind).
    """
    x = _word(value)
    magnitude = x if x.dtype.unsigned else where(x < 0, ~x, x)
    return convert(x.dtype.bits - 1 - clz(magnitude), Uint32)


def mul_hi(a: object, b: object) -> Operand:
    """The upper half of the product of two integers of 32 bits (PTX ISA, mul.hi)."""
    return mulhi(_word(a, (32,)), _word(b, (32,)))


def mul_wide(a: object, b: object) -> Operand:
    """The full product of two integers of 16 or 32 bits, twice as wide (PTX ISA, mul.wide)."""
    dtype = common_type(_word(a, (16, 32)), _word(b, (16, 32)))
    wide = DTYPES[f"{'Uint' if dtype.unsigned else 'Int'}{2 * dtype.bits}"]
    return convert(convert(_word(a, (16, 32)), dtype), wide) * convert(convert(_word(b, (16, 32)), dtype), wide)


def mul24(a: object, b: object, hi: bool = False) -> Operand:
    """The lower 32 bits of the product of the lowest 24 bits of two integers of 32, or with `hi` those from bit 16 on
    (PTX ISA, mul24).
    """
    dtype = common_type(_word(a, (32,)), _word(b, (32,)))
    x, y = (_low24(operand, dtype) for operand in (a, b))
    return convert(x * y >> (16 if hi else 0), dtype)


def mad24(a: object, b: object, c: object, hi: bool = False) -> Operand:
    """`mul24(a, b, hi) + c` (PTX ISA, mad24)."""
    return mul24(a, b, hi) + c


def _low24(x: object, dtype: DType) -> Operand:
    word = convert(_word(x, (32,)), dtype)
    return convert(word << 8 >> 8, Uint64 if dtype.unsigned else Int64)


def add_sat_int(a: Operand, b: Operand) -> Operand:
    """The sum of two Int32, the greatest or the least one where it does not fit (PTX ISA, add.sat)."""
    return _saturated(convert(a, Int64) + convert(b, Int64))


def sub_sat_int(a: Operand, b: Operand) -> Operand:
    """The difference of two Int32, the greatest or the least one where it does not fit (PTX ISA, sub.sat)."""
    return _saturated(convert(a, Int64) - convert(b, Int64))


def _saturated(x: object) -> Operand:
    return convert(minimum(maximum(x, Int32.least), Int32.greatest), Int32)


def lop3(a: object, b: object, c: object, lut: int) -> Operand:
    """A function of three words, bit by bit: bit `4 * a + 2 * b + c` of `lut` is its value (PTX ISA, lop3)."""
    if type(lut) is not int or not 0 <= lut < 256:
        raise TilefoldError(Code.BUILD_VALUE, f"the table of lop3 is {lut!r}", "it has 8 bits, such as 0x96")
    words = [_word(x, (32,)) for x in (a, b, c)]
    text = f"lop3.b32 $0, $1, $2, $3, {lut:#x};"
    return inline_ptx(text, "=r,r,r,r", *words, results=words[0].dtype)


def shf(a: object, b: object, shift: Operand, kind: str = "l") -> Operand:
    """Shifts the 64 bits whose upper half is `a` and whose lower half is `b`. Returns the upper half after a shift to
    the left ("l"), the lower half after one to the right ("r"). The number of places is taken modulo 32, or is at most
    32 ("clamp_left", "clamp_right") (PTX ISA, shf).
    """
    if kind not in ("l", "r", "clamp_left", "clamp_right"):
        raise TilefoldError(
            Code.BUILD_VALUE, f"shf does not support the mode {kind!r}", "one of l, r, clamp_left, clamp_right"
        )
    high, low = _word(a, (32,)), _word(b, (32,))
    places = convert(as_value(shift, Int32), Uint32)
    places = convert(minimum(places, 32) if kind.startswith("clamp") else places & 31, Uint64)
    both = convert(bitcast(high, Uint32), Uint64) << 32 | convert(bitcast(low, Uint32), Uint64)
    made = both << places >> 32 if kind in ("l", "clamp_left") else both >> places
    return bitcast(convert(made, Uint32), high.dtype)


def lanemask_eq() -> Operand:
    """A Uint32 with the bit of the thread's lane."""
    return convert(1, Uint32) << convert(lane_idx(), Uint32)


def lanemask_lt() -> Operand:
    """A Uint32 with the bits of the lanes before the thread's."""
    return lanemask_eq() - 1


def lanemask_le() -> Operand:
    """A Uint32 with the bits of the thread's lane and of those before."""
    return lanemask_lt() | lanemask_eq()


def lanemask_gt() -> Operand:
    """A Uint32 with the bits of the lanes after the thread's."""
    return ~lanemask_le()


def lanemask_ge() -> Operand:
    """A Uint32 with the bits of the thread's lane and of those after."""
    return ~lanemask_lt()


def increment_coord(coord: Operand, shape: object) -> Operand:
    """The coordinate after another one of a congruent shape: the first mode counts first, and all but the last start
    anew at their extent (CuTe's `increment`, stride.hpp).
    """
    *inner, last = zip(flatten_to_tuple(coord), flatten_to_tuple(shape), strict=True)
    carry: Operand = True
    made: list[Operand] = []
    for place, extent in inner:
        ends = carry & (place == extent - 1)
        made.append(where(ends, 0, where(carry, place + 1, place)))
        carry = ends
    return unflatten((*made, where(carry, last[0] + 1, last[0])), coord)


class FastDivmodDivisor(Stateful):
    """A divisor of 32 bits: `x // d`, `x % d` and `divmod(x, d)` for integers `x`, of Python or of the kernel.

    Quotient and remainder are those of `x // d.divisor` and `x % d.divisor`, and take as long: tilefold prepares
    nothing for them.
    """

    def __init__(self, divisor: object) -> None:
        """Raises TilefoldError (E5002) for anything but an integer, E5001 outside functions of the program."""
        self.divisor: Value = Int32(divisor)

    def __extract_mlir_values__(self) -> list[Value]:
        return [self.divisor]

    def __new_from_mlir_values__(self, values: list[Value]) -> "FastDivmodDivisor":
        return FastDivmodDivisor(values[0])

    def __rfloordiv__(self, x: Operand) -> Operand:
        return x // self.divisor

    def __rmod__(self, x: Operand) -> Operand:
        return x % self.divisor

    def __rdivmod__(self, x: Operand) -> tuple[Operand, Operand]:
        return x // self.divisor, x % self.divisor


FastDivmodDivisorV2 = FastDivmodDivisor


def fast_divmod_create_divisor(divisor: object, **unused: object) -> FastDivmodDivisor:
    """The divisor of many divisions by one number."""
    return FastDivmodDivisor(divisor)


fast_divmod_create_divisor_v2 = fast_divmod_create_divisor
