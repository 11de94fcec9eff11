# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notebooks as programs: the code cells of an `.ipynb` file in their order. It is JSON (nbformat 4)."""

import ast
import json
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NOT_PYTHON = re.compile(r"^(?P<indent>[ \t]*)(?P<command>[%!].*)$", re.MULTILINE)


def cells_of(file: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each code cell of a notebook.

    The name tells the file and the cell, counted from 1 among all cells. Python can show lines of a cell by its name,
    as tracebacks and messages do. Raises SystemExit, with a message, for a file that is not a notebook.
    """
    try:
        cells: Any = json.loads(Path(file).read_bytes())["cells"]
        code = [
            (f"{file}[{number}]", "".join(cell["source"]))
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, LookupError, TypeError) as error:
        raise SystemExit(f"{file} is not a notebook (nbformat 4)") from error
    for name, text in code:
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        yield name, text


def python_of(text: str, name: str) -> str:
    """The text of a cell without lines that are commands of IPython (`%magic`, `!shell`), for which `pass` stands.

    Says on stderr which it leaves out. `%%` at the beginning of a cell takes the whole cell. A cell that Python
    accepts has no such line: there `%` at the beginning of a line is an operator.
    """
    try:
        ast.parse(text)
    except SyntaxError:
        lines = text.lstrip()
        if lines.startswith("%%"):
            _say_left_out(lines.splitlines()[0], name)
            return ""
        for command in _NOT_PYTHON.finditer(text):
            _say_left_out(command["command"], f"{name}:{text.count(chr(10), 0, command.start('command')) + 1}")
        return _NOT_PYTHON.sub(r"\g<indent>pass", text)
    return text


def _say_left_out(command: str, place: str) -> None:
    print(f"{place}: '{command}' is left out: it is a command of IPython", file=sys.stderr)
