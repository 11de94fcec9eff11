# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk copies of tensors between global and shared memory (CuTe's copy_traits_sm90_tma.hpp, SM90_BULK_COPY_G2S and
SM90_BULK_COPY_S2G): the thread begins a copy for each run of elements that are contiguous on both sides.
"""

from dataclasses import dataclass
from typing import Any

from ....base.errors import Code, TilefoldError
from ....dialects import ptx
from ....layout.algebra.complement import complement
from ....layout.algebra.compose import composition
from ....layout.algebra.core import Layout, size
from ....layout.algebra.inverse import max_common_layout
from ..scalars.dtypes import DType, Int32
from ..scalars.values import convert
from ..tracing.state import emit
from .coordinates import check_static
from .nvgpu import BulkCopyOp, CopyBulkG2SOp
from .tensors import Tensor, address_of
from .views import as_tensor


@dataclass(frozen=True)
class BulkAtom:
    """A bulk copy of elements of a type, up to `bits` of them at a time. `copy` takes it."""

    op: BulkCopyOp
    dtype: DType
    bits: int | None = None


def bulk_copy(atom: BulkAtom, src: Any, dst: Any, barrier: Any, *others: object) -> None:
    """Begins the copies of a tensor, by each thread that calls it; a load counts its bytes on the mbarrier.

    Raises TilefoldError for other memory or elements, extents that are known at run time only, and where no multiple of
    16 bytes is contiguous on both sides (E5002).
    """
    if any(given is not None for given in others):
        raise _refused("a bulk copy has nothing beside an mbarrier", "write cute.copy(atom, src, dst, mbar_ptr=...)")
    source, target = as_tensor(src), as_tensor(dst)
    loads = isinstance(atom.op, CopyBulkG2SOp)
    spaces = source.memspace, target.memspace
    if spaces != (("gmem", "smem") if loads else ("smem", "gmem")):
        raise _refused(f"{type(atom.op).__name__} copies from {spaces[0]} to {spaces[1]}", "see cute.copy")
    if {source.element_type, target.element_type} != {atom.dtype}:
        types = f"{source.element_type} to {target.element_type}"
        raise _refused(f"a copy of {atom.dtype} is given tensors of {types}", "recast one of them")
    if (barrier is None) == loads:
        which = "has an mbarrier that counts its bytes" if loads else "has none; it is part of the thread's bulk group"
        raise _refused(f"{type(atom.op).__name__} {which}", "write cute.copy(atom, src, dst, mbar_ptr=...)")
    for tensor in (source, target):
        check_static(tensor.shape, "bulk copies are of static extents, but this is")
    run, rest = _runs(source, target, atom)
    bytes = convert(run * atom.dtype.bits // 8, Int32).ssa
    for number in range(rest.size):
        place = rest(number)
        to, start = address_of(target.ptr(place)).ssa, address_of(source.ptr(place)).ssa
        if loads:
            emit(ptx.BulkLoadOp(to, start, bytes, address_of(barrier).ssa))
        else:
            emit(ptx.BulkStoreOp(to, start, bytes))


def _runs(source: Tensor, target: Tensor, atom: BulkAtom) -> tuple[int, Layout]:
    """The elements of a run, and the coordinates, as one number each, at which runs begin."""
    layouts = source.type.layout.data, target.type.layout.data
    if size(layouts[0]) != size(layouts[1]):
        raise _refused(f"{layouts[0]} has other extents than {layouts[1]}", "pass tensors of one shape")
    common = max_common_layout(*layouts)
    count, unit = common.size, ptx.BULK_UNIT * 8 // atom.dtype.bits
    if atom.bits is not None and atom.bits < count * atom.dtype.bits:
        count = atom.bits // atom.dtype.bits
    if count == 0 or count % unit or common.size % count:
        held = f"{count} elements of {atom.dtype} are contiguous in both {layouts[0]} and {layouts[1]}"
        raise _refused(held, f"bulk copies move multiples of {unit} of them, {ptx.BULK_UNIT} bytes")
    return count, complement(composition(common, count), size(layouts[0]))


def _refused(message: str, hint: str) -> TilefoldError:
    return TilefoldError(Code.BUILD_VALUE, message, hint)
