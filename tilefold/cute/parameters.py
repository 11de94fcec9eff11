# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of a kernel's function: their names, defaults and annotations, and what a call gives each of them."""

import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

from tilefold.compiler.builder.scalars.dtypes import DType
from tilefold.runtime.arrays.signature import Dynamic

from .annotations import is_constexpr, meaning
from .specialise import BoundArguments


class Signature:
    """The parameters of a function, but for those `without`, and which of them are known while the kernel is built."""

    def __init__(self, function: Callable[..., object], without: Set[str] = frozenset()) -> None:
        self.function = function
        self.without = without

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature with annotations evaluated, where they can be."""
        try:
            found = inspect.signature(self.function, eval_str=True)
        except Exception:  # an annotation that names what is not there says nothing to us
            found = inspect.signature(self.function)
        return found.replace(parameters=[each for each in found.parameters.values() if each.name not in self.without])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(self.signature.parameters)

    @cached_property
    def is_plain(self) -> bool:
        """Whether each parameter has a name to be given by, and is one argument."""
        parameters = self.signature.parameters.values()
        return all(each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) for each in parameters)

    @cached_property
    def by_position(self) -> int:
        """The parameters that can be given by their position, where `is_plain` holds."""
        return sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in self.signature.parameters.values())

    @cached_property
    def defaults(self) -> Mapping[str, object]:
        """The values of parameters that a call need not give."""
        parameters = self.signature.parameters.values()
        return {each.name: each.default for each in parameters if each.default is not each.empty}

    @cached_property
    def constants(self) -> frozenset[str]:
        """The parameters that are known while the kernel is built."""
        parameters = self.signature.parameters.values()
        return frozenset(each.name for each in parameters if is_constexpr(each.annotation))

    @cached_property
    def rules(self) -> Mapping[str, Dynamic]:
        """The parameters that are annotated as dynamic tensors."""
        return {name: each for name, each in self._annotations.items() if isinstance(each, Dynamic)}

    @cached_property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """Of the parameters that are annotated as integers, the least and the greatest number."""
        annotated = {name: each for name, each in self._annotations.items() if isinstance(each, DType)}
        return {name: (each.least, each.greatest) for name, each in annotated.items() if each.kind == "int"}

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> BoundArguments:
        """What a call gives each parameter. TypeError as from Python for a call that does not fit."""
        if self.is_plain:
            return self.bind_in_order(self.in_order(tuple(args), kwargs))
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._bound(bound.arguments)

    def bind_in_order(self, args: Sequence[object]) -> BoundArguments:
        """The same for what `in_order` returns."""
        return self._bound(dict(zip(self.names, args, strict=True)))

    def _bound(self, given: Mapping[str, object]) -> BoundArguments:
        made = BoundArguments()
        for name, value in given.items():
            made.arguments[name] = made.add(name, value, self._annotations[name])
        return made

    @cached_property
    def _annotations(self) -> Mapping[str, object]:
        parameters = self.signature.parameters.values()
        # of `*name: annotation` the annotation is that of each argument, not of the tuple
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return {
            each.name: None if each.kind in variadic and not is_constexpr(each.annotation) else meaning(each.annotation)
            for each in parameters
        }

    def in_order(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in the order of the parameters, where `is_plain` holds. TypeError if it does not fit.

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

    def _unfit(self, problem: str) -> TypeError:
        return TypeError(f"{getattr(self.function, '__name__', 'the kernel')}() {problem}")
