# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies: tensor maps of a kernel's arguments, tiles by instructions, masks and prefetches (CuTe's
copy_traits_sm90_tma.hpp).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import SSAValue

from ...base.element_types import BY_NAME
from ...base.errors import Code, LayoutError, TilefoldError
from ...dialects import ptx
from ...dialects.cute import LayoutAttr, TilerAttr
from ...dialects.tile import CopyOp, PrefetchOp, TensorMapOp, TmaCallOp, TmaPartitionOp, TmaTensorOp, TmaType
from ...layout.algebra.core import ComposedLayout, Layout, Tiler, make_layout, plain_layout
from ...layout.algebra.inttuple import wrap
from ...layout.algebra.modes import slice_
from ...layout.algebra.swizzle import Swizzle
from ...layout.atoms.instructions import ROWS
from ...layout.atoms.tma import TMA_ATOMS
from ...layout.tma.box import at_path
from ...layout.tma.partition import compute_multicast_mask
from ...layout.tma.recipe import MAP_ELEMENTS
from ...layout.tma.tma_copy import contiguous_mode
from ..scalars.dtypes import DType, Int64, Uint16, dtype_of
from ..scalars.values import Int, convert, index_of
from ..tracing.state import emit, host
from . import nvgpu
from .coordinates import as_layout, check_static, split_coordinate, tuples
from .fragments import ReductionOp
from .modes import group_modes
from .pointers import in_elements, make_tensor
from .tensor_base import AnyTensor
from .tensors import CoordTensor, Tensor, address_of
from .views import as_tensor


@dataclass(frozen=True)
class TmaAtom:
    """A tensor map of a tensor in global memory, with the instruction that copies tiles of it. `copy` takes it."""

    ssa: SSAValue

    @property
    def type(self) -> TmaType:
        """The type in the IR."""
        assert isinstance(self.ssa.type, TmaType)
        return self.ssa.type

    @property
    def name(self) -> str:
        """CuTe's name of the atom."""
        return self.type.kind.data

    @property
    def op(self) -> nvgpu.TmaCopyOp:
        """The instruction."""
        facts = TMA_ATOMS[self.name]
        if facts.by_rows:
            return nvgpu.CopyBulkTensorGather4G2SOp() if facts.loads else nvgpu.CopyBulkTensorScatter4S2GOp()
        if facts.reduction:
            return nvgpu.CopyReduceBulkTensorTileS2GOp(ReductionOp(facts.reduction))
        if not facts.loads:
            return nvgpu.CopyBulkTensorTileS2GOp()
        kind = nvgpu.CopyBulkTensorTileG2SMulticastOp if facts.multicast else nvgpu.CopyBulkTensorTileG2SOp
        return kind(nvgpu.CtaGroup.TWO if facts.pair else nvgpu.CtaGroup.ONE)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return dtype_of(self.type.element_type)

    @property
    def _trait(self) -> "TmaTrait":
        return TmaTrait(self)

    def __repr__(self) -> str:
        return f"TmaAtom({self.name}, {self.dtype})"


@dataclass(frozen=True)
class TmaTrait:
    """An atom as programs reach its tensor map by the dialect `cute_nvgpu` of another compiler."""

    atom: TmaAtom

    @property
    def value(self) -> "TmaTrait":
        """The value of the atom."""
        return self

    @property
    def type(self) -> str:
        """The type of the atom, whose text tells loads, stores and reductions."""
        facts = TMA_ATOMS[self.atom.name]
        return f"non_exec_tiled_tma_{'reduce' if facts.reduction else 'load' if facts.loads else 'store'}"


@dataclass(frozen=True)
class TmaDescriptor:
    """The tensor map of an atom, as a value that programs store to memory."""

    atom: TmaAtom


@dataclass(frozen=True)
class TmaInfo:
    """A tensor map's atom, its tensor of coordinates, and the layout of the tiles in shared memory, with their stages.
    It is unpacked into the first two.
    """

    atom: TmaAtom
    tma_tensor: CoordTensor
    smem_layout: Any = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.atom, self.tma_tensor))

    def __getitem__(self, index: int) -> Any:
        return (self.atom, self.tma_tensor)[index]


