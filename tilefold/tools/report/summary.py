# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The beginning of a report: the verdict, the line that takes the most cycles, and the resources."""

from dataclasses import dataclass

from tilefold.compiler.reports.kernel_report import KernelReport
from tilefold.compiler.reports.source_map import Spot
from tilefold.driver.faults import Fault
from tilefold.driver.line_costs import Costs
from tilefold.tools.report.contents import Contents

MAX_PARTS = 3
"""The most launches and kernels that have headlines."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A headline of a report: its kind, which is a class of the page, its subject, the text, its line and code."""

    kind: str
    title: str
    text: str
    spot: Spot | None = None
    code: str = ""
    """The line of the source that the text is about."""


def summaries(found: Contents) -> list[Summary]:
    """The headlines of a report, the verdict first."""
    kernels = sorted(found.kernels, key=lambda kernel: found.launched(kernel.name))
    kernels = [kernel for kernel in kernels if found.launched(kernel.name) < len(found.checked)] or kernels
    rest = [_slowest(costs) for costs in found.costs if costs.lines][:MAX_PARTS]
    return [_verdict(found), *rest, *map(_resources, kernels[:MAX_PARTS])]


def _verdict(found: Contents) -> Summary:
    faults = [fault for fault in found.faults if not fault.is_remark]
    if faults:
        return Summary("error", "Verdict: faults", _told(faults), _spot(faults[0]))
    if not found.checked:
        return Summary("missing", "No verdict", "the program launches no kernel")
    if found.gaps:
        first, *others = found.gaps
        more = f", and {len(others)} more" if others else ""
        return Summary("cost", "Verdict: incomplete", f"no faults, but {first.message}{more}")
    return Summary("good", "Verdict: clean", f"no faults at {' and '.join(found.stages)}: {', '.join(found.checked)}")


def _told(faults: list[Fault]) -> str:
    first = faults[0]
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return f"{first.code.id} {first.code.summary}; {first.message}{more}"


def _spot(fault: Fault) -> Spot | None:
    return None if fault.place is None else (fault.place.file, fault.place.line)


def _slowest(costs: Costs) -> Summary:
    line, total = costs.lines[0], sum(each.cycles for each in costs.lines)
    share = round(100 * line.cycles / total) if total else 0
    title = f"Slowest line of {costs.label.rpartition('::')[2]}"
    return Summary(
        "cost", title, f"{share}\N{NO-BREAK SPACE}% of the cycles", (line.file, line.line), line.text.strip()
    )


def _resources(kernel: KernelReport) -> Summary:
    used, fits = kernel.resources, kernel.occupancy
    spilled = used.spill_stores + used.spill_loads
    parts = [f"{used.registers} registers", f"{spilled} bytes spilled"] if spilled else [f"{used.registers} registers"]
    parts.append(f"{kernel.static_shared + kernel.dynamic_shared} bytes of shared memory")
    limits = f" (limited by {', '.join(fits.limits)})" if fits.limits else ""
    parts.append(f"{fits.resident} block{'' if fits.resident == 1 else 's'} on a multiprocessor{limits}")
    return Summary("", f"Resources of {kernel.name}", ", ".join(parts))
