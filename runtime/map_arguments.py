# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps that a launch makes of its arguments, and the errors where it cannot."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

from ..base.errors import LayoutError
from ..layout.algebra.core import Layout
from ..layout.algebra.integers import Unknown
from ..layout.tma.launch_int import renamed
from ..layout.tma.recipe import MapRecipe, PlacedMap
from .errors import LaunchError


class Given(Protocol):
    """A parameter of a kernel: its name, and the layout of a tensor with `?`."""

    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> Layout | None: ...


def value_words(parameters: Iterable[Given]) -> list[str]:
    """The names of a kernel's values, in their order: a tensor's address, then the `?` of its layout."""
    words: list[str] = []
    for parameter in parameters:
        words.append(parameter.name)
        if parameter.layout is not None:
            for fact, tree in (("extent", parameter.layout.shape), ("stride", parameter.layout.stride)):
                words += [f"the {fact} of mode {path}" for path in _unknown(tree, "")]
    return words


def _unknown(tree: object, path: str) -> Iterator[str]:
    """The modes of the `?` of a shape or a stride."""
    if isinstance(tree, tuple):
        for number, part in enumerate(cast("tuple[Any, ...]", tree)):
            yield from _unknown(part, f"{path},{number}" if path else str(number))
    elif isinstance(tree, Unknown):
        yield path or "0"


def place_map(recipe: MapRecipe, values: Mapping[str, Any], words: Mapping[str, str]) -> PlacedMap:
    """The tensor map of a launch, from the values of parameters by their names in the recipe.

    LaunchError (E0322) for a tensor that no map describes, with the argument by its `words`, and its mode.
    """
    try:
        return recipe.place(values[recipe.tensor], values)
    except LayoutError as error:
        cause = recipe.cause(values)
        because = "" if cause is None else f", which is {renamed(cause, words)}"
        problem = f"argument '{words[recipe.tensor]}': {error.message}{because}"
        raise LaunchError(error.code, problem, error.hint) from None
