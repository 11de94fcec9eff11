# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers with other types and swizzles, and the tensors that begin at them."""

from typing import Any, cast

from xdsl.dialects.builtin import IntAttr

from ...base.errors import Code, TilefoldError
from ...base.spaces import GMEM, RMEM, SMEM
from ...dialects.cute import LayoutAttr, ShapeAttr
from ...dialects.tile import AliasOp, DomainOffsetOp, IdentityOp, MakeTensorOp, RecastOp, TensorType
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, cosize, plain_layout
from ...layout.algebra.integers import AnyTuple
from ...layout.algebra.inttuple import is_fully_static, repeat_like, transform_leaves, wrap
from ...layout.algebra.modes import compose_parts
from ...layout.algebra.swizzle import Swizzle
from ..scalars.dtypes import DType, as_dtype
from ..scalars.values import Int, Scalar, convert, index_of
from ..tracing.state import emit
from .address_space import AddressSpace
from .coordinates import as_layout, check_static, split_coordinate, split_layout
from .descriptors import MatrixDescriptor
from .raw_pointers import RawPointer
from .tensor_base import tensor_type
from .tensors import (
    NUMBERED,
    CoordPointer,
    CoordTensor,
    Pointer,
    Tensor,
    in_bytes,
    is_alignment,
    is_allocated,
    pointed,
    tensor_at,
)

_STRICTEST = 1024
"""The strictest alignment of an address, in bytes, that an instruction asks for."""
_TOGETHER = 4
"""The logarithm of the bytes that a swizzle of addresses keeps together."""


