# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A warning about calls of kernels that only bind arguments: `k(x, y)` as a statement, without `.launch`.

A statement that is an expression drops its result by an instruction of its own. A call that this instruction deletes,
and that the expression has made, was forgotten; any other one was kept somewhere before.
"""

import ast
import warnings
from opcode import opmap
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import TracebackType

from tilefold.builder.tracing.fault import fault_at
from tilefold.builder.tracing.source import is_users

_POP = opmap["POP_TOP"]


def warn_if_dropped(kernel: object, name: str, launch: str) -> None:
    """Warns, at its line, if a statement makes and drops a call of a kernel: for the `__del__` of a call that was
    not used. `name` is the kernel's, and `launch` the call of the method that is meant.
    """
    try:
        frame = _getframe(2)
    except ValueError:  # Python is shutting down
        return
    at = frame.f_lasti
    if at < 0 or frame.f_code.co_code[at] != _POP or not is_users(frame):
        return
    fault = fault_at(TracebackType(None, frame, at, frame.f_lineno))
    made = fault.node if fault is not None else None
    if isinstance(made, ast.Attribute):  # a method that is not called
        made = made.value
    if fault is None or not isinstance(made, ast.Call) or not _leads_to(fault.value(made.func), kernel):
        return
    names = frame.f_globals
    message = f"the kernel '{name}' is not launched: {name}(...) only binds arguments; write {name}(...).{launch}"
    registry = names.setdefault("__warningregistry__", {})
    file, module = frame.f_code.co_filename, names.get("__name__")
    warnings.warn_explicit(message, RuntimeWarning, file, made.lineno, module, registry)


def _leads_to(called: object, kernel: object) -> bool:
    """Whether an object is a kernel, or one as the method of an object."""
    return getattr(called, "__func__", called) is kernel
