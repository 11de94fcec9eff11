# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions of the host: for arguments of certain types, and without executing the function again."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Operation, SSAValue

from tilefold.base.errors import TilefoldError
from tilefold.dialects.tile import TensorType

from ..debuggable import shown
from ..parameters import Signature
from ..program import CompiledKernel
from .arguments import HostArguments
from .launching import HostLaunch
from .options import CompileOptions
from .tracing import HostTrace, NoNumberError, values_of


@dataclass(frozen=True)
class _Variant:
    """What a function did for certain arguments: its launches and prints, and the numbers on which that depends."""

    steps: tuple[HostLaunch | Operation, ...]
    guards: Mapping[SSAValue, int | float | bool]
    constants: Mapping[SSAValue, int | float | bool]
    slots: Mapping[str, SSAValue]

    def run(self, bound: HostArguments) -> bool:
        """Does the same for other arguments of the same types; False, having done nothing, where numbers differ."""
        values = values_of(bound, self.slots, self.constants)
        if any(values.number(value) != number for value, number in self.guards.items()):
            return False
        names = {ssa: name for name, ssa in self.slots.items()}
        for step in self.steps:
            if isinstance(step, HostLaunch):
                step.run(bound, names, values)
            else:
                values.execute(step)
        return True


@dataclass
class CompiledFunction:
    """A compiled function of the host. A call takes the arguments that are not `cute.Constexpr`.

    For arguments of other types than it was compiled for, or other numbers where it had asked for one, the function is
    compiled again.
    """

    function: Callable[..., Any]
    signature: Signature
    constants: Mapping[str, object]
    options: CompileOptions
    _types: dict[str, TensorType] = field(default_factory=lambda: {})
    _variants: dict[tuple[object, ...], list[_Variant]] = field(default_factory=lambda: {})

    def __repr__(self) -> str:
        return f"<compiled function {getattr(self.function, '__qualname__', self.function)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launches what the function launches. Raises what tracing it and its launches raise."""
        try:
            bound = self._bound(self._given(args, kwargs))
            for variant in self._variants.get(tuple(bound.key), ()):
                if variant.run(bound):
                    return
            self._traced(bound).run(bound)
        except TilefoldError as error:
            raise shown(error) from error.__cause__

    @property
    def kernels(self) -> list[CompiledKernel]:
        """The kernels that are launched, in the order of their first launches."""
        steps = [step for variants in self._variants.values() for variant in variants for step in variant.steps]
        return list(dict.fromkeys(step.built for step in steps if isinstance(step, HostLaunch)))

    def ptx(self, target: str | None = None) -> str:
        """The kernels as PTX."""
        return "\n".join(kernel.ptx(target) for kernel in self.kernels)

    def prepare(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Compiles for arguments that may be descriptions. Where the function asks for numbers that these do not have,
        its first call compiles it.
        """
        bound = self._bound(self._given(args, kwargs))
        self._types = {name: ssa.type for name, ssa in bound.slots.items() if isinstance(ssa.type, TensorType)}
        with suppress(NoNumberError):
            self._traced(bound)

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, object]:
        given = {**self.constants, **self.signature.given(args, kwargs)}
        return {name: given[name] for name in Signature(self.function).names}

    def _bound(self, given: Mapping[str, object]) -> HostArguments:
        return Signature(self.function).bound(given, HostArguments(types=self._types))

    def _traced(self, bound: HostArguments) -> _Variant:
        trace = HostTrace(bound, eager=False)
        trace.run(self.function)
        made = _Variant(tuple(trace.steps), trace.guards, trace.constants, bound.slots)
        self._variants.setdefault(tuple(bound.key), []).append(made)
        return made
