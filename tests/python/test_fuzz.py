# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damaged kernels are built or refused, never a crash: a short run of `tests.python.fuzz`."""

import pytest

from tests.python.fuzz import Program, fault, main, programs, run


def test_damaged_kernels_are_built_or_refused() -> None:
    assert run(60, 0, programs()) == 0


def test_a_wrong_treatment_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tilefold.builder.trace._verify", len)
    text = "from tilefold import cute\n\n@cute.kernel\ndef kernel():\n    cute.arch.sync_threads()\n"
    program = Program("planted", text, frozenset({"kernel"}), "kernel().launch(1, 1, device='sim')")
    assert "len() takes exactly one argument (2 given)" in (fault(program.text, program.launch) or "")
    monkeypatch.setattr("tests.python.fuzz.programs", lambda: [program])
    monkeypatch.setattr("tests.python.fuzz.damaged", lambda _, text, __: text)  # pyright: ignore
    assert main(["--count", "2"]) == 1
    assert "2 damaged kernels, 2 treated wrongly" in capsys.readouterr().out


def test_what_a_text_raises_by_itself_is_no_fault() -> None:
    text = "from tilefold import cute\n\n@cute.kernel\ndef kernel():\n    {}\n"
    for line in (
        "1 / 0",
        "object().x",
        "cute.gem()",
        "x = [cute.arch.thread_idx()[0]][1]",
        "raise SystemExit",
        "cute.range(4).step = 1",
    ):
        assert fault(text.format(line), "kernel().launch(1, 1, device='sim')") is None