def make_tiled_tma_atom(
    op: "nvgpu.TmaCopyOp",
    gmem_tensor: Tensor,
    smem_layout: object,
    cta_tiler: object,
    num_multicast: int = 1,
    *,
    internal_type: DType | None = None,
) -> TmaInfo:
    """A tensor map for copies of tiles between a tensor in global memory and shared memory, and the tensor of the
    coordinates that it takes, which is tiled as the tensor would be: `atom, coords = make_tiled_tma_atom(...)`.

    The tensor is an argument of the kernel, or a view of one that does not depend on the block or the thread: each
    launch makes the map. `cta_tiler` cuts a tile, `smem_layout` is the tile's layout in shared memory, whose swizzle
    counts elements, or bytes as that of a pointer; its modes beyond those of the tiler are stages. `num_multicast`
    blocks of a cluster load a part of it each. The map has elements of the `internal_type`, of as many bits as the
    tensor's: a load as TFloat32 rounds those of Float32.
    Raises TilefoldError if no map describes the tensor (E0322), or no instruction moves the tile (E0323).
    """
    if not isinstance(op, nvgpu.TmaCopyOp):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"expected a TMA copy, got {op!r}",
            "such as cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()",
        )
    for given in (smem_layout, cta_tiler, num_multicast):
        check_static(given, "tiles are static, but this is")
    source = as_tensor(gmem_tensor)
    held = _map_element(op, source.element_type if internal_type is None else internal_type, source.element_type)
    return tiled_tma_atom(op, source, smem_layout, cta_tiler, num_multicast, held=held)


def tiled_tma_atom(
    op: "nvgpu.TmaCopyOp",
    source: Tensor,
    smem_layout: object,
    cta_tiler: object,
    num_multicast: int = 1,
    *,
    held: str = "",
) -> TmaInfo:
    """As `make_tiled_tma_atom`, with a map of elements `held` of `layout.tma.recipe.MAP_ELEMENTS`."""
    staged = as_layout(smem_layout)
    if isinstance(staged, ComposedLayout) and isinstance(staged.inner, Swizzle) and staged.offset == 0:
        staged = in_elements(staged.inner, staged.outer, source.element_type)
    tile = _stage(staged, tuples(cta_tiler))
    source = _contiguous(source, tile, tuples(cta_tiler))
    properties = {
        "kind": StringAttr(op.facts.name),
        "smem": LayoutAttr(tile),
        "tiler": TilerAttr(tuples(cta_tiler)),
        "multicast": None if num_multicast == 1 else IntegerAttr(num_multicast, i64),
        "held": StringAttr(held) if held else None,
    }
    tma = emit(TensorMapOp.inferred([source.ssa], properties)).results[0]
    return TmaInfo(TmaAtom(tma), CoordTensor(emit(TmaTensorOp.inferred([tma])).results[0]), staged)


def _contiguous(source: Tensor, smem: Any, tiler: Tiler) -> Tensor:
    """A tensor of a host function whose contiguous stride has a number that only its calls know: the function is for
    the number 1, which maps need, and the tensor has this in its layout.
    """
    layout = source.ir_type.layout.data
    if host() is None or not isinstance(layout, Layout):
        return source
    try:
        path = contiguous_mode(layout, smem, tiler)
    except LayoutError:
        return source  # of a tile that no map moves, which its operation refuses
    stride: Any = source.stride if path is None else at_path(source.stride, path)
    if path is None or not isinstance(stride, Int) or int(stride) != 1:
        return source
    return make_tensor(source.iterator, make_layout(source.shape, _replaced(source.stride, path, 1)))


def _replaced(tree: Any, path: tuple[int, ...], leaf: int) -> Any:
    """A nested tuple with another leaf at a path."""
    if not path:
        return leaf
    return tuple([_replaced(part, path[1:], leaf) if i == path[0] else part for i, part in enumerate(tree)])


