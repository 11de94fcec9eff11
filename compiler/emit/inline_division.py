# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisions, remainders and square roots without a call, for kernels with multiplications by warpgroups.

The assembler makes most of them a call of a subroutine, and beside a call it ends each `wgmma` before it starts the
next (C7509). Here they are straight-line code in f64, in which PTX approximates reciprocals by one instruction, and
each Newton step doubles the correct bits. The results are the same:

- The exact quotient or root of numbers of 24 bits is exact in f64, or differs from the middle of two neighbours in f32
  by at least 1 part in 2**51, subnormal ones included; its last correction by the exact remainder brings the one in f64
  within 1 part in 2**52. So a second rounding, to f32, gives the number that one rounding would. f16 and bf16 are
  rounded from f32 as before.
- Estimates of a 64-bit quotient are never too large: the reciprocal is reduced by 1 part in 2**50, which its errors
  do not reach. Two of them leave a remainder of less than twice the divisor.

Quotients and roots of f64 stay calls.
"""

from collections.abc import Sequence
from math import frexp
from struct import unpack
from typing import TYPE_CHECKING

from ...dialects.element_types import FLOATS
from .types import overload

if TYPE_CHECKING:
    from .writer import FunctionWriter

_REDUCED = "0x3FEFFFFFFFFFFFF8"  # 1 - 2**-50
_FLOATS = frozenset(element.llvm for element in FLOATS.values() if 16 <= element.bits <= 32)
_INTEGERS = ("i8", "i16", "i64")  # the machine code of those of i32 has no call
_DIVISIONS = ("sdiv", "udiv", "srem", "urem")


def is_inlined(name: str, type: str) -> bool:
    """Whether an operation, in LLVM's words, has a form without a call for a type."""
    element = type[1:-1].split(" ", 2)[2] if type.startswith("<") else type
    return element in (_INTEGERS if name in _DIVISIONS else _FLOATS if name in ("fdiv", "sqrt") else ())


def compute(w: "FunctionWriter", name: str, type: str, operands: Sequence[str]) -> str:
    """Writes a division, a remainder or a root, and returns the name of its result: without a call, if the kernel asks
    for it and LLVM has nothing better for these operands.
    """
    if not w.divides_inline or not is_inlined(name, type) or _is_simple(name, operands[-1]):
        if name == "sqrt":
            return w.temp(f"call {type} @llvm.sqrt.{overload(type)}({type} {operands[0]})")
        return w.temp(f"{name} {type} {', '.join(operands)}")
    if not type.startswith("<"):
        return _compute(w, name, type, operands)
    count, _, element = type[1:-1].split(" ", 2)
    whole = "poison"
    for index in range(int(count)):
        parts = [w.temp(f"extractelement {type} {operand}, i32 {index}") for operand in operands]
        value = _compute(w, name, element, parts)
        whole = w.temp(f"insertelement {type} {whole}, {element} {value}, i32 {index}")
    return whole


def _is_simple(name: str, divisor: str) -> bool:
    """Whether LLVM multiplies instead: by the inverse of an integer, or of a power of two."""
    if divisor.startswith("%") or name == "sqrt":
        return False
    if name in _DIVISIONS:
        return True
    if len(divisor) != 18:  # a vector
        return False
    (number,) = unpack(">d", bytes.fromhex(divisor[2:]))
    return 2.0**-126 <= abs(number) <= 2.0**126 and frexp(number)[0] in (-0.5, 0.5)


def _compute(w: "FunctionWriter", name: str, type: str, operands: Sequence[str]) -> str:
    if name in _DIVISIONS:
        return _divide(w, name, type, operands)
    wide = [_extend(w, type, operand) for operand in operands]
    result = w.temp(f"fptrunc double {_root(w, *wide) if name == 'sqrt' else _quotient(w, *wide)} to float")
    return result if type == "float" else w.temp(f"fptrunc float {result} to {type}")


def _extend(w: "FunctionWriter", type: str, x: str) -> str:
    single = x if type == "float" else w.temp(f"fpext {type} {x} to float")
    return w.temp(f"fpext float {single} to double")


def _fma(w: "FunctionWriter", a: str, b: str, c: str) -> str:
    return w.temp(f"call double @llvm.fma.f64(double {a}, double {b}, double {c})")


def _negated(w: "FunctionWriter", x: str) -> str:
    return w.temp(f"fneg double {x}")


