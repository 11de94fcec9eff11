# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the library, of which each is an operator of torch, too.

An operator consists of two functions: one checks the arguments and makes places for the results, the other launches
kernels that write them. Without values, the first one alone is the operator for torch's fake tensors. On tensors that
need no gradient, outside of torch.compile, a call goes straight to the two functions.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .arguments import Array, is_jax, is_torch
from .replay import Launches, key_of, replay_of

MOST_KNOWN = 4096
"""The most shapes of a function whose launches are kept."""
NAMESPACE = "tilefold"
"""The namespace of the operators: `torch.ops.tilefold`."""


@dataclass(frozen=True)
class Gradient:
    """The functions that torch calls for a gradient (PyTorch, torch.library.register_autograd): `keep` takes the
    context, the arguments and the results, `backward` the context and the gradients of the results.
    """

    keep: Callable[..., None]
    backward: Callable[..., Any]


@dataclass(frozen=True)
class Operator:
    """A function by its name, its schema (PyTorch, native_functions.yaml, func), `places` for its results, and
    `launch`, which says what writes them: it takes them first, then the arguments.
    """

    name: str
    schema: str
    places: Callable[..., tuple[Array, ...]]
    launch: Callable[..., Launches]
    gradient: Gradient | None = None
    _known: dict[Any, Callable[..., Any]] = field(default_factory=dict[Any, Any], init=False, compare=False)
    """What repeats the launches for tensors alike."""

    def __post_init__(self) -> None:
        _OPERATORS[self.name] = self

    def __call__(self, *args: Any) -> Any:
        """The results for arguments in the order of the schema, of which the first is an array."""
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(args[0], torch.Tensor):
            if torch.compiler.is_compiling():
                return getattr(torch.ops.tilefold, _registered(self.name))(*args)
            if needs_operator(torch, args):
                return self.of_torch(*args)
            return self.run(*args)
        if is_jax(args[0]):
            return self._on_copies(args)
        return self.run(*args)

    def run(self, *args: Any) -> Any:
        """The results, by kernels."""
        key = key_of(args) if is_torch(args[0]) else None
        if key is not None and (replay := self._known.get(key)) is not None:
            return replay(*args)
        places, launches = self.places(*args), list[Any]()
        device = args[self.device_at]
        for launch in self.launch(places, *args):
            if launch is not None:
                launch.run(args[0], device)
            launches.append(launch)
        if key is not None and launches and None not in launches:
            replay = replay_of(args, places, launches, device, self.gives_one)
            if replay is not None:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[key] = replay
        return places[0] if self.gives_one else places

    def fake(self, *args: Any) -> Any:
        """Places for the results, unwritten."""
        places = self.places(*args)
        return places[0] if self.gives_one else places

    @cached_property
    def device_at(self) -> int:
        """The place of the device among the arguments."""
        names = [argument.split()[-1] for argument in self.schema[1 : self.schema.index(") ->")].split(", ")]
        return names.index("device")

    @cached_property
    def gives_one(self) -> bool:
        """Whether there is one result alone."""
        return self.schema.endswith("-> Tensor")

    @cached_property
    def of_torch(self) -> Any:
        """The operator as torch has it."""
        library: Any = sys.modules["torch"].library
        name = f"{NAMESPACE}::{self.name}"
        made = library.custom_op(name, self.run, mutates_args=(), device_types=("cpu", "cuda"), schema=self.schema)
        made.register_fake(self.fake)
        if self.gradient is not None:
            made.register_autograd(self.gradient.backward, setup_context=self.gradient.keep)
        return made

    def _on_copies(self, args: tuple[Any, ...]) -> Any:
        """The results for arrays of JAX, which nobody may write: copies in the host's memory go to kernels and back."""
        import numpy as np

        jax: Any = sys.modules["jax"]
        results = self.run(*(np.array(arg) if is_jax(arg) else arg for arg in args))
        device = next(iter(args[0].devices()))
        return jax.device_put(results, device)


_OPERATORS: dict[str, Operator] = {}
"""All operators by their names, for `_registered`."""


def _registered(name: str) -> str:
    """The name of an operator that torch has. While torch.compile traces, it cannot register one; it executes a
    function with the mark of `torch.compiler.assume_constant_result`, and takes the result as a constant.
    """
    _ = _OPERATORS[name].of_torch
    return name


_registered._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]


def needs_operator(torch: Any, args: tuple[Any, ...]) -> bool:
    """Whether torch must know of a call: for a gradient, or as one of its tensors stands for another."""
    grad = torch.is_grad_enabled()
    for arg in args:
        if isinstance(arg, torch.Tensor):
            if grad and arg.requires_grad:
                return True
            kind: Any = type(arg)  # pyright: ignore[reportUnknownVariableType]
            if kind is not torch.Tensor and kind is not torch.nn.Parameter:
                return True
            if arg.is_meta:
                return True
    return False
