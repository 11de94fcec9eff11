# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`@cute.kernel`: functions that become kernels when they are launched, or looked at."""

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, update_wrapper
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NoReturn, Unpack, overload

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.tracing.source import lines_of
from tilefold.builder.tracing.state import host, is_building
from tilefold.runtime.errors import Dim3
from tilefold.runtime.options import LaunchOptions, SimOptions, check_smem, dim3, launch_attributes

from .debugging_methods import DebuggableCall, Size, shown
from .dropped_calls import warn_if_dropped
from .kernel_views import KernelViews
from .parameters import KernelOptions, OuterNames, Signature
from .torch_compile import skip_frames, untraced

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from tilefold.builder.trace import Traced
    from tilefold.runtime.cuda.launcher import Launcher
    from tilefold.runtime.engine import RunResult

    from .compiled_kernel import Compilation, CompiledKernel
    from .gpu_launch import GpuLaunches, LauncherKey
    from .launch import LaunchRequest
    from .specialise import BoundArguments


class KernelFunction(KernelViews):
    """A function that becomes kernels when called."""

    function: Callable[..., object]
    signature: Signature
    prefix: str = ""
    _count: int = -1
    """The arguments of a call that gives all of them by position, as soon as it is known."""

    @abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Binds arguments."""

    def _in_order(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[Any, ...] | None:
        """The arguments of any call in the order of the parameters; None for a function that is not called so.

        TypeError if they do not fit.
        """
        signature = self.signature
        if not signature.is_plain:
            return None
        ordered = signature.in_order(args, kwargs)
        if len(ordered) == signature.by_position:
            self._count = len(ordered)
        return ordered

    def set_name_prefix(self, prefix: str) -> None:
        """Makes the names of kernels built from now on begin with `prefix`."""
        self.prefix = re.sub(r"\W", "_", prefix, flags=re.ASCII)

    def __getitem__(self, sizes: object) -> Any:
        name = self.function.__name__
        hint = f"write {name}(...).launch(grid=..., block=...)"
        raise shown(TilefoldError(Code.RUN_LAUNCH, f"{name}[...] does not launch the kernel", hint))

    def __reduce__(self) -> str:
        return self.function.__qualname__  # where it can be found, as for functions

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)  # which has `set_name_prefix`, too


class Kernel(KernelFunction):
    """A kernel as a Python function. A call binds its arguments: `k(a, b).launch(grid=..., block=...)`.

    Each combination of argument types, constants and block sizes gets a kernel of its own, built on first use.
    """

    def __init__(self, function: Callable[..., object], options: KernelOptions | None = None) -> None:
        self.function = function
        self.options = options or KernelOptions()
        self.signature = Signature(function)
        self._lines = lines_of(function) if self.options.preprocessor else ()
        self._built: dict[tuple[object, ...], CompiledKernel] = {}
        self._for_host: dict[tuple[str, Compilation], CompiledKernel] = {}
        self._last: CompiledKernel | None = None
        self.outer: OuterNames | None = None
        self.launchers: dict[LauncherKey, Launcher] = {}
        update_wrapper(self, function)
        skip_frames(Kernel.__call__, KernelCall.launch, KernelCall.build)

    def __repr__(self) -> str:
        return f"<kernel {self.function.__qualname__}({', '.join(self.signature.names)})>"

    @untraced
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if is_building():
            return self._within(args, kwargs)
        call = UnusedCall()  # without a constructor, whose call would take a tenth of a launch
        call.kernel = self
        call.bindings = None
        if kwargs or len(args) != self._count:
            ordered = self._in_order(args, kwargs)
            if ordered is None:
                call.bindings, call.args = self.signature.bind(args, kwargs), ()
                return call
            args = ordered
        call.args = args
        return call

    def _within(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        """A call within a host function. Raises TilefoldError (E5005) for one within a kernel."""
        if host() is None:
            hint = "launch it from the host, or move the shared part into a function decorated with @cute.jit"
            message = f"the kernel '{self.function.__name__}' is launched within another kernel"
            raise TilefoldError(Code.BUILD_FORM, message, hint)
        from .host.launching import HostKernelCall

        return HostKernelCall(self, args, kwargs)

    def built_for_host(
        self,
        arguments: Mapping[str, object],
        block: Dim3,
        min_blocks: int | None,
        smem: int | None,
        how: "Compilation",
    ) -> "tuple[CompiledKernel, Mapping[str, SSAValue]]":
        """The kernel that a host function launches, one for each text and each set of compile options; and the values
        of the host that it captures, by its parameters.
        """
        from .compiled_kernel import CompiledKernel

        compiled = CompiledKernel(self._traced(arguments, block, min_blocks, smem), how)
        self._last = self._for_host.setdefault((compiled.text, how), compiled)
        return self._last, compiled.traced.captured

    def _traced(
        self,
        arguments: Mapping[str, object],
        block: Sequence[int],
        min_blocks: int | None = None,
        smem: int | None = None,
    ) -> "Traced":
        from tilefold.builder.trace import trace
        from tilefold.dialects.kernel import LaunchBounds

        o = self.options
        bounds = LaunchBounds(tuple(block), o.min_blocks or min_blocks, o.max_registers, o.cluster, o.non_portable)
        name = o.name or (f"{self.prefix}_{self.function.__name__}" if self.prefix else "")
        return trace(self.rewritten, arguments, bounds, name, o.contract, smem)

    @cached_property
    def on_gpus(self) -> "GpuLaunches":
        """The launches on GPUs; `launchers` has the prepared ones."""
        from .gpu_launch import GpuLaunches

        return GpuLaunches(self.launchers, self.signature, self.build)

    @cached_property
    def rewritten(self) -> Callable[..., object]:
        """The function, rewritten so that its control flow becomes the kernel's. Raises ProgramError (E5004, E5005)."""
        if not self.options.preprocessor:
            return self.function
        from tilefold.builder.control.rewrite import rewritten

        return rewritten(self.function, self._lines, is_kernel=True)

    def forget_outdated(self) -> bool:
        """Forgets kernels built with other values of the globals and outer variables that the function and its helpers
        read; returns whether there were any.
        """
        if self.outer is None or not self.outer.have_changed():
            return False
        self.outer = None
        self._built.clear()
        self.launchers.clear()
        vars(self).pop("on_gpus", None)
        return True

    def build(self, bound: "BoundArguments", block: Sequence[int]) -> "CompiledKernel":
        """The kernel for arguments and a block. Raises ProgramError for a fault of the kernel."""
        self.forget_outdated()
        key = (tuple(block), bound.smem, *bound.key)
        compiled = self._built.get(key)
        if compiled is None:
            from .compiled_kernel import CompiledKernel

            compiled = CompiledKernel(self._traced(bound.arguments, block, smem=bound.smem))
            self._built[key] = compiled
            self.outer = OuterNames(self.function) if isinstance(self.function, FunctionType) else None
        self._last = compiled
        return compiled

    @property
    def last(self) -> "CompiledKernel":
        if self._last is None:
            name = self.function.__name__
            hint = f"call {name}(...).launch(...) or .build"
            raise TilefoldError(Code.RUN_KERNEL, f"the kernel '{name}' has not been built yet", hint)
        return self._last


