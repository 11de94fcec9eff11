# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts in kernels: those of `layout/`, whose integers may be values, by the names of CuTe.

Functions that take a layout or a tensor are in `views.py`. Everything raises `LayoutError` if the algebra does.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from itertools import accumulate, zip_longest
from math import lcm
from typing import Any, ParamSpec, TypeVar, cast

from ... import layout as algebra
from ...base.errors import Code, TilefoldError
from ...layout.algebra import coordinates, inttuple
from ...layout.algebra.core import AnyLayout, ComposedLayout, Layout, LayoutLike, plain_layout
from ...layout.algebra.integers import AnyInt, AnyTuple, IntTuple, Unknown, ceil_div_int
from ...layout.algebra.modes import compose_parts
from ...layout.algebra.swizzle import Swizzle
from ..scalars.dtypes import DType, as_dtype
from ..scalars.values import Int, check_integer
from ..tracing.python_errors import misuse_error
from .coordinates import as_layout, as_tuple, has_value, tuples
from .modes import get, layout_of

P = ParamSpec("P")
R = TypeVar("R")


def make_layout(shape: object, *more: Any, stride: object = None) -> Layout:
    """A layout of a shape and, unless it is compact, a stride; or the layout whose modes are the given layouts.

    `make_layout((8, 128), stride=(128, 1))`. Without a stride the first mode is the fastest.
    """
    if stride is not None:
        if more:
            raise TilefoldError(Code.BAD_ARGUMENT, "make_layout takes one stride")
        return algebra.make_layout(tuples(shape), tuples(stride))
    if isinstance(shape, Layout):
        return algebra.make_layout(shape, *more)
    return algebra.make_layout(tuples(shape), *map(tuples, more))


def make_ordered_layout(shape: object, order: object) -> Layout:
    """The compact layout of a shape. Modes with smaller numbers in `order` run faster.

    Modes of equal numbers begin at the same stride, as in CuTe, so that coordinates share indices.
    """
    return algebra.make_ordered_layout(tuples(shape), tuples(order))


def make_identity_layout(shape: object) -> Layout:
    """The layout that maps each coordinate of a shape to itself."""
    return algebra.make_identity_layout(tuples(shape))


def make_layout_tv(thr_layout: object, val_layout: object) -> tuple[tuple[AnyTuple, ...], Layout]:
    """The tile that threads of `thr_layout` with values of `val_layout` cover, and its layout: (thread, value) to a
    place of the tile. Both layouts map coordinates of the tile to numbers of threads and of values.
    """
    threads, values = as_layout(thr_layout), as_layout(val_layout)
    tile = algebra.raked_product(threads, values)
    numbers = algebra.make_layout((algebra.size(threads), algebra.size(values)))
    tv = algebra.composition(algebra.right_inverse(tile), numbers)
    return inttuple.product_each(tile.shape), tv


def make_swizzle(b: int, m: int, s: int) -> Swizzle:
    """CuTe's `Swizzle<bits, base, shift>`."""
    return Swizzle(*tuples((b, m, s)))


def make_composed_layout(inner: "Swizzle | Layout", offset: object, outer: object) -> LayoutLike:
    """The layout `inner o offset o outer`, which is applied from the right: that of swizzled shared memory. A layout of
    a tensor whose addresses are swizzled by `inner` has it already.
    """
    layout = as_layout(outer)
    if isinstance(layout, ComposedLayout) and layout.inner == inner and offset == 0:
        return layout
    return compose_parts(inner, offset, cast("Layout", layout))


def tile_to_shape(atom: LayoutLike, trg_shape: object, order: object = None) -> LayoutLike:
    """A layout of a shape that repeats `atom`, the modes in `order`, the first the fastest."""
    return algebra.tile_to_shape(layout_of(atom), tuples(trg_shape), *(() if order is None else (tuples(order),)))


def recast_layout(new_type_bits: Any, old_type_bits: Any, src_layout: Any) -> AnyLayout:
    """Converts a layout of elements of one width to elements of another width in the same memory; widths are bits or
    types.
    """
    new, old = (x.bits if isinstance(x, DType) else x for x in (new_type_bits, old_type_bits))
    return algebra.recast_layout(layout_of(src_layout), old, new)


