# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of divides, products, local_tile and the partitions of a tiled copy, for static layouts."""

from collections.abc import Callable, Iterator
from typing import Any

from ..algebra.coalesce import filter_layout
from ..algebra.complement import complement
from ..algebra.compose import composition
from ..algebra.core import ComposedLayout, Layout, LayoutLike, Tiler, cosize, join, make_layout
from ..algebra.divide import logical_divide, zipped_divide
from ..algebra.integers import AnyTuple
from ..algebra.inttuple import rank, transform_leaves
from ..algebra.modes import append, slice_and_offset, spread, tile_unzip, zip_layouts
from ..algebra.product import blocked_product, logical_product, raked_product, zipped_product
from ..tiling.partition import everything, inner_partition, local_tile, outer_partition, padded, project
from ..tiling.tiled_copy import TiledCopy
from .explain_layouts import explain_complement, explain_composition
from .explanation import Agree, Distinct, Explanation, Step, shown

_Explain = Callable[[Layout, Tiler], Explanation]


def explain_logical_divide(layout: Layout, tiler: Tiler) -> Explanation:
    """Explains `logical_divide`."""
    result: Layout = logical_divide(layout, tiler)
    if tiler is None or isinstance(tiler, tuple):
        steps = _by_mode(layout, tiler, result, explain_logical_divide)
    else:
        steps = _divide_steps(layout, tiler if isinstance(tiler, Layout) else make_layout(tiler), result)
    return Explanation("logical_divide", (layout, tiler), tuple(steps), result)


def _by_mode(layout: Layout, tiler: Tiler, result: Layout, explain_mode: _Explain) -> Iterator[Step]:
    for i, mode in enumerate(layout):
        claim = Agree((result[i],), (mode,), mode.size)
        if not isinstance(tiler, tuple) or i >= rank(tiler) or tiler[i] is None:
            yield Step("keep", f"mode {i}, {mode}, stays", claim)
        else:
            inside = explain_mode(mode, tiler[i])
            claim = Agree((result[i],), (inside.result,), result[i].size)
            yield Step("by mode", f"mode {i}, {mode}, by {shown(tiler[i])}", claim, inside)


def _divide_steps(layout: Layout, tile: Layout, result: Layout) -> Iterator[Step]:
    rest = complement(tile, layout.size)
    both = join((tile, rest))
    text = f"{tile} is a tile; {rest} leads from tile to tile, up to {layout.size}"
    yield Step("complement", text, Distinct(join((filter_layout(tile), rest))), explain_complement(tile, layout.size))
    text = f"{layout} at the places of (tile, rest), {both}"
    yield Step("composition", text, Agree((layout, both), (result,), both.size), explain_composition(layout, both))


def explain_logical_product(block: Layout, tiler: Tiler) -> Explanation:
    """Explains `logical_product`."""
    result: Layout = logical_product(block, tiler)
    if tiler is None or isinstance(tiler, tuple):
        steps = _by_mode(block, tiler, result, explain_logical_product)
    else:
        steps = _product_steps(block, tiler if isinstance(tiler, Layout) else make_layout(tiler), result)
    return Explanation("logical_product", (block, tiler), tuple(steps), result)


def _product_steps(block: Layout, tile: Layout, result: Layout) -> Iterator[Step]:
    room = block.size * cosize(tile)
    places = complement(block, room)
    text = f"{cosize(tile)} blocks of {block.size} take {room} indices; they can begin at {places}"
    yield Step("complement", text, Distinct(join((filter_layout(block), places))), explain_complement(block, room))
    copies: Layout = composition(places, tile)
    text = f"the copies in the order of {tile} begin at {copies}"
    yield Step("composition", text, Agree((places, tile), (copies,), tile.size), explain_composition(places, tile))
    text = f"the block is mode 0 and the copies are mode 1: {result}"
    yield Step("join", text, Agree((result,), (join((block, copies)),), result.size))


def _numbering(shape: AnyTuple) -> Layout:
    """The layout of `shape` whose indices are the places of the coordinates, in colexicographic order."""
    count = 1

    def stride(extent: Any) -> int:
        nonlocal count
        count, current = count * extent, count
        return current

    return Layout(shape, transform_leaves(stride, shape))


def _rearranged(rule: str, text: str, before: Layout, result: Layout, rearrange: Callable[[Layout], Any]) -> Step:
    """The step that reorders the modes of `before`: the result is `before` after a permutation of coordinates."""
    permutation: Layout = rearrange(_numbering(before.shape))
    return Step(rule, f"{text}: {result}", Agree((result,), (before, permutation), result.size))


def explain_form(form: str, operation: str, layout: Layout, tiler: Tiler) -> Explanation:
    """Explains the zipped, tiled or flat `form` of `operation`, "divide" or "product"."""
    divides = operation == "divide"
    logical = explain_logical_divide(layout, tiler) if divides else explain_logical_product(layout, tiler)
    result: Layout = zipped_divide(layout, tiler) if divides else zipped_product(layout, tiler)
    steps = list(logical.steps)
    if isinstance(tiler, tuple):
        text = f"first the modes inside a {'tile' if divides else 'block'}, then those from one to the next"
        steps.append(_rearranged("zip", text, logical.result, result, lambda x: tile_unzip(x, tiler)))
    if form != "zipped":
        zipped, flat = result, form == "flat"
        result = spread(zipped, tile=flat)
        text = f"{'all modes' if flat else 'the modes from one to the next'} at the top level"
        steps.append(_rearranged("spread", text, zipped, result, lambda x: spread(x, tile=flat)))
    return Explanation(f"{form}_{operation}", (layout, tiler), tuple(steps), result)


