# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix multiplications of whole tiles by many threads: an atom repeated over M, N and K (CuTe's
mma_atom.hpp).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from ...base.errors import Code, LayoutError
from ..algebra.complement import complement
from ..algebra.compose import composition
from ..algebra.coordinates import crd2crd, idx2crd
from ..algebra.core import (
    ComposedLayout,
    Layout,
    LayoutLike,
    Tiler,
    cosize,
    join,
    make_layout,
    plain_layout,
    size,
    zero_layout,
)
from ..algebra.display import Displayed
from ..algebra.divide import logical_divide, zipped_divide
from ..algebra.integers import AnyInt, AnyTuple, IntTuple, is_static
from ..algebra.inttuple import rank
from ..algebra.inverse import right_inverse
from ..algebra.modes import append, replace, slice_and_offset
from ..algebra.product import make_fragment_like, tiled_product
from ..algebra.recast import recast_layout
from ..atoms.contract import Named, Role
from ..atoms.mma_atom import MmaAtom
from ..tmem.fragments import place_operand, stored_bits
from .partition import Slicing, check_tiler

_AXES = {"A": (0, 2), "B": (1, 2), "C": (0, 1), "SFA": (0, 2), "SFB": (1, 2)}
"""The modes of (M, N, K) that each operand has; SFA and SFB are the scales of A and B."""
_SCALES = {"SFA": Role.SCALE_A, "SFB": Role.SCALE_B}


