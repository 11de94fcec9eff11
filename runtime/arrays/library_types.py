# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The element types of arrays, by the names that other libraries give them."""

from collections.abc import Mapping
from types import MappingProxyType

from ...base.element_types import ELEMENT_TYPES, ElementType

_OF_ARRAYS = [element for element in ELEMENT_TYPES if element.dlpack is not None]

_TREATED_AS = [element for element in ELEMENT_TYPES if element.is_held_in_bytes]
ELEMENTS: Mapping[str, ElementType] = MappingProxyType(
    {**{element.signed_name: element for element in _OF_ARRAYS}, **{x.signed_name: x for x in _TREATED_AS}}
)
"""Every element type that arrays have, by its name in MLIR, `ui8` where it has no sign, and those as which bytes can
be treated.
"""
BY_LIBRARY_NAME: Mapping[str, ElementType] = MappingProxyType({element.library: element for element in _OF_ARRAYS})
"""Element types by their names in NumPy, ml_dtypes and torch."""
BY_NAME_OF_PAIRS: Mapping[str, ElementType] = MappingProxyType(
    {f"{element.library}_x2": element for element in _TREATED_AS if element.bits == 4}
)
"""Element types of 4 bits by torch's names for types whose elements are pairs of them."""
BY_DLPACK: Mapping[tuple[int | None, int], ElementType] = MappingProxyType(
    {(element.dlpack, 8 * element.bytes): element for element in _OF_ARRAYS}
)
"""Element types by DLPack's code and bits (dlpack.h, DLDataType)."""
BY_TYPESTR: Mapping[str, ElementType] = MappingProxyType(
    {f"{element.numpy_kind}{element.bytes}": element for element in _OF_ARRAYS if element.in_numpy}
)
"""Element types by the `typestr` of an array interface, without its byte order; other types have none."""

ELEMENTS_HINT = "use floats and integers of 8 to 64 bits, or bool"
"""The hint for arrays of other elements."""
