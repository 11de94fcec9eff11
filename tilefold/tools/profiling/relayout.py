# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other layouts for a tensor in shared memory: swizzles and padding, and the program with one of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter

from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.tile import AllocOp, TensorType
from tilefold.dialects.tile.results import InferringOp
from tilefold.layout.algebra.core import ComposedLayout, Layout, LayoutLike, cosize, make_layout
from tilefold.layout.algebra.integers import IntTuple
from tilefold.layout.algebra.inttuple import leaves
from tilefold.layout.algebra.swizzle import Swizzle
from tilefold.runtime.sim.memory.sampler import Sampled
from tilefold.runtime.sim.memory.space_state import wavefronts

MOST_BITS = 5
"""The bits of a swizzle: those of the 32 banks of 4 bytes."""

_Move = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""The new positions of bytes, by their offsets from the start of a tensor."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Another layout, the wavefronts that the accesses of a launch would take with it, and the bytes that it adds."""

    layout: LayoutLike
    wavefronts: int
    bytes: int


def candidates(type: TensorType, start: int, accesses: Sequence[Sampled]) -> list[Candidate]:
    """The layouts that need fewer wavefronts than the one of a tensor, which begins at an offset of shared memory, for
    the accesses to it; the best first, and of equal ones swizzles, which need no memory, and small changes.
    """
    layout = type.layout.data
    if not isinstance(layout, Layout) or type.is_packed:
        return []  # a swizzle of the program's own choice; nothing is known to be better
    now = _wavefronts(accesses, start, lambda offsets: offsets)
    size, widest = type.element_bytes, max(sampled.width for sampled in accesses)
    candidates: list[Candidate] = []
    for other in (*_swizzle_candidates(layout, size, widest), *_padding_candidates(layout, size, widest)):
        move = _swizzle(other, size) if isinstance(other, ComposedLayout) else _pad(layout, other, size)
        total = _wavefronts(accesses, start, move)
        if total < now:
            candidates.append(Candidate(other, total, (cosize(other) - cosize(layout)) * size))
    return sorted(candidates, key=lambda candidate: (candidate.wavefronts, candidate.bytes))


def _swizzle_candidates(layout: Layout, size: int, widest: int) -> Iterator[ComposedLayout]:
    """Swizzles that keep the bytes of the widest access adjacent."""
    base = max(0, (widest // size).bit_length() - 1)
    highest = (cosize(layout) - 1).bit_length()
    for bits in range(1, MOST_BITS + 1):
        for shift in range(bits, highest - base - bits + 1):
            yield ComposedLayout(Swizzle(bits, base, shift), 0, layout)


def _padding_candidates(layout: Layout, size: int, widest: int) -> Iterator[Layout]:
    """The layout with each of its strides lengthened, and those that are multiples of it."""
    least = max(1, widest // size)
    strides = [stride for stride in leaves(layout.stride) if isinstance(stride, int)]
    for row in sorted({stride for stride in strides if stride > 1}):
        if all(stride < row or stride % row == 0 for stride in strides):
            for pad in (least, 2 * least, 4 * least):
                yield make_layout(layout.shape, _longer(layout.stride, row, row + pad))


def _longer(stride: IntTuple, row: int, longer: int) -> IntTuple:
    if isinstance(stride, tuple):
        return tuple(_longer(part, row, longer) for part in stride)
    assert isinstance(stride, int), "shared memory is static"
    return stride // row * longer if stride >= row else stride


def _swizzle(layout: ComposedLayout, size: int) -> _Move:
    swizzle = layout.inner
    assert isinstance(swizzle, Swizzle), "made so above"

    def move(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        moved: NDArray[np.int64] = swizzle(offsets // size) * size + offsets % size
        return moved

    return move


def _pad(layout: Layout, other: Layout, size: int) -> _Move:
    before, after = (tuple(leaves(part.stride)) for part in (layout, other))
    row, longer = next((a, b) for a, b in sorted(zip(before, after, strict=True)) if a != b)

    def move(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        return offsets + offsets // (row * size) * ((longer - row) * size)

    return move


def _wavefronts(accesses: Sequence[Sampled], start: int, move: _Move) -> int:
    total = 0
    for sampled in accesses:
        for pattern in sampled.patterns.values():
            moved = move(pattern.offsets - start) + start
            total += pattern.count * wavefronts(moved, pattern.lanes, sampled.width)[0]
    return total


def allocation_at(module: ModuleOp, location: str) -> AllocOp | None:
    """The allocation of shared memory at a place of the source, if there is exactly one."""
    candidates = [op for op in module.walk() if isinstance(op, AllocOp) and str(op.location) == location]
    return candidates[0] if len(candidates) == 1 else None


def with_layout(module: ModuleOp, location: str, layout: LayoutLike) -> ModuleOp:
    """A copy of a program at stage `cute` in which the allocation at a place has another layout, and the tensors that
    are made of it follow. Raises TilefoldError or VerifyException if one of them cannot.
    """
    changed = module.clone()
    op = allocation_at(changed, location)
    assert op is not None, "it was found before"
    type = op.result.type
    _retype(op, [TensorType(type.element_type, type.space, type.align, LayoutAttr(layout))])
    for inner in changed.walk():
        if isinstance(inner, InferringOp):
            _retype(inner, inner.inferred_types(inner.operand_types, inner.properties))
    changed.verify()
    return changed


def _retype(op: Operation, types: Sequence[Attribute]) -> None:
    for result, type in zip(list(op.results), types, strict=True):
        if result.type != type:
            Rewriter.replace_value_with_new_type(result, type)
