# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Durations that depend on this process alone, as far as that goes on a machine that does other things."""

import gc
import time
from collections.abc import Callable


def processor_seconds(run: Callable[[], object], times: int = 1) -> float:
    """The seconds for which this process has a processor during `run`, the least of so many `times`.

    The garbage collector leaves alone the objects that are there before: tests that ran earlier leave many.
    """
    gc.collect()
    gc.freeze()
    return min(_once(run) for _ in range(times))


def _once(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began
