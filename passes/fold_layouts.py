# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fold-layouts`: stage `cute` to stage `folded`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects.arith.semantics import constant_of
from ..dialects.tile import (
    AllocOp,
    CopyOp,
    Crd2IdxOp,
    DimOp,
    FragmentOp,
    GemmOp,
    GetScalarsOp,
    MakeTensorOp,
    RasterizeOp,
    RecastOp,
    StrideOp,
    TensorAtOp,
    TensorMapOp,
    TensorType,
    TiledCopyOp,
    TiledMmaOp,
    ViewOp,
)
from ..dialects.tile.view_base import LayoutViewOp
from ..layout.algebra.core import plain_layout
from .writing.coordinate_folding import CoordinateFolding, add_index, slice_index, sliced_layout
from .writing.emitter import INDEX_ARITHMETIC, Emitter, SsaInt, erase_unused
from .writing.tensor_scalars import Scalars, scalars_for


@dataclass(frozen=True)
class FoldLayoutsPass(ModulePass):
    """Folds every layout operation: views become an index and a shifted view, tiled copies their atoms.

    Static parts go into types; the view carries the values of run-time extents and strides. Coordinate tensors become
    index arithmetic.

    Before:

        %g = tile.local_tile %A, "(128,32)", (%m, %k) : !A -> !tile.tensor<f16, gmem, align<16>, "(128,32):(1,1024)">
        tile.copy %copy, %src, %dst : !copy, !S, !D

    After:

        %o = tile.crd2idx (%m, %k) in "(8,32):(128,32768)"
        %g = tile.view %A at %o : !A -> !tile.tensor<f16, gmem, align<16>, "(128,32):(1,1024)">
        tile.copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> %src, %dst : !S, !D
    """

    name = "fold-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        scalars = Scalars()
        coordinates = CoordinateFolding(scalars)
        for inner in list(op.walk()):
            if coordinates.fold(inner):
                continue
            if isinstance(inner, LayoutViewOp):
                _fold_view(inner, scalars)
            elif isinstance(inner, RecastOp):
                emitter = Emitter(inner)
                layout = inner.relayout(scalars.layout(emitter, inner.source))
                own = scalars_for(emitter, inner.result.type.layout.data, layout)
                emitter.replace([emitter.value(ViewOp(inner.source, None, inner.result.type, own))])
            elif isinstance(inner, MakeTensorOp):
                emitter = Emitter(inner)
                assert isinstance(inner.result.type, TensorType)
                emitter.replace([emitter.value(ViewOp(inner.source, None, inner.result.type, inner.scalars))])
            elif isinstance(inner, DimOp | StrideOp):
                emitter = Emitter(inner)
                integer = inner.integer(plain_layout(scalars.layout(emitter, inner.tensor)))
                emitter.replace([integer.value if isinstance(integer, SsaInt) else emitter.index(integer)])
            elif isinstance(inner, RasterizeOp):
                _fold_rasterize(inner)
            elif isinstance(inner, FragmentOp):
                emitter = Emitter(inner)
                emitter.replace([inner.described or emitter.value(_memory_of(inner))])
            elif isinstance(inner, GemmOp):
                emitter = Emitter(inner)
                atom, accumulate = inner.mma_atom, inner.accumulate
                emitter.insert(GemmOp(inner.a, inner.b, inner.c, inner.result, None, atom, accumulate, inner.scales))
                emitter.replace()
            elif isinstance(inner, CopyOp) and inner.tiled_copy is not None and inner.tma is None:
                emitter = Emitter(inner)
                made = CopyOp(
                    inner.src, inner.dst, None, inner.copy_atom, inner.pred, inner.mbarrier, None, inner.policy
                )
                emitter.insert(made)
                emitter.replace()
        coordinates.erase()
        leftover = (TiledCopyOp, TiledMmaOp, TensorMapOp, ViewOp, Crd2IdxOp, GetScalarsOp, *INDEX_ARITHMETIC)
        erase_unused([inner for inner in op.walk() if isinstance(inner, leftover)])


def _memory_of(op: FragmentOp) -> AllocOp | TensorAtOp:
    """The tensor that a fragment is: registers, or cells of tensor memory."""
    return AllocOp(op.result.type) if op.address is None else TensorAtOp(op.address, op.result.type)


def _fold_rasterize(op: RasterizeOp) -> None:
    emitter = Emitter(op)
    sizes = [SsaInt(emitter, size) if (known := constant_of(size)) is None else known for size in op.sizes]
    tile = op.tile(SsaInt(emitter, op.index), sizes)
    emitter.replace([part.value for part in tile])


def _fold_view(op: LayoutViewOp, scalars: Scalars) -> None:
    emitter = Emitter(op)
    assert isinstance(op.result.type, TensorType), "coordinate tensors are folded before"
    whole = op.relayout(scalars.layout(emitter, op.source))
    coord = op.coordinate(whole, [SsaInt(emitter, value) for value in op.coords])
    sliced = plain_layout(whole)
    offset = None
    if coord is not None:
        distance = add_index(emitter, *slice_index(emitter, coord, sliced))
        offset = emitter.index(distance) if isinstance(distance, int) and distance else distance or None
        sliced = sliced_layout(coord, sliced)
    own = scalars_for(emitter, op.result.type.layout.data, sliced)
    if offset is None and op.result.type == op.source.type and own == scalars.of(op.source):
        emitter.replace([op.source])
    else:
        emitter.replace([emitter.value(ViewOp(op.source, offset, op.result.type, own))])
