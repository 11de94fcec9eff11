# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work of a piece of code, measured without a clock: a count of calls, or how the work grows with its size.

Seconds depend on the machine and on all else that it does, so that no test compares them with a number.
"""

import gc
import sys
import time
from collections.abc import Callable


def calls(run: Callable[[], object]) -> int:
    """The calls of functions during `run`, those of C included. The same code makes the same number on every machine,
    but for caches that are warm and for versions of Python, which differ by some percent.
    """
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def growth(run: Callable[[int], object], small: int, large: int, times: int = 3) -> float:
    """How many times longer `run(large)` takes than `run(small)`, divided by `large / small`: about 1 where the time is
    proportional to the size, and `large / small` where it is to the square. Noise of 3 has to be allowed for.

    The time is that of the processor for this process, and the least of several runs. The garbage collector leaves
    alone the objects that are there before.
    """
    gc.collect()
    gc.freeze()
    taken = {size: min(_processor_seconds(run, size) for _ in range(times)) for size in (small, large)}
    return taken[large] / max(taken[small], time.get_clock_info("process_time").resolution) * small / large


def _processor_seconds(run: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    run(size)
    return time.process_time() - began
