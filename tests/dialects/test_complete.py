# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nothing of our dialects is left out: docstrings, round trips, faults, simulator rules."""

import pytest
from tilefold.dialects import gpu
from tilefold.dialects.cute.attributes import CoordAttr, LayoutAttr, TilerAttr
from tilefold.dialects.ptx import PTX
from tilefold.dialects.run import RUN
from tilefold.dialects.tile import TILE
from tilefold.runtime.sim.rules import rule_of
from xdsl.ir import Attribute, Operation

from tests.dialects.samples import ATTRIBUTE_SAMPLES, programs
from tests.dialects.test_faults import FAULTS

OPERATIONS: list[type[Operation]] = [
    *TILE.operations,
    *PTX.operations,
    *RUN.operations,
    *(op for op in gpu.GPU.operations if op.__module__ == gpu.__name__),
]
ATTRIBUTES: list[type[Attribute]] = [*TILE.attributes, *PTX.attributes, LayoutAttr, CoordAttr, TilerAttr]

NO_RULE_TO_BREAK = frozenset({
    "tile.return", "ptx.ret", "ptx.cp.async.commit_group", "ptx.cp.async.wait_all", "ptx.activemask",
    "ptx.griddepcontrol.wait", "ptx.griddepcontrol.launch_dependents", "ptx.cp.async.bulk.commit_group",
    "ptx.wgmma.fence", "ptx.wgmma.commit_group",
    "ptx.fence.mbarrier_init", "ptx.barrier.cluster.arrive", "ptx.barrier.cluster.wait",
})  # fmt: skip
"""Operations without operands, properties and results of which anything is asked."""

NOT_EXECUTED = frozenset({
    "gpu.module", "tile.kernel", "ptx.entry",  # what holds the operations that are executed
    "tile.yield",  # what it yields is taken by the operation around it
    "run.launch", "run.arg", "run.check",  # the host's side
})  # fmt: skip

OF_PACKAGES = frozenset({"tile.instruction", "ptx.instruction"})
"""Operations that mean nothing without a package: tests/new_family has their texts and faults."""


@pytest.mark.parametrize("op", OPERATIONS, ids=[op.name for op in OPERATIONS])
def test_operation(op: type[Operation]) -> None:
    name = op.name
    assert (op.__dict__.get("__doc__") or "").strip(), f"{name} has no docstring"
    assert (name in OF_PACKAGES) != any(name == sample for sample, _, _ in programs()), f"{name} has no round trip"
    has_fault = any(fault.of == name for fault in FAULTS)
    assert has_fault != (name in NO_RULE_TO_BREAK | OF_PACKAGES), f"{name} needs a fault, or to be listed"
    has_rule = rule_of(op) is not None
    assert has_rule != (name in NOT_EXECUTED), f"{name} needs a simulator rule, or to be listed as not executed"


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=[attribute.name for attribute in ATTRIBUTES])
def test_attribute(attribute: type[Attribute]) -> None:
    assert (attribute.__dict__.get("__doc__") or "").strip(), f"{attribute.name} has no docstring"
    assert attribute.name in ATTRIBUTE_SAMPLES
    assert any(fault.of == attribute.name for fault in FAULTS)
