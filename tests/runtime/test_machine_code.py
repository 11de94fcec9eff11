# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose machine code is kept: the same as compiled anew, and found again only where it is the same."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.fingerprint import fingerprint
from tilefold.compiler.frontend.params import expand
from tilefold.runtime.compiled.artifact import Build
from tilefold.runtime.compiled.store import Store, default_store, digest
from xdsl.dialects.builtin import ModuleOp

from benchmarks.workloads import Workload
from tests.emit.harness import kernel, parse
from tests.project.tree import ROOT
from tilefold.commands.cli import main
from tilefold.driver import machine_code
from tilefold.driver.lowering import Program, load

SM80 = Target("sm_80")
EXAMPLE = ROOT / "examples" / "ragged_copy.cute"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path, 1 << 24)


def _program(store: Store | None, name: str = "x.cute", edit: Callable[[str], str] = str) -> Program:
    read = load(expand(edit(EXAMPLE.read_text()), name))
    read.cache = store
    return read


def test_build_survives_as_bytes() -> None:
    build = _program(None).build(SM80)
    assert Build.from_bytes(build.to_bytes()) == build
    assert any(parameter.layout is not None for parameter in build.artifacts[0].parameters)
    for bad in (b"", b"123", build.to_bytes()[:-1], b"\0" * 12):
        with pytest.raises(ValueError, match=r".+"):
            Build.from_bytes(bad)


def test_clusters_survive_as_bytes() -> None:
    text = kernel("").replace("threads(32)", "threads(32) cluster(16) non_portable")
    build = load(expand(text, "x.cute")).build(Target("sm_90"))
    (artifact,) = build.artifacts
    assert (artifact.cluster, artifact.non_portable) == ((16, 1, 1), True)
    assert Build.from_bytes(build.to_bytes()) == build


def test_kept_program_is_not_compiled_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _program(store)
    build = first.build(SM80)
    assert store.usage().entries == 1
    monkeypatch.setattr(machine_code, "_assemble", None)  # cannot be called
    second = _program(store)
    assert second.build(SM80) == build
    assert second.cubin(SM80).kernels == first.cubin(SM80).kernels
    assert second.artifact("ragged_copy", SM80) == first.artifact("ragged_copy", SM80)


def test_other_program_or_target_is_another_entry(store: Store) -> None:
    _program(store).build(SM80)
    _program(store, "y.cute").build(SM80)  # its name is in the code, for debuggers
    assert store.usage().entries == 2
    _program(store, edit=lambda text: "\n" + text).build(SM80)  # as are its lines
    assert store.usage().entries == 3
    _program(store).build(Target("sm_90"))
    assert store.usage().entries == 4


