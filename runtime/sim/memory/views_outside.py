# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views at coordinates that their tensor does not have: addresses at which no memory is.

A kernel may take such a view, for an access that a predicate leaves out, and other views of it. So the view itself is
no fault. Its address is one of a range that belongs to the coordinate and lies beyond all memory; the fault of an
access names the coordinate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ....dialects.kernel import KernelOp
from ....dialects.ptx import PtrAddOp
from ....dialects.tile import ViewOp
from ....dialects.tile.view_base import LayoutViewOp
from ....layout.algebra.inttuple import show, unwrap
from ..faults import site_of
from ..values import Value, anywhere, varies

_BASE = 1 << 61
_SPAN = 1 << 34
"""Bytes for each coordinate; its view begins in their middle."""
_MOST = 1 << 26
_LOW_BITS = 4095
"""Of an address these bits stay, so that it is aligned as before."""


@dataclass(slots=True)
class Outside:
    """The coordinates outside of their tensors that a launch has taken views at."""

    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _texts: list[str] = field(default_factory=list[str])

    def address(self, view: str, coord: Sequence[int], shape: Sequence[int]) -> int:
        """The address of a view, which `view` describes, at `coord` of modes of the extents `shape`."""
        text = f"{view}, whose coordinate {show(unwrap(tuple(coord)))} is outside of {show(unwrap(tuple(shape)))}"
        number = self._numbers.setdefault(text, min(len(self._texts), _MOST))
        if number == len(self._texts):
            self._texts.append(text)
        return _BASE + number * _SPAN + _SPAN // 2

    def describe(self, address: int) -> str | None:
        """The view whose memory an address would be, if it is outside of its tensor."""
        number = (address - _BASE) // _SPAN
        return self._texts[number] if 0 <= number < len(self._texts) else None


HINT = "check the coordinate against the shape, or predicate the access"


def name_of_view(op: Operation, source: SSAValue) -> str:
    """A view of `source` in words: which tensor it is of, and where it stands."""
    site = site_of(op)
    name = name_of(source)
    of = f" of {name}" if name else ""
    return f"the view{of} at {site.location}" if site.location else f"the {op.name}{of}"


def name_of(tensor: SSAValue) -> str | None:
    """The name of the tensor that a view is of, if it has one."""
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
