# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`@cute.autotune`: kernels that are launched for the values of their constants that are fastest on this GPU."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import update_wrapper
from threading import Lock
from typing import TYPE_CHECKING, Any, Unpack

from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.arrays.array import NOWHERE
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.options import LaunchAttributes, SimKeywords, SimOptions, launch_attributes

from .compiled_kernel import CompiledKernel
from .debugging_methods import Size, shown
from .dropped_calls import warn_if_dropped
from .kernel import Kernel, KernelCall, KernelFunction
from .parameters import Signature
from .torch_compile import skip_frames, untraced
from .tuning import Candidate, Config, Sized, Tuner, Tuning, evaluate_size, without_spills

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tilefold.runtime.cuda.launcher import Launcher
    from tilefold.runtime.cuda.prepared import Prepared
    from tilefold.runtime.engine import RunResult

_OF_CONFIG = ()
"""The block of prepared launches: which it is, their configuration says."""


class Tuned(KernelFunction):
    """A kernel with configurations; see `autotune`. A call binds the arguments that no configuration names:
    `k(a, b).launch()`.

    `signature` has those parameters. A prepared launch takes arguments like those for which its configuration was
    chosen; so it is found as that of a kernel is, and `launchers` has them by device.
    """

    def __init__(self, tuner: Tuner) -> None:
        self.tuner = tuner
        self.kernel = tuner.kernel
        self.function = tuner.kernel.function
        self.configs = tuner.configs
        self.signature = Signature(self.function, frozenset(name for config in tuner.configs for name in config))
        self.launchers: dict[str, Launcher] = {}
        self._tunings: dict[tuple[object, ...], Tuning] = {}
        self._lock = Lock()
        update_wrapper(self, self.function)
        skip_frames(Tuned.__call__, TunedCall.launch, TunedCall.build)

    def __repr__(self) -> str:
        return f"<{len(self.configs)} configurations of {self.kernel!r}>"

    @untraced
    def __call__(self, /, *args: Any, **kwargs: Any) -> "TunedCall":
        call = UnusedTunedCall()  # without a constructor, as of `Kernel`
        call.tuned = self
        call.kwargs = None
        if kwargs or len(args) != self._count:
            ordered = self._in_order(args, kwargs)
            if ordered is None:
                call.args, call.kwargs = args, kwargs
                return call
            args = ordered
        call.args = args
        return call

    @property
    def last(self) -> CompiledKernel:
        """The last configuration that was built. Raises TilefoldError (E3107) if there is none."""
        return self.kernel.last

    def tune(self, *args: object, **kwargs: object) -> Tuning:
        """Compiles and times the configurations on these arguments, whose contents the runs change; or finds an earlier
        measurement for their types, also from another process.

        Raises CudaUnavailable without a GPU, TilefoldError if no configuration works.
        """
        call = self(*args, **kwargs)
        ordinal = call.place("cuda")
        assert ordinal is not None, "'cuda' is a GPU"
        return self.tuning(call, ordinal)

    def tuning(self, call: "TunedCall", ordinal: int, grid: Sized | None = None) -> Tuning:
        """The tuning on a GPU for the arguments of a call; see `tune`."""
        calls = [call.of(config) for config in self.configs]
        key = ordinal, *calls[0].bound.key
        with self._lock:  # two measurements at the same time would disturb each other
            tuning = self._tunings.get(key)
            if tuning is None:
                tuner = self.tuner if grid is None else replace(self.tuner, grid=grid)
                tuning = self._tunings[key] = tuner.measure(calls, ordinal)
        return tuning

    def forget_outdated(self) -> None:
        """Forgets launches and measurements made with other values of the globals that the kernel reads."""
        if self.tuner.kernel.forget_outdated():
            self.launchers.clear()
            self._tunings.clear()

    def launcher(self, device: str) -> "Launcher":
        """The prepared launches for a GPU. LaunchError for a device that does not exist."""
        from .gpu_launch import launcher_of

        launcher = self.launchers.get(device)
        if launcher is None:

            def resolve(args: tuple[object, ...], _: object, *rest: Any) -> "tuple[RunResult | None, Prepared | None]":
                return self._resolve(device, args, *rest)

            launcher = self.launchers[device] = launcher_of(self.signature, device, resolve)
        return launcher

    def _resolve(
        self, device: str, args: tuple[object, ...], grid: Any, stream: object, attributes: LaunchAttributes
    ) -> "tuple[RunResult | None, Prepared | None]":
        """Launches for arguments of types that were not there before, and prepares that of their configuration."""
        from tilefold.runtime.cuda.prepared import Prepared

        call = TunedCall()
        call.tuned, call.args, call.kwargs = self, args, None
        ordinal, tuner = call.place(device), self.tuner
        assert ordinal is not None, "a device that has launches is a GPU"
        config = self.tuning(call, ordinal, grid).best.config

        def grid_of(given: Any) -> Any:
            return evaluate_size(tuner.grid if given is None else given, config)

        result, prepared = self.kernel.on_gpus.resolve(
            ordinal, call.of(config).bound, evaluate_size(tuner.block, config), grid_of(grid), stream, attributes
        )
        return result, None if prepared is None else Prepared(prepared.kernel, prepared.library, grid_of)


