# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements in memory, reached by coordinates; the base of tensors, without fragments.

Fragments are computed from elements in registers, and tensors load and store fragments; both are built on this.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar, cast

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntAttr, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue

from ...base.errors import Code, LayoutError, TilefoldError
from ...base.spaces import RMEM, SMEM, Space
from ...base.target import MAX_SHARED_BYTES
from ...dialects.arith.integer_range import limits
from ...dialects.cute import CoordAttr, LayoutAttr, TilerAttr
from ...dialects.ptx import SpaceAttr
from ...dialects.tile import (
    AllocOp,
    CompositionOp,
    DimOp,
    DomainOffsetOp,
    FillOp,
    FragmentOp,
    LoadOp,
    MakeFragmentLikeOp,
    MakeTensorOp,
    SliceOp,
    StoreOp,
    StrideOp,
    TensorType,
)
from ...dialects.tile.fragments import FRAGMENT_ALIGN
from ...dialects.tile.view_base import LayoutViewOp
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, flat_modes, make_layout, plain_layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import product, rank
from ...layout.algebra.inttuple import wrap as modes_of
from ...layout.algebra.swizzle import Swizzle
from ..scalars import casts
from ..scalars.dtypes import DType, Index, dtype_of
from ..scalars.operators import Operand
from ..scalars.values import MOST, Int, convert, wrap
from ..tracing.state import current, emit
from ..tracing.truth import is_compared_by_user, refuse_presence
from .address_space import AddressSpace
from .coordinates import (
    as_tuple,
    at_run_time,
    check_inside,
    check_static,
    counted_from_end,
    has_none,
    has_value,
    show_layout,
    split_coordinate,
    split_layout,
    window,
)


class AnyTensor:
    """The base of all things with views: a `Tensor`, or a `CoordTensor`."""

    __slots__ = ("_layout", "is_swizzled_by_layout", "ssa")
    __array_ufunc__ = None  # NumPy does not look for numbers in it

    def __init__(self, ssa: SSAValue) -> None:
        if not isinstance(ssa, SSAValue):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "write cute.make_smem_tensor, cute.make_rmem_tensor or cute.make_tensor"
            raise TilefoldError(Code.BUILD_VALUE, f"the class {type(self).__name__} does not make tensors", hint)
        self.ssa = ssa
        self._layout: LayoutLike | None = None
        self.is_swizzled_by_layout = False

    @property
    def ir_type(self) -> Any:
        """The type in the IR."""
        return self.ssa.type

    @property
    def layout(self) -> Any:
        """The layout: from a coordinate to the number of the element, counted from the iterator. Its run-time integers
        are values. The swizzle of shared memory is the iterator's, unless the tensor was made with a composed layout.
        """
        if self._layout is None:
            self._layout = self._with_values()
        return self._layout

    def _with_values(self) -> LayoutLike:
        layout: LayoutLike = self.ir_type.layout.data
        if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle) and not self.is_swizzled_by_layout:
            layout = layout.outer
        if isinstance(layout, ComposedLayout):
            return layout
        shape = replaced_leaves(layout.shape, partial(self._scalar, DimOp))
        return Layout(shape, replaced_leaves(layout.stride, partial(self._scalar, StrideOp)))

    def _scalar(self, op: type[Any], path: tuple[int, ...], leaf: Unknown) -> Int:
        modes = DenseArrayBase.from_list(i64, path or (0,))
        made = op.build(operands=[self.ssa], properties={"modes": modes}, result_types=[IndexType()])
        current().insert_after(self.ssa, made)
        return Int(made.results[0], Index, leaf, (0, min(MOST, limits(leaf.width)[1])))

    @property
    def shape(self) -> Any:
        """The shape: a number for each mode, nested like the layout."""
        return self.layout.shape

    @property
    def stride(self) -> Any:
        """The strides in elements, nested like the shape."""
        layout = self.layout
        return layout.outer.stride if isinstance(layout, ComposedLayout) else layout.stride

    @property
    def leading_dim(self) -> "int | tuple[int, ...] | None":
        """The contiguous mode, whose stride is 1: of several, the one with more than one element; its path if modes are
        nested; None if no mode is contiguous.
        """
        layout = plain_layout(self.ir_type.layout.data)
        paths: list[tuple[int, ...]] = []
        _ = replaced_leaves(layout.stride, lambda path, step: paths.append(path), every=True)
        modes = zip(paths, flat_modes(layout), strict=True)
        contiguous = [(extent != 1, path) for path, (extent, step) in modes if type(step) is int and step == 1]
        path = max(contiguous, key=lambda mode: mode[0])[1] if contiguous else None
        return path[0] if path is not None and len(path) == 1 else path

    @property
    def rank(self) -> int:
        """The number of modes."""
        return rank(self.ir_type.layout.data.shape)

    def __len__(self) -> int:
        """The rank, as of a layout; `cute.size(t, 0)` is the extent of the first mode, which is NumPy's `len`."""
        return self.rank

    def __bool__(self) -> bool:
        refuse_presence("a tensor is neither true nor false", "an element is t[i, j]")

    def __eq__(self, other: object) -> bool:
        if other is None or not is_compared_by_user():
            return NotImplemented
        hint = "write t.load() == u.load() for all elements, t[i, j] == u[i, j] for one; `is` compares the objects"
        raise TilefoldError(Code.BUILD_VALUE, "'==' does not compare the elements of a tensor", hint)

    __hash__ = object.__hash__

    def view(self, op: type[LayoutViewOp], operands: Sequence[object], properties: Mapping[str, object]) -> Self:
        """The view of this tensor by an operation: `operands` after the tensor. Raises TilefoldError."""
        return self.view_of(op, [self.ssa, *operands], properties)

    def view_of(self, op: type[LayoutViewOp], operands: Sequence[object], properties: Mapping[str, object]) -> Self:
        """The view of this tensor by an operation with these operands, one of which is this tensor. Raises
        TilefoldError.
        """
        return self.like(emit_inferred(op, operands, properties))

    def like(self, ssa: SSAValue) -> Self:
        """A tensor of the same kind."""
        return self.__class__(ssa)

    @property
    def type(self) -> Any:  # last, since it hides Python's own in this class
        """The type in the IR, for printing."""
        return self.ssa.type


