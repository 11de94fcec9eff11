# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--max-seconds` counts from the start of a command, over reading, passes, LLVM and launches."""

import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from math import inf
from pathlib import Path
from typing import Any

import pytest
from tilefold.base import limits
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.limits import Limits, TimeLimitError, check_deadline, deadline, seconds_left
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.machine import nvdisasm, nvptx, ptxas
from tilefold.compiler.pass_runner import InternalError, parse_passes, run_passes, run_passes_quickly, run_pipeline
from tilefold.compiler.pipeline import PASSES
from tilefold.runtime.options import SimOptions

from tests.cli.test_limits import refusal, write
from tilefold.commands.cli import main
from tilefold.driver.lowering import load
from tilefold.tools.editing import document
from tilefold.tools.editing.document import Document

COMMANDS = ("run", "check", "bisect", "reduce", "compile", "explain", "opt", "export", "show")
SOURCE = "func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n"


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(limits, "monotonic", clock)
    return clock


def test_without_a_deadline() -> None:
    check_deadline()
    assert seconds_left(7.0) == 7.0


def test_deadline(clock: Clock) -> None:
    with deadline(10.0):
        clock.now += 4
        assert seconds_left(60.0) == 6.0
        assert seconds_left(2.0) == 2.0
        assert Limits().began == SimOptions().limits.began == 100.0
        with deadline(inf):
            clock.now += 6
            check_deadline()
        with pytest.raises(TimeLimitError) as caught:
            check_deadline("before LLVM")
        with pytest.raises(TimeLimitError):
            seconds_left(60.0)
    check_deadline()
    assert caught.value.code == Code.SIM_SECONDS
    assert caught.value.message == "the command has taken 10 seconds and has not ended (before LLVM)"
    assert caught.value.hint == "allow more by --max-seconds"
    assert SimOptions().limits.began == 110.0


def _all(context: Any, module: Any, source: Any) -> None:
    run_passes(context, module, parse_passes("cse,dce", PASSES), source=source)


def _quickly(context: Any, module: Any, source: Any) -> None:
    run_passes_quickly(context, module, parse_passes("cse,dce", PASSES), source=source)


def _pipeline(context: Any, module: Any, source: Any) -> None:
    run_pipeline(context, module, ["cse", "dce"], source=source)


@pytest.mark.parametrize("run", [_all, _quickly, _pipeline])
@pytest.mark.parametrize("fails", [False, True])
def test_passes(run: Callable[..., None], fails: bool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    program = load(plain_source(SOURCE, "k.cute"))
    (cse,) = parse_passes("cse", PASSES)
    applied = list[float]()

    def slow(*_: object) -> None:
        applied.append(clock.now)
        if fails and clock.now > 105:
            raise ValueError
        clock.now += 6

    monkeypatch.setattr(type(cse), "apply", slow)
    with deadline(5.0), pytest.raises(TimeLimitError, match=r"has not ended \(before pass 'dce'"):
        run(program.context, program.module, program.source)
    assert applied == [100.0]
    with deadline(50.0), pytest.raises(InternalError) if fails else nullcontext():
        run(program.context, program.module, program.source)
    assert len(applied) > 1


@pytest.mark.parametrize("allowed", [5.0, 500.0])
def test_llvm_in_its_own_process(allowed: float, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[float]()

    def run_child(command: Any, data: bytes, timeout: float) -> Any:
        given.append(timeout)
        clock.now += timeout
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(nvptx, "run_child", run_child)
    with deadline(allowed), pytest.raises(TilefoldError) as caught:
        nvptx.compile_isolated("", Target("sm_80"))
    assert given == [min(allowed, nvptx.TIMEOUT)]
    assert caught.value.code == (Code.SIM_SECONDS if allowed == 5 else Code.LLVM_TIMEOUT)


@pytest.mark.parametrize("allowed", [5.0, 5000.0])
@pytest.mark.parametrize("module", [ptxas, nvdisasm])
def test_assembler(module: Any, allowed: float, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[float]()

    def run(command: Any, timeout: float, **_: object) -> Any:
        given.append(timeout)
        clock.now += timeout
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(nvdisasm, "find_nvdisasm", str)
    with deadline(allowed), pytest.raises(TilefoldError) as caught:
        module.disassemble(b"") if module is nvdisasm else module._run(["ptxas"])
    assert given == [min(allowed, module.TIMEOUT)]
    assert (caught.value.code == Code.SIM_SECONDS) is (allowed == 5)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("-o", str(tmp_path / "x.svg")) * (command in ("show", "export"))
    status = main([command, write(tmp_path), "--max-seconds", "1e-9", *more])
    said = "".join(capsys.readouterr())
    assert status == (3 if command == "check" else 1)
    assert "the command has taken 1e-09 seconds and has not ended" in said
    assert "hint: allow more by --max-seconds" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.cute"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("value", ["0", "-1", "nan"])
def test_no_time(command: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("-o", str(tmp_path / "x.svg")) * (command in ("show", "export"))
    assert "error[E4003]: --max-seconds" in refusal([command, write(tmp_path), f"--max-seconds={value}", *more], capsys)


def test_enough_time(tmp_path: Path) -> None:
    assert main(["compile", write(tmp_path), "--max-seconds", "600", "--emit", "instr"]) == 0


def test_reading(clock: Clock) -> None:
    with deadline(0.0), pytest.raises(ProgramError) as caught:
        load(plain_source(SOURCE, "k.cute"))
    (fault,) = caught.value.diagnostics
    assert (fault.code, fault.hint) == (Code.SIM_SECONDS, "allow more by --max-seconds")


@pytest.mark.parametrize("at", ["reading", "lowering"])
def test_editor(at: str, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = Document("k.cute", Path(write(tmp_path)).read_text())
    if at == "lowering":
        assert not edited.faults
    monkeypatch.setattr(document, "MAX_SECONDS", 0.0)
    (fault,) = edited.deep_faults()
    assert fault.code == Code.SIM_SECONDS
    assert fault.message.startswith("the work on the file has taken 0 seconds and has not ended")
    assert "tilefold compile" in fault.hint
    assert (edited.module is None) is (at == "reading")
