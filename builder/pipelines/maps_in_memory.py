# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps that a kernel makes in memory, of tensors whose addresses it computes (`cute.experimental`).

The launch makes the maps of a kernel's arguments. A map of another tensor lies in global memory that the caller gives,
a workspace, where each block has a place for each such tensor of the text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from ...base.errors import Code, TilefoldError
from ...dialects import ptx
from ...dialects.tile import TensorType
from ...dialects.tile.directives import TileOp
from ..control.control_functions import if_
from ..instructions.arch import block_idx, cp_async_bulk_commit_group, cp_async_bulk_wait_group, grid_dim, sync_warp
from ..instructions.warp import elect_one
from ..scalars.dtypes import Int32, Int64, dtype_of
from ..scalars.values import Int, convert
from ..tensors.allocation import make_rmem_tensor
from ..tensors.tensors import Address, Tensor, address_of
from ..tensors.tma import TmaAtom, TmaInfo
from ..tracing.state import current
from .tensor_map_manager import copy_tensormap, fence_tma_desc_acquire, fence_tma_desc_release

T = TypeVar("T")


def is_computed(tensor: Tensor) -> bool:
    """Whether the launch cannot make a map of a tensor, since the kernel computes its address or its layout from more
    than arguments.
    """
    builder = current()
    arguments = {builder.root, None if builder.host is None else builder.host.block}
    pending: list[SSAValue] = [tensor.ssa]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Block):
            if owner not in arguments:
                return True
        elif owner.name.startswith("arith.") or (isinstance(owner, TileOp) and owner.has_trait(Pure)):
            pending += owner.operands
        else:
            return True
    return False


def place_of_map(count: int = 1, number: Int | int = 0) -> Address:
    """One of `count` new places for a map, which are the block's own: that of a `number`. TilefoldError (E5002) where
    nobody can give the memory.
    """
    host = current().host
    if host is None:
        raise TilefoldError(
            Code.BUILD_VALUE,
            "the map of a tensor whose address the kernel computes lies in memory that a compiled function is given",
            "launch the kernel in a function for cute.experimental.compile, and see QueryDeviceWorkspaceFunc",
        )
    workspace, first = host.places_of_maps(count)
    (x, y, z), (columns, rows, slices) = block_idx(), grid_dim()
    place = (number + first) * convert(columns * rows * slices, Int64) + x + columns * (y + rows * z)
    assert isinstance(workspace.type, TensorType)
    bytes = Tensor(workspace, dtype_of(workspace.type.element_type))
    return address_of(bytes.iterator + place * ptx.MAP_BYTES)


@dataclass(frozen=True)
class LoadedMap:
    """The map of a tensor from which a warp loads tiles, in one of several places, by turns: loads may still read the
    map that was written before. A load with an mbarrier is in no group for which its thread could wait (PTX ISA,
    cp.async.bulk.commit_group). But as many loads as shared memory has stages are in flight at a time, so of one place
    more than stages the oldest is free.
    """

    info: TmaInfo
    place: Address
    turn: Tensor
    now: Int

    @classmethod
    def written(cls, info: TmaInfo, stages: int) -> "LoadedMap":
        """Writes the map of an atom to the place whose turn it is."""
        turn = at_start(_zero)
        now = turn[0]
        place = place_of_map(stages + 1, now % (stages + 1))
        write_map(info.atom, place)
        return cls(info, place, turn, now)

    def loads(self) -> None:
        """Says that a load reads the map, so that the next map has another place."""
        self.turn[0] = self.now + 1


def _zero() -> Tensor:
    made = make_rmem_tensor(1, Int32)
    made[0] = 0
    return made


def write_map(atom: TmaAtom, place: Address) -> None:
    """Writes the map of an atom, for the copies of the warp that calls it. Its earlier copies have read their maps when
    they are complete (CUTLASS, sm90_mma_array_tma_gmma_ss_warpspecialized.hpp: tensormaps_cp_fence_release).
    """
    cp_async_bulk_commit_group()
    cp_async_bulk_wait_group(0, read=True)

    def write() -> None:
        copy_tensormap(atom, place)
        fence_tma_desc_release()

    if_(elect_one(), write)
    sync_warp()
    fence_tma_desc_acquire(place)


def at_start(make: Callable[[], T]) -> T:
    """The result of `make`, which is called as if at the beginning of the kernel."""
    root = current().root
    assert root is not None, "a kernel is being built"
    result, ops = _detached(make)
    Rewriter.insert_op(ops, InsertPoint.at_start(root))
    return result


def once_defined(tensor: Tensor, make: Callable[[], T]) -> T:
    """The result of `make`, which is called as if right after the definition of a tensor. TilefoldError (E5002) for a
    tensor that all warps define, each of which would write a map.
    """
    owner = tensor.ssa.owner
    is_argument = isinstance(owner, Block)
    if (owner if is_argument else owner.parent) is current().root:
        raise TilefoldError(
            Code.BUILD_VALUE,
            "each warp would write the tensor map of this tensor, whose address the kernel computes",
            "call cute.make_tensor in the branch of the warp that loads",
        )
    result, ops = _detached(make)
    Rewriter.insert_op(ops, InsertPoint.at_start(owner) if is_argument else InsertPoint.after(owner))
    return result


def _detached(make: Callable[[], T]) -> tuple[T, list[Operation]]:
    """The result of a function, and the operations that it adds, which are in no block."""
    block = Block()
    with current().inside(block):
        result = make()
    ops = list(block.ops)
    for op in ops:
        op.detach()
    return result, ops
