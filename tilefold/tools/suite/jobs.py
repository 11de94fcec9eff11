# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of a folder, and the check of one of them in a process of its own.

The workers of this machine, or of a Dask or Ray cluster, make the checks: `driver.workers.results` gives them jobs.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path
from socket import create_connection
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.source_files import source_files
from tilefold.driver.workers import Workers

_LAUNCHES = re.compile(r"\brun\.launch\b|@main\b")
_PROGRAM = re.compile(r"^if __name__ == ['\"]__main__['\"]:", re.MULTILINE)
_IMPORTS = re.compile(r"(^\s*|\")(from|import)\s+(tilefold|cutlass)\b", re.MULTILINE)
GRACE = 60
"""Seconds that a process has beyond its limit, to say that it has ended."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program to check: its path as the user wrote it, and options of `tilefold check` for a `.cute` file."""

    path: str
    words: tuple[str, ...] = ()
    seconds: int = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on a program: `clean`, `faults` or `incomplete`; or `error` for one that was rejected or did not end.

    `lines` say why it is not clean, a line each; `launches` counts those that were checked.
    """

    path: str
    verdict: str
    lines: tuple[str, ...] = ()
    launches: int = 0


def collect(roots: Sequence[str]) -> list[str]:
    """The programs at paths: files, and below folders each `.cute` file that has launches and each program or notebook
    in Python that imports tilefold or cutlass. Raises TilefoldError (E4001) for a path that does not exist.
    """
    found: list[str] = []
    for root in roots:
        path = Path(root)
        if path.is_file():
            found.append(root)
        elif not path.is_dir():
            raise TilefoldError(Code.CLI_READ, f"{root}: no such file or folder")
        else:
            found += [str(each) for each in source_files(path, ".cute", ".py", ".ipynb") if _is_program(each)]
    return list(dict.fromkeys(found))


def libraries(roots: Sequence[str]) -> int:
    """The number of files in Python below paths that import tilefold or cutlass and run nothing by themselves."""
    files = (each for root in roots for each in source_files(Path(root), ".py"))
    return sum(_IMPORTS.search(each.read_text(errors="replace")) is not None for each in files if not _is_program(each))


def _is_program(path: Path) -> bool:
    text = path.read_text(errors="replace")
    if path.suffix == ".cute":
        return _LAUNCHES.search(text) is not None
    return _IMPORTS.search(text) is not None and (path.suffix == ".ipynb" or _PROGRAM.search(text) is not None)


def check(job: Job) -> Outcome:
    """Checks a program in a process of its own, on the simulator. It raises nothing: a failure is an outcome."""
    with TemporaryDirectory() as folder:
        out = str(Path(folder, "report.json"))
        limit = str(job.seconds)
        if job.path.endswith((".py", ".ipynb")):
            command = [sys.executable, "-m", "tilefold.cutlass.checked_program", job.path, out]
        else:
            words = ["--json", "-o", out, "--max-seconds", limit, *job.words]
            command = [sys.executable, "-m", "tilefold", "check", job.path, *words]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        try:
            run = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=job.seconds + GRACE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(job.path, "error", (f"did not end within {job.seconds} s",))
        try:
            found: dict[str, Any] = json.loads(Path(out).read_text())
        except (OSError, ValueError):
            return Outcome(job.path, "error", _last_line(run.stderr, run.returncode))
    return _outcome(job, run, found.get("reports", [found]), found.get("error"))


def _outcome(
    job: Job, run: "subprocess.CompletedProcess[str]", reports: Sequence[dict[str, Any]], error: str | None
) -> Outcome:
    """The verdict on a program by the reports on its launches, its end, and the error of a program in Python."""
    launches = sum(len(report["launches"]) for report in reports)
    faults = [_line(fault) for report in reports for fault in report["faults"]]
    if faults:
        return Outcome(job.path, "faults", tuple(dict.fromkeys(faults)), launches)
    if run.returncode not in (0, 3) or error is not None:
        lines = _last_line(run.stderr, run.returncode) if error is None else (error,)
        return Outcome(job.path, "error", lines, launches)
    gaps = [gap["message"] for report in reports for gap in report["gaps"]]
    if not launches:
        gaps.append("it launches nothing on the simulator")
    verdict = "incomplete" if gaps else "clean"
    return Outcome(job.path, verdict, tuple(dict.fromkeys(gaps)), launches)


def _line(fault: dict[str, Any]) -> str:
    place = fault.get("place")
    where = f"{place['file']}:{place['line']}: " if place else ""
    return f"{where}{fault['code']}: {fault['message']}"


def _last_line(text: str, status: int) -> tuple[str, ...]:
    """The message of a process that failed: the last line of its errors that names one, or the last at all."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\bE\d{4}\b|Error", line)]
    return ((errors or lines or [f"exit status {status}"])[-1],)


