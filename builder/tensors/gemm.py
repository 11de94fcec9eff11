# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications of tensors by a tiled MMA or an atom (CuTe's gemm.hpp)."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import OpResult, SSAValue
from xdsl.traits import Pure

from ...base.element_types import BY_PTX
from ...base.errors import Code, TilefoldError
from ...base.spaces import TMEM
from ...dialects.element_types import ir_types
from ...dialects.tile import AllocOp, GemmOp, MmaAtomAttr
from ...dialects.tile.fragments import CELL_BYTES
from ...layout.algebra.core import Layout
from ...layout.atoms.contract import Role
from ...layout.atoms.instructions import Umma
from ...layout.tmem.fragments import place_factors
from ..scalars.dtypes import Boolean, Int32, dtype_of
from ..scalars.values import convert
from ..tracing.state import emit
from .mma_atoms import ScaledAtom, WarpgroupAtom
from .nvgpu import MmaUniversalOp
from .pointers import make_tensor
from .tensor_base import tensor_type
from .tensors import tensor_at
from .tiled_mma import ThrMma, TiledMma, atom_of


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
            hint = "write tiled_mma.set(Field.SFA, tensor.iterator), and SFB"
            raise TilefoldError(Code.BUILD_VALUE, f"{atom.name} needs the scales of A and B", hint)
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


def gemm(atom: Any, d: Any, a: Any, b: Any, c: Any = None) -> None:
    """`gemm(mma, D, A, B, C)`: D = A * B + C on each thread's fragments; `gemm(mma, A, B, C)` with D = C.

    A and B are fragments or in shared memory, C and D fragments. The ranks select the product: (V)x(V)->(V),
    (M)x(N)->(M,N), (M,K)x(N,K)->(M,N), (V,M)x(V,N)->(V,M,N) or (V,M,K)x(V,N,K)->(V,M,N), where V are the values of one
    execution of the atom. `atom` is a tiled MMA, an atom, or None for UniversalFMA of the types of the elements.

    An atom of a warpgroup starts the multiplication, which goes on until `nvgpu.warpgroup.wait_group`. `atom.set`
    decides whether it adds C. For an atom with scales A and B are pairs of a fragment and its scales, `[A, SFA]`, or
    the fields SFA and SFB say which they are; of tcgen05, where they begin, for one execution. One thread of a warp
    that calls it issues instructions of tcgen05, or each thread that a condition around the call selects.
    """
    if c is None:
        d, a, b, c = b, d, a, b
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
