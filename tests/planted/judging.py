# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tilefold check` says of a planted kernel, against what it must say."""

import io
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.planted.planting import Planted
from tests.planted.python_kernels import Call
from tilefold.commands.cli import main
from tilefold.driver.faults import Report


@dataclass(frozen=True)
class Outcome:
    """Whether a fault was found, and told as expected, or a correct kernel was passed; the problem otherwise."""

    kind: str
    problem: str = ""
    report: str = ""


def judged(kernel: Planted) -> Iterator[Outcome]:
    """The outcome of the faulty kernel and of its corrected twin, or of the correct one."""
    if kernel.code == "ok":
        yield _silent(kernel.faulty)
        return
    faults, report = checked(kernel.faulty)
    yield _found(kernel, faults, report)
    yield _silent(kernel.corrected)


def checked(text: str) -> tuple[list[dict[str, Any]], str]:
    """The faults that the command reports, and all that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.cute"
        path.write_text(text)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            main(["check", str(path), "--format", "json"])
        if not out.getvalue():
            return list(_refused(err.getvalue())), err.getvalue()
        return json.loads(out.getvalue())["faults"], out.getvalue() + err.getvalue()


_ERROR = re.compile(r":(\d+):\d+: error\[(E\d+)\]: (.*)")


def _refused(report: str) -> Iterator[dict[str, Any]]:
    """The errors of a program that the compiler refuses."""
    for line, code, message in _ERROR.findall(report):
        yield {"code": code, "message": message, "place": {"line": int(line)}}


def _silent(text: str) -> Outcome:
    faults, report = checked(text)
    if not faults and '"faults"' not in report:
        return Outcome("false alarm", f"refused: {report.strip()}", text)
    if faults:
        return Outcome("false alarm", faults[0]["code"] + ": " + faults[0]["message"], report)
    return Outcome("silent")


def _found(kernel: Planted, faults: list[dict[str, Any]], report: str) -> Outcome:
    matching = [fault for fault in faults if fault["code"] == kernel.code]
    if not matching:
        said = "; ".join(f"{fault['code']}: {fault['message']}" for fault in faults) or report.strip()[:300]
        return Outcome("not found", f"{kernel.code} expected: {said}", report)
    problem = ""
    for fault in matching:
        text = json.dumps(fault)
        missing = [word for word in kernel.words if word not in text]
        lines = {fault[key]["line"] for key in ("place", "other") if key in fault}
        lines |= {int(line) for line in re.findall(r"\.cute:(\d+):", fault["message"])}
        unnamed = kernel.places - lines
        if not missing and not unnamed:
            return Outcome("found", report=report)
        said = [f"lacks {missing}"] if missing else []
        said += [f"lines {sorted(unnamed)} are not named"] if unnamed else []
        problem = f"{', '.join(said)}: {text}"
    return Outcome("badly told", problem, report)


def judged_call(call: Call) -> Iterator[Outcome]:
    """The outcome of a call of a faulty kernel in Python and of its corrected twin, or of a correct kernel."""
    if call.code is not None:
        report = _report(call, False)
        codes = [fault.code.id for fault in report.faults]
        places = [
            place for fault in report.faults for place in (fault.place, fault.other) if fault.code.id == call.code
        ]
        is_at_fault = any(place is not None and place.text.endswith("# !") for place in places) or not call.is_marked
        if call.code not in codes:
            yield Outcome("not found", f"{call.code} expected: {codes}", str(report))
        elif not is_at_fault:
            yield Outcome("badly told", "names no line with # !", str(report))
        elif call.words not in str(report) or not (call.code == "E3230" or "/tests/planted/python_" in str(report)):
            yield Outcome("badly told", f"lacks {call.words}", str(report))
        else:
            yield Outcome("found")
    report = _report(call, True)
    yield Outcome("silent") if report.passed else Outcome("false alarm", report.faults[0].message, str(report))


def _report(call: Call, right: bool) -> Report:
    return call.kernel(*call.arrays(), right).check(
        grid=call.grid, block=call.block, outputs=call.outputs, numbers=call.numbers
    )
