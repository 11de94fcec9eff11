# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text that computes and stores its result in global memory, `{ .reg .b32 x; add.u32 x, $0, $1; st.global.b32 [$2],
x; }`, as text that computes and a store.

So the simulator sees the access (PTX ISA, st).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..scalars.dtypes import DTYPES, DType

_TEXT = re.compile(
    r"\s*\{(?P<body>.*;)\s*st(?:\.weak)?\.global(?:\.v(?P<count>[24]))?\.(?P<type>[bu]\d+)\s+\[\$(?P<at>\d+)\]\s*,"
    r"\s*(?P<values>\w+|\{[^{}]*\})\s*;?\s*\}\s*",
    re.DOTALL,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARATION = re.compile(r"\.reg\s+(\.\w+)\s+([\w\s,]+);")
_REGISTERS: Mapping[int, str] = MappingProxyType({8: "Uint16", 16: "Uint16", 32: "Uint32", 64: "Uint64"})
"""The types of registers by the bits that are stored of them: none has 8."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text without its store: `text` writes the `results`, which `store` takes after the address, number `address` of
    the operands.
    """

    text: str
    results: tuple[DType, ...]
    stored: DType
    store: str
    address: int


def stored_text(text: str, operands: int) -> StoredText | None:
    """The parts of a text with this many operands, and no results, that ends with a store; None for another."""
    found = _TEXT.fullmatch(_COMMENT.sub(" ", text))
    if found is None or f"Uint{found['type'][1:]}" not in DTYPES:
        return None
    names = [name.strip() for name in found["values"].strip("{}").split(",")]
    body, at, bits = found["body"], int(found["at"]), int(found["type"][1:])
    declared = {name.strip() for each in _DECLARATION.finditer(body) for name in each[2].split(",")}
    is_used = re.search(rf"\$\s*{at}\b", body) is not None
    if len(names) != int(found["count"] or 1) or len(set(names)) != len(names) or not declared.issuperset(names):
        return None
    if is_used or "@" in body or not 0 <= at < operands:
        return None
    body = _DECLARATION.sub(lambda each: _without(each, names), body)
    body = re.sub(r"\$(\d+)", lambda each: f"${int(each[1]) - (int(each[1]) > at) + len(names)}", body)
    for number, name in enumerate(names):
        body = re.sub(rf"(?<![\w.$%]){name}(?!\w)", f"${number}", body)
    registers = ", ".join(f"${number + 1}" for number in range(len(names)))
    value = f"{{{registers}}}" if found["count"] else registers
    vector = f".v{len(names)}" if found["count"] else ""
    store = f"st.global{vector}.b{bits} [$0], {value};"
    return StoredText(f"{{{body}}}", (DTYPES[_REGISTERS[bits]],) * len(names), DTYPES[f"Uint{bits}"], store, at)


def _without(declaration: re.Match[str], names: Sequence[str]) -> str:
    """A declaration of registers without some of them."""
    left = [name.strip() for name in declaration[2].split(",") if name.strip() not in names]
    return f".reg {declaration[1]} {', '.join(left)};" if left else ""
