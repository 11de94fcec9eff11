# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interrupts by the alarm of the process, as Ctrl-C makes them."""

import gc
import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def alarm_after(seconds: float) -> Generator[None, None, None]:
    """KeyboardInterrupt is raised within it, `seconds` after its beginning, at most once.

    The garbage collector rests: Python prints an interrupt within a callback of the collector (Hypothesis has one) and
    drops it.
    """
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    gc.disable()
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)  # if the alarm comes before, what follows is free of it
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
