# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold test`, its workers, and the mark `cute_kernel` of pytest."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tilefold.base.errors import TilefoldError

from tests.project.tree import ROOT
from tilefold.commands.cli import main
from tilefold.driver import workers
from tilefold.driver.workers import results
from tilefold.tools.suite.jobs import Job, Outcome, check, collect, workers_at

PROGRAM = """\
import numpy as np
from tilefold import cute

@cute.kernel
def add(a: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    a[t{half}] = a[t{half}] + 1.0

if __name__ == "__main__":
    add(np.zeros(64, np.float32)).launch(grid=1, block=64)
"""
MAIN = 'if __name__ == "__main__":\n'
HOST = """\
import numpy as np
import cutlass.cute as cute

@cute.kernel
def add(a: cute.Tensor):
    a[cute.arch.thread_idx()[0]] = 1.0

@cute.jit
def host(a: cute.Tensor):
    add(a).launch(grid=1, block=64)

if __name__ == "__main__":
    host(np.zeros(64, np.float32))
"""
TESTS = """\
import numpy as np
import pytest
from good import add as good
from racy import add as racy

@pytest.mark.cute_kernel
def test_good():
    a = np.zeros(64, np.float32)
    good(a).launch(grid=1, block=64)
    assert (a == 1).all()

@pytest.mark.cute_kernel(stages=("instr",))
def test_racy():
    racy(np.zeros(64, np.float32)).launch(grid=1, block=64)

def test_unmarked():
    racy(np.zeros(64, np.float32)).launch(grid=1, block=64, races=False)

@pytest.mark.cute_kernel
def test_nothing():
    pass
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs")
    (path / "good.py").write_text(PROGRAM.format(half=""))
    (path / "racy.py").write_text(PROGRAM.format(half=" // 2"))
    (path / "host").mkdir()
    (path / "host/host.py").write_text(HOST)
    (path / "vendor").mkdir()
    (path / "vendor/good.py").write_text(PROGRAM.format(half=""))
    (path / "wrong.py").write_text(f"import tilefold\n{MAIN}    f(:\n")
    (path / "broken.cute").write_text('"run.launch"(')
    (path / "module.py").write_text("import tilefold\n")
    (path / "test_kernels.py").write_text(TESTS)
    (path / "conftest.py").write_text('pytest_plugins = ["tilefold.pytest_plugin"]\n')
    return path


def test_programs_of_a_folder(folder: Path) -> None:
    paths = [str(folder / name) for name in ("broken.cute", "good.py", "racy.py")]
    command = [sys.executable, "-m", "tilefold", "test", *paths, "-n", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = run.stdout.replace(f"{folder}/", "").splitlines()
    assert run.returncode == 1, run.stderr
    assert [line.split() for line in lines[:3]] == [
        ["broken.cute", "ERROR"],
        ["good.py", "PASSED"],
        ["racy.py", "FAILED"],
    ]
    assert lines[3].startswith("ERROR broken.cute: ")
    assert "E1001" in lines[3]
    assert lines[4].startswith("FAILED racy.py: racy.py:7: E3205: ")
    assert lines[-1] == "1 passed, 1 failed, 1 error"


def test_a_program_that_imports_cutlass(folder: Path) -> None:
    outcome = check(Job(str(folder / "host/host.py")))
    assert (outcome.verdict, outcome.lines, outcome.launches) == ("clean", (), 1)


def test_which_files_are_programs(folder: Path, tmp_path: Path) -> None:
    names = ["broken.cute", "good.py", "host/host.py", "racy.py", "wrong.py"]
    assert collect([str(folder)]) == [str(folder / name) for name in names]
    assert collect([str(folder / "module.py")]) == [str(folder / "module.py")]
    for name in ("hidden/.venv/a.py", "cells.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f'{{"cells": [{{"source": ["import cutlass", ""]}}]}}\nimport cutlass\n{MAIN}')
    assert collect([str(tmp_path)]) == [str(tmp_path / "cells.ipynb")]
    with pytest.raises(TilefoldError, match="no such file or folder") as caught:
        collect([str(folder / "absent")])
    assert caught.value.code == "E4001"


def test_a_folder_without_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "library.py").write_text("from tilefold import cute\n")
    (tmp_path / "other.py").write_text("import numpy\n")
    assert main(["test", str(tmp_path)]) == 1
    assert capsys.readouterr().out == 'no programs: 1 files in Python have no `if __name__ == "__main__":`\n'


def test_the_mark_of_pytest(folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-c", os.devnull, "test_kernels.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 failed, 2 passed" in run.stdout, run.stdout
    assert "tilefold check: 1 of 1 launches\n" in run.stdout
    assert "E3205" in run.stdout
    assert "the test launches no kernel on the simulator" in run.stdout


class Losing:
    """Workers of which the first calls are lost."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Calls the function at once, or loses the worker."""
        future: Future[Any] = Future()
        self.left -= 1
        if self.left >= 0:
            future.set_exception(BrokenPipeError("the worker is gone"))
        else:
            future.set_result(function(*arguments))
        return future


