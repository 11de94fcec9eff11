# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuTe programs on a machine without a GPU: host memory takes the place of torch's GPU.

Only `python -m tilefold.cutlass` and `make programs` do this, in the process of the program. `device="cuda"` means the
host then, `tensor.cuda()` is the tensor, streams and events do nothing, and torch says that there is a GPU.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from tilefold.cute import hardware, utils
from tilefold.cute.host.streams import torch_module
from tilefold.runtime.arrays.reachable import reachable


class _Stream:
    """A stream that has nothing to wait for."""

    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def synchronize(self) -> None:
        """Nothing is left to do."""

    def wait_stream(self, *_: Any) -> None:
        """Nothing is to wait for; the same of events."""

    wait_event = record_event = wait_stream

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None: ...


class _Event(_Stream):
    """An event that is over, at the time at which it is recorded."""

    def record(self, *_: Any) -> None:
        """Notes the time."""
        import time

        self.time = time.perf_counter()

    def elapsed_time(self, other: "_Event") -> float:
        """The milliseconds between two events."""
        return 1e3 * (other.time - self.time)


def _is_gpu(device: Any) -> bool:
    return isinstance(device, int) or str(device).startswith("cuda")


def _on_host(function: Callable[..., Any], host: Any) -> Callable[..., Any]:
    """A torch function with the host in place of a GPU among its arguments."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(host if isinstance(arg, str | type(host)) and _is_gpu(arg) else arg for arg in args)
        if kwargs.get("device") is not None and _is_gpu(kwargs["device"]):
            kwargs["device"] = host
        kwargs.pop("pin_memory", None)
        return function(*args, **kwargs)

    return call


_MAKERS = (
    "empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "tensor", "as_tensor", "empty_strided",
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "linspace", "eye",
    "randperm", "scalar_tensor", "normal",
)  # fmt: skip
"""The torch functions that make tensors on a device."""


def _always(value: Any) -> Callable[..., Any]:
    """A function that returns a value, whatever it is given."""

    def call(*_: Any, **__: Any) -> Any:
        return value

    return call


def _itself(tensor: Any, *_: Any, **__: Any) -> Any:
    return tensor


def _register_address(data_ptr: Callable[..., Any]) -> Callable[..., Any]:
    """The method that gives a tensor's address, by which kernels may reach its memory."""

    @wraps(data_ptr)
    def call(tensor: Any) -> Any:
        reachable().add(tensor)
        return data_ptr(tensor)

    return call


_MULTIPROCESSORS = 4
"""The multiprocessors of the missing GPU: persistent kernels have this number of blocks."""


class _Hardware(hardware.HardwareInfo):
    """The sizes of the GPU that there is not."""

    def get_max_active_clusters(self, cluster_size: int) -> int:
        return max(_MULTIPROCESSORS // cluster_size, 1)

    def get_device_multiprocessor_count(self) -> int:
        return _MULTIPROCESSORS

    def get_l2_cache_size_in_bytes(self) -> int:
        return 1 << 20


def stay_on_host() -> None:
    """Has torch, if there is one, do in the host's memory what a program asks of a GPU; `utils.HardwareInfo` has the
    sizes of a small one.
    """
    utils.HardwareInfo = hardware.HardwareInfo = _Hardware
    if find_spec("torch") is None:
        return
    torch = torch_module()
    host = torch.device("cpu")
    for name in _MAKERS:
        setattr(torch, name, _on_host(getattr(torch, name), host))
    for name in ("to", "new_empty", "new_zeros", "new_ones", "new_full", "new_tensor"):
        setattr(torch.Tensor, name, _on_host(getattr(torch.Tensor, name), host))
    torch.Tensor.cuda = torch.Tensor.pin_memory = _itself
    torch.Tensor.data_ptr = _register_address(torch.Tensor.data_ptr)
    properties = SimpleNamespace(
        name="the simulator",
        multi_processor_count=_MULTIPROCESSORS,
        major=9,
        minor=0,
        total_memory=1 << 34,
        L2_cache_size=1 << 20,
    )
    answers = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0, "set_device": None,
        "synchronize": None, "empty_cache": None, "init": None, "get_device_capability": (9, 0),
        "get_device_name": properties.name, "get_device_properties": properties, "current_stream": _Stream(),
        "default_stream": _Stream(), "stream": nullcontext(), "device": nullcontext(), "memory_allocated": 0,
        "reset_peak_memory_stats": None, "manual_seed": None, "manual_seed_all": None,
    }  # fmt: skip
    for name, value in answers.items():
        setattr(torch.cuda, name, _always(value))
    torch.cuda.Stream, torch.cuda.Event = _Stream, _Event
