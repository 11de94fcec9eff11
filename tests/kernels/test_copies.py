# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies by every atom and in every way of making a tiled copy: all stages agree, and the PTX is what was asked for."""

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.copies import CACHED, EPILOGUE, MATRICES, POLICIES, TRANSPOSED, WAYS, matrices, predicated
from tests.kernels.harness import STAGES, assert_checks_hold, program_of, simulate
from tests.kernels.test_maps import launch_of


def assert_holds_at_every_stage(text: str, arch: str = "sm_80") -> None:
    """The checks of the only launch hold at all stages of the lowering for a target."""
    found, launch = launch_of(text)
    for stage in STAGES:
        assert_checks_hold(launch, simulate(found, launch, stage, Target(arch)).after)


def counts(text: str, arch: str) -> dict[str, int]:
    """How often each instruction stands in the PTX of the only kernel, which has no local memory."""
    ptx = program_of(text).ptx(Target(arch))
    assert ".local" not in ptx
    (found,) = count_instructions(ptx).values()
    return found


@pytest.mark.parametrize(("store", "load", "type", "bits", "arch"), MATRICES, ids=[m[0] for m in MATRICES])
def test_matrices(store: str, load: str, type: str, bits: int, arch: str) -> None:
    text = matrices(store, load, type, bits)
    assert_holds_at_every_stage(text, arch)
    found = counts(text, arch)
    assert sum(n for name, n in found.items() if name.startswith("stmatrix.sync.aligned.m")) == 1
    assert sum(n for name, n in found.items() if name.startswith("ldmatrix.sync.aligned.m")) == 1


def test_movmatrix() -> None:
    assert_holds_at_every_stage(TRANSPOSED)
    assert counts(TRANSPOSED, "sm_80")["movmatrix.sync.aligned.m8n8.trans.b16"] == 1


@pytest.mark.parametrize("inside", [0, 1, 23, 50, 64])
@pytest.mark.parametrize("elementwise", [False, True])
@pytest.mark.sampled(4)
def test_predicates(inside: int, elementwise: bool) -> None:
    assert_holds_at_every_stage(predicated(inside, elementwise))


def test_zero_fill_is_the_size_of_the_source() -> None:
    ptx = program_of(predicated(50)).ptx(Target("sm_80"))
    assert ".local" not in ptx
    copies = [line for line in ptx.splitlines() if "cp.async.cg" in line]
    assert len(copies) == 4
    assert all(line.endswith(";") and ", 16, %r" in line for line in copies)


def test_cache_hints_are_in_the_ptx() -> None:
    assert_holds_at_every_stage(CACHED)
    found = counts(CACHED, "sm_80")
    assert found["cp.async.cg.shared.global.L2::128B"] == 8
    assert found["ld.global.nc.L1::no_allocate.L2::256B.v4.b32"] == 8
    assert found["st.global.cs.v4.b32"] == 8
    assert found["st.global.L1::evict_last.b16"] == 64


def test_a_kernel_makes_each_policy_of_the_cache_once() -> None:
    assert_holds_at_every_stage(POLICIES)
    found = counts(POLICIES, "sm_80")
    assert found["cp.async.cg.shared.global.L2::cache_hint.L2::128B"] == 8
    assert found["prmt.b32"] == 8  # hides the address of each from ptxas
    assert found["ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.b32"] == 8
    assert found["st.global.L2::cache_hint.v4.b32"] == 8
    assert found["st.global.L1::evict_last.L2::cache_hint.b16"] == 64
    made = {name: count for name, count in found.items() if name.startswith("createpolicy")}
    kinds = ("evict_first", "evict_last", "evict_normal")
    assert made == {f"createpolicy.fractional.L2::{kind}.b64": 1 for kind in kinds}
    with pytest.raises(ProgramError, match=r"needs sm_80"):
        counts(POLICIES, "sm_75")


def test_ways_of_making_a_tiled_copy() -> None:
    assert_holds_at_every_stage(WAYS)
    assert counts(WAYS, "sm_80")["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] == 8


def test_an_accumulator_goes_to_global_memory_by_stmatrix() -> None:
    assert_holds_at_every_stage(EPILOGUE, "sm_90")
    found = counts(EPILOGUE, "sm_90")
    assert found["stmatrix.sync.aligned.m8n8.x4.shared.b16"] == 4
    assert found["st.global.cs.v4.b32"] == 4
    assert not any(name.startswith("st.shared") for name in found)


FLAGS = """\
!g = !tile.tensor<f16, gmem, align<16>, "256:1">
gpu.module @kernels {{
  tile.kernel @k(%A: !g) threads(32) {{
    %t = gpu.thread_id x
    %s = tile.alloc : !tile.tensor<f16, smem, align<16>, "256:1">
    %copy = tile.tiled_copy #tile.copy_atom<"{atom}", f16> thr "32:1" val "8:1"
    %a = tile.partition_S %copy, %A, %t
    %b = tile.partition_D %copy, %s, %t
    %p = tile.alloc : !tile.tensor<i1, rmem, align<1>, "8:1">
    %true = arith.constant true
    %false = arith.constant false
    tile.fill %p, %true
    tile.store %false, %p({at})
    %f = tile.composition %p, "((8,1),1):((1,0),0)"
    tile.copy %copy, %a, %b if %f
    return
  }}
}}
run.launch @kernels::@k grid(1) {{
  run.arg "A" : !g = "zeros()"
}}
"""


@pytest.mark.parametrize(
    ("atom", "at", "said"),
    [
        ("UniversalCopy<uint128_t>", 3, "the predicates of the values that one atom moves differ"),
        ("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>", 3, "copies its first values, but"),
        ("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>", 7, ""),
    ],
)
def test_predicates_that_do_not_agree_are_a_fault(atom: str, at: int, said: str) -> None:
    text = FLAGS.format(atom=atom, at=at)
    found, launch = launch_of(text)
    for stage in STAGES[:2]:
        if not said:
            simulate(found, launch, stage)
            continue
        with pytest.raises(SimulationError) as caught:
            simulate(found, launch, stage)
        assert caught.value.code == "E3214"
        assert said in caught.value.message