@final
@dataclass(frozen=True, slots=True)
class TiledMma(Displayed):
    """`atom` repeated over threads by `atom_layout` (M,N,K), and over values as far as `permutation` says.

    `permutation` holds for each of M, N and K a tile size, a layout that reorders the tile, or None for the
    tile that the threads cover. Raises `LayoutError` (E0202) unless both have three modes, (E0207) unless the
    permutation is static, (E0213) where it has an empty tuple.
    """

    atom: MmaAtom
    atom_layout: Layout
    permutation: tuple[Tiler, Tiler, Tiler] = (None, None, None)
    thr_layout_vmnk: Layout = field(init=False, repr=False, compare=False)
    _thread_to_vmnk: Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.atom_layout) != 3 or len(self.permutation) != 3:
            raise LayoutError(Code.RANK_MISMATCH, "a tiled MMA needs an atom layout and a permutation of M, N and K")
        check_tiler(self.permutation, "the permutation of a tiled MMA")
        vmnk = tiled_product(self.atom.thr_id, self.atom_layout)
        object.__setattr__(self, "thr_layout_vmnk", vmnk)
        inverse = right_inverse(join((vmnk, complement(vmnk))))
        object.__setattr__(self, "_thread_to_vmnk", composition(Layout((size(vmnk), 1), (1, 0)), inverse))

    @property
    def threads(self) -> int:
        """The number of threads."""
        return size(self.thr_layout_vmnk)

    @property
    def tile_shape(self) -> tuple[int, int, int]:
        """The tile (M, N, K) that all threads multiply at once."""
        return self.tile_size(0), self.tile_size(1), self.tile_size(2)

    def tile_size(self, axis: int) -> int:
        """The extent of the tile in M (0), N (1) or K (2)."""
        return size(self._tile(axis))

    def _tile(self, axis: int) -> AnyTuple:
        tile = self.permutation[axis]
        return self.atom.shape[axis] * self.thr_layout_vmnk[axis + 1].size if tile is None else tile

    def _layout_tv(self, operand: str) -> Layout:
        atom, scale = self.atom, _SCALES.get(operand)
        if scale is None:
            return atom.operand(operand).layout
        if not atom.has_scales:
            raise LayoutError(Code.MMA_OPERAND, f"{atom.name} has no scales")
        return atom.contract.operand(scale).layout

    def thrfrg(self, operand: str, layout: LayoutLike) -> LayoutLike:
        """An operand's tensor as ((ThrV,(ThrX,ThrY)),(FrgV,(RestX,RestY,...))); `operand` is "A", "B" or "C".

        Raises `LayoutError` (E0307) for a tensor of less than two modes, and where it cannot be divided.
        """
        x, y = _AXES[operand]
        if len(layout) < 2:
            raise LayoutError(Code.TILE_RANK, f"operand {operand} needs two modes or more; {layout} has one")
        permuted = logical_divide(layout, (self._tile(x), self._tile(y)))
        atoms = zipped_divide(permuted, (make_layout(self.atom.shape[x]), make_layout(self.atom.shape[y])))
        values = composition(atoms, (self._layout_tv(operand), None))
        vmnk = self.thr_layout_vmnk
        return zipped_divide(values, (None, (make_layout(vmnk[x + 1].size), make_layout(vmnk[y + 1].size))))

    def _check_tiles(self, operand: str, layout: LayoutLike) -> None:
        if self.atom.operand("C").named is not Named.CELL:
            return
        for axis, mode in zip(_AXES[operand], plain_layout(layout), strict=False):
            extent, tile = mode.size, self.tile_size(axis)
            if is_static(extent) and extent % tile:
                raise LayoutError(
                    Code.TILE_RANK,
                    f"operand {operand} has {extent} elements along {'MNK'[axis]}, not a multiple of the tile's {tile}",
                    "use whole tiles, or a smaller instruction",
                )

    def thread_coord(self, thr_idx: AnyInt) -> tuple[AnyTuple, ...]:
        """The place (V,M,N,K) of a thread; the index may be dynamic."""
        vmnk = self.thr_layout_vmnk
        return crd2crd(idx2crd(thr_idx, vmnk.shape, vmnk.stride), vmnk.shape, (1,) * len(vmnk))

    def partition(
        self, operand: str, layout: LayoutLike, thr_idx: object, slicing: Slicing = slice_and_offset
    ) -> tuple[LayoutLike, AnyInt]:
        """The part of an operand that thread `thr_idx` holds: its layout (FrgV,RestX,RestY,...) and start index.
        `slicing` takes it out of the operand's tensor. Raises `LayoutError` (E0307) where an instruction that reads
        memory would reach beyond the tensor.
        """
        x, y = _AXES[operand]
        coord = self.thread_coord(thr_idx)
        threads = self.thrfrg(operand, layout)
        part, start = slicing(((coord[0], (coord[x + 1], coord[y + 1])), _fragment(threads)), threads)
        reached, held = (cosize(plain_layout(whole)) for whole in (part, layout))
        if is_static(reached) and is_static(held) and reached > held:
            self._check_tiles(operand, layout)
        return part, start

    def tiler(self, operand: str) -> tuple[Tiler, Tiler]:
        """The tile of an operand that all threads multiply at once, as the tensor is divided by it."""
        x, y = _AXES[operand]
        return self._tile(x), self._tile(y)

    def tidfrg(self, operand: str, layout: LayoutLike) -> LayoutLike:
        """An operand's tensor as (Thr,(FrgV,(RestX,RestY,...))), where Thr is indexed by the thread's number.

        It is `thrfrg` with the threads in one mode, all of which along the axis that the operand lacks hold the same:
        `partition` without arithmetic on the thread's number. Raises `LayoutError` if `thrfrg` does.
        """
        whole = self.thrfrg(operand, layout)
        outer = plain_layout(whole)
        (v, held), fragment = outer[0], outer[1]
        axes = _AXES[operand]
        along = [held[axes.index(axis)] if axis in axes else _same(self.thr_layout_vmnk[axis + 1]) for axis in range(3)]
        threads = composition(join((v, *along)), self._thread_to_vmnk)
        result = join((threads, fragment))
        return ComposedLayout(whole.inner, whole.offset, result) if type(whole) is ComposedLayout else result

    def partition_A(self, layout: LayoutLike, thr_idx: object) -> tuple[LayoutLike, AnyInt]:
        """The part of A (M,K,...) that thread `thr_idx` holds: its layout and start index. The index may be dynamic."""
        return self.partition("A", layout, thr_idx)

    def partition_B(self, layout: LayoutLike, thr_idx: object) -> tuple[LayoutLike, AnyInt]:
        """The part of B (N,K,...) that thread `thr_idx` holds; see `partition_A`."""
        return self.partition("B", layout, thr_idx)

    def partition_C(self, layout: LayoutLike, thr_idx: object) -> tuple[LayoutLike, AnyInt]:
        """The part of C (M,N,...) that thread `thr_idx` holds; see `partition_A`."""
        return self.partition("C", layout, thr_idx)

    def partition_shape(self, operand: str, shape: IntTuple) -> AnyTuple:
        """The shape of each thread's part of an operand of `shape`. Raises `LayoutError` (E0307) where an instruction
        that reads memory would reach beyond it.
        """
        self._check_tiles(operand, make_layout(shape))
        threads = self.thrfrg(operand, make_layout(shape))
        return slice_and_offset((0, _fragment(threads)), threads)[0].shape

    def make_fragment(self, operand: str, part: LayoutLike) -> Layout:
        """The layout of a thread's registers for `part`, its part of an operand.

        For an operand that the instruction reads from shared memory, the layout of its descriptors, one for
        each instruction, in units of 16 bytes; for one in tensor memory, that of its elements there.
        """
        given = self.atom.operand(operand)
        if given.named is Named.CELL:
            return place_operand(self.atom, operand, part.shape)
        if operand == "C":
            return make_layout(part.shape)
        if given.named is not Named.DESCRIPTOR:
            return make_fragment_like(part)
        outer = plain_layout(part)
        return replace(recast_layout(outer, stored_bits(self.atom, operand), 128), 0, Layout(1, 0))

    def layout_tv(self, operand: str) -> Layout:
        """(thread, value) to a place in the tile of an operand (CuTe's get_layoutA_TV and so on)."""
        x, y = _AXES[operand]
        threads = self.thrfrg(operand, make_layout((self.tile_size(x), self.tile_size(y))))
        if operand != "C":  # all threads along the axis that the operand lacks hold the same
            stride = (1, 0) if _AXES[operand][0] == 0 else (0, 1)
            over_mn = Layout((self.thr_layout_vmnk[1].size, self.thr_layout_vmnk[2].size), stride)
            threads = composition(threads, ((None, (over_mn, None)), None))
        return composition(threads, (self._thread_to_vmnk, None))


def _same(threads: Layout) -> Layout:
    """Threads that all hold the same."""
    return zero_layout(threads.shape)


def _fragment(threads: AnyTuple) -> tuple[None, tuple[None, ...] | None]:
    """The coordinate that keeps a thread's values and rest modes."""
    rest = threads[1][1]
    return None, (None,) * len(rest) if rank(rest.shape) > 1 else None


def make_tiled_mma(atom: MmaAtom, atom_layout: Layout | None = None, permutation: Sequence[Tiler] = ()) -> TiledMma:
    """The tiled MMA of `atom`, one by default. Missing modes of the layout are 1, those of the permutation None."""
    layout: Layout = append(atom_layout or Layout(1, 0), 3)
    m, n, k = (*permutation, None, None, None)[:3]
    return TiledMma(atom, layout, (m, n, k))
