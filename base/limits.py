# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of a run, so that a program from anywhere can be run, and the clock of a command."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from .errors import Code, TilefoldError

COMMAND_SECONDS = 600.0
"""The default of `--max-seconds`."""


class TimeLimitError(TilefoldError):
    """The work within a `deadline` takes longer than it may (E3243)."""


@dataclass(frozen=True, slots=True)
class _Deadline:
    seconds: float
    subject: str
    hint: str
    began: float


_DEADLINE: ContextVar[_Deadline | None] = ContextVar("tilefold_deadline", default=None)


@contextmanager
def deadline(
    seconds: float, subject: str = "the command", hint: str = "allow more by --max-seconds"
) -> Generator[None, None, None]:
    """Within it, in this thread, `check_deadline` raises after this many seconds. The message begins with
    `subject`; `hint` says how to have more time.
    """
    token = _DEADLINE.set(_Deadline(seconds, subject, hint, monotonic()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_deadline(place: str = "") -> None:
    """TimeLimitError (E3243) after the time limit. `place` says where the work ends, as in "before pass 'cse'"."""
    limit = _DEADLINE.get()
    if limit is not None and monotonic() - limit.began >= limit.seconds:
        text = f"{limit.subject} has taken {limit.seconds:g} seconds and has not ended"
        raise TimeLimitError(Code.SIM_SECONDS, f"{text} ({place})" if place else text, limit.hint)


def seconds_left(most: float) -> float:
    """The seconds that a part of the work may take, at most `most`. TimeLimitError (E3243) after the time limit."""
    check_deadline()
    limit = _DEADLINE.get()
    return most if limit is None else min(most, max(limit.began + limit.seconds - monotonic(), 0.0))


def clock_start() -> float:
    """The time from which seconds count: now, or within a `deadline` its beginning."""
    limit = _DEADLINE.get()
    return monotonic() if limit is None else limit.began


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run; beyond them it ends with an error.

    `steps` are operations executed by warps, `bytes` the memory of the arguments and of the block, also of each
    expression that fills or checks them, `characters` the text that the kernel prints, `seconds` the time since the
    run, or the command it is part of, has `began`.
    """

    steps: int = 100_000_000
    bytes: int = 4 << 30
    characters: int = 16 << 20
    seconds: float = inf
    began: float = field(default_factory=clock_start, compare=False)


DEFAULT_LIMITS = Limits()
"""The limits of a launch that names none."""
