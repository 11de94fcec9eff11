# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of a name of a `.cute` file, as Markdown, with a picture where it is a layout."""

import re
from base64 import b64encode
from inspect import cleandoc

from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation

from tilefold.base.errors import TilefoldError
from tilefold.compiler.pipeline import DIALECTS
from tilefold.dialects.tile import TensorType
from tilefold.layout import ComposedLayout, Layout, cosize, size
from tilefold.layout.atoms.copy_atom import CopyAtom
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.instructions import Absent
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.ptx_text import copy_text, mma_mnemonic
from tilefold.layout.drawing.drawings import Drawn
from tilefold.layout.drawing.pictures import notebook_svg
from tilefold.layout.text.layouts import parse_layout
from tilefold.tools.editing.document import Document, Occurrence

_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_USE = re.compile(r"\$\{[^}\n]*\}")
_OPERATION = re.compile(rf"\b(?:builtin|{'|'.join(DIALECTS)})\.[a-z_]\w*(?:\.\w+)*")


def hover(document: Document, offset: int) -> str | None:
    """A description of the name at an offset; None if there is none."""
    if (name := document.at(offset)) is not None:
        return _name(document, name)
    line_start = document.text.rfind("\n", 0, offset) + 1
    line_end = document.text.find("\n", offset)
    line = document.text[line_start : line_end if line_end >= 0 else len(document.text)]
    if line.lstrip().startswith("//"):
        return None
    column = offset - line_start
    for match in _TEXT.finditer(line):
        if match.start() <= column <= match.end():
            return _describe_quoted(document, match[1])
    for match in _OPERATION.finditer(line):
        if match.start() <= column <= match.end():
            return operation_help(match[0])
    return None


def _name(document: Document, name: Occurrence) -> str | None:
    definition = document.definition(name)
    match name.name[0]:
        case "%":
            type = None if definition is None else document.type_of(definition)
            return None if type is None else _code(f"{name.name} : {type}") + _picture_of_type(type)
        case "!" | "#" | "@":
            return None if definition is None else _code(_expand(document, _line(document, definition.start)))
        case "^":
            return None
        case _:
            value = document.value_of(name.name)
            return None if value is None else _code(f"{name.name} = {value}") + _picture_of_text(value)


def _line(document: Document, offset: int) -> str:
    line, _ = document.source.position(offset)
    return document.source.line(line).strip()


def _expand(document: Document, text: str) -> str:
    """A text in which parameters are replaced by their values, where these are known."""

    def value(match: re.Match[str]) -> str:
        value = document.value_of(match[0][2:-1].strip())
        return match[0] if value is None else value.strip('"')

    return _USE.sub(value, text)


def _describe_quoted(document: Document, text: str) -> str | None:
    text = _expand(document, text)
    return atom_help(text) or _picture_of_text(text) or None


def _picture_of_type(type: Attribute) -> str:
    return _picture(type.layout.data) if isinstance(type, TensorType) else ""


def _picture_of_text(text: str) -> str:
    try:
        return _picture(parse_layout(text.strip('"')))
    except TilefoldError:
        return ""


def _picture(layout: object) -> str:
    if not isinstance(layout, Layout | ComposedLayout):
        return ""
    try:
        sizes = f"\n\n{size(layout)} elements, the last at {cosize(layout) - 1}"
    except TilefoldError:  # it is not known before the program runs
        sizes = ""
    return sizes + _image(layout)


def _image(x: Drawn) -> str:
    svg = notebook_svg(x)
    return "" if svg is None else f"\n\n![picture](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"


def atom_help(name: str) -> str | None:
    """The description of an atom; None if no atom has this name."""
    atom = _atom_of(name)
    if atom is None:
        return None
    if isinstance(atom, MmaAtom):
        instruction = f"`{mma_mnemonic(atom)}`"
    else:
        instruction = "no instruction" if isinstance(atom.instruction, Absent) else f"`{copy_text(atom)}`"
    description = f"{instruction} by {atom.threads} {atom.contract.counts.value}"
    return f"**{name}**: {description}; needs {atom.targets}\n\n{atom.contract.section}{_image(atom)}"


def _atom_of(name: str) -> CopyAtom | MmaAtom | None:
    for make in (copy_atom, mma_atom):
        try:
            return make(name)
        except TilefoldError:
            continue
    return None


def operation_help(name: str) -> str | None:
    """The description of an operation: its operands, results and properties, and its documentation."""
    kind = operations(name.partition(".")[0]).get(name)
    if kind is None:
        return None
    signature = name
    if issubclass(kind, IRDLOperation):
        definition = kind.get_irdl_definition()
        operands = ", ".join([operand for operand, _ in definition.operands])
        results = ", ".join([result for result, _ in definition.results])
        signature = f"{f'{results} = ' if results else ''}{name} {operands}".rstrip()
    return _code(signature) + f"\n\n{cleandoc(kind.__doc__ or '')}"


def operations(dialect: str) -> dict[str, type[Operation]]:
    """The operations of a dialect, by their names; none for an unknown dialect."""
    return {op.name: op for op in DIALECTS[dialect]().operations} if dialect in DIALECTS else {}


def _code(text: str) -> str:
    return f"```cute\n{text}\n```"