class KernelCall(DebuggableCall):
    """A kernel with its arguments, in the order of its parameters."""

    __slots__ = ("args", "bindings", "kernel")
    kernel: Kernel
    args: tuple[object, ...]
    bindings: "BoundArguments | None"

    def __repr__(self) -> str:
        return f"<call of {self.kernel!r}>"

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """LaunchError (E3105): a call binds arguments once."""
        name = self.kernel.function.__name__
        hint = f"write {name}(...).launch(grid=..., block=...)"
        raise shown(TilefoldError(Code.RUN_LAUNCH, f"{name}(...)(...) does not launch the kernel", hint))

    @property
    def bound(self) -> "BoundArguments":
        """The arguments in the form that building the kernel takes. Raises LaunchError (E3106)."""
        if self.bindings is None:
            self.bindings = self.kernel.signature.bind_in_order(self.args)
        return self.bindings

    @untraced
    def build(self, block: Size, smem: int | None = None) -> "CompiledKernel":
        """The kernel for these arguments and a launch with such a block and so many bytes of shared memory, without
        launching it. Raises ProgramError.
        """
        try:
            check_smem(smem)
            return self.kernel.build(replace(self.bound, smem=smem), dim3("block", block))
        except TilefoldError as error:
            raise shown(error) from error.__cause__

    @untraced
    def launch(
        self,
        grid: Size = (),
        block: Size = (),
        *,
        stream: object = None,
        device: str = "auto",
        stage: str | None = None,
        smem: int | None = None,
        cluster: Size | None = None,
        use_pdl: bool = False,
        **more: Unpack[LaunchOptions],
    ) -> "RunResult | None":
        """Runs the kernel over a grid of blocks, on the GPU that holds its arrays, without waiting (docs/runtime.md).

        `device` is "cuda", "cuda:1", "sim" (the simulator, at `stage`) or "auto": the GPU if there is one. The launch
        copies arrays of the host to the GPU and back, and waits for the kernel. `stream` is one of torch, CuPy,
        cuda.core or cuda-python, or a handle; by default torch's current one where a torch tensor is an argument.
        `cluster` is the size of a cluster in blocks, if the kernel does not fix it. `use_pdl` lets the kernel begin
        before earlier work in the stream has ended. The shared memory that a kernel allocates is
        counted; `smem` are the bytes that it takes by `cute.arch.get_dyn_smem`. The other options are those of
        `LaunchOptions`: blocks that all run at the same time, events, and those of the simulator.

        The simulator looks for data races unless `races` is False, and ends a run after `max_steps` operations of warps
        or `max_seconds`, or where it needs more than `max_memory` MiB. `seed` chooses the order of its warps;
        `resident` blocks run at the same time, or all blocks of a cooperative launch, and up to `processes` processes
        share the blocks, by default one for each core. With `exact` the kernel computes with exact numbers, which the
        result has as arrays (see `cute.testing.exact`); `numbers` looks for those that go wrong, such as NaN.
        `numerics` chooses the sums of matrix instructions: "hardware", bit for bit, or "exact-sum", rounded once.

        Returns the result of a launch that has ended, or None for one that is only queued. Raises ProgramError for a
        fault of the kernel, LaunchError for unsuitable arguments, SimulationError and CudaError for faults at run time.
        """
        # an object without `__del__` is freed faster
        self.__class__ = KernelCall  # pyright: ignore[reportAttributeAccessIssue]
        try:
            attributes = ()
            options = SimOptions.taken_from(more) if more else None
            if use_pdl or more or cluster is not None:
                attributes = launch_attributes(cluster, use_pdl, **more)
            if (
                (options is None or options == SimOptions())
                and stage is None
                and smem is None
                and self.bindings is None
            ):
                kernel, args = self.kernel, self.args
                launcher = kernel.launchers.get(device)
                outer = kernel.outer
                if launcher is not None and (outer is None or not (outer.have_changed() and kernel.forget_outdated())):
                    result = launcher.fast(args, block, grid, stream, attributes)
                    if result is NotImplemented:
                        return launcher.search(args, block, grid, stream, attributes)
                    return result
            check_smem(smem)
            from .launch import LaunchRequest

            request = LaunchRequest(device, None if stage is None else str(stage), stream, attributes, smem)
            return self.submit(grid, block, request, options or SimOptions())
        except TilefoldError as error:
            raise shown(error) from error.__cause__
        except TypeError:
            if device.__class__ is str:
                raise
            error = TilefoldError(
                Code.RUN_LAUNCH, f"device is {device!r}", "pass a text such as 'cuda'"
            )  # without a hash
            raise shown(error) from error.__cause__

    def submit(self, grid: object, block: object, request: "LaunchRequest", options: SimOptions) -> "RunResult | None":
        """Launches the kernel where no launch is prepared; see `launch`."""
        from .launch import place_of, simulate

        in_order, kernel, bound = self.bindings is None, self.kernel, replace(self.bound, smem=request.smem)
        device, stream, attributes = request.device, request.stream, request.attributes
        ordinal = place_of(bound.arrays, device, request.stage)
        if ordinal is None:
            return simulate(kernel.build(bound, dim3("block", block)), bound, grid, request, options)
        if in_order:
            return kernel.on_gpus.launcher(device, request.smem).launch(self.args, block, grid, stream, attributes)
        return kernel.on_gpus.resolve(ordinal, bound, block, grid, stream, attributes)[0]


