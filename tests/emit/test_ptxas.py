# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that nvJitLink cannot assemble: PTX for the driver, machine code by ptxas."""

import os
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.machine import ptxas
from tilefold.compiler.machine.assemble import AssembleError, assemble
from tilefold.compiler.machine.ptxas import Ptxas, find_ptxas, needs_whole_program
from tilefold.runtime.compiled.artifact import Build
from tilefold.runtime.compiled.store import Store

from tests.emit.harness import kernel, ptx_of
from tests.ptxas import handing_over, installed, needs_ptxas, program
from tests.sass import instructions
from tilefold.commands.cli import main

SM90A = Target("sm_90a")
SCRIPT = "#!/bin/sh\necho 'Cuda compilation tools, release 1.2, V1.2.{}'\n"


def _script(folder: Path, number: int, text: str = SCRIPT) -> str:
    folder.mkdir(parents=True)
    path = folder / "ptxas"
    path.write_text(text.format(number))
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs scripts that can be run")
def test_ptxas_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, wheel, home, path = (
        _script(tmp_path / name, number) for number, name in enumerate(["named", "wheel/bin", "home/bin", "path"])
    )
    file = SimpleNamespace(name="ptxas", parent=Path("nvidia/cu13/bin"), locate=lambda: wheel)

    def distribution(name: str) -> object:
        assert name == "nvidia-cuda-nvcc"
        if not os.path.exists(wheel):
            raise metadata.PackageNotFoundError
        return SimpleNamespace(files=[SimpleNamespace(name="ptxas.h", parent=Path("include")), file])

    monkeypatch.setattr(ptxas, "distribution", distribution)
    monkeypatch.setenv("PATH", os.path.dirname(path))
    cuda_home = str(tmp_path / "home")
    assert find_ptxas(named, cuda_home) == Ptxas(named, "1.2.0")
    assert find_ptxas("", cuda_home) == Ptxas(wheel, "1.2.1")
    os.remove(wheel)
    assert find_ptxas("", cuda_home) == Ptxas(home, "1.2.2")
    assert find_ptxas("", "") == find_ptxas("", "/nowhere") == Ptxas(path, "1.2.3")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(AssembleError, match=r"(?s)E2302: ptxas, .* is not installed.*pip install nvidia-cuda-nvcc"):
        find_ptxas()
    with pytest.raises(AssembleError, match=r"E2302: TILEFOLD_PTXAS names /nowhere, which is not ptxas: No such file"):
        find_ptxas("/nowhere", cuda_home)
    silent = _script(tmp_path / "silent", 0, "#!/bin/sh\n")
    with pytest.raises(AssembleError, match=r"E2302: .*/ptxas, which is not ptxas: it does not print its version"):
        find_ptxas(silent)


@pytest.mark.parametrize(("instruction", "needs"), [
    ("\tsetmaxnreg.dec.sync.aligned.u32 40;", True),
    ("{ .reg .pred p; setmaxnreg.inc.sync.aligned.u32 232; }", True),
    ('\t.file 1 "setmaxnreg.cute"', False),
    ("\twgmma.fence.sync.aligned;", False),
])  # fmt: skip
def test_setmaxnreg_needs_a_whole_program(instruction: str, needs: bool) -> None:
    assert needs_whole_program(f".visible .entry k()\n{{\n{instruction}\n}}\n") is needs


@needs_ptxas
def test_ptxas_keeps_what_nvjitlink_drops() -> None:
    ptx, found = program(handing_over()).ptx(SM90A), installed()
    assert found is not None
    cubin = found.assemble(ptx, SM90A)
    assert instructions(cubin.code)["k"]["USETMAXREG"] == 2
    used = cubin.kernels["k"]
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    assert used.code >= 128
    assert instructions(assemble(ptx, SM90A).code)["k"]["USETMAXREG"] == 0


@needs_ptxas
def test_ptxas_reads_spills_and_shared_memory_as_nvjitlink_does() -> None:
    body = "%s = ptx.smem.addr 0\nptx.st %n, %s align 4 : i32, !ptx.ptr<shared>\n%r = ptx.local.alloc 64 align 4\n"
    body += "%p = ptx.ptr_add %r, %n : !ptx.ptr<local>, i32 -> !ptx.ptr<local>\n"
    body += "ptx.st %n, %p align 4 : i32, !ptx.ptr<local>\n%v = ptx.ld %r align 4 : !ptx.ptr<local> -> i32\n"
    body += "ptx.st %v, %A align 4 : i32, !ptx.ptr<global>\n"
    ptx = ptx_of(kernel(body, "%A: !ptx.ptr<global> align 4, %n: i32", shared=4096), SM90A)
    found = installed()
    assert found is not None
    ours, theirs = found.assemble(ptx, SM90A).kernels["k"], assemble(ptx, SM90A).kernels["k"]
    assert (ours.stack, ours.static_shared, ours.spill_stores) == (theirs.stack, theirs.static_shared, 0)
    assert (theirs.stack, theirs.static_shared >= 4096) == (64, True)


