# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of whole tiles by many threads: an atom repeated over threads and values (CuTe's copy_atom.hpp), also from a
map of threads and values to memory (make_cotiled_copy).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

from ...base.errors import Code, LayoutError
from ..algebra.coalesce import coalesce, filter_layout
from ..algebra.compose import composition, with_shape
from ..algebra.core import AnyLayout, Layout, LayoutLike, Tiler, join, make_layout
from ..algebra.display import Displayed
from ..algebra.divide import zipped_divide
from ..algebra.integers import AnyInt, AnyTuple, static
from ..algebra.inttuple import is_fully_static, product_each, rank
from ..algebra.inverse import left_inverse, right_inverse
from ..algebra.modes import slice_, slice_and_offset, zip_layout
from ..algebra.product import logical_product, raked_product
from ..algebra.recast import upcast
from ..atoms.copy_atom import CopyAtom
from .partition import check_tiler
from .tiled_mma import TiledMma


@final
@dataclass(frozen=True, slots=True)
class TiledCopy(Displayed):
    """`atom` repeated over a tile: `layout_tv` maps (thread, value) to a place in the tile that `tiler` cuts.

    Raises `LayoutError` if the atom has no instruction (E0304) or is narrower than a value (E0303), if `layout_tv` or
    the tiler is not static (E0207), if the tiler has an empty tuple (E0213), or if threads (E0305) or values (E0306)
    are not multiples of the atom's.
    """

    atom: CopyAtom
    layout_tv: Layout
    tiler: Tiler
    _src_to_tile: Layout = field(init=False, repr=False, compare=False)
    _dst_to_tile: Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        atom = self.atom
        atom.check_executable()
        if not is_fully_static((self.layout_tv.shape, self.layout_tv.stride)):
            raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"the thread-value layout {self.layout_tv} must be static")
        check_tiler(self.tiler, "the tiler of a tiled copy")
        threads, values = self.threads, self.values
        if threads % atom.threads:
            raise LayoutError(
                Code.TOO_FEW_THREADS,
                f"{threads} threads are not a multiple of the {atom.threads} of {atom.name}",
                f"use a thread layout of {atom.threads} threads, or a multiple",
            )
        if values % atom.values:
            raise LayoutError(
                Code.TOO_FEW_VALUES,
                f"{values} values per thread are not a multiple of the {atom.values} of {atom}",
                f"use a value layout of {atom.values} values, or a multiple, or a smaller atom",
            )
        inverse = right_inverse(atom.ref)
        for name, bits in (("_src_to_tile", atom.src), ("_dst_to_tile", atom.dst)):
            object.__setattr__(self, name, self._to_tile(composition(inverse, bits)))

    def _to_tile(self, ref2trg: Layout) -> Layout:
        """((Thr,(FrgV,FrgX)) to a place in the tile, of (thread, value) in the order to which `ref2trg` leads."""
        atoms_tv = zipped_divide(self.layout_tv, (self.atom.threads, self.atom.values))
        return coalesce(zip_layout(composition(atoms_tv, (ref2trg, None))), (1, (1, 1)))

    @property
    def threads(self) -> int:
        """The number of threads."""
        return self.layout_tv[0].size

    @property
    def values(self) -> int:
        """How many values each thread has in a tile."""
        return self.layout_tv[1].size

    def get_layoutS_TV(self) -> Layout:
        """(thread, value) to a place in the tile, as the source is read."""
        return self._tile_tv(self._src_to_tile)

    def get_layoutD_TV(self) -> Layout:
        """(thread, value) to a place in the tile, as the destination is written."""
        return self._tile_tv(self._dst_to_tile)

    def _tile_tv(self, to_tile: Layout) -> Layout:
        return composition(make_layout(tile_shape(self.tiler)), to_tile)

    def tidfrg_S(self, layout: LayoutLike) -> AnyLayout:
        """The source tensor as (Thr,(FrgV,FrgX),(RestM,RestN,...))."""
        return self._thrfrg(layout, self._src_to_tile)

    def tidfrg_D(self, layout: LayoutLike) -> AnyLayout:
        """The destination tensor as (Thr,(FrgV,FrgX),(RestM,RestN,...))."""
        return self._thrfrg(layout, self._dst_to_tile)

    def tile2thrfrg(self, tiles: LayoutLike, ref2trg: Layout) -> LayoutLike:
        """A tensor that is divided by the tiler, ((TileM,TileN,...),(RestM,RestN,...)), as
        (Thr,(FrgV,FrgX),(RestM,RestN,...)) (CuTe's tile2thrfrg).

        `ref2trg` maps (thread, value) of an atom, as the result has them, to (thread, value) as the atom's ValLayoutRef
        has them, counted first mode fastest. Raises `LayoutError` if the layouts do not compose.
        """
        return slice_(((None, None), None), composition(tiles, (self._to_tile(ref2trg), None)))

    def partition_S(self, layout: LayoutLike, thr_idx: object) -> tuple[LayoutLike, AnyInt]:
        """The part of the source that thread `thr_idx` reads: its layout ((FrgV,FrgX),RestM,RestN,...) and start
        index.

        The thread index may be dynamic. For a composed layout the start is inside the layout, and 0 is
        returned.
        """
        return self._partition(layout, self._src_to_tile, thr_idx)

    def partition_D(self, layout: LayoutLike, thr_idx: object) -> tuple[LayoutLike, AnyInt]:
        """The part of the destination that thread `thr_idx` writes; see `partition_S`."""
        return self._partition(layout, self._dst_to_tile, thr_idx)

    def _tiled(self, layout: LayoutLike, to_tile: Layout) -> AnyLayout:
        """The tensor as ((Thr,(FrgV,FrgX)),(RestM,RestN,...))."""
        if len(layout) < rank(self.tiler):
            raise LayoutError(
                Code.TILE_RANK, f"{layout} has fewer modes than the tiler of the tiled copy, {rank(self.tiler)}"
            )
        return composition(zipped_divide(layout, self.tiler), (to_tile, None))

    def _thrfrg(self, layout: LayoutLike, to_tile: Layout) -> LayoutLike:
        return slice_(((None, None), None), self._tiled(layout, to_tile))

    def _partition(self, layout: LayoutLike, to_tile: Layout, thr_idx: AnyInt) -> tuple[LayoutLike, AnyInt]:
        rest = (None,) * len(layout) if len(layout) > 1 else None
        return slice_and_offset(((thr_idx, None), rest), self._tiled(layout, to_tile))

    def retile(self, layout: LayoutLike) -> AnyLayout:
        """A thread's fragment (V,RestM,RestN,...) of another tiling of the same tile, in the profile of
        this copy.

        The result is ((FrgV,FrgX),RestM,RestN,...) and addresses the same registers. Raises `LayoutError` (E0207)
        unless the number of values is static.
        """
        values = static(layout[0].size, "the number of values in a fragment")
        tile = with_shape(right_inverse(self.layout_tv), tile_shape(self.tiler))
        fragments = upcast(tile, self.threads * values)
        order = logical_product(make_layout(values), right_inverse(fragments))
        fragment_v = zipped_divide(order, make_layout(self.atom.values))
        tiled = zipped_divide(layout, (values, *product_each(fragments.shape)))
        rest = (0, *(None,) * (len(layout) - 1)) if len(layout) > 1 else 0
        return slice_((None, rest), composition(tiled, (fragment_v, None)))


