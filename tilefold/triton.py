# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of Triton on the simulator: `tilefold.triton.check(kernel[grid], A, B, n, BLOCK=128)`.

Triton compiles without a GPU. Its PTX is run, and messages are at the lines of the kernel in Python.
"""

import inspect
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np

from tilefold.base.element_types import ELEMENTS
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import DEFAULT_ARCH, WARP, Target
from tilefold.compiler.frontend.source import read_text
from tilefold.cute.loaded_ptx import PtxKernel, PtxKernelCall
from tilefold.driver.faults import Report
from tilefold.driver.ptx_module import PtxModule, PtxSource
from tilefold.runtime.arrays.array import array_of, is_array
from tilefold.runtime.engine import RunResult
from tilefold.runtime.errors import argument_error

_UNIT = 16
"""A divisor of addresses and integers for which Triton specialises kernels."""


def check(
    kernel: object,
    *args: object,
    target: str = DEFAULT_ARCH,
    outputs: Collection[str] = (),
    seed: int = 0,
    resident: int = 1,
    numbers: bool = False,
    processes: int | None = None,
    max_steps: int | None = None,
    max_memory: int | None = None,
    **more: object,
) -> Report:
    """All faults of a launch of a Triton kernel, on copies of its arguments. `kernel` is `k[grid]`, and the arguments
    are those of its call, with options of Triton such as `num_warps`; arrays are in the host's memory. An autotuned
    kernel is compiled with its first configuration. `outputs` name the arrays that count as unwritten before the
    launch. The other options are those of `load_ptx(...).check`.

    An instruction that is not supported makes the verdict `incomplete`. TilefoldError (E2305) without Triton, (E2304)
    for a kernel that it does not compile, and LaunchError for arguments that do not fit.
    """
    call = _Compiled.of(kernel, args, more, target)
    return call.call.check(
        call.grid, call.block, outputs=outputs, shared=call.shared, seed=seed, resident=resident, numbers=numbers,
        processes=processes, max_steps=max_steps, max_memory=max_memory,
    )  # fmt: skip


def launch(kernel: object, *args: object, target: str = DEFAULT_ARCH, **more: object) -> RunResult:
    """Runs a launch of a Triton kernel on the simulator, with its checks; see `check`. SimulationError for a fault."""
    call = _Compiled.of(kernel, args, more, target)
    return call.call.launch(call.grid, call.block, shared=call.shared)


@dataclass(frozen=True)
class _Compiled:
    """A launch of a kernel that Triton has compiled: its call, its sizes, and its bytes of shared memory."""

    call: PtxKernelCall
    grid: Any
    block: int
    shared: int

    @classmethod
    def of(cls, launcher: object, args: tuple[object, ...], more: dict[str, Any], target: str) -> "_Compiled":
        kernel, grid = _parts(launcher)
        kernel, given = _configured(kernel, args, dict(more))
        names = list(kernel.arg_names)
        options = {name: value for name, value in given.items() if name not in names}
        bound = kernel.signature.bind(*args, **{name: value for name, value in given.items() if name in names})
        bound.apply_defaults()
        values: dict[str, Any] = dict(bound.arguments)
        fixed = {p.name for p in kernel.params if p.is_constexpr} | {n for n, v in values.items() if v is None}
        compiled = _compile(kernel, values, fixed, options, target)
        sizes: Any = grid({**values, **options}) if callable(grid) else grid
        source = inspect.getsourcefile(kernel.fn) or "<triton>"
        text = read_text(source)
        module = PtxModule.compiled(compiled.asm["ptx"], PtxSource(source, text, text))
        function = module.find(compiled.metadata.name)
        passed = {name: value for name, value in values.items() if name not in fixed}
        scratch: list[Any] = [0] * (len(function.parameters) - len(passed))  # addresses that not every kernel uses
        if scratch and (size := compiled.metadata.global_scratch_size):
            blocks = math.prod(cast("Sequence[int]", sizes)) if isinstance(sizes, Sequence) else int(sizes)
            scratch[0] = np.zeros(size * blocks * compiled.metadata.num_ctas, np.uint8)
        passed |= {f"scratch_{number}": given for number, given in enumerate(scratch)}
        call = PtxKernelCall(PtxKernel(module, function, tuple(passed)), tuple(passed.values()))
        return cls(call, sizes, WARP * compiled.metadata.num_warps, compiled.metadata.shared)


def _parts(launcher: object) -> tuple[Any, Any]:
    """The kernel and the grid of `kernel[grid]`, which is a function of Triton's."""
    nonlocals: Mapping[str, object] = inspect.getclosurevars(launcher).nonlocals if inspect.isfunction(launcher) else {}
    if not {"self", "grid"} <= set(nonlocals):
        raise TilefoldError(
            Code.RUN_LAUNCH, "this is not a launch of a Triton kernel", "write check(kernel[grid], ...)"
        )
    return nonlocals["self"], nonlocals["grid"]


