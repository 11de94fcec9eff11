# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications of tensors by warpgroups: the instructions that they stand for, in their order."""

from xdsl.ir import SSAValue

from ....base.spaces import SMEM
from ....dialects import tile
from ....dialects.arith.integer_range import wrap_signed
from ....dialects.tile.gemm_rules import infer_gemm_modes
from ....dialects.tile.wgmma_rules import descriptor_of
from ....layout.algebra.core import Layout, LayoutLike, plain_layout, size
from ..events import Step
from ..faults import site_of
from ..memory.matrices import TiledOperand
from ..translate import Translator
from ..warp import Warp
from .ptx_wgmma import Operands, WgmmaRule


def warpgroup_gemm(op: tile.GemmOp, t: Translator) -> Step:
    """The rule of a multiplication by an atom of a warpgroup: K by K, of each M and N one execution."""
    modes = infer_gemm_modes(op.mma_atom, *op.types)
    return _step(op, op.mma_atom, (modes.a, modes.b, modes.c), t)


def warpgroup_call(op: tile.MmaCallOp, t: Translator) -> Step:
    """The rule of one execution of an atom of a warpgroup."""
    a, b, c = [Layout((inner.shape, 1, 1), (inner.stride, 0, 0)) for inner in map(_plain, (op.a, op.b, op.c))]
    return _step(op, op.atom, (a, b, c), t)


def _plain(value: SSAValue) -> Layout:
    assert isinstance(value.type, tile.TensorType)
    return value.type.plain_layout


def _step(
    op: tile.GemmOp | tile.MmaCallOp, attr: tile.MmaAtomAttr, layouts: tuple[LayoutLike, ...], t: Translator
) -> Step:
    """Starts the executions of operands (V,M,K), (V,N,K) and (V,M,N)."""
    atom, site, multiply = attr.atom, site_of(op), WgmmaRule(op, attr.atom, (1, 1), t)
    operands: list[TiledOperand] = []
    for name, value, layout in zip("ABC", (op.a, op.b, op.c), layouts, strict=True):
        type = value.type
        assert isinstance(type, tile.TensorType)
        fields = None
        if type.space.data is SMEM:
            mode: LayoutLike = type.layout.data if isinstance(op, tile.MmaCallOp) else type.layout.data[0]
            fields = wrap_signed(descriptor_of(atom, name, mode).value, 64)
        operands.append(
            TiledOperand(t.slot(value), plain_layout(layout), type.space.data, type.element_bits, site, fields)
        )
    a, b, c = operands
    m, n, k = size(c.layout[1]), size(c.layout[2]), size(a.layout[2])
    flag = None if op.accumulate is None else t.slot(op.accumulate)

    def step(warp: Warp) -> None:
        warp.launch.spend(m * n * k, site)
        accumulates = True if flag is None else warp.registers[flag]
        for p in range(k):
            for i in range(m):
                left = a.at(warp, i, p)
                for j in range(n):
                    right, place = b.at(warp, j, p), c.at(warp, i, j)
                    descriptors = {"B": right} if a.fields is None else {"A": left, "B": right}
                    registers = left if a.fields is None else None
                    multiply.start(warp, Operands(descriptors, place, registers, accumulates))
            accumulates = True

    return step