def tile_shape(tiler: Tiler) -> AnyTuple:
    """The shape of one tile."""
    if type(tiler) is tuple:
        return tuple([tile_shape(t) for t in tiler])
    return tiler.shape if type(tiler) is Layout else tiler


def make_tiled_copy_tv(atom: CopyAtom, layout_tv: Layout, tiler: Tiler) -> TiledCopy:
    """The tiled copy of given (thread, value) layout and tiler."""
    return TiledCopy(atom, layout_tv, tiler)


def make_tiled_copy(atom: CopyAtom, threads: Layout, values: Layout) -> TiledCopy:
    """The tiled copy of threads side by side in the order `threads`, each with a block of values in the
    order `values`.

    Both layouts map tile coordinates to thread, or value, indices. CuTe inverts their raked product and goes on beyond
    the end of the inverse (make_tiled_copy), so a layout of threads with gaps, such as `128:8`, is one where this
    numbers the tile: an index then counts threads first. Raises `LayoutError` (E0313) unless the tile takes every index
    from 0 once.
    """
    tile = raked_product(threads, values)
    layout_tv = with_shape(right_inverse(tile), (threads.size, values.size))
    if right_inverse(layout_tv).size != tile.size:
        raise LayoutError(
            Code.NOT_A_NUMBERING,
            f"threads {threads}, each with the values {values}, do not number the coordinates of a tile",
            f"together they must take every index from 0 to {static(tile.size, 'a size') - 1} once",
        )
    return TiledCopy(atom, layout_tv, product_each(tile.shape))