def make_ptr(dtype: object, value: Scalar, mem_space: object = None, assumed_align: int | None = None) -> Pointer:
    """A pointer to elements of a type at an address, which is a number of the kernel or of Python; see
    `cute.runtime.make_ptr`. A generic pointer keeps the memory of the pointer that it is made of. Raises TilefoldError
    (E5002) for a memory without such addresses, and for an alignment that is not a power of two.
    """
    element, name = as_dtype(dtype), GMEM.name if mem_space is None else getattr(mem_space, "name", str(mem_space))
    if name == AddressSpace.generic.name and isinstance(value, RawPointer):
        name = value.memspace.name  # a generic address lies in the memory that it was made of
    align = max(element.bits // 8, 1) if assumed_align is None else assumed_align
    if type(value) is int and is_alignment(align):
        align = max(align, min(value & -value or _STRICTEST, _STRICTEST))  # a number of Python tells it
    if name not in NUMBERED:
        hint = f"write {' or '.join(f'cute.AddressSpace.{known}' for known in NUMBERED)}"
        raise TilefoldError(Code.BUILD_VALUE, f"no number is an address in {name}", hint)
    if not is_alignment(align):
        raise TilefoldError(Code.BUILD_VALUE, f"assumed_align is {align}", "it is a power of two, in bytes")
    if isinstance(value, RawPointer) and value.memspace.name == name:
        made = value.recast(element).base
        if made.ir_type.align.data % align == 0:
            return Tensor(made.ssa, element).iterator
    number = value.toint(NUMBERED[name][2]) if isinstance(value, RawPointer) else convert(value, NUMBERED[name][2])
    return tensor_at(number, element, name, align).iterator


def in_elements(swizzle: Swizzle | None, layout: object, dtype: DType) -> LayoutLike:
    """A layout of elements whose addresses are swizzled: `swizzle` counts bytes, and keeps 16 of them together, or
    counts elements, as that of a composed layout for them does.
    """
    plain = as_layout(layout)
    if swizzle is None or swizzle.bits == 0:
        return plain
    if isinstance(plain, ComposedLayout):
        message = f"the layout {plain} has a swizzle of its own"
        raise TilefoldError(Code.COMPOSED_UNSUPPORTED, message, "give layout.outer, with swizzle=layout.inner")
    unit = max(dtype.bits // 8, 1).bit_length() - 1
    base = swizzle.base - unit if swizzle.base == _TOGETHER else swizzle.base
    return compose_parts(Swizzle(swizzle.bits, base, swizzle.shift), 0, plain)


def alias(tensor: Tensor, layout: object, dtype: object, offset: int = 0, alignment: int | None = None) -> Tensor:
    """A tensor of another type in the memory of one from `make_smem_tensor`, from byte `offset` on.

    Its alignment is that of the memory there, unless a smaller one is given. Stages of a kernel that follow each other
    share memory so, with a barrier between.
    """
    source = tensor_type(tensor)
    known = source.align.data
    while offset % known:
        known //= 2
    plain, element = as_layout(layout), as_dtype(dtype)
    check_static(plain, "layouts of shared memory must be static, but this is")
    type = TensorType(element.in_memory, source.space, IntAttr(alignment or known), LayoutAttr(plain))
    return Tensor(emit(AliasOp(tensor.ssa, offset, type)).results[0], element)


def make_tensor(iterator: object, layout: object) -> Any:
    """Another layout from the start of a tensor (CuTe's make_tensor): `make_tensor(t.iterator, layout)`. From an
    integer or a tuple of integers it makes the coordinate tensor that counts from there, as with CuTe's
    make_inttuple_iter. A tensor of one descriptor of a matrix is the descriptor.

    `layout` is a layout, or a shape, which stands for its compact layout; its integers may be values. Raises
    TilefoldError for a swizzle of memory that is not shared memory of the kernel from its beginning on.
    """
    plain = as_layout(layout)
    if isinstance(iterator, MatrixDescriptor) and plain.size == 1:
        return iterator
    made = _tensor_of(pointed(iterator), plain)
    return made.swizzled_by(plain) if isinstance(made, Tensor) else made


def _tensor_of(iterator: object, plain: LayoutLike) -> Tensor | CoordTensor:
    if isinstance(iterator, tuple | int | Int):
        iterator = _counting_from(cast("AnyTuple", iterator)).iterator
    if isinstance(iterator, CoordPointer):
        attribute, operands = split_layout(plain)
        return CoordTensor(
            emit(MakeTensorOp.inferred([iterator.tensor.ssa, operands], {"layout": attribute})).results[0]
        )
    if not isinstance(iterator, Pointer):  # pyright: ignore[reportUnnecessaryIsInstance]
        given = type(iterator).__name__
        raise TilefoldError(Code.BUILD_VALUE, f"expected where a tensor begins, got {given}", "write t.iterator")
    source = iterator.tensor
    held = source.ir_type.layout.data
    own = held.outer if isinstance(held, ComposedLayout) and isinstance(plain, Layout) else held
    if isinstance(held, ComposedLayout) and plain == own and iterator.swizzle is None:
        return source
    if isinstance(plain, ComposedLayout) and isinstance(plain.inner, Swizzle) and type(plain.offset) is not int:
        return _swizzled_at(iterator, plain, plain.inner)
    if is_allocated(source):
        if iterator.swizzle is not None:
            return _in_memory(source, in_elements(iterator.swizzle, plain, iterator.dtype), iterator.dtype)
        if isinstance(plain, ComposedLayout):
            return _in_memory(source, plain, iterator.dtype)
        if isinstance(held, ComposedLayout):
            return _in_memory(source, compose_parts(held.inner, 0, plain), iterator.dtype)
    if isinstance(held, ComposedLayout) and isinstance(held.inner, Swizzle) and isinstance(plain, Layout):
        return _swizzled_at(iterator, ComposedLayout(held.inner, 0, plain), held.inner)
    swizzled = in_elements(iterator.swizzle, plain, iterator.dtype)
    if isinstance(swizzled, ComposedLayout) and iterator.origin is not None:
        return _moved(iterator.origin, iterator.distance, swizzled, iterator.dtype)
    if isinstance(swizzled, ComposedLayout) and isinstance(swizzled.inner, Swizzle) and iterator.swizzle is not None:
        return _swizzled_from(iterator.toint(), iterator, swizzled, swizzled.inner)
    if (
        isinstance(swizzled, ComposedLayout)
        and isinstance(swizzled.inner, Swizzle)
        and isinstance(held, ComposedLayout)
        and (held.offset == swizzled.offset or _begins_a_period(held, swizzled))
    ):
        return _swizzled_at(iterator, swizzled, swizzled.inner)  # with other modes, which begins where the tensor does
    attribute, operands = split_layout(swizzled)
    made = emit(MakeTensorOp.inferred([source.ssa, operands], {"layout": attribute}))
    return Tensor(made.results[0], source.element_type)


def _begins_a_period(held: ComposedLayout, layout: ComposedLayout) -> bool:
    """Whether the first element of a tensor in the layout `held` begins a period of its swizzle, which another layout
    has too: then both count from one place.
    """
    swizzle, step = held.inner, getattr(held.offset, "div", held.offset)
    if swizzle != layout.inner or not isinstance(swizzle, Swizzle) or layout.offset != 0 or type(step) is not int:
        return False
    return step % (1 << (swizzle.y_mask | swizzle.z_mask).bit_length()) == 0


def _counting_from(coord: AnyTuple) -> CoordTensor:
    """The coordinate tensor that begins at a coordinate, which may lie before 0."""
    shape = ShapeAttr(repeat_like(coord, 2))  # in a mode of extent 1 every coordinate is 0
    identity = CoordTensor(emit(IdentityOp.inferred([None, []], {"shape": shape})).results[0])
    attribute, operands = split_coordinate(transform_leaves(lambda x: index_of(x) if type(x) is int else x, coord))
    return identity.view(DomainOffsetOp, [operands], {"coord": attribute})


def _in_memory(source: Tensor, layout: LayoutLike, dtype: DType) -> Tensor:
    """A tensor in another layout in memory of the kernel. A layout may reach beyond the memory, as where only its first
    stages are used; then the address counts.
    """
    held = source.ir_type
    if held.space.data is SMEM and is_fully_static(layout.shape) and _bytes(layout, dtype) > held.bytes:
        return tensor_at(source.ptr().number(), dtype, SMEM.name, held.align.data, layout)
    return alias(source, layout, dtype)


def _bytes(layout: LayoutLike, dtype: DType) -> int:
    return -(-cosize(plain_layout(layout)) * dtype.bits // 8)


def _swizzled_at(iterator: Pointer, layout: ComposedLayout, swizzle: Swizzle) -> Tensor:
    """A tensor in the layout of a slice of swizzled shared memory: its address is swizzled already."""
    return _swizzled_from(in_bytes(swizzle, iterator.dtype)(iterator.toint()), iterator, layout, swizzle)


def _swizzled_from(start: AnyTuple, iterator: Pointer, layout: ComposedLayout, swizzle: Swizzle) -> Tensor:
    """A tensor in a layout of swizzled shared memory, from an address that is not yet swizzled: the swizzle is of
    addresses, so that they tell how far behind the start of one of its periods the tensor begins.
    """
    dtype, bytes = iterator.dtype, in_bytes(swizzle, iterator.dtype)
    unit, period = max(dtype.bits // 8, 1), 1 << (bytes.y_mask | bytes.z_mask).bit_length()
    if iterator.alignment % period == 0:
        return tensor_at(start, dtype, iterator.memspace.name, iterator.alignment, layout)
    step = max(min(iterator.alignment, 1 << bytes.base) // unit, 1)
    place = (start & period - 1) // (unit * step)
    outer = Layout((*wrap(layout.outer.shape), period // (unit * step)), (*wrap(layout.outer.stride), step))
    check_static(outer, "layouts of shared memory must be static, but this is")
    whole = tensor_at(start & -period, dtype, iterator.memspace.name, period, compose_parts(swizzle, 0, outer))
    return whole[(*(None,) * len(wrap(layout.outer.shape)), place)]


def _moved(origin: Tensor, distance: Any, layout: ComposedLayout, dtype: DType) -> Tensor:
    """A tensor with a swizzle of addresses, `distance` bytes after the start of shared memory: a slice of a tensor that
    begins there, since the swizzle counts from there.
    """
    check_static(layout, "layouts of shared memory must be static, but this is")
    bytes, outer = max(dtype.bits // 8, 1), layout.outer
    step = distance if type(distance) is int else distance.known.div
    if dtype.bits % 8 or step % bytes or layout.offset != 0:
        message = f"a swizzled tensor of {dtype} cannot begin at a multiple of {step} bytes"
        raise TilefoldError(Code.COMPOSED_UNSUPPORTED, message, "begin it at a multiple of its elements")
    if type(distance) is int and distance == 0:
        return alias(origin, layout, dtype)
    step, room = step // bytes, origin.ir_type.bytes // bytes - cosize(outer)
    steps = 2 if type(distance) is int else max(room // step + 1, 1)
    whole = compose_parts(layout.inner, 0, Layout((*wrap(outer.shape), steps), (*wrap(outer.stride), step)))
    place = 1 if type(distance) is int else distance // (step * bytes)
    modes = len(outer)
    made: Tensor = alias(origin, whole, dtype)[(*(None,) * modes, place)]
    return made if isinstance(outer.shape, tuple) else made[None]


def recast_tensor(src: Tensor, dtype: object, swizzle_: None = None) -> Tensor:
    """The same memory as elements of another type (CuTe's recast). Of swizzled shared memory it has the elements in the
    order of their addresses: programs of the DSL that swizzle the bytes themselves take it so.
    """
    element = as_dtype(dtype)
    held = tensor_type(src)  # refuses a tensor of coordinates
    made = Tensor(emit(RecastOp.inferred([src.ssa], {"element_type": element.in_memory})).results[0], element)
    layout = made.ir_type.layout.data
    if held.space.data is not SMEM or not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        return made
    start, align, swizzle = made.ptr().number(), held.align.data, in_bytes(layout.inner, element)
    if not _begins_a_period(layout, ComposedLayout(layout.inner, 0, layout.outer)):
        start, align = swizzle(start), min(align, 1 << swizzle.base)  # the same exclusive or again takes it back
    return tensor_at(start, element, SMEM.name, align, layout.outer)


def recast_ptr(ptr: Pointer, swizzle_: Swizzle | None = None, dtype: object = None) -> Pointer:
    """A pointer to elements of another type at the same address, with another swizzle for the tensors that
    `make_tensor` makes from it. `swizzle_` counts bytes, or elements of the type.

    Raises TilefoldError (E5002) for anything but a pointer, E0211 for a swizzle of other memory than shared memory.
    """
    ptr = pointed(ptr)
    if not isinstance(ptr, Pointer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected a pointer, got {type(ptr).__name__}", "write t.iterator")
    tensor, element = ptr.tensor, ptr.dtype if dtype is None else as_dtype(dtype)
    if swizzle_ is not None and tensor.ir_type.space.data is not SMEM:
        message, hint = "only shared memory is swizzled", "copy to it first"
        raise TilefoldError(Code.COMPOSED_UNSUPPORTED, message, hint)
    if element != ptr.dtype:
        if is_allocated(tensor):
            tensor = alias(tensor, tensor.ir_type.bytes * 8 // element.bits, element)
        elif tensor.ir_type.space.data is RMEM:
            tensor = recast_tensor(tensor, element)
        else:
            base = RawPointer(tensor).recast(element).base
            tensor = Tensor(base.ssa, element)
    return Pointer(tensor, swizzle_ or ptr.swizzle, ptr.origin, ptr.distance)
