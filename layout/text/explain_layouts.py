# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of coalesce, complement, composition and the inverses, for static layouts with integer strides.

Results are always the operations' own; the steps say by which rules they are right.
"""

from collections.abc import Iterator

from ..algebra.coalesce import coalesce, continues, filter_layout, from_modes
from ..algebra.complement import complement, gaps
from ..algebra.compose import composition
from ..algebra.coordinates import idx2crd
from ..algebra.core import Layout, Tiler, cosize, join
from ..algebra.integers import AnyTuple, Tree
from ..algebra.inttuple import ceil_div, flatten, leaves, product, show, wrap
from ..algebra.inverse import left_inverse, right_inverse
from .explanation import Agree, Distinct, Explanation, Increasing, SameIndices, Step


def explain_coalesce(layout: Layout, profile: Tree = None) -> Explanation:
    """Explains `coalesce`; with a tuple `profile`, mode by mode."""
    result: Layout = coalesce(layout, profile)
    if isinstance(profile, tuple):
        steps = [
            Step("by mode", f"mode {i}, {layout[i]}", Agree((result[i],), (layout[i],), layout[i].size), inside)
            for i, part in enumerate(profile)
            for inside in [explain_coalesce(layout[i], part)]
        ]
        return Explanation("coalesce", (layout, profile), tuple(steps), result)
    return Explanation("coalesce", (layout,), tuple(_list_coalesce_steps(layout)), result)


def _list_coalesce_steps(layout: Layout) -> Iterator[Step]:
    before = layout
    modes = list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))
    if any(isinstance(s, tuple) for s in wrap(layout.shape)):
        flat = Layout(flatten(layout.shape), flatten(layout.stride))
        yield Step("flatten", f"nesting does not change an index: {flat}", Agree((layout,), (flat,), layout.size))
        before = flat
    while (rewritten := _coalesce_once(modes)) is not None:
        rule, text, modes = rewritten
        after = from_modes([s for s, _ in modes], [d for _, d in modes]) if modes else Layout(1, 0)
        yield Step(rule, f"{text}: {after}", Agree((before,), (after,), layout.size))
        before = after


def _coalesce_once(modes: list[tuple[int, int]]) -> tuple[str, str, list[tuple[int, int]]] | None:
    """The first rule that applies to flat modes, in words, and the modes that it leaves; None at the end."""
    for i, (s, d) in enumerate(modes):
        if s == 1:
            return "drop", f"mode {s}:{d} has one coordinate, which adds 0", modes[:i] + modes[i + 1 :]
        if i + 1 < len(modes):
            after, step = modes[i + 1]
            if after != 1 and continues(s, d, step):
                text = f"{s}:{d} ends at {s} * {d} = {step}, where {after}:{step} goes on"
                return "merge", text, [*modes[:i], (s * after, d), *modes[i + 2 :]]
    return None


def explain_complement(layout: Layout, cotarget: object = None) -> Explanation:
    """Explains `complement`."""
    result = complement(layout, cotarget)
    arguments = (layout,) if cotarget is None else (layout, cotarget)
    return Explanation("complement", arguments, tuple(_list_complement_steps(layout, cotarget, result)), result)


def _list_complement_steps(layout: Layout, cotarget: AnyTuple, result: Layout) -> Iterator[Step]:
    plain: Layout = filter_layout(layout)
    if plain != layout:
        text = f"modes of stride 0 or extent 1 add no index, and neighbours merge: {plain}"
        yield Step("filter", text, SameIndices(layout, plain))
    size = cosize(plain) if cotarget is None else product(cotarget)
    used: list[Layout] = []
    if plain.stride != 0:
        extents, starts = gaps(plain)
        for mode, gap, end in zip(sorted(plain, key=_stride), extents, starts, strict=False):
            used += [Layout(gap, end), mode]
            text = f"mode {mode} begins at {end}, where the modes below end: there is nothing to fill"
            if gap != 1:
                text = f"mode {mode} leaves room for {mode.stride} // {end} = {gap} times the modes below: {gap}:{end}"
            yield Step("gap", text, Distinct(join(used)))
        end = starts[-1]
    else:
        end = 1
    rest = Layout(ceil_div(size, end), end)
    text = f"{size} / {end}, rounded up, is {rest.shape}: {rest} repeats all of it up to {size}"
    yield Step("rest", text, Distinct(join([*used, rest])))
    yield Step("coalesce", f"the gaps and the rest, in order, are {result}", Increasing(result))


def _stride(mode: Layout) -> AnyTuple:
    return mode.stride


def explain_composition(a: Layout, b: Tiler) -> Explanation:
    """Explains `composition` of a layout with a layout, an extent, or a tuple of these for its modes."""
    result: Layout = composition(a, b)
    if isinstance(b, tuple):
        steps: list[Step] = []
        for i, part in enumerate(b):
            if part is None:
                steps.append(Step("keep", f"mode {i}, {a[i]}, stays", Agree((result[i],), (a[i],), a[i].size)))
                continue
            inside = explain_composition(a[i], part)
            if isinstance(part, tuple):
                claim = Agree((result[i],), (inside.result,), result[i].size)
            else:
                claim = Agree((result[i],), (a[i], _layout(part)), result[i].size)
            steps.append(Step("by mode", f"mode {i}, {a[i]}, with {show(part)}", claim, inside))
        return Explanation("composition", (a, b), tuple(steps), result)
    if b is None:
        steps = [Step("keep", "an underscore keeps everything", Agree((result,), (a,), a.size))]
    else:
        steps = list(_list_composition_steps(a, _layout(b), result))
    return Explanation("composition", (a, b), tuple(steps), result)


def _layout(tile: AnyTuple) -> Layout:
    """A layout for an extent, which stands for `extent:1`."""
    return tile if isinstance(tile, Layout) else Layout(tile, 1)


def _list_composition_steps(a: Layout, b: Layout, result: Layout) -> Iterator[Step]:
    plain: Layout = coalesce(a)
    if plain != a:
        inside = explain_coalesce(a)
        yield Step(
            "coalesce", f"the left layout as a function of integers is {plain}", Agree((a,), (plain,), a.size), inside
        )
    for s, d in zip(leaves(b.shape), leaves(b.stride), strict=True):
        right = Layout(s, d)
        part: Layout = composition(a, right)
        inside = Explanation("composition", (plain, right), tuple(_walk(a, plain, right, part)), part)
        text = f"mode {right} of the right layout gives {part}"
        yield Step("by mode", text, Agree((a, right), (part,), s), inside)
    text = f"side by side, in the profile of {b}: {result}"
    yield Step("join", text, Agree((a, b), (result,), b.size))


def _walk(a: Layout, plain: Layout, right: Layout, part: Layout) -> Iterator[Step]:
    """Through the modes of the left layout: `right` takes steps in one mode, and goes on in a later one."""
    position = right.stride
    for n, d in zip(leaves(part.shape), leaves(part.stride), strict=True):
        if n == 1:
            continue
        selected, moved = Layout(n, position), Layout(n, d)
        place = show(idx2crd(position, plain.shape))
        text = f"{n} steps of {position}, which is the coordinate {place} of {plain}, are {n} steps of {d} in its index"
        if position == 0:
            text = f"a stride of 0 stays at one place, {n} times"
        yield Step("step", text, Agree((a, selected), (moved,), n))
        position *= n


def explain_right_inverse(layout: Layout) -> Explanation:
    """Explains `right_inverse`."""
    result: Layout = right_inverse(layout)
    return Explanation("right_inverse", (layout,), tuple(_list_right_inverse_steps(layout, result)), result)


def _list_right_inverse_steps(layout: Layout, result: Layout) -> Iterator[Step]:
    index = 1
    for n, step in zip(leaves(result.shape), leaves(result.stride), strict=True):
        if n > 1:
            text = (
                f"coordinate {step} has index {index}: {n} steps of {step} reach the indices {index} apart, {n}:{step}"
            )
            yield Step("follow", text, Agree((layout, Layout(n, step)), (Layout(n, index),), n))
        index *= n
    text = f"every index below {index} is found"
    if index < layout.size:
        text = f"no mode goes on with stride {index}: the inverse ends at index {index}"
    yield Step("end", text, Agree((layout, result), (Layout(index, 1),), index))


def explain_left_inverse(layout: Layout) -> Explanation:
    """Explains `left_inverse`."""
    result: Layout = left_inverse(layout)
    return Explanation("left_inverse", (layout,), tuple(_list_left_inverse_steps(layout, result)), result)


def _list_left_inverse_steps(layout: Layout, result: Layout) -> Iterator[Step]:
    plain: Layout = coalesce(layout)
    if plain != layout:
        text = f"the layout as a function of integers is {plain}"
        yield Step("coalesce", text, Agree((layout,), (plain,), layout.size), explain_coalesce(layout))
    step = 1
    for s, d in zip(wrap(plain.shape), wrap(plain.stride), strict=True):
        if d != 0:
            text = f"a step of {d} in the index comes from one of {step} in the coordinate, {s} times"
            yield Step("undo", text, Agree((result, Layout(s, d)), (Layout(s, step),), s))
        step *= s
    text = "modes of stride 0 read as 0, and every other coordinate comes back" if 0 in wrap(plain.stride) else ""
    yield Step("end", text or "every coordinate comes back", Agree((layout, result, layout), (layout,), layout.size))
