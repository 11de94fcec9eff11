# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of Python about a kernel's use of this folder as errors of ours, with a code and a hint.

A name that does not exist, an argument that a function does not take, an operator on a tensor: Python raises these at
the user's line, before any code of ours runs. Synonyms are names of CUDA C++, CuTe C++ and Python with ours.
"""

import ast
import dis
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from keyword import iskeyword
from types import FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, get_args

from ...base.errors import Code, TilefoldError
from .attributes import attribute_hint
from .cuda_names import CUDA_NAMES
from .fault import RefusedExpression, fault_at, is_of_package
from .source import RESULT, is_users, places_of_traceback

_PACKAGE = __name__.partition(".")[0]
_LOAD = "t.load() is a tensor's elements as a value, t[i, j] is one of them"
_OPERANDS = {
    "Pointer": "p + n is where the n-th element begins, cute.make_tensor(p, layout) the tensor there",
    "Tensor": _LOAD, "CoordTensor": "c[i, j] is a coordinate, a tuple of integers",
    **dict.fromkeys(("Vec", "Int", "Float", "Bool"), "fragments and values combine with each other and with numbers"),
}  # fmt: skip
"""Hints by the type of an operand, the first match in this order."""
_ITERATING = (sum, list, tuple, set, sorted, enumerate, iter, map, zip)
"""Python functions that take elements, which integers lack."""
_ON_DEMAND = ("arch", "math", "nvgpu", "typing")
"""The modules of `tilefold.cute` whose names hints know, also where a program has not imported them yet."""
_LISTED = 24
"""The most names that a message lists."""


def explain_error(error: Exception, unbound: Mapping[str, tuple[str, str]]) -> TilefoldError | None:
    """An exception that left a kernel's function as an error of ours; None for one that does not concern this package.

    `unbound` has the reason and a hint for each variable that control flow left without a value, and with a dot before
    its name for each attribute.
    """
    if isinstance(error, NameError):
        reason = unbound.get(error.name or _unbound_local(error))
        if reason is None and error.name is not None and error.name in CUDA_NAMES:
            return TilefoldError(Code.BUILD_NAME, str(error), called_here(error.name, {}))
        return None if reason is None else TilefoldError(Code.BUILD_UNBOUND, *reason)
    if isinstance(error, AttributeError) and (reason := unbound.get(f".{error.name}")) is not None:
        return TilefoldError(Code.BUILD_UNBOUND, *reason)
    steps: list[TracebackType] = []
    traceback = error.__traceback__
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    if isinstance(error, TypeError):
        while steps and steps[-1].tb_frame.f_globals.get("STANDS_FOR_PYTHON"):
            steps.pop()
    if not steps:
        return None
    if not is_users(steps[-1].tb_frame):
        return _within(error, [step.tb_frame for step in steps])
    ours = _attribute(error) if isinstance(error, AttributeError) else None
    if ours is None and isinstance(error, TypeError | AttributeError) and (fault := fault_at(steps[-1])) is not None:
        ours = _call_error(error, fault)
    return ours


def of_host(error: Exception) -> TilefoldError | None:
    """A mistake in a host function, which Python found at a line of the user's, as an error of ours; None for
    an exception that the program raises itself, or that comes from another library.
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or not is_users(traceback.tb_frame) or not isinstance(error, (*BY_ARGUMENTS, NameError)):
        return None
    code = traceback.tb_frame.f_code
    raising = (at.opname for at in dis.get_instructions(code) if at.offset == traceback.tb_lasti)
    if next(raising, "") in ("RAISE_VARARGS", "RERAISE"):
        return None
    if isinstance(error, NameError):
        frame = traceback.tb_frame
        names = [name for name in (*frame.f_locals, *frame.f_globals) if not name.startswith("__")]
        return TilefoldError(Code.BUILD_NAME, str(error), _similar(str(error.name), names))
    if isinstance(error, AttributeError):
        names = [name for name in dir(error.obj) if not name.startswith("_")]
        return TilefoldError(Code.BUILD_NAME, str(error), _similar(str(error.name), names))
    reason = f"there is no key {error}" if isinstance(error, KeyError) else str(error)
    return TilefoldError(Code.BUILD_VALUE, reason)


def _unbound_local(error: NameError) -> str:
    """The local variable that has no value, whose name only the message of Python has: the expression at fault, or
    else the variable of the rewriting for a function's result.
    """
    place = next(iter(places_of_traceback(error.__traceback__)), None)
    text = "" if place is None else place.text[place.column - 1 : place.end - 1]
    return text if text.isidentifier() and not iskeyword(text) else RESULT


