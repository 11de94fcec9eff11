# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launches of a file: its `run.launch` operations, as changed by the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.printable import printable_line
from tilefold.compiler.frontend.diagnostics import Diagnostic, Place, ProgramError, Severity, place_of
from tilefold.compiler.frontend.source import Source
from tilefold.dialects.kernel import KernelOp
from tilefold.dialects.run import LaunchOp
from tilefold.dialects.run.grammar import ExpressionError, parse_expression
from tilefold.runtime.errors import Dim3

if TYPE_CHECKING:
    from tilefold.runtime.engine import NumPyArray


@dataclass(frozen=True)
class Expression:
    """The text of a fill or a check, and where it stands: in the file, or (without a place) on the command line."""

    text: str
    place: Place | None

    def error(self, error: ExpressionError) -> ProgramError:
        """The error of this expression, at the part of the file's text that is at fault."""
        place = self.place
        message = error.message
        if place is not None:
            start = place.text.find(
                f'"{self.text}"'
            )  # absent where parameters were substituted: then the whole operation
            if start >= 0:
                place = replace(place, column=start + 2 + error.start, end=start + 2 + error.end)
        else:
            message = f"in '{self.text}', at character {error.start + 1}: {message}"
        return ProgramError([Diagnostic(Severity.ERROR, message, place, error.code, error.hint)])


@dataclass(frozen=True)
class Argument:
    """An argument of a launch: its name and type, and the expression that fills it or its values, if they are given."""

    name: str
    type: Attribute
    fill: Expression | None
    values: "NumPyArray | None" = None


@dataclass(frozen=True)
class Check:
    """A condition on the arguments after the launch; tolerances are None if those of the types hold."""

    condition: Expression
    rtol: float | None = None
    atol: float | None = None


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel's symbol (`kernels::k`), its grid and block, its arguments in order, and its checks."""

    label: str
    kernel: str
    grid: Dim3
    block: Dim3
    arguments: tuple[Argument, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Changes:
    """Changes by the command line: the launch or kernel to run, its grid and block, fills by argument, more
    checks."""

    name: str | None = None
    grid: Dim3 | None = None
    block: Dim3 | None = None
    fills: Mapping[str, str] = field(default_factory=dict[str, str])
    checks: Sequence[str] = ()


def read_launches(module: ModuleOp, source: Source, changes: Changes) -> list[Launch]:
    """The launches to run, in the order of the file, each with its expressions read.

    Without a launch of the asked name, a kernel of that name is launched as the command line says. Raises TilefoldError
    where nothing is to be launched, for a name that neither has, and for expressions that cannot be read.
    """
    kernels = {op.symbol: op for op in module.walk() if isinstance(op, KernelOp)}
    launches = [_launch(op, kernels, source) for op in module.walk() if isinstance(op, LaunchOp)]
    if changes.name is not None:
        chosen = [launch for launch in launches if changes.name in _names(launch)]
        launches = chosen or [_bare_launch(kernels, changes.name, launches)]
    if not launches:
        if len(kernels) != 1:
            raise TilefoldError(
                Code.RUN_LAUNCH,
                f"{source.name} has {len(kernels)} kernels and no run.launch",
                "add a run.launch to the file, or name a kernel with --launch",
            )
        launches = [_bare_launch(kernels, next(iter(kernels)), launches)]
    return [apply_changes(launch, changes) for launch in launches]


def _names(launch: Launch) -> set[str]:
    return {launch.label, launch.kernel, launch.kernel.rpartition("::")[2]}


def _launch(op: LaunchOp, kernels: Mapping[str, KernelOp], source: Source) -> Launch:
    kernel = "::".join([op.kernel.root_reference.data, *(part.data for part in op.kernel.nested_references)])
    arguments = tuple(
        Argument(arg.arg_name.data, arg.arg_type, _expression(arg, arg.fill.data, source)) for arg in op.arguments
    )
    checks = tuple(
        Check(
            _expression(check, check.expr.data, source),
            None if check.rtol is None else check.rtol.value.data,
            None if check.atol is None else check.atol.value.data,
        )
        for check in op.checks
    )
    x, y, z = op.grid.get_values()
    label = printable_line(op.launch_name.data) if op.launch_name is not None else kernel
    return Launch(label, kernel, (x, y, z), kernels[kernel].block, arguments, checks)


def _expression(op: Operation, text: str, source: Source) -> Expression:
    expression = Expression(text, place_of(op.location, source))
    return _read(expression)


def _read(expression: Expression) -> Expression:
    try:
        parse_expression(expression.text)
    except ExpressionError as error:
        raise expression.error(error) from error
    return expression


def _bare_launch(kernels: Mapping[str, KernelOp], name: str, launches: Sequence[Launch]) -> Launch:
    """A launch of a kernel that the file does not launch: one block, arguments without fills."""
    matching = [symbol for symbol in kernels if name in (symbol, symbol.rpartition("::")[2])]
    if len(matching) != 1:
        known = ", ".join(sorted({launch.label for launch in launches} | set(kernels))) or "none"
        raise TilefoldError(Code.RUN_KERNEL, f"unknown launch or kernel '{name[:80]}'", f"choose from: {known}")
    kernel = kernels[matching[0]]
    arguments = tuple(Argument(parameter.name, parameter.type, None) for parameter in kernel.parameters())
    return Launch(matching[0], matching[0], (1, 1, 1), kernel.block, arguments, ())


def apply_changes(launch: Launch, changes: Changes) -> Launch:
    """A launch as the command line changes it. TilefoldError for a fill of no argument, and for another block."""
    names = {argument.name for argument in launch.arguments}
    for name in changes.fills:
        if name not in names:
            known = ", ".join(argument.name for argument in launch.arguments) or "none"
            raise TilefoldError(
                Code.RUN_ARGUMENT, f"launch '{launch.label}' has no argument '{name[:80]}'", f"its arguments: {known}"
            )
    if changes.block is not None and changes.block != launch.block:
        raise TilefoldError(
            Code.RUN_LAUNCH,
            f"kernel '{launch.kernel}' is written for a block of {launch.block} threads, not {changes.block}",
            "change its threads(...), or make the size a parameter of the file and set it with -D",
        )
    return replace(
        launch,
        grid=changes.grid or launch.grid,
        arguments=tuple(
            replace(argument, fill=_read(Expression(changes.fills[argument.name], None)))
            if argument.name in changes.fills
            else argument
            for argument in launch.arguments
        ),
        checks=(*launch.checks, *(Check(_read(Expression(text, None))) for text in changes.checks)),
    )
