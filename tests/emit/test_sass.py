# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine code: asynchronous operations are the instructions of the GPU for them; nothing is in local memory."""

from collections import Counter

import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble

from tests.emit.examples import ARGS, multiplication
from tests.emit.harness import kernel, ptx_of
from tests.kernels.harness import example, program
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions

SM90A = Target("sm_90a")
LOCAL = ("LDL", "STL")
"""The instructions that access local memory."""


def _counts(body: str) -> Counter[str]:
    text = kernel(f"%s = ptx.smem.addr 0\n%bar = ptx.smem.addr 2048\n{body}", ARGS, "128", 4096)
    return instructions(assemble(ptx_of(text, SM90A), SM90A).code)["k"]


COPIES = (
    ("ptx.cp.async.bulk.load %s, %A, %i32, %bar", "UBLKCP"),
    ("ptx.cp.async.bulk.store %A, %s, %i32", "UBLKCP"),
    ("ptx.cp.async.bulk.prefetch %A, %i32", "UBLKPF"),
    ("ptx.cp.async.bulk.commit_group", "UTMACMDFLUSH"),
    ("ptx.cp.async.bulk.tensor.load %map[%i32, %i32], %s, %bar", "UTMALDG"),
    ("ptx.cp.async.bulk.tensor.load %map[%i32, %i32], %s, %bar multicast %i16", "UTMALDG"),
    ("ptx.cp.async.bulk.tensor.store %map[%i32, %i32], %s", "UTMASTG"),
    ('ptx.cp.reduce.async.bulk.tensor "add" %map[%i32, %i32], %s', "UTMAREDG"),
    ("ptx.cp.async.bulk.tensor.prefetch %map[%i32, %i32]", "UTMAPF"),
    ("ptx.prefetch.tensormap %map", "UTMACCTL"),
)  # fmt: skip
"""Instructions in PTX, and their names in machine code."""


def test_copies_are_one_instruction_and_maps_stay_parameters() -> None:
    counts = _counts("\n".join(line for line, _ in COPIES))
    assert {name: counts[name] for _, name in COPIES} == Counter(name for _, name in COPIES)
    assert not any(counts[local] for local in LOCAL)


@pytest.mark.parametrize("name", [
    "SM90_64x256x16_F32F16F16_SS<Major::K,Major::K>", "SM90_64x128x8_F32TF32TF32_RS_TN", "SM90_64x256x32_S32S8S8_SS_TN",
])  # fmt: skip
def test_a_multiplication_of_a_warpgroup_is_one_instruction(name: str) -> None:
    counts = _counts(multiplication(name))
    assert counts["HGMMA"] + counts["IGMMA"] == 1
    assert not any(counts[local] for local in LOCAL)


@needs_ptxas
@pytest.mark.parametrize("change", ["dec 40", "inc 232"])
def test_registers_are_handed_over(change: str) -> None:
    text = kernel(f"ptx.setmaxnreg {change}", threads="384").replace("threads(384)", "threads(384) min_blocks(1)")
    found = installed()
    assert found is not None
    assert instructions(found.assemble(ptx_of(text, SM90A), SM90A).code)["k"]["USETMAXREG"] == 1


@pytest.mark.parametrize(
    ("name", "arch"), [("gemm", "sm_80"), ("gemm", "sm_90a"), ("attention", "sm_90a"), ("attention", "sm_80")]
)
@pytest.mark.sampled(2)
def test_multiplications_of_warps_stay_in_registers(name: str, arch: str) -> None:
    counts = instructions(program(example(name)).build(Target(arch)).cubin)[name]
    assert counts["HMMA"] >= 64
    assert counts["LDSM"] > 0
    assert counts["LDGSTS"] > 0
    assert not any(counts[local] for local in LOCAL)


def test_local_memory_would_be_seen() -> None:
    address = "%r = ptx.local.alloc 64 align 4\n%p = ptx.ptr_add %r, %i32 : !ptx.ptr<local>, i32 -> !ptx.ptr<local>\n"
    used = "ptx.st %i32, %p align 4 : i32, !ptx.ptr<local>\n%v = ptx.ld %r align 4 : !ptx.ptr<local> -> i32\n"
    counts = _counts(f"{address}{used}ptx.st %v, %A align 4 : i32, !ptx.ptr<global>")
    assert all(counts[local] for local in LOCAL)
