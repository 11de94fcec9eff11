# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every contract goes through every reader, and each field of a contract is read."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from tilefold.base.element_types import BY_PTX
from tilefold.base.errors import LayoutError
from tilefold.base.spaces import DSMEM, GMEM, RMEM, SMEM
from tilefold.base.target import Target, known_targets, targets
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.ptx.base import SpaceAttr
from tilefold.dialects.tile import CopyAtomAttr, MmaAtomAttr, ReturnOp, TensorType, TiledCopyOp, TiledCopyType
from tilefold.dialects.tile.copy_rules import check_atom_operands
from tilefold.dialects.tile.gemm_rules import check_mma_call
from tilefold.dialects.tile.wgmma_rules import check_accumulation, check_registers
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.contract import (
    BULK_GROUP,
    Act,
    Agent,
    AtOnce,
    Contract,
    Counted,
    Major,
    Named,
    Operand,
    Proxy,
    Role,
    Whose,
)
from tilefold.layout.atoms.copy_atom import CopyAtom
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.copy_table import COPY_ATOMS
from tilefold.layout.atoms.instructions import Absent, AutoMove, CpAsync, MmaSync
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_sync import OPERANDS, registers
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.atoms.numbers import MmaOperation, Products, Summed, Transposed, Unpacked
from tilefold.layout.atoms.ptx_text import copy_text, mma_mnemonic
from tilefold.layout.atoms.summation import summation
from tilefold.layout.atoms.tma import TMA_ATOMS, tma_copy_atom
from tilefold.layout.text.printing import atom_lines, mma_atom_lines, plain_style
from tilefold.layout.tiling.tiled_mma import make_tiled_mma
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.atoms.exchange import exchange_of
from tilefold.runtime.sim.atoms.mma_arithmetic import executor
from tilefold.runtime.sim.atoms.wgmma import WgmmaArithmetic
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine
from xdsl.dialects.builtin import IntAttr, f16, i8
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from tests.sim.harness import module_of

WARPGROUP = (
    "SM90_64x64x16_F32F16F16_SS<Major::K,Major::MN>",
    "SM90_64x8x16_F32BF16BF16_RS<Major::K,Major::K>",
    "SM90_64x16x8_F32TF32TF32_SS_TN",
    "SM90_64x24x32_F16E4M3E5M2_RS_TN",
    "SM90_64x48x32_S32S8U8_SS_TN_SATURATE",
)
MMAS = (*MMA_ATOMS, *WARPGROUP)
COPIES = (*COPY_ATOMS, "SM90_BULK_COPY_G2S<4096>", "SM90_BULK_COPY_S2G<1024>", *TMA_ATOMS)


def copy_named(name: str) -> CopyAtom:
    return tma_copy_atom(TMA_ATOMS[name], 1024) if name in TMA_ATOMS else copy_atom(name)


def readings(atom: CopyAtom | MmaAtom) -> Iterator[tuple[str, Any]]:
    """What readers make of a contract, beside its layouts and its name."""
    contract = atom.contract
    yield "targets", [contract.targets.refusal("it", Target(name)) for name in known_targets()]
    yield "needs", str(contract.targets)
    yield "section", contract.section
    if isinstance(atom, MmaAtom):
        yield "text", mma_mnemonic(atom)
        yield "lines", mma_atom_lines(atom, plain_style)
        yield "sums", [summation(atom, Target(name)) for name in ("sm_80", "sm_89", "sm_90a", "sm_120a")]
        yield "registers", [registers(atom, operand) for operand in OPERANDS]
        yield "elements", [MmaAtomAttr(atom).element_types(operand) for operand in OPERANDS]
        yield "tiled", str(make_tiled_mma(atom).layout_tv("C"))
        yield "rule", _rule(atom)
    else:
        yield "text", copy_text(atom)
        yield "lines", atom_lines(atom, plain_style)
        yield "loads", (atom.loads, atom.is_multicast, atom.reduction, atom.zfill, atom.max_bits)
        yield "refused", _refusal(atom.check_executable)
        yield "rule", None if isinstance(atom.instruction, AutoMove) else str(exchange_of(atom, 32))


def _rule(atom: MmaAtom) -> Any:
    """Which rule of the simulator executes a multiplication."""
    try:
        _ = executor(atom)
    except SimulationError:
        product = WgmmaArithmetic(atom, (1, 1))
        return "in flight", product.shape_number
    return "at once"


def _refusal(check: Callable[[], None]) -> str:
    try:
        check()
    except LayoutError as error:
        return error.message
    return ""


@pytest.mark.parametrize("name", MMAS)
def test_contracts_of_multiplications_go_through_every_reader(name: str) -> None:
    atom = mma_atom(name)
    found = dict(readings(atom))
    in_flight = not isinstance(atom.operand("D").completion, AtOnce)
    assert (found["rule"] != "at once") == in_flight == (atom.contract.agent is Agent.WARPGROUP)
    for operand in atom.contract.operands:
        whole = operand.named is Named.DESCRIPTOR or operand.role is Role.ACCUMULATE or atom.threads == 1
        assert operand.is_shared_by_all == whole
        if operand.role.value in OPERANDS:
            assert found["elements"][OPERANDS.index(operand.role.value)]
            assert BY_PTX[operand.element].bits


