# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a layout that has `?` can be seen another way for all values that its promises allow.

The algebra assumes conditions that it cannot decide. A composition assumes that extents divide each other. So the
composition is repeated and checked with values in place of the `?`. Where it fails for some value, it fails for one of
the first multiples of the divisor: of the numbers up to n, all divide n for n <= 2 only.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import lcm
from typing import Any, final

from ...base.errors import LayoutError
from .integers import Unknown

_MULTIPLES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13)
_FEW_MULTIPLES = (1, 2, 3, 5, 7)
_PRIME = 10007
"""Strides are multiples of it, which lie in no relation to extents."""


@final
class Sample:
    """A value of a dynamic integer: dynamic to the algebra, but its conditions are checked.

    `checked` gets True where something was. Each operation on a sample yields another.
    """

    __slots__ = ("checked", "value")

    def __init__(self, value: int, checked: list[bool]) -> None:
        self.value = value
        self.checked = checked

    def __str__(self) -> str:
        return str(self.value)

    __repr__ = __str__


def known(x: object) -> int | None:
    """The value of an integer whose condition is checked; None for other integers."""
    if type(x) is int:
        return x
    if type(x) is not Sample:
        return None
    x.checked.append(True)
    return x.value


def _operator(name: str) -> Callable[[Sample, Any], Sample]:
    def apply(self: Sample, other: object) -> Sample:
        return Sample(getattr(self.value, name)(other.value if type(other) is Sample else other), self.checked)

    return apply


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    setattr(Sample, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Sample, f"__r{_name}__", _operator(f"__r{_name}__"))
for _name in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Sample, _name, _operator(_name))


def check_promises(
    extents: Sequence[Unknown], strides: Sequence[Unknown], see: Callable[[list[object]], object]
) -> None:
    """Raises the `LayoutError` that `see` raises for some values of these `?` that their divisors allow.

    `see` takes values for all `?`, those of the extents first, and does the work that needs them.
    """
    error = _failure(extents, strides, see)
    if error is None:
        return
    for divisor in _greater(extents):
        if _failure([Unknown(x.width, lcm(x.div, divisor)) for x in extents], strides, see) is None:
            error.hint = f"promise more, by ?{{div={divisor}}} in the type or divisibility={divisor} in Python"
            break
    else:
        error.hint = "make these extents static, or divide the modes one by one"
    raise error


def _failure(
    extents: Sequence[Unknown], strides: Sequence[Unknown], see: Callable[[list[object]], object]
) -> LayoutError | None:
    """The error for the first values that have one. Where no value is checked for the first, none ever is."""
    for values in _values([x.div for x in extents]):
        checked: list[bool] = []
        numbers = [*values, *(_PRIME * (mode + 1) * x.div for mode, x in enumerate(strides))]
        try:
            see([Sample(number, checked) for number in numbers])
        except LayoutError as error:
            shown = ",".join(map(str, values))
            return LayoutError(error.code, f"where ? is {shown}, which the type allows: {error.message}")
        if not checked:
            return None
    return None


def _values(divisors: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Values for integers of these divisors: all small multiples of one or two, of more each for itself."""
    if len(divisors) <= 2:
        for factors in product(_MULTIPLES if len(divisors) == 1 else _FEW_MULTIPLES, repeat=len(divisors)):
            yield tuple([d * n for d, n in zip(divisors, factors, strict=True)])
        return
    for rest in (1, 3):
        for mode in range(len(divisors)):
            for factor in _FEW_MULTIPLES:
                yield tuple([d * (factor if i == mode else rest) for i, d in enumerate(divisors)])


def _greater(extents: Sequence[Unknown]) -> Iterator[int]:
    """Divisors that could be promised, ascending."""
    least = max(x.div for x in extents)
    yield from (least * n for n in range(2, 65))
    yield from (least << n for n in range(7, 17))
