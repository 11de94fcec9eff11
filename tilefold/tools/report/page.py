# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A report as one HTML page that needs nothing else: no network, no other file."""

from collections.abc import Iterable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup as Text
from markupsafe import escape
from pygments.lexer import Lexer

from tilefold.base.printable import printable
from tilefold.compiler.reports.source_map import Spot
from tilefold.driver.lowering import Program
from tilefold.driver.output import Markup, base_style
from tilefold.runtime.sim.timeline import LATENCY
from tilefold.tools.report.colours import Colours
from tilefold.tools.report.contents import Contents, Observation, contents_of
from tilefold.tools.report.pictures import Pictures
from tilefold.tools.report.summary import summaries
from tilefold.tools.report.timeline import COLUMNS, chart_of
from tilefold.version import VERSION

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
