# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The nesting of `// if`, `// elif`, `// else` and `// end`: which lines of a file are left out."""

from collections.abc import Callable
from dataclasses import dataclass, field

MAX_NESTING = 32
"""Most `// if` inside each other."""


class BranchError(Exception):
    """A line that does not match the ones before it; the text says how."""


@dataclass(slots=True)
class _Open:
    """An `// if` without its `// end` so far: where it stands, and whether its lines are read."""

    at: int
    reached: bool  # the lines around it are read
    active: bool  # the lines of the current branch are
    decided: bool  # those of some branch were
    last: bool = False  # the current branch is the `// else`


@dataclass(slots=True)
class Branches:
    """The branches around the current line."""

    _open: list[_Open] = field(default_factory=list[_Open])

    @property
    def active(self) -> bool:
        """Whether lines are read here, not left out."""
        return not self._open or self._open[-1].active

    @property
    def unclosed(self) -> int | None:
        """The line of the innermost `// if` without an `// end`."""
        return self._open[-1].at if self._open else None

    @property
    def full(self) -> bool:
        """Whether no further `// if` may stand here."""
        return len(self._open) == MAX_NESTING

    def step(self, word: str, at: int, condition: Callable[[], bool]) -> None:
        """Goes on to the lines after `// word`; the condition is asked for only where it decides.

        Raises BranchError for a word that does not fit here.
        """
        if word == "if":
            reached = self.active
            holds = reached and condition()
            self._open.append(_Open(at, reached, holds, holds))
            return
        if not self._open:
            raise BranchError(f"'// {word}' without an '// if' before it")
        if word == "end":
            self._open.pop()
            return
        branch = self._open[-1]
        if branch.last:
            raise BranchError(f"'// {word}' after the '// else'")
        branch.last = word == "else"
        branch.active = branch.reached and not branch.decided and (word == "else" or condition())
        branch.decided |= branch.active