def test_changed_compiler_is_another_entry(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(store).build(SM80)
    monkeypatch.setattr(machine_code, "toolchain", lambda: "another")
    _program(store).build(SM80)
    assert store.usage().entries == 2


def test_toolchain_names_versions_and_files() -> None:
    text = machine_code.toolchain()
    for part in ("tilefold 0", "llvmlite 0", "nvidia-nvjitlink 1", "lower_tensors.py", "assemble.py"):
        assert part in text


def test_program_without_text_is_known_by_what_it_prints(store: Store) -> None:
    first, second = _program(None), _program(None)
    first.text = second.text = None
    assert first.identity == second.identity
    third = _program(None, edit=lambda text: "\n" + text)
    third.text = None
    assert third.identity != first.identity  # other lines


CONSTANTS = """
%a = arith.constant 0.0 : f32
%b = arith.constant -0.0 : f32
%c = arith.constant 0.0 : f32
%d = arith.addf %a, %b : f32
scf.if %p {
  %e = arith.constant 1 : i32
}
"""
EDITS = [
    ("%c = arith.constant 0.0", "%c = arith.constant -0.0"),
    ("%d = arith.addf %a, %b", "%d = arith.addf %b, %a"),
    ("%d = arith.addf %a, %b", "%d = arith.mulf %a, %b"),
    ("constant 1 : i32", "constant 2 : i32"),
    ("constant 1 : i32", "constant 1 : i64"),
    ("  %e = arith.constant 1 : i32\n}", "}\n%e = arith.constant 1 : i32"),
]


@pytest.mark.parametrize("edit", EDITS, ids=range(len(EDITS)))
def test_modules_that_differ_have_other_fingerprints(edit: tuple[str, str]) -> None:
    def of(body: str) -> str:
        return fingerprint(parse(kernel(body, "%p: i1")))

    changed = CONSTANTS.replace(*edit)
    assert changed != CONSTANTS
    assert of(CONSTANTS) == of(CONSTANTS) != of(changed)


@pytest.mark.parametrize("file", ["gemm", "softmax", "ragged_copy", "copy_atoms"])
def test_attributes_are_told_apart_as_if_they_were_printed(file: str) -> None:
    program = load(Workload(file, f"examples/{file}.cute").source())
    texts: dict[str, str] = {}
    for stage in ("cute", "folded", "instr"):
        for op in program.reached(stage, SM80).walk():
            types = [value.type for value in (*op.results, *op.operands)]
            for each in (*op.properties.values(), *op.attributes.values(), *types):
                text = fingerprint(ModuleOp([], {"each": each}))
                assert texts.setdefault(f"{each.name} {each}", text) == text
    assert len(set(texts.values())) == len(texts) > 20


def test_entry_that_says_something_else_is_replaced(store: Store) -> None:
    _program(store).build(SM80)
    (path,) = (path for path in store.folder.rglob("*") if len(path.name) == 64)
    store.put(path.name, b"intact, but no build")
    build = _program(store).build(SM80)
    assert Build.from_bytes(store.get(path.name) or b"") == build


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", str(tmp_path / "kept"))

    def said(*words: str) -> str:
        assert main(words) == 0
        return capsys.readouterr().out

    compile = ("compile", str(EXAMPLE), "--emit", "cubin", "-o", str(tmp_path / "out.cubin"))
    said(*compile, "--no-cache")
    assert said("cache").splitlines() == [f"folder: {tmp_path / 'kept'}", "kept: 0 programs, 0.0 MiB",
                                          "limit: 1024.0 MiB"]  # fmt: skip
    code = (tmp_path / "out.cubin").read_bytes()
    said(*compile)
    said(*compile)
    assert (tmp_path / "out.cubin").read_bytes() == code
    assert "kept: 1 program, " in said("cache", "info")
    assert said("cache", "path").strip() == str(tmp_path / "kept")
    assert re.fullmatch(r" *[\d.]+ KiB +just now  ragged_copy for sm_80\n", said("cache", "list"))
    store = default_store()
    assert store is not None
    store.put(digest("tuning"), b"[1, 2]")
    (path,) = (path for path in store.folder.rglob("*") if path.name == digest("tuning"))
    os.utime(path, (1, 1))
    assert re.search(r" [\d.]+ KiB +\d+ days ago  measurements\n$", said("cache", "list"))
    store.put(digest("log"), b"ptxas info")
    assert "just now  messages of the driver's assembler\n" in said("cache", "list")
    (store.folder / "v1" / digest("log")[:2] / digest("log")).unlink()
    path.write_bytes(b"damaged")
    assert "damaged" in said("cache", "list")
    path.unlink()
    assert said("cache", "clear").startswith("removed 1 program, ")
    monkeypatch.setenv("TILEFOLD_CACHE_LIMIT", "0")
    said(*compile)
    assert said("cache").endswith("kept: 0 programs, 0.0 MiB\nlimit: off\n")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.delenv("TILEFOLD_CACHE_LIMIT")
    assert main(compile) == 0
    warning = f"warning: the cache in {tmp_path / 'file'} cannot be written: Not a directory\n"
    assert capsys.readouterr().err == warning