def _stage(smem: Any, tiler: Tiler) -> Any:
    """The layout of one tile in shared memory; the given layout may have further modes for stages."""
    modes = len(wrap(tiler))
    if len(smem) <= modes or plain_layout(smem).size == _size(tiler):
        return smem
    return slice_((*(None,) * modes, *(0,) * (len(smem) - modes)), smem)


def _size(tiler: Tiler) -> int:
    """The elements of a tile."""
    if isinstance(tiler, Layout | int):
        return tiler if isinstance(tiler, int) else tiler.size
    return prod(_size(part) for part in wrap(tiler))


def _map_element(op: "nvgpu.TmaCopyOp", requested: DType, given: DType) -> str:
    """The elements of a map by name, where they are not those that a map of the tensor has by itself; else empty."""
    kind = op.reduction_kind if isinstance(op, nvgpu.CopyReduceBulkTensorTileS2GOp) else None
    unsigned = kind in (ReductionOp.MIN, ReductionOp.MAX) and requested.unsigned
    if not unsigned and requested == given:
        return ""
    if requested.bits != given.bits:
        if given.bits < 8:
            text = f"a TMA copy does not unpack {given} to {requested}"
            raise TilefoldError(Code.BUILD_VALUE, text, "copy elements of 4 bits as they are")
        return ""  # bytes are bytes, whatever the box counts
    element = BY_NAME[requested.name]
    names = (f"u{element.bits}",) if unsigned else (element.ptx, f"u{element.bits}")
    return next((name for name in names if name in MAP_ELEMENTS), requested.name)


def tma_partition(
    atom: TmaAtom, cta_coord: object, cta_layout: object, smem_tensor: Tensor, gmem_tensor: CoordTensor
) -> tuple[Tensor, CoordTensor]:
    """Divides shared memory and coordinates into instructions, ((TMA,TMA_Iter),Rest...), for the block at `cta_coord`
    of a multicast.

    The first mode of each tensor is a tile, the map's or a part of it that whole instructions move. `cta_layout`
    numbers the blocks that share the tiles; without a multicast `tma_partition(atom, 0, cute.make_layout(1), sA, gA)`.
    """
    layout = as_layout(cta_layout)
    check_static(layout, "the layout of the blocks of a multicast is static, but this is")
    coord, operands = split_coordinate(cta_coord)
    properties = {"coord": coord, "blocks": LayoutAttr(layout)}
    type, tile = _atom(atom).type, plain_layout(as_tensor(smem_tensor).ir_type.layout.data)[0]
    if tile.size != plain_layout(type.smem.data).size and tile.size % type.tma_copy.values == 0:
        properties["tile"] = LayoutAttr(tile)  # whole instructions, as CuTe takes a part of the map's tile

    def part(tensor: Any) -> Any:
        return as_tensor(tensor).view_of(TmaPartitionOp, [_atom(atom).ssa, tensor.ssa, operands], properties)

    return part(smem_tensor), part(gmem_tensor)


def gather4(
    atom: TmaAtom,
    column: object,
    rows: Sequence[object],
    smem: Tensor,
    tma_bar_ptr: object,
    cache_policy: object = None,
) -> None:
    """Starts loading four rows of a matrix by their numbers, from a column on, to shared memory: one thread has it done
    by a map of `CopyBulkTensorGather4G2SOp`, whose tile is (4,n). An mbarrier counts the bytes. Rows and columns
    outside the matrix are zero (PTX ISA, cp.async.bulk.tensor: tile::gather4).

    Raises TilefoldError for another atom or number of rows (E5002).
    """
    bar = address_of(tma_bar_ptr).ssa
    _move_rows(atom, nvgpu.CopyBulkTensorGather4G2SOp, column, rows, smem, bar, cache_policy)


