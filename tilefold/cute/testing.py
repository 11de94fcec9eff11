# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timing compiled functions and converting tensors, `cute.testing`."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from tilefold.base.element_types import ELEMENTS
from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.instructions.printing import assert_ as assert_
from tilefold.runtime.arrays.array import Array, array_of
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.streams import handle_of

from .arch import block_idx, thread_idx
from .argument_errors import checked
from .dtypes import Int32
from .host.compiler import compile
from .jit import JitFunction
from .kernel import kernel
from .specialise import unmark

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from tilefold.runtime.engine import NumPyArray

    from .host.compiled import CompiledFunction

_BLOCK = 256
_CACHES = 3
"""The workspaces of a cold-cache benchmark take this many times the size of the L2 cache."""
_NO_GPU_L2 = 1 << 20


class CantImplementError(Exception):
    """The error of a program whose kernel does not support a configuration."""


class JitArguments:
    """The arguments of one call of a compiled function."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.args = args
        self.kwargs = kwargs
        self._references: list[Any] = []

    def add_to_scope(self, references: Sequence[object]) -> None:
        """Keeps objects alive as long as the arguments are."""
        self._references += references


@checked
def benchmark(
    callable: Callable[..., object],
    *,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: object = None,
    kernel_arguments: JitArguments | None = None,
    workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1,
    use_cuda_graphs: bool = False,
    nvtx_tag: str = "",
    use_cupti: bool = False,
) -> float:
    """The mean time of a call in microseconds, over `iterations` calls after `warmup_iterations`.

    The arguments of the calls are those that `workspace_generator` returns, `workspace_count` of them in turns, or else
    `kernel_arguments`. On a GPU events in `stream` measure, with `use_cuda_graphs` of a graph of all calls. Without
    a GPU there is one call, whose time is that of the simulator. `nvtx_tag` and `use_cupti` change nothing.
    LaunchError (E3105) for senseless numbers.
    """
    if not hasattr(callable, "__call__"):  # noqa: B004  # the function of this name is hidden
        message = f"an object of type {type(callable).__name__} cannot be called"
        raise LaunchError(Code.RUN_LAUNCH, message, "pass a compiled function, or any other")
    if iterations < 1 or warmup_iterations < 0 or workspace_count < 1:
        message = f"{iterations} iterations after {warmup_iterations} on {workspace_count} workspaces"
        raise LaunchError(Code.RUN_LAUNCH, message, "give at least one iteration and one workspace")
    made = [workspace_generator() for _ in range(workspace_count)] if workspace_generator is not None else []
    workspaces = made or [JitArguments() if kernel_arguments is None else kernel_arguments]

    def calls(first: int, count: int) -> None:
        for number in range(first, first + count):
            given = workspaces[number % len(workspaces)]
            callable(*given.args, **given.kwargs)

    from tilefold.runtime.cuda import is_available

    if not is_available():
        began = time.perf_counter()
        calls(0, 1)
        return 1e6 * (time.perf_counter() - began)
    calls(0, warmup_iterations)
    from .host.streams import graph_of, milliseconds

    handle = 0 if stream is None else handle_of(stream)

    def run() -> None:
        calls(warmup_iterations, iterations)

    timed = graph_of(run, handle) if use_cuda_graphs else run
    return 1e3 * milliseconds(timed, handle) / iterations


def exact(expectation: Callable[..., object], *arrays: object) -> Any:
    """The result of a NumPy function on exact numbers: the function gets the arrays, with their contents before a
    launch, as arrays of exact numbers. `launch(..., exact=True).exact["C"] == exact(lambda a, b: a @ b, A, B)` says for
    each element of C whether it is right, whatever the order in which the kernel adds.

    Conversions to other floating-point types change nothing in them. Raises LaunchError for anything but arrays.
    """
    from tilefold.runtime.exact.number import exact_array

    return expectation(*[exact_array(_on_host(array_of("array", array))) for array in arrays])


@checked
def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """The number of workspaces that a benchmark needs so that the L2 cache has evicted each one before its next use."""
    from tilefold.runtime.cuda import is_available

    size = _NO_GPU_L2
    if is_available():
        from .host.streams import l2_bytes

        size = l2_bytes()
    wanted = -(-_CACHES * size // max(one_workspace_bytes, 1)) + 1
    return max(1, min(wanted, warmup_iterations + iterations))


@kernel
def _convert(source: Any, target: Any, count: Int32) -> None:
    block, _, _ = block_idx()
    t, _, _ = thread_idx()
    i = block * _BLOCK + t
    if i < count:
        target[i] = source[i].to(target.element_type)


@checked
def convert(source: object, target: object) -> None:
    """Writes the elements of a tensor to a tensor of the same shape, rounded to its element type. Raises LaunchError
    (E3106) for different shapes.
    """
    arrays = [array_of(name, unmark(x)) for name, x in (("source", source), ("target", target))]
    if arrays[0].shape != arrays[1].shape:
        message = f"shapes {arrays[0].shape} and {arrays[1].shape} differ"
        raise LaunchError(Code.RUN_ARGUMENT, message, "convert between tensors of one shape")
    if all(array.device is None for array in arrays):
        values = _on_host(arrays[0])
        if not _is_packed(arrays[1]):
            written = _on_host(arrays[1])
            written[...] = values.astype(written.dtype)
            return
        _write_packed(arrays[1], values)
        return
    count = prod(arrays[0].shape)
    _convert(source, target, count).launch(grid=-(-count // _BLOCK), block=_BLOCK)


def _is_packed(array: Array) -> bool:
    """Whether elements share bytes."""
    return ELEMENTS[array.dtype].memory_bits < 8


def _write_packed(array: Array, values: "NumPyArray") -> None:
    """Writes numbers to an array in the host's memory whose elements share bytes."""
    import ctypes

    import numpy as np

    from tilefold.runtime.arrays.storage import element_indices, pack
    from tilefold.runtime.engine import numpy_type

    element = ELEMENTS[array.dtype]
    storage = np.zeros(array.span, numpy_type(element))
    storage[element_indices(array.layout)] = values.astype(np.float32).astype(storage.dtype)
    packed = pack(storage, element.bits)
    ctypes.memmove(array.address, packed.ctypes.data, packed.nbytes)


