# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel of a suite with the verdict that the suite expects, and the verdict of `check` on it."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.machine.nvrtc import compile_cuda
from tilefold.compiler.ptx.syntax import PtxError
from tilefold.runtime.settings import ptxas_settings

from tilefold.cute.loaded_ptx import PtxKernel, PtxKernelCall
from tilefold.driver.faults import Report
from tilefold.driver.gaps import GapKind
from tilefold.driver.ptx_module import PtxModule, PtxSource, parameter_names

SHIMS = Path(__file__).parent / "shims"
"""Headers of this folder, which stand for those that NVRTC lacks."""
STATES = ("right", "wrong", "not supported", "left out", "crash")
"""What comes of a kernel."""
UNSUPPORTED = (Code.PTX_UNSUPPORTED, Code.SIM_UNSUPPORTED)

Arguments = Callable[[PtxKernel], Sequence[Any]]
"""The arguments for a kernel, made where it runs."""


@dataclass(frozen=True)
class Case:
    """A kernel in CUDA C++. `expected` is `clean` or `faults`; `codes` are those that must be among the faults.
    `judge` compares the arrays after a launch with a reference, and returns the difference, or an empty text.
    """

    name: str
    text: str
    file: Path
    expected: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    inputs: tuple[Arguments, ...]
    kernel: str | None = None
    nvrtc: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    left_out: str = ""
    excuse: str = ""
    target: str = "sm_80"
    shared: int = 0
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    judge: Callable[[Sequence[Any]], str] | None = None
    launches: "Callable[[Case], Iterator[Checked]] | None" = None
    """Launches of a kernel that is not in CUDA C++, once for each input."""


Checked = tuple[str, Report | None]
"""What came of a launch: how its results differ from the reference, and the report of the check if they do not."""


@dataclass(frozen=True)
class Verdict:
    """What came of a case: `right`, `wrong`, or `not supported`; with the verdict of the check and its reasons."""

    case: str
    state: str
    found: str
    reason: str = ""


def judge(case: Case, seconds: int = 120) -> Verdict:
    """Compiles a case, checks it on its inputs, and compares the verdict with the expected one."""
    if case.left_out:
        return Verdict(case.name, "left out", "", case.left_out)
    faults: dict[str, str] = {}
    vacuous = 0
    try:
        with _limited(seconds):
            for difference, report in (case.launches or checked)(case):
                if report is None:
                    return Verdict(case.name, "wrong", "wrong results", difference)
                if any("precondition" in fault.message for fault in report.faults):
                    vacuous += 1
                    continue
                gaps = [gap.message for gap in report.gaps if gap.kind is GapKind.UNSUPPORTED]
                if gaps and not report.faults:
                    return Verdict(case.name, "not supported", "refused", gaps[0])
                faults |= {fault.code.id: fault.message for fault in report.faults}
    except TimeoutError:
        return Verdict(case.name, "not supported", "no end", f"it did not end within {seconds} s")
    except TilefoldError as error:
        if error.code is Code.FOREIGN_UNAVAILABLE:  # says nothing about the kernel
            raise
        first = str(error).splitlines()[0]
        if error.code in UNSUPPORTED or isinstance(error, PtxError):
            return Verdict(case.name, "not supported", "refused", first)
        if error.code is Code.FOREIGN_REFUSED:
            return Verdict(case.name, "not supported", "not compiled", first)
        return Verdict(case.name, "right" if case.expected == "faults" else "wrong", "faults", first)
    except Exception as error:
        return Verdict(case.name, "crash", type(error).__name__, str(error)[:300])
    return _compared(case, faults, vacuous)


def checked(case: Case) -> Iterator[Checked]:
    """The launches of a kernel in CUDA C++."""
    kernel = compiled(case)
    for make in case.inputs:
        if case.judge is not None:
            call = PtxKernelCall(kernel, tuple(make(kernel)))
            call.launch(case.grid, case.block, shared=case.shared, races=False, **case.options)
            if difference := case.judge(call.arguments):
                yield difference, None
                return
        call = PtxKernelCall(kernel, tuple(make(kernel)))
        yield "", call.check(case.grid, case.block, shared=case.shared, **case.options)


def _compared(case: Case, faults: Mapping[str, str], vacuous: int) -> Verdict:
    unsupported = [text for code, text in faults.items() if code in {c.id for c in UNSUPPORTED}]
    if unsupported:
        return Verdict(case.name, "not supported", "refused", unsupported[0])
    if case.inputs and vacuous == len(case.inputs):
        return Verdict(case.name, "not supported", "no input", "no input meets its preconditions")
    asked = case.counted if case.expected == "clean" else (set(faults) - case.ignored)
    counted = {code for code in faults if not case.counted or code in asked}
    verdict = "faults" if counted else "clean"
    reason = "; ".join(f"{code}: {text[:200]}" for code, text in faults.items())
    if verdict == case.expected and counted.issuperset(case.codes):
        return Verdict(case.name, "right", verdict, reason)
    if case.excuse:
        return Verdict(case.name, "not supported", verdict, case.excuse)
    return Verdict(case.name, "wrong", verdict, reason)


def compiled(case: Case) -> PtxKernel:
    """The kernel of a case, compiled by NVRTC."""
    more = (f"-I{SHIMS}", *case.nvrtc)
    text = compile_cuda(case.text, str(case.file), case.target, {}, ptxas_settings().cuda_home, more)
    module = PtxModule.compiled(text, PtxSource(str(case.file), case.text, case.text))
    function = module.find(case.kernel)
    return PtxKernel(module, function, tuple(parameter_names(function)))


@contextmanager
def _limited(seconds: int):
    """Ends with TimeoutError after so many seconds of the processor, so that a busy machine has the same verdicts."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _work(job: tuple[Case, int]) -> Verdict:
    return judge(*job)


def judge_all(cases: Sequence[Case], seconds: int, processes: int) -> Iterator[Verdict]:
    """The verdicts on cases, in their order, by processes of their own."""
    with get_context("fork").Pool(processes, maxtasksperchild=40) as pool:
        yield from pool.imap(_work, [(case, seconds) for case in cases])


def processes() -> int:
    """The processes that this machine has cores for."""
    return len(os.sched_getaffinity(0))
