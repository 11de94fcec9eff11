# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads from tensor memory that also reduce the registers of each lane to one (tcgen05.ld.red, sm_103a)."""

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType

from ...base import spaces
from ...base.errors import Code, TilefoldError
from ...dialects.ptx import TensorLoadReducedOp
from ...layout.algebra.core import size
from ...layout.algebra.inttuple import rank
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.atoms.instructions import TmemLoad
from ...layout.atoms.tmem_copy import halves_apart
from ..scalars.casts import from_vector
from ..scalars.values import wrap
from ..tracing.state import emit, insert_value
from .modes import group_modes
from .tensor_base import tensor_type
from .tensors import Tensor, address_of

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
            text = "a load that reduces has two fragments: one for the values, one for a reduction of each execution"
            raise TilefoldError(Code.BUILD_VALUE, text, "cute.copy(tiled, src, (values, reduced))")
    dtype, number = held.element_type, 1
    if dtype.bits != _BITS or tensor_type(src).space.data is not spaces.TMEM:
        raise TilefoldError(Code.BUILD_VALUE, f"a load that reduces has no values of {dtype}", "such as Float32")
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
