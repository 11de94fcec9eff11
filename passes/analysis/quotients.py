# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers as sums of products of quotients, in which equal terms have cancelled.

A remainder is a difference of quotients: `x / a % b == x / a - b * (x / (a * b))`. With every remainder written so,
equal integers have equal sums: of `(x % 16) * 6 + x / 16 * 96` only `x * 6` is left.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...dialects.arith.integer_range import wrap_signed
from ...dialects.arith.semantics import INTEGER_OPERATIONS, SUMS, constant_of, int_width
from .ranges import Ranges

MOST_PRODUCTS, MOST_FACTORS, MOST_DEPTH = 16, 4, 64
"""Sums of more products, products of more factors and deeper operands are not analysed."""


class Digit(NamedTuple):
    """`root / div / by % mod` of a natural number: `root` and `by` are numbers of values, `by` divide one after the
    other. `mod` is 0 where no remainder is taken, `mod_by` the number of a value by which it is taken, or -1.
    """

    root: int
    div: int = 1
    by: tuple[int, ...] = ()
    mod: int = 0
    mod_by: int = -1


DigitProduct: TypeAlias = tuple[Digit, ...]
"""Factors in ascending order."""


class Sum(dict[DigitProduct, int]):
    """The coefficients of products, all different from 0."""

    def __add__(self, other: "Sum") -> "Sum":
        total = dict(self)
        for product, coefficient in other.items():
            total[product] = total.get(product, 0) + coefficient
        return Sum({product: coefficient for product, coefficient in total.items() if coefficient})

    def __sub__(self, other: "Sum") -> "Sum":
        return self + Sum({product: -coefficient for product, coefficient in other.items()})

    def __mul__(self, other: "Sum") -> "Sum":
        total: dict[DigitProduct, int] = {}
        for left, x in self.items():
            for right, y in other.items():
                product = tuple(sorted((*left, *right)))
                total[product] = total.get(product, 0) + x * y
        return Sum(total)

    def __lshift__(self, other: "Sum") -> "Sum | None":
        by = other.get((), 0)
        return self * Sum({(): 1 << by}) if not other.keys() - {()} and 0 <= by < 64 else None

    def reduced(self, bits: int) -> "Sum":
        """The same modulo `2**bits`, with coefficients that are signed integers of `bits` bits."""
        reduced = {product: wrap_signed(coefficient, bits) for product, coefficient in self.items()}
        return Sum({product: coefficient for product, coefficient in reduced.items() if coefficient})


@dataclass(frozen=True, slots=True)
class _Division:
    """A quotient or a remainder: of `value` by `number`, or by the value `by`."""

    value: SSAValue
    number: int
    by: SSAValue | None
    remainder: bool


