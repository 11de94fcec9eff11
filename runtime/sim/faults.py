# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The faults of a simulated kernel, and their places."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import FileLineColLoc, StringAttr
from xdsl.ir import Operation

from ...base.errors import Code, TilefoldError
from ...base.printable import printable_line
from ..errors import Dim3

At: TypeAlias = tuple[str, int] | None
"""A byte, by the name of its state space and its offset there, or none."""
Thread: TypeAlias = tuple[Dim3, Dim3]
"""The coordinates of a thread: its block and its place there."""
WRITE_FIRST = "write it first, or start from a fill that defines it"
_PYTHON_FRAMES = 10_000
"""Python's own limit while a program runs: enough for nested calls, and far from the end of a thread's stack."""


@dataclass(frozen=True, slots=True)
class Site:
    """An operation of the kernel by its name and its place in the source; `file` is empty where that is unknown."""

    op: str
    file: str = ""
    line: int = 0
    column: int = 0

    @property
    def location(self) -> str:
        """`file:line:column`; empty where it is unknown."""
        return f"{printable_line(self.file)}:{self.line}:{self.column}" if self.file else ""

    @property
    def line_name(self) -> str:
        """Its line in words."""
        return f"line {self.line}" if self.file else self.op

    def __str__(self) -> str:
        return f"{self.op} at {self.location}" if self.file else self.op


def site_of(op: Operation) -> Site:
    """The site of an operation."""
    location, name = op.location, op.name
    instruction = op.properties.get("instruction")
    if isinstance(instruction, StringAttr):  # an instruction of a package, which has a name of its own
        name = instruction.data
    if isinstance(location, FileLineColLoc):
        return Site(name, location.filename.data, location.line.data, location.column.data)
    return Site(name)


class SimulationError(TilefoldError):
    """A kernel did something that has no defined result, or that the simulator cannot execute.

    `site` is the operation, `block` and `thread` the coordinates of the first thread concerned; both are None
    where the error belongs to no thread. `fault` is the message without the place. `at` is the byte concerned. `origin`
    is the operation that made the fault possible, where that is another; `other` is one that the fault concerns, too,
    and `rival` the thread of an access that nothing orders. `grids` are the numbers of the grids concerned, at least
    one, of several that run together.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        hint: str = "",
        *,
        site: Site | None = None,
        block: Dim3 | None = None,
        thread: Dim3 | None = None,
        at: At = None,
        origin: Site | None = None,
        other: Site | None = None,
        rival: Thread | None = None,
        grids: Sequence[int] = (0,),
    ) -> None:
        where: list[str] = []
        if block is not None:
            where.append(f"block {_coordinate(block)}")
        if thread is not None:
            where.append(f"thread {_coordinate(thread)}")
        fault = f"{', '.join(where)}: {message}" if where else message
        super().__init__(code, f"{site}: {fault}" if site is not None else fault, hint)
        self.fault = f"{site.op}: {fault}" if site is not None else fault
        self.site = site
        self.block = block
        self.thread = thread
        self.at = at
        self.origin = origin or site
        self.other = other
        self.rival = rival
        self.grids = grids


class UndefinedReadError(Exception):
    """A thread reads unwritten bytes in a run that cannot decide whether anything depends on them."""


def _coordinate(c: Dim3) -> str:
    return f"({c[0]},{c[1]},{c[2]})"


@contextmanager
def deep_stack(site: Site) -> Generator[None]:
    """Within it, Python may nest deeper; nesting beyond that is an error of the program."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _PYTHON_FRAMES))
    try:
        yield
    except RecursionError:
        raise SimulationError(Code.SIM_DEPTH, "calls and loops nest too deeply", "use a loop", site=site) from None
    finally:
        sys.setrecursionlimit(before)
