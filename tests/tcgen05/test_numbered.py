# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mistakes of docs/blackwell-mistakes.md: each is found in a kernel that is correct without it, and the page names
for each of its numbers a test.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand

from tests.emit.harness import ptx_of
from tests.kernels.harness import simulate
from tests.planted.judging import checked
from tests.sim.harness import entry
from tests.tcgen05.numbered import CORRECT, MISTAKES, Correct, changed
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import load

PAGE = Path(__file__).parents[2] / "docs" / "blackwell-mistakes.md"
_ROW = re.compile(r"^\| (\d+) \| .* \| (.*) \| (.*) \|$", re.MULTILINE)
_TEST = re.compile(r"\[([^\]]+)\]\(\.\./(tests/[^)]+)\)")


def expanded(kernel: Correct, text: str) -> str:
    """A text whose parameters have the values that the kernel gives them."""
    for name, value in kernel.given.items():
        text, count = re.subn(rf"^// param {name} = .*$", f"// param {name} = {value}", text, flags=re.MULTILINE)
        assert count == 1, name
    return text


def run(kernel: Correct, text: str) -> None:
    program = load(expand(expanded(kernel, text), "k.cute", {}))
    (launch,) = read_launches(program.module, program.source, Changes())
    simulate(program, launch, kernel.stage)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CORRECT)
def test_correct_kernels_have_no_fault(name: str) -> None:
    run(CORRECT[name], CORRECT[name].text)


def test_copies_over_scales_in_use_are_in_order_where_any_synchronisation_is_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mistake = MISTAKES["scales are overwritten"]
    monkeypatch.setenv("TILEFOLD_SIM_TCGEN05_FENCES", "0")
    run(kernel := CORRECT[mistake.kernel], changed(kernel.text, *mistake.changes))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str) -> None:
    mistake = MISTAKES[name]
    kernel = CORRECT[mistake.kernel]
    with pytest.raises(TilefoldError) as caught:
        run(kernel, changed(kernel.text, *mistake.changes))
    assert caught.value.code == mistake.code.id, str(caught.value)
    assert mistake.text in str(caught.value)
    assert caught.value.hint
    assert "k.cute:" in str(caught.value)


@cache
def rows() -> dict[int, tuple[str, str]]:
    """The codes and the tests of the mistakes by number."""
    return {int(number): (codes, tests) for number, codes, tests in _ROW.findall(PAGE.read_text())}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", MISTAKES)
def test_check_tells_the_mistake(name: str) -> None:
    """`tilefold check` goes through the stages, and tells no more of the kernel without the mistake."""
    mistake = MISTAKES[name]
    kernel = CORRECT[mistake.kernel]
    faults, report = checked(expanded(kernel, changed(kernel.text, *mistake.changes)))
    codes = mistake.code.id, Code.TENSOR_FORM.id  # where a pass has folded constants, before anything runs
    assert any(fault["code"] in codes and mistake.text in fault["message"] for fault in faults), report


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CORRECT)
def test_check_tells_nothing_of_correct_kernels(name: str) -> None:
    faults, report = checked(expanded(CORRECT[name], CORRECT[name].text))
    assert not faults, report


def test_sm_120_has_99_kib() -> None:
    text = entry("ptx.bar.sync 0", "%A: !ptx.ptr<global> align 16", "32", shared=101_377)
    assert ptx_of(text, Target("sm_100a"))
    with pytest.raises(TilefoldError, match=r"E2103.*a block has at most 101376 on sm_120a"):
        ptx_of(text, Target("sm_120a"))


def test_the_page_has_a_test_for_each() -> None:
    assert sorted(rows()) == list(range(1, 56))
    for number, (codes, tests) in rows().items():
        found = _TEST.findall(tests)
        assert found or codes == "none", number
        for title, file in found:
            assert title in (PAGE.parents[1] / file).read_text(), (number, title, file)


def test_the_page_has_the_codes() -> None:
    for name, mistake in MISTAKES.items():
        codes, tests = rows()[mistake.number]
        assert mistake.code.id in codes, (mistake.number, name)
        assert name in tests, (mistake.number, name)
