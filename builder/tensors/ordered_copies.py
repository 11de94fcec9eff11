# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies that a loop of plain accesses cannot express: between global memory and registers with a memory order (PTX
ISA, ld.relaxed, ld.acquire, st.release), to the shared memory of a block of the cluster (st.async), and from tensor
memory with a reduction (tcgen05.ld.red, sm_103a).
"""

from collections.abc import Iterator

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from ...base import spaces
from ...base.errors import Code, TilefoldError
from ...base.spaces import DSMEM, GMEM, RMEM, Space
from ...dialects.ptx import LoadAcquireOp, StAsyncOp, StoreReleaseOp, TensorLoadReducedOp
from ...dialects.tile import CopyAtomAttr
from ...dialects.tile.copy_rules import check_tiled_operands
from ...layout.algebra.core import make_layout, size
from ...layout.algebra.inttuple import rank
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.atoms.instructions import TmemLoad
from ...layout.atoms.tmem_copy import halves_apart
from ..scalars.casts import from_vector, in_vector
from ..scalars.dtypes import DTYPES
from ..scalars.values import wrap
from ..tracing.state import checked, emit, insert_value
from .allocation import emit_copy, make_rmem_tensor
from .memory_attributes import AccessOrder, PeerStores
from .modes import group_modes
from .pointers import make_tensor, recast_tensor
from .tensor_base import tensor_type
from .tensors import Tensor, address_of, remote

_LEAST = 8


def copy_ordered(
    atom: CopyAtomAttr,
    order: AccessOrder | PeerStores,
    src: Tensor,
    dst: Tensor,
    pred: object,
    mbarrier: object = None,
) -> None:
    """Copies a thread's part by loads or stores with a memory order, one for each execution of the atom; see
    `_store_to_peer` for those to the shared memory of another block, which `mbarrier` is for. They access
    words of 32 bits, or of the element's or the atom's bits where those are more, or fewer; an atom without a width
    accesses each element by itself.

    Raises TilefoldError (E5002) for predicates, unless one side is in global memory, the other in registers, as the
    order says, and for elements narrower than a byte by an atom without a width; also for tensors that the atom does
    not fit.
    """
    if pred is not None:
        hint = "put the copy of each part under an if"
        raise TilefoldError(Code.BUILD_VALUE, "a copy by instructions of its own has no predicates", hint)
    if isinstance(order, PeerStores):
        _store_to_peer(atom, src, dst, mbarrier)
        return
    sides = (GMEM, RMEM) if order.loads else (RMEM, GMEM)
    way = "global memory to registers" if order.loads else "registers to global memory"
    hint = "an atom of CopyG2ROp loads, one of CopyR2GOp stores"
    bits, element = _access_bits(atom, src, dst, sides, f"a copy with the order {order.word} moves from {way}", hint)
    if bits < _LEAST:
        text = f"a copy with a memory order accesses {_LEAST} bits or more at once, not {bits}"
        raise TilefoldError(Code.BUILD_VALUE, text, "give make_copy_atom num_bits_per_copy")
    width = min(bits, max(32, element))
    at_once = 1 if width == 64 else bits // width  # two words of 64 bits would be one access of 128, from sm_89 on
    if not order.loads:
        for whole, at in _stored(src, dst, width, at_once):
            emit(StoreReleaseOp(whole, at, scope=order.scope, relaxed=order.is_relaxed))
        return
    own = make_rmem_tensor(size(tensor_type(src).layout.data), src.element_type)
    words = recast_tensor(own, DTYPES[f"Uint{width}"])
    for first, at in _places(src, width, at_once):
        _load(order, at, words, first, at_once)
    emit_copy(_shaped(own, dst), dst, None)


def _store_to_peer(atom: CopyAtomAttr, src: Tensor, dst: Tensor, mbarrier: object) -> None:
    """Begins the stores of a thread's registers to the shared memory of a block of the cluster, one for each execution
    of the atom, or for each element by an atom without a width. An mbarrier of that block counts the bytes.

    Raises TilefoldError (E5002) without an mbarrier, for other memories, and for executions of other than 32, 64 or 128
    bits; also for tensors that the atom does not fit.
    """
    if mbarrier is None:
        hint = "give copy mbar_ptr=cute.arch.mapa(mbarrier, rank)"
        raise TilefoldError(Code.BUILD_VALUE, "an mbarrier of the other block counts the bytes of the stores", hint)
    hint = "cute.arch.mapa maps a tensor to a block of the cluster"
    way = "the stores go from registers to another block"
    bits, element = _access_bits(atom, src, dst, (RMEM, DSMEM), way, hint)
    if bits not in (32, 64, 128):
        hint = "give make_copy_atom num_bits_per_copy"
        raise TilefoldError(Code.BUILD_VALUE, f"st.async stores 32, 64 or 128 bits at once, not {bits}", hint)
    width = max(32, element)
    for whole, at in _stored(src, dst, width, bits // width):
        emit(StAsyncOp(whole, at, remote(mbarrier).ssa))


def _access_bits(
    atom: CopyAtomAttr, src: Tensor, dst: Tensor, sides: tuple[Space, Space], way: str, hint: str
) -> tuple[int, int]:
    """The bits of an execution, those of an element by an atom without a width, and the bits of an element in memory.
    TilefoldError (E5002), which says the `way` that such copies go, for other memories than the two `sides`; also for
    tensors that the atom does not fit.
    """
    given = [tensor_type(side).space.data for side in (src, dst)]
    if tuple(given) != sides:
        text = f"{way}, not from {given[0].name} to {given[1].name}"
        raise TilefoldError(Code.BUILD_VALUE, text, hint)
    with checked():
        check_tiled_operands(atom, tensor_type(src), tensor_type(dst))
    element = tensor_type(dst if sides[0] is RMEM else src).element_bits
    return atom.atom.ref_bits[1].size if atom.atom.max_bits is None else element, element


def _places(memory: Tensor, width: int, at_once: int) -> Iterator[tuple[int, SSAValue]]:
    """The first word of each access to a tensor, of `at_once` words of a width in bits, and its address."""
    flat, element = group_modes(memory, 0), tensor_type(memory).element_bits
    for first in range(0, size(tensor_type(memory).layout.data) * element // width, at_once):
        yield first, flat.ptr(first * width // element).ssa


def _stored(src: Tensor, dst: Tensor, width: int, at_once: int) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The words that each access stores, a vector of several, and its address."""
    own = make_rmem_tensor(size(tensor_type(dst).layout.data), dst.element_type)
    emit_copy(src, _shaped(own, src), None)
    words = recast_tensor(own, DTYPES[f"Uint{width}"])
    for first, at in _places(dst, width, at_once):
        each = [words[index].ssa for index in range(first, first + at_once)]
        yield each[0] if at_once == 1 else in_vector(each), at