def scatter4(atom: TmaAtom, smem: Tensor, column: object, rows: Sequence[object], cache_policy: object = None) -> None:
    """Starts storing four rows of shared memory as rows of a matrix by their numbers, from a column on, as part of the
    thread's bulk group: by a map of `CopyBulkTensorScatter4S2GOp`. Rows outside the matrix are left out (PTX ISA,
    cp.async.bulk.tensor: tile::scatter4).

    Raises TilefoldError for another atom or number of rows (E5002).
    """
    _move_rows(atom, nvgpu.CopyBulkTensorScatter4S2GOp, column, rows, smem, None, cache_policy)


def _move_rows(
    atom: TmaAtom,
    kind: type[nvgpu.TmaCopyOp],
    column: object,
    rows: Sequence[object],
    smem: Tensor,
    bar: SSAValue | None,
    policy: object,
) -> None:
    if not isinstance(_atom(atom).op, kind):
        text = f"{atom.name} cannot address rows by index on this side"
        raise TilefoldError(Code.BUILD_VALUE, text, f"make the map with {kind.__name__}()")
    if len(rows) != ROWS:
        raise TilefoldError(
            Code.BUILD_VALUE, f"an instruction moves {ROWS} rows, but {len(rows)} are given", "give four numbers"
        )
    coords = [index_of(x).ssa for x in (column, *rows)]
    emit(TmaCallOp(atom.ssa, coords, as_tensor(smem).ssa, bar, None, policy_of(policy)))


def tensor_prefetch(atom: object, src: CoordTensor, policy: object) -> None:
    """A prefetch of the tiles that a copy of `src` would load."""
    emit(PrefetchOp(_atom(atom).ssa, as_tensor(src).ssa, policy_of(policy)))


def group_bulk_copy_modes(src: object, dst: object) -> tuple[Any, Any]:
    """The source and the target of a bulk copy with all modes as one: the values of a single execution."""
    return group_modes(src, 0), group_modes(dst, 0)


def prefetch_descriptor(atom: TmaAtom) -> None:
    """Prefetches the tensor map of an atom into a cache (prefetch.tensormap)."""
    emit(PrefetchOp(_atom(atom).ssa))


def create_tma_multicast_mask(cta_layout: object, cta_coord: object, mcast_mode: int) -> Any:
    """The mask of the blocks along a mode of the cluster's layout through the block at `cta_coord`: bit i stands for
    rank i. Coordinates may be values.
    """
    layout = as_layout(cta_layout)
    check_static(layout, "the layout of a cluster is static, but this is")
    return compute_multicast_mask(layout, tuples(cta_coord), (mcast_mode,))


def make_layout_image_mask(lay: object, coord: object, mode: int) -> Any:
    """Like `create_tma_multicast_mask`: bits for the indices of a layout along a mode, from a coordinate on."""
    return create_tma_multicast_mask(lay, coord, mode)


def tma_copy(
    atom: TmaAtom, src: AnyTensor, dst: AnyTensor, barrier: object, mask: Any, policy: object, descriptor: object = None
) -> None:
    """A copy by a tensor map; `trace.assign_threads` lets one thread of a warp issue it. For a pair of blocks the
    mbarrier of the even one counts the bytes.
    """
    if not atom.type.tma_copy.atom.is_multicast:
        mask = None  # CuTe's copy to one block takes no notice of it either
    counted = None if barrier is None else address_of(barrier).ssa
    if counted is not None and counted.type == ptx.SHARED and atom.type.tma_copy.atom.is_paired:
        counted = emit(ptx.PairLeaderOp(counted)).results[0]
    emit(
        CopyOp(
            as_tensor(src).ssa,
            as_tensor(dst).ssa,
            atom.ssa,
            mbarrier=counted,
            multicast=None if mask is None else convert(mask, Uint16).ssa,
            policy=policy_of(policy),
            descriptor=None if descriptor is None else address_of(descriptor).ssa,
        )
    )


def _atom(atom: object) -> TmaAtom:
    if not isinstance(atom, TmaAtom):
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"expected the atom of a TMA copy, got {atom!r}",
            "see cute.nvgpu.cpasync.make_tiled_tma_atom",
        )
    return atom


def policy_of(policy: Any) -> SSAValue | None:
    """A cache policy as operations take it."""
    return None if policy is None else convert(policy, Int64).ssa