if TYPE_CHECKING:
    from collections.abc import Generator

R = TypeVar("R")


def _end_with_check() -> None:
    """Lets a worker leave interrupts to the process that started it, and end its check where that ends it."""

    def end(number: int, frame: object) -> None:
        sys.exit(1)

    signal.signal(signal.SIGINT, lambda number, frame: None)
    signal.signal(signal.SIGTERM, end)


@contextmanager
def workers_at(place: str | None, count: int | None) -> "Generator[Callable[[], Workers], None, None]":
    """Opens the workers of a place: processes of this machine, `count` of them, by default one for each core, or
    those of Dask's scheduler at `dask:ADDRESS` or of the Ray cluster at `ray:ADDRESS`. Raises TilefoldError (E4003) for
    another place, and E4001 where no cluster answers.
    """
    if place is None:
        opened: list[Executor] = []

        def processes() -> Workers:
            spawned = get_context("spawn")
            opened.append(ProcessPoolExecutor(count or os.cpu_count() or 1, spawned, _end_with_check))
            return opened[-1]

        try:
            yield processes
        finally:
            for pool in opened:
                pool.shutdown(wait=False, cancel_futures=True)
            for worker in active_children():
                worker.terminate()  # with the check that it waits for
        return
    kind, _, address = place.partition(":")
    if kind not in _OPENERS or not address:
        hint = "write dask:ADDRESS, the address of Dask's scheduler, such as dask:tcp://10.0.0.1:8786, or ray:ADDRESS"
        raise TilefoldError(Code.CLI_VALUE, f"--executor {place}: no such workers", hint)
    with _OPENERS[kind](place, address) as opened_workers:
        yield opened_workers


@contextmanager
def _dask(place: str, address: str) -> "Generator[Callable[[], Workers], None, None]":
    distributed = _package(place, "distributed")
    try:
        client = distributed.Client(address, timeout=30)
    except (OSError, ValueError) as error:
        raise TilefoldError(Code.CLI_READ, f"{address}: {error}", "start dask scheduler there") from None
    try:
        yield lambda: client.get_executor(pure=False)
    finally:
        client.close()


class RayExecutor(Executor):
    """The workers of a Ray cluster, to which this process is connected. A call has `gpus` GPUs of its own. The package
    `ray` is imported with the first call; a call whose worker is lost fails, and is not tried again.
    """

    def __init__(self, gpus: float = 0) -> None:
        self.gpus = gpus

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> "Future[R]":
        """Queues a call."""
        ray = import_module("ray")
        task = ray.remote(num_gpus=self.gpus, max_retries=0)(fn)
        return task.remote(*args, **kwargs).future()


@contextmanager
def _ray(place: str, address: str) -> "Generator[Callable[[], Workers], None, None]":
    ray = _package(place, "ray")
    host, colon, port = address.rpartition(":")
    try:
        if colon and port.isdecimal():  # ray.init waits for minutes where nothing listens
            create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address=address, log_to_driver=False)
    except (OSError, OverflowError, ValueError) as error:
        raise TilefoldError(Code.CLI_READ, f"{address}: {error}", "start a cluster there: ray start --head") from None
    try:
        yield RayExecutor
    finally:
        ray.shutdown()


_OPENERS = {"dask": _dask, "ray": _ray}
"""The functions that open the workers of each kind of cluster."""


def _package(place: str, name: str) -> ModuleType:
    """A package. TilefoldError (E4003) where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        message = f"--executor {place}: the package {name} is not installed"
        raise TilefoldError(Code.CLI_VALUE, message, f"pip install {name}") from None
