# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the tensors that TMA copies move: shared memory and coordinates by the boxes of a map."""

from math import gcd, prod

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ...base.errors import Code, LayoutError
from ...base.spaces import SMEM
from ...layout.algebra.coalesce import coalesce, steps
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, join, plain_layout, size
from ...layout.algebra.integers import ScaledBasis, divisor
from ...layout.algebra.swizzle import Swizzle
from ...layout.atoms.contract import Role
from ...layout.tma.tensor_map import SHARED_ALIGNMENT
from ..kernel import kernel_of
from ..ptx.base import SHARED, SHARED_CLUSTER
from .assembly import AnyTensor
from .coord_type import CoordTensorType
from .copy_rules import split_atom_mode
from .tma_types import TmaType, map_element
from .types import TensorType

_PARTITION = "pass the results of tile.tma_partition by the same map"


def split_by_instructions(tma: TmaType, tensor: AnyTensor) -> tuple[LayoutLike, list[Layout]]:
    """The values of one instruction, with those of all blocks of a multicast, and the modes that count instructions.

    Raises `LayoutError` if the first mode of a tensor is not a partition of the map: it holds other values (E0310),
    other elements or another swizzle than the map's.
    """
    layout = tensor.layout.data
    split = split_atom_mode(layout, tma.tma_copy.values)
    if split is None:
        raise LayoutError(
            Code.ATOM_VALUES,
            f"an instruction moves {tma.tma_copy.values} values, but mode 0 of the tensor is {layout[0]}",
            _PARTITION,
        )
    check_box(tma, tensor, split[0])
    return split[0], [plain_layout(split[1]), *(plain_layout(layout)[i] for i in range(1, len(layout)))]


def check_box(tma: TmaType, tensor: AnyTensor, values: LayoutLike) -> None:
    """Raises `LayoutError` unless `values` of a tensor are those that an instruction moves, in its order."""
    copy, layout = tma.tma_copy, plain_layout(values)
    if isinstance(tensor, CoordTensorType):
        extents = [mode.size for mode in copy.basis]
        box = Layout(tuple(extents), tuple(ScaledBasis(1, (mode,)) for mode in range(len(extents))))
        if coalesce(layout) != coalesce(box):
            raise LayoutError(
                Code.TMA_BOX,
                f"an instruction moves the coordinates {coalesce(box)}, but the tensor has {coalesce(layout)}",
                f"take the tile of tile.tma_tensor that the map's tiler cuts, and {_PARTITION}",
            )
        return
    if tensor.space.data is not SMEM:
        raise LayoutError(
            Code.ATOM_SPACE,
            f"{tma.kind.data} moves tiles of smem, but the tensor is in {tensor.space.data.name}",
            "the other side must be a view of tile.tma_tensor",
        )
    if tensor.element_type != tma.element_type and map_element(tensor.element_type) != tma.element:
        raise LayoutError(
            Code.ATOM_VALUE_WIDTH, f"the map is of {tma.element_type}, shared memory of {tensor.element_type}"
        )
    expected, given = [_swizzle(layout) for layout in (tma.smem.data, tensor.layout.data)]
    if expected != given:
        raise LayoutError(
            Code.TMA_BOX,
            f"the map swizzles shared memory as {tma.smem.data}, the tensor as {tensor.layout.data}",
            "make the map with the layout of the tensor in shared memory",
        )
    rows_first = join([layout[i] for i in reversed(range(len(layout)))]) if copy.atom.by_rows else layout
    if Layout(copy.values, 1) not in (coalesce(layout), coalesce(rows_first)):
        raise LayoutError(
            Code.TMA_BOX,
            f"an instruction moves {copy.values} neighbours in shared memory, but the tensor has {coalesce(layout)}",
            "make the map with the layout of the tensor in shared memory",
        )


def check_alignment(tma: TmaType, tensor: TensorType, rest: list[Layout]) -> None:
    """Raises `LayoutError` (E0312) unless every instruction begins at an address that TMA takes, and shared memory
    where the swizzle's period of addresses does.
    """
    bits, layout = tma.tma_copy.swizzle_bits, tensor.layout.data
    period = SHARED_ALIGNMENT << bits
    if tensor.align.data % period:
        swizzled = f" with a swizzle of {16 << bits} bytes" if bits else ""
        raise LayoutError(
            Code.ATOM_MISALIGNED,
            f"a TMA copy{swizzled} needs shared memory aligned to {period} bytes, but the tensor is only known to "
            f"be aligned to {tensor.align.data}",
            f"allocate it with align<{period}>",
        )
    offset = divisor(layout.offset) if isinstance(layout, ComposedLayout) else 0
    step = gcd(offset, *map(steps, rest)) * tensor.element_bits // 8
    if step % SHARED_ALIGNMENT:
        raise LayoutError(
            Code.ATOM_MISALIGNED,
            f"TMA copies begin at multiples of {SHARED_ALIGNMENT} bytes, but only of {step} in {layout}",
            "let each tile of shared memory begin at a multiple of them",
        )


