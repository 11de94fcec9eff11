# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of fragments and of tensors in shared memory in messages: also where a fragment has become bytes, by its
layout as it was written.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from xdsl.ir import Operation, OpResult

from ....dialects.kernel import KernelOp
from ....dialects.tile import AllocOp, FragmentOp, Space, TensorType
from ....layout.algebra.coordinates import idx2crd
from ....layout.algebra.core import ComposedLayout, size
from ....layout.algebra.inttuple import show
from ....layout.text.layouts import to_text
from ..faults import site_of

MAX_NAMED = 4096
"""The most elements that are searched for that of a byte."""

Key: TypeAlias = tuple[str, str | None, int]
"""A fragment by its place in the source, its name and its bytes."""
Fragments: TypeAlias = Callable[[], Mapping[Key, TensorType]]
"""The types of the fragments that can be distinguished, computed when a message needs them."""


def key_of(op: Operation, result: OpResult, bytes: int) -> Key:
    """The key of a fragment that an operation makes."""
    return site_of(op).location, result.name_hint, bytes


def fragments_of(kernel: KernelOp) -> Mapping[Key, TensorType]:
    """The fragments of a kernel as it was written."""
    types: dict[Key, TensorType | None] = {}
    for op in kernel.walk():
        if isinstance(op, AllocOp | FragmentOp) and op.result.type.space.data is Space.Rmem:
            type = op.result.type
            key = key_of(op, op.result, type.bytes)
            types[key] = type if types.get(key, type) == type else None
    return {key: type for key, type in types.items() if type is not None}


def fragment_name(hint: str | None) -> str:
    """A fragment in words."""
    return "a fragment" if hint is None else f"fragment %{hint}"


def element_at(type: TensorType, byte: int) -> str | None:
    """The element of a fragment that a byte is in, by its coordinate; None if it has no known coordinate."""
    coords = _elements_at(type, byte)
    return f"element {show(coords[0])}" if coords else None


def sharing_at(type: TensorType, byte: int) -> str | None:
    """The first two elements of a tensor that have the same byte, in words; None where one has it."""
    coords = _elements_at(type, byte)
    if len(coords) < 2:
        return None
    return f"elements {show(coords[0])} and {show(coords[1])} of the layout {to_text(type.plain_layout)} are both there"


def _elements_at(type: TensorType, byte: int) -> list[Any]:
    """The coordinates of the elements that a byte is in, where they are known."""
    if isinstance(type.layout.data, ComposedLayout) or size(type.plain_layout) > MAX_NAMED:
        return []
    layout, index = type.plain_layout, byte * 8 // type.element_bits
    coords = (idx2crd(number, layout.shape) for number in range(int(size(layout))))
    return [coord for coord in coords if layout(coord) == index]
