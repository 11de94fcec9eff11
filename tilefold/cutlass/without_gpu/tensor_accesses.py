# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses of torch to tensors of a simulated GPU that can race with work of streams: copies, and reads by the host.
They are work of the current stream; the host waits for those that it needs.

Other functions of torch are not seen: they can hide a race, but make none appear.
"""

from collections.abc import Callable, Iterable
from functools import partial, wraps
from types import ModuleType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilefold.runtime.accesses import READ, WRITTEN, Piece

from ..replacements import Replacements
from .host_memory import TorchTensor
from .work import Copy, Pieces, Streams

_READ_BY_HOST = (
    "item", "tolist", "cpu", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__", "__repr__",
    "is_nonzero", "nonzero", "masked_select", "unique", "equal", "allclose",
)  # fmt: skip
"""The methods of tensors after which the host, or other threads, need the result."""
_COMPARED_BY_HOST = ("equal", "allclose", "is_nonzero", "nonzero", "masked_select", "unique")
"""The functions of torch that do."""


def tensor_accesses_on_host(torch: ModuleType, streams: Streams, replaced: Replacements) -> None:
    """Gives the accesses to the streams, from the first stream that the program makes on."""

    def reads(owner: object, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(owner, name)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            tensors = [arg for arg in (*args, *kwargs.values()) if _has_bytes(torch, arg)]
            _read_by_host(streams, name, tensors)
            return function(*args, **kwargs)

        return call

    watching = replaced.enter_context(Replacements())

    def watch() -> None:
        watching.set(torch, **{name: reads(torch, name) for name in _COMPARED_BY_HOST})
        methods = {name: reads(torch.Tensor, name) for name in _READ_BY_HOST if hasattr(torch.Tensor, name)}
        copies = {name: _copy(torch, streams, name) for name in ("copy_", "clone")}
        watching.set(torch.Tensor, **methods, **copies, to=_to(torch, streams))

    streams.watchers.append(watch)


def _copy(torch: ModuleType, streams: Streams, name: str) -> Callable[..., Any]:
    """A method that copies a tensor to another one, or to a new one. The host waits for it unless it is asked not to,
    as torch does where one of the two is the host's.
    """
    function: Callable[..., Any] = getattr(torch.Tensor, name)

    @wraps(function)
    def call(target: TorchTensor, source: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        given = (target,) if source is None else (target, source, non_blocking)
        do = partial(function, *given, **kwargs)
        if streams.capture is not None:
            return do()
        pieces = ((READ, target),) if source is None else ((WRITTEN, target), (READ, source))
        accessed = [(flag, tensor) for flag, tensor in pieces if _has_bytes(torch, tensor)]
        made = streams.do(do, None, Copy(name, _pieces(accessed)))
        if source is not None and not non_blocking:
            streams.reach(streams.mark(None))
        return made

    return call


def _to(torch: ModuleType, streams: Streams) -> Callable[..., Any]:
    """`tensor.to`, which reads the tensor where the host is to have it."""
    function: Callable[..., Any] = torch.Tensor.to

    @wraps(function)
    def to(tensor: TorchTensor, *args: Any, **kwargs: Any) -> Any:
        is_to_host = any(isinstance(arg, str | torch.device) and str(arg) == "cpu" for arg in (*args, *kwargs.values()))
        if is_to_host and _has_bytes(torch, tensor):
            _read_by_host(streams, "to", [tensor])
        return function(tensor, *args, **kwargs)

    return to


def _read_by_host(streams: Streams, name: str, tensors: Iterable[TorchTensor]) -> None:
    """The host reads tensors behind the work of the current stream, and waits for that."""
    if streams.capture is not None:
        return
    pieces = _pieces([(READ, tensor) for tensor in tensors])
    streams.do(lambda: None, None, Copy(name, pieces))
    streams.reach(streams.mark(None))


def _pieces(accessed: list[tuple[int, TorchTensor]]) -> Pieces:
    return lambda: [_piece(flag, tensor) for flag, tensor in accessed]


def _piece(flag: int, tensor: TorchTensor) -> Piece:
    """The bytes from the first element of a tensor to the last one; those between its elements have no flags."""
    size, steps = tensor.element_size(), [step * tensor.element_size() for step in tensor.stride()]
    span = size + sum((extent - 1) * step for extent, step in zip(tensor.shape, steps, strict=True))
    flags = np.zeros(span, np.uint8)
    as_strided(flags, (*tensor.shape, size), (*steps, 1))[...] = flag
    return Piece("the target" if flag == WRITTEN else "the tensor", tensor.data_ptr(), flags)


def _has_bytes(torch: ModuleType, value: Any) -> bool:
    """Whether a value is a tensor whose elements are in memory now."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
        return False
    try:
        return value.numel() > 0 and value.data_ptr() != 0
    except (RuntimeError, NotImplementedError):  # within torch.vmap or the compiler
        return False
