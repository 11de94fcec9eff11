# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies: tensor maps, the coordinates that they take, and tiles by instructions.

One thread issues a TMA copy; the program elects it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import I16, I64, IndexType, IntAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...base.spaces import GMEM
from ...layout.algebra.compose import composition
from ...layout.algebra.core import Layout, LayoutLike, cosize, join, plain_layout
from ...layout.algebra.integers import Coord, is_static
from ...layout.algebra.inttuple import is_fully_static, leaves, product_each, transform_leaves
from ...layout.atoms.instructions import ROWS
from ...layout.tiling.copy_loops import with_outer
from ...layout.tma.partition import by_instructions
from ..cute import CoordAttr, LayoutAttr, TilerAttr
from ..definitions import irdl_op_definition, refuse, refusing, typed_operand
from ..ptx.address import MbarrierAddress
from ..ptx.base import GLOBAL, PtrType
from ..ptx.tma import TensorLoadOp, TensorPrefetchOp, TensorReduceOp, TensorStoreOp, TmaCopyOp
from .assembly import check_operands, fill_coordinate, unwrap
from .coord_type import CoordTensorType
from .directives import TileOp
from .results import InferringOp
from .tma_rules import (
    check_alignment,
    check_box,
    check_boxes,
    check_operands_of,
    cluster_around,
    split_by_instructions,
)
from .tma_types import TmaType, make_tma_copies
from .types import TensorType
from .view_base import RESULT, VIEWED, SlicedViewOp


