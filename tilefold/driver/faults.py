# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The faults that a check has found, as text, as JSON, and in SARIF, the format that editors and servers of source code
read (Static Analysis Results Interchange Format 2.1.0, OASIS).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tilefold.base.errors import Code
from tilefold.compiler.frontend.diagnostics import Diagnostic, Place, Severity
from tilefold.driver.gaps import Gap, coverage
from tilefold.runtime.sim.reached import Reached
from tilefold.version import VERSION

AS_GIVEN = "as given"
"""The description of the arguments that a launch has by itself."""
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Fault:
    """A fault of a launch: the stages at which it shows, its place, and the other place that it concerns."""

    launch: str
    stages: tuple[str, ...]
    code: Code
    message: str
    hint: str = ""
    place: Place | None = None
    other: Place | None = None
    role: str = ""
    note: str = ""
    is_remark: bool = False
    """Whether it is a remark and not a fault."""
    input: str = AS_GIVEN
    """The arguments with which it shows first."""

    def render(self) -> str:
        """The fault as the compiler's messages are, with a note for the other place."""
        if self.is_remark:
            return Diagnostic(Severity.NOTE, self.message, self.place).render()
        lines = [Diagnostic(Severity.ERROR, self.message, self.place, self.code, self.hint).render()]
        if self.role:
            lines.append(Diagnostic(Severity.NOTE, self.role, self.other).render())
        if self.note:
            lines.append(Diagnostic(Severity.NOTE, self.note).render())
        if self.input != AS_GIVEN:
            lines.append(Diagnostic(Severity.NOTE, f"with {self.input}").render())
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The fault as plain data."""
        data: dict[str, object] = {
            "launch": self.launch,
            "stages": list(self.stages),
            "code": self.code.id,
            "message": self.message,
        }
        if self.hint:
            data["hint"] = self.hint
        for key, place in (("place", self.place), ("other", self.other)):
            if place is not None:
                data[key] = {"file": place.file, "line": place.line, "column": place.column}
        for key, text in (("role", self.role), ("note", self.note)):
            if text:
                data[key] = text
        if self.input != AS_GIVEN:
            data["input"] = self.input
        return data


FORMAT = "tilefold-check"
FORMAT_VERSION = 1
"""The version of the report as JSON (check.schema.json): another one where readers of the last would fail."""


class Verdict(StrEnum):
    """The answer of a check: it found faults, it found none and saw everything, or it found none and names what it did
    not see.
    """

    FAULTS = "faults"
    CLEAN = "clean"
    INCOMPLETE = "incomplete"

    @property
    def status(self) -> int:
        """The exit status of the command: 0 for `clean`, 1 for `faults`, 3 for `incomplete`."""
        return {Verdict.CLEAN: 0, Verdict.FAULTS: 1, Verdict.INCOMPLETE: 3}[self]


@dataclass(frozen=True)
class Report:
    """The result of a check: its runs, the faults and remarks in the order in which they were found, and the gaps.

    `inputs` describe the arguments of each run. `reached` is the code that the runs have executed, None if none came to
    its end. `replay` makes the data that repeat the check on another machine; None where nothing can.
    """

    launches: tuple[str, ...]
    stages: tuple[str, ...]
    found: tuple[Fault, ...]
    gaps: tuple[Gap, ...] = ()
    reached: Reached | None = None
    inputs: tuple[str, ...] = (AS_GIVEN,)
    replay: Callable[[], Mapping[str, Any]] | None = field(default=None, repr=False, compare=False)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults."""
        return tuple(fault for fault in self.found if not fault.is_remark)

    @property
    def remarks(self) -> tuple[Fault, ...]:
        """The remarks, which are not faults, such as that all threads store the same value."""
        return tuple(fault for fault in self.found if fault.is_remark)

    @property
    def passed(self) -> bool:
        """Whether no fault was found; `verdict` also says whether everything was seen."""
        return not self.faults

    @property
    def verdict(self) -> Verdict:
        """The answer of the check."""
        if self.faults:
            return Verdict.FAULTS
        return Verdict.INCOMPLETE if self.gaps else Verdict.CLEAN

    def __str__(self) -> str:
        parts = [fault.render() for fault in self.found]
        parts += [gap.render() for gap in self.gaps]
        return "\n".join([*parts, f"{', '.join(self.launches)}: {self._summary()}"])

    def _summary(self) -> str:
        count, gaps = len(self.faults), len(self.gaps)
        where = f" at {' and '.join(self.stages)}"
        if len(self.inputs) > 1:
            where += f", with {len(self.inputs)} inputs"
        match self.verdict:
            case Verdict.FAULTS:
                return ("1 fault" if count == 1 else f"{count} faults") + where
            case Verdict.CLEAN:
                return f"clean: no faults{where}"
            case Verdict.INCOMPLETE:
                return f"incomplete: no faults{where}, but {'1 gap' if gaps == 1 else f'{gaps} gaps'}"

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, of the form that check.schema.json describes."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "tilefold": VERSION,
            "verdict": self.verdict.value,
            "launches": list(self.launches),
            "stages": list(self.stages),
            "inputs": list(self.inputs),
            "faults": [fault.as_dict() for fault in self.faults],
            "remarks": [remark.as_dict() for remark in self.remarks],
            "gaps": [gap.as_dict() for gap in self.gaps],
            "coverage": None if self.reached is None else coverage(self.reached),
            "replay": None if self.replay is None else self.replay(),
        }

    def json(self) -> str:
        """The report as JSON, of the form that check.schema.json describes."""
        return json.dumps(self.as_dict(), indent=2)

    def sarif(self) -> str:
        """The report as SARIF."""
        codes = sorted({fault.code for fault in self.found}, key=lambda code: code.id)
        driver = {
            "name": "tilefold",
            "version": VERSION,
            "rules": [{"id": code.id, "shortDescription": {"text": code.summary}} for code in codes],
        }
        results = [_result(fault) for fault in self.found]
        log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
        return json.dumps(log, indent=2)


