# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A call of a host function: its values, computed from its arguments, and the kernels that it launches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.ir import Block, Operation, SSAValue

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.scalars.values import convert, wrap
from tilefold.builder.tracing.python_errors import explain_error, of_host
from tilefold.builder.tracing.source import user_place
from tilefold.builder.tracing.state import building
from tilefold.compiler.frontend.diagnostics import Diagnostic, ProgramError, Severity
from tilefold.dialects.tile import TensorType

from ..compiled_kernel import USUAL, Compilation, CompiledKernel
from ..launch import LaunchRequest
from .arguments import HostArguments, open_integers

if TYPE_CHECKING:
    from tilefold.compiler.frontend.diagnostics import Place
    from tilefold.runtime.sim.host_values import HostValues


class WaitingCall(Protocol):
    """A call of a kernel within a host function: see `HostKernelCall`."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        ...


class LaunchStep(Protocol):
    """A launch of a host function: see `HostLaunch`."""

    @property
    def built(self) -> CompiledKernel: ...

    @property
    def request(self) -> LaunchRequest: ...


class ElementsError(Exception):
    """The function acts as a thread of a kernel, for example by writing elements, so it is executed as one. `fault` is
    the error where that cannot be.
    """

    def __init__(self, fault: TilefoldError) -> None:
        super().__init__()
        self.fault = fault


class NoNumberError(Exception):
    """The function asks for the number of a value, but is compiled for descriptions of tensors, which lack numbers."""


@dataclass(eq=False)
class HostTrace:
    """One call of a host function.

    `steps` are the launches, and the operations that print, in order; where it is `eager` they are executed at once.
    `functions` are those of the kernels, `compilation` says how these are compiled. `guards` are the values whose
    numbers the function has asked for: its record holds for these numbers. `waiting` are the calls of kernels that
    have not been launched, with their lines, and `pending` operations of a call that is `eager` for which it is early.
    """

    bound: HostArguments
    eager: bool
    compilation: Compilation = USUAL
    steps: list[LaunchStep | Operation] = field(default_factory=lambda: [])
    functions: list[Callable[..., Any]] = field(default_factory=lambda: [])
    guards: dict[SSAValue, int | float | bool] = field(default_factory=lambda: {})
    constants: dict[SSAValue, int | float | bool] = field(default_factory=lambda: {})
    waiting: "dict[WaitingCall, Place | None]" = field(default_factory=lambda: {})
    pending: list[Operation] = field(default_factory=lambda: [])

    @property
    def block(self) -> Block:
        """Where the operations of the host are."""
        return self.bound.block

    @cached_property
    def values(self) -> "HostValues":
        """The numbers of the present arguments."""
        return values_of(self.bound, self.bound.slots, self.constants)

    def number(self, value: SSAValue) -> int | float | bool:
        """The number of a value, on which the function may depend from now on."""
        if self._is_open(value):
            raise NoNumberError
        number = self.guards[value] = self.values.number(value)
        return number

    def present(self, value: SSAValue) -> int | float | bool | None:
        """The number of a value; None if it depends on a tensor that is described only."""
        return None if self._is_open(value) else self.values.number(value)

    def _is_open(self, value: SSAValue) -> bool:
        """Whether a value depends on integers of a tensor that is described only."""
        if not self.bound.open:
            return False
        unknown = {self.bound.slots[name] for name in self.bound.open}
        pending, seen = [value], {value}
        while pending:
            value = pending.pop()
            if value in unknown:
                return True
            if isinstance(value.owner, Operation):
                more = [operand for operand in value.owner.operands if operand not in seen]
                seen.update(more)
                pending += more
        return False

    def effect(self, op: Operation) -> None:
        """Prints or checks, in this call or each. TilefoldError (E5001) for operations that a host function lacks."""
        if op.name not in ("ptx.printf", "tile.print", "cf.assert"):
            if op.parent is not None:
                op.detach()
            message = "this is an operation of a kernel, but a function of the host is executed"
            hint = "move it into a function that is decorated with @cute.kernel"
            if all(isinstance(step, Operation) for step in self.steps):
                fault = Diagnostic(Severity.ERROR, message, user_place(), Code.BUILD_OUTSIDE, hint)
                raise ElementsError(ProgramError([fault]))
            raise TilefoldError(Code.BUILD_OUTSIDE, message, hint)
        self.steps.append(op)
        if self.eager:
            self.pending.append(op)

    def flush(self) -> None:
        """Executes the effects that are pending. They wait for the next launch, or for the end of the function: before,
        it may turn out that it is executed as a kernel.
        """
        while self.pending:
            self.values.execute(self.pending.pop(0))

    def constant(self, number: float, dtype: DType) -> Any:
        """A Python number as a host value: as such it becomes an argument of kernels."""
        ssa = self.block.insert_arg(dtype.ir, len(self.block.args))
        self.constants[ssa] = number
        if "values" in self.__dict__:
            self.values.give(ssa, number)
        return wrap(ssa, dtype)

    def run(self, function: Callable[..., object]) -> Any:
        """Calls a function on the arguments. Raises ProgramError, at the user's line, for its faults."""
        arguments = self.bound.arguments
        with building(self.block, convert, self) as builder:
            try:
                result = _call(function, arguments)
                self._check_launched()
                self.flush()
                return result
            except ElementsError:
                raise
            except (TilefoldError, NoNumberError):
                self.flush()
                raise
            except Exception as error:
                self.flush()
                if (ours := explain_error(error, builder.unbound) or of_host(error)) is not None:
                    raise ours.with_traceback(error.__traceback__) from error
                raise

    def _check_launched(self) -> None:
        """ProgramError (E3105) for a call of a kernel that has not been launched."""
        for call, place in self.waiting.items():
            name = call.name
            hint = f"write {name}(...).launch(grid=..., block=...)"
            raise ProgramError(
                [Diagnostic(Severity.ERROR, f"{name}(...) is not launched", place, Code.RUN_LAUNCH, hint)]
            )


def values_of(
    bound: HostArguments, slots: Mapping[str, SSAValue], constants: Mapping[SSAValue, object]
) -> "HostValues":
    """The numbers of a block of the host for arguments, whose places in the block are `slots`."""
    from tilefold.runtime.sim.host_values import HostValues

    given: dict[SSAValue, Any] = dict(constants)
    for name, ssa in slots.items():
        type = ssa.type
        given[ssa] = open_integers(type, bound.arrays[name]) if isinstance(type, TensorType) else bound.values[name]
    return HostValues(given, lambda text: print(text, end=""))


def _call(function: Callable[..., object], arguments: Mapping[str, object]) -> Any:
    import inspect

    signature = inspect.signature(function)
    call = inspect.BoundArguments(signature, dict(arguments))  # pyright: ignore[reportArgumentType]
    return function(*call.args, **call.kwargs)
