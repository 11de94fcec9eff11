# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation of `ptx` says its effects, or that it has none; xDSL's passes see what follows for memory."""

import pytest
from tilefold.dialects import ptx
from tilefold.dialects.ptx import PTX, CustomOp, EntryOp
from tilefold.dialects.ptx.effects import (
    Act,
    Effects,
    Group,
    Mbarrier,
    Memory,
    NamedBarrier,
    Unit,
    agent_of,
    bytes_of,
    changes_memory,
    declared_by,
    does,
    effects_of,
    space_of,
)
from tilefold.layout.atoms.contract import Agent
from xdsl.ir import Operation, SSAValue
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure, get_effects

from tests.dialects.test_round_trip import SAMPLES, read


@pytest.mark.parametrize("kind", list(PTX.operations), ids=[kind.name for kind in PTX.operations])
def test_every_operation_says_its_effects(kind: type[Operation]) -> None:
    traits = [trait for trait in kind.traits.traits if isinstance(trait, MemoryEffect)]
    if kind is EntryOp:  # a definition, which nothing executes
        assert not traits
        return
    if kind is CustomOp:  # an instruction of a package, whose contract has its effects
        found = get_effects(kind.create(regions=[])) or ()
        assert {effect.kind for effect in found} == READS_AND_WRITES
        return
    (trait,) = traits
    assert isinstance(trait, Effects | Pure)
    assert not isinstance(trait, Effects) or trait.declared


READS_AND_WRITES = {MemoryEffectKind.READ, MemoryEffectKind.WRITE}
OF_PTX = [(name, text) for name, text, _ in SAMPLES if name.startswith("ptx.") and name != "ptx.entry"]


@pytest.mark.parametrize(("name", "text"), OF_PTX, ids=[name for name, _ in OF_PTX])
def test_effects_name_operands_and_properties(name: str, text: str) -> None:
    for op in (op for op in read(text).walk() if op.name == name):
        effects = list(effects_of(op))
        assert bool(effects) != op.has_trait(Pure)
        for effect in effects:
            if isinstance(effect.resource, Memory | Mbarrier):
                assert isinstance(getattr(op, effect.resource.operand), SSAValue)
                space_of(op, effect.resource)
            if isinstance(effect.resource, Memory):
                size = effect.resource.bytes
                assert (bytes_of(op, effect.resource) or 0) > 0 or (isinstance(size, str) and size[0] == "%")
                assert not str(size).startswith("%") or isinstance(getattr(op, str(size)[1:]), SSAValue)


def on_memory(kind: type[Operation]) -> set[EffectInstance]:
    trait = declared_by(kind)
    assert trait is not None
    return set(trait.get_effects(kind.create(regions=[])))


def test_groups_are_no_memory() -> None:
    for kind in (ptx.CpAsyncCommitGroupOp, ptx.BulkCommitGroupOp, ptx.WgmmaCommitGroupOp):
        effects = on_memory(kind)
        assert effects
        assert not changes_memory(effects)
    for kind in (ptx.CpAsyncWaitGroupOp, ptx.BulkWaitGroupOp, ptx.WgmmaWaitGroupOp, ptx.CpAsyncOp, ptx.BarSyncOp):
        assert changes_memory(on_memory(kind))
    assert on_memory(ptx.LoadOp) == {EffectInstance(MemoryEffectKind.READ)}
    assert on_memory(ptx.StoreOp) == {EffectInstance(MemoryEffectKind.WRITE)}
    assert {effect.kind for effect in on_memory(ptx.LocalAllocOp)} == {MemoryEffectKind.ALLOC}
    assert not changes_memory(on_memory(ptx.MmaSyncOp))


def test_effects_depend_on_properties() -> None:
    reads, all_done = ptx.BulkWaitGroupOp(0, read=True), ptx.BulkWaitGroupOp(0)
    assert does(reads, Act.WAITS, Group.BULK_READS)
    assert not does(reads, Act.WAITS, Group.BULK)
    assert does(all_done, Act.WAITS, Group.BULK)
    assert does(ptx.SetMaxNRegOp(232, inc=True), Act.WAITS, Unit.REGISTERS)
    assert not does(ptx.SetMaxNRegOp(40, inc=False), Act.WAITS, Unit.REGISTERS)
    assert does(ptx.BarSyncOp(), Act.WAITS, NamedBarrier)
    assert not does(ptx.BarArriveOp(0, 64), Act.WAITS, NamedBarrier)
    assert [str(effect) for effect in effects_of(reads)] == ["waits for the reads of bulk groups (with read)"]


def test_agents() -> None:
    assert agent_of(ptx.BarSyncOp()) is Agent.WARP
    assert agent_of(ptx.WgmmaFenceOp()) is Agent.WARPGROUP
    assert agent_of(ptx.CpAsyncCommitGroupOp()) is Agent.THREAD
    assert get_effects(ptx.WgmmaFenceOp())
