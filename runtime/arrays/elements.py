# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The element types of arrays, and what other libraries call them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Element:
    """An element type: its `name` in MLIR, its bytes, its `library_name` in NumPy, ml_dtypes and torch, and its code
    and bits as DLPack has them (dlpack.h, DLDataType). A bool is a byte.
    """

    name: str
    bytes: int
    library_name: str
    dlpack: tuple[int, int]


_INT, _UINT, _FLOAT, _BFLOAT, _BOOL, _FLOAT8_E4M3FN, _FLOAT8_E5M2 = 0, 1, 2, 4, 6, 10, 12
"""Codes of DLPack: kDLInt and so on."""

ELEMENTS: Mapping[str, Element] = MappingProxyType({
    each.name: each
    for each in (
        Element("i1", 1, "bool", (_BOOL, 8)),
        *(Element(f"i{8 * n}", n, f"int{8 * n}", (_INT, 8 * n)) for n in (1, 2, 4, 8)),
        *(Element(f"ui{8 * n}", n, f"uint{8 * n}", (_UINT, 8 * n)) for n in (1, 2, 4, 8)),
        Element("f8E4M3FN", 1, "float8_e4m3fn", (_FLOAT8_E4M3FN, 8)),
        Element("f8E5M2", 1, "float8_e5m2", (_FLOAT8_E5M2, 8)),
        Element("bf16", 2, "bfloat16", (_BFLOAT, 16)),
        *(Element(f"f{8 * n}", n, f"float{8 * n}", (_FLOAT, 8 * n)) for n in (2, 4, 8)),
    )
})  # fmt: skip
"""Every element type that arrays have, by its name."""

BY_LIBRARY_NAME: Mapping[str, Element] = MappingProxyType({each.library_name: each for each in ELEMENTS.values()})
BY_DLPACK: Mapping[tuple[int, int], Element] = MappingProxyType({each.dlpack: each for each in ELEMENTS.values()})
BY_TYPESTR: Mapping[str, Element] = MappingProxyType({
    f"{kind}{each.bytes}": each
    for kind, code in (("b", _BOOL), ("i", _INT), ("u", _UINT), ("f", _FLOAT))
    for each in ELEMENTS.values()
    if each.dlpack[0] == code
})  # fmt: skip
"""By the `typestr` of an array interface, without its byte order; those that are not here have none."""

ELEMENTS_HINT = "use floats and integers of 8 to 64 bits, or bool"
"""What messages say where an array has other elements."""
