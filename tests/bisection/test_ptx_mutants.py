# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong instructions in the PTX of examples, as a broken emission or LLVM would leave them, are found and named."""

import re
from dataclasses import dataclass
from functools import cache

import pytest
from tilefold.compiler.reports.listing import Lister
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.sim_engine import SimEngine, discard

from tests.kernels.harness import MAX_BYTES, changed_program
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.trial import Outcome, Trial
from tilefold.tools.bisection.emitted import PTX, PtxCulprit, run_ptx
from tilefold.tools.bisection.steps import Step


@dataclass(frozen=True)
class _Example:
    """A launch of an example: its program at stage `instr`, its PTX, and the outcome."""

    last: Step
    text: str
    trial: Trial
    reference: Outcome

    def search(self, text: str) -> PtxCulprit | None:
        seen: list[str] = []

        def observe(step: Step, *_: object) -> None:
            seen.append(step.name)

        found = run_ptx(self.last, text, self.trial, self.reference, observe)
        assert seen == ["PTX"]
        return found


_SMALL = {"gemm_sm90": {"M": "128", "N": "128", "K": "320"}}
"""Examples with other parameters."""


@cache
def _example(name: str) -> _Example:
    read = changed_program(name, **_SMALL.get(name, {}))
    target = read.simulated_target("instr")
    launch = read_launches(read.module, read.source, Changes())[0]
    arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
    config = LaunchConfig(launch.grid, launch.block)
    engine = SimEngine(SimOptions(processes=1), discard, tensor_cores=read.tensor_cores)
    trial = Trial(launch.kernel, config, arguments.launchable, engine)
    module = read.reached("instr", target)
    return _Example(Step(1, "", "instr", module, Lister()), read.ptx(target, lines=False), trial, trial.run(module))