def explain_arranged_product(operation: str, block: Layout, tiler: Layout) -> Explanation:
    """Explains "blocked_product" or "raked_product"."""
    raked = operation == "raked_product"
    modes = max(len(block), len(tiler))
    inside, copies = append(block, modes), append(tiler, modes)
    steps: list[Step] = []
    for before, after in ((block, inside), (tiler, copies)):
        if before != after:
            text = f"{before} gets as many modes as the other: {after}"
            steps.append(Step("pad", text, Agree((before,), (after,), before.size)))
    product = explain_logical_product(inside, copies)
    result: Layout = raked_product(block, tiler) if raked else blocked_product(block, tiler)
    text = f"mode by mode, {'the copies first, which interleaves' if raked else 'the block first, which keeps'} blocks"
    arrange = _rearranged(
        "zip", text, product.result, result, lambda x: zip_layouts(x[1], x[0]) if raked else zip_layouts(x[0], x[1])
    )
    return Explanation(operation, (block, tiler), (*steps, *product.steps, arrange), result)


def _sliced(rule: str, text: str, before: Layout, coord: AnyTuple, result: tuple[LayoutLike, int]) -> Step:
    """The step that fixes some modes of `before`: the result is `before` at the places that `coord` keeps."""
    places, first = slice_and_offset(coord, _numbering(before.shape))
    layout, start = result
    assert isinstance(layout, Layout)
    assert isinstance(places, Layout)
    at_result = ComposedLayout(Layout(1, 1), start, layout)
    kept = ComposedLayout(before, first, places)
    return Step(rule, f"{text}: {layout}, from index {start}", Agree((at_result,), (kept,), layout.size))


def explain_local_tile(layout: Layout, tiler: Tiler, coord: AnyTuple, proj: Any = None) -> Explanation:
    """Explains `local_tile`; the result is the tile's layout and the index at which it starts."""
    result = local_tile(layout, tiler, coord, proj)
    arguments = (layout, tiler, coord) if proj is None else (layout, tiler, coord, proj)
    steps: list[Step] = []
    if proj is not None:
        tiler, coord = project(proj, tiler), project(proj, coord)
        text = f"of tiler and coordinate, {shown(proj)} keeps {shown(tiler)} and {shown(coord)}"
        kept = local_tile(layout, tiler, coord)[0]
        steps.append(Step("project", text, Agree((result[0],), (kept,), kept.size)))
    divided = explain_form("zipped", "divide", layout, tiler)
    tile, rest = divided.result.shape
    place = everything(tile), padded(coord, rest)
    steps += [*divided.steps, _sliced("slice", f"tile {shown(coord)}", divided.result, place, result)]
    return Explanation("local_tile", arguments, tuple(steps), result)


def explain_inner_or_outer(name: str, layout: Layout, tiler: Tiler, coord: AnyTuple) -> Explanation:
    """Explains the partition of this name, `inner_partition` or `outer_partition`."""
    inner = name == "inner_partition"
    result = (inner_partition if inner else outer_partition)(layout, tiler, coord)
    divided = explain_form("zipped", "divide", layout, tiler)
    tile, rest = divided.result.shape
    place = (everything(tile), padded(coord, rest)) if inner else (padded(coord, tile), everything(rest))
    selection = f"tile {shown(coord)}" if inner else f"place {shown(coord)} of every tile"
    steps = (*divided.steps, _sliced("slice", selection, divided.result, place, result))
    return Explanation(name, (layout, tiler, coord), steps, result)


def explain_partition(operand: str, copy: TiledCopy, layout: Layout, thread: int) -> Explanation:
    """Explains partition_S (`operand` "S") or partition_D ("D") of a tiled copy."""
    reads = operand == "S"
    result = copy.partition_S(layout, thread) if reads else copy.partition_D(layout, thread)
    threads: Layout = copy.tidfrg_S(layout) if reads else copy.tidfrg_D(layout)
    to_tile = copy.get_layoutS_TV() if reads else copy.get_layoutD_TV()
    divided = explain_form("zipped", "divide", layout, copy.tiler)
    tile, rest = divided.result
    places = join((to_tile[0], to_tile[1], Layout(rest.size, tile.size)))
    verb = "reads" if reads else "writes"
    text = f"the (thread,value) that {verb} each place of a tile is {to_tile}; so (thread,value,tile) is {threads}"
    compose = Step("threads", text, Agree((threads,), (divided.result, places), threads.size))
    keep = (thread, None, everything(threads[2].shape))
    steps = (*divided.steps, compose, _sliced("slice", f"thread {thread}", threads, keep, result))
    return Explanation(f"partition_{operand}", (copy, layout, thread), steps, result)
