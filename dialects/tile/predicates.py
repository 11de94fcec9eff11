# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicates of a copy: fragments of i1 with one predicate for each element, or one for several (CuTe's copy_if)."""

from math import prod

from ...base.errors import Code, LayoutError
from ...layout.algebra.compose import composition
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, join, make_layout, size
from ...layout.algebra.divide import logical_divide
from .types import TensorType


def infer_predicate_layout(pred: TensorType, src: TensorType, values: int) -> Layout:
    """The layout of a copy's predicates with the modes of its source, all of the source's sizes.

    Mode 0 of the source is `(AtomV, RestV)` with `values` in AtomV, and so is mode 0 of the result. That of `pred`
    has as many elements, or `(1, RestV)` or `RestV`, one for each execution of the atom, or one for all; of more for
    one execution the first counts. Where the source's mode 0 is `(V, Rest)` itself, it may also have one for each V.
    Predicates with a mode less have no mode 0, and are for all of it; modes of one predicate after the source's last
    do not count. CuTe counts
    through the other modes together: there are as many predicates as elements in them, such as (1, 8) for (2, 4), and
    at the end modes may be of one predicate for all elements. Raises `LayoutError` (E0316) for a tensor that holds no
    predicates, for other sizes, and for modes of which no layout makes those of the source.
    """
    layout, like = pred.layout.data, src.layout.data
    if not pred.is_predicate:
        raise LayoutError(Code.PREDICATE_SHAPE, f"predicates must have type i1, not {pred.element_type}")
    assert not isinstance(layout, ComposedLayout), "fragments cannot be swizzled"
    while len(layout) > len(like) and size(layout[len(layout) - 1]) == 1:
        layout = join([layout[mode] for mode in range(len(layout) - 1)])
    if len(layout) == len(like) - 1:
        layout = join([Layout(1, 0), *(layout[mode] for mode in range(len(layout)))])
    if len(layout) != len(like):
        raise LayoutError(
            Code.PREDICATE_SHAPE, f"the predicates have {len(layout)} modes, the source of the copy {len(like)}"
        )
    first = _check_first_mode(layout[0], like[0], values)
    return join([first, *_match_rest(list(layout)[1:], [size(like[mode]) for mode in range(1, len(like))])])


def _match_rest(modes: list[Layout], sizes: list[int]) -> list[Layout]:
    """The modes after mode 0 with the sizes of the source's: CuTe groups them, and counts through both together."""
    kept = list(modes)
    while kept and kept[-1] == Layout(1, 0):
        kept.pop()
    given, wanted = prod(size(mode) for mode in kept), prod(sizes)
    if len(kept) < len(modes) and wanted % given == 0:  # the last predicates count for all that follow
        kept.append(Layout(wanted // given, 0))
        given = wanted
    if len(kept) == len(sizes) and all(size(mode) == count for mode, count in zip(kept, sizes, strict=True)):
        return kept
    if given == wanted:
        try:
            made = composition(join(kept), make_layout(tuple(sizes)))
        except LayoutError:
            made = None
        if isinstance(made, Layout):
            return [made[mode] for mode in range(len(sizes))]
    mode, held, count = next(
        (place, size(mode), count)
        for place, (mode, count) in enumerate(zip(modes, sizes, strict=True), 1)
        if size(mode) != count
    )
    raise LayoutError(
        Code.PREDICATE_SHAPE,
        f"mode {mode} has {held} predicates for {count} elements",
        "a predicate for several elements is a mode of stride 0, such as 4:0",
    )


def _check_first_mode(mode: Layout, source: LayoutLike, values: int) -> Layout:
    """Mode 0 of the predicates as (AtomV, RestV)."""
    elements = size(source)
    repeats = elements // values
    if size(mode) == 1:
        return Layout((values, repeats), (0, 0))
    if size(mode) == elements:
        divided = logical_divide(mode, Layout(values, 1))
        assert isinstance(divided, Layout)
        return divided
    if isinstance(mode.shape, tuple) and len(mode) == 2 and (size(mode[0]), size(mode[1])) == (1, repeats):
        return Layout((values, mode[1].shape), (0, mode[1].stride))
    if size(mode) == repeats:
        return Layout((values, mode.shape), (0, mode.stride))
    if repeats == 1:
        return Layout((values, 1), (0, 0))
    nested = isinstance(source, Layout) and isinstance(source.shape, tuple) and len(source) == 2
    if nested and size(mode) == size(source[1]):
        divided = logical_divide(join([Layout(size(source[0]), 0), mode]), Layout(values, 1))
        assert isinstance(divided, Layout)
        return divided
    raise LayoutError(
        Code.PREDICATE_SHAPE,
        f"mode 0 has {size(mode)} predicates for {elements} elements",
        f"it has {elements}, or {repeats} for one an execution of the atom, or 1",
    )