class Quotients:
    """Reads the integers of one kernel as sums."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self.values: list[SSAValue] = []
        self.written: dict[Digit, list[SSAValue]] = {}
        """The values that digits were read from."""
        self._numbers: dict[SSAValue, int] = {}
        self._sums: dict[tuple[SSAValue, int], Sum] = {}
        self._depth = 0

    def sum_of(self, value: SSAValue, bits: int) -> Sum:
        """An integer modulo `2**bits`, remainders as they stand."""
        key = value, bits
        if key not in self._sums:
            self._depth += 1
            self._sums[key] = self._read(value, bits).reduced(bits)
            self._depth -= 1
        return self._sums[key]

    def _read(self, value: SSAValue, bits: int) -> Sum:
        if (constant := constant_of(value)) is not None:
            return Sum({(): constant})
        owner, width = value.owner, int_width(value.type) or 64
        result: Sum | None = None
        match owner:
            case _ if self._depth > MOST_DEPTH:
                pass
            case _ if isinstance(owner, SUMS) and (bits <= width or not self._ranges.wraps(owner)):
                left, right = self.sum_of(owner.lhs, bits), self.sum_of(owner.rhs, bits)
                if not isinstance(owner, arith.MuliOp) or min(len(left), len(right)) <= 1:
                    result = INTEGER_OPERATIONS[type(owner)].value(left, right)
            case arith.IndexCastOp(input=inner) | arith.ExtSIOp(input=inner) | arith.TruncIOp(input=inner) if (
                bits <= width or (int_width(inner.type) or 64) <= width or self._ranges.fits(inner, width)
            ):
                result = self.sum_of(inner, bits)
            case arith.ExtUIOp(input=inner) if self._ranges.of(inner)[0] >= 0:
                result = self.sum_of(inner, bits)
            case _:
                digit = self._digit(value)
                result = Sum() if digit is None else Sum({(digit,): 1})
                if digit is not None:
                    self.written.setdefault(digit, []).append(value)
        too_long = result is not None and (
            len(result) > MOST_PRODUCTS or any(len(product) > MOST_FACTORS for product in result)
        )
        return Sum({(Digit(self._number(value)),): 1}) if result is None or too_long else result

    def _digit(self, value: SSAValue, depth: int = MOST_DEPTH) -> Digit | None:
        """A value that is not a sum, as a digit of its dividend; None for 0."""
        value = self._plain(value)
        part = _part(value)
        operands = () if part is None else (part.value,) if part.by is None else (part.value, part.by)
        if part is None or depth == 0 or any(self._ranges.of(operand)[0] < 0 for operand in operands):
            return Digit(self._number(value))
        inner = self._digit(part.value, depth - 1)
        if inner is None:
            return None
        digit = self._taken(inner, part)
        return self._within(digit if digit is not None else self._taken(Digit(self._number(part.value)), part))

    def _taken(self, inner: Digit, part: _Division) -> Digit | None:
        """The quotient or remainder of a digit; None if it is not a digit of the same number."""
        number, mod = part.number, inner.mod
        if inner.mod_by >= 0 or (mod and part.by is not None):
            return None
        if part.by is not None:
            by = self._number(part.by)
            return inner._replace(mod_by=by) if part.remainder else inner._replace(by=tuple(sorted((*inner.by, by))))
        if mod and number >= mod:
            return inner if part.remainder else inner._replace(mod=1)
        if mod % number:
            return None
        if part.remainder:
            return inner._replace(mod=number)
        return inner._replace(div=inner.div * number, mod=mod // number)

    def _within(self, digit: Digit | None) -> Digit | None:
        """A digit without the divisions that its range makes superfluous; None for 0."""
        assert digit is not None, "a number is a digit of itself"
        most = self._ranges.of(self.values[digit.root])[1] // digit.div
        if most == 0 or digit.mod == 1:
            return None
        return digit._replace(mod=0) if most < digit.mod and not digit.by else digit

    def _plain(self, value: SSAValue) -> SSAValue:
        """The same integer before it was put into another type."""
        for _ in range(MOST_DEPTH):
            match value.owner:
                case arith.IndexCastOp(input=inner) | arith.ExtSIOp(input=inner) | arith.TruncIOp(input=inner):
                    same = self._ranges.fits(inner, int_width(value.type) or 64)
                case arith.ExtUIOp(input=inner):
                    same = self._ranges.of(inner)[0] >= 0
                case _:
                    break
            if not same:
                break
            value = inner
        return value

    def _number(self, value: SSAValue) -> int:
        value = self._plain(value)
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]


def _part(value: SSAValue) -> _Division | None:
    """The dividend and divisor of a quotient or remainder of numbers that are not negative; None for other values."""
    owner = value.owner
    match owner:
        case arith.DivUIOp() | arith.DivSIOp() | arith.RemUIOp() | arith.RemSIOp():
            number = constant_of(owner.rhs)
            remainder = isinstance(owner, arith.RemUIOp | arith.RemSIOp)
            if number is not None:
                return _Division(owner.lhs, number, None, remainder) if number > 0 else None
            return _Division(owner.lhs, 1, owner.rhs, remainder)
        case arith.ShRUIOp() | arith.ShRSIOp():
            shift = constant_of(owner.rhs)
            return _Division(owner.lhs, 1 << shift, None, False) if shift is not None and 0 <= shift < 63 else None
        case arith.AndIOp():
            mask = constant_of(owner.rhs)
            is_mask = mask is not None and mask > 0 and mask & (mask + 1) == 0
            return _Division(owner.lhs, mask + 1, None, True) if mask is not None and is_mask else None
        case _:
            return None


def write_in_quotients(sum: Sum, bits: int) -> Sum:
    """The same without remainders."""
    total = Sum()
    for product, coefficient in sum.items():
        term = Sum({(): coefficient})
        for digit in product:
            quotient = digit._replace(mod=0, mod_by=-1)
            factor = Sum({(quotient,): 1})
            if digit.mod:
                factor[(quotient._replace(div=digit.div * digit.mod),)] = -digit.mod
            if digit.mod_by >= 0:
                number, by = Digit(digit.mod_by), tuple(sorted((*digit.by, digit.mod_by)))
                factor[tuple(sorted((number, quotient._replace(by=by))))] = -1
            term *= factor
        total += term
    return total.reduced(bits)


def write_in_digits(quotients: Sum, bits: int) -> Sum:
    """The same with a remainder for each quotient that is followed by another one of the same number."""
    total = Sum()
    rest = Sum(quotients)
    while rest:
        product = min(rest, key=lambda product: [(d.root, d.by, d.div) for d in product])
        coefficient = rest.pop(product)
        for place, digit in enumerate(product):
            others = (*product[:place], *product[place + 1 :])
            following = _find_coarser(rest, others, digit)
            if following is not None:
                mod = following.div // digit.div
                after = tuple(sorted((*others, following)))
                rest = (rest + Sum({after: mod * coefficient})).reduced(bits)
                product = tuple(sorted((*others, digit._replace(mod=mod))))
                break
        total += Sum({product: coefficient})
    return total


def _find_coarser(rest: Sum, others: DigitProduct, digit: Digit) -> Digit | None:
    """The next coarser quotient of the same number in a product with the same other factors."""
    coarser = [
        candidate
        for product in rest
        for candidate in product
        if (candidate.root, candidate.by) == (digit.root, digit.by)
        and candidate.div > digit.div
        and candidate.div % digit.div == 0
        and tuple(sorted((*others, candidate))) == product
    ]
    return min(coarser, key=lambda candidate: candidate.div, default=None)
