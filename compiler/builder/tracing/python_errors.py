# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of Python about a kernel's use of this folder as errors of ours, with a code and a hint.

A name that does not exist, an argument that a function does not take, an operator on a tensor: Python raises these at
the user's line, before any code of ours runs.
"""

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from keyword import iskeyword
from traceback import walk_tb
from types import FrameType, ModuleType
from typing import Any

from ....base.errors import Code, TilefoldError
from .places import RESULT, is_users, places_of_traceback
from .synonyms import called_here

_PACKAGE = __name__.partition(".")[0]
_BUILDER = f"{_PACKAGE}.compiler.builder"
_LOAD = "t.load() is a tensor's elements as a value, t[i, j] is one of them"
_OPERANDS = {
    "Pointer": "p + n is where the n-th element begins, cute.make_tensor(p, layout) the tensor there",
    "Tensor": _LOAD, "CoordTensor": "c[i, j] is a coordinate, a tuple of integers",
    **dict.fromkeys(("Vec", "Int", "Float", "Bool"), "fragments and values combine with each other and with numbers"),
}  # fmt: skip
"""Hints by the type of an operand, the first match in this order."""
_LISTED = 24
"""The most names that a message lists."""


def explained(error: Exception, unbound: Mapping[str, tuple[str, str]]) -> TilefoldError | None:
    """An exception that left a kernel's function as an error of ours; None for one that does not concern this package.

    `unbound` has the reason and a hint for each variable that control flow left without a value.
    """
    if isinstance(error, NameError):
        reason = unbound.get(error.name or _unbound_local(error))
        return None if reason is None else TilefoldError(Code.BUILD_UNBOUND, *reason)
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if isinstance(error, TypeError):
        while frames and frames[-1].f_globals.get("STANDS_FOR_PYTHON"):
            frames.pop()
    if not frames:
        return None
    if not is_users(frames[-1]):
        return _within(error, frames)
    if isinstance(error, AttributeError):
        return _attribute(error) or _mentioned(str(error))
    return _call(str(error)) or _mentioned(str(error)) if isinstance(error, TypeError) else None


def _unbound_local(error: NameError) -> str:
    """The local variable that has no value, whose name Python keeps in its message alone: the expression at fault, or
    else the variable of the rewriting for a function's result.
    """
    place = next(iter(places_of_traceback(error.__traceback__)), None)
    text = "" if place is None else place.text[place.column - 1 : place.end - 1]
    return text if text.isidentifier() and not iskeyword(text) else RESULT


_BY_ARGUMENTS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""The exceptions that arguments of a wrong type cause within a function."""


def _within(error: Exception, frames: Sequence[FrameType]) -> TilefoldError | None:
    """An error within a function of ours that the user called: it is about the arguments."""
    last = max((at for at, frame in enumerate(frames) if is_users(frame)), default=None)
    if last is None or not isinstance(error, _BY_ARGUMENTS):
        return None
    called = frames[last + 1]
    if str(called.f_globals.get("__name__", "")).partition(".")[0] != _PACKAGE:
        return None
    code, given = called.f_code, called.f_locals
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    name = code.co_qualname
    if "<locals>" in name and callable(wrapped := given.get("function")):  # one around a function of the algebra
        name, arguments = wrapped.__qualname__, [*given.get("args", ()), *given.get("kwargs", {}).values()]
        names = list(inspect.signature(wrapped).parameters)
    else:
        arguments = [given[parameter] for parameter in names if parameter in given and parameter != "self"]
    return misused(name, arguments, [parameter for parameter in names if parameter != "self"], error)


def misused(name: str, arguments: Sequence[object], takes: Sequence[str], error: Exception) -> TilefoldError:
    """The error for a call with arguments of other kinds than a function takes, in which Python raised `error`."""
    types = ", ".join(type(argument).__name__ for argument in arguments)
    reason = str(error) or "it takes arguments of other types"
    return TilefoldError(
        Code.BUILD_VALUE, f"{name}({types}): {reason}", f"it takes {', '.join(takes)}" if takes else ""
    )


def _mentioned(message: str) -> TilefoldError | None:
    """The error for a use of an object of one of our classes, which Python's message names."""
    for name in re.findall(r"'([\w.]+)'", message):
        kind = _class(name.rpartition(".")[2])
        if kind is not None:
            return TilefoldError(Code.BUILD_VALUE, message, _OPERANDS.get(kind, ""))
    return None


