# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How wide a copy of two tensors can be: by the elements that stay adjacent in both, and by their alignment."""

from dataclasses import dataclass
from math import gcd

from ...base.errors import LayoutError
from ...base.spaces import RMEM
from ...dialects.cute.values import typed
from ...dialects.tile.copy_rules import access_align
from ...dialects.tile.types import TensorType
from ...layout.algebra.coalesce import coalesce, contiguous_values, steps
from ...layout.algebra.compose import composition
from ...layout.algebra.core import Layout, LayoutLike, plain_layout
from ...layout.algebra.divide import logical_divide
from ...layout.algebra.inttuple import leaves
from ...layout.algebra.inverse import right_inverse
from ...layout.tiling.copy_loops import Repeat, is_constant, repeats, with_outer

_ROLES = ("source", "destination")
MAX_BITS = 128
"""The widest access of one instruction (PTX ISA, ld and st: vectors of at most 128 bits)."""


@dataclass(frozen=True, slots=True)
class VectorChoice:
    """The accesses of a copy: bits of each, layouts of its elements in each operand, loops over the rest.

    The operands are source and destination, and the predicates where there are any.
    """

    bits: int
    values: tuple[LayoutLike, ...]
    rest: list[Repeat]
    remark: str


def choose_vector(
    src: TensorType,
    dst: TensorType,
    max_bits: int,
    pred: Layout | None = None,
    computed: tuple[LayoutLike, LayoutLike] | None = None,
) -> VectorChoice:
    """The widest access for copying `src` to `dst`, two tensors of one size and element type, up to `max_bits` wide.

    The elements that an access moves are adjacent in both tensors, at the same coordinates; its bytes divide every
    address; and they have the same predicate of `pred`, a layout of the same size. Where one tensor is a fragment this
    is asked of the other alone: an instruction names each of its registers (see `expand_copies`). The remark gives
    the width and the reason that it is not wider. `computed` are the layouts of source and destination with integers of
    the algebra for the `?` of their types.
    """
    layouts = (src.layout.data, dst.layout.data) if computed is None else computed
    like = (*layouts, *(() if pred is None else (pred,)))
    sides = _adjacent_sides(src, dst)
    order = _find_adjacent_order(plain_layout(layouts[sides[0]]), plain_layout(layouts[sides[-1]]))
    refusals: list[_RefusedError] = []
    count = min(max_bits, MAX_BITS) // src.element_bits
    while count > 1:
        try:
            parts = _divided((src, dst), sides, layouts, pred, order, count)
            break
        except _RefusedError as refusal:
            refusals.append(refusal)
            count //= 2
    else:
        count, parts = 1, [logical_divide(plain_layout(layout), Layout(1, 0)) for layout in like]
    bits = count * src.element_bits
    return VectorChoice(
        bits,
        tuple([with_outer(layout, coalesce(part[0])) for layout, part in zip(like, parts, strict=True)]),
        repeats(*([part[1]] for part in parts)),
        f"{bits} bits: {count} element{'s' if count > 1 else ''} at a time{_reasons(refusals)}",
    )


class _RefusedError(Exception):
    """Accesses of `bits` bits are impossible: a keyword and the reason."""

    def __init__(self, bits: int, about: str, reason: str):
        super().__init__(f"{bits} bits rejected: {reason}")
        self.about = about


def _reasons(refusals: list[_RefusedError]) -> str:
    """Why the widest access is not possible, and why the next wider one is not, if that is another matter."""
    chosen = refusals[:1]
    if refusals and refusals[-1].about != refusals[0].about:
        chosen.append(refusals[-1])
    return "".join(f"; {refusal}" for refusal in chosen)


def _adjacent_sides(src: TensorType, dst: TensorType) -> tuple[int, ...]:
    """The operands whose elements must be adjacent, 0 for the source, 1 for the destination: not a fragment, unless the
    other is one, too, or its elements are narrower than a byte and cannot be moved singly.
    """
    in_registers = [tensor.space.data is RMEM for tensor in (src, dst)]
    if src.element_bits < 8 or in_registers[0] == in_registers[1]:
        return (0, 1)
    return (1,) if in_registers[0] else (0,)


def _find_adjacent_order(src: Layout, dst: Layout) -> Layout:
    """The coordinates that are adjacent in both layouts, in memory order, as a layout into the common domain."""
    inverse = coalesce(right_inverse(src))
    shapes, strides = tuple(leaves(inverse.shape)), tuple(leaves(inverse.stride))
    for modes in range(len(shapes), 0, -1):
        prefix = Layout(shapes[:modes], strides[:modes])
        try:
            common = coalesce(composition(dst, prefix))
            run = next(leaves(common.shape)) if next(leaves(common.stride)) == 1 else 1
            return composition(prefix, Layout(run, 1))
        except LayoutError:  # no layout walks the destination in the order of this part of the source
            continue
    return Layout(1, 0)


def _divided(
    tensors: tuple[TensorType, TensorType],
    sides: tuple[int, ...],
    layouts: tuple[LayoutLike, LayoutLike],
    pred: Layout | None,
    order: Layout,
    count: int,
) -> list[Layout]:
    """The operands, each as (the elements of one access, the accesses); _RefusedError if that cannot be."""
    available, bits = order.size, count * tensors[0].element_bits
    if available % count:
        elements = f"{available} element{'s are' if available > 1 else ' is'}"
        where = " and ".join([_ROLES[side] for side in sides])
        raise _RefusedError(bits, "neighbours", f"{elements} adjacent in {where}")
    try:
        vector = composition(order, Layout(count, 1))
        parts = [logical_divide(plain_layout(layout), vector) for layout in layouts]
    except LayoutError:  # they begin at places that no layout describes, such as at 0, 2, 4 of rows of 3
        raise _RefusedError(bits, "neighbours", f"the layouts do not divide into runs of {count} elements") from None
    width = bits // 8
    for side in sides:
        role, tensor, part = _ROLES[side], tensors[side], parts[side]
        run = contiguous_values(with_outer(tensor.layout.data, typed(part[0])))
        if run % count:
            raise _RefusedError(bits, "swizzle", f"the swizzle keeps {run} elements of the {role} together")
        align = gcd(8 * access_align(tensor), steps(typed(part[1])) * tensor.element_bits) // 8
        if align % width:
            reason = f"the {role}'s addresses are aligned to {align} bytes, not {width}"
            raise _RefusedError(bits, "alignment", reason)
    if pred is None:
        return parts
    try:
        flags = logical_divide(pred, vector)
    except LayoutError:
        raise _RefusedError(bits, "predicates", f"the predicates do not divide into runs of {count} elements") from None
    if not is_constant(flags[0]):
        raise _RefusedError(bits, "predicates", f"{count} adjacent elements have different predicates")
    return [*parts, flags]
