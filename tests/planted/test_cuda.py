# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in CUDA C++, as they are and with a fault each: the check is silent, or finds it, at a line that ends in
`// !` where a kernel has any.
"""

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
    for table in ("cuda", "hopper_cuda"):
        head, *entries = (Path(__file__).parent / f"{table}.txt").read_text().split("\n## ")
        _, _, helpers = head.partition("\n")
        for entry in entries:
            title, faults, settings, *lines = entry.splitlines()
            for fault in ("", *faults.split("; ")):
                macro, _, code = fault.partition(" ")
                yield title, macro, code, settings, helpers + "\n".join(lines) + "\n"


def _words(settings: str) -> Iterator[str]:
    for setting in settings.split("; "):
        name, _, value = setting.partition(" ")
        if name in _OPTIONS:
            yield from (f"--{name}", value)
        else:
            given, _, fill = (value, "", "") if value.startswith("map(") else value.partition("=")
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
        return
    found = [fault for fault in report["faults"] if fault["code"].startswith(code)]
    assert found, report["faults"]
    marked = {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("// !")}
    named = {fault[key]["line"] for fault in found for key in ("place", "other") if key in fault}
    assert not marked or marked & named, found