def _load(order: AccessOrder, at: SSAValue, words: Tensor, first: int, count: int) -> None:
    """Loads `count` words into those of the registers from `first` on."""
    dtype, indices = words.element_type, range(first, first + count)
    type = dtype.ir if count == 1 else VectorType(dtype.ir, [count])
    loaded = emit(LoadAcquireOp(at, type, order.scope, order.is_relaxed)).results[0]
    for index, word in zip(indices, [loaded] if count == 1 else from_vector(loaded, count), strict=True):
        words[index] = wrap(word, dtype)


def _shaped(own: Tensor, like: Tensor) -> Tensor:
    """Registers in the modes of a tensor, the first one the fastest."""
    return make_tensor(own.iterator, make_layout(tensor_type(like).layout.data.shape))


_BITS = 32


def load_reduced(atom: CopyAtom, reduction: str, src: Tensor, dst: object) -> None:
    """Copies a thread's part of tensor memory to `dst`, a fragment of its values and one with a value for each
    execution, which gets the reduction of the lane's values.

    Raises TilefoldError (E5002) for other operands, or values of other than 32 bits.
    """
    match atom.instruction, dst:
        case TmemLoad(shape, num, False), (Tensor() as held, Tensor() as reduced):
            pass
        case _:
            text = "a load that reduces needs two fragments: one for values, and one for each execution's reduction"
            raise TilefoldError(Code.BUILD_VALUE, text, "cute.copy(tiled, src, (values, reduced))")
    dtype, number = held.element_type, 1
    if dtype.bits != _BITS or tensor_type(src).space.data is not spaces.TMEM:
        raise TilefoldError(Code.BUILD_VALUE, f"a load that reduces does not support {dtype}", "such as Float32")
    kind = f"{reduction}.f32" if dtype.kind == "float" else f"{reduction}.{'s32' if dtype.signed else 'u32'}"
    source, values = (group_modes(x, 1) if rank(x.shape) > 1 else x for x in (src, held))
    count = size(tensor_type(values).layout.data[0])
    number = size(tensor_type(values).layout.data[1]) if rank(values.shape) > 1 else 1
    for execution in range(number):
        part = source[None, execution] if rank(source.shape) > 1 else source
        op = TensorLoadReducedOp(shape, num, kind, address_of(part.iterator).ssa, halves_apart(shape, num, False))
        emit(op)
        words = op.result
        if dtype.kind == "float":
            words = insert_value(vector.BitcastOp(words, VectorType(dtype.ir, [count])))
        for index, word in enumerate(from_vector(words, count)):
            values[(index, execution) if rank(values.shape) > 1 else index] = wrap(word, dtype)
        reduced[execution] = wrap(op.reduced, dtype)
