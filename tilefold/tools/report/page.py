# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A report as one HTML page that needs nothing else: no network, no other file. It begins with the
verdict, the line that takes the most cycles, and the resources; the layouts that a text names are each drawn once.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup as Text
from markupsafe import escape
from pygments.lexer import Lexer

from tilefold.base.errors import LayoutError
from tilefold.base.printable import printable
from tilefold.compiler.reports.kernel_report import KernelReport
from tilefold.compiler.reports.source_map import Spot
from tilefold.driver.faults import Fault
from tilefold.driver.line_costs import Costs
from tilefold.driver.lowering import Program
from tilefold.driver.output import Markup, base_style
from tilefold.layout.algebra.core import size
from tilefold.layout.algebra.inttuple import is_fully_static
from tilefold.layout.drawing.pictures import picture
from tilefold.layout.text.layouts import parse_layout
from tilefold.runtime.sim.timeline import LATENCY
from tilefold.tools.report.colours import Colours, Span
from tilefold.tools.report.contents import Contents, Observation, contents_of
from tilefold.tools.report.timeline import COLUMNS, chart_of
from tilefold.version import VERSION

MAX_CELLS = 1 << 16
"""The most cells of all pictures together."""
MAX_SIZE = 1 << 13
"""The most cells of one picture."""
_QUOTED = re.compile(r'"((?:S<[\d,-]+> o \d+ o )?\(?[\d(][\d(),]*:[\d(),]+)"')


def _coloured(text: str, spans: Sequence[Span], begin: int, end: int) -> Iterator[Text]:
    """The parts of a line between two columns."""
    at = begin
    for first, last, name in spans:
        first, last = max(first, at), min(last, end)
        if first < last:
            yield escape(text[at:first])
            yield Text('<i class="{}">{}</i>').format(name, text[first:last])
            at = last
    yield escape(text[at:end])


@dataclass
class Pictures:
    """Layouts by their numbers on the page."""

    drawn: list[tuple[str, Text]] = field(default_factory=list[tuple[str, Text]])
    _numbers: dict[str, int | None] = field(default_factory=dict[str, int | None])
    _cells: int = 0

    def mark(self, text: str, spans: Sequence[Span] = ()) -> Text:
        """A line of text, escaped, with a mark on each layout that has a picture, and its parts in their colours."""
        parts: list[Text] = []
        end = 0
        for match in _QUOTED.finditer(text):
            number = self._number(match[1])
            if number is not None:
                parts += _coloured(text, spans, end, match.start(1))
                parts.append(Text('<span class="layout" tabindex="0" data-p="{}">{}</span>').format(number, match[1]))
                end = match.end(1)
        return Text("").join([*parts, *_coloured(text, spans, end, len(text))])

    def _number(self, text: str) -> int | None:
        """The number of a layout's picture; None if it has none."""
        if text not in self._numbers:
            svg = self._svg(text)
            self._numbers[text] = None if svg is None else len(self.drawn)
            if svg is not None:
                self.drawn.append((text, Text(svg)))  # its texts are escaped where it is drawn
        return self._numbers[text]

    def _svg(self, text: str) -> str | None:
        try:
            layout = parse_layout(text)
            if not is_fully_static(layout.shape) or size(layout) > min(MAX_SIZE, MAX_CELLS - self._cells):
                return None
            self._cells += size(layout)
            return picture(layout).svg()
        except LayoutError:
            return None


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


_DEEPEST = 12


class Page(Markup):
    """The text of a page, which a notebook shows in a frame of its own."""

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self)}" style="width:100%;height:800px;border:0" title="report"></iframe>'


def report_page(program: Program, launches: Iterable[Observation], lexer: Lexer) -> Page:
    """The page for a program and its launches; `lexer` colours the IR. Raises the errors of `contents_of`."""
    return Page(printable(page_of(contents_of(program, launches), lexer)))


def page_of(contents: Contents, lexer: Lexer | None = None) -> str:
    """The page for the contents, the IR in the colours of a lexer."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pictures = Pictures()
    spots = _Spots()
    return environment.get_template("page.html").render(
        found=contents,
        style=Text(base_style()),
        summaries=summaries(contents),
        colours=Colours(lexer),
        mark=pictures.mark,
        indent=_indent,
        pictures=pictures,
        spot=spots.number,
        name=_name,
        title=Path(contents.program.source.name).name,
        version=VERSION,
        stages=[
            (contents.program.stage, contents.written),
            *((step.stage, step.listing) for step in contents.passes if step.listing),
        ],
        charts=[chart for costs in contents.costs if (chart := chart_of(costs)) is not None],
        columns=COLUMNS,
        latency=LATENCY,
        total=sum(step.seconds for step in contents.passes),
    )


class _Spots:
    """Lines of the source by numbers, which are shorter than names of files."""

    def __init__(self) -> None:
        self._numbers: dict[Spot, int] = {}

    def number(self, spot: Spot | None) -> str:
        """The number of a line; empty for none."""
        return "" if spot is None else str(self._numbers.setdefault(spot, len(self._numbers)))


def _indent(text: str) -> int:
    """The columns of a line's wrapped part: those before its text, and four; for a deep line, of some of these."""
    return min(len(text) - len(text.lstrip()), _DEEPEST) + 4


def _name(spot: Spot) -> str:
    return f"{Path(spot[0]).name}:{spot[1]}"
