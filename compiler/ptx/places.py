# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the instructions of PTX text come from: places in sources that `.loc` names, or in the text (PTX ISA, .loc)."""

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr

from .syntax import Instruction, Module

Locate = Callable[[Instruction], LocationAttr]
"""The place in a source that an instruction comes from."""
_WRAPPER = 3
"""The most lines of a function that only wraps an instruction, so that its call says more than its lines."""


def locations(files: Mapping[int, str], file: str, module: Module | None = None) -> Locate:
    """Where instructions come from: the place that `.loc` says in one of `files` by its number; that of the call, of a
    function that is inlined from another file, or that is a wrapper of a few lines in a `module`; or else the place in
    the text, which is `file`.
    """
    wrappers = frozenset[str]() if module is None else _wrappers(module)

    def locate(instruction: Instruction) -> LocationAttr:
        at = instruction.location
        while at is not None and at.call is not None and (at.file not in files or at.function in wrappers):
            at = at.call
        if at is not None and at.line and at.file in files:
            return FileLineColLoc(StringAttr(files[at.file]), IntAttr(at.line), IntAttr(at.column))
        place = instruction.place
        return FileLineColLoc(StringAttr(file), IntAttr(place.line), IntAttr(place.column))

    return locate


def _wrappers(module: Module) -> frozenset[str]:
    """The inlined functions of a few lines."""
    lines: dict[str, set[int]] = {}
    for function in module.functions.values():
        for statement in function.body or ():
            at = statement.location if isinstance(statement, Instruction) else None
            while at is not None:
                lines.setdefault(at.function, set()).add(at.line)
                at = at.call
    return frozenset(name for name, own in lines.items() if name and len(own) <= _WRAPPER)
