# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects of the user's classes, whose attributes control flow carries as it carries variables."""

import sys
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from types import MemberDescriptorType, SimpleNamespace

from ..tracing.attributes import Stateful
from ..tracing.source import package_of

_DEFINED_IN_PYTHON = 1 << 9
"""Py_TPFLAGS_HEAPTYPE (Python/C API, Type Objects)."""

_WHOLE = {"tilefold", "xdsl", "numpy", "torch", "jax", "cupy", *sys.stdlib_module_names} - {"__main__"}
"""The packages whose objects are whole: their attributes are not variables."""


def is_ours(value: object) -> bool:
    """Whether this package defines a value's class: such values are whole, whatever fields they have."""
    return package_of(type(value).__module__) == "tilefold"


def attributes_of(value: object) -> Mapping[str, object] | None:
    """The attributes that can be set of an object of a user's class, or of a SimpleNamespace; None for anything else.

    A class that sets attributes in a way of its own, as torch's modules do, is taken to know why.
    """
    kind = type(value)
    if isinstance(value, SimpleNamespace):
        return dict(vars(value))
    if (
        not kind.__flags__ & _DEFINED_IN_PYTHON
        or (package_of(kind.__module__) in _WHOLE and not issubclass(kind, Stateful))
        or isinstance(value, type | Enum | BaseException)
        or kind.__setattr__ is not object.__setattr__
    ):
        return None
    attributes: dict[str, object] = {}
    for name in _names(kind):
        if hasattr(value, name):
            attributes[name] = getattr(value, name)
    return attributes | getattr(value, "__dict__", {})


@lru_cache(maxsize=1024)
def _names(kind: type) -> tuple[str, ...]:
    """The attributes of a class that its objects have without a dictionary: its slots, and those of its own."""
    names: dict[str, None] = {}
    for base in reversed(kind.__mro__[:-1]):
        for name, attribute in vars(base).items():
            is_slot = isinstance(attribute, MemberDescriptorType)
            if is_slot or not (name.startswith("__") or callable(attribute) or hasattr(attribute, "__get__")):
                names[name] = None
    return tuple(names)


def is_made_anew(a: object, b: object) -> bool:
    """Whether two objects are of one class whose objects are made anew from their values, as control flow then does: no
    object is more than its attributes. A program's class says so by its method; the classes here all have such objects.
    """
    return type(a) is type(b) and (isinstance(a, Stateful) or hasattr(type(a), "__new_from_mlir_values__"))


def set_attributes(value: object, attributes: Mapping[str, object]) -> None:
    """Gives an object these attributes, and no others."""
    before = attributes_of(value) or {}
    for name in sorted(before.keys() - attributes.keys()):
        object.__delattr__(value, name)
    for name, part in attributes.items():
        if name not in before or before[name] is not part:
            object.__setattr__(value, name, part)
