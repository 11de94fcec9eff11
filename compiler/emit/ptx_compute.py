# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: functions and conversions of registers: inline assembly of the instruction that the operation names."""

import struct
from typing import cast

from xdsl.ir import Operation

from ...dialects import ptx
from .inline_assembly import compute
from .writer import FunctionWriter, Rule, rule


def _instruction(w: FunctionWriter, op: Operation) -> None:
    mnemonic = cast(ptx.PtxOp, op).mnemonic()
    assert mnemonic is not None
    compute(w, mnemonic, op, op.operands)


def _rsqrt(w: FunctionWriter, op: ptx.RsqrtOp) -> None:
    w.call(op, f"@llvm.nvvm.rsqrt.approx{'.ftz' if op.flushes else ''}.f")  # which LLVM schedules, unlike assembly


def _createpolicy(w: FunctionWriter, op: ptx.CreatePolicyOp) -> None:
    (share,) = struct.unpack("<I", struct.pack("<f", op.share))
    w.define(op.result, f'call i64 asm "{op.mnemonic()} $0, 0f{share:08X};", "=l"()')


_OPERATIONS: tuple[type[Operation], ...] = (
    ptx.Ex2Op, ptx.Lg2Op, ptx.RcpOp, ptx.SqrtOp, ptx.SinOp, ptx.CosOp, ptx.TanhOp,
    ptx.CvtOp, ptx.PrmtOp, ptx.Dp4aOp,
)  # fmt: skip

PTX_COMPUTE: tuple[tuple[type[Operation], Rule], ...] = (
    *((kind, _instruction) for kind in _OPERATIONS),
    rule(ptx.RsqrtOp, _rsqrt),
    rule(ptx.CreatePolicyOp, _createpolicy),
)
