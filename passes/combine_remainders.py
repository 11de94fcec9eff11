# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`combine-remainders`: the first pass from stage `index` to stage `instr`."""

from collections.abc import Iterable, Set
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects.arith.semantics import SUMS, int_width
from ..dialects.kernel import kernels_in
from ..dialects.ptx import EntryOp, PtrAddOp
from ..dialects.ptx.base import integer_bits
from .analysis.quotients import Digit, DigitProduct, Quotients, Sum, write_in_digits, write_in_quotients
from .analysis.ranges import Ranges
from .convert_index import resize
from .writing.emitter import Emitter

_REMAINDERS = (arith.RemUIOp, arith.RemSIOp, arith.AndIOp)
_CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)
_DIVISION, _VARIABLE_DIVISION = 3, 20
"""About how many instructions a division takes, by a constant that is not a power of two and by a value."""


@dataclass(frozen=True)
class CombineRemaindersPass(ModulePass):
    """Combines quotients and remainders of one number in a sum, if that takes fewer instructions.

    Layouts whose strides continue each other, and index arithmetic, often split a coordinate and join its parts again.
    An address may also use a multiple of the number itself instead of a multiple of its remainder.

    Before:

        %r = arith.remui %t, %c16 : index
        %0 = arith.muli %r, %c6 : index
        %q = arith.divui %t, %c16 : index
        %1 = arith.muli %q, %c96 : index
        %2 = arith.addi %0, %1 : index

    After:

        %2 = arith.muli %t, %c6 : index
    """

    name = "combine-remainders"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for entry in kernels_in(op, EntryOp):
            _Combination(entry).run(entry)


class _Combination:
    """The sums of one kernel."""

    def __init__(self, entry: EntryOp) -> None:
        self._ranges = Ranges(entry)
        self._quotients = Quotients(self._ranges)

    def run(self, entry: EntryOp) -> None:
        ops = list(entry.walk())
        above = _above(op for op in ops if isinstance(op, _REMAINDERS))
        for op in reversed(ops):  # the whole sum before its parts
            if op in above and isinstance(op, SUMS) and not _is_part(op):
                self._combine(op)

    def _combine(self, op: Operation) -> None:
        result = op.results[0]
        bits = int_width(result.type)
        if bits is None:
            return
        written = self._quotients.sum_of(result, bits)
        quotients = write_in_quotients(written, bits)
        shared = {digit for product in written for digit in product if self._is_shared(digit)}
        best = write_in_digits(quotients, bits)
        is_address = all(isinstance(use.operation, PtrAddOp) and use.index == 1 for use in result.uses)
        if is_address and _cost(quotients, shared) + 1 < _cost(
            best, shared
        ):  # a mask less is worth less than known bits
            best = quotients
        saved = _cost(written, shared) - _cost(best, shared)
        # of equal cost, the form in which every address is written, unless LLVM has only bits to move
        if saved > 0 or (saved == 0 and is_address and not _is_flat(result) and not _is_bits(written)):
            emitter = Emitter(op)
            new = self._emit(emitter, best, result)
            new.name_hint = result.name_hint
            result.replace_all_uses_with(new)
            _erase(op)

    def _is_shared(self, digit: Digit) -> bool:
        """Whether a digit is computed for something other than sums, too."""
        return any(_has_other_use(value) for value in self._quotients.written.get(digit, ()))

    def _emit(self, emitter: Emitter, terms: Sum, like: SSAValue) -> SSAValue:
        """A sum as a value of the type of `like`: terms in the order of their definitions, a constant last."""
        total: SSAValue | None = None
        for product in sorted(terms, key=self._order):
            term = self._product(emitter, product, terms[product], like)
            total = term if total is None else emitter.value(arith.AddiOp(total, term))
        return emitter.constant_like(0, like) if total is None else total

    def _order(self, product: DigitProduct) -> tuple[bool, int, DigitProduct]:
        depth = max((_depth(self._quotients.values[digit.root]) for digit in product), default=0)
        return not product, depth, product

    def _product(self, emitter: Emitter, product: DigitProduct, coefficient: int, like: SSAValue) -> SSAValue:
        if not product:
            return emitter.constant_like(coefficient, like)
        values = self._quotients.values
        first, *others = sorted(product, key=lambda digit: _depth(values[digit.root]))
        result = self._digit(emitter, first, like)
        if coefficient != 1:
            result = emitter.value(arith.MuliOp(result, emitter.constant_like(coefficient, like)))
        for digit in others:
            result = emitter.value(arith.MuliOp(result, self._digit(emitter, digit, like)))
        return result

    def _digit(self, emitter: Emitter, digit: Digit, like: SSAValue) -> SSAValue:
        """A digit as a value of the type of `like`, computed in that type if all numbers fit."""
        values, width = self._quotients.values, integer_bits(like.type)
        type = IndexType() if width is None else IntegerType(width)
        mod_by = () if digit.mod_by < 0 else (digit.mod_by,)
        operands = [values[number] for number in (digit.root, *digit.by, *mod_by)]
        if digit == Digit(digit.root):
            return _resized(emitter, operands[0], type)
        within = type if all(self._ranges.fits(value, width or 64) for value in operands) else IndexType()
        result, *divisors = (_resized(emitter, value, within) for value in operands)
        remainder = divisors.pop() if mod_by else None
        for divisor in divisors:
            result = emitter.value(arith.DivUIOp(result, divisor))
        if digit.div > 1:
            result = emitter.value(arith.DivUIOp(result, emitter.constant_like(digit.div, result)))
        if digit.mod:
            remainder = emitter.constant_like(digit.mod, result)
        if remainder is not None:
            result = emitter.value(arith.RemUIOp(result, remainder))
        return _resized(emitter, result, type)


