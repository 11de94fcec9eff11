# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of a tensor for a block, and parts of a tile for a thread (CuTe's local_tile and local_partition).

All functions take the tensor's layout and return the layout of the part together with the index at which it
starts; for composed layouts that index is inside the layout, and 0 is returned. Coordinates may be dynamic.
They raise `LayoutError` if `zipped_divide` does, if a coordinate has more modes than it selects from (E0202), and for
tilers that cut no tile.
"""

from collections.abc import Callable
from typing import Any

from ...base.errors import Code, LayoutError
from ..algebra.coordinates import crd2crd, idx2crd
from ..algebra.core import Layout, LayoutLike, Tiler
from ..algebra.divide import zipped_divide
from ..algebra.integers import AnyInt, AnyTuple, Coord, Tree
from ..algebra.inttuple import dice_tuple, is_fully_static, product_each, rank, show
from ..algebra.modes import dice, slice_and_offset

Slicing = Callable[[Coord, LayoutLike], tuple[LayoutLike, Any]]
"""How a part is taken out of a layout: `slice_and_offset`, or another that is the same function."""


def inner_partition(
    layout: LayoutLike, tiler: Tiler, coord: Coord, slicing: Slicing = slice_and_offset
) -> tuple[LayoutLike, AnyInt]:
    """The tile at `coord`, for tiles of `tiler`: (BLK_M,BLK_N,...), and modes that `coord` keeps or leaves
    out. `slicing` takes it out of the divided layout.
    """
    tiled = zipped_divide(layout, tiler)
    tile, rest = tiled.shape
    return slicing((everything(tile), padded(coord, rest)), tiled)


def outer_partition(layout: LayoutLike, tiler: Tiler, coord: Coord) -> tuple[LayoutLike, AnyInt]:
    """The elements at `coord` of every tile of `tiler`: (REST_M,REST_N,...)."""
    tiled = zipped_divide(layout, tiler)
    tile, rest = tiled.shape
    return slice_and_offset((padded(coord, tile), everything(rest)), tiled)


def local_tile(
    layout: LayoutLike, tiler: Tiler, coord: Coord, proj: "Coord | None" = None
) -> tuple[LayoutLike, AnyInt]:
    """The tile of a block: `inner_partition`, after leaving out the modes of `tiler` and `coord` that
    `proj` drops.

    In `proj`, None (X in CuTe's Step) drops a mode: with `proj` (1, None, 1) a tiler (M,N,K) applies as
    (M,K).
    """
    if proj is not None:
        tiler, coord = project(proj, tiler), project(proj, coord)
    return inner_partition(layout, tiler, coord)


def project(proj: Coord, t: AnyTuple) -> Any:
    """The modes of a tiler or coordinate that a projection keeps: those where it holds an integer, not
    None.
    """
    return dice_tuple(proj, t)


def local_partition(
    layout: LayoutLike, threads: Layout, index: object, proj: "Coord | None" = None
) -> tuple[LayoutLike, AnyInt]:
    """The elements of thread `index`: those at its coordinate in `threads`, in every tile of the shape of
    `threads`.

    `threads` maps coordinates to thread indices; `proj` drops modes of it, as in `local_tile`.
    """
    if proj is not None:
        threads = dice(proj, threads)
    return outer_partition(layout, product_each(threads.shape), thread_coordinate(threads, index))


def thread_coordinate(threads: Layout, index: Any) -> Any:
    """The coordinate of thread `index` in a layout of threads, a number for each of its modes."""
    coord = idx2crd(index, threads.shape, threads.stride)
    return crd2crd(coord, threads.shape, (1,) * len(threads)) if type(threads.shape) is tuple else coord


def everything(t: Tree) -> Coord:
    """Underscores for the modes of `t`."""
    return (None,) * len(t) if isinstance(t, tuple) and len(t) != 1 else None


def padded(coord: Coord, t: Any) -> Coord:
    """`coord` with underscores for the last modes of `t` that it does not mention."""
    if type(coord) is not tuple:
        return coord
    missing = rank(t) - len(coord)
    if missing < 0:
        raise LayoutError(
            Code.RANK_MISMATCH, f"coordinate {show(coord)} has {len(coord)} modes; there are {rank(t)} to select from"
        )
    return coord + (None,) * missing


def check_tiler(tiler: Tiler, subject: str) -> None:
    """Raises `LayoutError` unless a tiler is static (E0207) and names an extent, a layout or `_` in each of its tuples
    (E0213); `subject` names it in the message.
    """
    if isinstance(tiler, tuple):
        _check_empty(tiler, subject)
        for part in tiler:
            check_tiler(part, subject)
    elif isinstance(tiler, Layout):
        _check_empty(tiler.shape, subject)
        _check_static((tiler.shape, tiler.stride), subject)
    elif tiler is not None:
        _check_static(tiler, subject)


def _check_empty(part: object, subject: str) -> None:
    if part == ():
        raise LayoutError(
            Code.BAD_ARGUMENT, f"{subject} has an empty tuple, (), which tiles nothing", "write _ for a whole mode"
        )


def _check_static(part: AnyTuple, subject: str) -> None:
    if not is_fully_static(part):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{subject} must be static")
