# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts whose `?` are known when an operation is executed: the algebra on integers that may differ from lane to lane.

The integers count as dynamic in the algebra, so that a result has the same form as in types.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....base.errors import Code
from ....dialects.arith.integer_range import clip_to, limits
from ....dialects.cute.values import integers, with_scalars
from ....layout.algebra.core import Layout, LayoutLike, plain_layout
from ....layout.algebra.integers import Unknown
from ....layout.algebra.inttuple import transform_leaves
from ..faults import Site
from ..warp import Warp
from . import Value, varies
from .lane_int import ZeroDivisorError, lane_int, number


def lane_layout(layout: LayoutLike, scalars: Sequence[Value]) -> Any:
    """`layout` with integers of the algebra for its `?`."""
    return with_scalars(layout, [lane_int(scalar) for scalar in scalars])


def numbers(x: Any) -> Any:
    """The numbers behind the integers of a coordinate; the nearest ones of 64 bits."""
    return transform_leaves(narrowed, x)


def scalars_for(type: LayoutLike, layout: LayoutLike) -> tuple[Value, ...]:
    """The scalars of a tensor whose type has the layout `type` and whose layout is `layout`."""
    pairs = zip(integers(plain_layout(type)), integers(plain_layout(layout)), strict=True)
    return tuple([narrowed(x) for leaf, x in pairs if isinstance(leaf, Unknown)])


def narrowed(x: Any) -> Value:
    """The number behind an integer of the algebra; the nearest one of 64 bits."""
    value = number(x)
    if varies(value):
        return np.clip(value, *limits(64)).astype(np.int64) if value.dtype == object else value.astype(np.int64)
    return clip_to(value, 64)


def actual(layout: LayoutLike, scalars: Sequence[Value]) -> Layout:
    """The plain layout with numbers for its `?`: integers, or one for each lane."""
    return plain_layout(with_scalars(layout, scalars))


def for_each_layout(warp: Warp, scalars: Sequence[Value], run: Callable[[tuple[int, ...]], None]) -> None:
    """Executes `run` with scalars that are the same in all active lanes: once, or for each set of lanes that agree."""
    if not any(varies(scalar) for scalar in scalars):
        run(tuple([int(scalar) for scalar in scalars]))
        return
    rows = np.stack([warp.select(scalar) for scalar in scalars], axis=1)
    lanes = warp.lane_numbers()
    before = warp.mask_state()
    for row in np.unique(rows, axis=0):
        chosen = np.zeros(warp.lanes, bool)
        chosen[lanes] = (rows == row).all(axis=1)
        warp.narrow(chosen)
        run(tuple(map(int, row.tolist())))
        warp.restore(before)


@contextmanager
def no_zero_extents(warp: Warp, site: Site) -> Generator[None]:
    """Turns a division by a run-time extent of zero into a SimulationError (E3209) of the first active thread."""
    try:
        yield
    except ZeroDivisorError:
        text = "a divisor that is known only at run time is 0"
        warp.fault(Code.SIM_ARITHMETIC, site, int(warp.lane_numbers()[0]), text, "pass positive extents and strides")
