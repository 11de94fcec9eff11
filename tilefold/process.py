# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process of the command `tilefold`: it ends well when it is interrupted, or when its reader has gone.

An interrupt may come while Python imports what follows, so that the first thing here is to be ready for it.
"""

import os
import sys

EXIT_INTERRUPTED = 130  # as shells report SIGINT
EXIT_PIPE = 141  # as they report SIGPIPE, by which other commands end when their reader has gone

_COLLECTED = 50_000
"""The number of new objects after which Python looks for cycles, instead of 700: looking took a twentieth of a
compilation."""
_GRACE_SECONDS = 1.0
"""How long an interrupted command has to clean up. LLVM, the assembler and a kernel on a GPU hear of no interrupt."""


def _end_interrupted(interrupt: BaseException | None = None) -> "NoReturn":
    """One line, the notes of the interrupt, and the status."""
    try:
        lines = ["tilefold: interrupted", *getattr(interrupt, "__notes__", ())]
        os.write(2, ("\n".join(lines) + "\n").encode(errors="replace"))
    finally:
        os._exit(EXIT_INTERRUPTED)


def _report_uncaught(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    if kind is KeyboardInterrupt:
        _end_interrupted(error)
    sys.__excepthook__(kind, error, trace)


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
        from tilefold.cli import main as command

        return command()
    except BrokenPipeError:
        return EXIT_PIPE
    except MemoryError:
        os.write(2, b"tilefold: there is not enough memory\n")
        return 1
    except KeyboardInterrupt as interrupt:
        _drop_unwritten(sys.stdout)
        _end_interrupted(interrupt)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done; the rest takes no time
        for stream in (sys.stdout, sys.stderr):
            _drop_unwritten(stream)


def _watch_interrupts() -> None:
    """The first interrupt raises KeyboardInterrupt, once; where that ends nothing, the process ends a little later."""
    import signal
    from contextlib import suppress
    from threading import Thread

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # cleaning up is not to be interrupted
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return  # as a shell starts what runs in the background
    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = _report_unraisable
    if os.name == "posix":  # the wake-up of Windows wants a socket
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        with suppress(RuntimeError):  # of who has no memory for a thread
            Thread(target=_end_late, args=(reader, signal.SIGINT), daemon=True).start()


def _end_late(reader: int, interrupt: int) -> None:
    """Waits for an interrupt, in a thread of its own, and ends the process where it has not ended by itself."""
    from time import sleep

    while interrupt not in os.read(reader, 64):
        pass
    sleep(_GRACE_SECONDS)
    _end_interrupted()


def _report_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Python drops an exception of a destructor; the report of the interrupt suffices."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)


def _open_standard_streams() -> None:
    """Makes what the caller has closed fail when it is used: the next file that is opened would take its place."""
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
    """Where memory is limited, NumPy's OpenBLAS has one thread: it interrupts the process that it lacks memory for."""
    if os.name == "posix":
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        if getrlimit(RLIMIT_AS)[0] != RLIM_INFINITY:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _drop_unwritten(stream: "TextIO") -> None:
    """Lets go of output that cannot be written, of which Python would complain when it ends."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
