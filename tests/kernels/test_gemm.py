# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tile.gemm` on operands of every rank and place, at every stage against NumPy; and the PTX that comes of it."""

import re
from functools import cache

import pytest
from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import STAGES, assert_checks_hold, example, kernel_ptx, loops, ptx_counts, simulate
from tests.kernels.test_maps import assert_holds_at_every_stage, launch_of

HALF = "SM80_16x8x16_F32F16F16F32_TN"
TENSOR_CORES = f'#tile.mma_atom<"{HALF}"> permute "(32,16,16)"'
SINGLE = '#tile.mma_atom<"UniversalFMA<float>"> atoms "(8,4,1):(1,8,0)"'


SHARED = """\
%copy = tile.tiled_copy #tile.copy_atom<"DefaultCopy", {element}> thr "(8,4):(4,1)" val "(4,12):(12,1)"
    %tile = tile.alloc : !tile.tensor<{element}, smem, align<128>, "{layout}">
    %from = tile.partition_S %copy, %A, %t
    %to = tile.partition_D %copy, %tile, %t
    tile.copy %copy, %from, %to
    ptx.bar.sync 0
    %sA = tile.partition_A %mma, %tile, %t"""


def kernel(mma: str, element: str, body: str, check: str = "C ~= f32(A) @ f32(B).T", *, smem: str = "") -> str:
    """A warp that multiplies A (32,48) and B (16,48) to C (32,16) of f32, by `body` on fragments %rA, %rB, %rC.

    `smem` is the text of a layout of A's 32 x 48 elements in shared memory; then %sA is the thread's part there.
    """
    given = f'!tile.tensor<{element}, gmem, align<16>, "({{}},48):(48,1)">'
    shared = SHARED.format(element=element, layout=smem) if smem else ""
    return f"""
!A = {given.format(32)}
!B = {given.format(16)}
!C = !tile.tensor<f32, gmem, align<16>, "(32,16):(16,1)">
gpu.module @kernels {{
  tile.kernel @k(%A: !A, %B: !B, %C: !C) threads(32) {{
    %t = gpu.thread_id x
    %mma = tile.tiled_mma {mma}
    %gA = tile.partition_A %mma, %A, %t
    %gB = tile.partition_B %mma, %B, %t
    %gC = tile.partition_C %mma, %C, %t
    %rA = tile.make_fragment_A %mma, %gA
    %rB = tile.make_fragment_B %mma, %gB
    %rC = tile.make_fragment_C %mma, %gC
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    tile.copy %gA, %rA
    tile.copy %gB, %rB
    tile.fill %rC, %zero
    {shared}
    {body}
    tile.copy %rC, %gC
    return
  }}
}}
run.launch @kernels::@k grid(1) {{
  run.arg "A" : !A = "normal(seed=0)"
  run.arg "B" : !B = "normal(seed=1)"
  run.arg "C" : !C = "poison"
  run.check "{check}" rtol 1.0e-5 atol 1.0e-4
}}
"""


WHOLE = "tile.gemm %mma, %rA, %rB, %rC"
TO_ANOTHER = """\
%rD = tile.make_fragment_like %rC
    tile.gemm %mma, %rD, %rA, %rB, %rC
    tile.gemm %mma, %rC, %rA, %rB, %rD"""
BY_K = """\
%count = arith.constant {k} : index
    scf.for %k = %c0 to %count step %c1 {{
      %a = tile.slice %rA, (_, _, %k)
      %b = tile.slice %rB, (_, _, %k)
      tile.gemm %mma, %a, %b, %rC
    }} {{unroll}}"""
BY_EACH = """\
%m = arith.constant {m} : index
    %n = arith.constant {n} : index
    %count = arith.constant {k} : index
    scf.for %i = %c0 to %m step %c1 {{
      scf.for %j = %c0 to %n step %c1 {{
        scf.for %k = %c0 to %count step %c1 {{
          %a = tile.slice %rA, (_, %i, %k)
          %b = tile.slice %rB, (_, %j, %k)
          %c = tile.slice %rC, (_, %i, %j)
          tile.gemm %mma, %a, %b, %c
        }} {{unroll}}
      }} {{unroll}}
    }} {{unroll}}"""
