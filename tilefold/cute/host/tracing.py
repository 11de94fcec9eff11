# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A call of a host function: its values, computed from its arguments, and the kernels that it launches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, only_has_effect

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.scalars.values import convert, wrap
from tilefold.builder.tracing.python_errors import explain_error, of_host
from tilefold.builder.tracing.source import user_place
from tilefold.builder.tracing.state import building
from tilefold.compiler.frontend.diagnostics import Diagnostic, ProgramError, Severity
from tilefold.dialects.definitions import outer_operands
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

    @property
    def maps(self) -> int: ...


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
    `reads` are operations that read elements, with the error where a number of theirs is needed: a host function knows
    none, but it may make a tensor of one, for its extents. `maps` are the tensor maps that the kernel which is built
    writes to memory.
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
    reads: dict[Operation, TilefoldError] = field(default_factory=lambda: {})
    maps: int = 0

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
        self.check_known(value)
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
        return any(needed in unknown for needed in _needed(value))

    def check_known(self, value: SSAValue) -> None:
        """Raises the error of `effect` for a value that is computed from elements."""
        for needed in _needed(value) if self.reads else ():
            if (fault := self.reads.get(needed.owner)) is not None:  # pyright: ignore[reportArgumentType, reportCallIssue]
                self._refuse(fault)

    def effect(self, op: Operation) -> None:
        """Prints or checks, in this call or each. TilefoldError (E5001) for operations that a host function lacks; for
        one that only reads elements where its result is needed.
        """
        if op.name not in ("ptx.printf", "tile.print", "cf.assert"):
            message = "this operation belongs in a kernel, but a host function is running"
            hint = "move it into a function that is decorated with @cute.kernel"
            fault = ProgramError([Diagnostic(Severity.ERROR, message, user_place(), Code.BUILD_OUTSIDE, hint)])
            if op.parent is self.block and only_has_effect(op, MemoryEffectKind.READ):
                self.reads[op] = fault
                return
            if op.parent is not None:
                op.detach()
            self._refuse(fault)
        for operand in op.operands:
            self.check_known(operand)
        self.steps.append(op)
        if self.eager:
            self.pending.append(op)

    def _refuse(self, fault: TilefoldError) -> NoReturn:
        """Raises an error; before the first launch as that of a function that is a thread of a kernel."""
        raise ElementsError(fault) if self._launches_nothing else fault

    @property
    def _launches_nothing(self) -> bool:
        return all(isinstance(step, Operation) for step in self.steps)

    def flush(self) -> None:
        """Executes the effects that are pending. They wait for the next launch, or for the end of the function: before,
        it may turn out that it is executed as a kernel.
        """
        while self.pending:
            self.values.execute(self.pending.pop(0))

    def places_of_maps(self, count: int) -> tuple[SSAValue, int]:
        """The workspace that calls of the function pass for tensor maps, and the number of the first of `count` further
        maps in it. TilefoldError (E5002) where the function is executed without being compiled.
        """
        if self.eager:
            raise TilefoldError(
                Code.BUILD_VALUE,
                "the map of a tensor whose address a kernel computes lies in memory that a compiled function is given",
                "call cute.experimental.compile, and pass a workspace (QueryDeviceWorkspaceFunc) as the last argument",
            )
        self.maps += count
        return self.bound.workspace(), self.maps - count

    def take_maps(self) -> int:
        """The number of maps of the kernel that was built last. TilefoldError (E5002) for a second one with maps."""
        built, self.maps = self.maps, 0
        if built and any(step.maps for step in self.steps if not isinstance(step, Operation)):
            problem = "a workspace holds the tensor maps of one kernel, but this function launches two such kernels"
            raise TilefoldError(Code.BUILD_VALUE, problem, "compile two functions")
        return built

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
                for fault in self.reads.values() if self._launches_nothing else ():
                    self._refuse(fault)  # its threads check that the elements are there
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


def _needed(value: SSAValue) -> Iterator[SSAValue]:
    """A value, and all from which it is computed."""
    pending, seen = [value], {value}
    while pending:
        yield (value := pending.pop())
        if isinstance(value.owner, Operation):
            more = [operand for operand in outer_operands(value.owner) if operand not in seen]
            seen.update(more)
            pending += more


def values_of(
    bound: HostArguments, slots: Mapping[str, SSAValue], constants: Mapping[SSAValue, object]
) -> "HostValues":
    """The numbers of a block of the host for arguments, whose places in the block are `slots`."""
    from tilefold.runtime.sim.host_values import HostValues

    given = dict(constants)
    for name, ssa in slots.items():
        type = ssa.type
        given[ssa] = open_integers(type, bound.arrays[name]) if isinstance(type, TensorType) else bound.values[name]
    return HostValues(given, lambda text: print(text, end=""))


def _call(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    import inspect

    signature = inspect.signature(function)
    call = inspect.BoundArguments(signature, dict(arguments))  # pyright: ignore[reportArgumentType]
    return function(*call.args, **call.kwargs)
