# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses as sums: a pointer, multiples of run-time values, and a constant. What is adjacent, what is aligned."""

from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from ...dialects.ptx import EntryOp, LocalAllocOp, PtrAddOp, SmemAllocOp
from ..writing.constants import constant_of, signed
from ..writing.emitter import int_width


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


def address_sum(pointer: SSAValue) -> AddressSum:
    """The address as a base and a sum. Offsets are taken not to wrap: they lead from element to element of memory."""
    offset = _ZERO
    while isinstance(pointer.owner, PtrAddOp):
        offset = _plus(offset, integer_sum(pointer.owner.offset), 1)
        pointer = pointer.owner.ptr
    return AddressSum(pointer, offset)


def integer_sum(value: SSAValue) -> Sum:
    """An integer as a sum of multiples of values that are not sums themselves, modulo 2 to the power of its width.

    So one that is extended from a narrower type is not taken apart: the sum in that type may have wrapped.
    """
    found = _sum(value)
    bits = int_width(value.type) or 64
    terms = ((term, signed(factor, bits)) for term, factor in found.terms)
    return Sum(signed(found.constant, bits), frozenset((term, factor) for term, factor in terms if factor))


def _sum(value: SSAValue) -> Sum:
    if (constant := constant_of(value)) is not None:
        return Sum(constant, frozenset())
    match value.owner:
        case arith.AddiOp(lhs=left, rhs=right):
            return _plus(integer_sum(left), integer_sum(right), 1)
        case arith.SubiOp(lhs=left, rhs=right):
            return _plus(integer_sum(left), integer_sum(right), -1)
        case arith.MuliOp(lhs=left, rhs=right):
            for factor, other in ((left, right), (right, left)):
                if (constant := constant_of(factor)) is not None:
                    return _plus(_ZERO, integer_sum(other), constant)
        case arith.ShLIOp(lhs=left, rhs=right) if (constant := constant_of(right)) is not None and 0 <= constant < 64:
            return _plus(_ZERO, integer_sum(left), 1 << constant)
        case arith.IndexCastOp(input=inner) if (int_width(inner.type) or 64) >= (int_width(value.type) or 64):
            return integer_sum(inner)
        case _:
            pass
    return Sum(0, frozenset({(value, 1)}))


def _plus(a: Sum, b: Sum, factor: int) -> Sum:
    """`a + factor * b`."""
    terms = dict(a.terms)
    for value, coefficient in b.terms:
        terms[value] = terms.get(value, 0) + factor * coefficient
    return Sum(a.constant + factor * b.constant, frozenset((v, c) for v, c in terms.items() if c))


def alignment(address: AddressSum) -> int:
    """The largest number of bytes known to divide the address."""
    steps = [address.offset.constant, *(c * _divisor(v) for v, c in address.offset.terms)]
    return gcd(_base_align(address.base), *steps)


def _divisor(value: SSAValue) -> int:
    """A power of two known to divide a value that is not a sum: of what remains after masking or dividing a multiple,
    and of a multiple in a wider type, which may have wrapped before.
    """
    match value.owner:
        case arith.RemUIOp(lhs=left, rhs=right) | arith.RemSIOp(lhs=left, rhs=right):
            if (modulus := constant_of(right)) is not None:
                return _power_of_two(gcd(modulus, divisor_of_sum(integer_sum(left))))
        case arith.AndIOp(lhs=_, rhs=right):
            if (mask := constant_of(right)) is not None and mask > 0:
                return _power_of_two(mask)
        case arith.IndexCastOp(input=inner) | arith.ExtSIOp(input=inner) | arith.ExtUIOp(input=inner):
            return _power_of_two(divisor_of_sum(integer_sum(inner)))
        case _:
            pass
    return 1


def _power_of_two(number: int) -> int:
    """The greatest power of two that divides a number."""
    return number & -number


def divisor_of_sum(sum: Sum) -> int:
    """The largest number known to divide a sum; 0 for the constant 0."""
    return gcd(sum.constant, *(c * _divisor(v) for v, c in sum.terms))


def _base_align(base: SSAValue) -> int:
    match base.owner:
        case SmemAllocOp() | LocalAllocOp():
            return base.owner.align.value.data
        case Block() as block if isinstance(entry := block.parent_op(), EntryOp):
            return entry.arg_aligns.get_values()[base.index] or 1  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
        case _:
            return 1
