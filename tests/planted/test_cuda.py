# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in CUDA C++, as they are and with a fault each: the check is silent, or finds it."""

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.ptx.test_cuda_source import needs_nvrtc
from tilefold.commands.cli import main

_OPTIONS = ("grid", "block", "shared", "target", "resident")


def _cases() -> Iterator[tuple[str, str, str, str, str]]:
    """The title of each kernel, the macro of a fault and its code, or none, the settings, and the text."""
    _, *entries = (Path(__file__).parent / "cuda.txt").read_text().split("\n## ")
    for entry in entries:
        title, faults, settings, *lines = entry.splitlines()
        for fault in ("", *faults.split("; ")):
            macro, _, code = fault.partition(" ")
            yield title, macro, code, settings, "\n".join(lines) + "\n"


def _words(settings: str) -> Iterator[str]:
    for setting in settings.split("; "):
        name, _, value = setting.partition(" ")
        if name in _OPTIONS:
            yield from (f"--{name}", value)
        else:
            given, _, fill = value.partition("=")
            yield from ("--arg", f"{name}={given}", *(("--fill", f"{name}={fill}") if fill else ()))


CASES = {f"{title} {macro}".rstrip(): (macro, code, settings, text) for title, macro, code, settings, text in _cases()}


@needs_nvrtc
@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_in_cuda(name: str, tmp_path: Path) -> None:
    macro, code, settings, text = CASES[name]
    file = tmp_path / "k.cu"
    file.write_text(text)
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        main(["check", str(file), "--json", *_words(settings), *(("-D", f"{macro}=1") if macro else ())])
    report = json.loads(out.getvalue())
    if not macro:
        assert report["verdict"] == "clean", report["faults"] or report["gaps"]
    assert any(fault["code"].startswith(code) for fault in report["faults"]) or not macro, report["faults"]
