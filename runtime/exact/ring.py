# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exact arithmetic in a ring: integers modulo a power of a large prime.

A rational number whose denominator the prime does not divide is an element of the ring, so sums, products and quotients
of floating-point numbers are exact, in whatever order. An element takes 31 bytes, however long the computation was; a
fraction would grow with each sum. Two different numbers are equal in the ring with a probability of 2**-124.

Powers of the prime are small, as in the p-adic numbers, so that the series of exp, log, sin and cos end after a few
terms. exp(x) is the series at x times the prime. The laws of the functions hold here: exp(x + y) = exp(x) * exp(y),
log(exp(x)) = x, log(x * y) = log(x) + log(y), sin(x)**2 + cos(x)**2 = 1. So a softmax that rescales its sums equals one
that does not. Equations that tie a function to numbers do not hold: exp2(3) is not 8. A square root is that of x or, if
x has none, of -x times a symbol. Other functions are symbols: equal for equal operands.

A quotient by a multiple of the prime loses its last digits to the base of the prime, as does a logarithm; half of the
digits are compared.
"""

from functools import cache
from hashlib import blake2b
from math import factorial

PRIME = (1 << 31) - 1
DIGITS = 8
MODULUS = PRIME**DIGITS
COMPARED = PRIME ** (DIGITS // 2)
"""Elements are equal that are equal modulo this."""


def symbol(name: str, *operands: int) -> int:
    """The element for a function without a rule, at some operands."""
    digest = blake2b(repr((name, *operands)).encode(), digest_size=48).digest()
    value = int.from_bytes(digest) % MODULUS
    return value if value % PRIME else value + 1


@cache
def _inverse(number: int) -> int:
    return pow(number, -1, MODULUS)


def rational(numerator: int, denominator: int = 1) -> int:
    """The element for a quotient of integers whose denominator is a power of two."""
    return numerator * _inverse(denominator) % MODULUS


def quotient(a: int, b: int) -> int:
    """a / b; by a multiple of the prime as far as digits are left, and by 0 a symbol."""
    if not b:
        return a * symbol("1 / 0") % MODULUS
    while b % PRIME == 0:
        b //= PRIME
        a = a // PRIME if a % PRIME == 0 else a * symbol("1 / p")
    return a * pow(b, -1, MODULUS) % MODULUS


def power(a: int, exponent: int) -> int:
    """a to the power of an integer."""
    return pow(a, exponent, MODULUS) if exponent >= 0 else quotient(1, pow(a, -exponent, MODULUS))


def _series(x: int, first: int, step: int, alternates: bool) -> int:
    """The sum of y**n / n! for n = first, first + step, ..., where y is x times the prime."""
    y, total = x * PRIME % MODULUS, 0
    for index, n in enumerate(range(first, DIGITS, step)):
        term = pow(y, n, MODULUS) * _inverse(factorial(n))
        total += -term if alternates and index % 2 else term
    return total % MODULUS


def exp(x: int) -> int:
    """The exponential function."""
    return _series(x, 0, 1, alternates=False)


def sin(x: int) -> int:
    """The sine."""
    return _series(x, 1, 2, alternates=True)


def cos(x: int) -> int:
    """The cosine."""
    return _series(x, 0, 2, alternates=True)


def log(x: int) -> int:
    """The logarithm that is 0 at 1, and at roots of 1."""
    if x % PRIME == 0:
        return symbol("log", x)
    z = (pow(x, PRIME - 1, MODULUS) - 1) % MODULUS  # a multiple of the prime
    total = sum((-1) ** (n + 1) * pow(z, n, MODULUS) * _inverse(n) for n in range(1, DIGITS))
    return total * _inverse(PRIME - 1) % MODULUS // PRIME


LN2 = log(2)
"""The logarithm of 2, which turns exp2 and log2 into exp and log."""


def sqrt(x: int) -> int:
    """The square root that is a square itself; an element without one has that of -x times a symbol."""
    if x % PRIME == 0:
        return symbol("sqrt", x) if x else 0
    if pow(x, (PRIME - 1) // 2, PRIME) != 1:
        return symbol("sqrt of -1") * sqrt(-x % MODULUS) % MODULUS
    root = pow(x, (PRIME + 1) // 4, PRIME)
    for _ in range(DIGITS.bit_length()):  # Newton's method doubles the digits that are right
        root = (root - (root * root - x) * pow(2 * root, -1, MODULUS)) % MODULUS
    return root
