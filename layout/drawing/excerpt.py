# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which rows or columns of large tables a picture shows: one period of the pattern, and the last line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Numbers: TypeAlias = tuple[int, ...] | None
"""The numbers of a cell: an index, a coordinate, or a thread and a value; None for an empty place."""
Lines: TypeAlias = Sequence[Sequence[Numbers]]
"""The rows, or the columns, of a table."""

WHOLE = 32
"""The number of rows or columns that are always shown."""
_LARGEST = 64  # of those in which nothing repeats
_PERIOD = 16  # the most that are shown of a period, where there is one so short
_LEAST = 8  # the fewest


@dataclass(frozen=True, slots=True)
class Repetition:
    """After `period` lines, all numbers of table i are `steps[i]` greater, for `extent` lines."""

    period: int
    extent: int
    steps: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines that are shown, None for those left out between two of them; and the repetitions, the largest first."""

    shown: tuple[int | None, ...]
    repetitions: tuple[Repetition, ...] = ()


def excerpt(tables: Sequence[Lines]) -> Excerpt:
    """The excerpt of tables that have this axis in common, so that it is the same in all of them."""
    extent = block = len(tables[0])
    repetitions: list[Repetition] = []
    while extent > WHOLE and block > _PERIOD and (repetition := _repetition(tables, block)) is not None:
        repetitions.append(repetition)
        block = repetition.period
    if extent <= WHOLE or block == extent <= _LARGEST:
        return Excerpt(tuple(range(extent)))
    shown = WHOLE - 1 if block > _LARGEST else block * -(-_LEAST // block)
    return Excerpt((*range(shown), None, extent - 1), tuple(repetitions))


def _repetition(tables: Sequence[Lines], extent: int) -> Repetition | None:
    """The smallest period of the first `extent` lines; None if they do not repeat."""
    for period in range(1, extent // 2 + 1):
        if extent % period:
            continue
        steps = [_step(lines, extent, period) for lines in tables]
        if None not in steps:
            return Repetition(period, extent, tuple(step for step in steps if step is not None))
    return None


def _step(lines: Lines, extent: int, period: int) -> tuple[int, ...] | None:
    """The increment of each number after `period` lines; None if it differs."""
    step: tuple[int, ...] | None = None
    for first, second in zip(lines[: extent - period], lines[period:extent], strict=True):
        for before, after in zip(first, second, strict=True):
            if before is None or after is None:
                if before is not after:
                    return None
                continue
            distance = tuple(b - a for a, b in zip(before, after, strict=True))
            if step is None:
                step = distance
            elif step != distance:
                return None
    return () if step is None else step
