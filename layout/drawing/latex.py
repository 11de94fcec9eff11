# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of layouts as LaTeX documents, drawn by TikZ (CuTe's print_latex)."""

from collections.abc import Iterator

from .drawings import Cell, Table

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