def check_boxes(tma: TmaType) -> None:
    """Raises `LayoutError` (E0324) for a map of single rows or of padded elements, which copies of tiles and prefetches
    do not take.
    """
    if tma.element.padded:
        text = f"copies of tiles do not pad elements of {tma.element.name} in shared memory"
        raise LayoutError(Code.TMA_OPERANDS, text, "copy boxes by ptx.cp.async.bulk.tensor.load, or do not pad")
    if tma.tma_copy.atom.by_rows:
        text = f"{tma.kind.data} moves rows by their numbers, not a tile"
        raise LayoutError(Code.TMA_OPERANDS, text, "name a column and four rows: tile.tma_call %a(%j, %i, ...), %s")


def check_tma_copy(tma: TmaType, src: AnyTensor, dst: AnyTensor) -> None:
    """Checks source and destination of a TMA copy. Raises `LayoutError` naming the misfit."""
    gmem, smem = (src, dst) if tma.tma_copy.loads else (dst, src)
    check_boxes(tma)
    if not isinstance(gmem, CoordTensorType) or not isinstance(smem, TensorType):
        sides = "from tile.tma_tensor to smem" if tma.tma_copy.loads else "from smem to tile.tma_tensor"
        raise LayoutError(Code.ATOM_SPACE, f"{tma.kind.data} copies {sides}", _PARTITION)
    (_, gmem_modes), (_, smem_modes) = split_by_instructions(tma, gmem), split_by_instructions(tma, smem)
    counts = [[size(mode) for mode in modes if size(mode) != 1] for modes in (gmem_modes, smem_modes)]
    if counts[0] != counts[1] or not all(type(count) is int for count in counts[0]):
        raise LayoutError(
            Code.ATOM_VALUES,
            f"the source and the destination of a TMA copy repeat instructions {counts[0]} and {counts[1]} times",
            "slice both at a tile",
        )
    check_alignment(tma, smem, smem_modes)


def _swizzle(layout: LayoutLike) -> Swizzle | None:
    if not isinstance(layout, ComposedLayout):
        return None
    assert isinstance(layout.inner, Swizzle), "the verifiers check this"
    return layout.inner


def cluster_around(op: Operation) -> int | None:
    """How many blocks a cluster of the kernel has that an operation is in; None if the launch says it."""
    kernel = kernel_of(op)
    return None if kernel is None or kernel.cluster_size is None else prod(kernel.cluster_size)


def check_mbarrier(kind: str, loads: bool, mbarrier: SSAValue | None, is_paired: bool = False) -> None:
    """Raises `LayoutError` (E0324) unless a copy that loads has an mbarrier, and another one has none: one of the
    block, or of either block of a pair.
    """
    places = (SHARED, SHARED_CLUSTER) if is_paired else (SHARED,)
    if mbarrier is not None and mbarrier.type not in places:
        raise LayoutError(
            Code.TMA_OPERANDS,
            f"{kind} counts its bytes on an mbarrier in shared memory, not at a {mbarrier.type}",
            "copies for a pair, by SM100_TMA_2SM_LOAD, take the place of ptx.pair.leader",
        )
    if loads != (mbarrier is not None):
        raise LayoutError(
            Code.TMA_OPERANDS,
            f"{kind} {'has no' if loads else 'does not take an'} mbarrier",
            "a load counts its bytes on an mbarrier: `mbarrier %bar`; a store is part of a bulk group, see "
            "ptx.cp.async.bulk.commit_group",
        )


def check_operands_of(
    op: Operation, tma: TmaType | None, mbarrier: SSAValue | None, multicast: SSAValue | None
) -> None:
    """Raises `LayoutError` (E0324) unless loads have an mbarrier and multicasts a mask of blocks that the cluster has,
    and no other copies do; a prefetch, without a map, has neither.
    """
    size = cluster_around(op)
    value = None if multicast is None else multicast.owner
    if size is not None and isinstance(value, ConstantOp) and isinstance(value.value, IntegerAttr):
        mask = value.value.value.data & 0xFFFF
        if mask >> size or not mask:
            raise LayoutError(
                Code.TMA_OPERANDS,
                f"the mask {mask:#06x} names {'blocks beyond' if mask else 'none of'} the {size} of a cluster",
                "bit i stands for the block of rank i",
            )
    atom = None if tma is None else tma.tma_copy.atom
    counted, shared = atom is not None and atom.contract.has(Role.BARRIER), atom is not None and atom.is_multicast
    kind = "a prefetch" if tma is None else tma.kind.data
    check_mbarrier(kind, counted, mbarrier, atom is not None and atom.is_paired)
    if shared != (multicast is not None):
        raise LayoutError(
            Code.TMA_OPERANDS,
            f"{kind} {'has no' if shared else 'does not take a'} mask of blocks",
            "a load by SM90_TMA_LOAD_MULTICAST names the blocks of the cluster that get its bytes: `multicast %mask`",
        )