BY_ARGUMENTS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""The exceptions that arguments of a wrong type cause within a function."""


def _within(error: Exception, frames: Sequence[FrameType]) -> TilefoldError | None:
    """An error within a function of ours that the user called: it is about the arguments."""
    last = max((at for at, frame in enumerate(frames) if is_users(frame)), default=None)
    if last is None or not isinstance(error, BY_ARGUMENTS):
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
    return misuse_error(name, arguments, [parameter for parameter in names if parameter != "self"], error)


def misuse_error(name: str, arguments: Sequence[object], takes: Sequence[str], error: Exception) -> TilefoldError:
    """The error for a call with arguments of other kinds than a function takes, in which Python raised `error`."""
    types = ", ".join(type(argument).__name__ for argument in arguments)
    reason = str(error) or "it takes arguments of other types"
    return TilefoldError(
        Code.BUILD_VALUE, f"{name}({types}): {reason}", f"it takes {', '.join(takes)}" if takes else ""
    )


def _call_error(error: Exception, fault: RefusedExpression) -> TilefoldError | None:
    """The error for a call of a function of ours with wrong arguments, or for an operand that is an object of ours."""
    called, values = None, [*fault.values()]
    if isinstance(call := fault.node, ast.Call):
        called = fault.value(call.func)
        if not callable(called):
            values = [called]
        elif not _fits(fault, call, called):
            return wrong_arguments(error, fault.arguments(call)[1], called) if is_of_package(called) else None
        elif isinstance(called, FunctionType | MethodType):
            return None  # of the user's, since one of ours would be within the traceback
        else:
            values.append(getattr(called, "__self__", None))
    ours = {type(value).__name__ for value in values if is_of_package(value)}
    if not ours:
        return None
    name, hint = next(((name, hint) for name, hint in _OPERANDS.items() if name in ours), ("", ""))
    if name and _is_ufunc(called):
        hint = "take the function from cute, such as cute.exp or cute.where"
        return TilefoldError(Code.BUILD_VALUE, f"NumPy's functions do not take {name}", hint)
    if name == "Int" and (fault.iterated is not None or any(called is function for function in _ITERATING)):
        hint = "write cute.range(n)"
    return TilefoldError(Code.BUILD_VALUE, str(error), hint)


def _fits(fault: RefusedExpression, call: ast.Call, function: Any) -> bool:
    """Whether a function takes the number and the names of a call's arguments; true if its signature is unknown."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions made in C
        return True
    try:
        given, named = fault.arguments(call)
    except TypeError:  # an argument that is not known, or not to be unpacked
        return True
    try:
        signature.bind(*given, **named)
    except TypeError:
        return False
    return True


def wrong_arguments(error: Exception, given: Iterable[str], function: Any) -> TilefoldError:
    """The mistake in a call of a function of ours that does not take these arguments."""
    names: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        keywords = get_args(parameter.annotation) if parameter.kind is parameter.VAR_KEYWORD else ()
        names += keywords[0].__annotations__ if keywords else [name]
    unexpected = next((name for name in given if name not in names), "")
    similar = _similar(unexpected, names) if unexpected else ""
    takes = f"it takes {', '.join(name for name in names if name != 'self') or 'no arguments'}"
    text = f"{function.__qualname__}() got an unexpected keyword argument '{unexpected}'" if unexpected else str(error)
    return TilefoldError(Code.BUILD_NAME, text, f"{similar} {takes}" if similar else takes)


