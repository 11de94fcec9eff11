# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordinates and layouts as users write them, with values of the kernel in them, as attributes and operands."""

from operator import index
from typing import Any

from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...base.printable import shown
from ...dialects.cute import CoordAttr, LayoutAttr
from ...layout.algebra.core import AnyLayout, ComposedLayout, Layout, LayoutLike, make_layout
from ...layout.algebra.integers import AnyTuple, Coord, IntTuple, ScaledBasis, Unknown
from ...layout.algebra.inttuple import product, show, transform_leaves, wrap
from ..scalars.values import Int, Value, index_of


def split_coordinate(coord: object) -> tuple[CoordAttr, list[SSAValue]]:
    """A coordinate as an attribute with `?` for its values, and these as operands of type `index`.

    `None`, `...` and `:` keep a mode. Raises TilefoldError (E0103) for integers beyond 64 bits,
    (E5002) for anything else.
    """
    operands: list[SSAValue] = []

    def convert(part: AnyTuple) -> Any:
        if isinstance(part, tuple | list):
            return tuple([convert(inner) for inner in part])  # pyright: ignore[reportUnknownVariableType]
        if part is None or (isinstance(part, slice) and part == slice(None)):
            return None
        if isinstance(part, slice):
            hint = "take a tile: cute.local_tile(t, (4,), (i,))"
            raise TilefoldError(Code.BUILD_VALUE, "a slice must keep the whole mode here", hint)
        if isinstance(part, Int):
            operands.append(index_of(part).ssa)
            return Unknown()
        if type(part) is int:
            if part < 0:
                message = f"a coordinate must not be negative, but it is {_within_64_bits(part)}"
                raise TilefoldError(Code.BUILD_VALUE, message, "count from the first element")
            return _within_64_bits(part)
        if hasattr(part, "__index__") and not isinstance(part, bool | Value) and not getattr(part, "shape", ()):
            return convert(index(part))
        index_of(part)  # raises, and says why
        return None

    return CoordAttr(convert(coord)), operands


def at_run_time(attribute: CoordAttr, operands: list[SSAValue]) -> tuple[CoordAttr, list[SSAValue]]:
    """A split coordinate with values in place of its numbers: outside the shape, executing it is a fault,
    not of the kernel.
    """
    rest = iter(operands)
    values: list[SSAValue] = []

    def convert(leaf: object) -> Any:
        if leaf is None:
            return None
        values.append(next(rest) if isinstance(leaf, Unknown) else index_of(leaf).ssa)
        return Unknown()

    return CoordAttr(transform_leaves(convert, attribute.data)), values


def check_inside(coord: Coord, shape: IntTuple) -> None:
    """Raises TilefoldError for an element that a tensor does not have, as far as integers are static (E5002), and for a
    coordinate whose modes differ from the shape (E0201).
    """
    parts, extents = wrap(coord), wrap(shape)
    if len(parts) not in (1, len(extents)):
        message = f"the coordinate {show(coord)} does not fit {show(shape)}"
        raise TilefoldError(Code.PROFILE_MISMATCH, message, "give one number, or one for each mode")
    if len(parts) > 1 and len(parts) == len(extents):
        for part, extent in zip(parts, extents, strict=True):
            check_inside(part, extent)
        return
    size, index = product(shape), parts[0] if len(parts) == 1 else None
    if type(index) is int and type(size) is int and index >= size:
        limit = _named(show(shape))
        raise TilefoldError(Code.BUILD_VALUE, f"coordinate {index} is out of range for {limit}: 0 to {size - 1}")


def _named(shape: str) -> str:
    """A shape in a message: `extent 8`, or `shape (8,4)`."""
    return f"{'shape' if shape.startswith('(') else 'extent'} {shape}"


def as_tuple(coord: Any) -> tuple[Any, ...]:
    """A coordinate as the tuple of its modes."""
    if isinstance(coord, list):
        return tuple(coord)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return coord if isinstance(coord, tuple) else (coord,)  # pyright: ignore[reportUnknownVariableType]


def counted_from_end(coord: AnyTuple, tensor: Any) -> AnyTuple:
    """A coordinate of a tensor whose negative numbers count from the end of their modes, or of the whole, as Python's
    indices do, with numbers from the beginning in their place. Raises TilefoldError (E5002) for one before
    it, (E0103) for one beyond 64 bits.
    """
    return _from_end(coord, tensor.shape) if _is_negative(coord) else coord


def _is_negative(coord: object) -> bool:
    if isinstance(coord, tuple | list):
        return any(map(_is_negative, coord))  # pyright: ignore[reportUnknownArgumentType]
    return type(coord) is int and coord < 0


def _from_end(coord: Coord, shape: AnyTuple) -> AnyTuple:
    parts, extents = as_tuple(coord), wrap(shape)
    if len(parts) > 1 and len(parts) == len(extents):
        return tuple(map(_from_end, parts, extents))
    if len(parts) != 1 or type(parts[0]) is not int or parts[0] >= 0:
        return coord
    place = product(shape) + _within_64_bits(parts[0])
    if type(place) is int and place < 0:
        limit = _named(show_layout(shape))
        raise TilefoldError(Code.BUILD_VALUE, f"coordinate {parts[0]} is out of range for {limit}")
    return place


