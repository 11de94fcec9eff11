# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of a kernel's function: their names, defaults and annotations, and their values in a call."""

import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, TypeVar

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.builder.scalars.dtypes import DType
from tilefold.runtime.arrays.signature import Dynamic

from .specialise import BoundArguments, is_constexpr, read_annotation

BoundArgumentsT = TypeVar("BoundArgumentsT", bound=BoundArguments)


class Signature:
    """The parameters of a function, but for those `without`, and which of them are known while the kernel is built."""

    def __init__(self, function: Callable[..., object], without: Set[str] = frozenset()) -> None:
        self.function = function
        self.without = without

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature with annotations evaluated, where they can be."""
        try:
            signature = inspect.signature(self.function, eval_str=True)
        except Exception:  # an annotation that names something undefined is ignored
            signature = inspect.signature(self.function)
        return signature.replace(parameters=[p for p in signature.parameters.values() if p.name not in self.without])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(self.signature.parameters)

    @cached_property
    def is_plain(self) -> bool:
        """Whether each parameter has a name to be given by, and is one argument."""
        parameters = self.signature.parameters.values()
        return all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters)

    @cached_property
    def by_position(self) -> int:
        """The parameters that can be given by their position, where `is_plain` holds."""
        return sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in self.signature.parameters.values())

    @cached_property
    def defaults(self) -> Mapping[str, object]:
        """The values of parameters that a call need not give."""
        parameters = self.signature.parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    @cached_property
    def constants(self) -> frozenset[str]:
        """The parameters that are known while the kernel is built."""
        parameters = self.signature.parameters.values()
        return frozenset(p.name for p in parameters if is_constexpr(p.annotation))

    @cached_property
    def rules(self) -> Mapping[str, Dynamic]:
        """The parameters that are annotated as dynamic tensors."""
        return {name: annotation for name, annotation in self.annotations.items() if isinstance(annotation, Dynamic)}

    @cached_property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """Of the parameters that are annotated as integers, the least and the greatest number."""
        annotated = {name: dtype for name, dtype in self.annotations.items() if isinstance(dtype, DType)}
        return {name: (dtype.least, dtype.greatest) for name, dtype in annotated.items() if dtype.kind == "int"}

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> BoundArguments:
        """The value of each parameter in a call. CallError for a call that does not fit."""
        return self.bound(self.given(args, kwargs), BoundArguments())

    def given(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments of a call by parameter. CallError for a call that does not fit."""
        if self.is_plain:
            return dict(zip(self.names, self.in_order(tuple(args), kwargs), strict=True))
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self._unfit(str(error)) from None
        bound.apply_defaults()
        return bound.arguments

    def bind_in_order(self, args: Sequence[object]) -> BoundArguments:
        """The same for what `in_order` returns."""
        return self.bound(dict(zip(self.names, args, strict=True)), BoundArguments())

    def bound(self, given: Mapping[str, object], made: BoundArgumentsT) -> BoundArgumentsT:
        """`made`, with the arguments of a call by parameter."""
        for name, value in given.items():
            made.arguments[name] = made.add(name, value, self.annotations[name])
        return made

    @cached_property
    def annotations(self) -> Mapping[str, object]:
        """The meaning of the annotations, by parameter."""
        parameters = self.signature.parameters.values()
        # of `*name: annotation` the annotation is that of each argument, not of the tuple
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return {
            p.name: None if p.kind in variadic and not is_constexpr(p.annotation) else read_annotation(p.annotation)
            for p in parameters
        }

    def in_order(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in the order of the parameters, where `is_plain` holds. CallError if it does not fit.

        Python's own binding takes much longer.
        """
        names, defaults = self.names, self.defaults
        if len(args) > self.by_position:
            raise self._unfit(f"takes {self.by_position} positional arguments but {len(args)} were given")
        for name in kwargs:
            if name not in names:
                raise self._unfit(f"got an unexpected keyword argument '{name}'")
            if name in names[: len(args)]:
                raise self._unfit(f"got multiple values for argument '{name}'")
        rest: list[Any] = []
        for name in names[len(args) :]:
            if name in kwargs:
                rest.append(kwargs[name])
            elif name in defaults:
                rest.append(defaults[name])
            else:
                raise self._unfit(f"is missing a required argument: '{name}'")
        return (*args, *rest)

    def _unfit(self, problem: str) -> "CallError":
        name, hint = getattr(self.function, "__name__", "the kernel"), ", ".join(self.names)
        hint = f"it takes {hint}" if hint else ""
        if known := sorted(self.without & Signature(self.function).constants):
            hint = f"{hint or 'it takes nothing'}; {', '.join(known)} was given to cute.compile"
        return CallError(Code.BUILD_NAME, f"{name}() {problem}", hint)


class CallError(TilefoldError, TypeError):
    """A call that does not fit a function's parameters, which Python calls a TypeError."""
