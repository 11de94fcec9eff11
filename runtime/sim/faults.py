# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a simulated kernel can do wrong, and where it did it."""

from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from ...base.errors import Code, TilefoldError
from ..errors import Dim3


@dataclass(frozen=True, slots=True)
class Site:
    """An operation of the kernel in words: its name and `file:line:column` (empty where the source is
    unknown).
    """

    op: str
    location: str

    def __str__(self) -> str:
        return f"{self.op} at {self.location}" if self.location else self.op


def site_of(op: Operation) -> Site:
    """The site of an operation."""
    location = op.location
    if isinstance(location, FileLineColLoc):
        text = f"{location.filename.data}:{location.line.data}:{location.column.data}"
        return Site(op.name, text)
    return Site(op.name, "")


class SimulationError(TilefoldError):
    """A kernel did something that has no defined result, or that the simulator cannot execute.

    `site` is the operation, `block` and `thread` the coordinates of the first thread concerned; both are None
    where the error belongs to no thread.
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
    ) -> None:
        where: list[str] = []
        if block is not None:
            where.append(f"block {_coordinate(block)}")
        if thread is not None:
            where.append(f"thread {_coordinate(thread)}")
        prefix = f"{site}: " if site is not None else ""
        middle = f"{', '.join(where)}: " if where else ""
        super().__init__(code, prefix + middle + message, hint)
        self.site = site
        self.block = block
        self.thread = thread


def _coordinate(c: Dim3) -> str:
    return f"({c[0]},{c[1]},{c[2]})"