def _resized(emitter: Emitter, value: SSAValue, type: IntegerType | IndexType) -> SSAValue:
    """An integer in a type that it fits."""
    if value.type == type:
        return value
    if isinstance(type, IndexType) or isinstance(value.type, IndexType):
        return emitter.value(arith.IndexCastOp(value, type))
    return resize(emitter, value, type.width.data)


def _above(remainders: Iterable[Operation]) -> set[Operation]:
    """The sums and casts that remainders go into."""
    users: set[Operation] = set()
    waiting = [op.results[0] for op in remainders]
    while waiting:
        for use in waiting.pop().uses:
            user = use.operation
            if isinstance(user, (*SUMS, *_CASTS)) and user not in users:
                users.add(user)
                waiting.append(user.results[0])
    return users


def _has_other_use(value: SSAValue) -> bool:
    """Whether a value goes into any instruction but sums; a coordinate that is only checked goes into none."""
    waiting = [(value, use.operation) for use in value.uses]
    while waiting:
        used, user = waiting.pop()
        if isinstance(user, _CASTS):
            waiting.extend((user.results[0], use.operation) for use in user.results[0].uses)
        elif used is user.offset if isinstance(user, PtrAddOp) else not isinstance(user, SUMS):
            return True
    return False


def _is_flat(value: SSAValue) -> bool:
    """Whether the factors of a sum's products are neither sums nor products."""
    waiting, seen = [(value, False)], set[tuple[SSAValue, bool]]()
    while waiting:
        visit = waiting.pop()
        if visit in seen:
            continue
        seen.add(visit)
        owner, in_product = visit[0].owner, visit[1]
        if isinstance(owner, SUMS):
            if in_product:
                return False
            in_product = isinstance(owner, arith.MuliOp | arith.ShLIOp)
        elif not isinstance(owner, _CASTS):
            continue
        waiting.extend((operand, in_product) for operand in owner.operands)
    return True


def _is_part(op: Operation) -> bool:
    """Whether a result only goes into other sums of its type."""
    return all(isinstance(use.operation, SUMS) for use in op.results[0].uses)


def _erase(op: Operation) -> None:
    """Erases an operation, and those whose results nothing else uses."""
    waiting = [op]
    while waiting:
        last = waiting.pop()
        operands = dict.fromkeys(operand.owner for operand in last.operands)
        Rewriter.erase_op(last)
        for owner in operands:
            removable = isinstance(owner, (arith.ConstantOp, arith.SignlessIntegerBinaryOperation, *_CASTS))
            if removable and not owner.results[0].uses:
                waiting.append(owner)


def _depth(value: SSAValue) -> int:
    """The number of loops and branches around the definition of a value."""
    depth, op = 0, value.owner.parent_op()
    while op is not None:
        depth, op = depth + 1, op.parent_op()
    return depth


def _cost(terms: Sum, shared: Set[Digit]) -> int:
    """About how many instructions a sum takes: one for each factor of its products, and those of its digits, each
    once, but for existing ones.
    """
    steps: dict[Digit, int] = {}
    for digit in {digit for product in terms for digit in product}:
        quotient = digit._replace(mod=0, mod_by=-1)
        if digit.mod_by >= 0:
            _divide(steps, quotient._replace(by=(*digit.by, digit.mod_by)))
            steps[digit] = 2
        elif digit.mod and not _is_power(digit.mod):
            _divide(steps, quotient._replace(div=digit.div * digit.mod))
            steps[digit] = 2
        elif digit.mod:
            steps[digit] = 1
        if not (digit.mod and _is_power(digit.mod) and _is_power(digit.div)):  # that is one extraction of bits
            _divide(steps, quotient)
    return sum(count for digit, count in steps.items() if digit not in shared) + sum(
        max(1, len(product)) for product in terms
    )


def _is_bits(terms: Sum) -> bool:
    """Whether a sum moves bits of numbers to other places, which takes no multiplication."""
    powers = [*terms.values(), *(number for product in terms for digit in product for number in (digit.div, digit.mod))]
    return all(_is_power(number) for number in powers)


def _divide(steps: dict[Digit, int], quotient: Digit) -> None:
    """Adds the instructions of a quotient."""
    constant = 0 if quotient.div == 1 else 1 if _is_power(quotient.div) else _DIVISION
    steps[quotient] = constant + _VARIABLE_DIVISION * len(quotient.by)


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0
