# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process of the command `tilefold`: it ends well when a signal asks for it, or when its reader has gone.

An interrupt may come during the imports below, so that the first thing here is to be ready for it.
"""

import os
import sys

EXIT_SIGNAL = 128  # to which shells add the number of the signal that ended a process
EXIT_PIPE = 141  # as they report SIGPIPE, by which other commands end when their reader has gone

_COLLECTED = 50_000
"""The number of new objects after which Python looks for cycles, instead of 700: looking took a twentieth of a
compilation."""
_GRACE_SECONDS = 1.0
"""How long an interrupted command has to clean up. LLVM, the assembler and a kernel on a GPU do not notice interrupts.
"""


_ENDINGS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
"""The signals that ask the process to end, of those that the system has, and the word for each."""


class Terminated(KeyboardInterrupt):
    """The exception of a signal that asks the process to end; `signal` is its number."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


def _end_by(number: int, interrupt: BaseException | None = None) -> "NoReturn":
    """One line, the notes of the interrupt, and the status."""
    from signal import Signals

    try:
        lines = [f"tilefold: {_ENDINGS[Signals(number).name]}", *getattr(interrupt, "__notes__", ())]
        os.write(2, ("\n".join(lines) + "\n").encode(errors="replace"))
    finally:
        os._exit(EXIT_SIGNAL + number)


def _report_uncaught(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    if isinstance(error, KeyboardInterrupt):
        _end_by(_signal_of(error), error)
    sys.__excepthook__(kind, error, trace)


def _signal_of(interrupt: KeyboardInterrupt) -> int:
    from signal import SIGINT

    return interrupt.signal if isinstance(interrupt, Terminated) else SIGINT


sys.excepthook = _report_uncaught

TYPE_CHECKING = False  # of `typing`, which is not needed here
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn, TextIO


def main() -> int:
    """Runs the command line of this process, and returns its exit status; SystemExit where argparse has one."""
    import gc
    import signal

    gc.set_threshold(_COLLECTED)
    try:
        _open_standard_streams()
        _fit_memory_limit()
        _watch_interrupts()
        from tilefold.commands.cli import main as command

        return command()
    except BrokenPipeError:
        return EXIT_PIPE
    except MemoryError:
        os.write(2, b"tilefold: there is not enough memory\n")
        return 1
    except KeyboardInterrupt as interrupt:
        _drop_unwritten(sys.stdout)
        _end_by(_signal_of(interrupt), interrupt)
    finally:
        for number in _endings():
            signal.signal(number, signal.SIG_IGN)  # all is done; the rest takes no time
        for stream in (sys.stdout, sys.stderr):
            _drop_unwritten(stream)


def _endings() -> "list[int]":
    """The signals that ask this process to end, but for those that its caller ignores, as `nohup` does."""
    import signal

    numbers = [getattr(signal, name) for name in _ENDINGS if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _watch_interrupts() -> None:
    """The first signal that asks for the end raises an exception; where that ends nothing, the process ends a little
    later.
    """
    import signal
    from contextlib import suppress
    from threading import Thread

    def interrupt(number: int, _: object) -> None:
        for other in endings:
            signal.signal(other, signal.SIG_IGN)  # cleaning up is not to be interrupted
        raise Terminated(number)

    endings = _endings()
    for number in endings:
        signal.signal(number, interrupt)
    sys.unraisablehook = _report_unraisable
    if endings and os.name == "posix":  # the wake-up of Windows wants a socket
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        with suppress(RuntimeError):  # of who has no memory for a thread
            Thread(target=_end_late, args=(reader, endings), daemon=True).start()


def _end_late(reader: int, endings: "list[int]") -> None:
    """Waits for a signal, in a thread of its own, and ends the process where it has not ended by itself."""
    from time import sleep

    arrived: list[int] = []
    while not arrived:
        arrived = [number for number in os.read(reader, 64) if number in endings]
    sleep(_GRACE_SECONDS)
    _end_by(arrived[0])


def _report_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Python drops an exception of a destructor; the report of the interrupt suffices."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _open_standard_streams() -> None:
    """Makes closed standard streams fail when they are used: the next opened file would take their place."""
    import io

    for descriptor, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):  # output fails, messages are lost
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", write_through=True)


def _fit_memory_limit() -> None:
    """Gives NumPy's OpenBLAS one thread if memory is limited, since it interrupts a process that lacks memory."""
    if os.name == "posix":
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        if getrlimit(RLIMIT_AS)[0] != RLIM_INFINITY:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _drop_unwritten(stream: "TextIO") -> None:
    """Lets go of output that cannot be written; otherwise Python would complain at its end."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
