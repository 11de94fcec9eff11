# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's functions that decide by their arguments, such as `range`, `max` and `any`, for values of the kernel."""

from collections.abc import Callable, Iterable, Mapping
from inspect import isclass
from types import FunctionType, MappingProxyType, UnionType
from typing import Any, Union, get_args, get_origin

from ...base.errors import Code, TilefoldError
from ..scalars.dtypes import DType, Float32, Index, Int32
from ..scalars.values import Value, convert
from ..tensors.coordinates import as_tuple
from ..tensors.fragments import Vec, combined
from ..tensors.tensors import CoordTensor, Tensor
from .building import truth
from .conditions import and_, or_
from .loop_range import make_range

STANDS_FOR_PYTHON = True
"""Functions of this module stand for Python's own: errors in them count as Python's."""


def builtin(function: object) -> Any:
    """The function that a call of one of Python's calls: itself, or ours, which takes values of the kernel too."""
    ours = BUILTINS.get(function) if isinstance(function, type | type(len) | FunctionType) else None
    return function if ours is None else ours


def _range(*arguments: Any, **hints: Any) -> Any:
    dynamic = hints or any(isinstance(x, Value) for x in arguments)
    return make_range(*arguments, **hints) if dynamic else range(*arguments)  # which a `for` of the kernel takes, too


def _extreme(name: str, function: Callable[..., object]) -> Callable[..., object]:
    def extreme(*arguments: object, **options: object) -> Any:
        given: list[Any] = list(arguments)
        if len(given) == 1 and isinstance(given[0], Vec) and not options:
            return getattr(given[0], name)()
        if len(given) == 1:
            given = list(given[0])
        if options or not any(isinstance(x, Value | Vec) for x in given):
            return function(given, **options)
        result, *rest = given
        for operand in rest:
            result = combined(name, result, operand)
        return result

    return extreme


def _sum(items: Any, /, start: Any = 0) -> Any:
    return items.sum() + start if isinstance(items, Vec) else sum(items, start)


def _quantifier(
    function: Callable[[Iterable[object]], bool], join: Callable[..., object]
) -> Callable[[Iterable[Any]], Any]:
    def quantifier(items: Iterable[object]) -> Any:
        if isinstance(items, Vec):
            return getattr(items, function.__name__)()
        given = list(items)
        if not any(isinstance(x, Value) for x in given):
            return function(given)
        return join(given[0], *(lambda x=x: x for x in given[1:]))

    return quantifier


def _convert(function: Callable[..., object], kind: str) -> Callable[..., object]:
    def converted(*arguments: object, **options: object) -> Any:
        given = list(arguments)
        if len(given) == 1 and isinstance(given[0], Vec) and kind != "bool":
            hint = f"write x.to(cute.{'Int32' if kind == 'int' else 'Float32'})"
            raise TilefoldError(Code.BUILD_VALUE, f"a fragment is not one {kind}", hint)
        if len(given) != 1 or not isinstance(given[0], Value):
            return function(*given, **options)
        value = given[0]
        if kind == "bool":
            return truth(value)
        return value if value.dtype.kind == kind else convert(value, Int32 if kind == "int" else Float32)

    return converted


def _is_class(x: object) -> bool:
    return isclass(x) or isinstance(x, DType)


def is_instance(x: object, kinds: Any) -> bool:
    """Python's `isinstance`, for which a tensor of coordinates and an argument of a launch that `from_dlpack` made are
    tensors, too, and the element type is a type.
    """
    known = get_args(kinds) if get_origin(kinds) in (Union, UnionType) else kinds
    if isinstance(x, known):
        return True
    is_tensor = isinstance(x, CoordTensor) or hasattr(type(x), "__tilefold_tensor__")
    stands_for = Tensor if is_tensor else type if isinstance(x, DType) else None
    return stands_for is not None and stands_for in as_tuple(known)


def _type(*arguments: object) -> Any:
    """The type that programs name for a value of the kernel: `type(x) is cute.Float32`."""
    value = arguments[0]
    if len(arguments) != 1 or not isinstance(value, Value):
        return type(*arguments)
    return Int32 if value.dtype == Index else value.dtype


BUILTINS: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    range: _range,
    min: _extreme("min", min),
    max: _extreme("max", max),
    sum: _sum,
    any: _quantifier(any, or_),
    all: _quantifier(all, and_),
    bool: _convert(bool, "bool"),
    int: _convert(int, "int"),
    float: _convert(float, "float"),
    isclass: _is_class,
    isinstance: is_instance,
    type: _type,
})  # fmt: skip
"""Our functions by those of Python."""
