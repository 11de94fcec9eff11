# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remarks on fragments in local memory: those that the PTX has there, at the lines that are the reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.dialects.ptx import EntryOp, LocalAllocOp, WgmmaMmaAsyncOp
from tilefold.passes.analysis.local_memory import LocalFragment
from xdsl.ir import Operation

from tests.emit.harness import kernel
from tests.kernels.harness import EXAMPLES, TARGET, example, program, program_of, target_of
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.driver.lowering import Program

INDEXED = """\
!g = !tile.tensor<f32, gmem, align<16>, "(32,8):(8,1)">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %n: i32) threads(32) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 7 : index
    %r = tile.alloc : !tile.tensor<f32, rmem, align<16>, "8:1">
    scf.for %i = %c0 to %c8 step %c1 {
      %v = tile.load %A(%t, %i)
      tile.store %v, %r(%i)
    } {unroll}
    %by = arith.index_cast %n : i32 to index
    %first = arith.minui BY, %c1 : index
    %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%k = %c0) -> (index) {
      ptx.bar.sync 0
      %v = tile.load %r(%k)
      tile.store %v, %A(%t, %i)
      %l = arith.addi %k, %first : index
      scf.yield %l : index
    } {unroll}
    %w = tile.load %r(%last)
    tile.store %w, %A(%t, 0)
    return
  }
}
"""


LOOPS = "mark the loops around it {unroll}"
IN_MEMORY = "all 32 bytes lie in local memory instead of registers"
CHOICE = "choose the element by conditions on the index, or keep the elements in shared memory"


def _told(program: Program, *, compiled: bool = True) -> list[tuple[int, str]]:
    remarks = [remark for remark in program.remarks(TARGET, compiled=compiled) if remark.op == "fragment"]
    return [(remark.place.line if remark.place else 0, remark.text) for remark in remarks]


@pytest.mark.parametrize(
    ("step", "marked", "lines", "cure"),
    [("%c1", True, [], ""), ("%c1", False, [17, 22], LOOPS), ("%by", True, [17, 22], CHOICE)],
)
def test_accesses_by_indices_of_the_run_are_told(step: str, marked: bool, lines: list[int], cure: str) -> None:
    """The assembler finds the same fragment there. Loops are to be marked where that makes the index known."""
    text = INDEXED.replace("BY", step)
    text = text if marked else "".join(text.rsplit(" {unroll}", 1))
    told = f"the index is known only at run time, so all 32 bytes lie in local memory instead of registers; {cure}"
    program = program_of(text)
    assert _told(program) == [(line, told) for line in lines]
    assert program.cubin(TARGET).kernels["k"].stack == (32 if lines else 0)
    report = program.report(TARGET)
    assert report.count("local memory: test.cute:") == len(lines)
    assert _told(program, compiled=False) == []


FRAGMENT = """
%f = ptx.local.alloc 32 align 16
%v = ptx.ld %p align 4 : !ptx.ptr<global> -> f32
%o = ptx.ld %p align 4 : !ptx.ptr<global> -> f32
%zero = arith.constant 0 : i32
%four = arith.constant 4 : i32
%g = ptx.ptr_add %f, %four : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
ptx.st %v, %f align 4 : f32, !ptx.ptr<local>
ptx.st %o, %g align 4 : f32, !ptx.ptr<local>
%c = arith.cmpi eq, %n, %zero : i32
"""
CHOSEN = """
%k = arith.select %c, %zero, %four : i32
%h = ptx.ptr_add %f, %k : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
%w = ptx.ld %h align 4 : !ptx.ptr<local> -> f32
ptx.st %w, %p align 4 : f32, !ptx.ptr<global>
"""
INDEX = """
%k = arith.muli %n, %four : i32
%h = ptx.ptr_add %f, %k : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
%w = ptx.ld %h align 4 : !ptx.ptr<local> -> f32
ptx.st %w, %p align 4 : f32, !ptx.ptr<global>
"""
CHOSEN_IN_AN_IF = CHOSEN.replace(
    "%k = arith.select %c, %zero, %four : i32",
    "%k = scf.if %c -> (i32) {\nscf.yield %zero : i32\n} else {\nscf.yield %four : i32\n}",
)
ONE_OF_TWO = """
%e = ptx.local.alloc 32 align 16
ptx.st %o, %e align 4 : f32, !ptx.ptr<local>
%d = arith.select %c, %e, %g : !ptx.ptr<local>
%k = arith.muli %n, %four : i32
%h = ptx.ptr_add %d, %k : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
%w = ptx.ld %h align 4 : !ptx.ptr<local> -> f32
ptx.st %w, %p align 4 : f32, !ptx.ptr<global>
"""
ARGS = "%p: !ptx.ptr<global> align 16, %n: i32"


