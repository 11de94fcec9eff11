# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CUTLASS as a peer: without it the figures lack it and say so; with it a library is made and called."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tilefold.base.errors import TilefoldError

from benchmarks import cutlass_peer

F16, F32 = object(), object()
TORCH = SimpleNamespace(float16=F16)


class Matrix:
    """As much of a tensor of torch as the peer asks for."""

    def __init__(self, rows: int, columns: int, dtype: Any = F16, by_rows: bool = True) -> None:
        self.shape, self.dtype, self._by_rows = (rows, columns), dtype, by_rows

    def is_contiguous(self) -> bool:
        return self._by_rows


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    cutlass_peer.library.cache_clear()
    monkeypatch.delenv(cutlass_peer.VARIABLE, raising=False)


def test_without_cutlass_a_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    operands = Matrix(64, 32), Matrix(16, 32), Matrix(64, 16)
    for _ in range(2):
        assert cutlass_peer.peers(TORCH, *operands, 132) == {}
    assert capsys.readouterr().err == "no figures of CUTLASS: CUTLASS names no checkout of it\n"


@pytest.mark.parametrize("a", [Matrix(64, 32, F32), Matrix(64, 32, by_rows=False)])
def test_other_products_have_no_such_peer(a: Matrix, capsys: pytest.CaptureFixture[str]) -> None:
    assert cutlass_peer.peers(TORCH, a, Matrix(16, 32), Matrix(64, 16), 132) == {}
    assert capsys.readouterr().err == ""


def test_a_compiler_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho no headers >&2\nexit 2\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(cutlass_peer.VARIABLE, str(tmp_path))
    with pytest.raises(TilefoldError, match=r"E4003: nvcc makes no kernels of .*no headers"):
        cutlass_peer.library()
