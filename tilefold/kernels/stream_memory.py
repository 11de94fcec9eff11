# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that launches of one stream share, one after the other: counters, and the data that blocks leave for each
other.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

from tilefold.driver import devices
from tilefold.runtime.streams import current_stream_of

from .arguments import Array, is_torch, like
from .replay import PerCallArgument

CAPTURES = 64
"""The graphs being captured whose memory is known; those before have been captured."""
_CAPTURED: OrderedDict[tuple[Any, ...], Array] = OrderedDict()


def zeros(count: int) -> PerCallArgument:
    """So many zeros of i32 in each launch, which leaves them as zeros."""
    return PerCallArgument(partial(_zeros, count))


def scratch(count: int) -> PerCallArgument:
    """So many numbers of f32, of any value, which a launch may write."""
    return PerCallArgument(partial(_scratch, count))


@lru_cache(maxsize=256)
def _allocated(device: int, stream: int, count: int, dtype: str) -> Array:
    torch: ModuleType = sys.modules["torch"]
    return torch.zeros(count, dtype=getattr(torch, dtype), device=device)


def _of_stream(x: Array, count: int, dtype: str, captured: Callable[[Any, Any, int], Array]) -> Array:
    """Memory for a launch on an array; `captured` makes it where a graph is being captured."""
    if is_torch(x) and x.is_cuda:
        torch = sys.modules["torch"]
        device = x.get_device()
        stream = current_stream_of(torch)(device)
        if torch.cuda.is_current_stream_capturing():
            return captured(x, torch, stream)
        return _allocated(device, stream, count, dtype)
    made = like(x, (count,), dtype)
    made[...] = 0
    return made


def _zeros(count: int, x: Array) -> Array:
    def captured(x: Array, torch: ModuleType, stream: int) -> Array:
        """A graph may run beside other launches, so that it has zeros of its own, which it writes once."""
        device = x.get_device()
        driver = devices.gpu_engine(device).driver
        capture = int(driver.call("cuStreamGetCaptureInfo", stream)[1])
        key = device, stream, capture, count
        if key not in _CAPTURED:
            _CAPTURED[key] = x.new_zeros(count, dtype=torch.int32)
            if len(_CAPTURED) > CAPTURES:
                _CAPTURED.popitem(last=False)
        return _CAPTURED[key]

    return _of_stream(x, count, "int32", captured)


def _scratch(count: int, x: Array) -> Array:
    def captured(x: Array, torch: ModuleType, stream: int) -> Array:
        return x.new_empty(count, dtype=torch.float32)

    return _of_stream(x, count, "float32", captured)
