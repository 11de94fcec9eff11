# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold bisect` launches the PTX: wrong instructions that the operations do not have are found and named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tilefold.base.target import Target

from tests.project.tree import ROOT
from tilefold.commands.cli import main
from tilefold.tools.bisection import bisect as search

Capture = pytest.CaptureFixture[str]


def _bisect(monkeypatch: pytest.MonkeyPatch, example: str, change: Callable[[str], str]) -> int:
    """`tilefold bisect` of an example whose PTX is changed."""
    right = search.compile_llvm

    def compile_llvm(llvm: str, target: Target, *, keeps_undefined: bool) -> str:
        text = right(llvm, target, keeps_undefined=keeps_undefined)
        changed = change(text)
        assert changed != text
        return changed

    monkeypatch.setattr(search, "compile_llvm", compile_llvm)
    return main(["bisect", str(Path(ROOT) / "examples" / example)])


@pytest.mark.parametrize(
    ("example", "old", "new", "said"),
    [
        ("softmax.cute", "setp.gt.u32", "setp.lt.u32", "a fault: E32"),
        ("softmax.cute", "add.rn.f32", "sub.rn.f32", "B at (0, 0) is"),
        ("softmax.cute", "[%rd4+1024]", "[%rd4+1026]", "a fault: E3203"),
        ("softmax.cute", "bar.sync \t0;", "", "a fault: E32"),
        ("ldmatrix.cute", ".x4.shared", ".x4.trans.shared", "B at (0, "),
        ("reduce.cute", "shfl.sync.bfly.b32", "shfl.sync.up.b32", "instead of"),
    ],
)
@pytest.mark.sampled(2)
def test_wrong_ptx_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, example: str, old: str, new: str, said: str
) -> None:
    assert _bisect(monkeypatch, example, lambda text: text.replace(old, new)) == 1
    out, err = capsys.readouterr()
    assert "your kernel is right at stage 'instr'" in out
    assert "the PTX does something else than the operations: " in out
    assert said in out
    assert "  PTX: line " in out
    assert "the emission of PTX changes the program" in err


def test_ptx_that_is_not_known_is_passed_over(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert _bisect(monkeypatch, "softmax.cute", lambda text: text.replace("max.f32", "maximal.f32")) == 0
    assert "PTX: the simulator cannot run it" in capsys.readouterr().out
