# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages of the assembler about lost speed: read from its log, told at the line of the program, and refused."""

from pathlib import Path

import pytest
from tilefold.base.assembler_warnings import assembler_warnings, check_speed, first_refused
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.machine.assemble import assemble
from tilefold.runtime.compiled.store import Store

from tests.ptxas import EARLY, handing_over, multiplying, needs_ptxas, program
from tests.sass import instructions
from tilefold.commands.cli import main

SM90A = Target("sm_90a")
LOG = """\
ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility \
across compilation units.
ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient \
register resources for the function 'a'
ptxas info    : (C7517) warpgroup.wait is injected in around line 46 by compiler to allow use of registers defined by \
GMMA in function 'b'
ptxas info    : (C7599) Something else in the function 'b' in line 7
info    : 0 bytes gmem
"""


def test_messages_name_kernel_line_cause_and_cure() -> None:
    dropped, few, injected, unknown = assembler_warnings(LOG + LOG)
    assert (dropped.code, dropped.kernel, dropped.line) == ("C7504", "", 0)
    assert (few.code, few.kernel, few.line) == ("C7512", "a", 0)
    assert (injected.code, injected.kernel, injected.line) == ("C7517", "b", 46)
    assert (unknown.kernel, unknown.line, unknown.cure, unknown.refused) == ("b", 7, "", False)
    assert str(unknown) == "kernel 'b': Something else in the function 'b' in line 7 (the assembler's C7599)"
    assert all(message.refused and message.cure for message in (dropped, few, injected))
    (added,) = assembler_warnings(
        "ptxas info    : (C7519) warpgroup.arrive is injected in around line 9 in function 'c'"
    )
    assert "adds a wgmma.fence" in str(added)
    assert [message.harmless for message in (dropped, unknown, added)] == [False, False, True]
    assert not added.refused
    assert assembler_warnings("ptxas info    : Used 168 registers, used 0 barriers") == ()


@pytest.mark.parametrize("number", [4, 8, *range(11, 19)])
def test_messages_of_slow_kernels_are_errors_unless_allowed(number: int) -> None:
    log = f"ptxas info    : (C{7500 + number}) Potential Performance Loss: words in the function 'k' in line 3"
    with pytest.raises(TilefoldError, match=rf"E2303: kernel 'k': .*C{7500 + number}(.|\n)*TILEFOLD_ALLOW_SLOWER=1"):
        check_speed(log, allowed=False)
    check_speed(log, allowed=True)
    assert first_refused(log.replace(f"C{7500 + number}", "C7598"), allowed=False) is None


@pytest.mark.parametrize("number", [9, 10])
def test_calls_that_the_program_has_are_no_errors(number: int) -> None:
    log = f"ptxas info    : (C{7500 + number}) Potential Performance Loss: words in the function 'k' in line 3"
    check_speed(log, allowed=False)
    (message,) = assembler_warnings(log)
    assert "take printf and other calls out of it" in message.remark


@pytest.mark.parametrize("words", [
    "Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.",
    "Potential Performance Loss: wgmma.mma_async instructions are serialized due to a cause in the function 'k'",
])  # fmt: skip
def test_other_messages_of_that_kind_are_errors_too(words: str) -> None:
    with pytest.raises(TilefoldError, match=r"E2303.*" + words.split(":")[1][:30]):
        check_speed(f"ptxas info    : (C7501) {words}", allowed=False)


