# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base of classes that a notebook shows as pictures: layouts, copies, multiplications, and their atoms."""

from collections.abc import Callable
from typing import Any, ClassVar


class Displayed:
    """An object with a picture. The package `layout` gives it the methods that notebooks call, since pictures are made
    by `layout.drawing`, which the algebra does not know.
    """

    __slots__ = ()
    _repr_html_: ClassVar[Callable[[Any], str]]
    _repr_svg_: ClassVar[Callable[[Any], str | None]]

    @property
    def displayed(self) -> Any:
        """The object of the layout algebra that pictures show, for instance for a tiled copy of a kernel."""
        return self
