# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications of tensors by a tiled MMA or an atom (CuTe's gemm.hpp)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import OpResult, SSAValue
from xdsl.traits import Pure

from ...base.element_types import BY_PTX
from ...base.errors import Code, TilefoldError
from ...base.spaces import TMEM
from ...dialects.element_types import ir_types
from ...dialects.ptx import TENSOR, IntToPtrOp, TensorMmaOp, TensorMmaScaledOp
from ...dialects.ptx.tcgen05.mma import TensorMmaBase
from ...dialects.tile import AllocOp, GemmOp, MmaAtomAttr
from ...dialects.tile.fragments import CELL_BYTES
from ...layout.algebra.core import Layout
from ...layout.atoms.contract import Role
from ...layout.atoms.instructions import Umma
from ...layout.atoms.umma import ULTRA_K
from ...layout.atoms.umma_encoding import SCALE_IDS, instruction_descriptor_of
from ...layout.tmem.cells import WITHIN_CELL
from ...layout.tmem.fragments import place_factors
from ..scalars.dtypes import Boolean, Int32, dtype_of
from ..scalars.values import convert
from ..tracing.state import emit
from .descriptors import MatrixDescriptor
from .mma_atoms import ScaledAtom, WarpgroupAtom
from .nvgpu import MmaUniversalOp
from .pointers import make_tensor
from .tensor_base import tensor_type
from .tensors import tensor_at
from .tiled_mma import ThrMma, TiledMma, atom_of

ONE_THREAD = "one_thread"
"""The attribute of a multiplication for which a thread has yet to be elected."""


def _with_scales(operand: object) -> tuple[Any, ...]:
    """A fragment, or a fragment and its scales."""
    return tuple(cast("Sequence[Any]", operand)) if isinstance(operand, list | tuple) else (operand,)


def _factors(mma: TiledMma) -> list[SSAValue]:
    """The scale factors of one execution of tcgen05.mma, from the addresses on that the fields have; none of an atom
    without them.
    """
    atom, found = mma.type.atom.atom, list[SSAValue]()
    if not atom.has_scales:
        return found
    dtype = dtype_of(ir_types(BY_PTX[atom.contract.operand(Role.SCALE_A).element])[0])
    for operand, place in (("A", mma.scales_a), ("B", mma.scales_b)):
        if type(place) is int:
            raise _lacks_scales(atom.name)
        values = place_factors(atom, operand)[-1]
        start = tensor_at(convert(place, Int32), dtype, TMEM.name, CELL_BYTES).iterator
        found.append(make_tensor(start, Layout((values.shape, 1, 1), (values.stride, 0, 0))).ssa)
    return found


def _is_same(a: SSAValue, b: SSAValue) -> bool:
    """Whether two values are one, or the same views of one: operations that are equal and without effects."""
    if a is b or not isinstance(a, OpResult) or not isinstance(b, OpResult):
        return a is b
    first, second = a.op, b.op
    return (
        type(first) is type(second)
        and a.index == b.index
        and first.properties == second.properties
        and a.type == b.type
        and first.has_trait(Pure)
        and not isinstance(first, AllocOp)
        and len(first.operands) == len(second.operands)
        and all(map(_is_same, first.operands, second.operands))
    )


def _multiply_described(mma: TiledMma, d: Any, a: MatrixDescriptor, b: MatrixDescriptor) -> None:
    """One execution of tcgen05.mma whose descriptors of A and B are given; D is updated."""
    atom = mma.type.atom.atom
    facts = atom.instruction
    assert isinstance(facts, Umma)
    idesc = convert(replace(instruction_descriptor_of(atom), is_k96=atom.shape[2] == ULTRA_K).value, Int32)
    scales: list[SSAValue] = []
    for place, first in zip((mma.scales_a, mma.scales_b) if atom.has_scales else (), SCALE_IDS, strict=False):
        if type(place) is int:
            raise _lacks_scales(atom.name)
        address = convert(place, Int32)
        idesc = idesc | (address >> WITHIN_CELL & 3) << first
        scales.append(_cell(address & (1 << WITHIN_CELL) - 1))
    given = [d.iterator.tensor.ptr().ssa, a.number.ssa, b.number.ssa, idesc.ssa, convert(mma.accumulate, Boolean).ssa]
    if atom.has_scales:
        word = f"block{atom.products.scaled}" if facts.kind == "mxf4nvf4" else ""
        made: TensorMmaBase = TensorMmaScaledOp(facts.kind, atom.threads, given, (scales[0], scales[1]), scale=word)
    else:
        made = TensorMmaOp(facts.kind, atom.threads, given)
    made.attributes[ONE_THREAD] = UnitAttr()
    emit(made)


