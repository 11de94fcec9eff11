# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies between global memory and registers with a memory order (PTX ISA, ld.relaxed, ld.acquire, st.release)."""

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...base.spaces import GMEM, RMEM
from ...dialects.ptx import LoadAcquireOp, StoreReleaseOp
from ...dialects.tile import CopyAtomAttr
from ...dialects.tile.copy_rules import check_tiled_operands
from ...layout.algebra.core import make_layout, size
from ..scalars.casts import from_vector, in_vector
from ..scalars.dtypes import DTYPES
from ..scalars.values import wrap
from ..tracing.state import checked, emit
from .allocation import emit_copy, make_rmem_tensor
from .memory_attributes import AccessOrder
from .modes import group_modes
from .pointers import make_tensor, recast_tensor
from .tensor_base import tensor_type
from .tensors import Tensor

_LEAST = 8


def copy_ordered(atom: CopyAtomAttr, order: AccessOrder, src: Tensor, dst: Tensor, pred: object) -> None:
    """Copies a thread's part by loads or stores with a memory order, one for each execution of the atom. They access
    words of 32 bits, or of the element's or the atom's bits where those are more, or fewer; an atom without a width
    accesses each element by itself.

    Raises TilefoldError (E5002) for predicates, unless one side is in global memory, the other in registers, as the
    order says, and for elements narrower than a byte by an atom without a width; also for tensors that the atom does
    not fit.
    """
    if pred is not None:
        hint = "put the copy of each part under an if"
        raise TilefoldError(Code.BUILD_VALUE, "a copy with a memory order has no predicates", hint)
    memory = src if order.loads else dst
    spaces = tuple(tensor_type(side).space.data for side in (src, dst))
    if spaces != ((GMEM, RMEM) if order.loads else (RMEM, GMEM)):
        way = "global memory to registers" if order.loads else "registers to global memory"
        text = f"a copy with the order {order.word} moves from {way}, not from {spaces[0].name} to {spaces[1].name}"
        raise TilefoldError(Code.BUILD_VALUE, text, "an atom of CopyG2ROp loads, one of CopyR2GOp stores")
    with checked():
        check_tiled_operands(atom, tensor_type(src), tensor_type(dst))
    element = tensor_type(memory).element_bits
    bits = atom.atom.ref_bits[1].size if atom.atom.max_bits is None else element
    if bits < _LEAST:
        text = f"a copy with a memory order accesses {_LEAST} bits or more at once, not {bits}"
        raise TilefoldError(Code.BUILD_VALUE, text, "give make_copy_atom num_bits_per_copy")
    count, width = size(tensor_type(memory).layout.data), min(bits, max(32, element))
    flat, own = group_modes(memory, 0), make_rmem_tensor(count, memory.element_type)
    words = recast_tensor(own, DTYPES[f"Uint{width}"])
    if not order.loads:
        emit_copy(src, _shaped(own, src), None)
    at_once = 1 if width == 64 else bits // width  # two words of 64 bits would be one access of 128, from sm_89 on
    for first in range(0, count * element // width, at_once):
        _access(order, flat.ptr(first * width // element).ssa, words, first, at_once)
    if order.loads:
        emit_copy(_shaped(own, dst), dst, None)


def _access(order: AccessOrder, at: SSAValue, words: Tensor, first: int, count: int) -> None:
    """Loads or stores `count` words, which are those of the registers from `first` on."""
    dtype, indices = words.element_type, range(first, first + count)
    if not order.loads:
        each = [words[index].ssa for index in indices]
        whole = each[0] if count == 1 else in_vector(each)
        emit(StoreReleaseOp(whole, at, scope=order.scope, relaxed=order.is_relaxed))
        return
    type = dtype.ir if count == 1 else VectorType(dtype.ir, [count])
    loaded = emit(LoadAcquireOp(at, type, order.scope, order.is_relaxed)).results[0]
    for index, word in zip(indices, [loaded] if count == 1 else from_vector(loaded, count), strict=True):
        words[index] = wrap(word, dtype)


def _shaped(own: Tensor, like: Tensor) -> Tensor:
    """Registers in the modes of a tensor, the first one the fastest."""
    return make_tensor(own.iterator, make_layout(tensor_type(like).layout.data.shape))