@pytest.mark.parametrize(("body", "told"), [
    ("", []),
    ('ptx.printf "%d\\n"(%n) : i32', []),
    (CHOSEN, []),  # LLVM chooses between the two values
    (CHOSEN_IN_AN_IF, []),
    (INDEX, [(14, f"the index is known only at run time, so {IN_MEMORY}; {CHOICE}")]),
    (ONE_OF_TWO, [(14, f"arith.select takes the address of a fragment, so {IN_MEMORY}")]),
], ids=["none", "printf", "chosen", "chosen in an if", "index", "one of two"])  # fmt: skip
def test_each_reason_is_told_and_no_other(body: str, told: list[tuple[int, str]]) -> None:
    """A second fragment, which stays in registers, is not told, and printf's own memory is no fragment."""
    registers = "%r = ptx.local.alloc 16 align 16\nptx.st %n, %r align 4 : i32, !ptx.ptr<local>"
    program = program_of(kernel(f"{FRAGMENT.strip()}\n{body.strip()}\n{registers}\n", ARGS))
    assert _told(program) == told
    assert bool(told) == ("ld.local" in program.ptx(TARGET))


def test_explain_tells_it_and_remarks_do_not_compile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "k.cute"
    file.write_text(kernel(FRAGMENT.strip() + INDEX, ARGS))
    told = f"k.cute:14:10: remark: fragment: the index is known only at run time, so {IN_MEMORY}; {CHOICE}\n"
    for command in (["explain", str(file)], ["compile", str(file), "--remarks", "-o", str(tmp_path / "k.ptx")]):
        assert main(command) == 0
        captured = capsys.readouterr()
        assert told in captured.out + captured.err
    assert main(["explain", str(file), "-o", str(tmp_path / "k.html")]) == 0
    assert "the index is known only at run time" in (tmp_path / "k.html").read_text()
    capsys.readouterr()

    def refuse(*_: object, **__: object) -> str:
        raise TilefoldError(Code.LLVM_TIMEOUT, "LLVM was stopped")

    monkeypatch.setattr("tilefold.compiler.machine.nvptx.compile_llvm", refuse)
    assert main(["compile", str(file), "--remarks", "--emit", "instr"]) == 0
    assert "fragment" not in capsys.readouterr().err
    assert main(["explain", str(file)]) == 0
    assert "remark: fragment: local memory is not known, since LLVM was stopped" in capsys.readouterr().out


@cute.kernel
def assigned_in_an_if(a: cute.Tensor, b: cute.Tensor, n: cute.Int32):
    t = cute.arch.thread_idx()[0]
    v = a[t, None].load() * 2
    if n > 3:
        v = a[t, None].load() * 3
    b[t, None].store(v)


def _find_none(entry: EntryOp) -> frozenset[Operation]:
    return frozenset()


def test_the_fragment_itself_is_told_if_no_access_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Emission that lets LLVM join loads where paths meet leaves a fragment in local memory: that of the `if`."""

    def built(columns: int) -> Any:
        rows = np.ones((32, columns), np.float16)
        return assigned_in_an_if(rows, rows.copy(), 5).build(32)

    assert _told(built(8).program) == []
    monkeypatch.setattr("tilefold.compiler.emit.entry.find_joined_loads", _find_none)
    kernel = built(4)
    assert ".local" in kernel.ptx(TARGET.arch)
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text == "    if n > 3:")
    told = "all 8 bytes lie in local memory instead of registers, although each index is known to the compiler"
    assert _told(kernel.program) == [(line, told)]


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
@pytest.mark.sampled(3)
def test_no_example_has_fragments_in_local_memory(path: Path) -> None:
    target = target_of(path)
    remarks = [remark for remark in program(path).remarks(target, compiled=True) if remark.op == "fragment"]
    assert not remarks


def test_multiplications_by_warpgroups_take_no_address() -> None:
    """They use the registers of a fragment, so another access is the reason if it lies in memory."""
    path = example("gemm_sm90")
    (entry,) = program(path).entries(target_of(path))
    multiplied = [op.d.owner for op in entry.walk() if isinstance(op, WgmmaMmaAsyncOp)]
    assert multiplied
    for alloc in multiplied:
        assert isinstance(alloc, LocalAllocOp)
        assert not list(LocalFragment(alloc).escapes())
