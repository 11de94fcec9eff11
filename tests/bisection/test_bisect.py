# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold bisect` and `.bisect(...)`: wrong rewrites are planted in passes, and the search must name them."""

import re
from collections.abc import Callable, Generator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.pipeline import PASSES
from tilefold.dialects import ptx
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tests.cli.kernels import SCALE, write
from tests.project.tree import ROOT
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.driver.lowering import load
from tilefold.tools.bisection.emission import discrepancies

Capture = pytest.CaptureFixture[str]
Rewrite = Callable[[ModuleOp], None]


@contextmanager
def planted(monkeypatch: pytest.MonkeyPatch, name: str, rewrite: Rewrite) -> Generator[None, None, None]:
    """Within it, a pass also makes a wrong rewrite."""
    kind: Any = PASSES[name]()
    right = kind.apply

    def apply(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        rewrite(op)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "apply", apply)
        yield


def first(module: ModuleOp, kind: type[Operation] | tuple[type[Operation], ...]) -> Operation:
    return next(op for op in module.walk() if isinstance(op, kind))


def one_more(module: ModuleOp) -> None:
    """Makes the last multiplication of integers one by a number that is larger by 1."""
    for op in reversed(list(module.walk())):
        if isinstance(op, arith.MuliOp):
            constant = op.rhs.owner
            if isinstance(constant, arith.ConstantOp) and isinstance(constant.value, IntegerAttr):
                value = constant.value.value.data + 1
                constant.properties["value"] = IntegerAttr(value, constant.value.type)  # pyright: ignore[reportArgumentType]
                return
    raise AssertionError("there is a product by a constant")


def subtracted(module: ModuleOp) -> None:
    """Makes the first sum of floats a difference."""
    op = first(module, arith.AddfOp)
    assert isinstance(op, arith.AddfOp)
    other = arith.SubfOp(op.lhs, op.rhs)
    other.location = op.location
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(other, op)
    op.result.replace_all_uses_with(other.result)
    Rewriter.erase_op(op)


def without_barrier(module: ModuleOp) -> None:
    """Leaves out the first barrier."""
    Rewriter.erase_op(first(module, ptx.BarSyncOp))