class UnusedCall(KernelCall):
    """A call that has launched nothing yet; it warns if the statement that makes it also drops it."""

    __slots__ = ()

    def __del__(self) -> None:
        if hasattr(self, "args") and (self.bindings is None or not self.args):
            warn_if_dropped(self.kernel, self.kernel.function.__name__, "launch(grid=..., block=...)")


@overload
def kernel(function: Callable[..., object], /) -> Kernel: ...


@overload
def kernel(
    *,
    name: str = "",
    min_blocks: int | None = None,
    max_registers: int | None = None,
    preprocessor: bool = True,
    preprocess: bool = True,
    cluster: Size | None = None,
    non_portable: bool = False,
    contract: bool = False,
) -> Callable[[Callable[..., object]], Kernel]: ...


def kernel(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    min_blocks: int | None = None,
    max_registers: int | None = None,
    preprocessor: bool = True,
    preprocess: bool = True,
    cluster: Size | None = None,
    non_portable: bool = False,
    contract: bool = False,
) -> Any:
    """Makes a function a kernel: `@cute.kernel`, or `@cute.kernel(min_blocks=2, max_registers=128)`: the least number
    of blocks that a multiprocessor must hold, and the greatest number of registers of a thread. `cluster` is the size
    of its clusters in blocks, for every launch; 9 to 16 blocks need `non_portable=True`.

    Its `for`, `while` and `if` on values of the kernel become the kernel's (docs/python.md). `name` is the kernel's
    name in PTX, the function's by default; `preprocessor=False`, or `preprocess=False`, takes the function as it is,
    where Python keeps no source. `contract=True` rounds `a * b + c` of floats once, as `cute.math.fma` does, where one
    expression or one block of statements computes both; by default product and sum are rounded each.
    """
    size = None if cluster is None else dim3("cluster", cluster)
    options = KernelOptions(name, min_blocks, max_registers, preprocessor and preprocess, size, non_portable, contract)
    return partial(Kernel, options=options) if function is None else Kernel(function, options)