@pytest.mark.parametrize(
    ("lost", "expected"), [(2, [1, 4, 9]), (9, [BrokenPipeError] * 3), (7, [BrokenPipeError, 4, 9])]
)
def test_jobs_of_lost_workers_are_tried_again(lost: int, expected: list[Any]) -> None:
    workers = Losing(lost)
    found = dict(results(lambda x: x * x, [1, 2, 3], lambda: workers))
    values = [type(value) if isinstance(value, Exception) else value for value in found.values()]
    assert sorted(values, key=str) == sorted(expected, key=str)


def killing(path: str) -> int:
    """Kills the worker that is the first to come here."""
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return 7
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


@pytest.mark.sampled(0)
def test_a_cluster_whose_worker_is_killed(tmp_path: Path) -> None:
    distributed: Any = import_module("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        workers_at(f"dask:{cluster.scheduler_address}", None) as open_workers,
    ):
        assert [value for _, value in results(killing, [str(tmp_path / "seen")], open_workers)] == [7]


def test_a_ray_cluster_whose_worker_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install ray")
    with workers_at("ray:local", None) as open_workers:
        assert [value for _, value in results(killing, [str(tmp_path / "seen")], open_workers)] == [7]


def test_workers_that_do_not_exist() -> None:
    for place in ("ray", "ray:", "dask:", "nowhere:1"):
        with pytest.raises(TilefoldError, match="no such workers") as caught, workers_at(place, None):
            pass
        assert caught.value.code == "E4003"


def test_outcomes_as_json(folder: Path) -> None:
    command = [sys.executable, "-m", "tilefold", "test", str(folder / "broken.cute"), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    (outcome,) = json.loads(run.stdout)
    assert (outcome["verdict"], outcome["launches"], run.returncode) == ("error", 0, 1)


def test_the_first_error_ends_the_run_and_xml_tells_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def in_turn(check: Callable[[Job], Outcome], jobs: list[Job], open_workers: Any) -> Iterator[tuple[int, Outcome]]:
        yield from ((number, check(job)) for number, job in enumerate(jobs))

    monkeypatch.setattr(workers, "results", in_turn)
    out = tmp_path / "report.xml"
    monkeypatch.chdir(folder)
    assert main(["test", "wrong.py", "good.py", "racy.py", "-k", "o", "-x", "--junitxml", str(out)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 error; 1 not checked"
    suite = ElementTree.parse(out).getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["errors"]) == ("1", "1")
    assert suite[0][0].attrib["message"] == "wrong.py:3: SyntaxError: invalid syntax"


def test_lines_come_with_the_results(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    jobs_seen: list[Job] = []
    shown: list[list[str]] = []

    def backwards(check: Any, jobs: list[Job], open_workers: Any) -> Any:
        jobs_seen.extend(jobs)
        for number, job in reversed(list(enumerate(jobs))):
            yield number, Outcome(job.path, "clean")
            shown.append(capsys.readouterr().out.splitlines())

    monkeypatch.setattr(workers, "results", backwards)
    paths = [str(ROOT / f"examples/{name}.cute") for name in ("reduce", "rmsnorm")]
    assert main(["test", *paths, "--fuzz", "3", "--seed", "5"]) == 0
    assert [job.words for job in jobs_seen] == [("--fuzz", "3", "--seed", "5")] * 2
    assert shown[0] == []
    assert [line.split()[0] for line in shown[1]] == paths
    assert capsys.readouterr().out == "2 passed\n"
