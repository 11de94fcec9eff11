# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the tensors that bulk copies move: runs of elements that are contiguous on both sides."""

from math import gcd

from xdsl.ir import SSAValue

from ...base.errors import Code, LayoutError
from ...base.spaces import SMEM
from ...layout.algebra.coalesce import steps
from ...layout.algebra.complement import complement
from ...layout.algebra.compose import composition
from ...layout.algebra.core import Layout, plain_layout, size
from ...layout.algebra.inverse import max_common_layout
from ...layout.atoms.bulk_copy import BULK_UNIT, bulk_copy
from .copy_rules import access_align, check_spaces
from .copy_types import CopyAtomAttr
from .tma_rules import check_mbarrier
from .types import TensorType


def bulk_runs(name: str, bits: int | None, *tensors: TensorType) -> tuple[Layout, Layout]:
    """The elements of one copy of `bits` bits, or of as many as can be, and the places where copies begin: each as a
    layout of coordinates that all tensors have, as one number (CuTe's copy by SM90_BULK_COPY_AUTO).

    Raises `LayoutError` if no run of elements that is contiguous in all tensors has `bits` bits, or a multiple of
    16 bytes (E0311), and where the addresses of runs are not known to be multiples of 16 (E0312).
    """
    layouts, width = [tensor.layout.data for tensor in tensors], tensors[0].element_bits
    common = max_common_layout(layouts[0], layouts[-1])
    count = common.size if bits is None else bits // width
    if count * width % (8 * BULK_UNIT) or common.size % count:
        required = f"multiples of {8 * BULK_UNIT // width}" if bits is None else f"{count}"
        raise LayoutError(
            Code.ATOM_NOT_CONTIGUOUS,
            f"{name} moves {required} adjacent elements, but {common.size} are adjacent in "
            f"{' and '.join(map(str, layouts))}",
            f"give tensors the same contiguous mode, in rows of a multiple of {BULK_UNIT} bytes",
        )
    run = composition(common, count)
    starts = complement(run, size(layouts[0]))
    for tensor in tensors:
        places = composition(plain_layout(tensor.layout.data), starts)
        step = gcd(steps(places) * width, 8 * access_align(tensor)) // 8
        if step % BULK_UNIT:
            raise LayoutError(
                Code.ATOM_MISALIGNED,
                f"{name} needs addresses aligned to {BULK_UNIT} bytes, but those in {tensor.space.data.name} are only "
                f"known to be aligned to {step}",
                f"promise a greater alignment, or let each row begin at a multiple of {BULK_UNIT} bytes",
            )
    return run, starts


def runs_of(atom: CopyAtomAttr, src: TensorType, dst: TensorType) -> tuple[Layout, Layout]:
    """The runs that an atom copies, as `bulk_runs` returns them."""
    return bulk_runs(atom.atom_name, atom.atom.bits, src, dst)


def size_atom(atom: CopyAtomAttr, count: int, dst: TensorType) -> CopyAtomAttr:
    """The atom that copies a number of elements at a time to a destination."""
    record = bulk_copy(dst.space.data is SMEM, count * dst.element_bits)
    return CopyAtomAttr.of(record, atom.value_type)


def check_bulk_operands(
    atom: CopyAtomAttr, src: TensorType, dst: TensorType, mbarrier: SSAValue | None, others: list[SSAValue]
) -> None:
    """Checks the operands of a bulk copy; it takes no `others`. Raises `LayoutError` naming the misfit."""
    name = atom.atom_name
    check_spaces(atom, src, dst)
    loads = dst.space.data is SMEM
    if loads == (src.space.data is SMEM):
        raise LayoutError(
            Code.ATOM_SPACE, f"{name} copies between gmem and smem, not from {src.space.data.name} to the same"
        )
    if others:
        raise LayoutError(
            Code.TMA_OPERANDS,
            f"{name} has no predicates, no mask of blocks and no descriptor",
            "put it under a condition, or copy by a tensor map: tile.tensor_map",
        )
    check_mbarrier(name, loads, mbarrier)
    _ = runs_of(atom, src, dst)