class TunedCall:
    """A kernel with configurations, and arguments: in the order of its parameters if `kwargs` is None."""

    __slots__ = ("args", "kwargs", "tuned")
    tuned: Tuned
    args: tuple[object, ...]
    kwargs: Mapping[str, Any] | None

    def __repr__(self) -> str:
        return f"<call of {self.tuned!r}>"

    def of(self, config: Config) -> KernelCall:
        """The call of the kernel with a configuration."""
        if self.kwargs is None:
            return self.tuned.kernel(**dict(zip(self.tuned.signature.names, self.args, strict=True)), **config)
        return self.tuned.kernel(*self.args, **self.kwargs, **config)

    def place(self, device: str, stage: str | None = None) -> int | None:
        """The number of the GPU to run on; None for the simulator. LaunchError as `launch.place_of`."""
        from .launch import place_of

        return place_of(self.of(self.tuned.configs[0]).bound.arrays, device, stage)

    def config(self, ordinal: int | None, grid: Sized | None = None) -> Config:
        """The configuration for a launch: on a GPU the fastest, measured if unknown; on the simulator (None), which has
        no times, the first. Raises the errors of `Tuned.tune`.
        """
        tuned = self.tuned
        return tuned.configs[0] if ordinal is None else tuned.tuning(self, ordinal, grid).best.config

    @untraced
    def build(self, config: Config | None = None) -> CompiledKernel:
        """The kernel for these arguments without launching it: for a configuration, by default the one that a launch
        chooses, or the first one for descriptions of arguments. Raises ProgramError.
        """
        self.__class__ = TunedCall  # pyright: ignore[reportAttributeAccessIssue]
        try:
            if config is None:
                first = self.tuned.configs[0]
                arrays = self.of(first).bound.arrays.values()
                config = first if any(array.device == NOWHERE for array in arrays) else self.config(self.place("auto"))
            return self.of(config).build(evaluate_size(self.tuned.tuner.block, config))
        except TilefoldError as error:
            raise shown(error) from error.__cause__

    @untraced
    def launch(
        self,
        grid: Sized | None = None,
        *,
        stream: object = None,
        device: str = "auto",
        stage: str | None = None,
        smem: int | None = None,
        cluster: Size | None = None,
        use_pdl: bool = False,
        **options: Unpack[SimKeywords],
    ) -> "RunResult | None":
        """Launches the fastest configuration, or the first one on the simulator. `KernelCall.launch` describes the
        options.

        `grid` is for this launch, instead of that of `autotune`: of tensors with dynamic extents it may depend on them.
        """
        self.__class__ = TunedCall  # pyright: ignore[reportAttributeAccessIssue]
        if device.__class__ is not str:
            device = str(device)  # which is refused with it
        try:
            attributes = launch_attributes(cluster, use_pdl) if use_pdl or cluster is not None else ()
            plain = not options or SimOptions.of(options) == SimOptions()
            prepared = plain and stage is None and smem is None and self.kwargs is None
            self.tuned.forget_outdated()
            launcher = self.tuned.launchers.get(device) if prepared else None
            if launcher is None:
                ordinal = self.place(device, stage)
                if not prepared or ordinal is None:
                    config, tuner = self.config(ordinal, grid), self.tuned.tuner
                    return self.of(config).launch(
                        evaluate_size(tuner.grid if grid is None else grid, config), evaluate_size(tuner.block, config),
                        stream=stream, device=device, stage=stage, smem=smem, cluster=cluster,
                        use_pdl=use_pdl, **options,
                    )  # fmt: skip
                launcher = self.tuned.launcher(device)
            return launcher.launch(self.args, _OF_CONFIG, grid, stream, attributes)
        except TilefoldError as error:
            raise shown(error) from error.__cause__