def _reciprocal(w: "FunctionWriter", x: str) -> tuple[str, str]:
    """The reciprocal: as the instruction approximates it, to 2**-19 at least, and after two Newton steps."""
    first = refined = w.temp(f"call double @llvm.nvvm.rcp.approx.ftz.d(double {x})")
    minus = _negated(w, x)
    for _ in range(2):
        error = _fma(w, minus, refined, "1.0")
        refined = _fma(w, refined, error, refined)
    return first, refined


def _quotient(w: "FunctionWriter", x: str, y: str) -> str:
    """The quotient of two floats in f64. Where it is 0, infinite or NaN, the first product is all of it."""
    first, reciprocal = _reciprocal(w, y)
    special = w.temp(f"fmul double {x}, {first}")
    quotient = w.temp(f"fmul double {x}, {reciprocal}")
    rest = _fma(w, _negated(w, y), quotient, x)
    quotient = _fma(w, rest, reciprocal, quotient)
    size = w.temp(f"call double @llvm.fabs.f64(double {special})")
    above = w.temp(f"fcmp ogt double {size}, 0.0")
    below = w.temp(f"fcmp olt double {size}, 0x7FF0000000000000")
    usual = w.temp(f"and i1 {above}, {below}")
    return w.temp(f"select i1 {usual}, double {quotient}, double {special}")


def _root(w: "FunctionWriter", x: str) -> str:
    """The square root of a float in f64. Zeros and infinity are their own; negative numbers have NaN."""
    inverse = w.temp(f"call double @llvm.nvvm.rsqrt.approx.ftz.d(double {x})")
    half = w.temp(f"fmul double {x}, -0.5")
    for _ in range(2):
        square = w.temp(f"fmul double {inverse}, {inverse}")
        inverse = _fma(w, inverse, _fma(w, half, square, "0.5"), inverse)
    root = w.temp(f"fmul double {x}, {inverse}")
    rest = _fma(w, _negated(w, root), root, x)
    root = _fma(w, rest, w.temp(f"fmul double {inverse}, 0.5"), root)
    zero = w.temp(f"fcmp oeq double {x}, 0.0")
    infinite = w.temp(f"fcmp oeq double {x}, 0x7FF0000000000000")
    own = w.temp(f"or i1 {zero}, {infinite}")
    return w.temp(f"select i1 {own}, double {x}, double {root}")


def _divide(w: "FunctionWriter", name: str, type: str, operands: Sequence[str]) -> str:
    """A division or remainder of integers, in i64; of absolute values if they have signs."""
    if type != "i64":
        extend = "sext" if name.startswith("s") else "zext"
        wide = [w.temp(f"{extend} {type} {operand} to i64") for operand in operands]
        return w.temp(f"trunc i64 {_divide(w, name, 'i64', wide)} to {type}")
    is_rest = name.endswith("rem")
    a, b = operands
    if name.startswith("u"):
        return _divide_unsigned(w, a, b)[is_rest]
    sizes = [w.temp(f"call i64 @llvm.abs.i64(i64 {operand}, i1 false)") for operand in operands]
    size = _divide_unsigned(w, *sizes)[is_rest]
    sign = w.temp(f"ashr i64 {a if is_rest else w.temp(f'xor i64 {a}, {b}')}, 63")
    return w.temp(f"sub i64 {w.temp(f'xor i64 {size}, {sign}')}, {sign}")


def _divide_unsigned(w: "FunctionWriter", a: str, b: str) -> tuple[str, str]:
    """Quotient and remainder."""
    _, reciprocal = _reciprocal(w, w.temp(f"call double @llvm.nvvm.ull2d.rp(i64 {b})"))
    reciprocal = w.temp(f"fmul double {reciprocal}, {_REDUCED}")
    quotient, rest = "0", a
    for _ in range(2):
        number = w.temp(f"call double @llvm.nvvm.ull2d.rz(i64 {rest})")
        estimate = w.temp(f"call i64 @llvm.nvvm.d2ull.rz(double {w.temp(f'fmul double {number}, {reciprocal}')})")
        quotient = w.temp(f"add i64 {quotient}, {estimate}")
        rest = w.temp(f"sub i64 {rest}, {w.temp(f'mul i64 {estimate}, {b}')}")
    more = w.temp(f"icmp uge i64 {rest}, {b}")
    quotient = w.temp(f"add i64 {quotient}, {w.temp(f'zext i1 {more} to i64')}")
    return quotient, w.temp(f"select i1 {more}, i64 {w.temp(f'sub i64 {rest}, {b}')}, i64 {rest}")
