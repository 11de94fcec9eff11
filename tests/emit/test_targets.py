# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation on every target: LLVM selects it, the assembler accepts it, it is the instruction it names."""

import pytest
from tilefold.base.target import Target, known_targets
from tilefold.compiler.emit import RULES, emit_llvm
from tilefold.compiler.emit.structs import STRUCTS
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.dialects.math.functions import ACCURATE, INSTRUCTIONS
from tilefold.dialects.ptx import (
    CVT_FORMS,
    GLOBAL,
    CopyTensorMapOp,
    CpAsyncOp,
    F32x2Op,
    LdMatrixOp,
    MinMax3Op,
    PtxOp,
    StMatrixOp,
)

from tests.dialects.test_complete import OF_PACKAGES
from tests.emit.examples import ARGS, MATRICES_OF_BYTES, PTX, SHARED, WARPGROUPS, accesses, all_examples, exists
from tests.emit.harness import ASSEMBLED, kernel, parse, ptx_of
from tests.emit.tcgen05_examples import EXACT, REDUCING, TCGEN05

_INSIDE = {"scf.yield", "scf.condition", "ptx.ret", "ptx.ld", "arith.constant"}  # in the others' examples


def test_every_rule_has_an_example() -> None:
    rules = {kind.name for kind in (*RULES, *dict(STRUCTS), *ACCURATE, *INSTRUCTIONS)}
    examples = (*all_examples(100), *all_examples(120), *WARPGROUPS, *TCGEN05, *EXACT, *REDUCING)
    assert rules - _INSIDE - OF_PACKAGES == {name for name, _ in examples}


@pytest.mark.parametrize("target", ASSEMBLED, ids=str)
@pytest.mark.sampled(1)
def test_every_operation_assembles(target: Target) -> None:
    bodies = all_examples(target.sm)
    text = "".join(
        f"  ptx.entry @k{index}({ARGS}) threads(32, 4) shared({SHARED}) {{\n{body}\nptx.ret\n}}\n"
        for index, (_, body) in enumerate(bodies)
    )
    ptx = compile_llvm(emit_llvm(parse(f"gpu.module @kernels {{\n{text}}}\n"), target), target)
    assert len(assemble(ptx, target).kernels) == len(bodies)


@pytest.mark.parametrize(("body", "target"), [
    (body, target)
    for name, body in (*accesses(), *PTX)
    for target in (Target("sm_80"), Target("sm_100a"))
    if exists(name, target.sm)
])  # fmt: skip
@pytest.mark.sampled(170)
def test_ptx_operation_is_the_instruction_that_its_mnemonic_names(body: str, target: Target) -> None:
    text = kernel(body, ARGS, shared=SHARED)
    expected: dict[str, int] = {}
    for op in parse(text).walk():
        if isinstance(op, PtxOp) and (mnemonic := op.mnemonic()) is not None:
            expected[mnemonic] = expected.get(mnemonic, 0) + 1
        if isinstance(op, CpAsyncOp) and op.policy is not None:
            expected["prmt.b32"] = expected.get("prmt.b32", 0) + 1  # see emit/hinted_accesses.py
        if isinstance(op, CopyTensorMapOp):  # by 16 bytes
            expected[f"st.{'global' if op.ptr.type == GLOBAL else 'shared'}.v2.b64"] = 8
    counts = count_instructions(ptx_of(text, target))["k"]
    moves = (
        "ld.b64",
        "ld.global",
        "st.global",
        "ld.shared",
        "st.shared",
        "st.bulk",
        *("cp.async", "cp.reduce", "prefetch"),
        *("ldmatrix", "stmatrix", "movmatrix"),
        "mma.",
        "bar.",
        "shfl",
        "vote",
        "multimem",
        "match",
        "redux",
        "elect",
        "activemask",
        *("atom", "red.", "ld.acquire", "st.release", "fence", "nanosleep", "mbarrier", "griddepcontrol"),
        *("mapa", "getctarank", "barrier.", "st.async", "tensormap", "clusterlaunchcontrol"),
        *("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh", "prmt", "dp4a", "createpolicy"),
        *(f"cvt.{form}" for form in CVT_FORMS),
        *(f"{form}.f32x2" for form in F32x2Op.FORMS),
        *(f"{form}.f32" for form in MinMax3Op.FORMS),
        "call",
        "ret",
    )
    assert {name: n for name, n in counts.items() if name.startswith(moves)} == expected


@pytest.mark.parametrize("target", [Target("sm_100a"), Target("sm_103a"), Target("sm_120a")], ids=str)
def test_matrices_of_bytes_assemble_for_single_architectures(target: Target) -> None:
    for _, body in MATRICES_OF_BYTES:
        text = kernel(body, ARGS, shared=SHARED)
        (op,) = [op for op in parse(text).walk() if isinstance(op, LdMatrixOp | StMatrixOp)]
        ptx = ptx_of(text, target)
        assert count_instructions(ptx)["k"][op.mnemonic()] == 1
        assert assemble(ptx, target).kernels["k"].registers > 0


@pytest.mark.parametrize("name", known_targets())
def test_every_target_can_be_compiled_and_assembled(name: str) -> None:
    target = Target(name)
    body = "ptx.bar.sync 0\nptx.st %i32, %B align 4 : i32, !ptx.ptr<global>"
    ptx = ptx_of(kernel(body, ARGS), target)
    version = f"{target.ptx_version // 10}.{target.ptx_version % 10}"
    assert f".version {version}\n.target {name}\n" in ptx
    assert assemble(ptx, target).kernels["k"].registers > 0