class UnusedTunedCall(TunedCall):
    """A call that has neither launched nor built anything yet; see `UnusedCall`."""

    __slots__ = ()

    def __del__(self) -> None:
        if hasattr(self, "tuned"):
            warn_if_dropped(self.tuned, self.tuned.function.__name__, "launch()")


def autotune(
    *,
    configs: Iterable[Config],
    grid: Sized,
    block: Sized,
    prune: Callable[[Candidate], bool] = without_spills,
    executor: "Executor | None" = None,
    repeat: int = 20,
    time_on_workers: bool = False,
) -> Callable[[Kernel], Tuned]:
    """Makes a kernel choose among configurations, values of its `Constexpr` parameters:

        @cute.autotune(configs=[{"BM": 64}, {"BM": 128}], grid=lambda c: M // c["BM"], block=128)
        @cute.kernel
        def kernel(A, B, BM: cute.Constexpr): ...


        kernel(a, b).launch()

    `grid` and `block` are evaluated once for arguments of the same types. `prune` decides which compiled
    configurations are timed. `executor` compiles; by default processes of this machine do. Each is timed `repeat` times
    on the arguments of the first call of their types; results are kept on disk. With `time_on_workers` the workers of
    the executor time, each on its own GPU and on arrays of the same types. Another worker takes over the work of a lost
    one, up to two times. Raises LaunchError for a configuration that names no constant, or leaves one without a value
    that another names, and for workers without an executor.
    """
    chosen = tuple(configs)
    if time_on_workers and executor is None:
        hint = "pass executor=, such as the executor of a dask.distributed client"
        raise LaunchError(Code.RUN_LAUNCH, "there are no workers to time configurations", hint)

    def tuned(kernel: Kernel) -> Tuned:
        if not isinstance(kernel, Kernel):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LaunchError(
                Code.RUN_LAUNCH, f"{kernel!r} is not a kernel", "decorate the function with @cute.kernel first"
            )
        _check(kernel.signature, chosen)
        return Tuned(Tuner(kernel, chosen, grid, block, prune, executor, repeat, time_on_workers))

    return tuned


def _check(signature: Signature, configs: tuple[Config, ...]) -> None:
    if not configs:
        raise LaunchError(Code.RUN_LAUNCH, "no configurations to choose from", "give configs=[{...}, ...]")
    named = {name for config in configs for name in config}
    if unknown := named - signature.constants:
        raise LaunchError(
            Code.RUN_ARGUMENT,
            f"the configuration names '{min(unknown)}', which is not a constant of the kernel",
            f"its constants: {', '.join(sorted(signature.constants)) or 'none'}",
        )
    for config in configs:
        if missing := named - config.keys() - signature.defaults.keys():
            raise LaunchError(
                Code.RUN_ARGUMENT, f"the configuration {dict(config)} has no value for '{min(missing)}'",
                "name it in each configuration, or give the parameter a default",
            )  # fmt: skip
