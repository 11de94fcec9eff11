# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled MMAs, and a thread's part of the operands under one (CuTe's mma_atom.hpp)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from xdsl.ir import Attribute
from xdsl.irdl import opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from ...base.errors import Code, LayoutError
from ...base.spaces import SMEM
from ...layout.algebra.core import Layout, LayoutLike, Tiler, cosize, plain_layout
from ...layout.algebra.integers import Coord
from ...layout.algebra.inttuple import rank
from ...layout.atoms.contract import Named
from ...layout.tiling.partition import check_tiler
from ...layout.tiling.tiled_mma import make_tiled_mma
from ..cute import LayoutAttr, TilerAttr
from ..definitions import irdl_op_definition, typed_operand
from .divisibility import Remedies, check_tiles
from .mma_types import MmaAtomAttr, TiledMmaType
from .results import InferringOp
from .threads import ThreadViewOp
from .types import TensorType
from .view_base import RESULT, VIEWED


@irdl_op_definition
class TiledMmaOp(InferringOp):
    """A tiled MMA: an atom repeated over threads, and over values as far as the permutation says (CuTe's
    make_tiled_mma).

    `tile.tiled_mma #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN"> atoms "(2,2,1):(1,2,4)" permute "(32,32,16)"`: four
    warps multiply tiles of 32 x 32 x 16. Without `atoms` there is one atom, without `permute` the tile is the extent
    that the threads cover. An entry of the permutation is a size, a layout or `_`: `"[(8,2,2):(1,16,8);_;_]"`.
    """

    name = "tile.tiled_mma"
    atom = prop_def(MmaAtomAttr)
    atoms = opt_prop_def(LayoutAttr)
    permute = opt_prop_def(TilerAttr)
    result = result_def(TiledMmaType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<MmaAtom>($atom) custom<Marked>() (`atoms` custom<Quoted>($atoms)^)? "
        "(`permute` custom<Quoted>($permute)^)? attr-dict custom<InferredTiling>(type($result))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        atom, atoms, permute = (properties.get(name) for name in ("atom", "atoms", "permute"))
        assert isinstance(atom, MmaAtomAttr)
        layout = atoms.data if isinstance(atoms, LayoutAttr) else None
        if layout is not None and not isinstance(layout, Layout):
            raise LayoutError(Code.COMPOSED_UNSUPPORTED, "the atom layout is a plain layout, without a swizzle")
        tile: Tiler = ()
        if isinstance(permute, TilerAttr):
            tile = permute.data
            check_tiler(tile, "the permutation of a tiled MMA")
        made = make_tiled_mma(atom.atom, layout, cast("Sequence[Tiler]", tile) if isinstance(tile, tuple) else (tile,))
        return [TiledMmaType(atom, LayoutAttr(made.atom_layout), TilerAttr(made.permutation))]


class _PartitionOp(ThreadViewOp):
    """A view through a tiled MMA: `tile.xyz %mma, %tensor, %thread : type`."""

    OPERAND: ClassVar[str]
    tiled_mma = typed_operand(TiledMmaType)
    assembly_format = (
        f"custom<TiledMmaValue>($tiled_mma, type($tiled_mma)) `,` {VIEWED} `,` custom<Operand>($coords) "
        f"(`ragged` $ragged^)? {RESULT}"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        """Raises `LayoutError` (E0314) also where an instruction would read beyond shared memory: the part of the first
        thread, or of the first block of a pair.
        """
        mma, tensor = operand_types[:2]
        assert isinstance(mma, TiledMmaType)
        if not isinstance(tensor, TensorType) or tensor.space.data is not SMEM or not _is_described(mma, cls.OPERAND):
            return super().infer(operand_types, properties)
        tiler = mma.tiled_mma.tiler(cls.OPERAND)
        whole = Remedies(ragged="take a tile of whole instructions, which read all of their operands")
        if "ragged" not in properties:
            check_tiles(tensor.layout.data, tiler, whole)
        (made,) = super().infer(operand_types, properties)
        assert isinstance(made, TensorType)
        if cosize(plain_layout(made.layout.data)) > cosize(plain_layout(tensor.layout.data)):
            check_tiles(tensor.layout.data, tiler, whole)
        return [made]

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        cls.check_tiles(given, layout, given.tiling.tiler(cls.OPERAND))
        return given.tiling.tidfrg(cls.OPERAND, layout)

    @classmethod
    def coordinate_by(cls, given: Any, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        (thread,) = values
        return (thread, (None, (None,) * rank(layout[1][1].shape)))


def _is_described(mma: TiledMmaType, operand: str) -> bool:
    """Whether the instruction reads all of an operand by a descriptor."""
    return mma.atom.atom.operand(operand).named is Named.DESCRIPTOR


@irdl_op_definition
class PartitionAOp(_PartitionOp):
    """`tile.partition_A %mma, %tensor, %thread`: the thread's part of A (M,K,...): (MMA,MMA_M,MMA_K,...).

    The first mode holds the values of one execution of the atom, the others the executions.
    """

    name = "tile.partition_A"
    OPERAND: ClassVar[str] = "A"


@irdl_op_definition
class PartitionBOp(_PartitionOp):
    """`tile.partition_B %mma, %tensor, %thread`: the thread's part of B (N,K,...): (MMA,MMA_N,MMA_K,...)."""

    name = "tile.partition_B"
    OPERAND: ClassVar[str] = "B"


@irdl_op_definition
class PartitionCOp(_PartitionOp):
    """`tile.partition_C %mma, %tensor, %thread`: the thread's part of C (M,N,...): (MMA,MMA_M,MMA_N,...)."""

    name = "tile.partition_C"
    OPERAND: ClassVar[str] = "C"
