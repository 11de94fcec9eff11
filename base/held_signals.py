# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds signals back while LLVM works.

llvmlite takes a lock around each call of LLVM, and it does so in Python: an exception of a signal's handler, such as
the KeyboardInterrupt of Ctrl-C, may leave the lock taken. Then the next thread that compiles waits for ever.
"""

import signal
from collections.abc import Callable
from functools import wraps
from inspect import currentframe
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def holding_signals(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that holds signals back: their handlers run once when it has returned or raised an error.

    Python runs handlers in the main thread only, so that calls in other threads hold nothing back. Objects of llvmlite
    must not outlive the call, since llvmlite takes its lock to delete them, too.
    """

    @wraps(function)
    def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
        if current_thread() is not main_thread():
            return function(*arguments, **named)
        held = _HeldSignals()
        try:
            held.begin()
            return function(*arguments, **named)
        finally:
            held.end()

    return call


class _HeldSignals:
    """Replaces the handlers of Python by one that notes the signal. Assigning `holding` opens and closes it at once;
    while it is open, this handler calls the one that it replaces.
    """

    def __init__(self) -> None:
        self.holding = False
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self.noted: set[int] = set()

    def begin(self) -> None:
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler):  # not a choice of the system's
                self.handlers[number] = handler
                signal.signal(number, self)
        self.holding = True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.holding:
            self.noted.add(number)  # not the frame, which keeps llvmlite's objects
        else:
            self.handlers[number](number, frame)

    def end(self) -> None:
        self.holding = False  # from here on, a handler may raise
        try:
            for number, handler in self.handlers.items():
                if signal.getsignal(number) is self:
                    signal.signal(number, handler)
        finally:
            self._run_handlers()

    def _run_handlers(self) -> None:
        """Runs the handlers of the signals that were noted: each of them, even if another raises."""
        if self.noted:
            number = self.noted.pop()
            try:
                self.handlers[number](number, currentframe())
            finally:
                self._run_handlers()
