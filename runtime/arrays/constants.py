# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys of constants: equal keys mean that one kernel serves both."""

import dataclasses
from collections.abc import Mapping, Sequence, Set
from functools import partial
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any, cast

from ..errors import argument_error
from .array import is_array, is_torch

MAX_DEPTH = 32
"""The deepest nesting of containers in a constant."""

_EXACT = frozenset({int, bool, str, bytes, NoneType, type, FunctionType, BuiltinFunctionType})


def is_exact(value: object) -> bool:
    """Whether class and value are enough to tell a constant from others: it is hashed, equal ones are the same in all
    that a kernel can ask, and nothing in it changes. Others need `constant_key`, since 0.0 is -0.0, and (1,) is
    (True,).
    """
    kind = type(value)
    return kind in _EXACT or (kind.__module__.partition(".")[0] == "tilefold" and _has_hash(value))


def constant_key(name: str, value: object) -> object:
    """A key that is equal for constants of the same meaning: class and value; of containers, NumPy arrays and
    dataclasses their present contents. An object that is hashed by its identity stands for itself, and the key keeps it
    alive.

    LaunchError (E3106), which names the argument, for a value without such a key.
    """
    return _key(name, value, 0)


def _key(name: str, value: Any, depth: int) -> object:
    kind = cast("type[object]", type(value))
    if is_exact(value):
        return kind, value
    if depth > MAX_DEPTH:
        raise argument_error(
            name, f"nests containers more than {MAX_DEPTH} deep", "nest it less; it must not contain itself"
        )
    if isinstance(value, float | complex):
        return kind, repr(value)  # which tells 0.0 from -0.0, and not one NaN from another
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value).items()
        return kind, tuple((_key(name, key, depth + 1), _key(name, part, depth + 1)) for key, part in entries)
    if isinstance(value, Set):
        return kind, frozenset(_key(name, part, depth + 1) for part in cast("Set[object]", value))
    if isinstance(value, tuple | list):
        return kind, tuple([_key(name, part, depth + 1) for part in cast("Sequence[object]", value)])
    if isinstance(value, partial):
        made = cast("partial[object]", value)
        return kind, *(_key(name, part, depth + 1) for part in (made.func, made.args, made.keywords))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
        return kind, tuple([_key(name, part, depth + 1) for part in parts])
    if is_array(value) or hasattr(value, "__array_interface__"):
        return kind, *_array_key(name, value)
    if not _has_hash(value):
        if isinstance(value, memoryview):
            raise argument_error(name, "is a memoryview", "pass an array of torch, CuPy, JAX or NumPy")
        hint = "give its class __eq__ and __hash__, make it a dataclass, or pass a tuple"
        raise argument_error(name, f"is a constant of type {kind.__name__}, which has no hash", hint)
    return kind, value


def _array_key(name: str, value: Any) -> tuple[object, ...]:
    """Element type, shape and bytes of an array in the host's memory. LaunchError for one of another library."""
    if is_torch(value) or not hasattr(value, "tobytes") or value.dtype.hasobject:
        hint = "pass x.tolist(), or leave out cute.Constexpr to pass it as a tensor"
        raise argument_error(name, f"is a constant, but an array of type {type(value).__name__}", hint)
    return str(value.dtype), tuple(value.shape), value.tobytes()


def _has_hash(value: object) -> bool:
    try:
        hash(value)
    except Exception:  # a TypeError, or that of its class, such as the ValueError of a writable memoryview
        return False
    return True
