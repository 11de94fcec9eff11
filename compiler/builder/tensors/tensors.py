# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of the kernel that is being built: memory with a layout, and coordinates with a layout."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Any, Self, TypeVar

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntAttr, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue

from ....base.errors import Code, LayoutError, TilefoldError
from ....dialects.arith.integer_range import limits
from ....dialects.cute import CoordAttr, LayoutAttr
from ....dialects.ptx.types import GLOBAL, SHARED
from ....dialects.tile import (
    CoordinateOp,
    CoordTensorType,
    DimOp,
    FillOp,
    FragmentOp,
    LoadOp,
    MakeFragmentLikeOp,
    MakeTensorOp,
    PtrOp,
    SliceOp,
    StoreOp,
    StrideOp,
    TensorType,
    ViewOp,
)
from ....dialects.tile.view_base import LayoutViewOp
from ....layout.algebra.core import ComposedLayout, Layout, LayoutLike
from ....layout.algebra.inttuple import rank
from ....layout.algebra.unknown import Unknown
from ..scalars import casts
from ..scalars.dtypes import DType, Index, dtype_of
from ..scalars.values import MOST, Int, convert, index_of, is_scalar, wrap
from ..tracing.state import current, emit
from .coordinates import (
    as_layout,
    as_tuple,
    at_run_time,
    check_inside,
    has_none,
    show_layout,
    split_coordinate,
    split_layout,
)


class AnyTensor:
    """What views are taken of: a `Tensor`, or a `CoordTensor`."""

    __slots__ = ("_layout", "ssa")
    __array_ufunc__ = None  # NumPy does not look for numbers in it

    def __init__(self, ssa: SSAValue) -> None:
        if not isinstance(ssa, SSAValue):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "write cute.make_smem_tensor, cute.make_rmem_tensor or cute.make_tensor"
            raise TilefoldError(Code.BUILD_VALUE, f"a {type(self).__name__} is not made by its class", hint)
        self.ssa = ssa
        self._layout: LayoutLike | None = None

    @property
    def ir_type(self) -> Any:
        """The type in the IR."""
        return self.ssa.type

    @property
    def layout(self) -> Any:
        """The layout: from a coordinate to the number of the element, counted from the iterator. Its integers that are
        known only at run time are values.
        """
        if self._layout is None:
            self._layout = self._with_values()
        return self._layout

    def _with_values(self) -> LayoutLike:
        layout: LayoutLike = self.ir_type.layout.data
        if isinstance(layout, ComposedLayout):
            return layout
        shape = _replaced(layout.shape, partial(self._scalar, DimOp))
        return Layout(shape, _replaced(layout.stride, partial(self._scalar, StrideOp)))

    def _scalar(self, op: type[Any], path: tuple[int, ...], leaf: Unknown) -> Int:
        modes = DenseArrayBase.from_list(i64, path or (0,))
        made = op.build(operands=[self.ssa], properties={"modes": modes}, result_types=[IndexType()])
        current().insert_after(self.ssa, made)
        return Int(made.results[0], Index, leaf, (0, min(MOST, limits(leaf.width)[1])))

    @property
    def shape(self) -> Any:
        """The shape: a number for each mode, nested as the layout is."""
        return self.layout.shape

    @property
    def stride(self) -> Any:
        """The strides in elements, of the profile of the shape."""
        layout = self.layout
        return layout.inner.stride if isinstance(layout, ComposedLayout) else layout.stride

    @property
    def rank(self) -> int:
        """The number of modes."""
        return rank(self.ir_type.layout.data.shape)

    def __len__(self) -> int:
        """The rank, as of a layout; `cute.size(t, 0)` is the extent of the first mode, which is NumPy's `len`."""
        return self.rank

    def view(self, op: type[LayoutViewOp], operands: Sequence[Any], properties: dict[str, Any]) -> Self:
        """The view of this tensor by an operation: `operands` after the tensor. Raises TilefoldError."""
        return self.view_of(op, [self.ssa, *operands], properties)

    def view_of(self, op: type[LayoutViewOp], operands: Sequence[Any], properties: dict[str, Any]) -> Self:
        """The view of this tensor that an operation gives with these operands, of which one is it. Raises
        TilefoldError.
        """
        return self._like(emit_inferred(op, operands, properties))

    def _like(self, ssa: SSAValue) -> Self:
        return type(self)(ssa)


AnyTensorT = TypeVar("AnyTensorT", bound=AnyTensor)


def sliced(tensor: AnyTensorT, coord: Any) -> AnyTensorT:
    """The modes for which a coordinate has `None`, at the coordinate of the others; also of none."""
    attribute, operands = split_coordinate(coord)
    return tensor.view(SliceOp, [operands], {"coord": attribute})