def _configured(kernel: Any, args: tuple[object, ...], given: dict[str, object]) -> tuple[Any, dict[str, Any]]:
    """The function in a kernel that is autotuned or has heuristics, with the values that these give."""
    while not hasattr(kernel, "params"):
        if hasattr(kernel, "configs"):
            given = {**kernel.configs[0].all_kwargs(), **given}
        for name, function in getattr(kernel, "values", {}).items():
            given[name] = function({**dict(zip(kernel.arg_names, args, strict=False)), **given})
        kernel = kernel.fn
    return kernel, given


def _compile(
    kernel: Any, values: Mapping[str, object], fixed: set[str], options: Mapping[str, object], target: str
) -> Any:
    """The kernel as Triton compiles it, for arguments of these types and divisors."""
    try:
        compiler, backends = import_module("triton.compiler"), import_module("triton.backends.compiler")
    except ImportError as error:
        problem = f"Triton cannot be loaded: {error}"
        raise TilefoldError(Code.FOREIGN_UNAVAILABLE, problem, "`pip install triton`; it needs no GPU") from error
    signature = {n: "constexpr" if n in fixed else _type_of(n, value) for n, value in values.items()}
    constants = {name: values[name] for name in fixed}
    plain = {p.name for p in kernel.params if p.do_not_specialize}
    divided = [
        index
        for index, (name, value) in enumerate(values.items())
        if name not in fixed | plain and _place_of(name, value) % _UNIT == 0
    ]
    attributes = {(index,): [["tt.divisibility", _UNIT]] for index in divided}
    source = compiler.ASTSource(kernel, signature, constants, attributes)
    number = Target(target).sm
    try:
        return compiler.compile(source, target=backends.GPUTarget("cuda", number, WARP), options=options)
    except Exception as error:  # of whatever class Triton's passes raise
        text = " ".join(str(error).splitlines()[:1])
        raise TilefoldError(Code.FOREIGN_REFUSED, f"Triton does not compile {kernel.fn.__name__}: {text}") from error


def _place_of(name: str, value: object) -> int:
    """A number that Triton tests for divisibility by 16: an address, or an integer."""
    if is_array(value):
        return array_of(name, value).place
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def _type_of(name: str, value: object) -> str:
    """The type of an argument as Triton names it. LaunchError (E3106) for other arguments."""
    if is_array(value):
        element = ELEMENTS[array_of(name, value).dtype]
        if element.kind == "float":  # of 8 bits by the bits of the exponent; those of NVIDIA are finite
            eight = f"fp8e{element.exponent}{'nv' if element.finite else ''}"
            return "*" + (eight if element.bits == 8 else f"fp{element.bits}" if element.in_numpy else element.mlir)
        return f"*{'u' if element.kind == 'int' and element.unsigned else 'i'}{element.bits}"
    match value:
        case bool():
            return "i1"
        case int():
            return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
        case float():
            return "fp32"
        case _:
            raise argument_error(name, f"is {type(value).__name__}, which Triton has no type for")