def _result(fault: Fault) -> dict[str, object]:
    text = fault.message if not fault.hint else f"{fault.message}\n{fault.hint}"
    result: dict[str, object] = {
        "ruleId": fault.code.id,
        "level": "note" if fault.is_remark else "error",
        "message": {"text": text},
    }
    if fault.place is not None:
        result["locations"] = [_location(fault.place)]
    if fault.other is not None:
        result["relatedLocations"] = [{**_location(fault.other), "message": {"text": fault.role}}]
    return result


def _location(place: Place) -> dict[str, object]:
    region = {"startLine": place.line, "startColumn": place.column}
    return {"physicalLocation": {"artifactLocation": {"uri": place.file}, "region": region}}


_OF_ONE_PLACE = (Code.SIM_OUT_OF_BOUNDS, Code.SIM_UNINITIALISED)
"""Faults of one access: the other place of such a fault only tells where its address or its bytes come from."""


def _same_elsewhere(one: Fault, fault: Fault) -> bool:
    """Whether a fault of one place is that of another stage."""
    places = (one.launch, one.code, str(one.place)) == (fault.launch, fault.code, str(fault.place))
    return places and fault.place is not None and not set(one.stages) & set(fault.stages)


def merge(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """The faults, those that differ only by their stage and their threads as one."""
    kept: dict[tuple[Any, ...], Fault] = {}
    for fault in faults:
        places = frozenset(str(place) for place in (fault.place, fault.other) if place is not None)
        text = fault.message if fault.code == Code.SIM_UNWRITTEN else ""  # its store may differ from stage to stage
        key = (fault.launch, fault.code, fault.is_remark, text or places or fault.message)
        first = kept.get(key)
        if first is None and fault.code in _OF_ONE_PLACE:
            key = next((at for at, one in kept.items() if _same_elsewhere(one, fault)), key)
            first = kept.get(key)
        if first is None:
            kept[key] = fault
        elif more := tuple(stage for stage in fault.stages if stage not in first.stages):
            told = first if first.role else fault
            kept[key] = replace(first, stages=(*first.stages, *more), other=told.other, role=told.role)
    return tuple(kept.values())
