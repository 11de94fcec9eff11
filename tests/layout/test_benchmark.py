# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark of the algebra: it needs its peer, draws distinct inputs, and counts only those that agree."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tilefold.layout as cute
from tilefold.layout.algebra.coordinates import crd2idx, idx2crd
from tilefold.layout.algebra.core import Layout

from benchmarks.algebra import contests, inputs, main


def make(shape: Any, stride: Any = None) -> Layout:
    """pycute's way to make a layout."""
    return cute.make_layout(shape) if stride is None else cute.make_layout(shape, stride)


def wrong_size(_: Layout) -> int:
    """What no layout's size is."""
    return -1


PEER = SimpleNamespace(**{name: getattr(cute, name) for name in cute.__all__}, crd2idx=crd2idx, idx2crd=idx2crd)
PEER.Layout = make


def test_without_the_peer_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycute", None)
    assert main([]) == 1
    assert "nvidia-cutlass" in capsys.readouterr().err


def test_inputs_are_distinct() -> None:
    for contest in contests(PEER):
        ours, theirs = inputs(contest, PEER, 20)
        assert len(ours) == len(theirs) == len(set(ours)) == 20, contest.name


def test_inputs_on_which_the_sides_differ_do_not_count() -> None:
    wrong = SimpleNamespace(**{**vars(PEER), "size": wrong_size})
    found = {contest.name: inputs(contest, wrong, 5)[0] for contest in contests(wrong)}
    assert found["size"] == []
    assert found["coalesce"]


def test_figures_are_kept(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pycute", PEER)
    assert main(["--repeat", "1", "--count", "5", "--out", str(tmp_path)]) == 0
    assert "composition" in capsys.readouterr().out
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".md"}
