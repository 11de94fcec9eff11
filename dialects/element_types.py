# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types as types of the IR."""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import Builtin, IntegerType, Signedness
from xdsl.ir import Attribute

from ..base.element_types import ELEMENT_TYPES, ElementType

_BUILTIN: Mapping[str, type[Attribute]] = {type.name: type for type in Builtin.attributes}


def ir_type(element: ElementType) -> Attribute:
    """The type of values and of new tensors of such elements. Integers have no sign, unless they are packed."""
    if element.exponent:
        return _BUILTIN[element.mlir]()
    if element.kind != "packed":
        return IntegerType(element.bits)
    return IntegerType(element.bits, Signedness.UNSIGNED if element.unsigned else Signedness.SIGNED)


def ir_types(element: ElementType) -> tuple[Attribute, ...]:
    """The types of tensors that hold such elements, `ir_type` first: those of 4 bits may have no sign."""
    more = element.kind == "packed" and not element.exponent and element.bits > 1  # an i1 is a predicate
    return (ir_type(element), IntegerType(element.bits)) if more else (ir_type(element),)


def _by_type() -> Mapping[Attribute, ElementType]:
    by_type: dict[Attribute, ElementType] = {}
    for element in ELEMENT_TYPES:
        for type in ir_types(element):
            by_type.setdefault(type, element)
    return MappingProxyType(by_type)


_ELEMENTS = _by_type()

FLOATS: Mapping[type[Attribute], ElementType] = MappingProxyType(
    {type.__class__: element for type, element in _ELEMENTS.items() if element.kind == "float"}
)
"""The floating-point types by their classes in xDSL."""

PACKED_TYPES = tuple(type for type, element in _ELEMENTS.items() if element.kind == "packed" and element.bits <= 4)
"""Element types whose elements share bytes in memory; those of 6 bits take a byte each."""

NARROW_FLOATS: Mapping[type[Attribute], ElementType] = MappingProxyType(
    {type.__class__: element for type, element in _ELEMENTS.items() if element.is_narrow_float}
)
"""The floats without arithmetic by their classes in xDSL."""


def element_of(type: Attribute) -> ElementType | None:
    """The element type that a type of the IR stands for, the signed one of integers; None for any other type."""
    return _ELEMENTS.get(type)
