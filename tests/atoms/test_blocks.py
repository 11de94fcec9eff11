# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partitions that count blocks: the operands of an instruction of a pair of blocks (CuTe's mma_traits_sm100.hpp)."""

from dataclasses import replace

import pytest
from tilefold.base.errors import Code, LayoutError
from tilefold.base.spaces import SMEM, TMEM
from tilefold.base.target import targets
from tilefold.dialects import gpu
from tilefold.dialects.cute import LayoutAttr, TilerAttr
from tilefold.dialects.ptx.base import SpaceAttr
from tilefold.dialects.tile import (
    MmaAtomAttr,
    PartitionAOp,
    TensorType,
    TiledMmaOp,
    TiledMmaType,
)
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.contract import (
    Act,
    Agent,
    Contract,
    Counted,
    Major,
    Named,
    OnArrivals,
    Operand,
    Proxy,
    Role,
    Whose,
)
from tilefold.layout.atoms.instructions import Custom
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.numbers import MmaOperation, Products, Summed
from tilefold.layout.tiling.tiled_mma import make_tiled_mma
from xdsl.dialects.builtin import IndexType, IntAttr, f16
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum
from xdsl.ir import Block
from xdsl.utils.exceptions import VerifyException

M, N, K = 256, 256, 16


def pair() -> MmaAtom:
    """D = A * B + D of 256 x 256 x 16: each block has half of the rows of A and D, and half of the columns of B."""

    def operand(role: Role, element: str, act: Act, rows: int, columns: int, extent: int) -> Operand:
        layout = Layout((2, (rows, columns)), (extent, (1, 2 * extent if role is not Role.D else M)))
        space, named = (TMEM, Named.CELL) if role is Role.D else (SMEM, Named.DESCRIPTOR)
        proxy, done = Proxy.TENSOR if role is Role.D else Proxy.ASYNC, OnArrivals("tcgen05.commit")
        return Operand(role, element, (space,), named, Major.K, act, Whose.OWN, done, proxy, 16, layout)

    contract = Contract(
        agent=Agent.BLOCK_PAIR,
        counts=Counted.BLOCKS,
        ids=Layout(2, 1),
        operands=(
            operand(Role.D, "f32", Act.UPDATE, M // 2, N, M // 2),
            operand(Role.A, "f16", Act.READ, M // 2, K, M // 2),
            operand(Role.B, "f16", Act.READ, N // 2, K, N // 2),
        ),
        numbers=Products((M, N, K), MmaOperation.MULTIPLY_ADD, Summed.UNMEASURED),
        targets=targets(100, 86, "a"),
        instruction=Custom("tcgen05.mma.cta_group::2"),
        section="PTX ISA, TensorCore 5th Generation Family Instructions: tcgen05.mma",
    )
    return MmaAtom("SM100_256x256x16_F32F16F16_2SM_SS", contract)


def test_shapes_are_those_of_cute() -> None:
    """partition_shape_A, B and C of 256 x 256 x 64, as CuTe has them for SM100_MMA_F16BF16_2x1SM_SS."""
    mma = make_tiled_mma(pair())
    assert str(mma.thr_layout_vmnk) == "(2,1,1,1):(1,0,0,0)"
    assert mma.partition_shape("A", (256, 64)) == ((128, 16), 1, 4)
    assert mma.partition_shape("B", (256, 64)) == ((128, 16), 1, 4)
    assert mma.partition_shape("C", (256, 256)) == ((128, 256), 1, 1)


@pytest.mark.parametrize("block", [0, 1])
def test_each_block_has_its_rows(block: int) -> None:
    mma, whole = make_tiled_mma(pair()), Layout((256, 64), (64, 1))
    part, start = mma.partition_A(whole, block)
    places = sorted(start + part(i) for i in range(part.size))
    assert places == [64 * row + column for row in range(128 * block, 128 * block + 128) for column in range(64)]


def partition(of_thread: bool) -> PartitionAOp:
    """A part of A by the coordinate of a thread, or of a block."""
    attribute = MmaAtomAttr(pair())
    (type,) = TiledMmaOp.infer((), {"atom": attribute})
    assert isinstance(type, TiledMmaType)
    assert isinstance(type.permutation, TilerAttr)
    tensor = TensorType(f16, SpaceAttr(SMEM), IntAttr(128), LayoutAttr(Layout((256, 64), (64, 1))))
    mma, a, block = Block(arg_types=[type, tensor, IndexType()]).args
    index = gpu.ThreadIdOp(DimensionAttr(DimensionEnum.X)).result if of_thread else block
    made = PartitionAOp.inferred([mma, a, [index]], {})
    assert isinstance(made, PartitionAOp)
    return made


def test_the_index_of_a_part_is_that_of_a_block() -> None:
    op = partition(of_thread=False)
    op.verify_()
    assert op.sharing is None
    with pytest.raises((LayoutError, VerifyException)) as caught:
        partition(of_thread=True).verify_()
    assert "the parts belong to blocks" in str(caught.value)


def test_threads_and_blocks_are_told_apart() -> None:
    contract = pair().contract
    for changes in ({"counts": Counted.THREADS}, {"agent": Agent.WARP}):
        with pytest.raises(LayoutError) as caught:
            replace(contract, **changes)
        assert caught.value.code == Code.ATOM_INVALID.id
