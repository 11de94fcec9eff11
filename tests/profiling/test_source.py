# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The map from lines of the source to operations, PTX and machine code, and back."""

from pathlib import Path

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.machine import nvdisasm
from tilefold.compiler.machine.assemble import AssembleError
from tilefold.compiler.reports.source_map import map_ptx_lines

from tests.kernels.harness import EXAMPLES
from tests.profiling.kernels import CONFLICT, NAIVE, NEEDED
from tilefold.commands.cli import main
from tilefold.driver.lowering import Program, load
from tilefold.driver.source_text import by_code, by_lines, source_map

SM80 = Target("sm_80")
Capture = pytest.CaptureFixture[str]


def program(text: str = NAIVE, name: str = "naive.cute") -> Program:
    return load(expand(text, name, {}))


def test_a_line_has_its_code_in_each_form() -> None:
    found = source_map(program(), SM80)
    at = {form: [line.text for _, line in found.at(("naive.cute", NEEDED)) if _ == form] for form in found.forms}
    assert [text.strip() for text in at["ir"]] == ["ptx.bar.sync 0"]
    assert at["ptx"] == ["\tbar.sync \t0;"]
    assert len(at["sass"]) >= 1
    assert any("BAR.SYNC" in text for text in at["sass"])
    loads = [line.text for form, line in found.at(("naive.cute", CONFLICT)) if form == "ptx"]
    assert sum("ld.shared.b32" in text for text in loads) == 4
    assert not found.missing


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.sampled(2)
def test_instructions_with_effects_have_lines_in_examples(path: Path) -> None:
    found = source_map(
        program(path.read_text(), path.name), program(path.read_text(), path.name).simulated_target("instr")
    )
    for form, words in (("ptx", ("st.global", "ld.global", "bar.sync")), ("sass", ("STG", "LDG", "BAR.SYNC"))):
        lines = [line for line in found.forms.get(form, ()) if any(word in line.text for word in words)]
        assert lines or form in found.missing or path.stem == "tma_copy"
        assert all(line.spot is not None and line.spot[0] == path.name for line in lines)


def test_lines_are_those_of_the_files_that_the_operations_come_from() -> None:
    found = source_map(program(name="folder/naive.cute"), SM80)
    assert {file for file, _ in found.spots()} == {"folder/naive.cute"}
    text = by_lines(found, program(name="folder/naive.cute").source)
    assert "naive.cute:16: ptx.bar.sync 0\n" in text
    back = by_code(found, "sass", program(name="folder/naive.cute").source)
    assert "naive.cute:16  // ptx.bar.sync 0\n" in back


def test_all_lines_of_a_text_in_ptx_have_its_place() -> None:
    text = "{\n\t.reg .pred p;\n\t@!p bra AGAIN;\n}\n"
    begins, ends = "\t// begin inline asm\n", "\n\t// end inline asm\n"
    ptx = f'\t.file\t1 "k"\n\t.loc\t1 7 3\n{begins}\t{text}{ends}\tmov.b32 \t%r1, 1;\n}}\n'
    assert [line.spot for line in map_ptx_lines(ptx, {})] == [*[("k", 7)] * 8, None]


def test_without_nvdisasm_the_other_forms_are_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nvdisasm, "PACKAGE", "no-such-package")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    with pytest.raises(AssembleError, match="E2302: nvdisasm, which shows machine code, is not installed"):
        nvdisasm.disassemble(b"")
    found = source_map(program(), SM80)
    assert set(found.forms) == {"ir", "ptx"}
    assert by_lines(found, program().source).endswith("no sass: nvdisasm, which shows machine code, is not installed\n")


def test_what_is_no_machine_code_is_refused() -> None:
    with pytest.raises(AssembleError, match="nvdisasm rejects the machine code"):
        nvdisasm.disassemble(b"nonsense")


def test_the_command_prints_both_ways(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "naive.cute"
    path.write_text(NAIVE)
    for form, words in (("", "naive.cute:16: ptx.bar.sync 0"), ("=ir", "ptx.bar.sync 0"), ("=sass", "BAR.SYNC")):
        assert main(["explain", str(path), f"--source{form}"]) == 0
        assert words in capsys.readouterr().out
