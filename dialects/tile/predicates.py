# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicates of a copy: fragments of i1 with one predicate for each element, or one for several (CuTe's copy_if)."""

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import ComposedLayout, Layout, join, size
from ...layout.algebra.divide import logical_divide
from .types import TensorType


def infer_predicate_layout(pred: TensorType, src: TensorType, values: int) -> Layout:
    """The layout of a copy's predicates with the modes of its source, all of the source's sizes.

    Mode 0 of the source is `(AtomV, RestV)` with `values` in AtomV, and so is mode 0 of the result. That of `pred`
    has as many elements, or `(1, RestV)` or `RestV`, one for each execution of the atom, or one for all; of more for
    one execution the first counts. Predicates with a mode less have no mode 0, and are for all of it. The other modes
    have the source's sizes, but at the end may be of one predicate for all elements, since CuTe counts through them
    together. Raises `LayoutError` (E0316) for a tensor that holds no predicates, and for other sizes.
    """
    layout, like = pred.layout.data, src.layout.data
    if not pred.is_predicate:
        raise LayoutError(Code.PREDICATE_SHAPE, f"predicates must have type i1, not {pred.element_type}")
    assert not isinstance(layout, ComposedLayout), "fragments cannot be swizzled"
    if len(layout) == len(like) - 1:
        layout = join([Layout(1, 0), *(layout[mode] for mode in range(len(layout)))])
    if len(layout) != len(like):
        raise LayoutError(
            Code.PREDICATE_SHAPE, f"the predicates have {len(layout)} modes, the source of the copy {len(like)}"
        )
    modes = [_check_first_mode(layout[0], size(like[0]), values)]
    for mode in range(1, len(like)):
        wanted = size(like[mode])
        if all(layout[later] == Layout(1, 0) for later in range(mode, len(like))):
            modes.append(Layout(wanted, 0))
            continue
        if size(layout[mode]) != wanted:
            raise LayoutError(
                Code.PREDICATE_SHAPE,
                f"mode {mode} has {size(layout[mode])} predicates for {wanted} elements",
                "a predicate for several elements is a mode of stride 0, such as 4:0",
            )
        modes.append(layout[mode])
    return Layout(tuple(m.shape for m in modes), tuple(m.stride for m in modes))


def _check_first_mode(mode: Layout, elements: int, values: int) -> Layout:
    """Mode 0 of the predicates as (AtomV, RestV)."""
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
    raise LayoutError(
        Code.PREDICATE_SHAPE,
        f"mode 0 has {size(mode)} predicates for {elements} elements",
        f"it has {elements}, or {repeats} for one an execution of the atom, or 1",
    )
