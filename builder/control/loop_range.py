# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers that a loop of the kernel counts through."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import index
from typing import Any

from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects.arith.integer_range import Range as Span
from ...dialects.arith.integer_range import clip_range, either
from ...layout.algebra.integers import Unknown
from ...passes.analysis.loop_hints import MAX_UNROLL
from ..scalars.casts import number_of
from ..scalars.dtypes import Index
from ..scalars.values import MOST, Int, Scalar, Value, binary, check_integer, compare, convert, is_scalar
from ..tracing.state import host


@dataclass(frozen=True)
class Range:
    """The numbers `start`, `start + step`, ... below `stop` that a loop of the kernel counts. `unroll` is the number of
    iterations merged into one: 0 for all of them, None for as many as keep fragments in registers.
    """

    start: "int | Int"
    stop: "int | Int"
    step: "int | Int"
    unroll: int | None = None

    def __iter__(self) -> Iterator[int]:
        if host() is not None:
            return iter(range(index(self.start), index(self.stop), index(self.step)))
        raise TilefoldError(
            Code.BUILD_RUN_TIME,
            "Python cannot iterate over a loop of the kernel",
            "write `for i in cute.range(...)` as a statement of a function decorated with @cute.kernel or @cute.jit, "
            "or use cute.range_constexpr for a loop that Python unrolls",
        )

    def __len__(self) -> int:
        raise TilefoldError(
            Code.BUILD_RUN_TIME,
            "Python does not know how often a loop of the kernel runs",
            "compute it: cute.ceil_div(stop - start, step)",
        )

    def __reversed__(self) -> Iterator[int]:
        raise TilefoldError(
            Code.BUILD_RUN_TIME,
            "Python cannot reverse a loop of the kernel",
            "count down: cute.range(stop - 1, start - 1, -1)",
        )

    def holds(self, x: object) -> Any:
        """Whether `x` is one of the numbers, as a predicate; False for other objects."""
        if not is_scalar(x):
            return False
        number = binary("floordiv", binary("sub", x, self.start), self.step)
        inside = compare("ge", number, 0) & compare("lt", number, self.count())
        if isinstance(self.step, int) and self.step == 1:
            return inside
        return inside & compare("eq", self.start + number * self.step, x)

    @property
    def _sign(self) -> int:
        """1 where it counts up, -1 where it counts down, 0 where that is unknown."""
        if isinstance(self.step, int):
            return 1 if self.step > 0 else -1
        return 1 if self.step.nonnegative else 0

    def bounds(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The bounds of an `scf.for`: from, to, by."""
        whole = (self.start, self.stop, self.step) if self._sign > 0 else (0, self.count(), 1)
        lower, upper, step = (convert(bound, Index).ssa for bound in whole)
        return lower, upper, step

    def value_of(self, counter: SSAValue) -> "int | Int":
        """The number for the counter of an `scf.for` with these bounds."""
        if self._sign <= 0:
            return self.nth(Int(counter, Index, range=(0, MOST)))
        return Int(counter, Index, Unknown(64, self._divisor), self._between)

    def nth(self, number: Int) -> "int | Int":
        """The number at position `number`, from 0."""
        value = self.start + number * self.step
        return Int(value.ssa, Index, Unknown(64, self._divisor), self._between)

    def count(self) -> "int | Int":
        """The number of iterations; 0 or less for an empty range."""
        if self._sign == 0:
            return -((self.start - self.stop) // self.step)  # rounded up, whichever sign the step has
        up = self._sign > 0
        distance = self.stop - self.start if up else self.start - self.stop
        step = self.step if up else -self.step
        return (distance + (step - 1)) // step

    @property
    def is_static(self) -> bool:
        """Whether Python knows all the numbers."""
        return all(isinstance(x, int) for x in (self.start, self.stop, self.step))

    @property
    def _divisor(self) -> int:
        divisor = gcd(*(abs(x) if isinstance(x, int) else x.known.div for x in (self.start, self.step)))
        return max(divisor, 1)

    @property
    def _between(self) -> Span:
        """The range of the numbers, where there are any."""
        (least, last), (first, most) = ((x, x) if isinstance(x, int) else x.range for x in (self.start, self.stop))
        spans = [(least, max(least, most - 1))] if self._sign >= 0 else []
        spans += [(min(first + 1, last), last)] if self._sign <= 0 else []
        return clip_range(reduce(either, spans), Index.limits)


def range_constexpr(*bounds: Scalar, unroll: int | None = None, unroll_full: bool = True) -> tuple[int, ...]:
    """The numbers of Python's `range`, for a loop that Python unrolls while the kernel is built, whatever the hints
    `unroll` and `unroll_full` of other loops say. Raises TilefoldError (E5003) for values of the kernel.
    """
    if host() is None and any(isinstance(bound, Value) for bound in bounds):
        message = "range_constexpr counts through numbers that Python knows, not through values of the kernel"
        raise TilefoldError(Code.BUILD_RUN_TIME, message, "write range(...)")
    return tuple(range(*map(int, bounds)))


def make_range(
    start: "int | Int", stop: "int | Int | None" = None, step: "int | Int" = 1, *, unroll: int | None = None,
    unroll_full: bool = False, prefetch_stages: int | None = None, vectorize: bool | None = None, **hints: object,
) -> Range:  # fmt: skip
    """`range(stop)`, `range(start, stop)` or `range(start, stop, step)` as a loop of the kernel (`scf.for`).

    `unroll` iterations are done in one, or all with `unroll_full`, if the kernel's code can know their number; with 0
    or 1 the assembler, too, leaves the loop as it is. Without either, or with -1, it unrolls the loop where it expects
    a gain, and LLVM does so only if the bounds are static and the body indexes fragments at run time, which registers
    do not allow. `prefetch_stages`, `vectorize` and other hints have no effect: the loop neither prefetches nor joins
    iterations. Raises TilefoldError (E5002) for anything but integers and for a step of 0, E2007 for a number of
    iterations that is not possible.
    """
    if prefetch_stages is not None:
        check_integer("the number of stages to prefetch", prefetch_stages)
    bounds = (0, start, step) if stop is None else (start, stop, step)
    first, last, by = map(number_of, bounds)
    for word, given in (("start", first), ("stop", last), ("step", by)):
        check_integer(f"the {word} of a range", given)
    if isinstance(by, int) and by == 0:
        raise TilefoldError(Code.BUILD_VALUE, "the step of a range is 0")
    unroll = None if unroll == -1 else 1 if unroll == 0 else unroll
    if unroll is not None and unroll not in range(1, MAX_UNROLL + 1):
        raise TilefoldError(Code.LOOP_HINT, f"unroll is {unroll}, but must be 0 to {MAX_UNROLL}")
    first, last, by = (convert(bound, Index) if isinstance(bound, Int) else bound for bound in (first, last, by))
    return Range(first, last, by, 0 if unroll_full else unroll)