class Pointer:
    """Where a tensor begins: what `make_tensor` takes, together with a layout. `p + n` is `n` elements further on."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: "Tensor") -> None:
        self.tensor = tensor

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.tensor.element_type

    @property
    def memspace(self) -> str:
        """`gmem`, `smem` or `rmem`."""
        return self.tensor.memspace

    @property
    def alignment(self) -> int:
        """The bytes of which its address is known to be a multiple."""
        return self.tensor.ir_type.align.data

    def __add__(self, elements: Any) -> "Pointer":
        type: TensorType = self.tensor.ir_type
        if type.is_swizzled:
            message, hint = (
                "a pointer into a swizzle does not move by itself",
                "take a view: t[None, k], cute.local_tile",
            )
            raise TilefoldError(Code.COMPOSED_UNSUPPORTED, message, hint)
        count = index_of(elements)
        bits = gcd(count.known.div * type.element_bits, 8 * type.align.data)
        if bits % 8:
            message = f"elements of {type.element_bits} bits begin within a byte"
            raise TilefoldError(Code.BUILD_VALUE, message, f"move by a multiple of {8 // type.element_bits}")
        align = IntAttr(bits // 8 & -(bits // 8))  # the largest power of two that divides it
        one = TensorType(type.element_type, type.space, align, LayoutAttr(Layout(1, 0)))
        moved = emit(ViewOp(self.tensor.ssa, count.ssa, one)).results[0]
        return Pointer(Tensor(moved, self.tensor.element_type))

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"{self.memspace}_ptr[{self.tensor.ir_type.element_bits}b]"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an element in global or shared memory, for atomic operations and barriers."""

    ssa: SSAValue
    dtype: DType


class Tensor(AnyTensor):
    """Elements in memory, seen through a layout.

    `t[i, j]` is an element, `t[i, j] = v` writes it; one number counts colexicographically. With `None` for a mode,
    `t[None, k]` is the tensor of the modes that are kept, and `t[None, k] = u` writes `u` there: a value, or a fragment
    in the shape of what is kept. Elements are of a type of Python's side, where the IR has fewer: integers have no sign
    there, and a predicate that threads share is a byte.
    """

    __slots__ = ("_dtype",)

    def __init__(self, ssa: SSAValue, dtype: DType | None = None) -> None:
        super().__init__(ssa)
        self._dtype = dtype_of(self.ir_type.element_type) if dtype is None else dtype.of_tensor

    def _like(self, ssa: SSAValue) -> Self:
        return type(self)(ssa, self._dtype)

    @property
    def element_type(self) -> DType:
        """The type of the elements."""
        return self._dtype

    dtype = element_type

    def element(self, ssa: SSAValue, dtype: DType | None = None) -> Any:
        """What was read from it as a value, of the type of its elements or of one that is the same in memory."""
        found = self._dtype if dtype is None else dtype
        return wrap(ssa, found) if ssa.type == found.ir else convert(wrap(ssa), found)

    def stored(self, value: Any) -> SSAValue:
        """A value or number as what is written to it. Raises TilefoldError (E5002) where there is no conversion."""
        ssa = convert(value, self._dtype).ssa
        held = self.ir_type.element_type
        return ssa if ssa.type == held else casts.cast(ssa, self._dtype, dtype_of(held))

    @property
    def memspace(self) -> str:
        """`gmem`, `smem` or `rmem`."""
        return self.ir_type.space.data.value

    @property
    def iterator(self) -> Pointer:
        """Where it begins."""
        return Pointer(self)

    def __getitem__(self, coord: Any) -> Any:
        if has_none(coord):
            return sliced(self, coord)
        attribute, operands = self._place(coord)
        op = LoadOp.build(
            operands=[self.ssa, operands],
            result_types=[self.ir_type.element_type],
            properties={"coord": attribute},
        )
        return self.element(emit(op).results[0])

    def __setitem__(self, coord: Any, value: Any) -> None:
        if has_none(coord):
            sliced(self, coord).store(value)
            return
        attribute, operands = self._place(coord)
        if not is_scalar(value):
            raise TilefoldError(
                Code.BUILD_VALUE,
                f"an element is a value or a number, not {type(value).__name__}",
                "write t[None, k] = ... for several elements",
            )
        emit(StoreOp.build(operands=[self.stored(value), self.ssa, operands], properties={"coord": attribute}))

    def _place(self, coord: Any) -> Any:
        return _inside(*split_coordinate(as_tuple(coord)), self)

    def ptr(self, *coord: Any) -> Address:
        """The address of the element at a coordinate, for atomic operations: `t.ptr(i, j)`; of the first for none."""
        attribute, operands = _inside(*split_coordinate(coord or (0,)), self)
        kind = SHARED if self.memspace == "smem" else GLOBAL
        op = PtrOp.build(operands=[self.ssa, operands], properties={"coord": attribute}, result_types=[kind])
        return Address(emit(op).results[0], self.element_type)

    def load(self) -> Any:
        """All elements as a value in the tensor's shape, on which arithmetic works element by element."""
        from .fragments import load

        return load(self)

    def store(self, value: Any) -> None:
        """Writes a value of the tensor's shape, or one number everywhere, converted to its elements as by `x.to`."""
        from .fragments import store

        store(self, value)

    def fill(self, value: Any) -> None:
        """Writes one value or number to every element."""
        emit(FillOp(self.ssa, self.stored(value)))

    def __iter__(self) -> Any:
        raise TilefoldError(
            Code.BUILD_VALUE, "a tensor is not iterated over", "write for i in cute.range(cute.size(t)) and t[i]"
        )

    def __repr__(self) -> str:
        return f"{self.iterator!r} o {show_layout(self.ir_type.layout.data)}"