def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """The tiled copy of `atom` that reads the same values as `tiled_copy`."""
    return TiledCopy(atom, tiled_copy.get_layoutS_TV(), tiled_copy.tiler)


def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """The tiled copy of `atom` that writes the same values as `tiled_copy`."""
    return TiledCopy(atom, tiled_copy.get_layoutD_TV(), tiled_copy.tiler)


BY_COPY: Mapping[str, Callable[[CopyAtom, TiledCopy], TiledCopy]] = MappingProxyType(
    {"S": make_tiled_copy_S, "D": make_tiled_copy_D}
)
"""How to make a tiled copy for a side of another, by the end of CuTe's name for it."""


_UNIT = Layout(1, 0)


_FEWER = "use an atom that moves fewer values, or a layout of the data that has all of them"


def make_cotiled_copy(atom: CopyAtom, atom_tv: Layout, data: Layout, hint: str = _FEWER) -> TiledCopy:
    """The tiled copy in which `atom_tv` maps (thread, value) to an index of the data that `data` lays out.

    Raises `LayoutError` (E0308), with a hint, if values have indices that `data` does not take.
    """
    inverse = join((left_inverse(data), _UNIT))
    coords = composition(inverse, atom_tv)
    reached = coalesce(composition(join((data, _UNIT)), coords[1]))
    if reached != coalesce(atom_tv[1]):
        problem = f"the values {atom_tv[1]} address elements that {data} does not hold"
        raise LayoutError(Code.NOT_IN_DATA_LAYOUT, problem, hint)
    shape = product_each(data.shape)
    return TiledCopy(atom, *tile_of(shape, coords))


def tile_of(shape: tuple[AnyTuple, ...], coords: Layout) -> tuple[Layout, tuple[AnyTuple, ...]]:
    """The (thread, value) layout and the tiler of the part of `shape` that `coords`, (thread, value) to
    place, visits.
    """
    tiler = tuple([filter_layout(composition(Layout(shape, _unit(i, len(shape))), coords)) for i in range(len(shape))])
    tile = composition(make_layout(shape), tiler)
    return composition(left_inverse(tile), coords), tiler


def _unit(axis: int, axes: int) -> tuple[int, ...]:
    return tuple([int(i == axis) for i in range(axes)])


def make_tiled_copy_A(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy of operand A. Raises `LayoutError` if `TiledCopy` does."""
    return TiledCopy(atom, mma.layout_tv("A"), (mma.tile_size(0), mma.tile_size(2)))


def make_tiled_copy_B(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy of operand B. Raises `LayoutError` if `TiledCopy` does."""
    return TiledCopy(atom, mma.layout_tv("B"), (mma.tile_size(1), mma.tile_size(2)))


def make_tiled_copy_C(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy of the accumulator. Raises `LayoutError` if `TiledCopy` does."""
    return TiledCopy(atom, mma.layout_tv("C"), (mma.tile_size(0), mma.tile_size(1)))


def make_tiled_copy_C_atom(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The smallest tiled copy of the accumulator: as many values of each thread as one `atom` moves.

    Raises `LayoutError` (E0306) if a thread has fewer values than the atom moves.
    """
    layout = mma.layout_tv("C")
    values = atom.src[1].size
    if values > layout[1].size:
        raise LayoutError(
            Code.TOO_FEW_VALUES, f"a thread has {layout[1].size} values of the accumulator; {atom} moves {values}"
        )
    first_values = composition(layout, make_layout((layout[0].size, values)))
    return TiledCopy(atom, *tile_of((mma.tile_size(0), mma.tile_size(1)), first_values))


BY_MMA: Mapping[str, Callable[[CopyAtom, TiledMma], TiledCopy]] = MappingProxyType({
    "A": make_tiled_copy_A, "B": make_tiled_copy_B, "C": make_tiled_copy_C, "C_atom": make_tiled_copy_C_atom,
})  # fmt: skip
"""How to make a tiled copy for an operand of a tiled MMA, by the end of CuTe's name for it."""