def _class(name: str) -> str | None:
    """The name itself where a class of the vocabulary has it."""
    for module in sys.modules.copy().values():
        if getattr(module, "__name__", "").startswith(_BUILDER):
            member = getattr(module, name, None)
            if isinstance(member, type) and member.__module__.partition(".")[0] == _PACKAGE:
                return name
    return None


def _attribute(error: AttributeError) -> TilefoldError | None:
    owner: Any = error.obj
    if owner.__class__ is tuple and error.name in ("x", "y", "z"):
        return TilefoldError(Code.BUILD_NAME, f"a tuple has no '{error.name}'", "unpack it: x, y, z = ...")
    module = owner.__name__ if isinstance(owner, ModuleType) else type(owner).__module__
    if module.partition(".")[0] != _PACKAGE or not isinstance(error.name, str):
        return None
    subject = module.removeprefix(f"{_PACKAGE}.") if isinstance(owner, ModuleType) else f"a {type(owner).__name__}"
    public: list[str] = getattr(owner, "__all__", None) or [name for name in dir(owner) if not name.startswith("_")]
    listed = f"it has {', '.join(public)}" if len(public) <= _LISTED else ""
    here = called_here(error.name, _vocabulary(module)) if isinstance(owner, ModuleType) else ""
    hint = here or _similar(error.name, public) or listed
    return TilefoldError(Code.BUILD_NAME, f"{subject} has no '{error.name}'", hint)


def _vocabulary(module: str) -> dict[str, list[str]]:
    """The names of the modules that are in one package with a module, or in it."""
    package = ".".join(module.split(".")[:2])
    within = {name: loaded for name, loaded in sys.modules.copy().items() if f"{name}.".startswith(f"{package}.")}
    return {name.removeprefix(f"{_PACKAGE}."): getattr(loaded, "__all__", []) for name, loaded in within.items()}


def _call(message: str) -> TilefoldError | None:
    operator = re.match(r"(?:unsupported|bad) operand type.*: '([\w.]+)'(?: and '([\w.]+)')?", message)
    types = () if operator is None else operator.groups()
    if hints := [hint for name, hint in _OPERANDS.items() if name in types]:
        return TilefoldError(Code.BUILD_VALUE, message, hints[0])
    if (ufunc := re.match(r"operand '(\w+)' does not support ufuncs", message)) and ufunc[1] in _OPERANDS:
        text = f"NumPy's functions do not take {ufunc[1]}"
        return TilefoldError(Code.BUILD_VALUE, text, "take the function from cute, such as cute.exp or cute.where")
    if message.startswith("Concatenation operation is not implemented for NumPy arrays"):
        text = "a kernel cannot compute with an array of NumPy"
        return TilefoldError(Code.BUILD_VALUE, text, "pass it to the kernel as an argument, and load its elements")
    used = re.match(r"'(\w+)' object (?:is not|cannot be)|cannot unpack non-iterable (\w+)", message)
    if used is not None and (name := used[1] or used[2]) in _OPERANDS:
        counted = name == "Int" and message.endswith("is not iterable")
        return TilefoldError(Code.BUILD_VALUE, message, "write cute.range(n)" if counted else _OPERANDS[name])
    called = re.match(r"([\w.]+)\(\) (?:got|missing|takes)", message)
    function = None if called is None else _function(called[1])
    if function is None:
        return None
    keyword = re.search(r"keyword argument '(\w+)'", message) if "got an unexpected" in message else None
    names = list(inspect.signature(function).parameters)
    similar = "" if keyword is None else _similar(keyword[1], names)
    takes = f"it takes {', '.join(name for name in names if name != 'self')}"
    return TilefoldError(Code.BUILD_NAME, message, f"{similar} {takes}" if similar else takes)


def _function(path: str) -> Any:
    """Our function of this qualified name."""
    for name, module in sys.modules.copy().items():
        if name.startswith(_BUILDER):
            target: Any = module
            for part in path.split("."):
                target = getattr(target, part, None)
            if callable(target) and str(getattr(target, "__module__", "")).startswith(f"{_PACKAGE}."):
                return target
    return None


def _similar(name: str, names: list[str]) -> str:
    matches = get_close_matches(name, names, 3, 0.5)
    return f"did you mean {' or '.join(matches)}?" if matches else ""
