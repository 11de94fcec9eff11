# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A text that differs where two modules do: faster to write than the program, and read by nobody."""

from collections.abc import Iterator

from xdsl.dialects.builtin import FileLineColLoc, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue, TypeAttribute

from ..dialects.cute import LayoutAttr

_EXACT: tuple[type, ...] = (TypeAttribute, IntegerAttr, StringAttr, LayoutAttr)
"""Attributes that are equal only if they are the same. Floats are not of these: 0.0 equals -0.0."""


def fingerprint(module: Operation) -> str:
    """All of a module that compiling depends on: operations with their attributes, types, operands, regions and places
    in the source. Equal for modules that print alike, different for others.
    """
    return "\n".join(_Writer().operation(module))


class _Writer:
    """Numbers values in the order of their definitions, and writes each attribute out once."""

    def __init__(self) -> None:
        self._numbers: dict[SSAValue, int] = {}
        self._attributes: dict[Attribute, str] = {}
        self._blocks: dict[Block, int] = {}

    def operation(self, op: Operation) -> Iterator[str]:
        """The lines of an operation and of what is in it."""
        numbers = self._numbers
        for block in op.successors:
            self._blocks.setdefault(block, len(self._blocks))
        words = [
            op.name,
            ",".join([str(numbers.setdefault(operand, len(numbers))) for operand in op.operands]),
            ",".join([str(self._blocks[block]) for block in op.successors]),
        ]
        for found in (op.properties, op.attributes):
            words += [f"{name}={self._attribute(found[name])}" for name in sorted(found)]
        for result in op.results:
            words.append(self._defined(result))
        location = op.location
        if isinstance(location, FileLineColLoc):
            words.append(f"{location.filename.data}:{location.line.data}:{location.column.data}")
        yield "\t".join(words)
        for region in op.regions:
            yield "{"
            for block in region.blocks:
                yield f"^{self._blocks.setdefault(block, len(self._blocks))}"
                yield "\t".join([self._defined(arg) for arg in block.args])
                for inner in block.ops:
                    yield from self.operation(inner)
            yield "}"

    def _defined(self, value: SSAValue) -> str:
        number = self._numbers.setdefault(value, len(self._numbers))
        return f"{number} {value.name_hint or ''}:{self._attribute(value.type)}"

    def _attribute(self, attribute: Attribute) -> str:
        """The text of an attribute, or its number where it was written out before."""
        exact: bool = isinstance(attribute, _EXACT)
        if not exact:
            return str(attribute)
        found = self._attributes.get(attribute)
        if found is None:
            found = self._attributes[attribute] = f"#{len(self._attributes)}"
            return f"{found} {attribute}"
        return found
