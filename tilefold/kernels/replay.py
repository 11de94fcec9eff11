# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of a function of the library, and functions that repeat them for torch tensors alike.

The first call for tensors of some shapes, strides and types checks them and chooses kernels; what it launches is
written down as a function of Python, which later calls run at once.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilefold.cute.kernel import Kernel
from tilefold.runtime.arrays.signature import Marked
from tilefold.runtime.options import launch_attributes


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with its arguments, grid and block, and further options of the launch."""

    kernel: Kernel
    args: tuple[Any, ...]
    grid: Any
    block: int
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def run(self, first: Any, device: str) -> None:
        """Launches; `first` is the first argument of the function."""
        args = [arg.make(first) if isinstance(arg, Late) else arg for arg in self.args]
        self.kernel(*args).launch(self.grid, self.block, device=device, **self.options)


@dataclass(frozen=True, slots=True)
class Late:
    """An argument that each launch makes, from the first argument of the function."""

    make: Callable[[Any], Any]


Launches = Iterator[Launch | None]
"""What a function launches, one after the other; None for anything else that it does, which cannot be repeated."""


def key_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """A key that is equal for arguments whose launches are the same: torch tensors, numbers and texts."""
    tensor, parts, addresses = sys.modules["torch"].Tensor, list[Any](), list[int]()
    for arg in args:
        if isinstance(arg, tensor):
            x: Any = arg
            address = x.data_ptr()
            addresses.append(address)
            parts += x.shape, x.stride(), x.dtype, address & 15, x.get_device()
        else:
            parts.append(arg)
    if len(set(addresses)) < len(addresses):  # which of the tensors are one
        parts += map(addresses.index, addresses)
    return tuple(parts)


def replay_of(
    args: Sequence[Any], places: Sequence[Any], launches: Sequence[Launch], device: str, gives_one: bool
) -> Callable[..., Any] | None:
    """A function of the arguments that makes places for the results, repeats the launches and returns the places.

    None if a launch has an array that is neither an argument nor a place, nor a view of one.
    """
    scope: dict[str, Any] = {"Marked": Marked}

    def name(value: object) -> str:
        scope[f"c{len(scope)}"] = value
        return f"c{len(scope) - 1}"

    known = [(f"a{i}", x) for i, x in enumerate(args) if _is_tensor(x)]
    known += [(f"p{i}", x) for i, x in enumerate(places)]
    names = [f"a{i}" for i in range(len(args))]
    lines = [f"    p{i} = a0.new_empty({name(tuple(x.shape))}, dtype={name(x.dtype)})" for i, x in enumerate(places)]
    for launch in launches:
        given = [_written(arg, known, name) for arg in launch.args]
        if None in given:
            return None
        launcher, options = launch.kernel.launchers.get(device), launch.options
        text, grid, block = "".join(f"{each}, " for each in given), name(launch.grid), name(launch.block)
        if launcher is None:  # on the simulator
            kernel = name(launch.kernel)
            lines.append(f"    {kernel}({text}).launch({grid}, {block}, device={name(device)}, **{name(options)})")
        else:
            attributes = launch_attributes(options.get("cluster"), options.get("use_pdl", False)) if options else ()
            lines.append(f"    {name(launcher.launch)}(({text}), {block}, {grid}, None, {name(attributes)})")
    results = [f"p{i}" for i in range(len(places))]
    result = "p0" if gives_one else f"({', '.join(results)},)"
    exec(f"def replay({', '.join(names)}):\n" + "\n".join([*lines, f"    return {result}"]), scope)
    return scope["replay"]


def _is_tensor(x: object) -> bool:
    return isinstance(x, sys.modules["torch"].Tensor)


def _written(arg: Any, known: Sequence[tuple[str, Any]], name: Callable[[object], str]) -> str | None:
    """An argument of a launch as an expression; None for an array that is not known."""
    if isinstance(arg, Late):
        return f"{name(arg.make)}(a0)"
    if isinstance(arg, Marked):
        inner = _written(arg.array, known, name)
        return None if inner is None else f"Marked({inner}, {name(arg.rule)})"
    if not _is_tensor(arg):
        return name(arg)
    for text, x in known:
        if x is arg:
            return text
    for text, x in known:
        same = x.numel() and x.data_ptr() == arg.data_ptr() and x.dtype == arg.dtype and x.numel() == arg.numel()
        if same and x.is_contiguous() and arg.is_contiguous():
            return f"{text}.view({name(tuple(arg.shape))})"
    return None