def test_a_right_program_is_right_after_every_pass(tmp_path: Path, capsys: Capture) -> None:
    assert main(["bisect", write(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "as written, at stage 'atoms': runs" in out
    assert "lower-tensors: same" in out
    assert "as written: B == A * 2: 256 elements: ok" in out
    assert out.endswith("the kernel does the same after every pass\n")


def test_a_pass_that_changes_an_operation_is_named_with_it(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with planted(monkeypatch, "convert-index", subtracted):
        assert main(["bisect", write(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "lower-tensors: same" in captured.out
    assert "convert-index: DIFFERS: B at (0, 0) is 0.0 instead of " in captured.out
    assert " of 256 elements differ" in captured.out
    assert "your kernel is right at stage 'index'" in captured.out
    assert f"before: written by ptx.st at {tmp_path / 'k.cute'}:13:7, block (0,0,0), thread (0,0,0)" in captured.out
    assert "pass 'convert-index' changes the program" in captured.err


def test_the_change_of_the_line_is_shown(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    with planted(monkeypatch, "lower-tensors", one_more):
        assert main(["bisect", write(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "your kernel is right at stage 'atoms'" in out
    assert "the IR of these lines before and after the pass:\n@@ -1 +1 @@\n" in out
    assert re.search(r"^- +tile.store ", out, re.MULTILINE)
    assert re.search(r"^\+ +ptx.st ", out, re.MULTILINE)


def test_a_fault_that_a_pass_makes_is_that_of_the_pass(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    with planted(monkeypatch, "lower-tensors", without_barrier):
        assert main(["bisect", str(ROOT / "examples" / "hgemm.cute")]) == 1
    out = capsys.readouterr().out
    assert "lower-tensors: DIFFERS: a fault: E32" in out
    assert "your kernel is right at stage 'atoms'" in out


def failing(module: ModuleOp) -> None:
    raise RuntimeError("it does not work")


def misplaced(module: ModuleOp) -> None:
    """Moves the first load behind the uses of its value (E1004)."""
    op = first(module, ptx.LoadOp)
    block = op.parent_block()
    assert block is not None
    assert block.last_op is not None
    op.detach()
    block.insert_op_before(op, block.last_op)


@pytest.mark.parametrize(("rewrite", "does", "said"), [
    (failing, "fails, or leaves an invalid program", "it does not work"),
    (misplaced, "leaves an invalid program", "E1004"),
])  # fmt: skip
def test_a_pass_that_fails_or_leaves_invalid_ir_is_named(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, rewrite: Rewrite, does: str, said: str
) -> None:
    with planted(monkeypatch, "lower-tensors", rewrite):
        assert main(["bisect", write(tmp_path)]) != 0
    captured = capsys.readouterr()
    assert f"pass 'lower-tensors' {does}" in captured.out
    assert said in captured.out + captured.err


def test_a_fault_of_the_kernel_is_its_own(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, SCALE.replace("%A(%t, %j)", "%A(%j, %t)"))
    assert main(["bisect", path]) == 1
    out = capsys.readouterr().out
    assert "the kernel has a fault as written: E3202" in out
    assert "the kernel faults in the same way after every pass" in out
    assert "DIFFERS" not in out


def test_a_wrong_kernel_is_not_the_fault_of_a_pass(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, SCALE.replace("A * 2", "A * 3"))
    assert main(["bisect", path]) == 1
    out = capsys.readouterr().out
    assert "as written: B == A * 3: 256 elements: FAILED" in out
    assert "the kernel does the same after every pass" in out


TWICE = SCALE.replace("tile.store %w, %B(%t, %j)", "tile.store %v, %B(%t, %j)\n      tile.store %w, %B(%t, %j)")


def test_stores_are_compared_where_results_agree(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, TWICE)

    def rewrite(module: ModuleOp) -> None:
        Rewriter.erase_op(first(module, ptx.StoreOp))

    with planted(monkeypatch, "lower-tensors", rewrite):
        assert main(["bisect", path]) == 0
        assert main(["bisect", path, "--stores"]) == 1
    assert "the results agree, but 1024 bytes were written on the way instead of 2048" in capsys.readouterr().out


def test_passes_can_be_chosen(tmp_path: Path, capsys: Capture) -> None:
    assert main(["bisect", write(tmp_path), "-p", "fold-layouts,cse"]) == 0
    assert "kernels::double: 2 passes" in capsys.readouterr().out


def test_a_pass_that_refuses_the_program_is_named(tmp_path: Path, capsys: Capture) -> None:
    assert main(["bisect", write(tmp_path), "-p", "fold-layouts,check-stage{stage=instr}"]) == 1
    captured = capsys.readouterr()
    assert captured.out.endswith("pass 'check-stage' rejects the program\n")
    assert "error[E2006]" in captured.err


def test_programs_of_the_public_cute_ir_are_searched(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator does not run what one pass leaves, so that it and the next one are named together."""
    passes = "cute-fold-static,cute-expand-ops,cute-to-base,gpu-to-ptx"
    command = ["bisect", str(ROOT / "tests" / "mutants" / "programs" / "printed.cute"), "-p", passes]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "\n    as written: runs (" in out
    assert "3 cute-to-base: the simulator cannot run it" in out
    assert "4 gpu-to-ptx: same" in out

    def wrong(module: ModuleOp) -> None:
        *_, last = (op for op in module.walk() if op.name == "gpu.printf")
        last.operands[0] = last.operands[1]

    with planted(monkeypatch, "cute-to-base", wrong):
        status = main(command)
    captured = capsys.readouterr()
    assert status == 1
    assert "your kernel is right as it was written" in captured.out
    assert "pass 'cute-to-base,gpu-to-ptx' changes the program" in captured.err


def test_the_first_form_that_the_simulator_can_run_is_the_reference(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "called.cute"
    text = (ROOT / "tests" / "mutants" / "programs" / "called.cute").read_text()
    path.write_text(text.replace("ub.poison", "llvm.mlir.undef"))
    assert main(["bisect", str(path), "-p", "inline-calls,base-prepare,cute-expand-ops"]) == 0
    out = capsys.readouterr().out
    assert "as written: the simulator cannot run it\n  1 inline-calls: the simulator cannot run it\n" in out
    assert "  2 base-prepare: same" in out


def test_a_program_at_stage_instr_is_compiled_for_a_target_that_has_its_instructions(
    tmp_path: Path, capsys: Capture
) -> None:
    body = "%n = arith.constant 16 : i32\n%s = ptx.smem.addr 0\nptx.cp.async.bulk.store %B, %s, %n\n"
    program = f"ptx.entry @k(%B: !ptx.ptr<global> align 16) threads(1) shared(16) {{\n{body}ptx.ret\n}}"
    launch = 'run.launch @kernels::@k grid(1) {\nrun.arg "B" : !tile.tensor<i32, gmem, align<16>, "4:1"> = "zeros"\n}\n'
    assert main(["bisect", write(tmp_path, f"gpu.module @kernels {{\n{program}\n}}\n{launch}")]) == 1
    captured = capsys.readouterr()
    assert "the kernel has a fault as written: E3204" in captured.out
    assert not captured.err


def test_options_that_cannot_be_used(tmp_path: Path, capsys: Capture) -> None:
    assert main(["bisect", write(tmp_path), "--max-steps", "0"]) == 1
    assert "E4003" in capsys.readouterr().err


@cute.kernel
def doubled(a: cute.Tensor, b: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    b[t] = a[t] + a[t]


def test_calls_in_python_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.arange(32, dtype=np.float32), np.full(32, -1, np.float32)
    verdict = doubled(a, b).bisect(grid=1, block=32)
    assert verdict.passed
    assert str(verdict) == "the kernel does the same after every pass"
    assert (b == -1).all(), "it works on copies"
    with planted(monkeypatch, "strength-reduce", subtracted):
        verdict = doubled(a, b).bisect(grid=1, block=32)
    assert not verdict.passed
    assert verdict.culprit is not None
    assert verdict.culprit.after.name == "strength-reduce"
    assert verdict.culprit.difference.text == "b at (1) is 0.0 instead of 2.0; 31 of 32 elements differ"
    assert "test_bisect.py" in str(verdict)


BARRIERS = """
gpu.module @kernels {
  ptx.entry @k() threads(64) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      ptx.cp.async.commit_group
      ptx.cp.async.wait_group 0
      ptx.bar.sync 0
    }
    ptx.fence "acq_rel" scope "gpu"
    ptx.ret
  }
}
"""


REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;"


def ptx_of(*lines: str, parameters: str = "", first: str = "") -> str:
    """A kernel with instructions from line 4 on, behind what stands in line 3."""
    body = "\n".join(f"\t{line};" for line in lines)
    return f".visible .entry k({parameters}\n)\n{{ {REGISTERS} {first}\n{body}\n\tret;\n}}\n"


TURN = ["cp.async.commit_group", "cp.async.wait_group 0", "bar.sync 0"]


def compared(text: str, written: str, executed: Set[str] | None = None) -> list[str]:
    """The discrepancies of a PTX text from the kernel of a program."""
    program = load(Source("k.cute", text, text), "sm_80")
    entry = next(op for op in program.module.walk() if isinstance(op, ptx.EntryOp))
    return [str(discrepancy) for discrepancy in discrepancies(entry, written, Target("sm_80"), executed)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*TURN, "fence.acq_rel.gpu"], None),
        ([*TURN, *TURN, *TURN, "fence.acq_rel.gpu"], None),
        (TURN, "the PTX has no fence.acq_rel.gpu, which the kernel executes"),
        ([*TURN, *TURN], "the PTX has no fence.acq_rel.gpu, which the kernel executes"),
        (["bar.sync 0", *TURN, "fence.acq_rel.gpu"], "bar.sync 0 may not follow the kernel's begin"),
        ([*TURN, *TURN[:2], "fence.acq_rel.gpu"], "fence.acq_rel.gpu may not follow cp.async.wait_group 0 in line 8"),
        (
            [TURN[0], "cp.async.wait_group 1", TURN[2], "fence.acq_rel.gpu"],
            "cp.async.wait_group 1 may not follow cp.async",
        ),
        ([*TURN[:2], "bar.sync 1", "fence.acq_rel.gpu"], "bar.sync 1 may not follow cp.async.wait_group 0 in line 5"),
        (["ld.shared.b32 %r1, [%r2]", *TURN, "fence.acq_rel.gpu"], "the PTX has ld.shared.b32, which no operation"),
        (["ld.param.b32 %r1, [%r2]", "ld.local.b32 %r1, [%r2]", *TURN, "fence.acq_rel.gpu"], None),
        ([*TURN, "membar.gl", "fence.acq_rel.gpu"], "the PTX has membar.gl, which no operation of the kernel has"),
    ],
)
def test_the_text_follows_the_operations(lines: list[str], message: str | None) -> None:
    found = compared(BARRIERS, ptx_of(*lines))
    if message is None:
        assert not found
    else:
        assert any(message in text for text in found), found


def test_the_number_of_a_barrier_may_be_known_to_the_launch_alone() -> None:
    text = BARRIERS.replace("ptx.bar.sync 0", "ptx.bar.sync 0 plus %i").replace("%c8 step", "%c1 step")
    for barrier in ("bar.sync %r1", "bar.sync 3"):
        assert not compared(text, ptx_of(*TURN[:2], barrier, "fence.acq_rel.gpu"))
    (found,) = compared(text, ptx_of(*TURN[:2], "bar.arrive 0", "fence.acq_rel.gpu"))[2:]
    assert "bar.sync (a number) would" in found


def test_dropped_instructions_of_the_text_are_found(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tilefold.tools.bisection.bisect as module

    right = module.compile_llvm

    def without_barrier(llvm: str, target: Target, *, keeps_undefined: bool) -> str:
        return right(llvm, target, keeps_undefined=keeps_undefined).replace("bar.sync", "// bar.sync", 1)

    monkeypatch.setattr(module, "compile_llvm", without_barrier)
    assert main(["bisect", str(ROOT / "examples" / "transpose.cute"), "--launch", "padded_f32"]) == 1
    captured = capsys.readouterr()
    assert "the PTX has no bar.sync, which the kernel executes" in captured.out
    assert "the emission of PTX changes the program" in captured.err


def test_every_path_through_the_text_is_followed() -> None:
    """A loop of the text whose block stands behind the end, and one path through it that misses the barrier."""
    turn = "".join(f"\t{line};\n" for line in TURN)
    text = (
        f".visible .entry k(\n)\n{{ {REGISTERS}\n\tbra.uni $L2;\n$L1:\n\tfence.acq_rel.gpu;\n\tret;\n$L2:\n"
        + turn
        + "\t@%p1 bra $L2;\n\tbra.uni $L1;\n}\n"
    )
    assert not compared(BARRIERS, text)
    skipping = text.replace("\tbar.sync 0;\n", "\t@%p2 bra $L2;\n\tbar.sync 0;\n")
    (found,) = compared(BARRIERS, skipping)
    assert "cp.async.commit_group may not follow cp.async.wait_group 0 in line 10; bar.sync 0 would" in found
    # a table of jumps, and a place that no execution reaches
    table = "\t$L_brx_0: .branchtargets\n\t\t$L2,\n\t\t$L3;\n\tbrx.idx %r1, $L_brx_0;\n"
    jumping = text.replace("\tbra.uni $L2;\n", table).replace("}\n", "$L3:\n\texit;\n}\n")
    assert not compared(BARRIERS, jumping)
    (found,) = compared(BARRIERS, jumping.replace("exit", "ret"))
    assert "the PTX ends after the kernel's begin, and lacks cp.async.commit_group or fence.acq_rel.gpu" in found


ACCESSES = """
gpu.module @kernels {
  ptx.entry @k(%A: !ptx.ptr<global> align 16, %p: i1) threads(64) shared(16) {
    %zero = arith.constant 0 : i32
    %count = arith.constant 64 : i32
    %bar = ptx.smem.addr 0 bytes 8
    ptx.mbarrier.init %bar, %count
    ptx.bar.sync 1 threads 64
    %x = ptx.ld %A align 4 : !ptx.ptr<global> -> i32
    %pair = vector.broadcast %x : i32 to vector<2xi32>
    scf.if %p {
      ptx.st %pair, %A align 8 : vector<2xi32>, !ptx.ptr<global>
    }
    ptx.mbarrier.wait %bar, %zero
    ptx.ret
  }
}
"""
PARAMETERS = ".param .u64 A, .param .u8 p"
FIRST = "ld.param.b64 %rd1, [A]; mov.b32 %r2, 0; mov.b64 %rd4, 0;"
TEXT = (
    "mov.b32 %r1, 64", "mbarrier.init.shared.b64 [%r2], %r1", "bar.sync 1, 64", "ld.global.b32 %r3, [%rd1]",
    "st.global.v2.b32 [%rd1], {%r3, %r3}", "mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 0",
)  # fmt: skip


@pytest.mark.parametrize(
    ("index", "line", "message"),
    [
        (0, "mov.b32 %r1, 64", None),
        (3, "ld.global.s32 %rd3, [%rd1]", None),
        (4, "st.global.b64 [%rd1], %rd4", None),
        (0, "mov.b32 %r1, 65", "mbarrier.init.shared.b64 65 may not follow the kernel's begin;"),
        (2, "bar.sync 1, 96", "may not follow mbarrier.init.shared.b64 64 in line 5; bar.sync 1, 64 would"),
        (3, "bar.warp.sync -1", "the PTX has no ld.global.b32, which the kernel executes"),
        (4, f"{TEXT[4]};\n\t{TEXT[4]}", "st.global.v2.b32 may not follow st.global.v2.b32 in line 8"),
        (4, TEXT[3], "ld.global.b32 may not follow ld.global.b32 in line 7"),
        (5, TEXT[5].replace(" 0", " 1"), "mbarrier.test_wait.parity.shared.b64 1 may not follow st.global.v2.b32"),
        (5, TEXT[5].replace("test", "try"), "the PTX has no mbarrier.test_wait.parity.shared.b64, which the kernel"),
    ],
)  # fmt: skip
def test_accesses_are_in_order_and_numbers_stay(index: int, line: str, message: str | None) -> None:
    found = compared(ACCESSES, ptx_of(*TEXT[:index], line, *TEXT[index + 1 :], parameters=PARAMETERS, first=FIRST))
    assert any(message in text for text in found) if message else not found, found


def test_instructions_that_nothing_executes_may_be_dropped() -> None:
    text = ptx_of(*TEXT[:4], TEXT[5], parameters=PARAMETERS, first=FIRST)
    assert compared(ACCESSES, text) == ["k: the PTX has no st.global.v2.b32, which the kernel executes"]
    assert not compared(ACCESSES, text, executed={"ld.global.b32"})
