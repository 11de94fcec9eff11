# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as operators of torch, which `torch.compile` leaves as they are (PyTorch, torch.library.custom_op)."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

from tilefold.layout.errors import Code
from tilefold.runtime.errors import LaunchError

from .kernel import Dim3, Kernel

_TYPES: Mapping[type, str] = MappingProxyType({int: "int", float: "float", bool: "bool"})


def torch_op(
    name: str,
    kernel: Kernel,
    *,
    grid: Dim3 | Callable[..., Dim3],
    block: Dim3 | Callable[..., Dim3],
    mutates: Sequence[str],
    scalars: Mapping[str, type] = MappingProxyType({}),
    **constants: Any,
) -> Any:
    """An operator of torch that launches a kernel: `op(A, B)`, also as `torch.ops.<name>`, and under `torch.compile`.

    `name` is "namespace::operator". Its arguments are the kernel's parameters but for `constants`, in their order:
    tensors, or numbers of the types in `scalars` (int, float, bool). It writes the tensors in `mutates` and returns
    nothing. `grid` and `block` are sizes, or functions of the arguments. There is no gradient; one is registered by
    `op.register_autograd` as for any custom operator.

    Raises LaunchError for names that are none of the kernel's, ImportError without torch.
    """
    names = kernel.signature.names
    schema = operator_schema(names, mutates, scalars, constants)
    passed = [each for each in names if each not in constants]

    def launch(*args: Any) -> None:
        given = dict(zip(passed, args, strict=True))
        sizes = [size(*args) if callable(size) else size for size in (grid, block)]
        kernel(**given, **constants).launch(sizes[0], sizes[1], device="cuda")

    def fake(*args: Any) -> None:
        """What is known of the results without running: there are none."""

    library: Any = import_module("torch").library
    op = library.custom_op(name, launch, mutates_args=tuple(mutates), device_types="cuda", schema=schema)
    op.register_fake(fake)
    return op


def operator_schema(
    names: Sequence[str], mutates: Sequence[str], scalars: Mapping[str, type], constants: Mapping[str, Any]
) -> str:
    """The schema of the operator of a kernel with these parameters (PyTorch, native_functions.yaml, func)."""
    for what, given in (("mutates", mutates), ("scalars", scalars), ("the constants", constants)):
        for each in given:
            if each not in names:
                raise LaunchError(
                    Code.RUN_ARGUMENT, f"{what} names '{each}', which is no parameter of the kernel",
                    f"its parameters: {', '.join(names) or 'none'}",
                )  # fmt: skip
    words: list[str] = []
    for each in names:
        if each in constants:
            continue
        if each in scalars:
            if scalars[each] not in _TYPES or each in mutates:
                raise LaunchError(
                    Code.RUN_ARGUMENT, f"'{each}' cannot be a {scalars[each].__name__} here", "int, float or bool"
                )
            words.append(f"{_TYPES[scalars[each]]} {each}")
        elif each in mutates:
            words.append(f"Tensor(a{len(words)}!) {each}")
        else:
            words.append(f"Tensor {each}")
    return f"({', '.join(words)}) -> ()"
