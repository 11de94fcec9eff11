# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of layouts, copies and multiplications, as files, and tables in LaTeX."""

from collections.abc import Iterator
from os import PathLike, fspath

from tilefold.base.errors import Code, TilefoldError
from tilefold.dialects.tile import MmaAtomAttr
from tilefold.driver.output import write_picture
from tilefold.layout.algebra.core import Layout, LayoutLike
from tilefold.layout.algebra.display import Displayed
from tilefold.layout.drawing.drawings import Cell, Table


def print_latex(layout: LayoutLike) -> None:
    """Prints a LaTeX document with the table of the indices of a static layout (CuTe's print_latex)."""
    from tilefold.layout.drawing.drawings import make_index_table

    print(latex(make_index_table(layout)), end="")


def print_latex_tv(layout_tv: Layout, tile: object = None) -> None:
    """Prints a LaTeX document with the thread and the value at each place of a tile, by a layout from (thread, value)
    to places.
    """
    from tilefold.layout.drawing.drawings import make_thread_value_table

    print(latex(make_thread_value_table(str(layout_tv), layout_tv, tile)), end="")


def save_picture(x: Displayed | MmaAtomAttr, path: str | PathLike[str]) -> None:
    """Writes the picture of a static layout, a tiled copy, a tiled MMA or an atom, as SVG or PNG by the suffix of
    `path`.

    TilefoldError for a value without a picture (E5002), for a path that ends otherwise (E4003) or cannot be written
    (E4002), for PNG where Pillow is not installed (E4004), and where `tilefold.layout.drawing.drawings.tables` raises
    it.
    """
    from tilefold.layout.drawing.pictures import picture

    shown = x.atom if isinstance(x, MmaAtomAttr) else getattr(x, "displayed", None)
    if shown is None:
        hint = "pass a layout, a tiled copy, a tiled MMA or an atom"
        raise TilefoldError(Code.BUILD_VALUE, f"cannot draw {x!r:.100}", hint)
    name = fspath(path)
    kind = name.lower().rpartition(".")[2]
    if kind not in ("svg", "png"):
        raise TilefoldError(Code.CLI_VALUE, f"{name[:100]!r} ends in neither .svg nor .png", "such as tile.svg")
    write_picture(picture(shown), name, png=kind == "png")


_HEAD = r"""\documentclass{standalone}
\usepackage{tikz}
\begin{document}
\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm,inner sep=0pt,outer sep=0pt}]"""
_TAIL = r"""\end{tikzpicture}
\end{document}
"""


def latex(table: Table) -> str:
    """A document with the table: rows downwards, coordinates at the edges, cells in their colours."""
    return "\n".join((_HEAD, *_lines(table), _TAIL))


def _lines(table: Table) -> Iterator[str]:
    rows, columns = len(table.rows), len(table.rows[0]) if table.rows else 0
    for m, row in enumerate(table.rows):
        for n, cell in enumerate(row):
            yield rf"\node[fill={{{_colour(cell)}}}] at ({m},{n}) {{{_text(cell)}}};"
    yield rf"\draw[shift={{(-0.5,-0.5)}}] (0,0) grid ({rows},{columns});"
    for m in range(rows):
        yield rf"\node at ({m},-1) {{\Large{{\texttt{{{m}}}}}}};"
    for n in range(columns):
        yield rf"\node at (-1,{n}) {{\Large{{\texttt{{{n}}}}}}};"


def _colour(cell: Cell) -> str:
    red, green, blue = (int(cell.colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgb,255:red,{red};green,{green};blue,{blue}"


def _text(cell: Cell) -> str:
    """The text of a cell; thread and value one above the other."""
    thread, mark, value = cell.text.partition("V")
    return rf"\shortstack{{{thread} \\ {mark}{value}}}" if mark else cell.text
