# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of other languages that are given to a command, and the alternative to suggest."""

from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType

from tilefold.base.errors import Code, TilefoldError

_METHODS: Mapping[str, str] = MappingProxyType({
    "compile": "print(k.ptx()) after a launch, or k(...).build(block).ptx()",
    "check": "print(k(...).check(grid, block))",
    "bisect": "print(k(...).bisect(grid, block))",
    "reduce": "k(...).reduce(folder, grid, block)",
    "explain": "print(k.explain()) after a launch, or k(...).build(block).explain()",
    "profile": "print(k(...).costs(grid, block))",
    "export": "k(...).build(block).export(folder)",
})  # fmt: skip
"""The method of a kernel in Python that does the work of each command."""


def check_language(file: str, command: str) -> None:
    """TilefoldError (E4003) for a file that is no .cute file by its name."""
    suffix = PurePath(file).suffix.lower()
    if suffix in (".py", ".ipynb"):
        raise TilefoldError(
            Code.CLI_VALUE, f"{file[:80]} is a program in Python, not a .cute file", _hint(file, command)
        )
    if suffix in (".ptx", ".cu"):
        text = f"{file[:80]} is not a .cute file: {command} has no stage of it to show"
        raise TilefoldError(Code.CLI_VALUE, text, "`tilefold check` and `tilefold run` take such files")
    if suffix in (".cuh", ".cpp", ".hpp"):
        hint = "write the kernel in Python (docs/python.md), or as a .cute file"
        raise TilefoldError(Code.CLI_VALUE, f"{file[:80]} is a program in C++, not a .cute file", hint)


def _hint(file: str, command: str) -> str:
    run = "open it in Jupyter" if file.endswith("ipynb") else f"write python {file[:80]}"
    if command == "run":
        return f"{run}: its calls k(...).launch(grid=..., block=...) run on the GPU if there is one, or simulated"
    if command in _METHODS:
        return f"{run}, with {_METHODS[command]} in it"
    return f"{run}; k(...).build(block).to_cute() is a kernel as the text of a .cute file"
