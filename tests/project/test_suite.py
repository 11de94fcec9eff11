# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The suite itself: a run has the examples of the one before, and a hang is a failure."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import USUAL
from tests.project.tree import ROOT

GENERATED = """
from hypothesis import given, strategies
{imports}
@given(strategies.integers(), strategies.text())
def test_writes_its_examples(number, text):
    with open({out!r}, "a", encoding="utf-8", errors="replace") as file:
        file.write(f"{{number}} {{text!r}}\\n")
"""
"""Integers and texts, as wide as they come, that include constants of a program."""
HANGS = """
from threading import Lock, Thread

def wait_for(lock):
    lock.acquire()

def test_hangs():
    lock = Lock()
    lock.acquire()
    Thread(target=wait_for, args=(lock,), daemon=True).start()
    wait_for(lock)
"""


def run_pytest(tmp_path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A process of pytest that runs a file with the settings of this suite."""
    file = tmp_path / "test_of_the_suite.py"
    file.write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", f"--rootdir={ROOT}", f"-c{ROOT}/pyproject.toml"]
    command += ["-p", "no:cacheprovider", "-p", "tests.conftest", *options, str(file)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def examples(tmp_path: Path, imports: str, *options: str) -> str:
    """The examples that Hypothesis generates in a process that imports so much."""
    out = tmp_path / "examples"
    out.unlink(missing_ok=True)
    ran = run_pytest(tmp_path, GENERATED.format(imports=imports, out=str(out)), *options)
    assert ran.returncode == 0, ran.stdout
    return out.read_text(encoding="utf-8")


def test_hypothesis_generates_the_same_examples_in_every_run(tmp_path: Path) -> None:
    first = examples(tmp_path, "import os")
    assert len(first.splitlines()) >= USUAL
    assert examples(tmp_path, "import tilefold.driver.lowering, tilefold.compiler.emit") == first


@pytest.mark.sampled(0)
def test_the_profile_of_the_night_generates_new_ones(tmp_path: Path) -> None:
    nightly = [examples(tmp_path, "", "--hypothesis-profile=nightly") for _ in range(2)]
    assert nightly[0] != nightly[1]


@pytest.mark.parametrize("options", [("-n0",), ("-n1",)], ids=["in one process", "in a worker"])
@pytest.mark.sampled(1)
def test_a_hang_is_a_failure_with_the_stacks_of_all_threads(options: tuple[str, ...], tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, HANGS, "--timeout=2", *options)
    assert ran.returncode
    said = ran.stdout + ran.stderr
    assert said.count("in wait_for\n") >= 2
    assert "in test_hangs\n" in said


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    assert float(pytestconfig.getini("timeout")) > 0
    assert pytestconfig.getini("timeout_method") == "thread"
