# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of layouts, copies and multiplications, as files."""

from os import PathLike, fspath
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.dialects.tile import MmaAtomAttr
from tilefold.driver.output import write_picture
from tilefold.layout.algebra.core import Layout, LayoutLike
from tilefold.layout.algebra.display import Displayed


def print_latex(layout: LayoutLike) -> None:
    """Prints a LaTeX document with the table of the indices of a static layout (CuTe's print_latex)."""
    from tilefold.layout.drawing.drawings import make_index_table
    from tilefold.layout.drawing.latex import latex

    print(latex(make_index_table(layout)), end="")


def print_latex_tv(layout_tv: Layout, tile: object = None) -> None:
    """Prints a LaTeX document with the thread and the value at each place of a tile, by a layout from (thread, value)
    to places.
    """
    from tilefold.layout.drawing.drawings import make_thread_value_table
    from tilefold.layout.drawing.latex import latex

    print(latex(make_thread_value_table(str(layout_tv), layout_tv, tile)), end="")


def save_picture(x: Displayed | MmaAtomAttr, path: str | PathLike[str]) -> None:
    """Writes the picture of a static layout, a tiled copy, a tiled MMA or an atom, as SVG or PNG by the suffix of
    `path`.

    TilefoldError for a value without a picture (E5002), for a path that ends otherwise (E4003) or cannot be written
    (E4002), for PNG where Pillow is not installed (E4004), and where `tilefold.layout.drawing.drawings.tables` raises
    it.
    """
    from tilefold.layout.drawing.pictures import picture

    shown: Any = x.atom if isinstance(x, MmaAtomAttr) else getattr(x, "displayed", None)
    if shown is None:
        hint = "pass a layout, a tiled copy, a tiled MMA or an atom"
        raise TilefoldError(Code.BUILD_VALUE, f"cannot draw {x!r:.100}", hint)
    name = fspath(path)
    kind = name.lower().rpartition(".")[2]
    if kind not in ("svg", "png"):
        raise TilefoldError(Code.CLI_VALUE, f"{name[:100]!r} ends in neither .svg nor .png", "such as tile.svg")
    write_picture(picture(shown), name, png=kind == "png")
