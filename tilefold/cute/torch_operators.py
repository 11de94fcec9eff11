# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as operators of torch, which `torch.compile` leaves as they are (PyTorch, torch.library.custom_op)."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

from tilefold.base.errors import Code
from tilefold.builder.scalars.dtypes import DType
from tilefold.runtime.errors import LaunchError

from .autotuned_kernel import Tuned
from .debugging_methods import Size
from .kernel import Kernel
from .parameters import Signature
from .tuning import Sized

_TYPES: Mapping[str, type] = MappingProxyType({"int": int, "float": float, "bool": bool})
"""The numbers that operators take, by their names in a schema, which are the kinds of a `DType`, too."""


def torch_op(
    name: str,
    kernel: Kernel | Tuned,
    *,
    grid: Size | Callable[..., Sized] | None = None,
    block: Size | Callable[..., Size] | None = None,
    mutates: Sequence[str],
    scalars: Mapping[str, type] = MappingProxyType({}),
    options: Mapping[str, Any] = MappingProxyType({}),
    **constants: Any,
) -> Any:
    """A torch operator that launches a kernel: `op(A, B)`, also as `torch.ops.<name>`, and under `torch.compile`.

    `name` is "namespace::operator". Its arguments are the kernel's parameters but for `constants` and for those that
    are `Constexpr` and have a default, in their order: tensors, or numbers where the annotation is a type such as
    `cute.Int32` or where `scalars` says so (int, float, bool). A tensor with the default None can be left out. The
    operator writes the tensors in `mutates` and returns nothing. `grid` and `block` are sizes, or functions of the
    arguments. A tuned kernel has its own; `grid` may give another, also as a function of the configuration, which a
    function of the arguments returns. On tensors of the CPU it runs as a launch on the host's arrays does: by the GPU,
    or the simulator where there is none. `options` are further arguments of each `launch`, such as `{"races": False}`.
    There is no gradient; `op.register_autograd` takes one only for operators that write no arguments, so it is one of a
    `torch.autograd.Function` around the call.

    Raises LaunchError for names that are not parameters of the kernel, for constants without a value, and for a missing
    block or grid, ImportError without torch.
    """
    if not isinstance(kernel, Kernel | Tuned):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "pass a function that is decorated with @cute.kernel"
        raise LaunchError(Code.RUN_LAUNCH, f"operator '{name}': {kernel!r} is not a kernel", hint)
    if not re.fullmatch(r"\w+::\w+", name):
        raise LaunchError(Code.RUN_LAUNCH, f"'{name}' is not the name of an operator", "write namespace::operator")
    sizes = {dimension: size for dimension, size in (("grid", grid), ("block", block)) if size is not None}
    if isinstance(kernel, Tuned) and block is not None:
        raise LaunchError(Code.RUN_LAUNCH, f"operator '{name}' has a block", "leave it out: autotune has one")
    if isinstance(kernel, Kernel) and len(sizes) < 2:
        raise LaunchError(Code.RUN_LAUNCH, f"operator '{name}' lacks a grid or a block", "give grid= and block=")
    signature = kernel.signature
    passed = _operator_parameters(signature, constants)
    schema = operator_schema(signature, (mutates,) if isinstance(mutates, str) else mutates, scalars, constants)
    defaults = {parameter: signature.defaults[parameter] for parameter in passed if parameter in signature.defaults}

    def launch(*args: object, **named: object) -> None:
        given = {**defaults, **dict(zip(passed, args, strict=False)), **named}
        values = [given[parameter] for parameter in passed]
        requested: Any = {dimension: size(*values) if callable(size) else size for dimension, size in sizes.items()}
        kernel(**given, **constants).launch(**requested, **options)

    def fake(*args: object, **named: object) -> None:
        """The operator has no results."""

    library = import_module("torch").library
    written = tuple(parameter for parameter in passed if parameter in mutates)
    op = library.custom_op(name, launch, mutates_args=written, device_types=("cpu", "cuda"), schema=schema)
    op.register_fake(fake)
    return op


def operator_schema(
    signature: Signature, mutates: Sequence[str], scalars: Mapping[str, type], constants: Mapping[str, object]
) -> str:
    """The schema of the operator of a kernel with these parameters (PyTorch, native_functions.yaml, func)."""
    names = signature.names
    for subject, given in (("mutates", mutates), ("scalars", scalars), ("the constants", constants)):
        for name in given:
            if name not in names:
                raise LaunchError(
                    Code.RUN_ARGUMENT, f"{subject} names '{name}', which is not a parameter of the kernel",
                    f"its parameters: {', '.join(names) or 'none'}",
                )  # fmt: skip
    words: list[str] = []
    for name in _operator_parameters(signature, constants):
        type = _scalar(signature, scalars, name)
        has_default = name in signature.defaults
        default = signature.defaults.get(name)
        if name in signature.constants:
            raise LaunchError(Code.RUN_ARGUMENT, f"the constant '{name}' has no value", f"torch_op(..., {name}=...)")
        if type is not None:
            if type not in _TYPES.values() or name in mutates:
                raise LaunchError(Code.RUN_ARGUMENT, f"'{name}' cannot be a {type.__name__} here", "int, float or bool")
            words.append(f"{type.__name__} {name}" + (f"={type(default)}" if has_default else ""))
        else:
            alias = f"(a{len(words)}!)" if name in mutates else ""
            words.append(f"Tensor{alias}? {name}=None" if has_default and default is None else f"Tensor{alias} {name}")
    return f"({', '.join(words)}) -> ()"


def _operator_parameters(signature: Signature, constants: Mapping[str, object]) -> list[str]:
    """The parameters that are arguments of the operator."""
    chosen = signature.constants & signature.defaults.keys() | constants.keys()
    return [name for name in signature.names if name not in chosen]


def _scalar(signature: Signature, scalars: Mapping[str, type], name: str) -> type | None:
    """The type of Python of a number; None for a tensor."""
    annotation = signature.signature.parameters[name].annotation
    declared = scalars.get(name)
    return _TYPES.get(annotation.kind) if declared is None and isinstance(annotation, DType) else declared
