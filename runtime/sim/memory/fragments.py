# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of fragments in messages: also where a fragment has become bytes, by its layout as it was written."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.ir import Operation, OpResult

from ....dialects.kernel import KernelOp
from ....dialects.tile import AllocOp, FragmentOp, Space, TensorType
from ....layout.algebra.coordinates import idx2crd
from ....layout.algebra.core import ComposedLayout, size
from ....layout.algebra.inttuple import show
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
    if isinstance(type.layout.data, ComposedLayout) or size(type.plain_layout) > MAX_NAMED:
        return None
    layout, index = type.plain_layout, byte * 8 // type.element_bits
    coords = (idx2crd(number, layout.shape) for number in range(int(size(layout))))
    return next((f"element {show(coord)}" for coord in coords if layout(coord) == index), None)