WITHOUT_VALUES = """\
%a = tile.slice %rA, (0, _, _)
    %b = tile.slice %rB, (0, _, _)
    %c = tile.slice %rC, (0, _, _)
    tile.gemm %a, %b, %c"""
OUTER = """\
%count = arith.constant 48 : index
    %c = tile.slice %rC, (0, _, _)
    scf.for %k = %c0 to %count step %c1 {
      %a = tile.slice %rA, (0, _, %k)
      %b = tile.slice %rB, (0, _, %k)
      tile.gemm %a, %b, %c
    } {unroll}"""
TWICE = "C ~= 2 * (f32(A) @ f32(B).T)"


@pytest.mark.parametrize(
    ("mma", "element", "body", "check"),
    [
        (TENSOR_CORES, "f16", WHOLE, ""),
        (TENSOR_CORES, "f16", TO_ANOTHER, TWICE),
        (TENSOR_CORES, "f16", BY_K.format(k=3), ""),
        (TENSOR_CORES, "f16", BY_EACH.format(m=2, n=2, k=3), ""),
        (SINGLE, "f32", WHOLE, ""),
        (SINGLE, "f32", TO_ANOTHER, TWICE),
        (SINGLE, "f32", BY_EACH.format(m=4, n=4, k=48), ""),
        (SINGLE, "f32", WITHOUT_VALUES, ""),
        (SINGLE, "f32", OUTER, ""),
    ],
    ids=["V_M_K", "four_operands", "V_M", "V", "fma", "fma_four_operands", "fma_V", "fma_M_K", "fma_M"],
)
def test_ranks(mma: str, element: str, body: str, check: str) -> None:
    assert_holds_at_every_stage(kernel(mma, element, body, check or "C ~= f32(A) @ f32(B).T"))


@pytest.mark.parametrize("smem", ["(32,48):(48,1)", "(32,48):(1,36)", "S<2,3,3> o 0 o (32,48):(64,1)"])
@pytest.mark.parametrize(("mma", "element"), [(TENSOR_CORES, "f16"), (SINGLE, "f32")], ids=["mma", "fma"])
def test_operands_in_shared_memory_are_read_by_each_k(mma: str, element: str, smem: str) -> None:
    text = kernel(mma, element, "tile.gemm %mma, %sA, %rB, %rC", smem=smem)
    assert_holds_at_every_stage(text)
    ptx = launch_of(text)[0].ptx(Target("sm_80"))
    assert ".local" not in ptx
    if mma == TENSOR_CORES and smem.endswith(",1)"):  # neighbours along K, which share a register
        assert count_instructions(ptx)["k"]["ld.shared.b32"] == 4 * 2 * 3


CHAINED = """
!A = !tile.tensor<f16, gmem, align<16>, "(16,16):(16,1)">
!C = !tile.tensor<f32, gmem, align<16>, "(16,8):(8,1)">
!V = !tile.tensor<f16, gmem, align<16>, "(8,16):(1,8)">
gpu.module @kernels {
  tile.kernel @k(%A: !A, %B: !A, %V: !V, %C: !C) threads(32) {
    %t = gpu.thread_id x
    %mma = tile.tiled_mma #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN"> permute "(16,16,16)"
    %one = tile.tiled_mma #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN">
    %gA = tile.partition_A %mma, %A, %t
    %gB = tile.partition_B %mma, %B, %t
    %rA = tile.make_fragment_A %mma, %gA
    %rB = tile.make_fragment_B %mma, %gB
    %S = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((2,2),1,2):((1,2),0,4)">
    %zero = arith.constant 0.0 : f32
    tile.copy %gA, %rA
    tile.copy %gB, %rB
    tile.fill %S, %zero
    tile.gemm %mma, %rA, %rB, %S
    // the 16 x 16 results of one multiplication are an operand of the next: columns 8 to 15 are its values 4 to 7;
    // the registers of the f16 results are kept by columns, so that those of an operand are not neighbours
    %Q = tile.alloc : !tile.tensor<f16, rmem, align<16>, "((2,2),1,2):((1,4),0,2)">
    tile.map %Q, %S (%x: f32) {
      %h = arith.truncf %x : f32 to f16
      tile.yield %h : f16
    }
    %a = tile.composition %Q, "((2,2,2),1,1):((1,2,4),0,0)"
    %gV = tile.partition_B %one, %V, %t
    %rV = tile.make_fragment_B %one, %gV
    %gC = tile.partition_C %one, %C, %t
    %rC = tile.make_fragment_C %one, %gC
    tile.copy %gV, %rV
    tile.fill %rC, %zero
    tile.gemm %one, %a, %rV, %rC
    tile.copy %rC, %gC
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !A = "normal(seed=0)"
  run.arg "B" : !A = "normal(seed=1)"
  run.arg "V" : !V = "normal(seed=2)"
  run.arg "C" : !C = "poison"
  run.check "C ~= f32(f16(f32(A) @ f32(B).T)) @ f32(V).T" rtol 1.0e-3 atol 2.0e-2
}
"""


