# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Questions about calls of compiled functions (`cutlass.cute.experimental.host_runtime`)."""

from dataclasses import dataclass
from typing import Any

from .host.compiled import CompiledFunction
from .public import publish

__all__ = ["DeviceWorkspace", "QueryDeviceWorkspaceFunc"]


@dataclass(frozen=True)
class DeviceWorkspace:
    """The memory of the GPU that a call needs besides its arguments."""

    size_in_bytes: int


@dataclass(frozen=True)
class QueryDeviceWorkspaceFunc:
    """Says how much memory a call of a compiled function needs for the tensor maps that its kernel makes:
    `function.get_aux_func(QueryDeviceWorkspaceFunc)`. The call takes it behind its arguments, as an array of bytes.
    """

    function: CompiledFunction

    def __call__(self, *args: Any, **kwargs: Any) -> DeviceWorkspace:
        """The memory for arguments. Raises as a call of the function with them does, which it does not make."""
        return DeviceWorkspace(self.function.workspace_bytes(args, kwargs))


publish(__name__)
