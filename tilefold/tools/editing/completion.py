# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words that can stand at a place of a `.cute` file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from itertools import islice

from tilefold.compiler.pipeline import DIALECTS
from tilefold.layout.atoms.copy_table import COPY_ATOMS
from tilefold.layout.atoms.mma_table import MMA_ATOMS
from tilefold.tools.editing.document import Document
from tilefold.tools.editing.hover import operations

MAX_WORDS = 1000
"""The most words that are offered at a place, the nearest values first."""
_PARAMETER = re.compile(r"\$\{([^}]*?)\w*$")
_ATOM = re.compile(r'atom<"([^"]*)$')
_SIGIL = re.compile(r"([%@^!#][\w$.-]*)$")
_OPERATION = re.compile(r"(?:^|=)[ \t]*([a-z_][\w.]*)?$")


@dataclass(frozen=True, slots=True)
class Word:
    """A word that fits, its kind (`value`, `symbol`, `type`, `parameter`, `atom`, `operation` or `dialect`), a
    description in a few words, and the text after which the cursor stands, which it replaces.
    """

    text: str
    kind: str
    detail: str
    typed: str
    documentation: str = ""


def completions(document: Document, offset: int) -> list[Word]:
    """The words that can stand at an offset; none in a comment or where numbers and layouts do."""
    start = document.text.rfind("\n", 0, offset) + 1
    return list(islice(_words(document, offset, document.text[start:offset]), MAX_WORDS))


def _words(document: Document, offset: int, line: str) -> Iterator[Word]:
    if (match := _PARAMETER.search(line)) is not None:
        typed = re.search(r"\w*$", line)
        for name in document.parameters:
            yield Word(name, "parameter", document.value_of(name) or "", typed[0] if typed else "")
    elif line.lstrip().startswith("//"):
        return
    elif (match := _ATOM.search(line)) is not None:
        for name in (*COPY_ATOMS, *MMA_ATOMS):
            yield Word(name, "atom", "", match[1])
    elif (match := _SIGIL.search(line)) is not None:
        yield from _complete_names(document, offset, match[1])
    elif (match := _OPERATION.search(line)) is not None:
        typed = match[1] or ""
        dialect, dot, _ = typed.partition(".")
        if not dot:
            yield from (Word(name, "dialect", "dialect", typed) for name in DIALECTS)
            return
        for name, kind in operations(dialect).items():
            documentation = cleandoc(kind.__doc__ or "")
            yield Word(name, "operation", documentation.partition("\n")[0], typed, documentation)


def _complete_names(document: Document, offset: int, typed: str) -> Iterator[Word]:
    kinds = {"%": "value", "@": "symbol", "!": "type", "#": "type", "^": "symbol"}
    seen: set[str] = set()
    for definition in reversed(document.visible(offset)):
        if definition.name[0] == typed[0] and definition.name not in seen:
            seen.add(definition.name)
            type = document.type_of(definition) if typed[0] == "%" else None
            yield Word(definition.name, kinds[typed[0]], "" if type is None else str(type), typed)
    if typed[0] in "!#":
        for name, make in DIALECTS.items():
            if not typed[1:].startswith(name[: len(typed) - 1]):
                continue
            for attribute in make().attributes:
                is_type = "Type" in {base.__name__.removesuffix("Attribute") for base in attribute.__mro__}
                if is_type == (typed[0] == "!"):
                    yield Word(f"{typed[0]}{attribute.name}", "type", "", typed)