def _on_host(array: Array) -> "NumPyArray":
    """An array on the host as a NumPy array; a copy if its elements share bytes."""
    import ctypes

    import ml_dtypes as ml_dtypes  # NumPy knows its types by their names then
    import numpy as np

    from tilefold.runtime.engine import strided_view

    if _is_packed(array):
        from tilefold.runtime.arrays.storage import element_indices, unpack

        held: Any = (ctypes.c_uint8 * array.bytes).from_address(array.address)
        element = ELEMENTS[array.dtype]
        elements = unpack(np.frombuffer(held, np.uint8), element.bits).view(np.dtype(element.library))
        return elements[element_indices(array.layout)]
    size = array.itemsize
    memory: Any = (ctypes.c_uint8 * (array.span * size)).from_address(array.address)
    flat = np.frombuffer(memory, np.dtype(ELEMENTS[array.dtype].library))
    return strided_view(flat, array.shape, [step * size for step in array.strides])


@checked
def tune(
    func: Callable[..., Callable[[], object]],
    params_dict: Mapping[str, Sequence[object]],
    kernel_arguments: JitArguments | None = None,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: object = None,
) -> dict[str, Any]:
    """The fastest combination of parameters: `func(*args, **parameters)` returns a function to time, or raises
    ValueError or TilefoldError for unsupported parameters, which `tune` skips.

    LaunchError (E3105) if no combination is left; its hint is the error of the last one.
    """
    given = kernel_arguments or JitArguments()
    best = None
    failure: Exception | None = None
    for values in product(*params_dict.values()):
        chosen = dict(zip(params_dict, values, strict=True))
        try:
            run = func(*given.args, **given.kwargs, **chosen)
            time = benchmark(run, warmup_iterations=warmup_iterations, iterations=iterations, stream=stream)
        except (ValueError, TilefoldError) as error:
            failure = error
            continue
        if best is None or time < best[0]:
            best = time, chosen
    if best is None:
        message = f"no combination of {', '.join(params_dict)} can be launched"
        raise LaunchError(Code.RUN_LAUNCH, message, f"the last one fails: {str(failure).partition(chr(10))[0]}")
    return best[1]


class AutotunedFunction(JitFunction[..., None]):
    """A host function whose calls have the fastest of several parameters; see `autotune_jit`. `cute.compile` takes it
    as the function itself, with the parameters that it is given.
    """

    def __init__(
        self,
        jit: JitFunction[..., Any],
        params_dict: Mapping[str, Sequence[object]],
        update_on_change: Sequence[str],
        iterations: tuple[int, int],
    ) -> None:
        super().__init__(jit.function, preprocessor=jit._lines is not None)
        self._params_dict, self._update_on_change, self._iterations = params_dict, update_on_change, iterations
        self._chosen: dict[tuple[Any, ...], CompiledFunction] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> None:
        given = self.signature.given(args, kwargs)
        key = tuple(given[name] for name in self._update_on_change)
        rest = {name: value for name, value in given.items() if name not in self._params_dict}

        def run(**parameters: object) -> Callable[[], Any]:
            made = compile(self, **rest, **parameters)
            return lambda: made(**rest)

        if key not in self._chosen:
            warmup, iterations = self._iterations
            best = tune(run, self._params_dict, warmup_iterations=warmup, iterations=iterations)
            self._chosen[key] = compile(self, **rest, **best)
        self._chosen[key](**rest)


def autotune_jit(
    params_dict: Mapping[str, Sequence[object]],
    update_on_change: Sequence[str] = (),
    warmup_iterations: int = 10,
    iterations: int = 100,
) -> Callable[[JitFunction[..., Any]], AutotunedFunction]:
    """A decorator above `cute.jit`: each call uses the fastest parameters of `params_dict`, constants of the function.

    They are found by timing all combinations on the arguments of the first call, and again where an argument that
    `update_on_change` names has another value.
    """

    def decorate(function: JitFunction[..., object]) -> AutotunedFunction:
        return AutotunedFunction(function, params_dict, update_on_change, (warmup_iterations, iterations))

    return decorate


def add_tensor_init_args(parser: "ArgumentParser", supports_int_dtypes: bool = False) -> None:
    """Adds `--init_normal`, for normally distributed numbers instead of uniform ones, with `--normal_mean` and
    `--normal_std`. With `supports_int_dtypes` the help says that tensors of integers stay uniform.
    """
    help = "fill tensors with normally distributed numbers" + ("; not those of integers" if supports_int_dtypes else "")
    parser.add_argument("--init_normal", action="store_true", help=help)
    parser.add_argument("--normal_mean", type=float, default=0.0, help="their mean (default: 0)")
    parser.add_argument("--normal_std", type=float, default=1.0, help="their standard deviation (default: 1)")


def validate_tensor_init_args(args: "Namespace", parser: "ArgumentParser") -> None:
    """Ends the program with a message of the parser if the standard deviation is not positive, or if it or the mean is
    given without `--init_normal`.
    """
    if args.normal_std <= 0:
        parser.error("--normal_std must be positive")
    if not args.init_normal and (args.normal_mean, args.normal_std) != (0.0, 1.0):
        parser.error("--normal_mean and --normal_std need --init_normal")
