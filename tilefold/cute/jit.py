# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`@cute.jit`: functions that launch kernels, and helpers of kernels."""

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

from tilefold.compiler.builder.control.rewrite import lines_of, rewritten
from tilefold.compiler.builder.scalars.dtypes import DType
from tilefold.compiler.builder.tracing.state import is_building
from tilefold.layout.algebra.core import Layout
from tilefold.runtime.arrays.signature import Marked

from .specialise import element_type_of, layout_of, unmarked
from .untraced import skip_frames, untraced

P = ParamSpec("P")
R = TypeVar("R")


class HostTensor:
    """An array as a function of the host sees it: with a layout, to launch kernels on.

    One that `cute.dynamic` marked has the layout of the array at hand, and is dynamic for the kernels.
    """

    def __init__(self, array: Any) -> None:
        self.__tilefold_array__ = array

    @property
    def layout(self) -> Layout:
        """The layout: the array's shape, with its strides in elements."""
        return layout_of(unmarked(self.__tilefold_array__))

    @property
    def shape(self) -> Any:
        """The shape."""
        return self.layout.shape

    @property
    def stride(self) -> Any:
        """The strides in elements."""
        return self.layout.stride

    @property
    def element_type(self) -> DType:
        """The type of the elements."""
        return element_type_of("array", unmarked(self.__tilefold_array__))

    def __repr__(self) -> str:
        return f"HostTensor({self.element_type}, {self.layout})"


class JitFunction(Generic[P, R]):
    """A function that is called by the host, or while a kernel is built.

    The host's arrays become tensors with layouts. Within a kernel, control flow on values of the kernel becomes the
    kernel's.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self._lines = lines_of(function)
        update_wrapper(self, function)
        skip_frames(type(self).__call__)

    @cached_property
    def rewritten(self) -> Callable[P, R]:
        """The function as kernels call it. Raises ProgramError (E5004, E5005)."""
        return rewritten(self.function, self._lines)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R: ...  # arrays of the host, for parameters annotated cute.Tensor

    @untraced
    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        """Calls the function: within a kernel as a part of it, else on arrays with layouts."""
        if is_building():
            return self.rewritten(*args, **kwargs)
        function: Callable[..., R] = self.function
        return function(*[_host(arg) for arg in args], **{name: _host(arg) for name, arg in kwargs.items()})

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        if owner is None:
            return self
        return lambda *args, **kwargs: self(owner, *args, **kwargs)  # pyright: ignore


def _host(value: Any) -> Any:
    if isinstance(value, Marked):
        return HostTensor(value)
    is_array = hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")
    return HostTensor(value) if is_array and getattr(value, "shape", ()) else value


def jit(function: Callable[P, R]) -> JitFunction[P, R]:
    """Makes a function one that launches kernels, or, called by a kernel, a part of it."""
    return JitFunction(function)