def test_results_are_operands_of_the_next_multiplication_although_their_values_lie_apart() -> None:
    assert_holds_at_every_stage(CHAINED)
    ptx = launch_of(CHAINED)[0].ptx(Target("sm_80"))
    assert ".local" not in ptx
    assert count_instructions(ptx)["k"]["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] == 3


@pytest.mark.parametrize("stage", STAGES)
def test_a_part_of_a_warp_cannot_multiply(stage: str) -> None:
    few = "%few = arith.constant 8 : index\n    %in = arith.cmpi ult, %t, %few : index\n    scf.if %in {\n" + WHOLE
    found, launch = launch_of(kernel(TENSOR_CORES, "f16", few + "\n    }"))
    with pytest.raises(SimulationError) as caught:
        simulate(found, launch, stage)
    assert caught.value.code == Code.SIM_CONVERGENCE.id
    assert HALF in caught.value.message


def test_threads_of_an_atom_of_one_thread_multiply_by_themselves() -> None:
    half = "%few = arith.constant 8 : index\n    %in = arith.cmpi ult, %t, %few : index\n    scf.if %in {\n" + WHOLE
    found, launch = launch_of(kernel(SINGLE, "f32", half + "\n    }", "C[:, 1:4] == 0 and C[:, 0] ~= (A @ B.T)[:, 0]"))
    assert_checks_hold(launch, simulate(found, launch, "instr").after)


_MMA = re.compile(r"mma\.sync\S+ \{[^}]*\}, \{([^}]*)\}, \{([^}]*)\}")


@cache
def hgemm() -> str:
    """The PTX of the f16 example."""
    return kernel_ptx(example("hgemm"), "hgemm")


def test_fragments_of_a_pipelined_gemm_stay_in_registers() -> None:
    text, counts = hgemm(), ptx_counts(example("hgemm"))["hgemm"]
    assert ".local" not in text
    assert counts["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] == 16
    assert counts["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] == 64
    assert not any(name.startswith(("ld.shared", "ld.global")) for name in counts)
    loop = max(loops(text), key=len)
    assert loop.count("mma.sync") == 64
    assert not re.search(r"\b(?:cvt\.rn|mov\.(?!u32)|prmt|shr|div)", loop)


def test_neighbouring_executions_share_an_operand() -> None:
    operands = _MMA.findall(hgemm())
    assert len(operands) == 64
    apart = [i for i in range(1, 64) if not set(operands[i]) & set(operands[i - 1])]
    assert apart == [32]  # where the second K of the tile begins


def test_ordinary_arithmetic_reads_shared_memory_by_sixteen_bytes() -> None:
    counts = ptx_counts(example("sgemm"))["sgemm"]
    assert counts["ld.shared.v4.b32"] == 2 * 16
    assert counts["fma.rn.f32"] == 4 * 4 * 16
    assert not any(name.startswith("ld.shared") and not name.endswith("v4.b32") for name in counts)
    assert ".local" not in kernel_ptx(example("sgemm"), "sgemm")