def size_in_bytes(dtype: object, layout: object) -> int:
    """The bytes that elements of a type span in a layout; 0 without a layout."""
    return 0 if layout is None else -(-as_dtype(dtype).bits * cosize(layout) // 8)


def round_up(a: Any, b: Any) -> AnyTuple:
    """The smallest multiple of `b` that is not less than `a`; for tuples, part by part, and parts that `b` lacks stay
    (CuTe's round_up). TilefoldError (E0202) for a tuple and a number, or more parts of `b`.
    """
    if not isinstance(a, tuple | list) and not isinstance(b, tuple | list):
        return ceil_div(a, b) * b
    if not isinstance(a, tuple | list) or not isinstance(b, tuple | list):
        raise TilefoldError(Code.RANK_MISMATCH, f"{a} cannot be rounded up to a multiple of {b}", "give two tuples")
    return tuple([round_up(x, y) for x, y in _with_divisors(as_tuple(a), as_tuple(b))])


def _with_divisors(extents: tuple[Any, ...], divisors: tuple[Any, ...]) -> Iterable[tuple[Any, Any]]:
    """Each extent and its divisor, 1 where there is none. TilefoldError (E0202) for more divisors."""
    if len(divisors) > len(extents):
        raise TilefoldError(Code.RANK_MISMATCH, f"{len(divisors)} divisors for {len(extents)} integers")
    return zip_longest(extents, divisors, fillvalue=1)


def repeat_like(x: Any, target: AnyTuple) -> AnyTuple:
    """`x` in place of each integer of a tuple; `x` itself for any other object, such as an element of a tensor."""
    return inttuple.transform_leaves(lambda _: x, tuples(target)) if isinstance(target, tuple | list) else x


def repeat(x: object, n: int) -> Any:
    """`n` times `x`: a tuple, or `x` itself for 1."""
    return x if n == 1 else (x,) * n


def repeat_as_tuple(x: object, n: int) -> tuple[AnyTuple, ...]:
    """`n` times `x` as a tuple."""
    return (x,) * n


def assume(src: AnyTuple, divby: int | None = None) -> AnyInt:
    """An integer that the program promises to be a multiple of `divby`. TilefoldError (E5002) for another number."""
    check_integer("the assumed value", src)
    if divby is None:
        return src
    if isinstance(src, Int):
        return Int(src.ssa, src.dtype, Unknown(src.known.width, lcm(src.known.div, divby)), src.range)
    if src % divby:
        raise TilefoldError(Code.BUILD_VALUE, f"{src} is not a multiple of {divby}")
    return src


def get_divisibility(x: AnyInt) -> int:
    """The greatest known divisor of an integer; a static integer is its own."""
    return x.known.div if isinstance(x, Int) else x


def unflatten(sequence: AnyTuple, profile: IntTuple) -> AnyTuple:
    """The numbers of a sequence in the profile of a tuple; or a layout, whose modes are leaves, in that profile."""
    if isinstance(sequence, Layout | ComposedLayout):
        return algebra.unflatten(sequence, tuples(profile))
    return inttuple.unflatten(tuple(sequence), tuples(profile))


def slice_and_offset(coord: object, src: object) -> tuple[AnyTuple, AnyTuple]:
    """The modes of a layout that None keeps, and the index at a coordinate of the others."""
    return algebra.slice_and_offset(tuples(coord), layout_of(src))


def size(x: object, mode: object = None) -> Any:
    """The number of elements of a tensor, a fragment, a layout, a shape (the product of its integers) or a mode:
    `size(t, 1)`, `size(t, mode=[0, 1])`; for a tiled copy or a tiled MMA, the number of threads.
    """
    if (threads := getattr(x, "threads", None)) is not None:
        return threads
    return inttuple.product(_shape(x, mode))


def shape(x: object, mode: object = None) -> Any:
    """The shape of a tensor or a layout, or of a mode of it."""
    return _shape(x, mode)


def stride(x: object, mode: object = None) -> Any:
    """The strides of a tensor or a layout, or of a mode of it."""
    return _of_mode(plain_layout(layout_of(_laid_out(x))).stride, mode)


def rank(x: object, mode: object = None) -> int:
    """The number of modes of a tensor, a layout or a tuple; 1 for an integer."""
    return algebra.rank(_shape(x, mode))


def depth(a: object, mode: object = None) -> int:
    """The nesting depth of a tensor's shape, a layout or a tuple; 0 for an integer."""
    return algebra.depth(_shape(a, mode))


def cosize(x: object, mode: object = None) -> AnyInt:
    """One more than the largest index of a layout or a tensor, or of a mode of it: the elements that it takes in
    memory.
    """
    layout = layout_of(_laid_out(x))
    return algebra.cosize(layout if mode is None else get(plain_layout(layout), mode))


def ceil_div(input: Any, tiler: Any) -> AnyTuple:
    """`a / b` rounded up; for tuples, part by part, of a number by a tuple with the product of it, and of a tuple by a
    number, which is divided by each part before the next one (CuTe's ceil_div); of a `SymInt` another one.
    """
    if not isinstance(input, tuple | list):
        number, divisor = (x if hasattr(x, "ceil_div") else tuples(x) for x in (input, tiler))  # a SymInt stays
        return ceil_div_int(number, inttuple.product(divisor))
    if isinstance(tiler, tuple | list):
        return tuple([ceil_div(x, y) for x, y in _with_divisors(as_tuple(input), as_tuple(tiler))])
    rests = accumulate(as_tuple(input)[:-1], ceil_div, initial=tiler)
    return tuple([ceil_div(x, rest) for x, rest in zip(as_tuple(input), rests, strict=False)])


def shape_div(lhs: object, rhs: object) -> AnyTuple:
    """The extents left of `lhs` after dividing by `rhs`, from the first mode on (CuTe's shape_div).

    Raises `LayoutError` (E0204) where neither of two extents divides the other.
    """
    return inttuple.shape_div(tuples(lhs), tuples(rhs))


def product(a: object) -> Any:
    """The product of the integers of a tuple: the size of a shape."""
    return inttuple.product(tuples(a))


def product_like(a: object, target_profile: object) -> AnyTuple:
    """The products of the parts of a tuple at the leaves of another one. Raises TilefoldError (E0201) if the tuple is
    shallower.
    """
    return inttuple.product_like(tuples(a), tuples(target_profile))


def product_each(a: object) -> tuple[AnyTuple, ...]:
    """The size of each mode of a shape."""
    return inttuple.product_each(tuples(a))


def congruent(a: object, b: object) -> bool:
    """Whether two tensors, layouts or tuples are nested alike."""
    return inttuple.congruent(_shape(a, None), _shape(b, None))


def weakly_congruent(a: object, b: object) -> bool:
    """Whether the profile of `b` refines that of `a`."""
    return inttuple.weakly_congruent(_shape(a, None), _shape(b, None))


def compatible(a: object, b: object) -> bool:
    """Whether every coordinate of shape `a` is also a coordinate of shape `b`."""
    return inttuple.compatible(_shape(a, None), _shape(b, None))


def crd2crd(coord: object, source: object, target: object) -> AnyTuple:
    """Converts a coordinate of shape `source` to the coordinate of the same element in shape `target`."""
    return coordinates.crd2crd(tuples(coord), tuples(source), tuples(target))


def is_static(x: object) -> bool:
    """Whether Python knows every integer of a tensor's layout, a layout or a tuple while it builds the kernel."""
    return not has_value(_laid_out(x))


def crd2idx(coord: object, layout: object) -> AnyTuple:
    """The index of a coordinate in a layout, or in the compact layout of a shape."""
    if isinstance(layout, ComposedLayout):
        return layout(tuples(coord))
    plain = as_layout(layout)
    return coordinates.crd2idx(tuples(coord), plain.shape, plain.stride)


def idx2crd(idx: IntTuple, shape: IntTuple) -> AnyTuple:
    """The coordinate of a number that counts a shape colexicographically."""
    return coordinates.idx2crd(idx, tuples(shape))


def _shape(x: object, mode: object) -> AnyTuple:
    whole = _laid_out(x)
    if isinstance(whole, Layout | ComposedLayout):
        return _of_mode(whole.shape, mode)
    if isinstance(whole, tuple | list):  # a tiler may have layouts (cute/int_tuple.hpp, shape)
        return _of_mode(tuples(tuple(map(_extents, cast("Sequence[object]", whole)))), mode)
    return _of_mode(tuples(getattr(whole, "shape", None) or whole), mode)  # a fragment has a shape and no layout


def _extents(part: Any) -> object:
    return _shape(cast("object", part), None) if isinstance(part, Layout | ComposedLayout | tuple | list) else part


def _laid_out(x: object) -> Any:
    """The layout of `x` if it has one, as tensors of a kernel or of the host have, else `x` itself."""
    layout = getattr(x, "layout", None)
    return layout if isinstance(layout, Layout | ComposedLayout) else x


def _of_mode(t: object, mode: object) -> AnyTuple:
    return t if mode is None else get(t, mode)


def _check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A function of the algebra with its arguments checked: the first must be a layout."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = args
        layout, *rest = given or (kwargs.pop(next(iter(signature(function).parameters)), None),)
        named = {name: tuples(value) for name, value in kwargs.items()}
        first, given = layout_of(layout), [*map(tuples, rest)]
        try:
            return cast("Any", function)(first, *given, **named)
        except (TypeError, AttributeError, AssertionError) as error:
            names = list(signature(function).parameters)
            raise misuse_error(function.__name__, [first, *given, *named.values()], names, error) from error

    return checked


complement = _check_arguments(algebra.complement)
right_inverse = _check_arguments(algebra.right_inverse)
left_inverse = _check_arguments(algebra.left_inverse)
nullspace = _check_arguments(algebra.nullspace)
logical_product = _check_arguments(algebra.logical_product)
zipped_product = _check_arguments(algebra.zipped_product)
tiled_product = _check_arguments(algebra.tiled_product)
flat_product = _check_arguments(algebra.flat_product)
blocked_product = _check_arguments(algebra.blocked_product)
raked_product = _check_arguments(algebra.raked_product)
upcast = _check_arguments(algebra.upcast)
downcast = _check_arguments(algebra.downcast)
coshape = _check_arguments(algebra.coshape)
make_layout_like = _check_arguments(algebra.make_layout_like)
with_shape = _check_arguments(algebra.with_shape)
replace = _check_arguments(algebra.replace)
zip_layout = _check_arguments(algebra.zip_layout)
zip_layouts = _check_arguments(algebra.zip_layouts)
max_alignment = _check_arguments(algebra.max_alignment)
max_common_layout = _check_arguments(algebra.max_common_layout)
max_common_vector = _check_arguments(algebra.max_common_vector)
