# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Delta debugging: tries smaller programs, and keeps those that are still of interest.

Parts go in groups of half of all, then of a quarter and so on, as in ddmin (Zeller and Hildebrandt, Simplifying and
Isolating Failure-Inducing Input, 2002).
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import Source, plain_source
from tilefold.compiler.pipeline import make_context

from .edits import (
    GRIDS,
    NUMBERED,
    IrreducibleError,
    bodies,
    drop_parameter,
    removable,
    remove,
    smaller_numbers,
    unused_parameters,
    unwrap,
)

Edit = Callable[[ModuleOp], None]
"""A change of a module, in place."""


def _silently(line: str) -> None:
    """Hears of the progress of a search, and says nothing."""


class _TimeUpError(Exception):
    """No time is left."""


@dataclass
class Reducer:
    """A search for a smaller program: `text` is the smallest of interest so far.

    `is_interesting` is asked about the text of a program, and `progress` is called with a line about each round.
    """

    text: str
    context: Context
    is_interesting: Callable[[str], bool]
    seconds: float
    progress: Callable[[str], None] = _silently
    tried: int = 0
    complete: bool = False
    _seen: set[str] = field(default_factory=set[str])
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> str:
        """Searches until no change helps, or the time is up; the smallest program. `complete` says which."""
        rounds = {
            "smaller grids": lambda: self._numbers(GRIDS),
            "fewer operations": self._operations,
            "fewer loops and branches": lambda: self._each(_unwrapping),
            "fewer parameters": lambda: self._each(_dropping),
            "smaller numbers": lambda: self._numbers(NUMBERED),
        }
        try:
            before = ""
            while before != self.text:
                before = self.text
                for name, reduced in rounds.items():
                    whole = self.text
                    reduced()
                    if self.text != whole:
                        self.progress(f"{name}: {self}")
        except _TimeUpError:
            self.progress(f"the time is up: {self}")
        else:
            self.complete = True
            self.progress(f"nothing more can be removed: {self}")
        return self.text

    def __str__(self) -> str:
        seconds = time.monotonic() - self._began
        return f"{len(self.text.splitlines())} lines after {self.tried} programs, {seconds:.1f} s"

    def _module(self) -> ModuleOp:
        return parse_program(plain_source(self.text, "reduced.cute"), self.context)

    def _try(self, text: str) -> bool:
        """Keeps a text if it is interesting."""
        if text in self._seen:
            return False
        if time.monotonic() - self._began > self.seconds:
            raise _TimeUpError
        self._seen.add(text)
        self.tried += 1
        if not self.is_interesting(text):
            return False
        self.text = text
        return True

    def _edited(self, edit: Edit) -> bool:
        module = self._module()
        try:
            edit(module)
        except IrreducibleError:
            return False
        return self._try(print_program(module, header=True))

    def _operations(self) -> None:
        size = len(removable(self._module())) // 2
        while size:
            end = len(removable(self._module()))
            while end > 0:
                if self._edited(_make_removal(max(end - size, 0), end)):
                    end = min(end, len(removable(self._module())))
                else:
                    end -= size
            size //= 2

    def _each(self, edits: Callable[[ModuleOp], Iterable[Edit]]) -> None:
        """Tries changes one by one, and again from the first after each that helps."""
        while any(map(self._edited, edits(self._module()))):
            pass

    def _numbers(self, parts: re.Pattern[str]) -> None:
        while any(map(self._try, smaller_numbers(self.text, parts))):
            pass


def reduced(
    source: Source, is_interesting: Callable[[str], bool], seconds: float, progress: Callable[[str], None] = _silently
) -> str:
    """The smallest program of interest that is found in some seconds, from the program of a source."""
    context = make_context()
    text = print_program(parse_program(source, context), header=True)
    progress(f"the program: {len(text.splitlines())} lines")
    return Reducer(text, context, is_interesting, seconds, progress).run()


def _make_removal(start: int, end: int) -> Edit:
    return lambda module: remove(removable(module)[start:end])


def _unwrapping(module: ModuleOp) -> Iterator[Edit]:
    for number in range(len(bodies(module))):
        yield lambda other, number=number: unwrap(*bodies(other)[number])


def _dropping(module: ModuleOp) -> Iterator[Edit]:
    for number in range(len(unused_parameters(module))):
        yield lambda other, number=number: drop_parameter(other, *unused_parameters(other)[number])