AnyTensorT = TypeVar("AnyTensorT", bound=AnyTensor)


def slice_modes(tensor: AnyTensorT, coord: object) -> AnyTensorT:
    """The modes for which a coordinate has `None` or a slice, at the coordinate of the others; perhaps for no mode."""
    parts = as_tuple(coord)
    if any(isinstance(part, slice) and part != slice(None) for part in parts):
        tensor = _slice_windows(tensor, parts)
        coord = tuple(slice(None) if isinstance(part, slice) else part for part in parts)
    attribute, operands = split_coordinate(counted_from_end(coord, tensor))
    return tensor.view(SliceOp, [operands], {"coord": attribute})


def _slice_windows(tensor: AnyTensorT, parts: tuple[object, ...]) -> AnyTensorT:
    """A tensor with the slices of its modes; the others are whole."""
    layout = tensor.layout
    extents = modes_of(tensor.shape)
    if len(parts) != len(extents):
        message = f"{len(parts)} coordinates do not fit {show_layout(tensor.shape)}"
        raise TilefoldError(Code.PROFILE_MISMATCH, message, "give one for each mode, None for a whole one")
    pairs = list(zip(parts, map(product, extents), strict=True))  # pyright: ignore[reportUnknownArgumentType]
    windows = [window(cast("Any", x), size) if isinstance(x, slice) and x != slice(None) else None for x, size in pairs]
    starts, operands = split_coordinate(tuple(0 if part is None else part[0] for part in windows))
    moved = tensor.view(DomainOffsetOp, [operands], {"coord": starts})
    if has_value(layout):
        modes = [
            mode if part is None else Layout(part[1], mode.stride * part[2])
            for mode, part in zip(layout, windows, strict=True)
        ]
        attribute, scalars = split_layout(make_layout(*modes))
        return tensor.like(emit_inferred(MakeTensorOp, [moved.ssa, scalars], {"layout": attribute}))
    tiler = tuple(
        Layout(product(mode), 1) if part is None else Layout(part[1], part[2])
        for mode, part in zip(extents, windows, strict=True)
    )
    return moved.view(CompositionOp, [], {"tiler": TilerAttr(tiler)})


class Elements(AnyTensor):
    """Elements in memory, of a type of Python's side.

    The IR has fewer types: its integers have no sign, and a predicate that threads share is a byte there.
    """

    __slots__ = ("_dtype",)

    def __init__(self, ssa: SSAValue, dtype: DType | None = None) -> None:
        super().__init__(ssa)
        self._dtype = dtype_of(self.ir_type.element_type) if dtype is None else dtype.of_tensor

    def like(self, ssa: SSAValue) -> Self:
        """A tensor of the same kind, and of the same element type."""
        made = type(self)(ssa, self._dtype)
        made.is_swizzled_by_layout = self.is_swizzled_by_layout
        return made

    def swizzled_by(self, layout: object) -> Self:
        """This tensor, whose swizzle is that of its layout if `layout` is composed, and else that of its iterator."""
        made = self.like(self.ssa)
        made.is_swizzled_by_layout = isinstance(layout, ComposedLayout)
        return made

    @property
    def element_type(self) -> DType:
        """The type of the elements."""
        return self._dtype

    dtype = element_type

    def element(self, ssa: SSAValue, dtype: DType | None = None) -> Any:
        """A loaded element as a value, of the element type or of another type with the same form in memory."""
        target = self._dtype if dtype is None else dtype
        return wrap(ssa, target) if ssa.type == target.ir else convert(wrap(ssa), target)

    def stored(self, value: Operand) -> SSAValue:
        """A value or number in the form that memory holds. Raises TilefoldError (E5002) for an impossible
        conversion.
        """
        ssa = convert(value, self._dtype).ssa
        held = self.ir_type.element_type
        return ssa if ssa.type == held else casts.cast(ssa, self._dtype, dtype_of(held))

    @property
    def memspace(self) -> AddressSpace:
        """`AddressSpace.gmem`, `smem`, `rmem` or `dsmem`."""
        return AddressSpace[self.ir_type.space.data.name]

    def __getitem__(self, coord: object) -> Any:
        if has_none(coord):
            return slice_modes(self, coord)
        attribute, operands = self._place(coord)
        return self.element(emit(LoadOp.inferred([self.ssa, operands], {"coord": attribute})).results[0])

    def _place(self, coord: object) -> Any:
        return inside(*split_coordinate(as_tuple(counted_from_end(coord, self))), self)

    def write(self, coord: object, value: object) -> None:
        """Writes a value or number to the element at a coordinate."""
        attribute, operands = self._place(coord)
        emit(StoreOp.build(operands=[self.stored(value), self.ssa, operands], properties={"coord": attribute}))

    def fill(self, value: object) -> None:
        """Writes one value or number to every element."""
        emit(FillOp(self.ssa, self.stored(value)))

    def __iter__(self) -> Any:
        hint = "write for i in cute.range(cute.size(t)) and t[i]; t.load().sum() and the like combine all elements"
        raise TilefoldError(Code.BUILD_VALUE, "Python cannot iterate over a tensor", hint)


