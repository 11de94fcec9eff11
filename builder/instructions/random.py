# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers from counters: Philox4x32-10 (J. Salmon and others, Parallel random numbers: as easy as 1, 2, 3).

A number depends only on its seed and its counter, so threads need no state, and any thread can compute it again.
"""

from ..scalars.dtypes import DTYPES, Float32, Uint32
from ..scalars.operators import Operand
from ..scalars.values import as_value, convert
from .bits import mulhi
from .math import cos, log, sqrt

_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
"""The increments of the two words of the key in each round: the golden ratio and the square root of 3 minus 1."""


def philox(seed: object, counter: Operand, *more: Operand) -> tuple[Operand, Operand, Operand, Operand]:
    """Four random Uint32 for a seed of 64 bits and a counter: of 64 bits, or up to four words of 32."""
    key = _halves(seed)
    words = [convert(as_value(x, Uint32), Uint32) for x in (counter, *more)] if more else list(_halves(counter))
    words += [Uint32(0)] * (4 - len(words))
    first, second, third, fourth = words
    for round in range(_ROUNDS):
        left, right = [word + (round * step & 0xFFFFFFFF) for word, step in zip(key, _WEYL, strict=True)]
        a, b = [Uint32(number) for number in _MULTIPLIERS]
        first, second, third, fourth = (
            mulhi(b, third) ^ second ^ left, b * third, mulhi(a, first) ^ fourth ^ right, a * first
        )  # fmt: skip
    return first, second, third, fourth


def uniform(seed: object, counter: object) -> Operand:
    """A random Float32 from 0 to below 1 for a seed and a counter: one of 2**24 equally likely numbers."""
    return _unit(philox(seed, counter)[0])


def normal(seed: object, counter: object) -> Operand:
    """A random Float32 of the standard normal distribution, for a seed and a counter (Box and Muller)."""
    first, second, _, _ = philox(seed, counter)
    radius = sqrt(-2.0 * log(1.0 - _unit(first)))
    return radius * cos(_unit(second) * 6.283185307179586)


def _unit(word: Operand) -> Operand:
    return convert(word >> 8, Float32) * (1.0 / (1 << 24))


def _halves(x: Operand) -> tuple[Operand, Operand]:
    wide = convert(as_value(x, DTYPES["Uint64"]), DTYPES["Uint64"])
    return convert(wide, Uint32), convert(wide >> 32, Uint32)