@pytest.mark.parametrize("name", COPIES)
def test_contracts_of_copies_go_through_every_reader(name: str) -> None:
    atom = copy_named(name)
    found, contract = dict(readings(atom)), atom.contract
    assert (found["text"] == "none") == isinstance(atom.instruction, Absent) == ("PTX has no" in found["refused"])
    by_async = atom.destination.proxy is Proxy.ASYNC
    assert by_async == ("BULK" in name or "TMA" in name)
    assert contract.has(Role.MAP) == (contract.agent is Agent.ELECTED) == ("TMA" in name)
    assert contract.has(Role.BARRIER) == (by_async and atom.loads is True)
    for operand in contract.operands:
        assert operand.reads or operand.writes
        assert operand.align & (operand.align - 1) == 0
        assert operand.spaces


def changed(atom: CopyAtom | MmaAtom, **changes: Any) -> CopyAtom | MmaAtom:
    return replace(atom, contract=replace(atom.contract, **changes))


def with_operand(atom: CopyAtom | MmaAtom, role: Role, **changes: Any) -> CopyAtom | MmaAtom:
    operand = replace(atom.contract.operand(role), **changes)
    return replace(atom, contract=atom.contract.with_operand(operand))


MMA, WGMMA = "SM80_16x8x16_F32F16F16F32_TN", WARPGROUP[0]
CP_ASYNC, LDSM, TMA = "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", "SM75_U32x4_LDSM_N", "SM90_TMA_LOAD_MULTICAST"
OF_CONTRACTS: tuple[tuple[str, str, Any], ...] = (
    (MMA, "agent", Agent.THREAD),
    (WGMMA, "agent", Agent.WARP),
    (MMA, "counts", Counted.BLOCKS),
    (MMA, "ids", Layout(16, 1)),
    (LDSM, "ids", Layout(16, 1)),
    (MMA, "operands", ()),
    (TMA, "operands", ()),
    (MMA, "numbers", Products((16, 8, 16), MmaOperation.MULTIPLY_ADD, Summed.UNMEASURED)),
    (MMA, "numbers", Products((16, 8, 16), MmaOperation.XOR_POPC, Summed.WARP_UNIT)),
    (MMA, "numbers", Products((16, 16, 8), MmaOperation.MULTIPLY_ADD, Summed.WARP_UNIT)),
    (LDSM, "numbers", Unpacked(4)),
    (LDSM, "numbers", Transposed()),
    (MMA, "targets", targets(90, 80, "a")),
    (MMA, "instruction", CpAsync("ca")),
    (CP_ASYNC, "instruction", MmaSync()),
    (CP_ASYNC, "instruction", Absent()),
    (CP_ASYNC, "section", "PTX ISA, elsewhere"),
)
"""Atoms, fields of their contracts and other values of these."""


@pytest.mark.parametrize(("name", "field", "value"), OF_CONTRACTS)
def test_a_reader_notices_another_contract(name: str, field: str, value: Any) -> None:
    atom = mma_atom(name) if name in MMAS else copy_named(name)
    if name == LDSM:
        atom = copy_atom(name, 16)
    assert value != getattr(atom.contract, field)
    try:
        other = changed(atom, **{field: value})
        found = dict(readings(other))
    except (LayoutError, SimulationError, VerifyException, AssertionError):
        return  # the record itself refuses it, or a reader does
    assert found != dict(readings(atom)) or _programs(other) != _programs(atom)


def test_all_fields_of_contracts_are_changed() -> None:
    assert {field for _, field, _ in OF_CONTRACTS} == {field.name for field in fields(Contract)}


def _programs(atom: CopyAtom | MmaAtom) -> Any:
    """What the verifier of programs says about operands, by the rules that read a contract."""
    found: list[Any] = []
    if isinstance(atom, MmaAtom):
        for separate, accumulates in ((True, False), (False, True)):
            found.append(_refusal(lambda: check_accumulation(atom, separate, accumulates)))  # noqa: B023
        found.append(_refusal(lambda: check_registers(ReturnOp(), atom, 100, 0)))
        for space in (RMEM, SMEM, None):
            tensors = [_tensor(MmaAtomAttr(atom).element_types(x)[0], space, atom, x) for x in OPERANDS]
            found.append(_refusal(lambda: check_mma_call(MmaAtomAttr(atom), *tensors)))  # noqa: B023
        return found
    for source, destination in ((GMEM, SMEM), (SMEM, RMEM), (SMEM, GMEM), (DSMEM, SMEM)):
        typed = CopyAtomAttr.of(replace(atom, val_bits=1), f16 if atom.bits is None or atom.bits % 16 == 0 else i8)
        found.append(_refusal(lambda: check_atom_operands(typed, *_sides(typed, source, destination))))  # noqa: B023
    return found


