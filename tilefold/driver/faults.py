# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The faults that a check has found, as text, as JSON, and in SARIF, the format that editors and servers of source code
read (Static Analysis Results Interchange Format 2.1.0, OASIS).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilefold.base.errors import Code
from tilefold.compiler.frontend.diagnostics import Diagnostic, Place, Severity
from tilefold.version import VERSION

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

    def render(self) -> str:
        """The fault as the compiler's messages are, with a note for the other place."""
        if self.is_remark:
            return Diagnostic(Severity.NOTE, self.message, self.place).render()
        lines = [Diagnostic(Severity.ERROR, self.message, self.place, self.code, self.hint).render()]
        if self.role:
            lines.append(Diagnostic(Severity.NOTE, self.role, self.other).render())
        if self.note:
            lines.append(Diagnostic(Severity.NOTE, self.note).render())
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The fault as plain data."""
        data: dict[str, Any] = {
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
        return data


@dataclass(frozen=True)
class Report:
    """The result of a check: its runs, and the faults and remarks in the order in which they were found."""

    launches: tuple[str, ...]
    stages: tuple[str, ...]
    found: tuple[Fault, ...]

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
        """Whether no fault was found."""
        return not self.faults

    def __str__(self) -> str:
        count = len(self.faults)
        summary = "no faults" if not count else "1 fault" if count == 1 else f"{count} faults"
        head = f"{', '.join(self.launches)}: {summary} at {' and '.join(self.stages)}"
        return "\n".join([*(fault.render() for fault in self.found), head])

    def json(self) -> str:
        """The report as JSON."""
        data = {
            "launches": self.launches,
            "stages": self.stages,
            "faults": [fault.as_dict() for fault in self.faults],
            "remarks": [remark.as_dict() for remark in self.remarks],
        }
        return json.dumps(data, indent=2)

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


def _result(fault: Fault) -> dict[str, Any]:
    text = fault.message if not fault.hint else f"{fault.message}\n{fault.hint}"
    result: dict[str, Any] = {
        "ruleId": fault.code.id,
        "level": "note" if fault.is_remark else "error",
        "message": {"text": text},
    }
    if fault.place is not None:
        result["locations"] = [_location(fault.place)]
    if fault.other is not None:
        result["relatedLocations"] = [{**_location(fault.other), "message": {"text": fault.role}}]
    return result


def _location(place: Place) -> dict[str, Any]:
    region = {"startLine": place.line, "startColumn": place.column}
    return {"physicalLocation": {"artifactLocation": {"uri": place.file}, "region": region}}


def merge(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """The faults, those that differ only by their stage and their threads as one."""
    kept: dict[tuple[Any, ...], Fault] = {}
    for fault in faults:
        places = frozenset(str(place) for place in (fault.place, fault.other) if place is not None)
        key = (fault.launch, fault.code, fault.is_remark, places or fault.message)
        first = kept.get(key)
        if first is None:
            kept[key] = fault
        elif fault.stages[0] not in first.stages:
            kept[key] = replace(first, stages=(*first.stages, *fault.stages))
    return tuple(kept.values())