@irdl_op_definition
class TensorMapOp(InferringOp):
    """`%a = tile.tensor_map "SM90_TMA_LOAD" %A smem "S<3,3,3> o 0 o (128,64):(64,1)" tiler "(128,64)"`: the map of a
    tensor in global memory, for TMA copies of tiles to or from shared memory (CuTe's make_tma_atom).

    The tensor is an argument of the kernel or a view of one whose integers are computed only from arguments: the launch
    makes the map, and checks the address of a view. `smem` is the layout of a tile in shared memory, `tiler` cuts the
    tile of the tensor; by default it is the shape of `smem`. With `... multicast 2`, and SM90_TMA_LOAD_MULTICAST, two
    blocks of a cluster load a part of each tile for both. With `... as "tf32"` the map has these elements, of as many
    bits as the tensor's: so loads round those of f32 to tf32, and reductions compare integers as `u32` and `u64` do.
    """

    name = "tile.tensor_map"
    kind = prop_def(StringAttr)
    tensor = typed_operand(TensorType)
    smem = prop_def(LayoutAttr)
    tiler = opt_prop_def(TilerAttr)
    multicast = opt_prop_def(IntegerAttr[I64])
    held = opt_prop_def(StringAttr)
    result = result_def(TmaType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Text>($kind) custom<Tensor>($tensor, type($tensor)) `smem` custom<Quoted>($smem) "
        "(`tiler` custom<Quoted>($tiler)^)? (`multicast` $multicast^)? (`as` $held^)? attr-dict "
        "custom<InferredTiling>(type($result))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        """Raises `LayoutError` if no map describes the tensor (E0322), or none moves the tile (E0323)."""
        (tensor,), smem, tiler = operand_types, properties["smem"], properties.get("tiler")
        kind, multicast = properties["kind"], properties.get("multicast")
        assert isinstance(tensor, TensorType)
        assert isinstance(smem, LayoutAttr)
        assert isinstance(kind, StringAttr)
        if tensor.space.data is not GMEM:
            raise LayoutError(
                Code.TENSOR_MAP,
                f"a tensor map describes a tensor in gmem, not in {tensor.space.data.name}",
                "give the tensor in global memory; smem is the layout of a tile",
            )
        if not isinstance(tiler, TilerAttr):
            tiler = TilerAttr(product_each(plain_layout(smem.data).shape))
        blocks = IntAttr(multicast.value.data if isinstance(multicast, IntegerAttr) else 1)
        layouts = tensor.layout.data, smem.data, tiler.data
        held = properties.get("held")
        assert held is None or isinstance(held, StringAttr)
        held = held or StringAttr("")
        _ = make_tma_copies(
            kind.data, tensor.element_type, *layouts, blocks.data, held.data
        )  # raises the errors that no type shows
        return [TmaType(kind, tensor.element_type, tensor.layout, smem, tiler, blocks, held)]

    def verify_(self) -> None:
        super().verify_()
        blocks = 1 if self.multicast is None else self.multicast.value.data
        if (size := cluster_around(self)) is not None and size % blocks:
            text = f"{blocks} blocks share the tiles of the map, but a cluster of the kernel has {size}"
            refuse(
                LayoutError(Code.TMA_OPERANDS, text, "the blocks of a multicast are those along a mode of the cluster")
            )


@irdl_op_definition
class TmaTensorOp(InferringOp):
    """`%c = tile.tma_tensor %a`: the coordinate tensor of a map: which coordinate of the map each element of its tensor
    has (CuTe's get_tma_tensor). The coordinates' integers are those of the map, the contiguous dimension first.
    """

    name = "tile.tma_tensor"
    tma = typed_operand(TmaType)
    result = result_def(CoordTensorType)
    traits = traits_def(Pure())
    assembly_format = "custom<TmaValue>($tma, type($tma)) attr-dict custom<Inferred>(type($result))"

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        (tma,) = operand_types
        assert isinstance(tma, TmaType)
        copy = tma.tma_copy
        return [CoordTensorType(CoordAttr((0,) * len(copy.basis)), LayoutAttr(copy.coordinates()))]

    @property
    def tensor(self) -> SSAValue[TensorType]:
        """The tensor of the map."""
        assert isinstance(self.tma.owner, TensorMapOp), "the verifier checks this"
        return self.tma.owner.tensor

    def coordinates(self, gmem: Layout) -> Layout:
        """The layout of the tensor, where that in global memory has the layout `gmem`."""
        return self.tma.type.tma_copy.coordinates(gmem)

    def verify_(self) -> None:
        if not isinstance(self.tma.owner, TensorMapOp):
            raise VerifyException("control flow carries no tensor maps: make the map before it")
        super().verify_()


@irdl_op_definition
class TmaPartitionOp(SlicedViewOp):
    """`%s = tile.tma_partition %a, %tiles, %rank in "2:1"`: tiles by instructions, ((TMA,TMA_Iter),Rest...), as the
    block at a coordinate of a multicast moves them (CuTe's tma_partition).

    The first mode of the tensor is a tile: in shared memory, or of `tile.tma_tensor`. The layout maps coordinates of
    blocks to their numbers in the multicast; without one it is `0 in "1:0"`. The block begins where its part of each
    instruction does. With `... in "1:0" tile "(64,64):(64,1)"` tiles are a part of the map's, which has this layout in
    shared memory.
    """

    name = "tile.tma_partition"
    SELECTS: ClassVar[str] = "the blocks of the multicast"
    tma = typed_operand(TmaType)
    coord = prop_def(CoordAttr)
    blocks = prop_def(LayoutAttr)
    tile = opt_prop_def(LayoutAttr)
    assembly_format = (
        f"custom<TmaValue>($tma, type($tma)) `,` {VIEWED} `,` custom<LinearCoordinate>($coord, $coords) `in` "
        f"custom<Plain>($blocks) (`tile` custom<Plain>($tile)^)? {RESULT}"
    )

    @classmethod
    def given(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Any:
        given = super().given(operand_types, properties)
        given.tma = operand_types[0]
        return given

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        (result,) = super().infer(operand_types, properties)
        tma = operand_types[0]
        assert isinstance(tma, TmaType)
        assert isinstance(result, TensorType | CoordTensorType)
        check_box(tma, result, result.layout.data[0][0])
        return [result]

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        copy, tile = given.tiling, given.tile or plain_layout(given.tma.smem.data)
        if cosize(given.blocks) != copy.multicast:
            raise LayoutError(
                Code.TMA_BOX,
                f"the layout {given.blocks} numbers {cosize(given.blocks)} blocks, the map's multicast is for "
                f"{copy.multicast}",
                "give a layout of the blocks that share the tiles",
            )
        if plain_layout(layout)[0].size != tile.size:
            raise LayoutError(
                Code.TMA_BOX,
                f"mode 0 has {plain_layout(layout)[0].size} elements, a tile of the copy {tile.size}",
                "group the modes of a tile to the first mode: tile.group_modes",
            )
        parts = by_instructions(copy, tile, layout)
        share = transform_leaves(lambda stride: stride * (copy.values // copy.multicast), given.blocks.stride)
        block = composition(plain_layout(parts)[0][0], Layout(given.blocks.shape, share))
        return with_outer(parts, join([block, plain_layout(parts)]))

    @classmethod
    def coordinate_by(cls, given: Any, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        return (unwrap(fill_coordinate(given.coord, values)), (None,) * given.modes_of_source)

    @classmethod
    def check_selection(cls, given: Any, coord: Any, shape: Any) -> None:
        """A coordinate beyond its mode selects a block that exists where the mode has the stride 0, as `1:0` does."""
        number = given.blocks(coord[0])
        if not is_static(number) or not 0 <= number < given.tiling.multicast:
            super().check_selection(given, coord, shape)

    def verify_(self) -> None:
        check_operands(self.coord.data, self.coords)
        super().verify_()


@irdl_op_definition
class CoordTensorOp(TileOp):
    """`%c = tile.coord_tensor (%m, %k) : !tile.coord_tensor<"(?,?) o (128,64):(1@1,1@0)">`: the coordinate tensor that
    begins at a coordinate, an integer for each of its start. The layout is static.

    Folding puts it in place of the views that lead to the coordinates of a TMA copy.
    """

    name = "tile.coord_tensor"
    start = var_operand_def(IndexType)
    result = result_def(CoordTensorType)
    traits = traits_def(Pure())
    assembly_format = "` ` `(` $start `)` attr-dict custom<Written>(type($result))"

    def __init__(self, start: Sequence[SSAValue], type: CoordTensorType):
        super().__init__(operands=[start], result_types=[type])

    def verify_(self) -> None:
        type = self.result.type
        assert isinstance(type, CoordTensorType)
        count = len(list(leaves(type.start.data)))
        if len(self.start) != count:
            raise VerifyException(f"the coordinates have {count} integers, but {len(self.start)} are given")
        if not is_fully_static((type.plain_layout.shape, type.plain_layout.stride)):
            raise VerifyException(f"the layout {type.plain_layout} is not static")


@irdl_op_definition
class PrefetchOp(TileOp):
    """`tile.prefetch %a, %tiles policy %p`: the L2 cache may fetch tiles of `tile.tma_tensor`, which are partitioned as
    for a copy; `tile.prefetch %a`: a cache may fetch the map itself.
    """

    name = "tile.prefetch"
    tma = typed_operand(TmaType)
    tiles = opt_operand_def(CoordTensorType)
    policy = opt_operand_def(I64)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "custom<TmaValue>($tma, type($tma)) (`,` custom<Coordinates>($tiles, type($tiles))^)? "
        "(`policy` custom<Operand>($policy)^)? attr-dict"
    )

    def __init__(self, tma: SSAValue, tiles: SSAValue | None = None, policy: SSAValue | None = None):
        super().__init__(operands=[tma, tiles, policy])

    def verify_(self) -> None:
        if self.tiles is None and self.policy is not None:
            raise VerifyException("the prefetch of a map has no cache policy")
        if self.tiles is not None:
            assert isinstance(self.tiles.type, CoordTensorType)
            with refusing():
                check_boxes(self.tma.type)
                _ = split_by_instructions(self.tma.type, self.tiles.type)


def coordinates_of(type: TmaType) -> int:
    """The coordinates that an instruction takes: one for each dimension of the map, or a column and four rows."""
    return 1 + ROWS if type.tma_copy.atom.by_rows else len(type.tma_copy.basis)


def instruction_of(
    type: TmaType,
    map: SSAValue,
    coords: Sequence[SSAValue],
    smem: SSAValue | None = None,
    mbarrier: SSAValue | None = None,
    multicast: SSAValue | None = None,
    policy: SSAValue | None = None,
) -> TmaCopyOp:
    """The instruction of `ptx` on a box at a coordinate of a map; without shared memory a prefetch."""
    copy = type.tma_copy
    if smem is None:
        return TensorPrefetchOp(map, coords, policy)
    if copy.loads:
        assert mbarrier is not None, "the verifiers check this"
        is_paired, by_rows = copy.atom.is_paired, copy.atom.by_rows
        return TensorLoadOp(map, coords, smem, mbarrier, multicast, policy, pair=is_paired, gather4=by_rows)
    if copy.atom.reduction:
        return TensorReduceOp(copy.atom.reduction, map, coords, smem, policy)
    return TensorStoreOp(map, coords, smem, policy, scatter4=copy.atom.by_rows)


@irdl_op_definition
class TmaCallOp(TileOp):
    """`tile.tma_call %a(%k, %m), %s mbarrier %bar multicast %mask policy %p`: one instruction of a TMA copy: the box
    at a coordinate of the map, to or from shared memory. Without `%s` it is a prefetch of the box.

    The thread that executes it issues it. `%s` is the part of shared memory of one instruction.

    With a map of single rows, as of SM100_TMA_LOAD_2D_GATHER4, the coordinates are a column and the numbers of four
    rows, `tile.tma_call %a(%j, %i0, %i1, %i2, %i3), %s mbarrier %bar`: their parts from the column on come one behind
    the other.
    """

    name = "tile.tma_call"
    custom_directives = (*TileOp.custom_directives, MbarrierAddress)
    tma = typed_operand(TmaType)
    coords = var_operand_def(IndexType)
    smem = opt_operand_def(TensorType)
    mbarrier = opt_operand_def(PtrType)
    multicast = opt_operand_def(I16)
    policy = opt_operand_def(I64)
    descriptor = opt_operand_def(GLOBAL)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "custom<TmaValue>($tma, type($tma)) `` `(` $coords `)` (`,` custom<Tensor>($smem, type($smem))^)? "
        "(`mbarrier` custom<MbarrierAddress>($mbarrier, type($mbarrier))^)? "
        "(`multicast` custom<Operand>($multicast)^)? "
        "(`policy` custom<Operand>($policy)^)? (`descriptor` custom<Operand>($descriptor)^)? attr-dict"
    )

    def __init__(
        self,
        tma: SSAValue,
        coords: Sequence[SSAValue],
        smem: SSAValue | None = None,
        mbarrier: SSAValue | None = None,
        multicast: SSAValue | None = None,
        policy: SSAValue | None = None,
        descriptor: SSAValue | None = None,
    ):
        super().__init__(operands=[tma, coords, smem, mbarrier, multicast, policy, descriptor])

    def verify_(self) -> None:
        type = self.tma.type
        rank = coordinates_of(type)
        if len(self.coords) != rank:
            takes = "takes a column and four rows" if type.tma_copy.atom.by_rows else f"has {rank} dimensions"
            raise VerifyException(f"the map {takes}, the coordinate {len(self.coords)}")
        with refusing():
            if self.smem is None:
                check_boxes(type)
                check_operands_of(self, None, self.mbarrier, self.multicast)
                return
            assert isinstance(self.smem.type, TensorType)
            check_operands_of(self, type, self.mbarrier, self.multicast)
            check_box(type, self.smem.type, self.smem.type.layout.data)
            check_alignment(type, self.smem.type, [])
