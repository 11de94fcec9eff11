# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report: what the page has, that all text is escaped, and that it takes little time."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tilefold.compiler.frontend.params import expand
from tilefold.dialects.run import LaunchOp

from tests.kernels.harness import BY_SIZE, EXAMPLES
from tests.profiling.kernels import CONFLICT, NAIVE, REDUNDANT
from tests.profiling.test_costs import columns
from tests.ptx.texts import STORE_LANE, kernel
from tests.work import calls
from tilefold.commands.cli import main
from tilefold.driver.lowering import load
from tilefold.tools.report.contents import contents_of
from tilefold.tools.report.page import page_of


class Reader(HTMLParser):
    """The tags of a page that have no end, and the attributes that name other files."""

    VOID = frozenset({"meta", "br", "rect", "line", "polygon", "circle", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action", "xlink:href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def page(tmp_path: Path, text: str, *options: str) -> str:
    (tmp_path / "kernel.cute").write_text(text)
    out = tmp_path / "report.html"
    assert main(["explain", str(tmp_path / "kernel.cute"), "-o", str(out), *options]) == 0
    written = out.read_text()
    reader = Reader()
    reader.feed(written)
    assert not reader.open
    assert all(link.startswith("#") for link in reader.links)
    assert "http" not in re.sub(r'xmlns="[^"]*"|http-equiv', "", written)
    return written


def test_a_page_has_source_code_passes_costs_checks_and_resources(tmp_path: Path) -> None:
    written = page(tmp_path, NAIVE)
    for words in (
        "32-way bank conflict", "ld.shared.b32", "LDS", "fold-layouts", "no change", "registers of a thread",
        "kernels::naive: no faults at cute and instr", "without this barrier", "stage atoms", "<svg",
        "S&lt;5,0,5&gt; o 0 o (32,32):(32,1)",
    ):  # fmt: skip
        assert words in written or words in re.sub(r"<[^>]*>", "", written), words
    costs = written[written.index('<section id="costs"') : written.index('<section id="timeline"')]
    assert f">{REDUNDANT}</a>" in costs
    assert "without this barrier" not in costs  # which stands at the line
    assert "Verdict: clean" in written
    assert "Slowest line of naive" in written
    assert written.index("Resources of naive") < written.index('<section id="code"')
    timeline = written[written.index('<section id="timeline"') : written.index('<section id="checks"')]
    assert timeline.count("<g ") == 16
    assert "stalls: bank conflict" in timeline
    sass = written[written.index('id="f-sass"') : written.index('id="f-stages"')]
    assert re.search(r'<i class="co">/\*[0-9a-f]+\*/</i> <i class="kw">LDS</i> <i class="va">R\d+</i>, \[', sass)
    line = re.search(rf'data-s="(\d+)"><b>{CONFLICT}</b>', written)
    assert line is not None
    beside = re.search(rf'<div class="beside" data-s="{line[1]}">(.*?)</div></div>', written, re.DOTALL)
    assert beside is not None
    plain = re.sub(r"<[^>]*>", "", beside[1])
    assert "ptx.ld" in plain
    assert plain.count("ld.shared.b32") == 4


def test_a_kernel_in_ptx_has_a_page(tmp_path: Path) -> None:
    guarded = "setp.ge.u32 %p1, %r1, 3; @%p1 bra DONE;\nst.global.u32 [%d4], %r1;\nDONE: ret;"
    (tmp_path / "k.ptx").write_text(kernel(f"{STORE_LANE}{guarded}"))
    out = tmp_path / "report.html"
    command = ["explain", str(tmp_path / "k.ptx"), "-o", str(out), "--block", "4", "--arg"]
    assert main([*command, "A=i32[4]", "--fill", "A=arange"]) == 0
    written = out.read_text()
    assert "no faults at ptx: k" in written
    assert "compiled for sm_80" in written
    assert 'href="#passes"' not in written
    assert "Resources of k" in written
    first = re.search(r'<body data-first="s(\d+)">', written)
    assert first is not None
    assert re.search(rf'id="s{first[1]}"(?:(?!</div>).)*\.entry', re.sub(r"<i[^>]*>|</i>", "", written))
    lines = re.findall(r'data-s="(\d+)"><b>\d+</b><code>(.*?)</code>', written)
    (number,) = (number for number, code in lines if re.sub(r"<[^>]*>", "", code).startswith("st"))
    assert re.search(rf'class="beside" data-s="{number}">(?:(?!class="beside").)*ptx\.st', written, re.DOTALL)
    assert re.search(rf'<tr><td>\d+</td><td><a href="#s{number}">', written)
    assert main([*command, "A=i32[2]", "--fill", "A=arange"]) == 0
    assert re.search(rf'href="#s{number}">k.ptx:\d+</a> <b>E3202</b>', out.read_text())


def test_faults_stand_at_their_lines(tmp_path: Path) -> None:
    faulty = NAIVE.replace("    ptx.bar.sync 0\n    %sT", "    %sT")
    written = page(tmp_path, faulty)
    assert "E3204" in written or "E3205" in written
    assert 'class="note error"' in written
    assert "those of launches without faults" in written
    assert '<section id="timeline"' not in written


def test_all_text_is_escaped(tmp_path: Path) -> None:
    nasty = "// </code><script>alert('x')</script> & \"quoted\" <b>\n"
    written = page(tmp_path, nasty + NAIVE)
    assert "<script>alert" not in written
    assert "&lt;script&gt;alert" in written
    assert written.count("<script>") == 1


def test_a_program_without_launches_has_a_page_too(tmp_path: Path) -> None:
    written = page(tmp_path, NAIVE[: NAIVE.index("run.launch")])
    assert "so nothing was simulated" in written
    assert "ld.shared.b32" in re.sub(r"<[^>]*>", "", written)


@pytest.mark.parametrize("path", BY_SIZE, ids=lambda path: path.stem)
@pytest.mark.sampled(2)
def test_examples_have_pages(path: Path) -> None:
    program = load(expand(path.read_text(), path.name, {}))
    written = page_of(contents_of(program, ()))
    reader = Reader()
    reader.feed(written)
    assert not reader.open
    assert any(isinstance(op, LaunchOp) for op in program.module.walk())


def test_passes_lead_to_the_stage_that_is_compiled() -> None:
    program = load(expand(NAIVE, "naive.cute", {}))
    found = contents_of(program, ())
    last = found.passes[-1].listing
    assert last is not None
    made, compiled = (
        [re.sub(r"%\w+", "%", line.text) for line in lines] for lines in (last.lines, found.code.forms["ir"])
    )
    assert made == compiled
    changed = [step.name for step in found.passes if step.hunks]
    assert "fold-layouts" in changed
    assert "check-target" not in changed


@pytest.mark.sampled(0)
def test_a_report_of_the_gemm(tmp_path: Path) -> None:
    command = ["explain", str(EXAMPLES[0].parent / "gemm.cute"), "-o", str(tmp_path / "gemm.html")]
    assert calls(lambda: main(command)) < 20_000_000
    assert "<html" in (tmp_path / "gemm.html").read_text()


def test_kernels_in_python_have_pages() -> None:
    call = columns(np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32))
    written = call.report_html(grid=1, block=32)
    assert "-way bank conflict" in written
    assert "B[column, t] = s[t, column]" in re.sub(r"<[^>]*>", "", written)
    assert written.count("ld.shared.b32: 32 wavefronts") == 0  # which the measured cost says
    shown = written._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "ld.shared" in columns.report_html()
