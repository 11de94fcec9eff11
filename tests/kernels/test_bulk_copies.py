# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors by the atoms of bulk copies: through shared memory and back, at every stage and on a GPU."""

from dataclasses import dataclass

import pytest
from tilefold.base.target import Target
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import STAGES, assert_checks_hold, on_gpu, program_of, simulate
from tests.passes.harness import check_pass
from tests.passes.harness import kernel as in_kernel
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program

HOPPER = Target("sm_90a")


@dataclass(frozen=True)
class Case:
    """The tensors, the layout of shared memory, the atoms, and the copies that they make: loads and stores."""

    gmem: str
    smem: str
    copies: tuple[int, int]
    load: str = "SM90_BULK_COPY_G2S"
    store: str = "SM90_BULK_COPY_S2G"
    element: str = "f16"
    type: str = ""
    """The layout in the kernel's type, where that is not the tensor's."""
    bytes: int = 1024


CASES = {
    "whole": Case("(16,32):(32,1)", "(16,32):(32,1)", (1, 1)),
    "of a size": Case("512:1", "512:1", (4, 2), "SM90_BULK_COPY_G2S<2048>", "SM90_BULK_COPY_AUTO<4096>"),
    "padded rows": Case("(16,32):(32,1)", "(16,32):(40,1)", (16, 16), "SM90_BULK_COPY_AUTO", "SM90_BULK_COPY_AUTO"),
    "swizzled": Case("(16,32):(32,1)", "S<2,3,3> o 0 o (16,32):(32,1)", (64, 64)),
    "columns": Case("(32,(4,4)):(1,(64,256))", "(32,(4,4)):(1,(32,128))", (16, 16)),
    "strides at run time": Case("(16,32):(40,1)", "(16,32):(32,1)", (16, 16), type="(16,32):(?{div=8},1)"),
    "packed": Case("(32,64):(64,1)", "(32,64):(64,1)", (1, 1), element="ui4"),
}


def text_of(case: Case) -> str:
    """A kernel that copies A to B, through shared memory."""
    type = f'!tile.tensor<{case.element}, gmem, align<16>, "{case.type or case.gmem}">'
    gmem = f'!tile.tensor<{case.element}, gmem, align<16>, "{case.gmem}">'
    return f"""
gpu.module @m {{
tile.kernel @k(%A: {type}, %B: {type}) threads(32) {{
%t = gpu.thread_id x
%zero = arith.constant 0 : index
%leads = arith.cmpi eq, %t, %zero : index
%one = arith.constant 1 : i32
%even = arith.constant 0 : i32
%bytes = arith.constant {case.bytes} : i32
%policy = ptx.createpolicy "L2::evict_first"
%s = tile.alloc : !tile.tensor<{case.element}, smem, align<128>, "{case.smem}">
%bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">
%bar = tile.ptr %bars(0)
scf.if %leads {{
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
tile.prefetch_tensor %A
ptx.mbarrier.arrive.expect_tx %bar, %bytes
tile.copy #tile.copy_atom<"{case.load}", {case.element}> %A, %s mbarrier %bar
ptx.mbarrier.wait %bar, %even
tile.copy #tile.copy_atom<"{case.store}", {case.element}> %s, %B policy %policy
ptx.cp.async.bulk.commit_group
ptx.cp.async.bulk.wait_group 0 read
}}
tile.return
}}
}}
run.launch @m::@k grid(1) {{
run.arg "A" : {gmem} = "{"integers(0, 16)" if case.element == "ui4" else "arange"}"
run.arg "B" : {gmem} = "{"zeros" if case.element == "ui4" else "poison"}"
run.check "B == A"
}}
"""


def made(text: str) -> tuple[Program, Launch]:
    """A program, and its launch."""
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    return program, launch


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_at_every_stage(case: Case) -> None:
    program, launch = made(text_of(case))
    for stage in STAGES:
        assert_checks_hold(launch, simulate(program, launch, stage, HOPPER).after)
    ptx = program.ptx(HOPPER)
    assert ptx.count("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [") == case.copies[0]
    assert ptx.count("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [") == case.copies[1]
    assert "cp.async.bulk.prefetch.L2.global [" in ptx


def test_faults_name_the_copy_at_every_stage() -> None:
    """The destination is read while bytes may still come, at the line of the copy."""
    program, launch = made(text_of(CASES["padded rows"]).replace("ptx.mbarrier.wait %bar, %even\n", ""))
    said = r"bulk.store at test.cute:20:1.*bulk.load at test.cute:19:1 .* is still writing it"
    for stage in STAGES:
        with pytest.raises(SimulationError, match=said) as caught:
            simulate(program, launch, stage, HOPPER)
        assert caught.value.code == "E3206"


def test_the_lowering_of_a_run() -> None:
    """The rows of a tile become executions of an atom of their size, in a loop; each is an instruction."""
    tile = '!tile.tensor<f16, gmem, align<16>, "(16,32):(64,1)">'
    body = (
        '%s = tile.alloc : !tile.tensor<f16, smem, align<128>, "(16,32):(40,1)">\n'
        '%bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">\n%bar = tile.ptr %bars(0)\n'
        'tile.copy #tile.copy_atom<"SM90_BULK_COPY_AUTO", f16> %A, %s mbarrier %bar\n'
    )
    check_pass(
        "expand-copies",
        in_kernel(body, f"%A: {tile}"),
        """
        // CHECK: scf.for [[I:%[0-9]+]] =
        // CHECK-NEXT: [[FROM:%[0-9]+]] = tile.crd2idx ([[I]]) in "(16):(64)"
        // CHECK-NEXT: [[A:%[0-9]+]] = tile.view %A at [[FROM]] : !tile.tensor<f16, gmem, align<16>, "32:1">
        // CHECK-NEXT: [[TO:%[0-9]+]] = tile.crd2idx ([[I]]) in "(16):(40)"
        // CHECK-NEXT: [[S:%[0-9]+]] = tile.view %s at [[TO]] : !tile.tensor<f16, smem, align<16>, "32:1">
        // CHECK-NEXT: tile.atom_call #tile.copy_atom<"SM90_BULK_COPY_G2S<512>", f16> [[A]], [[S]] mbarrier %bar
        """,
    )
    check_pass(
        "expand-copies,lower-tensors,expand-atoms,cse",
        in_kernel(body, f"%A: {tile}"),
        """
        // CHECK: [[BYTES:%[0-9]+]] = arith.constant 64 : i32
        // CHECK: ptx.cp.async.bulk.load {{%[0-9]+}}, {{%[0-9]+}}, [[BYTES]], %bars
        // CHECK-NOT: ptx.cp.async.bulk.load
        """,
    )


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_on_a_gpu(case: Case) -> None:
    engine = CudaEngine()
    if engine.driver.target.sm < 90:
        pytest.skip("bulk copies need sm_90")
    program, launch = made(text_of(case))
    assert_checks_hold(launch, on_gpu(program, launch, engine))