def _cell(address: Any) -> SSAValue:
    return emit(IntToPtrOp(address.ssa, CELL_BYTES, TENSOR)).results[0]


def _lacks_scales(name: str) -> TilefoldError:
    hint = "write tiled_mma.set(Field.SFA, tensor.iterator), and SFB"
    return TilefoldError(Code.BUILD_VALUE, f"{name} needs the scale factors of A and B", hint)


def gemm(atom: object, d: Any, a: Any, b: Any, c: Any = None) -> None:
    """`gemm(mma, D, A, B, C)`: D = A * B + C on each thread's fragments; `gemm(mma, A, B, C)` with D = C.

    A and B are fragments or in shared memory, C and D fragments. The ranks select the product: (V)x(V)->(V),
    (M)x(N)->(M,N), (M,K)x(N,K)->(M,N), (V,M)x(V,N)->(V,M,N) or (V,M,K)x(V,N,K)->(V,M,N), where V are the values of one
    execution of the atom. `atom` is a tiled MMA, an atom, or None for UniversalFMA of the types of the elements.

    An atom of a warpgroup starts the multiplication, which goes on until `nvgpu.warpgroup.wait_group`. `atom.set`
    decides whether it adds C. For an atom with scales A and B are pairs of a fragment and its scales, `[A, SFA]`, or
    the fields SFA and SFB say which they are; of tcgen05, where they begin, for one execution. A and B may be
    descriptors of `make_umma_smem_desc`, for one execution of tcgen05, whose C is D. One thread of a warp that calls it
    issues instructions of tcgen05, or each thread that a condition around the call selects.
    """
    if c is None:
        d, a, b, c = b, d, a, b
    if isinstance(a, MatrixDescriptor) and isinstance(b, MatrixDescriptor) and isinstance(atom, TiledMma):
        _multiply_described(atom, d, a, b)
        return
    (a, *scale_a), (b, *scale_b) = _with_scales(a), _with_scales(b)
    scales: list[SSAValue] = [tensor.ssa for tensor in (*scale_a, *scale_b)]
    if not scales and isinstance(atom, TiledMma) and isinstance(atom.type.atom.atom.instruction, Umma):
        scales = _factors(atom)
    if not scales and isinstance(atom, TiledMma | ScaledAtom):
        scales = atom.registers.factors()
    if len(scales) not in (0, 2):
        raise TilefoldError(Code.BUILD_VALUE, "A and B both have scales, or neither", "pass [A, SFA] and [B, SFB]")
    for tensor in (d, a, b, c):
        tensor_type(tensor)
    tiled = atom.tiled_mma if isinstance(atom, ThrMma) else atom
    into = None if _is_same(d.ssa, c.ssa) else d.ssa
    plain = tiled if isinstance(tiled, MmaAtomAttr) else None
    if isinstance(tiled, WarpgroupAtom | ScaledAtom):
        plain = tiled.atom
    types = [tensor.element_type for tensor in (d, a, b, c)]
    if tiled is None and any(type.unsigned for type in types):
        plain = atom_of(MmaUniversalOp(*types))
    value = tiled.value() if isinstance(tiled, TiledMma) else None
    flag = tiled.accumulate if isinstance(tiled, TiledMma | WarpgroupAtom) else True
    accumulate = None if flag is True else convert(flag, Boolean).ssa
    emit(GemmOp(a.ssa, b.ssa, c.ssa, into, value, plain, accumulate, scales))
