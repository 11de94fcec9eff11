# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs passes over a module: verifies it after each, names the pass that fails, and lets an observer see every step."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException

from ..base.errors import Code, TilefoldError
from ..base.limits import TimeLimitError, check_deadline
from .frontend.diagnostics import Diagnostic, ProgramError, Severity, place_of
from .frontend.program import parse_program, print_program
from .frontend.source import Source
from .frontend.verify import verify_program
from .pipeline import PASSES, concerns


class Observer(Protocol):
    """Sees the module before and after every pass; `index` counts the passes from 1."""

    def before(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """Called before the pass runs."""
        ...

    def applied(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """Called after the pass has run, before its result is verified."""
        ...

    def after(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """Called after the pass has run and its result is verified."""
        ...


class InternalError(Exception):
    """A bug of tilefold: a pass failed on a valid program, or left an invalid one. Its cause is the first exception.

    `program` is the text that the pass was given; `pass_name`, with its options, is the pass.
    """

    def __init__(self, message: str, pass_name: str, program: str) -> None:
        super().__init__(message)
        self.pass_name = pass_name
        self.program = program


def parse_passes(text: str, available: Mapping[str, Callable[[], type[ModulePass]]]) -> list[ModulePass]:
    """The passes of a pipeline such as `fold-layouts,cse` or `a{x=1 y="text"},b`.

    Raises TilefoldError for malformed text, for a pass that `available` lacks and for options that it lacks.
    """
    try:
        specs = list(parse_pipeline(text))
    except ArgSpecParseError as error:
        raise TilefoldError(
            Code.PASS_PIPELINE,
            " ".join(str(error).split("\n", 1)[0].rstrip(":").split()) + f": {text[:200]}",
            'separate passes by commas without spaces; options go in braces: a{x=1 y="text"},b',
        ) from None
    passes: list[ModulePass] = []
    for spec in specs:
        if spec.name not in available:
            close = get_close_matches(spec.name, list(available), n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else "`tilefold passes` lists them"
            raise TilefoldError(Code.PASS_UNKNOWN, f"unknown pass '{spec.name}'", hint)
        try:
            passes.append(available[spec.name]().from_spec(spec))
        except (ValueError, TypeError) as error:
            raise TilefoldError(Code.PASS_PIPELINE, f"pass '{spec.name}': {error}") from None
    return passes


def run_passes(
    context: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    *,
    source: Source,
    done: Sequence[ModulePass] = (),
    observer: Observer | None = None,
) -> None:
    """Applies the passes in order, in place, and verifies the module after each.

    Raises ProgramError if a pass refuses the program, InternalError if it fails or leaves a module that
    does not verify, TimeLimitError before a pass for which no time is left. `source` is the text that the module was
    parsed from, and `done` the passes that have run since: lines of the source are shown, and where a pass fails, the
    program that it was given is made again from it.
    """
    for index, applied in enumerate(passes, 1):
        check_deadline(f"before pass '{applied}'")
        if observer is not None:
            observer.before(index, applied, module)
        try:
            applied.apply(context, module)
            if observer is not None:
                observer.applied(index, applied, module)
            verify_program(module, source)
        except ProgramError as error:
            if (
                str(error.code) == Code.TENSOR_FORM.id
            ):  # a constant that the pass has folded is the mistake of the program
                raise
            message = f"pass '{applied}' leaves an invalid program: {error.message}"
            raise InternalError(
                message, str(applied), _rebuild_input(context, source, [*done, *passes[: index - 1]])
            ) from error
        except (TilefoldError, DiagnosticException) as error:
            raise ProgramError([_refusal(error, applied, source)]) from error
        except Exception as error:  # a bug of a pass: name the pass and keep its program
            message = f"pass '{applied}' failed: {type(error).__name__}: {error}"
            raise InternalError(
                message, str(applied), _rebuild_input(context, source, [*done, *passes[: index - 1]])
            ) from error
        if observer is not None:
            observer.after(index, applied, module)


def run_passes_quickly(
    context: Context, module: ModuleOp, passes: Sequence[ModulePass], *, source: Source, done: Sequence[ModulePass] = ()
) -> None:
    """Like `run_passes`, but verifies the module only at the end; verifying takes longer than most passes.

    Where anything fails, the passes run again by `run_passes`, so that the same error names the same pass.
    """
    try:
        for applied in passes:
            check_deadline(f"before pass '{applied}'")
            applied.apply(context, module)
        verify_program(module, source)
    except TimeLimitError:
        raise
    except Exception:
        _run_again(context, passes, done, source)
        raise


def run_pipeline(
    context: Context,
    module: ModuleOp,
    pipeline: Sequence[str],
    *,
    source: Source,
    done: Sequence[str] = (),
    explain: bool = True,
) -> None:
    """Like `run_passes_quickly`, for the passes that `pipeline_to` returns. A pass that handles no operation
    of the module is not even loaded.

    Without `explain`, an error is as the pass raised it: to name the pass and the line takes the second run.
    """
    try:
        for text in pipeline:
            if concerns(text.partition("{")[0], module):
                for applied in parse_passes(text, PASSES):
                    check_deadline(f"before pass '{applied}'")
                    applied.apply(context, module)
        verify_program(module, source)
    except TimeLimitError:
        raise
    except Exception:
        if not explain:
            raise
        passes, before = (parse_passes(",".join(texts), PASSES) for texts in (pipeline, done))
        _run_again(context, passes, before, source)
        raise


def _run_again(context: Context, passes: Sequence[ModulePass], done: Sequence[ModulePass], source: Source) -> None:
    """Runs passes by `run_passes` on the program as it is after those that are `done`."""
    module = parse_program(source, context)
    for applied in done:
        applied.apply(context, module)
    run_passes(context, module, passes, source=source, done=done)


def _rebuild_input(context: Context, source: Source, passes: Sequence[ModulePass]) -> str:
    """The program before the pass that follows `passes`, as text; built again, since the pass has changed it."""
    module = parse_program(source, context)
    for applied in passes:
        applied.apply(context, module)
    return print_program(module, locations=True, header=True)


def _refusal(error: Exception, applied: ModulePass, source: Source) -> Diagnostic:
    """The diagnostic for a program that a pass refuses: at the operation, if the error names it."""
    known = error if isinstance(error, TilefoldError) else error.__cause__
    code, hint, message = Code.PASS_FAILED, "", " ".join(str(error).split())
    if isinstance(known, TilefoldError):
        code, hint, message = known.code, known.hint, known.message
    op = getattr(error, "operation", None)
    place = place_of(op.location, source) if isinstance(op, Operation) else None
    suffix = "" if place is not None else f" (in pass '{applied.name}')"
    return Diagnostic(Severity.ERROR, source.spelled(message) + suffix, place, code, source.spelled(hint))
