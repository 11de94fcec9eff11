# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in Python: each checks itself; what they compile to is what their `.cute` twins compile to."""

import importlib
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.compiler.source import SourceReader
from tilefold.dialects.target import Target

from tests.kernels.gemm_variants import HOPPER, gemm
from tests.kernels.harness import STAGES
from tests.kernels.test_gemm_variants import loop_of
from tests.project.tree import ROOT

FOLDER = ROOT / "examples" / "python"
SMALL: dict[str, list[list[str]]] = {
    "attention": [["--depth", "64"], ["--causal", "1", "--sequence", "96", "--heads", "1", "--depth", "128"]],
    "four_ways": [[]],
    "gemm": [["--k", "64"]],
    "linear": [["--k", "64"]],
    "rmsnorm": [[], ["--m", "2", "--n", "512", "--group", "32"]],
    "sgemm": [[]],
    "softmax": [[], ["--m", "2", "--n", "512", "--group", "32"]],
}
LARGE: dict[str, list[str]] = {
    "attention": ["--sequence", "1024", "--heads", "8", "--depth", "128", "--causal", "1", "--warps", "4"],
    "four_ways": [],
    "gemm": ["--m", "2048", "--n", "2048", "--k", "1024"],
    "linear": ["--m", "1024", "--n", "2048", "--k", "512"],
    "rmsnorm": ["--m", "1024", "--n", "8192", "--group", "256", "--rows", "1"],
    "sgemm": ["--m", "1024", "--n", "512", "--k", "256"],
    "softmax": ["--m", "1024", "--n", "8192", "--group", "256", "--rows", "1"],
}


@pytest.fixture(autouse=True)
def _import_from_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.syspath_prepend(str(FOLDER))


def example(name: str) -> Any:
    """An example as a module, as `python examples/python/NAME.py` runs it."""
    return importlib.import_module(name)
