# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of rules against the dialects: an operation that a kernel can hold must have one."""

import pytest
from tilefold.dialects.kernel import KernelOp
from tilefold.dialects.ptx import PTX
from tilefold.dialects.tile import TILE, YieldOp
from tilefold.runtime.sim.rules import rule_of
from xdsl.dialects import arith, scf
from xdsl.ir import Operation

HELD = (KernelOp, YieldOp)
"""Operations that hold others, or that those execute."""
OPS = [op for dialect in (TILE, PTX, arith.Arith) for op in dialect.operations if not issubclass(op, HELD)]


@pytest.mark.parametrize("op", [*OPS, scf.IfOp, scf.ForOp, scf.WhileOp], ids=lambda op: op.name)
def test_every_operation_has_a_rule(op: type[Operation]) -> None:
    assert rule_of(op) is not None, f"no module of runtime/sim/rules has a rule for {op.name} of {op.__module__}"
