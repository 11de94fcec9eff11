# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interrupts by a signal, as Ctrl-C makes them, at a place that does not depend on the speed of the machine."""

import gc
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupt_at(number: int, folder: str = "") -> Generator[None, None, None]:
    """KeyboardInterrupt is raised within it, by a signal at the call of a function that has this number, from 1 on; of
    those calls alone that files of `folder` make.

    The garbage collector rests: Python prints an interrupt within a callback of the collector (Hypothesis has one) and
    drops it.
    """
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event in ("call", "c_call") and folder in frame.f_code.co_filename:
            count += 1
            if count == number:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    gc.disable()
    try:
        sys.setprofile(note)
        yield
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
