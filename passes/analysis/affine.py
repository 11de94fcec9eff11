# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses as sums: a pointer, multiples of run-time values, and a constant. What is adjacent, what is aligned."""

from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from ...dialects.arith.integer_range import signed
from ...dialects.ptx import EntryOp, LocalAllocOp, PtrAddOp, SmemAllocOp
from ..writing.constants import constant_of
from ..writing.emitter import int_width
from .memoised import Memoised


@dataclass(frozen=True, slots=True)
class Sum:
    """`constant` plus the sum of coefficient times value over `terms`, all in bytes."""

    constant: int
    terms: frozenset[tuple[SSAValue, int]]


@dataclass(frozen=True, slots=True)
class AddressSum:
    """A pointer that nothing is known to be added to, and what is added to it."""

    base: SSAValue
    offset: Sum


_ZERO = Sum(0, frozenset())
MOST_TERMS = 32
"""A sum of more terms is taken for one value."""


class Sums(Memoised[Sum]):
    """The integers of one kernel as sums of multiples of values that are not sums themselves, modulo 2 to the power of
    their widths.

    So one that is extended from a narrower type is not taken apart: the sum in that type may have wrapped.
    """

    def __init__(self) -> None:
        super().__init__()
        self._addresses: dict[SSAValue, AddressSum] = {}
        self._divisors = _Divisors(self)

    def address(self, pointer: SSAValue) -> AddressSum:
        """The address as a base and a sum. Offsets are taken not to wrap: they lead from element to element of
        memory.
        """
        steps: list[PtrAddOp] = []
        base = pointer
        while base not in self._addresses and isinstance(base.owner, PtrAddOp):
            steps.append(base.owner)
            base = base.owner.ptr
        found = self._addresses.setdefault(base, AddressSum(base, _ZERO))
        for step in reversed(steps):
            offset = _plus(found.offset, self.of(step.offset), 1)
            found = AddressSum(found.base, offset)
            if len(offset.terms) > MOST_TERMS:
                found = AddressSum(step.result, _ZERO)
            self._addresses[step.result] = found
        return found

    def alignment(self, address: AddressSum) -> int:
        """The largest number of bytes known to divide an address."""
        return gcd(_base_align(address.base), self.divisor(address.offset))

    def divisor(self, sum: Sum) -> int:
        """The largest number known to divide a sum; 0 for the constant 0."""
        return gcd(sum.constant, *(c * self._divisors.of(v) for v, c in sum.terms))

    def _compute(self, value: SSAValue) -> Sum:
        found = self._sum(value)
        bits = int_width(value.type) or 64
        terms = ((term, signed(factor, bits)) for term, factor in found.terms)
        found = Sum(signed(found.constant, bits), frozenset((term, factor) for term, factor in terms if factor))
        return found if len(found.terms) <= MOST_TERMS else Sum(0, frozenset({(value, 1)}))

    def _sum(self, value: SSAValue) -> Sum:
        if (constant := constant_of(value)) is not None:
            return Sum(constant, frozenset())
        match value.owner:
            case arith.AddiOp(lhs=left, rhs=right):
                return _plus(self.of(left), self.of(right), 1)
            case arith.SubiOp(lhs=left, rhs=right):
                return _plus(self.of(left), self.of(right), -1)
            case arith.MuliOp(lhs=left, rhs=right):
                for factor, other in ((left, right), (right, left)):
                    if (constant := constant_of(factor)) is not None:
                        return _plus(_ZERO, self.of(other), constant)
            case arith.ShLIOp(lhs=left, rhs=right) if (
                constant := constant_of(right)
            ) is not None and 0 <= constant < 64:
                return _plus(_ZERO, self.of(left), 1 << constant)
            case arith.IndexCastOp(input=inner) if (int_width(inner.type) or 64) >= (int_width(value.type) or 64):
                return self.of(inner)
            case _:
                pass
        return Sum(0, frozenset({(value, 1)}))


class _Divisors(Memoised[int]):
    """Powers of two known to divide values that are not sums: what remains after masking or dividing a multiple, and
    multiples in a wider type, which may have wrapped before.
    """

    def __init__(self, sums: Sums) -> None:
        super().__init__()
        self._sums = sums

    def _compute(self, value: SSAValue) -> int:
        match value.owner:
            case arith.RemUIOp(lhs=left, rhs=right) | arith.RemSIOp(lhs=left, rhs=right):
                if (modulus := constant_of(right)) is not None:
                    return _power_of_two(gcd(modulus, self._sums.divisor(self._sums.of(left))))
            case arith.AndIOp(lhs=_, rhs=right):
                if (mask := constant_of(right)) is not None and mask > 0:
                    return _power_of_two(mask)
            case arith.IndexCastOp(input=inner) | arith.ExtSIOp(input=inner) | arith.ExtUIOp(input=inner):
                return _power_of_two(self._sums.divisor(self._sums.of(inner)))
            case _:
                pass
        return 1


def _plus(a: Sum, b: Sum, factor: int) -> Sum:
    """`a + factor * b`."""
    terms = dict(a.terms)
    for value, coefficient in b.terms:
        terms[value] = terms.get(value, 0) + factor * coefficient
    return Sum(a.constant + factor * b.constant, frozenset((v, c) for v, c in terms.items() if c))


def _power_of_two(number: int) -> int:
    """The greatest power of two that divides a number."""
    return number & -number


def _base_align(base: SSAValue) -> int:
    match base.owner:
        case SmemAllocOp() | LocalAllocOp():
            return base.owner.align.value.data
        case Block() as block if isinstance(entry := block.parent_op(), EntryOp):
            return entry.arg_aligns.get_values()[base.index] or 1  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
        case _:
            return 1
