# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of an explanation: steps, each with the rule it follows and a claim that can be checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..algebra.core import ComposedLayout, Layout, LayoutLike
from ..algebra.swizzle import Swizzle
from ..tiling.tiled_copy import TiledCopy
from .layouts import to_text

Function: TypeAlias = "LayoutLike | Swizzle"


@dataclass(frozen=True, slots=True)
class Agree:
    """The chains of functions `left` and `right`, each applied from the last to the first, are equal below `size`."""

    left: tuple[Function, ...]
    right: tuple[Function, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Distinct:
    """No two coordinates of `layout` have one index."""

    layout: Layout


@dataclass(frozen=True, slots=True)
class Increasing:
    """The indices of `layout` increase with the coordinate."""

    layout: Layout


@dataclass(frozen=True, slots=True)
class SameIndices:
    """`left` and `right` have the same set of indices."""

    left: Layout
    right: Layout


Claim: TypeAlias = Agree | Distinct | Increasing | SameIndices


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the name of the `rule`, its effect here, and a claim that holds because of it.

    `inside` explains an operation that the step calls.
    """

    rule: str
    text: str
    claim: Claim
    inside: "Explanation | None" = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """How an operation came to its result, step by step; `str` gives it as text of several lines."""

    operation: str
    arguments: tuple[object, ...]
    steps: tuple[Step, ...]
    result: Any

    def __str__(self) -> str:
        call = f"{self.operation}({', '.join(map(shown, self.arguments))})"
        return "\n".join([call, *self._lines(""), f"= {shown(self.result)}"])

    def _lines(self, number: str) -> Iterator[str]:
        for i, step in enumerate(self.steps, 1):
            label = f"{number}{i}."
            yield f"{'  ' * label.count('.')}{label} {step.rule}: {step.text}"
            if step.inside is not None:
                yield from step.inside._lines(label)

    def all_steps(self) -> Iterator[Step]:
        """The steps, each followed by those of the operation it calls."""
        for step in self.steps:
            yield step
            if step.inside is not None:
                yield from step.inside.all_steps()


def shown(x: Any) -> str:
    """The canonical text of an argument or a result; a tiled copy shows its tile."""
    if x is None or isinstance(x, tuple | int | Swizzle | Layout | ComposedLayout):
        return to_text(x)
    return f"tiled copy of {shown(x.layout_tv)}" if isinstance(x, TiledCopy) else str(x)
