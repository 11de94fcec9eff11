# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The objects of a kernel that addresses belong to: allocations, elements of fragments, and views.

An address that is computed from a pointer must stay in the pointer's allocation, even where another one lies next to
it. The operations that add to a pointer are followed back to the argument of the kernel or the piece of shared memory
from which they begin, also through loops and branches. Pointers that come from several may lead anywhere.

Messages name the elements of fragments and of tensors in shared memory, also where a fragment has become bytes, by its
layout as it was written.

A kernel may take a view at a coordinate that its tensor does not have, for an access that a predicate leaves out, and
other views of it. So the view itself is no fault. Its address is one of a range that belongs to the coordinate and lies
beyond all memory; the fault of an access names the coordinate.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, cf, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ....base.spaces import RMEM, Space
from ....dialects.kernel import KernelOp
from ....dialects.ptx import EntryOp, PtrAddOp, PtrType, SmemAddrOp
from ....dialects.tile import AllocOp, FragmentOp, TensorType, ViewOp
from ....dialects.tile.view_base import LayoutViewOp
from ....layout.algebra.coordinates import idx2crd
from ....layout.algebra.core import ComposedLayout, size
from ....layout.algebra.inttuple import show, unwrap
from ....layout.text.layouts import to_text
from ..faults import site_of
from ..values import Value, anywhere, varies
from .arena import NAMED, Allocation

MAX_NAMED = 4096
"""The most elements that are searched for the one that holds a byte."""

Key: TypeAlias = tuple[str, str | None, int]
"""A fragment by its place in the source, its name and its bytes."""
Fragments: TypeAlias = Callable[[], Mapping[Key, TensorType]]
"""The types of the fragments that can be distinguished, computed when a message needs them."""

Tiles: TypeAlias = Callable[[], Mapping[str, tuple[str, str]]]
"""How tiles reach beyond tensor arguments, by their names, with hints, computed when a message needs them."""

_BASE = 1 << 61
_SPAN = 1 << 34
"""Bytes for each coordinate; its view begins in their middle."""
_MOST = 1 << 26
_LOW_BITS = 4095
"""The bits of an address that stay, so that it is aligned as before."""
HINT = "check the coordinate against the shape, or predicate the access"


def pieces(entry: EntryOp, start: int) -> dict[SSAValue, Allocation]:
    """The allocations of shared memory of a kernel by their addresses, where the block's begins at an offset."""
    homes: dict[SSAValue, Allocation] = {}
    for op in entry.walk():
        if isinstance(op, SmemAddrOp) and op.bytes is not None:
            name = f"{NAMED}%{op.result.name_hint}" if op.result.name_hint else "shared memory"
            homes[op.result] = Allocation(name, start + op.offset.value.data, op.bytes.value.data)
    return homes


def root(op: Operation, space: Space) -> SSAValue | None:
    """The pointer from which additions of integers lead to the one by which an operation accesses a state space. None
    where it has several of them.
    """
    pointers = [value for value in op.operands if isinstance(value.type, PtrType) and value.type.space.data is space]
    return _root(pointers[0], set()) if len(pointers) == 1 else None


def _root(pointer: SSAValue, seen: set[SSAValue]) -> SSAValue | None:
    """The one pointer from which a value comes, also through loops and branches; None if it comes from several."""
    while isinstance(owner := pointer.owner, PtrAddOp):
        pointer = owner.ptr
    sources = _sources(pointer)
    if not sources or pointer in seen:
        return pointer
    seen.add(pointer)
    roots = {root for source in sources if (root := _root(source, seen)) not in seen}
    return roots.pop() if len(roots) == 1 else None


def _sources(value: SSAValue) -> list[SSAValue]:
    """The values that a loop or a branch passes on as this one."""
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        assert isinstance(value, BlockArgument)
        if isinstance(loop, scf.ForOp) and value.index > 0:
            return [loop.iter_args[value.index - 1], _yielded(owner)[value.index - 1]]
        if isinstance(loop, EntryOp):
            return _passed(owner, value.index)
    elif isinstance(value, OpResult):
        if isinstance(owner, scf.ForOp):
            return [owner.iter_args[value.index], _yielded(owner.body.block)[value.index]]
        if isinstance(owner, scf.IfOp):
            return [_yielded(region.block)[value.index] for region in owner.regions]
        if isinstance(owner, arith.SelectOp):
            return [owner.lhs, owner.rhs]
    return []


