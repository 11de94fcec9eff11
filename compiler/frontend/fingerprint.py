# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A text that differs where two modules do: for comparison only, and faster to write than the program."""

from enum import Enum
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, SSAValue

from ...dialects.cute.attributes import QuotedAttr

_EXACT: frozenset[type] = frozenset({int, bool, str, bytes})
"""Types whose different values have different `repr`. `float` is not among them, because of NaN."""
_KINDS: tuple[type[Attribute], ...] = (ParametrizedAttribute, ArrayAttr, QuotedAttr, Attribute)


def fingerprint(module: Operation) -> str:
    """All of a module that compiling depends on: operations with their attributes, types, operands, regions and places
    in the source. Equal for modules that print alike, different for others.
    """
    writer = _Writer()
    writer.operation(module)
    return "\n".join(writer.lines)


class _Writer:
    """Numbers values in the order of their definitions, and looks into an object of an attribute once.

    An attribute is written wherever it occurs: which attributes are one object depends on earlier programs.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[SSAValue, int] = {}
        self._blocks: dict[Block, int] = {}
        self._texts: dict[int, str] = {}  # by id, since the module keeps its attributes
        self._kinds: dict[type[Attribute], type[Attribute]] = {}

    def operation(self, op: Operation) -> None:
        """Writes an operation and everything in it."""
        numbers, blocks, text = self._numbers, self._blocks, self.text
        words = [
            op.name,
            ",".join([str(numbers.setdefault(operand, len(numbers))) for operand in op.operands]),
            ",".join([str(blocks.setdefault(block, len(blocks))) for block in op.successors]),
        ]
        for attributes in (op.properties, op.attributes):
            if attributes:
                words += [f"{name}={text(attributes[name])}" for name in sorted(attributes)]
        words += [self._defined(result) for result in op.results]
        location = op.location
        if isinstance(location, FileLineColLoc):
            words.append(f"{location.filename.data}:{location.line.data}:{location.column.data}")
        self.lines.append("\t".join(words))
        for region in op.regions:
            self.lines.append("{")
            for block in region.blocks:
                self.lines.append(f"^{blocks.setdefault(block, len(blocks))}")
                self.lines.append("\t".join([self._defined(arg) for arg in block.args]))
                for inner in block.ops:
                    self.operation(inner)
            self.lines.append("}")

    def _defined(self, value: SSAValue) -> str:
        number = self._numbers.setdefault(value, len(self._numbers))
        return f"{number} {value.name_hint or ''}:{self.text(value.type)}"

    def text(self, attribute: Attribute) -> str:
        """The text of an attribute, which the module keeps."""
        text = self._texts.get(id(attribute))
        if text is None:
            text = self._texts[id(attribute)] = self._write(attribute)
        return text

    def _write(self, attribute: Attribute) -> str:
        """The text of an attribute by its name and its parts; its printed form where their kind is unknown."""
        kind = self._kinds.get(type(attribute))
        if kind is None:
            kind = self._kinds[type(attribute)] = next(kind for kind in _KINDS if isinstance(attribute, kind))
        if kind is ParametrizedAttribute:
            parts = cast("ParametrizedAttribute", attribute).parameters
            return f"{attribute.name}<{','.join([self.text(part) for part in parts])}>"
        data: object = getattr(attribute, "data", None)
        if kind is ArrayAttr:
            return f"[{','.join([self.text(part) for part in cast('tuple[Attribute, ...]', data)])}]"
        if kind is QuotedAttr or type(data) in _EXACT:
            return f"{attribute.name}<{data!r}>"
        if isinstance(data, Enum):
            return f"{attribute.name}<{data.name}>"
        printed = str(attribute)
        return f"{attribute.name}<{len(printed)}:{printed}>"