MUTANTS = (
    ("ldmatrix", "registers swapped", r"x4\.shared\.b16 \{(%r\d+), (%r\d+)", r"x4.shared.b16 {\2, \1"),
    ("ldmatrix", "transposed", r"x4\.shared", "x4.trans.shared"),
    ("ldmatrix", "address scaled", r"(mul\.wide\.u32 \t%rd\d+, %r\d+), 16", r"\1, 8"),
    ("ldmatrix", "shift of another width", r"(shl\.b32 \t%r2, %r1), 3", r"\1, 4"),
    ("ldmatrix", "mask of fewer bits", r"(and\.b32 \t%r3, %r1), 24", r"\1, 8"),
    ("ldmatrix", "or for xor", r"xor\.b32 (\t%r4,)", r"or.b32 \1"),
    ("ldmatrix", "source of cp.async moved", r"\[%rd4\+512\]", "[%rd4+528]"),
    ("ldmatrix", "destination of cp.async moved", r"\[%r7\+1024\]", "[%r7+1040]"),
    ("ldmatrix", "half of cp.async", r"(\[%rd4\+1024\]), 16", r"\1, 16, 8"),
    ("ldmatrix", "group never committed", r"cp\.async\.commit_group;", ""),
    ("ldmatrix", "one group not waited for", r"wait_group \t0", "wait_group \t1"),
    ("ldmatrix", "another matrix", r"(ldmatrix.*\+)2048\]", r"\g<1>4096]"),
    ("ldmatrix", "another column", r"(or\.b32 \t%r38, %r17), 16", r"\1, 48"),
    ("reduce", "comparison inverted", r"setp\.ne\.b32", "setp.eq.b32"),
    ("reduce", "branch inverted", r"@%p1 bra", "@!%p1 bra"),
    ("reduce", "lanes of another distance", r"(shfl.*), 16, 31", r"\1, 8, 31"),
    ("reduce", "another exchange", r"shfl\.sync\.bfly", "shfl.sync.up"),
    ("reduce", "difference for a sum", r"add\.rn\.f32 (\t%r23,)", r"sub.rn.f32 \1"),
    ("reduce", "product for a sum", r"add\.rn\.f32 (\t%r31,)", r"mul.rn.f32 \1"),
    ("reduce", "store for an atomic sum", r"red\.relaxed\.gpu\.global\.add\.f32", "st.global.f32"),
    ("reduce", "address scaled", r"(mul\.wide\.u32 \t%rd10, %r2), 4", r"\1, 8"),
    ("reduce", "warp's number", r"(shr\.u32 \t%r2, %r5), 5", r"\1, 4"),
    ("reduce", "lane's number", r"(and\.b32 \t%r10, %r5), 31", r"\1, 15"),
    ("reduce", "same load twice", r"\[%rd6\+512\]", "[%rd6]"),
    ("reduce", "mask of half a warp", r"31, -1", "31, 65535"),
    ("reduce", "sum begins at one", r"0f00000000", "0f3F800000"),
    ("reduce", "row's distance", r"(shl\.b32 \t%r7, %r1), 14", r"\1, 13"),
    ("tma_copy", "coordinates of the load reversed", r"(cp\.async.*global\.tile.*)\{(%r\d+), (%r\d+)\}", r"\1{\3, \2}"),
    ("tma_copy", "coordinates of the store reversed", r"(bulk_group \[.*)\{(%r\d+), (%r\d+)\}", r"\1{\3, \2}"),
    ("tma_copy", "other threads copy", r"setp\.ne\.b32", "setp.eq.b32"),
    ("tma_copy", "fewer bytes expected", r"(mov\.b32 \t%r\d+), 8192", r"\1, 4096"),
    ("tma_copy", "one arrival more", r"(mov\.b32 \t%r5), 1", r"\1, 2"),
    ("tma_copy", "the other parity", r"(mov\.b32 \t%r12), 0", r"\1, 1"),
    ("tma_copy", "tile's distance", r"(shl\.b32 \t%r10, %r3), 6", r"\1, 5"),
    ("tma_copy", "mbarrier elsewhere", r"add\.s32 (\t%r7, %r9), 8192", r"add.s32 \1, 8200"),
    ("ragged_copy", "slt is sle", r"setp\.lt\.s32 (\t%p5)", r"setp.le.s32 \1"),
    ("ragged_copy", "slt is sgt", r"setp\.lt\.s32 (\t%p6)", r"setp.gt.s32 \1"),
    ("ragged_copy", "guard not negated", r"not\.pred (\t%p10, %p1)", r"mov.pred \1"),
    ("ragged_copy", "or for and", r"and\.pred (\t%p1,)", r"or.pred \1"),
    ("ragged_copy", "tile's distance", r"(mul\.wide\.u32 \t%rd1, %r5), 128", r"\1, 64"),
    ("ragged_copy", "row's factor", r"(mad\.lo\.s64 \t%rd9, %rd15), 96", r"\1, 64"),
    ("ragged_copy", "rows beyond the matrix", r"setp\.lt\.s32 (\t%p7)", r"setp.gt.s32 \1"),
    ("hgemm", "registers of A swapped", r"(mma\.sync.*?\}, )\{(%r\d+),(%r\d+),", r"\1{\3,\2,"),
    ("hgemm", "registers of the sum swapped", r"(mma\.sync\.\S+ )\{(%r\d+),(%r\d+),", r"\1{\3,\2,"),
    ("gemm_sm90", "descriptor moved", r"(add\.s64 \t%rd\d+, %rd\d+), 2;", r"\1, 4;"),
    ("gemm_sm90", "scale_d inverted", r"setp\.ne\.b32 p,", "setp.eq.b32 p,"),
    ("gemm_sm90", "registers of stmatrix swapped", r"(stmatrix.*)\{(%r\d+), (%r\d+)", r"\1{\3, \2"),
    ("gemm_sm90", "matrices transposed", r"(stmatrix\.sync\.aligned\.m8n8\.x4)", r"\1.trans"),
    ("gemm_sm90", "group of wgmma not waited for", r"(wgmma\.wait_group\.sync\.aligned \t?)0", r"\g<1>1"),
    ("gemm_sm90", "fence of wgmma lost", r"wgmma\.fence\.sync\.aligned;", ""),
    ("gemm_sm90", "stage never released", r"mbarrier\.arrive\.shared\.b64 state, \[%r\d+\];", ""),
    ("gemm_sm90", "barrier of the block lost", r"bar\.sync \t0;", ""),
    ("gemm_sm90", "fence of the proxy lost", r"fence\.proxy\.async\.shared::cta;", ""),
    ("hgemm", "one group not waited for", r"cp\.async\.wait_group \t(\d)", "cp.async.wait_group \t2"),
    ("hgemm", "barrier lost", r"bar\.sync \t0;", ""),
    ("hgemm", "or for xor", r"xor\.b32 (\t%r16,)", r"or.b32 \1"),
    ("hgemm", "source moved", r"\[%rd2\+8192\]", "[%rd2+8256]"),
)  # fmt: skip


@pytest.mark.parametrize(("example", "subject", "old", "new"), MUTANTS, ids=[f"{m[0]}: {m[1]}" for m in MUTANTS])
@pytest.mark.sampled(4)
def test_a_wrong_instruction_is_found_and_named(example: str, subject: str, old: str, new: str) -> None:
    given = _example(example)
    changed, count = re.subn(old, new, given.text, count=1)
    assert count == 1
    assert changed != given.text
    culprit = given.search(changed)
    assert culprit is not None, f"{subject} is missed"
    said = str(culprit)
    assert culprit.instruction is not None, said
    assert culprit.instruction.file == PTX
    assert culprit.text == changed.splitlines()[culprit.instruction.line - 1].strip()
    assert f"  PTX: line {culprit.instruction.line}: {culprit.text}" in said
    if culprit.difference.argument is None:
        assert "a fault: E3" in said
    else:
        assert culprit.operation is not None
        assert f"  operation: {culprit.operation}" in said
        assert " instead of " in said


@pytest.mark.parametrize("example", sorted({mutant[0] for mutant in MUTANTS}))
def test_the_right_ptx_passes(example: str) -> None:
    given = _example(example)
    assert given.reference.fault is None
    assert given.search(given.text) is None
