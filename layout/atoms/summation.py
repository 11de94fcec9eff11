# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tensor cores sum the products of a matrix instruction. PTX leaves it open, and each generation of GPUs does it
in its own way.

Measured on an H200 for sm_90. For the others after the models of Xie et al., "MMA-Sim: Bit-Accurate Reference Model of
Tensor Cores and Matrix Cores" (arXiv 2511.10909), except for the exponent of zeros, which is that of sm_90.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, assert_never, final

from ...base.element_types import BY_PTX
from ...base.target import Target
from .mma_atom import MmaAtom
from .numbers import Summed


@final
@dataclass(frozen=True, slots=True)
class AlignedSum:
    """A sum of aligned addends, in one or more steps along K; `steps` has the numbers k of the products of each.

    A step adds its products to the accumulator. M is the largest raw exponent among the addends; that of a product is
    the sum of its operands' raw exponents. Each addend is truncated toward zero to a multiple of 2**(M - `fraction`),
    and their sum is then exact. A result in f32 is truncated toward zero to `significand` bits; one in f16 is rounded
    to nearest even. Between steps the accumulator has its type.

    `as_f16` converts the operands to f16 first. With `accumulates_last` the first step starts from zero, and the
    accumulator is added at the end, rounded to nearest even: an instruction that is emulated.
    """

    steps: tuple[tuple[int, ...], ...]
    fraction: int
    significand: int = 24
    as_f16: bool = False
    accumulates_last: bool = False


@final
@dataclass(frozen=True, slots=True)
class FusedChain:
    """A chain of fused multiply-adds, which begins with the accumulator; k rises."""


@final
@dataclass(frozen=True, slots=True)
class SplitChain:
    """Chains of `terms` fused multiply-adds in f32, k rising. They are added to the accumulator one after the other,
    and the result is rounded to its type. A chain starts from zero; `negative` says which, for the sign of zero sums.
    """

    terms: int
    negative: bool


@final
@dataclass(frozen=True, slots=True)
class ScaledSum:
    """A sum of products with scales, in one step. `exact` neighbouring products are summed exactly; a term is such a
    sum times the scales. M is the largest raw exponent among the terms and the accumulator: that of a term is the sum
    of its scales' and, of a single product, of its operands' exponents. Each is truncated toward zero to a multiple of
    2**(M - `fraction`), and the exact sum of these toward zero to f32.
    """

    exact: int
    fraction: int


Summation: TypeAlias = AlignedSum | FusedChain | SplitChain | ScaledSum

LEAST_EXPONENT = -133
"""The least M of a step (measured with bf16 and tf32, whose products may have smaller exponents)."""


def summation(atom: MmaAtom, target: Target) -> Summation | None:
    """How the GPUs of `target` sum the floats of a matrix instruction.

    None for integers and instructions of one thread, whose results PTX defines, and for those that nobody has measured
    on such a GPU.
    """
    d, a, _, _ = atom.types
    if BY_PTX[d].kind != "float":
        return None
    k, bits = atom.stored_k, atom.bits[2]  # a sparse A selects elements of B, and the rest is as of a dense one
    match atom.products.summed:
        case Summed.FUSED | Summed.UNMEASURED:
            return None
        case Summed.QUAD_PAIR:  # ptxas calls a function that shuffles, from sm_80 on
            return None if target.sm < 80 else SplitChain(2, True) if d == "f16" else SplitChain(4, False)
        case Summed.WARPGROUP_UNIT:  # each step takes all of K
            return AlignedSum(_consecutive(k, k), 13, 14) if bits == 8 else AlignedSum(_consecutive(k, k), 25)
        case Summed.TENSOR_MEMORY_UNIT:
            return AlignedSum(_consecutive(k, k), 25)
        case Summed.WARP_UNIT:
            if d == "f64":
                return FusedChain()
            if atom.has_scales:
                return ScaledSum(1, 25) if k == 32 else ScaledSum(16, 35)
            if bits == 8:
                return _of_bytes(k, target.sm)
            if target.sm >= 90:
                return AlignedSum(_consecutive(k, k), 25)
            return AlignedSum(_consecutive(k, 4 if a == "tf32" else 8), 24)
        case _:
            assert_never(atom.products.summed)


def _of_bytes(k: int, sm: int) -> AlignedSum | None:
    """mma.sync on 8-bit floats. sm_90 and sm_10x have no unit for it: they multiply as f16, in two steps."""
    if sm == 89:
        return AlignedSum(_consecutive(k, 16), 13, 14)
    if sm == 90 or sm // 10 == 10:
        pairs = [tuple([i for i in range(k) if i % 4 in pair]) for pair in ((0, 1), (2, 3))]
        return AlignedSum(tuple(pairs), 25, as_f16=True, accumulates_last=True)
    if sm // 10 == 12:
        return AlignedSum(_consecutive(k, k), 25)
    return None


def _consecutive(k: int, terms: int) -> tuple[tuple[int, ...], ...]:
    """Steps of `terms` products, in order."""
    numbers: Iterable[int] = range(0, k, terms)
    return tuple([tuple(range(first, min(first + terms, k))) for first in numbers])