def _passed(block: Block, index: int) -> list[SSAValue]:
    """The values that branches to a block pass for one of its arguments; nothing for those of a kernel."""
    passed: list[SSAValue] = []
    for above in block.predecessors():
        end = above.last_op
        if isinstance(end, cf.BranchOp):
            passed.append(end.arguments[index])
        elif isinstance(end, cf.ConditionalBranchOp):
            sides = ((end.then_block, end.then_arguments), (end.else_block, end.else_arguments))
            passed += [arguments[index] for target, arguments in sides if target is block]
    return passed


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return () if last is None else last.operands


def key_of(op: Operation, result: OpResult, bytes: int) -> Key:
    """The key of a fragment that an operation makes."""
    return site_of(op).location, result.name_hint, bytes


def fragments_of(kernel: KernelOp) -> Mapping[Key, TensorType]:
    """The fragments of a kernel as it was written."""
    types: dict[Key, TensorType | None] = {}
    for op in kernel.walk():
        if isinstance(op, AllocOp | FragmentOp) and op.result.type.space.data is RMEM:
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


@dataclass(slots=True)
class Outside:
    """The out-of-range coordinates at which a launch has taken views."""

    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _texts: list[str] = field(default_factory=list[str])

    def address(self, view: str, coord: Sequence[int], shape: Sequence[int]) -> int:
        """The address of a view, which `view` describes, at `coord` of modes of the extents `shape`."""
        limit = f"{'extent' if len(shape) == 1 else 'shape'} {show(unwrap(tuple(shape)))}"
        text = f"{view}, whose coordinate {show(unwrap(tuple(coord)))} is out of range for {limit}"
        number = self._numbers.setdefault(text, min(len(self._texts), _MOST))
        if number == len(self._texts):
            self._texts.append(text)
        return _BASE + number * _SPAN + _SPAN // 2

    def describe(self, address: int) -> str | None:
        """The view whose memory an address would be, if it is outside its tensor."""
        number = (address - _BASE) // _SPAN
        return self._texts[number] if 0 <= number < len(self._texts) else None


def name_of_view(op: Operation, source: SSAValue) -> str:
    """A view of `source` in words: its tensor, and where it stands."""
    site = site_of(op)
    name = name_of(source)
    of = f" of {name}" if name else ""
    return f"the view{of} at {site.location}" if site.location else f"the {op.name}{of}"


def name_of(tensor: SSAValue) -> str | None:
    """The name of a view's tensor, if it has one."""
    while isinstance(owner := tensor.owner, LayoutViewOp | ViewOp | PtrAddOp):
        tensor = owner.ptr if isinstance(owner, PtrAddOp) else owner.source
    kernel = tensor.owner.parent_op() if isinstance(tensor.owner, Block) else None
    if isinstance(kernel, KernelOp):
        for parameter in kernel.parameters():
            if tensor in parameter.arguments:
                return parameter.name
    return tensor.name_hint


def led_outside(outside: Outside, address: Value, view: str, fixed: Sequence[tuple[Value, Value]], live: Any) -> Value:
    """The address of a view at coordinates, each given with the extent of its mode: `address` unless one is outside.

    `live` gives the active lanes, if it is needed.
    """
    bad: Any = False
    for integer, extent in fixed:
        bad = bad | (integer < 0) | (integer >= extent)
    if not anywhere(bad):
        return address
    if not varies(bad):
        coord, shape = zip(*[(int(integer), int(extent)) for integer, extent in fixed], strict=True)
        return outside.address(view, coord, shape) + (address & _LOW_BITS)
    lanes = bad.shape[0]
    moved = np.array(np.broadcast_to(address, lanes), np.int64)
    chosen = np.flatnonzero(bad.astype(bool) & live())
    places = np.stack([np.broadcast_to(value, lanes)[chosen] for pair in fixed for value in pair], axis=1)
    distinct, number = np.unique(places.astype(np.int64), axis=0, return_inverse=True)
    starts = np.array([outside.address(view, place[::2], place[1::2]) for place in distinct.tolist()], np.int64)
    moved[chosen] = starts[number.ravel()] + (moved[chosen] & _LOW_BITS)
    return moved
