# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The notation of recipes: `f16 A + 256 dims (A_1, A_0) strides (A_2 * 2) box (64, 128) swizzle 128B`.

recipe  := element name ("+" sum)? "dims" list ("strides" list)? "box" list ("swizzle" ("32B" | "64B" | "128B"))?
           ("fill" "nan")? ("promotion" ("0B" | "64B" | "128B" | "256B"))? "stored"?
list    := "(" sum ("," sum)* ")"
sum     := product (("+" | "-") product)*
product := atom (("*" | "//" | "%") atom)*
atom    := integer | name | "(" sum ")"
"""

import re
from collections.abc import Callable

from ...base.errors import LayoutError, LayoutSyntaxError
from ..text.parser import MAX_DEPTH, Parser
from .launch_int import LaunchInt, LaunchValue
from .recipe import MAP_ELEMENTS, PROMOTIONS, MapRecipe
from .tensor_map import SWIZZLE_NAMES

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_LIST = 16
"""More integers than any list has."""


def parse_recipe(text: str) -> MapRecipe:
    """Reads a recipe. LayoutSyntaxError (E02xx) for other text and for values that no map has."""
    return _RecipeParser(text).whole(_RecipeParser.recipe)


def print_recipe(recipe: MapRecipe) -> str:
    """The text of a recipe, which `parse_recipe` reads."""
    parts = [recipe.element.key, recipe.tensor]
    if recipe.offset != 0:
        parts.append(f"+ {recipe.offset}")
    parts.append(f"dims {_list(recipe.dims)}")
    if recipe.strides:
        parts.append(f"strides {_list(recipe.strides)}")
    parts.append(f"box {_list(recipe.box)}")
    if recipe.swizzle_bits:
        parts.append(f"swizzle {SWIZZLE_NAMES[recipe.swizzle_bits]}")
    if recipe.nan_fill:
        parts.append("fill nan")
    if recipe.promotion != PROMOTIONS[-1]:
        parts.append(f"promotion {recipe.promotion}B")
    if recipe.stored:
        parts.append("stored")
    return " ".join(parts)


def _list(values: tuple[LaunchValue, ...]) -> str:
    return f"({', '.join(map(str, values))})"


class _RecipeParser(Parser):
    """Parses one recipe."""

    def recipe(self) -> MapRecipe:
        element = self._word(tuple(MAP_ELEMENTS))
        tensor = self._name("the name of a tensor")
        offset = self._sum() if self.accept("+") else 0
        self.expect("dims", "before the extents")
        dims = self._values()
        strides = self._values() if self.accept("strides") else ()
        self.expect("box", "before the extents that an instruction moves")
        self.space()
        start = self.pos
        values = self._values()
        box = tuple(value for value in values if isinstance(value, int))
        if len(box) != len(values):
            self.fail("the extents of a box are numbers", start, self.pos)
        swizzle = SWIZZLE_NAMES.index(self._word(SWIZZLE_NAMES)) if self.accept("swizzle") else 0
        nan_fill = self.accept("fill") and self._word(("nan",)) == "nan"
        promotions = [f"{size}B" for size in PROMOTIONS]
        promotion = PROMOTIONS[promotions.index(self._word(promotions)) if self.accept("promotion") else -1]
        made = tensor, MAP_ELEMENTS[element], dims, strides, box, swizzle, offset, nan_fill, promotion
        stored = self.accept("stored")
        try:
            return MapRecipe(*made, stored)
        except LayoutSyntaxError:
            raise
        except LayoutError as error:
            self.fail(error.message, start, self.pos, error.code, error.hint)

    def _word(self, words: "tuple[str, ...] | list[str]") -> str:
        """One of some words."""
        self.space()
        match = re.compile(r"[A-Za-z0-9_]+").match(self.text, self.pos)
        if match is None or match[0] not in words:
            self.fail(f"expected one of {', '.join(words)}", end=None if match is None else match.end())
        self.pos = match.end()
        return match[0]

    def _name(self, expected: str) -> str:
        self.space()
        match = _NAME.match(self.text, self.pos)
        if match is None:
            self.fail(f"expected {expected}, found {repr(self.peek()) if self.peek() else 'the end'}")
        self.pos = match.end()
        return match[0]

    def _values(self) -> tuple[LaunchValue, ...]:
        self.expect("(", "before the first integer")
        values = [self._sum()]
        while self.accept(","):
            if len(values) == _MAX_LIST:
                self.fail(f"more than {_MAX_LIST} integers")
            values.append(self._sum())
        self.expect(")", "after the last integer")
        return tuple(values)

    def _sum(self) -> LaunchValue:
        return self._chain(("+", "-"), lambda: self._chain(("*", "//", "%"), self._atom))

    def _chain(self, operators: tuple[str, ...], operand: Callable[[], LaunchValue]) -> LaunchValue:
        value = operand()
        while (operator := next(filter(self.accept, operators), None)) is not None:
            self.count += 1
            if self.count > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} operators")
            value = LaunchInt(value, operator, operand())
        return value

    def _atom(self) -> LaunchValue:
        if self.accept("("):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} parentheses")
            value = self._sum()
            self.depth -= 1
            self.expect(")", "after a sum")
            return value
        if self.peek().isdigit():
            return self.integer()
        return LaunchInt(self._name("an integer or the name of a parameter"))