def window(part: slice, extent: object) -> tuple[int, int, int]:
    """The start of a slice of a mode, its number of coordinates, and its step. Raises TilefoldError (E5002) for a
    slice whose length is unknown, for an empty one and for one that goes backwards, and (E0103) for bounds beyond 64
    bits.
    """
    bounds = [_within_64_bits(x) if type(x) is int else x for x in (part.start, part.stop, part.step)]
    known = type(extent) is int or (type(part.stop) is int and part.stop >= 0 and (part.start or 0) >= 0)
    if not known or any(not (bound is None or type(bound) is int) for bound in bounds):
        message = f"the length of the slice is known only when the kernel runs: of a mode of {show_layout(extent)}"
        raise TilefoldError(Code.BUILD_VALUE, message, "take a tile: cute.local_tile(t, (4,), (i,))")
    numbers = range(*part.indices(extent if type(extent) is int else part.stop))
    if not numbers or numbers.step < 0:
        shown_slice = f"{part.start}:{part.stop}:{part.step}"
        message = f"the slice {shown_slice} of {show_layout(extent)} selects no coordinates in ascending order"
        raise TilefoldError(Code.BUILD_VALUE, message, "views have elements, in the order of their modes")
    return numbers.start, len(numbers), numbers.step


def has_none(coord: object) -> bool:
    """Whether a coordinate keeps a mode."""
    if isinstance(coord, tuple | list):
        return any(map(has_none, coord))  # pyright: ignore[reportUnknownArgumentType]
    return coord is None or isinstance(coord, slice)


def split_layout(layout: LayoutLike) -> tuple[LayoutAttr, list[SSAValue]]:
    """A layout as an attribute with `?` for its values, and these as operands, those of the shape first.

    Raises TilefoldError (E5002) for a swizzled layout whose offset is a value.
    """
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.offset, Int):
            message = f"the offset of {show_layout(layout)} is known only at run time"
            raise TilefoldError(Code.BUILD_VALUE, message, "take a view of the tensor at a coordinate instead")
        return LayoutAttr(layout), []
    (shape, extents), (stride, steps) = split_extents(layout.shape), split_extents(layout.stride)
    return LayoutAttr(Layout(shape, stride)), [*extents, *steps]


def split_extents(integers: AnyTuple) -> tuple[AnyTuple, list[SSAValue]]:
    """A tuple of integers with `?` for its values, and these as operands of type `index`."""
    operands: list[SSAValue] = []

    def convert(leaf: object) -> Any:
        if not isinstance(leaf, Int):
            return leaf
        operands.append(index_of(leaf).ssa)
        return Unknown(64 if leaf.known.width > 32 else 32, leaf.known.div)

    return transform_leaves(convert, integers), operands


def has_value(x: object) -> bool:
    """Whether a layout, a tiler or a tuple holds a value of the kernel."""
    if isinstance(x, tuple | list):
        return any(map(has_value, x))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(x, Layout):
        return has_value(x.shape) or has_value(x.stride)
    return has_value(x.outer) if isinstance(x, ComposedLayout) else isinstance(x, Value)


def as_layout(x: object) -> AnyLayout:
    """Converts a function's argument to a layout: a layout itself, or a shape, which stands for its compact layout."""
    return x if isinstance(x, Layout | ComposedLayout) else make_layout(tuples(x))


def check_static(x: object, subject: str) -> None:
    """Raises TilefoldError (E5003), whose message begins with `subject`, where a layout, a tiler or a tuple is not."""
    if has_value(x):
        raise TilefoldError(Code.BUILD_RUN_TIME, f"{subject} {show_layout(x)}", "pass the sizes as cute.Constexpr")


def tuples(x: AnyTuple) -> AnyTuple:
    """`x`, a tree of integers, layouts and None, with tuples in place of its lists and Python's integers in place of
    those of others, such as NumPy's. Raises TilefoldError (E5002) for anything else in it.
    """
    if isinstance(x, tuple | list):
        return tuple(map(tuples, x))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if type(x) is int:
        return _within_64_bits(x)
    if x is None or isinstance(x, bool | Int | Unknown | Layout | ComposedLayout | ScaledBasis):
        return x
    if not isinstance(x, Value):
        try:
            return _within_64_bits(index(x))
        except TypeError:  # arrays of several elements, and things other than integers
            pass
    given = x.dtype if isinstance(x, Value) else shown(x) if isinstance(x, str | float) else type(x).__name__
    raise TilefoldError(Code.BUILD_VALUE, f"expected integers, or a tuple or a layout of them, got {given}")


class PackedShape(tuple[Any, ...]):
    """A shape as a value of another compiler's IR: the attribute of its type is the shape."""

    @property
    def type(self) -> "PackedShape":
        """The type, which is the shape."""
        return self

    attribute = type


def pack_shape(shape: AnyTuple) -> AnyTuple:
    """A shape of `tuples`, from whose type programs take it as an attribute."""
    given = tuples(shape)
    return PackedShape(given) if isinstance(given, tuple) else given  # pyright: ignore[reportUnknownArgumentType]


def _within_64_bits(x: int) -> int:
    """The integer; `ceil_div` takes unsigned ones, too. TilefoldError (E0103) for any other."""
    if not -(1 << 63) <= x < 1 << 64:
        raise TilefoldError(Code.TEXT_INTEGER_RANGE, f"{shown(x)} does not fit in 64 bits")
    return x


def show_layout(layout: AnyLayout) -> str:
    """A layout or a coordinate as text; a value of the kernel is `?`."""
    if isinstance(layout, Layout):
        return f"{show_layout(layout.shape)}:{show_layout(layout.stride)}"
    if isinstance(layout, ComposedLayout):
        return f"{layout.inner} o {show_layout(layout.offset)} o {show_layout(layout.outer)}"
    return show(transform_leaves(lambda leaf: Unknown() if isinstance(leaf, Int) else leaf, layout))
