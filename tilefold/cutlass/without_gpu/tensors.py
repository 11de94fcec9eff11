# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's tensors on a GPU that there is not: they are in the host's memory."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from tilefold.runtime.arrays.reachable import reachable


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


def _itself(tensor: Any, *_: Any, **__: Any) -> Any:
    return tensor


def _register_address(data_ptr: Callable[..., Any]) -> Callable[..., Any]:
    """The method that gives a tensor's address, by which kernels may reach its memory."""

    @wraps(data_ptr)
    def call(tensor: Any) -> Any:
        reachable().add(tensor)
        return data_ptr(tensor)

    return call


def tensors_on_host(torch: Any) -> None:
    """Has torch make tensors in the host's memory where a program asks for a GPU's."""
    host = torch.device("cpu")
    for name in _MAKERS:
        setattr(torch, name, _on_host(getattr(torch, name), host))
    for name in ("to", "new_empty", "new_zeros", "new_ones", "new_full", "new_tensor"):
        setattr(torch.Tensor, name, _on_host(getattr(torch.Tensor, name), host))
    torch.Tensor.cuda = torch.Tensor.pin_memory = _itself
    torch.Tensor.data_ptr = _register_address(torch.Tensor.data_ptr)
