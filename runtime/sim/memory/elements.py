# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of a whole tensor in the executing lanes, by accesses as wide as their places allow."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ....dialects.tile import TensorType
from ....layout.algebra.core import Layout
from ...arrays.storage import distances
from ..translate import Translator
from ..values import TensorValue
from ..warp import Warp
from .tensors import Port, port

WIDEST = 16
"""The most bytes that one access moves."""


@dataclass(frozen=True)
class Elements:
    """How an operation reaches the elements at `indices` of a tensor, in that order."""

    port: Port
    indices: NDArray[np.int64]
    places: dict[int, tuple[NDArray[np.int64], int]] = field(default_factory=dict[int, tuple[NDArray[np.int64], int]])
    """For each address of a tensor in registers, the addresses of its groups of elements, and the bytes of each."""

    @cached_property
    def first(self) -> int:
        """The index of the first element."""
        return int(self.indices[0])

    @cached_property
    def group(self) -> int:
        """The number of elements that lie together, from each of its multiples on."""
        count = WIDEST * 8 // self.port.element_bits
        while count > 1 and not self._in_runs(count):
            count //= 2
        return count

    def _in_runs(self, count: int) -> bool:
        indices = self.indices
        return len(indices) % count == 0 and bool(
            (indices.reshape(-1, count) == indices[::count, None] + np.arange(count)).all()
        )

    def _registers(self, tensor: TensorValue) -> tuple[NDArray[np.int64], int] | None:
        """The addresses of groups of elements in registers, and the bytes of each, where they are the same in all lanes
        and aligned.
        """
        if self.port.space is not None or self.port.swizzle is not None or type(tensor.address) is not int:
            return None
        address = tensor.address
        if address not in self.places:
            group = self.group
            while (width := group * self.port.element_bits // 8) > 1 and address % width:
                group //= 2
            at = address + self.indices[::group] * self.port.element_bits // 8
            self.places[address] = at, width
        at, width = self.places[address]
        return (at, width) if width and not (at % width).any() else None

    def load(self, warp: Warp, tensor: TensorValue) -> NDArray[np.uint8]:
        """The elements in each active lane: an array (active, bytes)."""
        source, group, least = self.port, self.group, self.port.per_byte
        if (places := self._registers(tensor)) is not None:
            return source.t.spaces.local.load_all(warp, source.site, *places)
        parts: list[NDArray[np.uint8]] = []
        for first in self.indices[::group].tolist():
            if group == least or source.adjacent(warp, tensor, first, group):
                parts.append(source.load(warp, tensor, first, group))
            else:
                parts += [source.load(warp, tensor, first + i, least) for i in range(0, group, least)]
        return np.concatenate(parts, axis=1)

    def store(self, warp: Warp, tensor: TensorValue, content: NDArray[np.uint8]) -> None:
        """Writes an array (active, bytes) to the elements in each active lane."""
        target, group, least = self.port, self.group, self.port.per_byte
        if (places := self._registers(tensor)) is not None:
            target.t.spaces.local.store_all(warp, target.site, places[0], content)
            return
        width = least * target.element_bits // 8
        for first, part in zip(self.indices[::group].tolist(), _parts(content, group // least * width), strict=True):
            if group == least or target.adjacent(warp, tensor, first, group):
                target.store(warp, tensor, first, part)
                continue
            for number, piece in enumerate(_parts(part, width)):
                target.store(warp, tensor, first + number * least, piece)


def _parts(content: NDArray[np.uint8], width: int) -> list[NDArray[np.uint8]]:
    """The bytes (active, bytes) in pieces of `width`."""
    return [content[:, begin : begin + width] for begin in range(0, content.shape[1], width)]


def elements(op: Operation, type: TensorType, layout: Layout, kind: str, t: Translator) -> Elements:
    """The elements of a tensor in the order of `layout`, a plain one, for accesses of a `kind` ("load", "store")."""
    return Elements(port(op, type, kind, t), distances(layout))