def allocate(dtype: DType, space: Space, align: int, layout: LayoutLike, held: Attribute | None = None) -> SSAValue:
    """New memory of the block or the thread, contents undefined, for elements that the IR holds as `held`: as threads
    share them, by default, but of a fragment as they are computed with. Raises TilefoldError (E5003) unless it is
    static.
    """
    check_static(layout, "a kernel allocates memory of static layouts only, not of")
    element = held or (dtype.ir if space is RMEM else dtype.in_memory)
    type = TensorType(element, SpaceAttr(space), IntAttr(align), LayoutAttr(layout))
    if space is SMEM:
        check_shared("the tensor takes", type.bytes)
    return emit(AllocOp(type), is_materialized=True).results[0]


def check_shared(subject: str, bytes: int) -> None:
    """Raises TilefoldError (E2103) for more shared memory than a block has on any target."""
    if bytes > MAX_SHARED_BYTES:
        message = f"{subject} {bytes} bytes of shared memory; a block has at most {MAX_SHARED_BYTES}"
        hint = "let a block work on a smaller tile, with fewer stages, and loop over the tiles"
        raise TilefoldError(Code.TARGET_SHARED_MEMORY, message, hint)


def registers(dtype: DType, layout: LayoutLike, held: Attribute | None = None) -> Elements:
    """New registers of the thread; see `allocate`."""
    return Elements(allocate(dtype, RMEM, FRAGMENT_ALIGN, layout, held), dtype)


def inside(attribute: CoordAttr, operands: list[SSAValue], tensor: AnyTensor) -> tuple[CoordAttr, list[SSAValue]]:
    """The split coordinate of an element, which must be one of the tensor's if every thread asks for it. Raises
    TilefoldError (E5002, E0201).
    """
    try:
        check_inside(attribute.data, tensor.ir_type.layout.data.shape)
    except TilefoldError as error:
        if current().is_certain or error.code != Code.BUILD_VALUE:
            raise
        return at_run_time(attribute, operands)  # a branch may be one that no thread takes
    return attribute, operands


def emit_inferred(
    op: "type[LayoutViewOp | FragmentOp | MakeFragmentLikeOp | MakeTensorOp]",
    operands: Sequence[Any],
    properties: Mapping[str, Any],
) -> SSAValue:
    """The result of an operation that infers its type from its operands, one of which is a tensor. Where tiles do not
    cover the tensor, the last ones reach beyond it. Raises TilefoldError.
    """
    try:
        return emit(op.inferred(operands, properties)).results[0]
    except LayoutError as error:
        if error.code == Code.TILE_NOT_DIVIDING and "ragged" not in properties:
            return emit_inferred(op, operands, {**properties, "ragged": UnitAttr()})
        if error.code != Code.COORDINATE_OUTSIDE or current().is_certain:
            raise
        coord, values = at_run_time(properties["coord"], operands[-1])  # a branch may be one that no thread takes
        return emit(op.inferred([*operands[:-1], values], {**properties, "coord": coord})).results[0]


def replaced_leaves(
    t: object, value: Callable[[tuple[int, ...], Any], object], path: tuple[int, ...] = (), every: bool = False
) -> Any:
    """`t` with `value(path, leaf)` in place of its `?`, or of every leaf."""
    if isinstance(t, tuple):
        return tuple([replaced_leaves(part, value, (*path, i), every) for i, part in enumerate(t)])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value(path, t) if every or isinstance(t, Unknown) else t


def tensor_type(tensor: AnyTensor) -> TensorType:
    """The type of a tensor in memory. Raises TilefoldError (E5002) for anything else."""
    type = getattr(tensor, "ir_type", None)
    if not isinstance(type, TensorType):
        raise TilefoldError(Code.BUILD_VALUE, f"expected a tensor in memory, got {tensor.__class__.__name__}")
    return type