@needs_ptxas
def test_ptxas_refuses_with_the_line() -> None:
    found = installed()
    assert found is not None
    ptx = ptx_of(kernel("ptx.bar.sync 0"), SM90A)
    with pytest.raises(AssembleError, match=r"E2301: .*kernel.ptx, line \d+; error .*Unknown modifier '\.sinc'"):
        found.assemble(ptx.replace("bar.sync", "bar.sinc"), SM90A)
    with pytest.raises(AssembleError, match=r"(?s)E2301: .*Unsupported \.version 99\.0.*hint: install a newer ptxas"):
        found.assemble(ptx.replace(".version 8.7", ".version 99.0"), SM90A)


def test_a_launch_takes_ptx_that_the_driver_assembles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any ptxas."""
    monkeypatch.setenv("TILEFOLD_PTXAS", "/nowhere")
    store = Store(tmp_path, 1 << 24)
    loaded = program(handing_over(), store)
    build = loaded.build(SM90A)
    assert (build.cubin, build.log) == (b"", "")
    assert build.artifact("k").code == build.ptx == loaded.ptx(SM90A)
    assert Build.from_bytes(build.to_bytes()) == build
    assert store.usage().entries == 1
    assert program(handing_over(), store).cached_build(SM90A) == build
    for machine_code in (loaded.machine_build, loaded.cubin, loaded.report):
        with pytest.raises(AssembleError, match="E2302: TILEFOLD_PTXAS names /nowhere"):
            machine_code(SM90A)
    (remark,) = (remark for remark in loaded.remarks(SM90A) if remark.op == "assembler")
    assert "not asked, since TILEFOLD_PTXAS names /nowhere" in remark.text


@needs_ptxas
def test_machine_code_is_kept_by_the_version_of_ptxas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, found = Store(tmp_path, 1 << 24), installed()
    assert found is not None
    loaded = program(handing_over(), store)
    build = loaded.machine_build(SM90A)
    assert build.cubin == build.artifact("k").code
    assert instructions(build.cubin)["k"]["USETMAXREG"] == 2
    assert loaded.cubin(SM90A).kernels["k"].registers == 168
    assert store.usage().entries == 2

    def refused(self: Ptxas, ptx: str, target: Target, options: Sequence[str] = ()) -> None:
        raise AssertionError("ptxas is called")

    monkeypatch.setattr(Ptxas, "assemble", refused)
    assert program(handing_over(), store).machine_build(SM90A) == build

    def another(named: str = "", cuda_home: str = "") -> Ptxas:
        return Ptxas(found.path, "0.1")

    monkeypatch.setattr(ptxas, "find_ptxas", another)
    with pytest.raises(AssertionError, match="ptxas is called"):
        program(handing_over(), store).machine_build(SM90A)


@needs_ptxas
def test_all_machine_code_may_be_that_of_ptxas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, found, text = Store(tmp_path, 1 << 24), installed(), kernel("ptx.bar.sync 0")
    assert found is not None
    by_nvjitlink = program(text, store).build(SM90A)
    handed = program(handing_over(), store).machine_build(SM90A)
    monkeypatch.setenv("TILEFOLD_ASSEMBLER", "ptxas")
    assert program(handing_over(), store).cached_build(SM90A) == handed
    assert program(handing_over(), store).build(SM90A) == handed
    assert program(text, store).cached_build(SM90A) is None
    build = program(text, store).build(SM90A)
    assert build.cubin == found.assemble(build.ptx, SM90A).code
    assert program(text, store).cached_build(SM90A) == build
    assert store.usage().entries == 4
    monkeypatch.delenv("TILEFOLD_ASSEMBLER")
    assert program(text, store).build(SM90A) == by_nvjitlink
    monkeypatch.setenv("TILEFOLD_ASSEMBLER", "gas")
    with pytest.raises(TilefoldError, match="E4003: TILEFOLD_ASSEMBLER=gas is not an assembler"):
        program(text, store).build(SM90A)


@needs_ptxas
def test_commands_write_machine_code_by_ptxas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.cute"
    file.write_text(handing_over())
    given = [str(file), "--target", "sm_90a"]
    assert main(["compile", *given, "--emit", "cubin", "-o", str(tmp_path / "k.cubin")]) == 0
    assert main(["export", *given, "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "k.cubin").read_bytes() == (tmp_path / "k.cubin").read_bytes()
    assert instructions((tmp_path / "k.cubin").read_bytes())["k"]["USETMAXREG"] == 2
    assert main(["compile", *given, "--report"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"registers per thread +│ +168 ", said)
    assert re.search(r"after setmaxnreg +│ +40, 232 ", said)
    file.write_text(kernel("ptx.bar.sync 0"))
    assert main(["compile", *given, "--report"]) == 0
    assert "setmaxnreg" not in capsys.readouterr().out


def test_the_message_without_ptxas_names_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.cute"
    file.write_text(handing_over())
    monkeypatch.setenv("TILEFOLD_PTXAS", str(tmp_path / "absent"))
    words = ["compile", str(file), "--target", "sm_90a"]
    assert main([*words, "-o", str(tmp_path / "k.ptx")]) == 0
    assert main([*words, "--emit", "cubin", "-o", str(tmp_path / "k.cubin")]) == 1
    said = capsys.readouterr().err
    assert "error[E2302]: TILEFOLD_PTXAS names" in said
    assert "pip install nvidia-cuda-nvcc" in said
    assert issubclass(AssembleError, TilefoldError)
