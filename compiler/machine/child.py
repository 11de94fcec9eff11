# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that works for this one and ends with it, in whatever way this one ends.

Its standard input is the data of its task after one line with their length, and stays open: the system closes it when
this process ends.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from threading import Thread

ABANDONED = 4
"""The exit status of a process whose parent has ended."""


def run_child(command: Sequence[str], data: bytes, timeout: float) -> "subprocess.CompletedProcess[bytes]":
    """Runs a process that calls `read_task`, and returns its status, output and messages.

    `timeout` is in seconds. subprocess.TimeoutExpired if it takes longer; it is ended then, and by any exception.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        open_end = os.dup(process.stdin.fileno())  # `communicate` closes the other one
        try:
            out, said = process.communicate(b"%d\n%s" % (len(data), data), timeout)
        except BaseException:
            process.kill()
            raise
        finally:
            os.close(open_end)
    return subprocess.CompletedProcess(command, process.returncode, out, said)


def read_task() -> bytes:
    """The data that `run_child` was given. From here on this process ends when the one that calls `run_child` does."""
    data = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    Thread(target=_watch_parent, daemon=True).start()
    return data


def _watch_parent() -> None:
    """Waits for the end of standard input. LLVM lets other threads run."""
    os.read(0, 1)
    os._exit(ABANDONED)