def _is_ufunc(value: object) -> bool:
    """Whether a value is a NumPy function for elements; NumPy need not be loaded."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ufunc)


def _attribute(error: AttributeError) -> TilefoldError | None:
    owner = error.obj
    if owner.__class__ is tuple and error.name in ("x", "y", "z"):
        return TilefoldError(Code.BUILD_NAME, f"a tuple has no '{error.name}'", "unpack it: x, y, z = ...")
    if type(owner).__module__.partition(".")[0] != _PACKAGE or not isinstance(error.name, str):
        return None
    public = [name for name in dir(owner) if not name.startswith("_")]
    # a function may be meant, where the name is not that of a method
    here = newer(error.name) or attribute_hint(owner, error.name)
    here = here or called_here(error.name, _vocabulary(f"{_PACKAGE}.cute"))
    hint = here or _similar(error.name, public) or _listed(public)
    kind = type(owner).__name__
    return TilefoldError(Code.BUILD_NAME, f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind} has no '{error.name}'", hint)


def unknown_name(module: ModuleType, name: str) -> tuple[Code, str, str]:
    """The code, the message and the hint for a name that a public module lacks."""
    modules = (name for name, value in vars(module).items() if isinstance(value, type(module)))
    public = sorted({name for name in (*dir(module), *modules) if not name.startswith("_")})
    here = newer(name) or called_here(name, _vocabulary(module.__name__))
    hint = here or _similar(name, public) or _listed(public)
    return Code.BUILD_NAME, f"{module.__name__.removeprefix(f'{_PACKAGE}.')} has no '{name}'", hint


def _listed(names: Sequence[str]) -> str:
    return f"it has {', '.join(names)}" if 0 < len(names) <= _LISTED else ""


def _vocabulary(module: str) -> dict[str, list[str]]:
    """The names of the modules that are in one package with a module, or in it; the package's own names come last,
    since its modules have them too.
    """
    package = ".".join(module.split(".")[:2])
    first = [f"{package}.{name}" for name in _ON_DEMAND] if package == f"{_PACKAGE}.cute" else []
    for name in first:
        import_module(name)
    loaded = sys.modules.copy()
    others = [name for name in loaded if name.startswith(f"{package}.") and name not in first]
    ordered = [name for name in (*first, *others, package) if name in loaded]
    return {name.removeprefix(f"{_PACKAGE}."): getattr(loaded[name], "__all__", []) for name in ordered}


def _similar(name: str, names: list[str]) -> str:
    matches = get_close_matches(name, names, 3, 0.5)
    return f"did you mean {' or '.join(matches)}?" if matches else ""


_NAMES = {
    **CUDA_NAMES,
    **dict.fromkeys(("make_shape", "make_stride", "make_coord", "make_tile"), "a Python tuple"),
    **dict.fromkeys(("dot", "matmul", "mma"), "cute.gemm"),
    **{name: f"cute.ReductionOp.{name}" for name in ("ADD", "MUL", "MAX", "MIN", "AND", "OR", "XOR")},
    **dict.fromkeys(("setmaxnreg", "setmaxnreg_inc"), "cute.arch.setmaxregister_increase"),
    "setmaxnreg_dec": "cute.arch.setmaxregister_decrease",
    "fma_packed_f32x2": "cute.fma, of two elements of a fragment",
    "add_packed_f32x2": "+, of two elements of a fragment",
    "mul_packed_f32x2": "*, of two elements of a fragment",
    "sub_packed_f32x2": "-, of two elements of a fragment",
    "CpAsyncOp": "cute.nvgpu.cpasync.CopyG2SOp",
    "max": "max(x, y) or cute.math.max(x, y), and x.max() of all elements of a fragment",
    "min": "min(x, y) or cute.math.min(x, y), and x.min() of all elements of a fragment",
    "sum": "x.sum() of a fragment, and Python's sum",
    "round": "Python's round(x), of a value or a fragment",
    **dict.fromkeys(("prod", "any", "all"), "a method of fragments, such as x.any()"),
    "mean": "x.sum() / x.size of a fragment",
    "cp_async_fence": "cute.arch.cp_async_commit_group",
    "copy_if": "cute.copy(..., pred=...)",
    "cp_async": "cute.nvgpu.cpasync.CopyG2SOp, for cute.make_copy_atom",
    "ldmatrix": "cute.nvgpu.warp.LdMatrix8x8x16bOp, for cute.make_copy_atom",
    "cast": "x.to(...)",
    "zeros": "cute.full",
}

_TWO_FORMS = ("max", "min")
"""Names whose meaning here depends on the operands."""

_NEWER = re.compile(
    r"tcgen05|tmem|umma|blackwell|sm100|clc_|^Clc|ClcFetch|block_?scale|^(make_tiled_tma_atom_[AB]|mma_major_mode|"
    r"compute_epilogue_tile_shape|PipelineTmaMultiConsumersAsync|MmaMX\w*|MXF\w*|"
    r"StMatrix16x8x8bOp|S2TCopyMode|sext_unpacked_i4_i8_intrinsic)$",
    re.IGNORECASE,
)
"""Names of public programs for instructions that GPUs before sm_100 lack, and for helpers of these."""


def newer(name: str) -> str:
    """A hint for a name that only sm_100 and later GPUs have; empty for others."""
    return (
        "it belongs to sm_100 and later GPUs, for which docs/blackwell.md lists the names here"
        if _NEWER.search(name)
        else ""
    )


def called_here(name: str, vocabulary: Mapping[str, Sequence[str]]) -> str:
    """A hint with our name for a name that a module lacks; empty without a synonym. `vocabulary` has the names
    of each module by its name.
    """
    found = [module for module, names in vocabulary.items() if name in names]
    if found and name not in _TWO_FORMS:  # of several modules the one that kernels take most often
        return f"here it is {min(found, key=lambda module: (not module.endswith('.math'), module.count('.')))}.{name}"
    return f"here it is {_NAMES[name]}" if name in _NAMES else ""
