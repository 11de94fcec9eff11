# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modes of tensors, layouts and tuples, by the functions of CuTe (int_tuple.hpp, layout.hpp, tensor_impl.hpp).

The result for a tensor is a view. Everything raises `LayoutError` if the algebra does.
"""

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, i64

from ... import layout as algebra
from ...base.errors import Code, TilefoldError
from ...base.spaces import SMEM
from ...dialects.tile import CoalesceOp, DomainOffsetOp, GroupModesOp, SelectOp
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike
from ...layout.algebra.integers import AnyTuple
from ...layout.algebra.inttuple import dice_tuple, slice_tuple, transform_leaves
from ...layout.algebra.inttuple import flatten as flatten_tuple
from ..scalars.values import Int, Value, check_integer, index_of
from .coordinates import as_tuple, split_coordinate, tuples
from .pointers import make_tensor
from .raw_pointers import index_in
from .tensor_base import AnyTensor
from .tensors import CoordTensor, Tensor


def layout_of(x: object) -> LayoutLike:
    """Converts an argument of the algebra to a layout. Raises TilefoldError (E5002) for anything else."""
    if not isinstance(x, Layout | ComposedLayout):
        hint = "t.layout is a tensor's" if hasattr(x, "layout") else "make one by cute.make_layout(shape)"
        shown = repr(x) if isinstance(x, tuple | int) else type(x).__name__  # pyright: ignore[reportUnknownArgumentType]
        raise TilefoldError(Code.BUILD_VALUE, f"expected a layout, got {shown}", hint)
    return x


def get(target: object, mode: object) -> Any:
    """A mode of a layout, or an element of a tuple: `get(layout, 1)`, `get(layout, (1, 0))` (CuTe's `get<1,0>`)."""
    for index in as_tuple(mode):
        parts = target if isinstance(target, tuple | Layout | ComposedLayout) else (target,)  # pyright: ignore[reportUnknownVariableType]
        check_modes([index], len(parts))  # pyright: ignore[reportUnknownArgumentType]
        target = parts[index]  # pyright: ignore[reportUnknownVariableType]
    return target  # pyright: ignore[reportUnknownVariableType]


def select(target: object, mode: object) -> Any:
    """The named modes in that order: `select(t, [0, 1, 3, 2])`. The other modes of a tensor stay at coordinate 0.

    It chooses modes, not elements by conditions as `numpy.select`; `cute.where` does that.
    """
    modes = list(as_tuple(tuples(mode)))
    if isinstance(target, AnyTensor):
        check_modes(modes, target.rank)
        return target.view(SelectOp, [], {"modes": DenseArrayBase.from_list(i64, modes)})
    if isinstance(target, tuple):
        check_modes(modes, len(target))  # pyright: ignore[reportUnknownArgumentType]
        return tuple([cast("Any", target)[index] for index in modes])
    return algebra.select(layout_of(target), *modes)


def take(target: object, begin: int, end: int) -> Any:
    """Modes `begin` to `end - 1` (CuTe's `take<begin, end>`); the other modes of a tensor stay at coordinate 0.

    It takes modes, not elements as `numpy.take`.
    """
    _check_range(begin, end, rank_of(target))
    return select(target, list(range(begin, end)))


def group_modes(input: object, begin: int, end: int | None = None) -> Any:
    """Modes `begin` to `end - 1` become one mode; by default all from `begin` on. An integer has one mode."""
    rank = 1 if isinstance(input, int) else rank_of(input)
    last = rank if end is None else end
    _check_range(begin, last, rank)
    if isinstance(input, int):
        return input
    if isinstance(input, AnyTensor):
        return input.view(GroupModesOp, [], {"modes": DenseArrayBase.from_list(i64, [begin, last])})
    if isinstance(input, tuple):
        return (*input[:begin], input[begin:last], *input[last:])  # pyright: ignore[reportUnknownVariableType]
    return algebra.group_modes(layout_of(input), begin, last)


def flatten(a: object) -> Any:
    """All modes at one level: `((2, 3), 4)` becomes `(2, 3, 4)`, not one mode of 24 as in `numpy.ravel`."""
    if isinstance(a, tuple):
        return flatten_tuple(a)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return relaid(a, algebra.flatten)


def coalesce(input: object, target_profile: object = None) -> Any:
    """The same elements in the same order with as few modes as possible. A tuple `target_profile` coalesces the modes
    under each of its leaves separately: `coalesce(layout, (1, 1))` keeps two modes.
    """
    if isinstance(input, AnyTensor) and target_profile is None:
        return input.view(CoalesceOp, [], {})
    return relaid(input, lambda layout: algebra.coalesce(layout, tuples(target_profile)))


def filter(input: object, profile: object = None) -> Any:
    """Without modes of stride 0 and size 1, coalesced; by mode with a tuple `profile`.

    Unlike Python's `filter`, it takes only layouts; `cute.where` chooses elements.
    """
    return relaid(input, lambda layout: algebra.filter(layout, tuples(profile)))


def filter_zeros(input: object, target_profile: object = None) -> Any:
    """The layout with extent 1 where the stride is 0, or where `target_profile`, a stride, has a 0."""
    return relaid(input, lambda layout: algebra.filter_zeros(layout, tuples(target_profile)))


def append(input: object, elem: object = None, up_to_rank: int | None = None) -> Any:
    """`elem` after the modes, once or up to `up_to_rank` modes; for a tuple, an element.

    Without `elem` it is 1:0, and 1 for a tuple. It adds modes, not elements as `numpy.append`.
    """
    return _pad(input, elem, up_to_rank, algebra.append)


def prepend(input: object, elem: object = None, up_to_rank: int | None = None) -> Any:
    """`elem` before the modes, once or up to `up_to_rank` modes; for a tuple, an element."""
    return _pad(input, elem, up_to_rank, algebra.prepend)


def slice_(src: object, coord: object) -> Any:
    """The modes that `None` keeps, at a coordinate of the others; for a tensor the same as `t[coord]`."""
    if isinstance(src, AnyTensor):
        return cast("Any", src)[coord]
    if isinstance(src, tuple):
        return slice_tuple(tuples(coord), src)  # pyright: ignore[reportUnknownArgumentType]
    return algebra.slice_(tuples(coord), layout_of(src))


def dice(target: object, coord: object) -> Any:
    """The modes of a layout or a tuple for which the coordinate has integers, not `None`."""
    if isinstance(target, tuple):
        return dice_tuple(tuples(coord), target)  # pyright: ignore[reportUnknownArgumentType]
    return algebra.dice(tuples(coord), layout_of(target))


def domain_offset(coord: object, tensor: object) -> Any:
    """The tensor from a coordinate on: its layout, starting there. The kernel must not access elements beyond its end.

    A coordinate may be negative, as for a tensor whose first tile is the incomplete one, or beyond the end of
    one in shared memory, for a part that lies after it: missing elements must not be accessed. None is the
    beginning of a mode. The arguments may also stand in the other order. Raises TilefoldError (E5002) without a tensor,
    and (E0215) for a coordinate beyond the end of another tensor.
    """
    if isinstance(coord, AnyTensor):
        coord, tensor = tensor, coord
    if not isinstance(tensor, AnyTensor):
        message = f"expected a coordinate and a tensor, got {type(coord).__name__} and {type(tensor).__name__}"
        raise TilefoldError(Code.BUILD_VALUE, message, "write cute.domain_offset((i, j), t)")
    begin, layout = transform_leaves(lambda x: 0 if x is None else x, as_tuple(tuples(coord))), tensor.layout
    is_shared = isinstance(tensor, Tensor) and tensor.ir_type.space.data is SMEM
    may_be_outside = _is_flat(begin, layout) and _may_be_outside(begin, layout, is_shared)
    if may_be_outside and isinstance(tensor, Tensor) and not tensor.ir_type.is_swizzled:
        return make_tensor(tensor.iterator + index_in(begin, layout.stride), layout)
    begin = transform_leaves(lambda x: index_of(x) if type(x) is int and x < 0 else x, begin)
    attribute, operands = split_coordinate(begin)
    return tensor.view(DomainOffsetOp, [operands], {"coord": attribute})


def _may_be_outside(begin: tuple[AnyTuple, ...], layout: Layout, is_shared: bool) -> bool:
    """Whether a number of a flat coordinate may be negative, or is beyond the extent of its mode in shared memory."""
    if is_shared and any(
        type(x) is type(extent) is int and x >= extent for x, extent in zip(begin, as_tuple(layout.shape), strict=True)
    ):
        return True
    return any(x < 0 if type(x) is int else isinstance(x, Int) and not x.nonnegative for x in begin)


def _is_flat(coord: tuple[object, ...], layout: object) -> bool:
    """Whether a coordinate has one integer for each mode of a layout, whose modes have one stride each."""
    if not isinstance(layout, Layout) or not isinstance(layout.stride, tuple) or len(coord) != len(layout.stride):
        return False
    return not any(isinstance(x, tuple) for x in (*coord, *layout.stride))


def rank_of(target: object) -> int:
    """The number of modes of a tensor, a layout or a tuple."""
    if isinstance(target, AnyTensor):
        return target.rank
    return len(target) if isinstance(target, tuple) else len(layout_of(target))  # pyright: ignore[reportUnknownArgumentType]


def check_modes(modes: list[object], rank: int) -> None:
    """Raises TilefoldError (E0208) unless these are modes of something that has `rank`."""
    for mode in modes:
        if isinstance(mode, Value) or type(mode) is not int or not 0 <= mode < rank:
            raise TilefoldError(Code.MODE_OUT_OF_RANGE, f"mode {mode} is out of range: modes are 0 to {rank - 1}")


def _check_range(begin: int, end: int, rank: int) -> None:
    for number in (begin, end):
        check_integer("the number of a mode", number)
    if not 0 <= begin < end <= rank:
        message = f"modes {begin} to {end - 1} are not a range of {rank} modes"
        raise TilefoldError(Code.MODE_OUT_OF_RANGE, message)


def relaid(target: object, function: Callable[[Any], object]) -> Any:
    """A function of layouts, applied to a layout, or to that of a tensor: the tensor in the resulting layout."""
    if isinstance(target, Tensor | CoordTensor):
        return make_tensor(target.iterator, function(target.layout))
    return function(layout_of(target))


def _pad(target: object, mode: object, rank: int | None, function: Callable[[Any, int, Any], object]) -> Any:
    whole = rank_of(target) + 1 if rank is None else rank
    if not isinstance(target, tuple):
        added = None if mode is None else layout_of(mode)
        return relaid(target, lambda layout: function(layout, whole, added))
    missing = whole - len(target)  # pyright: ignore[reportUnknownArgumentType]
    if missing < 0:
        raise TilefoldError(Code.RANK_MISMATCH, f"{target} has more than {whole} elements")
    more = (1 if mode is None else tuples(mode),) * missing
    return (*target, *more) if function is algebra.append else (*more, *target)  # pyright: ignore[reportUnknownVariableType]
