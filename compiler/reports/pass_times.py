# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time that each pass takes, as a table."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class Row:
    """A step of a command: its seconds, those in which its result was verified, and the operations afterwards."""

    name: str
    seconds: float
    verifying: float = 0.0
    operations: int | None = None


@dataclass
class PassTimes:
    """Measures passes as an observer of them, and the rest of a command by `step`."""

    rows: list[Row] = field(default_factory=list[Row])
    _began: float = 0.0
    _applied: float = 0.0

    @contextmanager
    def step(self, name: str) -> Generator[None, None, None]:
        """Measures the work within it."""
        began = time.perf_counter()
        yield
        self.rows.append(Row(name, time.perf_counter() - began))

    def before(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """A pass begins."""
        self._began = time.perf_counter()

    def applied(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """A pass has run; its result is verified next."""
        self._applied = time.perf_counter()

    def after(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """The result of a pass is verified."""
        verifying = time.perf_counter() - self._applied
        count = sum(1 for _ in module.walk())
        self.rows.append(Row(str(applied), self._applied - self._began, verifying, count))

    def table(self) -> str:
        """The steps in order, their shares of the whole, and the sum."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        whole = sum(row.seconds + row.verifying for row in self.rows)
        rows = [*self.rows, Row("total", sum(row.seconds for row in self.rows), sum(r.verifying for r in self.rows))]
        table = Table("step", box=None, pad_edge=False)
        for heading in ("ms", "verifier ms", "share", "operations"):
            table.add_column(heading, justify="right")
        for row in rows:
            share = (row.seconds + row.verifying) / whole if whole else 0.0
            count = "" if row.operations is None else str(row.operations)
            cells = f"{row.seconds * 1e3:.2f}", f"{row.verifying * 1e3:.2f}", f"{share:.1%}", count
            table.add_row(Text(row.name), *cells)
        stream = StringIO()
        Console(file=stream, width=120).print(table)
        return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())
