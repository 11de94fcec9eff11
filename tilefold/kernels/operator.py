# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the library; each is an operator of torch, too.

An operator consists of two functions: one checks the arguments and makes places for the results, the other launches
kernels that write them. Without values, the first one alone is the operator for torch's fake tensors.

Torch's dispatcher takes longer than a launch. So only torch.compile and tensors that stand for others go through it.
All other calls go straight to the two functions, or repeat their launches for tensors alike.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, Protocol

from .arguments import Array, is_jax, is_torch
from .replay import Launch, Launches, Replay, key_of, replay_of

MOST_KNOWN = 4096
"""The most shapes of a function whose launches are kept."""
NAMESPACE = "tilefold"
"""The namespace of the operators: `torch.ops.tilefold`."""


class GradientContext(Protocol):
    """The context of a gradient, in which `Gradient.keep` leaves tensors and attributes for `Gradient.backward`
    (PyTorch, torch.autograd.function.FunctionCtx).
    """

    def save_for_backward(self, *tensors: object) -> None:
        """Keeps tensors, or None, which `saved_tensors` returns in the same order."""
        ...

    def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: object) -> None: ...


@dataclass(frozen=True)
class Gradient:
    """The functions that torch calls for a gradient (PyTorch, torch.autograd.Function): `keep` takes the context, the
    arguments and the results, `backward` the context and the gradients of the results.
    """

    keep: Callable[..., None]
    backward: Callable[..., object]


GradientOnly = Callable[..., tuple[int, ...]]
"""The numbers of the results that only gradients read, for the arguments of a call."""


@dataclass
class Calls:
    """Calls of an operator that leave out the results that are `gradient_only`: they repeat launches where they can."""

    operator: "Operator"
    gradient_only: "GradientOnly | None"
    last: Replay = field(init=False)
    known: dict[Any, Replay] = field(default_factory=dict[Any, Replay])

    def __post_init__(self) -> None:
        self.last = _nothing_yet

    def __call__(self, *args: Any) -> Any:
        """The results, by kernels."""
        result = self.last(*args)
        return result if result is not NotImplemented else self.search(args)

    def search(self, args: tuple[object, ...]) -> Any:
        """The same where the last launches cannot be repeated."""
        key = key_of(args) if is_torch(args[0]) else None
        if key is not None and (known := self.known.get(key)) is not None:
            result = known(*args)
            if result is not NotImplemented:
                self.last = known
                return result
        return self.first(args, key)

    def first(self, args: tuple[Any, ...], key: Any) -> Any:
        """The same for the first of calls alike."""
        operator, steps = self.operator, list[Any]()
        gradient_only = () if self.gradient_only is None else self.gradient_only(*args)
        places = tuple(None if i in gradient_only else x for i, x in enumerate(operator.places(*args)))
        device = args[operator.device_at]
        for step in operator.launch(places, *args):
            if isinstance(step, Launch):
                step.run(args[0], device)
            steps.append(step)
        if key is not None and steps and None not in steps:
            replay = replay_of(args, places, steps, device)
            if replay is not None:
                if len(self.known) >= MOST_KNOWN:
                    self.known.clear()
                self.known[key] = self.last = replay
        return places[0] if operator.gives_one else places


def _nothing_yet(*_: object) -> Any:
    return NotImplemented


@dataclass(frozen=True)
class Operator:
    """A function by its name, its schema (PyTorch, native_functions.yaml, func), `places` for its results, and
    `launch`, which writes them: it takes them first, then the arguments. Results that are `gradient_only` serve
    gradients alone: where none is needed, they are None.
    """

    name: str
    schema: str
    places: Callable[..., tuple[Array, ...]]
    launch: Callable[..., Launches]
    gradient: Gradient | None = None
    gradient_only: GradientOnly | None = None

    def __post_init__(self) -> None:
        _OPERATORS[self.name] = self

    def __call__(self, *args: Any) -> Any:
        """The results for arguments in the order of the schema; the first is an array."""
        torch = sys.modules.get("torch")
        if torch is not None and torch.compiler.is_compiling():
            return getattr(torch.ops.tilefold, _registered(self.name))(*args)
        result = self.lean.last(*args)
        return result if result is not NotImplemented else self.search(torch, args)

    def search(self, torch: ModuleType | None, args: tuple[object, ...]) -> Any:
        """The results where the last launches cannot be repeated."""
        if torch is not None and isinstance(args[0], torch.Tensor):
            needs = needs_of(torch, args)
            if needs == "operator" or (needs == "gradient" and self.gradient is None):
                return self.of_torch(*args)
            if needs == "gradient":
                return self.function.apply(*args)
        elif is_jax(args[0]):
            return self._on_copies(args)
        return self.lean.search(args)

    @cached_property
    def run(self) -> Calls:
        """Calls for all results, without a gradient."""
        return Calls(self, None)

    @cached_property
    def lean(self) -> Calls:
        """Calls for the results that a caller without a gradient reads."""
        return Calls(self, self.gradient_only) if self.gradient_only else self.run

    def fake(self, *args: object) -> Any:
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
    def function(self) -> Any:
        """The function with its gradient for torch's eager mode."""
        gradient = self.gradient
        assert gradient is not None
        run, keep = self.run, gradient.keep

        def forward(ctx: object, *args: object) -> Any:
            results = run(*args)
            keep(ctx, args, results)
            return results

        members: dict[str, Any] = {"forward": staticmethod(forward), "backward": staticmethod(gradient.backward)}
        return type(self.name, (sys.modules["torch"].autograd.Function,), members)

    @cached_property
    def of_torch(self) -> Any:
        """The operator that is registered with torch's dispatcher."""
        library = sys.modules["torch"].library
        name = f"{NAMESPACE}::{self.name}"
        options = {"device_types": ("cpu", "cuda"), "schema": self.schema}
        made = library.custom_op(name, self.run.__call__, mutates_args=(), **options)
        made.register_fake(self.fake)
        if self.gradient is not None:
            made.register_autograd(self.gradient.backward, setup_context=self.gradient.keep)
        return made

    def _on_copies(self, args: tuple[Any, ...]) -> Any:
        """The results for arrays of JAX, which nobody may write: copies in the host's memory go to kernels and back."""
        import numpy as np

        jax = sys.modules["jax"]
        results = self.lean(*(np.array(arg) if is_jax(arg) else arg for arg in args))
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


def needs_of(torch: ModuleType, args: tuple[Any, ...]) -> str:
    """The needs of a call: torch's "operator", as one of its tensors stands for another or torch.func transforms it; a
    "gradient"; or neither, "".
    """
    if torch._C._are_functorch_transforms_active():
        return "operator"
    grad, needs = torch.is_grad_enabled(), ""
    for arg in args:
        if isinstance(arg, torch.Tensor):
            kind: Any = type(arg)  # pyright: ignore[reportUnknownVariableType]
            if (kind is not torch.Tensor and kind is not torch.nn.Parameter) or arg.is_meta:
                return "operator"
            if grad and arg.requires_grad:
                needs = "gradient"
    return needs
