# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How wide a copy of two tensors can be: how many elements stay adjacent in both, and what their alignment allows."""

from dataclasses import dataclass
from math import gcd

from ..dialects.tile.copy_rules import access_align, contiguous_values, steps
from ..dialects.tile.types import TensorType
from ..layout.coalesce import coalesce
from ..layout.compose import composition
from ..layout.core import Layout, LayoutLike
from ..layout.divide import logical_divide
from ..layout.inttuple import leaves
from ..layout.inverse import right_inverse
from .copy_loops import Repeat, plain, repeats, with_inner

MAX_BITS = 128
"""The widest access of one instruction (PTX ISA, ld and st: vectors of at most 128 bits)."""


@dataclass(frozen=True, slots=True)
class VectorChoice:
    """The accesses of a copy: bits of each, layouts of its elements in source and destination, loops over the rest."""

    bits: int
    src: LayoutLike
    dst: LayoutLike
    rest: list[Repeat]
    remark: str


def choose_vector(src: TensorType, dst: TensorType, max_bits: int) -> VectorChoice:
    """The widest access for copying `src` to `dst`, two tensors of one size and element type, up to `max_bits` wide.

    The elements that an access moves are adjacent in both tensors, at the same coordinates; its bytes divide every
    address. The remark says what the width is and what kept it from being wider.
    """
    order = _adjacent_order(plain(src.layout.data), plain(dst.layout.data))
    bits, reason = src.element_bits, ""
    values = 1
    count = min(max_bits, MAX_BITS) // src.element_bits
    while count > 1:
        refusal = _refusal(src, dst, order, count)
        if refusal is None:
            bits, values = count * src.element_bits, count
            break
        reason = reason or f"; {count * src.element_bits} bits refused: {refusal}"
        count //= 2
    vector = composition(order, Layout(values, 1)) if values > 1 else Layout(1, 0)
    parts = [logical_divide(plain(t.layout.data), vector) for t in (src, dst)]
    (src_values, src_rest), (dst_values, dst_rest) = [(p[0], p[1]) for p in parts]
    remark = f"{bits} bits: {values} element{'s' if values > 1 else ''} at a time{reason}"
    return VectorChoice(
        bits,
        with_inner(src.layout.data, coalesce(src_values)),
        with_inner(dst.layout.data, coalesce(dst_values)),
        repeats([src_rest], [dst_rest]),
        remark,
    )


def _adjacent_order(src: Layout, dst: Layout) -> Layout:
    """The coordinates that are adjacent in both layouts, in memory order, as a layout into the common domain."""
    inverse = coalesce(right_inverse(src))
    common = coalesce(composition(dst, inverse))
    shapes, strides = tuple(leaves(common.shape)), tuple(leaves(common.stride))
    run = shapes[0] if strides[0] == 1 else 1
    return composition(inverse, Layout(run, 1))


def _refusal(src: TensorType, dst: TensorType, order: Layout, count: int) -> str | None:
    """Why `count` elements cannot be moved together; None if they can."""
    available = order.size
    if available % count:
        return f"{available} element{'s are' if available > 1 else ' is'} adjacent in source and destination"
    width = count * src.element_bytes
    vector = composition(order, Layout(count, 1))
    for what, tensor in (("source", src), ("destination", dst)):
        layout = tensor.layout.data
        divided = logical_divide(plain(layout), vector)
        run = contiguous_values(with_inner(layout, divided[0]))
        if run % count:
            return f"the swizzle keeps {run} elements of the {what} together"
        align = gcd(access_align(tensor), steps(divided[1]) * tensor.element_bytes)
        if align % width:
            return f"the {what}'s addresses are aligned to {align} bytes, not {width}"
    return None
