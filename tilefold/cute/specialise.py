# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the arguments of a call to the types of a kernel's parameters: what each argument becomes in the kernel."""

import copy
import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute

from tilefold.compiler.builder.dtypes import DTYPES, Boolean, DType, Float32, Int32, Int64
from tilefold.compiler.builder.trace import Parameter
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.tile import Space, SpaceAttr, TensorType
from tilefold.layout.core import Layout
from tilefold.layout.errors import Code, TilefoldError

from .annotations import is_constexpr

ALIGN = 16
"""The alignment in bytes of an array that is copied to where the kernel runs."""

_NUMPY_NAMES = {"bool": "Boolean", "float8_e4m3fn": "Float8E4M3FN", "float8_e5m2": "Float8E5M2", "bfloat16": "BFloat16"}


class Signature:
    """The parameters of a function, and which of them are known while the kernel is built."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature with annotations evaluated, where they can be."""
        try:
            return inspect.signature(self.function, eval_str=True)
        except Exception:  # an annotation that names what is not there says nothing to us
            return inspect.signature(self.function)

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> "BoundArguments":
        """What a call gives each parameter. TypeError as from Python for a call that does not fit."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        made = BoundArguments()
        for name, value in bound.arguments.items():
            made.arguments[name] = made.add(name, value, self.signature.parameters[name].annotation)
        return made


@dataclass
class BoundArguments:
    """The arguments of a call: as a kernel is built from them, and as it is launched on them.

    `arguments` have a `Parameter` in the place of each tensor and number, `values` say what to pass for it, and `key`
    is the same for calls that one kernel serves.
    """

    arguments: dict[str, object] = field(default_factory=lambda: {})
    values: dict[str, object] = field(default_factory=lambda: {})
    key: list[object] = field(default_factory=lambda: [])

    def add(self, name: str, value: Any, annotation: object) -> object:
        """What stands for an argument when the kernel is built. Raises TilefoldError (E3106)."""
        if is_constexpr(annotation) or value is None or isinstance(value, str | DType):
            return self._constant(value)
        if isinstance(value, tuple | list):
            parts = [self.add(f"{name}_{i}", each, None) for i, each in enumerate(cast("Sequence[object]", value))]
            self.key.append((type(value), len(parts)))  # pyright: ignore[reportUnknownArgumentType]
            if not isinstance(value, tuple):
                return parts
            kind: Any = type(cast("object", value))
            return kind._make(parts) if hasattr(kind, "_make") else kind(parts)
        if isinstance(value, dict):
            entries = cast("dict[object, object]", value)
            self.key.append(("dict", tuple(entries)))
            return {each: self.add(f"{name}_{each}", part, None) for each, part in entries.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type) and not _is_ours(value):
            return self._dataclass(name, value)
        type_ = _type_of(name, value, annotation)
        if type_ is None:
            return self._constant(value)
        self.values[name] = getattr(value, "__tilefold_array__", value)
        self.key.append(type_)
        return Parameter(name, type_)

    def _dataclass(self, name: str, value: Any) -> object:
        made = copy.copy(value)
        self.key.append(type(value))
        for each in dataclasses.fields(value):
            part = self.add(f"{name}_{each.name}", getattr(value, each.name), each.type)
            object.__setattr__(made, each.name, part)
        return made

    def _constant(self, value: object) -> object:
        try:
            hash(value)
            self.key.append((type(value), value))
        except TypeError:
            self.key.append((type(value), repr(value)))
        return value


def _is_ours(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "tilefold"


def _type_of(name: str, value: Any, annotation: object) -> Attribute | None:
    """The type of a parameter in the kernel; None for what is no tensor and no number."""
    value = getattr(value, "__tilefold_array__", value)
    if isinstance(annotation, DType):
        return annotation.ir
    if isinstance(value, bool):
        return Boolean.ir
    if isinstance(value, int):
        return (Int32 if -(1 << 31) <= value < 1 << 31 else Int64).ir
    if isinstance(value, float):
        return Float32.ir
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return None
    dtype = element_type_of(name, value)
    if not value.shape and not hasattr(value, "__dlpack__"):  # a scalar of NumPy
        return dtype.ir
    return TensorType.new([dtype.ir, SpaceAttr(Space.Gmem), IntAttr(ALIGN), LayoutAttr(layout_of(value))])


def element_type_of(name: str, array: Any) -> DType:
    """The type of an array's elements. Raises TilefoldError (E3106) for one that kernels do not have."""
    text = str(array.dtype).rpartition(".")[2].removeprefix("u")  # torch.float16; unsigned integers are stored alike
    wanted = _NUMPY_NAMES.get(text, text.capitalize())
    found = next((each for each in DTYPES if each.name == wanted), None)
    if found is None or found.kind == "bool":
        raise TilefoldError(
            Code.RUN_ARGUMENT, f"argument '{name}' has elements of type {array.dtype}, which no kernel has",
            "use floats of 8 to 64 bits or integers of 8 to 64 bits",
        )  # fmt: skip
    return found


def layout_of(array: Any) -> Layout:
    """The layout of an array: its shape, and its strides in elements."""
    shape = tuple(int(n) for n in array.shape)
    strides: Any = getattr(array, "strides", None)
    if strides is not None:
        steps = tuple(int(step) // array.itemsize for step in strides)
    else:
        steps = tuple(int(step) for step in array.stride())
    return Layout(shape, steps) if shape else Layout(1, 0)
