# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`@cute.jit`: functions that launch kernels, and helpers of kernels."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial, update_wrapper
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from tilefold.base.errors import TilefoldError
from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.tracing.source import lines_of
from tilefold.builder.tracing.state import host, is_building
from tilefold.runtime.arrays.signature import read_annotation

from .debugging_methods import shown
from .kernel import Kernel, KernelCall
from .parameters import Signature
from .torch_compile import skip_frames, untraced

P = ParamSpec("P")
R = TypeVar("R")


class JitFunction(Generic[P, R]):
    """A function that the host calls, or that a kernel under construction calls.

    The host's arrays become tensors with layouts. Within a kernel, control flow on values of the kernel becomes the
    kernel's.
    """

    def __init__(self, function: Callable[P, R], preprocessor: bool = True) -> None:
        self.function = function
        self.signature = Signature(function)
        self._lines = lines_of(function) if preprocessor else None
        update_wrapper(self, function)
        self.__defaults__ = getattr(function, "__defaults__", None)  # as of a function, for keys of caches
        self.__kwdefaults__ = getattr(function, "__kwdefaults__", None)
        skip_frames(type(self).__call__)

    @cached_property
    def rewritten(self) -> Callable[P, R]:
        """The function as kernels call it. Raises ProgramError (E5004, E5005)."""
        if self._lines is None:
            return self.function
        from tilefold.builder.control.rewrite import rewritten

        return rewritten(self.function, self._lines)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __call__(
        self, *args: object, **kwargs: object
    ) -> R: ...  # arrays of the host, for parameters annotated cute.Tensor

    @untraced
    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        """Calls the function: within a kernel as a part of it, else on arrays with layouts."""
        if is_building():
            function = self.function if host() is not None and not self._computes_a_number else self.rewritten
            return function(*args, **kwargs)
        try:
            kwargs.pop("no_cache", None)  # of CuTe programs: a call executes the function each time
            return self._of_host(self.signature.given(args, kwargs))
        except TilefoldError as error:
            raise shown(error) from error.__cause__

    @cached_property
    def _computes_a_number(self) -> bool:
        """Whether the function takes numbers and returns one, by its annotations. A host function then computes it by
        operations, control flow included, in each call.
        """
        annotations = self.signature.annotations.values()
        result = read_annotation(self.signature.signature.return_annotation)
        return isinstance(result, DType) and all(isinstance(each, DType) for each in annotations)

    def _of_host(self, given: Mapping[str, object]) -> R:
        from .host.arguments import HostArguments, KernelArguments
        from .host.launching import memory_of_pointers
        from .host.tracing import ElementsError, HostTrace

        trace = HostTrace(self.signature.bound(given, HostArguments(fixed=True)), eager=True)
        try:
            return trace.run(self.function)
        except ElementsError as elements:
            code = getattr(self.function, "__code__", None)
            if code is not None and "launch" in code.co_names:
                raise elements.fault from None  # it launches kernels: it is not a kernel itself
            call = self._of_one_thread()
            call.bindings = self.signature.bound(given, KernelArguments(memory=memory_of_pointers(trace)))
            call.launch(grid=1, block=1)
            return None  # pyright: ignore[reportReturnType]

    def _of_one_thread(self) -> KernelCall:
        """A call of the function as a kernel, for functions of the host that read or write elements."""
        call = KernelCall()
        call.kernel, call.args = Kernel(self.function), ()
        return call

    def set_name_prefix(self, prefix: str) -> None:
        """Nothing: host functions have no names in machine code."""

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)


class UserOp(JitFunction[P, R]):
    """A helper of kernels, which the host may call, too; see `dsl_user_op`."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        return self.rewritten(*args, **kwargs)


def dsl_user_op(function: Callable[P, R]) -> JitFunction[P, R]:
    """Makes a function a part of the kernels that call it, whose calls may pass on `loc=loc, ip=ip`."""
    known: Any = function
    return known if isinstance(function, JitFunction) else UserOp(function, preprocessor=False)


@overload
def jit(function: Callable[P, R], /) -> JitFunction[P, R]: ...


@overload
def jit(*, preprocessor: bool = True, preprocess: bool = True) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(function: Callable[..., object] | None = None, /, *, preprocessor: bool = True, preprocess: bool = True) -> Any:
    """Makes a function launch kernels or, if a kernel calls it, a part of that kernel. `preprocessor=False` takes the
    function unchanged, for functions without source: see `kernel`. `preprocess` is another name for it. Of a
    `dsl_user_op` it takes the function below.
    """
    preprocessor = preprocessor and preprocess
    if isinstance(function, UserOp):
        function = function.function
    return partial(JitFunction, preprocessor=preprocessor) if function is None else JitFunction(function, preprocessor)
