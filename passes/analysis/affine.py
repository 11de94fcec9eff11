# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses as sums: a pointer, multiples of run-time values, and a constant. They show adjacency and alignment."""

from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from ...dialects.arith.integer_range import wrap_signed
from ...dialects.arith.semantics import INTEGER_OPERATIONS, SUMS, constant_of, int_width
from ...dialects.ptx import EntryOp, IntToPtrOp, LocalAllocOp, MapaOp, PtrAddOp, SmemAllocOp
from .ranges import Memoised


@dataclass(frozen=True, slots=True)
class Sum:
    """`constant` plus the sum of coefficient times value over `terms`, all in bytes."""

    constant: int
    terms: frozenset[tuple[SSAValue, int]] = frozenset()

    def __add__(self, other: "Sum") -> "Sum":
        terms = dict(self.terms)
        for value, factor in other.terms:
            terms[value] = terms.get(value, 0) + factor
        return Sum(self.constant + other.constant, frozenset([(v, c) for v, c in terms.items() if c]))

    def __sub__(self, other: "Sum") -> "Sum":
        return self + other.times(-1)

    def __mul__(self, other: "Sum") -> "Sum | None":
        if self.terms and other.terms:
            return None
        return self.times(other.constant) if self.terms else other.times(self.constant)

    def __lshift__(self, other: "Sum") -> "Sum | None":
        return None if other.terms or not 0 <= other.constant < 64 else self.times(1 << other.constant)

    def times(self, factor: int) -> "Sum":
        """All of it, multiplied by a number."""
        return Sum(self.constant * factor, frozenset([(v, c * factor) for v, c in self.terms if c * factor]))


@dataclass(frozen=True, slots=True)
class AddressSum:
    """A base pointer and the sum added to it."""

    base: SSAValue
    offset: Sum


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
        address = self._addresses.setdefault(base, AddressSum(base, Sum(0)))
        for step in reversed(steps):
            offset = address.offset + self.of(step.offset)
            address = AddressSum(address.base, offset)
            if len(offset.terms) > MOST_TERMS:
                address = AddressSum(step.result, Sum(0))
            self._addresses[step.result] = address
        return address

    def alignment(self, address: AddressSum) -> int:
        """The largest number of bytes known to divide an address."""
        return gcd(_find_base_align(address.base), self.divisor(address.offset))

    def divisor(self, sum: Sum) -> int:
        """The largest number known to divide a sum; 0 for the constant 0."""
        return gcd(sum.constant, *(c * self._divisors.of(v) for v, c in sum.terms))

    def _compute(self, value: SSAValue) -> Sum:
        result = self._sum(value)
        bits = int_width(value.type) or 64
        terms = ((term, wrap_signed(factor, bits)) for term, factor in result.terms)
        result = Sum(wrap_signed(result.constant, bits), frozenset((term, factor) for term, factor in terms if factor))
        return result if len(result.terms) <= MOST_TERMS else Sum(0, frozenset({(value, 1)}))

    def _sum(self, value: SSAValue) -> Sum:
        if (constant := constant_of(value)) is not None:
            return Sum(constant)
        op, sum = value.owner, None
        if isinstance(op, SUMS):
            sum = INTEGER_OPERATIONS[type(op)].value(self.of(op.lhs), self.of(op.rhs))
        elif isinstance(op, arith.IndexCastOp) and (int_width(op.input.type) or 64) >= (int_width(value.type) or 64):
            sum = self.of(op.input)
        return Sum(0, frozenset({(value, 1)})) if sum is None else sum


class _Divisors(Memoised[int]):
    """Powers of two known to divide values that are not sums: multiples that were masked or divided, and
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
            case arith.ShRUIOp(lhs=left, rhs=right):
                if (places := constant_of(right)) is not None and 0 <= places < 64:
                    return max(_power_of_two(self._sums.divisor(self._sums.of(left))) >> places, 1)
            case arith.XOrIOp(lhs=left, rhs=right):
                return _power_of_two(self._sums.divisor(self._sums.of(left)) | self._sums.divisor(self._sums.of(right)))
            case arith.IndexCastOp(input=inner) | arith.ExtSIOp(input=inner) | arith.ExtUIOp(input=inner):
                return _power_of_two(self._sums.divisor(self._sums.of(inner)))
            case _:
                pass
        return 1


def _power_of_two(number: int) -> int:
    """The greatest power of two that divides a number."""
    return number & -number


def _find_base_align(base: SSAValue) -> int:
    match base.owner:
        case SmemAllocOp() | LocalAllocOp():
            return base.owner.align.value.data
        case arith.SelectOp(lhs=ours, rhs=theirs):
            return gcd(_find_base_align(ours), _find_base_align(theirs))
        case MapaOp(ptr=own):
            return _find_base_align(own)
        case IntToPtrOp(align=align):
            return align.value.data
        case Block() as block if isinstance(entry := block.parent_op(), EntryOp):
            return entry.arg_aligns.get_values()[base.index] or 1  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
        case _:
            return 1
