# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold bisect` says what the assembler leaves out of a kernel."""

import re
from functools import cache
from pathlib import Path

import pytest
from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.machine.assemble import AssembleError
from tilefold.compiler.machine.nvdisasm import disassemble
from tilefold.dialects.ptx import EntryOp

import tilefold.tools.bisection.bisect as module
from tests.project.tree import ROOT
from tilefold.commands.cli import main
from tilefold.driver.lowering import Program, load
from tilefold.tools.bisection.bisect import assembler_changes, find_dropped

Capture = pytest.CaptureFixture[str]


def example(name: str) -> Program:
    path = ROOT / "examples" / name
    return load(expand(path.read_text(), name, {}), None)


@pytest.mark.parametrize(
    ("name", "arch"),
    [("hgemm.cute", "sm_80"), ("transpose.cute", "sm_80"), ("tma_copy.cute", "sm_90a"), ("reduce.cute", "sm_90a")],
)
@pytest.mark.sampled(2)
def test_the_assembler_keeps_what_has_effects(name: str, arch: str) -> None:
    program, target = example(name), Target(arch)
    for kernel in program.kernels:
        assert not assembler_changes(program, kernel, target)


@cache
def hgemm() -> tuple[EntryOp, str]:
    """The kernel of an example, and its machine code."""
    program, target = example("hgemm.cute"), Target("sm_80")
    (entry,) = program.entries(target)
    return entry, disassemble(program.cubin(target).code)


@pytest.mark.parametrize(
    ("operation", "mnemonic"),
    [("BAR", "bar.sync"), ("LDGSTS", "cp.async.cg"), ("HMMA", "mma.sync"), ("LDSM", "ldmatrix"), ("STG", "st.global")],
)
def test_what_it_drops_is_named(operation: str, mnemonic: str) -> None:
    entry, text = hgemm()
    assert not find_dropped(entry, text)
    (line,) = find_dropped(entry, re.sub(rf"\b{operation}\b", "NOP", text))
    assert line.startswith(f"the machine code has nothing for {mnemonic}")


def test_bisect_says_so(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(entry: EntryOp, text: str) -> list[str]:
        return find_dropped(entry, text.replace("LDGSTS", "NOP"))

    with monkeypatch.context() as patch:
        patch.setattr(module, "find_dropped", without)
        assert main(["bisect", str(ROOT / "examples" / "tiled_copy.cute"), "--grid", "1", "--fill", "B=zeros"]) == 1
    assert (
        "note: the machine code has nothing for cp.async.ca.shared.global, which the kernel" in capsys.readouterr().out
    )

    def missing(code: bytes, home: str) -> str:
        raise AssembleError(Code.ASSEMBLE_UNAVAILABLE, "nvdisasm is not installed")

    monkeypatch.setattr(module, "disassemble", missing)
    assert assembler_changes(example("tiled_copy.cute"), "kernels::tiled_copy", Target("sm_80")) == (
        "machine code is not compared: nvdisasm is not installed",
    )