def _tensor(element: Any, space: Any, atom: MmaAtom, operand: str) -> Any:
    """A tensor of the values of an operand; without a space, in its own."""
    space = atom.operand(operand).spaces[0] if space is None else space
    values = atom.operand(operand).layout[1].size
    return TensorType(element, SpaceAttr(space), IntAttr(16), LayoutAttr(Layout(values, 1)))


def _sides(typed: CopyAtomAttr, source: Any, destination: Any) -> Any:
    made: list[Any] = []
    for layout, space in ((typed.atom.src, source), (typed.atom.dst, destination)):
        whole = LayoutAttr(Layout(layout[1].size, 1))
        made.append(TensorType(typed.value_type, SpaceAttr(space), IntAttr(16), whole))
    return made


OF_OPERANDS: tuple[tuple[str, Role, str, Any], ...] = (
    (MMA, Role.A, "role", Role.SCALE_A),
    (CP_ASYNC, Role.SOURCE, "role", Role.METADATA),
    (MMA, Role.A, "element", "bf16"),
    (MMA, Role.D, "spaces", (SMEM,)),
    (LDSM, Role.SOURCE, "spaces", (DSMEM,)),
    (WGMMA, Role.A, "named", Named.POINTER),
    (LDSM, Role.DESTINATION, "named", Named.POINTER),
    (MMA, Role.B, "major", Major.MN),
    (WGMMA, Role.D, "act", Act.WRITE),
    (MMA, Role.D, "act", Act.UPDATE),
    (TMA, Role.DESTINATION, "whose", Whose.OWN),
    (WGMMA, Role.D, "completion", AtOnce()),
    (CP_ASYNC, Role.DESTINATION, "completion", BULK_GROUP),
    (CP_ASYNC, Role.DESTINATION, "completion", AtOnce()),
    (CP_ASYNC, Role.DESTINATION, "proxy", Proxy.ASYNC),
    (LDSM, Role.SOURCE, "align", 128),
    (MMA, Role.A, "layout", Layout((32, 8), (1, 32))),
    (LDSM, Role.SOURCE, "layout", Layout((32, 128), (1, 32))),
)
"""Atoms, operands of their contracts, and other values of a field."""


@pytest.mark.parametrize(("name", "role", "field", "value"), OF_OPERANDS)
def test_a_reader_notices_another_operand(name: str, role: Role, field: str, value: Any) -> None:
    atom = mma_atom(name) if name in MMAS else copy_named(name)
    assert value != getattr(atom.contract.operand(role), field)
    try:
        if field == "role":
            operands = [replace(x, role=value) if x.role is role else x for x in atom.contract.operands]
            other = changed(atom, operands=tuple(operands))
        else:
            other = with_operand(atom, role, **{field: value})
        found = dict(readings(other)), _programs(other), _in_simulation(other)
    except (LayoutError, SimulationError, VerifyException, AssertionError):
        return  # the record itself refuses it, or a reader does
    assert found != (dict(readings(atom)), _programs(atom), _in_simulation(atom))


WITHOUT_WAIT = """
gpu.module @kernels {
tile.kernel @k(%A: !tile.tensor<f16, gmem, align<16>, "256:1">) threads(32) {
%t = gpu.thread_id x
%s = tile.alloc : !tile.tensor<f16, smem, align<16>, "256:1">
%copy = tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> thr "32:1" val "8:1"
%from = tile.partition_S %copy, %A, %t
%to = tile.partition_D %copy, %s, %t
tile.copy %copy, %from, %to
%r = tile.make_fragment_like %to
tile.copy %to, %r
tile.return
}
}
"""


def _in_simulation(atom: CopyAtom | MmaAtom) -> str:
    """What the simulator says of a kernel that copies by an atom and does not wait."""
    if not isinstance(atom.instruction, CpAsync) or isinstance(atom, MmaAtom):
        return ""
    module = module_of(WITHOUT_WAIT)
    typed = CopyAtomAttr.of(atom, f16)
    for op in module.walk():
        if isinstance(op, TiledCopyOp):
            op.properties["atom"] = typed
            before = op.result.type
            assert isinstance(before, TiledCopyType)
            after = TiledCopyType(typed, before.layout_tv, before.tiler)
            Rewriter.replace_value_with_new_type(op.result, after)
    given = {"A": TensorArgument(np.zeros(256, np.float16))}
    try:
        SimEngine(sink=lambda _: None).launch(SimProgram(module, "k"), LaunchConfig((1, 1, 1), (32, 1, 1)), given)
    except SimulationError as error:
        return error.message
    return ""


def test_all_fields_of_operands_are_changed() -> None:
    assert {field for _, _, field, _ in OF_OPERANDS} == {field.name for field in fields(Operand)}