def _inside(attribute: CoordAttr, operands: list[SSAValue], tensor: AnyTensor) -> tuple[CoordAttr, list[SSAValue]]:
    """The split coordinate of an element, which must be one of the tensor's if every thread asks for it."""
    try:
        check_inside(attribute.data, tensor.ir_type.layout.data.shape)
    except TilefoldError as error:
        if current().is_certain or error.code != Code.BUILD_VALUE.id:
            raise
        return at_run_time(attribute, operands)  # a branch may be one that no thread takes
    return attribute, operands


class CoordTensor(AnyTensor):
    """A tensor whose elements are coordinates: `c[i, j]` is a coordinate, a tuple of integers.

    It is viewed as the tensor is whose elements it numbers. It takes no memory.
    """

    __slots__ = ()

    def __getitem__(self, coord: Any) -> Any:
        if has_none(coord):
            return sliced(self, coord)
        attribute, operands = _inside(*split_coordinate(as_tuple(coord)), self)
        start = self.ir_type.start.data
        count = _count(start)
        op = CoordinateOp.build(
            operands=[self.ssa, operands], result_types=[[IndexType()] * count], properties={"coord": attribute}
        )
        results = iter(emit(op).results)

        def one(path: tuple[int, ...], leaf: Any) -> Int:
            return Int(next(results), Index, range=(0, MOST))

        return _replaced(start, one, every=True)

    def __repr__(self) -> str:
        return f"{show_layout(self.ir_type.start.data)} o {show_layout(self.ir_type.layout.data)}"


def emit_inferred(
    op: "type[LayoutViewOp | FragmentOp | MakeFragmentLikeOp]", operands: Sequence[Any], properties: Mapping[str, Any]
) -> SSAValue:
    """The result of an operation that infers its type from its operands, one of which is a tensor. Raises
    TilefoldError.
    """
    try:
        return _emit_inferred(op, operands, properties)
    except LayoutError as error:
        if error.code != Code.COORDINATE_OUTSIDE.id or current().is_certain:
            raise
        coord, values = at_run_time(properties["coord"], operands[-1])  # a branch may be one that no thread takes
        return _emit_inferred(op, [*operands[:-1], values], {**properties, "coord": coord})


def _emit_inferred(op: Any, operands: Sequence[Any], properties: Mapping[str, Any]) -> SSAValue:
    tensor = next(o.type for o in operands if isinstance(getattr(o, "type", None), TensorType | CoordTensorType))
    draft = op.build(operands=operands, result_types=[tensor], properties={**properties})
    try:
        inferred = draft.inferred_type()
    finally:
        draft.erase()
    return emit(op.build(operands=operands, result_types=[inferred], properties={**properties})).results[0]


def _count(t: Any) -> int:
    return sum(map(_count, t)) if isinstance(t, tuple) else 1  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _replaced(
    t: Any, value: Callable[[tuple[int, ...], Any], Int], path: tuple[int, ...] = (), every: bool = False
) -> Any:
    """`t` with `value(path, leaf)` in place of its `?`, or of every leaf."""
    if isinstance(t, tuple):
        return tuple([_replaced(part, value, (*path, i), every) for i, part in enumerate(t)])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value(path, t) if every or isinstance(t, Unknown) else t


def make_tensor(iterator: Pointer, layout: Any) -> Tensor:
    """Another layout from where a tensor begins (CuTe's make_tensor): `make_tensor(t.iterator, layout)`.

    `layout` is a layout, or a shape, which stands for its compact layout; its integers may be values. Raises
    TilefoldError for swizzled tensors and layouts.
    """
    plain = as_layout(layout)
    if not isinstance(iterator, Pointer):  # pyright: ignore[reportUnnecessaryIsInstance]
        given = type(iterator).__name__
        raise TilefoldError(Code.BUILD_VALUE, f"expected where a tensor begins, got {given}", "write t.iterator")
    source = iterator.tensor
    attribute, operands = split_layout(plain)
    inferred = MakeTensorOp.infer(source.ir_type, attribute)
    op = MakeTensorOp.build(operands=[source.ssa, operands], properties={"layout": attribute}, result_types=[inferred])
    return Tensor(emit(op).results[0], source.element_type)


def ragged_unit(ragged: bool) -> dict[str, Attribute]:
    """The property of a view whose last tiles may reach beyond its tensor."""
    return {"ragged": UnitAttr()} if ragged else {}


def tensor_type(tensor: Tensor) -> TensorType:
    """The type of a tensor in memory. Raises TilefoldError (E5002) for anything else."""
    type = getattr(tensor, "ir_type", None)
    if not isinstance(type, TensorType):
        raise TilefoldError(Code.BUILD_VALUE, f"expected a tensor in memory, got {tensor.__class__.__name__}")
    return type
