# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's tensors on a GPU that there is not: they are in the host's memory."""

import ctypes
import sys
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

from ..replacements import Replacements
from .host_memory import ALIGN, TorchTensor
from .scaled_products import scaled_products_on_host


def _is_gpu(device: object) -> bool:
    return isinstance(device, int) or str(device).startswith("cuda")


def _on_host(function: Callable[..., object], torch: ModuleType, is_maker: bool) -> Callable[..., object]:
    """A torch function with the host in place of a GPU among its arguments. Its tensors are aligned as those of a GPU
    if it makes their memory or is asked for a GPU.
    """
    host = torch.device("cpu")

    def names_gpu(arg: Any) -> bool:
        return isinstance(arg, str | type(host)) and _is_gpu(arg)

    @wraps(function)
    def call(*args: Any, **kwargs: object) -> Any:
        on_gpu = is_maker or any(map(names_gpu, args))
        args = tuple(host if names_gpu(arg) else arg for arg in args)
        if kwargs.get("device") is not None and _is_gpu(kwargs["device"]):
            kwargs["device"], on_gpu = host, True
        kwargs.pop("pin_memory", None)
        result = function(*args, **kwargs)
        return _aligned(result, torch) if on_gpu else result

    return call


def _aligned(tensor: TorchTensor, torch: ModuleType) -> TorchTensor:
    """A tensor whose storage begins at a multiple of 256 bytes, as a GPU's memory does: itself, or else a copy."""
    is_plain = type(tensor) is torch.Tensor and tensor.device.type == "cpu" and tensor.layout is torch.strided
    if not is_plain or tensor.requires_grad or tensor.storage_offset():
        return tensor
    try:
        storage = tensor.untyped_storage()
    except NotImplementedError:  # within torch.vmap, a part of a tensor stands for all parts
        return tensor
    if storage.data_ptr() % ALIGN == 0:
        return tensor
    room = np.empty(storage.nbytes() + ALIGN, np.uint8)
    begin = -room.ctypes.data % ALIGN
    bytes = room[begin : begin + storage.nbytes()]
    ctypes.memmove(bytes.ctypes.data, storage.data_ptr(), bytes.size)
    memory = torch.from_numpy(bytes)  # its storage begins there
    return memory.view(tensor.dtype).as_strided(tensor.size(), tensor.stride())


_MAKERS = (
    "empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "tensor", "as_tensor", "empty_strided",
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "linspace", "eye",
    "randperm", "scalar_tensor", "normal", "logspace", "tril_indices", "triu_indices",
)  # fmt: skip
"""The torch functions that make tensors on a device."""
_METHODS = ("to", "new_empty", "new_zeros", "new_ones", "new_full", "new_tensor")
"""The methods of tensors that do."""


def _itself(tensor: object, *_: object, **__: object) -> Any:
    return tensor


def tensors_on_host(torch: ModuleType, replaced: Replacements) -> None:
    """Makes torch create tensors in host memory where a program asks for a GPU's."""
    for owner, names in ((torch, _MAKERS), (torch.Tensor, _METHODS)):
        for name in names:
            is_maker = name not in ("as_tensor", "to")
            replaced.set(owner, **{name: _on_host(getattr(owner, name), torch, is_maker)})

    def cuda(tensor: object, *_: object, **__: object) -> Any:
        return _aligned(tensor, torch)

    replaced.set(
        torch.Tensor,
        cuda=cuda,
        is_cuda=property(lambda _: True),
        device=_gpu_to_programs(torch),
        pin_memory=_itself,
        record_stream=_itself,
    )
    replaced.set(torch, Generator=_generator_on_host(torch))
    _autocast_on_host(torch, replaced)
    _products_on_host(torch, replaced)
    scaled_products_on_host(torch, replaced)
    replaced.set(torch.profiler, profile=_profile_on_host(torch))
    custom_op = torch.library.custom_op

    @wraps(custom_op)
    def custom_op_on_host(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device_types") == "cuda":
            kwargs["device_types"] = "cpu"
        return custom_op(*args, **kwargs)

    replaced.set(torch.library, custom_op=custom_op_on_host)


def _gpu_to_programs(torch: ModuleType) -> property:
    """`tensor.device` that tells a program of a GPU in place of the host. torch and this package, which work with the
    memory, and torch's compiler, which compiles for it, get the host.
    """
    of_torch, gpu = torch.Tensor.device, torch.device("cuda", 0)

    def device(tensor: TorchTensor) -> Any:
        real = of_torch.__get__(tensor)
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        asking = str(caller.f_globals.get("__name__", "")).partition(".")[0]
        return gpu if real.type == "cpu" and asking not in ("torch", "tilefold") else real

    return property(device)


def _generator_on_host(torch: ModuleType) -> Any:
    """The class of generators, which are the host's also where a program asks for a GPU's."""
    of_torch = torch.Generator

    class Generator(of_torch):
        def __new__(cls, device: Any = "cpu") -> Any:
            return of_torch.__new__(cls, "cpu" if _is_gpu(device) else device)

    return Generator


def _autocast_on_host(torch: ModuleType, replaced: Replacements) -> None:
    """Automatic types: those of the host's operations where a program names a GPU, by default in the type of a GPU."""
    enter, is_enabled, dtype_of = torch.autocast.__init__, torch.is_autocast_enabled, torch.get_autocast_dtype

    @wraps(enter)
    def autocast(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if _is_gpu(device_type):
            device_type, dtype = "cpu", dtype or dtype_of("cuda")
        enter(self, device_type, dtype, *args, **kwargs)

    def is_autocast_enabled(device_type: str = "cuda") -> bool:
        return is_enabled("cpu" if _is_gpu(device_type) else device_type)

    def get_autocast_dtype(device_type: str) -> Any:
        return dtype_of("cpu" if _is_gpu(device_type) and is_enabled("cpu") else device_type)

    for function in (is_autocast_enabled, get_autocast_dtype):
        vars(function)["_dynamo_marked_constant"] = True  # torch.compile asks within the context
    replaced.set(torch, is_autocast_enabled=is_autocast_enabled, get_autocast_dtype=get_autocast_dtype)
    replaced.set(torch.autocast, __init__=autocast)


def _products_on_host(torch: ModuleType, replaced: Replacements) -> None:
    """Products of matrices with another type of result (`out_dtype=`), which torch has on GPUs only: of operands of the
    result's type.
    """

    def typed(function: Any) -> Any:
        def product(*operands: TorchTensor, **options: Any) -> TorchTensor:
            *tensors, dtype = operands
            return function(*(tensor.to(dtype) for tensor in tensors), **options)

        return product

    operators = torch.library.Library("aten", "IMPL")
    for name in ("mm", "bmm", "addmm", "baddbmm"):
        operators.impl(f"{name}.dtype", typed(getattr(torch, name)), "CPU")
    replaced.callback(operators._destroy)  # the library lives as long as its operators


def _profile_on_host(torch: ModuleType) -> Callable[..., object]:
    """torch's profiler, which looks at the host where a program asks for a GPU alone."""
    profile = torch.profiler.profile

    @wraps(profile, updated=())
    def profile_on_host(*args: Any, **kwargs: Any) -> Any:
        kwargs["activities"] = [torch.profiler.ProfilerActivity.CPU]
        return profile(*args, **kwargs)

    return profile_on_host