def test_accumulators_used_too_early_are_refused_at_their_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 1 << 24)
    assert "C75" not in program(multiplying(), store).build(SM90A).log
    slow = multiplying(EARLY)
    line = 1 + slow.splitlines().index(next(line for line in slow.splitlines() if "ptx.inline" in line))
    for _ in range(2):
        with pytest.raises(ProgramError, match="before theirs") as caught:
            program(slow, store).build(SM90A)
        assert caught.value.code == Code.ASSEMBLE_SLOWER
        assert f"k.cute:{line}:5: error[E2303]: kernel 'k': a wait is added" in str(caught.value)
        assert store.usage().entries == 1  # nothing is kept of it
    monkeypatch.setenv("TILEFOLD_ALLOW_SLOWER", "1")
    allowed = program(slow, store)
    build = allowed.build(SM90A)
    (remark,) = (remark for remark in allowed.remarks(SM90A) if remark.op == "assembler")
    assert remark.place is not None
    assert (remark.place.line, remark.stage) == (line, "cubin")
    assert "a wait is added" in remark.text
    assert "after wait_group" in remark.text
    assert program(slow, store).cached_build(SM90A) == build
    monkeypatch.setenv("TILEFOLD_ALLOW_SLOWER", "0")
    assert program(slow, store).cached_build(SM90A) is None
    with pytest.raises(ProgramError, match="a wait is added"):
        program(slow, store).build(SM90A)
    monkeypatch.setenv("TILEFOLD_ALLOW_SLOWER", "yes")
    with pytest.raises(TilefoldError, match=r"E4003: TILEFOLD_ALLOW_SLOWER=yes is neither 0 nor 1"):
        program(slow, store).build(SM90A)


def test_calls_in_such_kernels_are_remarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.cute"
    file.write_text(multiplying(after='ptx.printf "done"() :'))
    words = ["compile", str(file), "--target", "sm_90a", "--emit", "cubin", "-o", str(tmp_path / "k.cubin")]
    assert main([*words, "--remarks"]) == 0
    said = capsys.readouterr().err
    assert "remark: assembler: kernel 'k': wgmma runs one at a time" in said
    assert "take printf and other calls out of it" in said
    file.write_text(multiplying())
    assert main([*words, "--remarks"]) == 0
    assert "assembler" not in capsys.readouterr().err


_ROOT = """%x = ptx.ld %A align 8 : !ptx.ptr<global> -> f64
%y = math.sqrt %x : f64
ptx.st %y, %A align 8 : f64, !ptx.ptr<global>"""


@pytest.mark.parametrize(("after", "name"), [('ptx.printf "done"() :', "ptx.printf"), (_ROOT, "math.sqrt")])
def test_calls_are_named_by_their_lines_in_remarks_reports_and_warnings(after: str, name: str, tmp_path: Path) -> None:
    text = multiplying(after=after)
    line = 1 + next(at for at, each in enumerate(text.splitlines()) if name in each)
    store = Store(tmp_path, 1 << 24)
    for slow in (program(text, store), program(text, store)):  # the second one is from the cache
        with pytest.warns(RuntimeWarning, match=rf"k\.cute:{line}:\d+: kernel 'k': wgmma runs one at a time.*C7509"):
            slow.build(SM90A)
        assert f"lost speed: k.cute:{line}:" in slow.report(SM90A)
        said = [each for each in slow.remarks(SM90A) if "C7509" in each.text]
        assert [each.op for each in said] == [name, "assembler"]
        assert [each.place.line for each in said if each.place] == [line, line]


@pytest.mark.filterwarnings("error")
def test_kernels_that_lose_no_speed_are_built_without_a_warning() -> None:
    fast = program(multiplying())
    fast.build(SM90A)
    assert "lost speed" not in fast.report(SM90A)


@needs_ptxas
def test_setmaxnreg_without_the_registers_of_the_launch_is_refused() -> None:
    with pytest.raises(
        ProgramError, match=r"(?s)E2303\]: setmaxnreg is dropped, .*C7508.*give the kernel min_blocks\(1\)"
    ):
        program(handing_over("")).machine_build(SM90A)
    assert "C75" not in program(handing_over("max_registers(168)")).machine_build(SM90A).log


def test_nvjitlink_says_that_it_drops_setmaxnreg() -> None:
    with pytest.raises(TilefoldError, match="setmaxnreg is dropped from relocatable code"):
        check_speed(assemble(program(handing_over()).ptx(SM90A), SM90A).log, allowed=False)


def test_wgmma_and_its_wait_are_in_the_machine_code() -> None:
    counts = instructions(program(multiplying()).build(SM90A).cubin)["k"]
    assert (counts["HGMMA"], counts["LDL"]) == (2, 0)
