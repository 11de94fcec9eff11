# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps by extents, strides and a box, and the copies of boxes by their coordinates (TMA, sm_90).

Dimensions are counted from the contiguous one: extents, boxes and coordinates begin with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from operator import index
from typing import Any

from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects import ptx
from ...dialects.tile import PtrOp, TensorMapPtrOp
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, make_layout
from ...layout.algebra.integers import ScaledBasis
from ...layout.algebra.swizzle import Swizzle
from ..scalars.dtypes import DType, Int32, Int64, Uint16, as_dtype, dtype_of
from ..scalars.values import Int, Scalar, convert, wrap
from ..tensors.nvgpu import CopyBulkTensorTileG2SOp
from ..tensors.pointers import make_tensor
from ..tensors.tensors import Pointer, PointerNumber, Tensor
from ..tensors.tma import TmaAtom, tiled_tma_atom
from ..tracing.state import emit
from .barriers import address
from .enums import CTAGroup, MemScope, Proxy, TensormapField


class TensorMapL2Promotion(Enum):
    """How many bytes the L2 cache fetches at a time for a load; launches choose it by the box."""

    none = "none"
    l2_64b = "l2_64b"
    l2_128b = "l2_128b"
    l2_256b = "l2_256b"


class TensorMapSwizzle(Enum):
    """How copies swizzle the bytes of a box in shared memory."""

    none = "none"
    s32b = "s32b"
    s64b = "s64b"
    s128b = "s128b"

    def to(self, kind: type[Enum]) -> Any:
        """The swizzle as descriptors of the tensor core name it (`Tcgen05SmemSwizzle`)."""
        return kind["NONE" if self is TensorMapSwizzle.none else f"SWIZZLE_{self.value[1:].upper()}"]


class TensorMapDataFormat(Enum):
    """How elements are held; DEFAULT is by their type, BYTE as bytes. The others are elements of 4 and 6 bits."""

    DEFAULT = 0
    BYTE = 1
    B4X16 = 2
    B4X16_P64 = 3
    B6X16_P32 = 4


class GridConstant:
    """Annotates a parameter that all threads of a grid read: `tensor_map: GridConstant[TensorMap]`."""

    def __class_getitem__(cls, kind: object) -> object:
        return kind


@dataclass(frozen=True, slots=True)
class MapPointer:
    """The address of a tensor map, as copies take it."""

    ssa: SSAValue
    order: tuple[int, ...] | None = None
    """The dimensions of the program's coordinates in the order of the map's; None if they are the same."""

    def recast(self, dtype: object) -> "MapWords":
        """The map as words, which a kernel copies. Raises TilefoldError (E5002) for elements of other than 64 bits."""
        element = as_dtype(dtype)
        if element.bits != 64 or not element.is_integer:
            message = f"a tensor map is read as 64-bit words, not as {element}"
            raise TilefoldError(Code.BUILD_VALUE, message, "take its words as cutlass.Int64")
        return MapWords(self)

    def coordinates(self, given: Sequence[Any]) -> list[SSAValue]:
        """The coordinates of a box as the map takes them."""
        ordered = given if self.order is None else [given[dimension] for dimension in self.order]
        return [convert(coordinate, Int32).ssa for coordinate in ordered]


@dataclass(frozen=True, slots=True)
class MapWords:
    """The words of a tensor map, from one on: `(words + i).load()` is an Int64."""

    map: MapPointer
    word: int = 0

    def __add__(self, words: int) -> "MapWords":
        return MapWords(self.map, self.word + index(words))

    __radd__ = __add__

    def __getitem__(self, word: int) -> Any:
        return (self + word).load()

    def load(self) -> Any:
        """The word."""
        return wrap(emit(ptx.LoadTensorMapOp(self.map.ssa, 8 * self.word)).results[0])


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map that each launch makes, an argument of kernels. Its dimensions may stand in another order than the
    program's, which leaves out those of one element.
    """

    atom: TmaAtom
    order: tuple[int, ...] | None = None

    def get_ptr(self) -> MapPointer:
        """The address of the map."""
        return MapPointer(emit(TensorMapPtrOp(self.atom.ssa)).results[0], self.order)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.atom.dtype

    @property
    def swizzle(self) -> TensorMapSwizzle:
        """How copies swizzle the bytes of a box."""
        bits = self.atom.type.tma_copy.swizzle_bits
        return TensorMapSwizzle("none" if not bits else f"s{16 << bits}b")

    def global_tx_bytes(self) -> int:
        """The bytes that a copy of a box moves, as an mbarrier counts them."""
        return prod(self.atom.type.tma_copy.box) * self.atom.dtype.bits // 8


def tensor_map_at(pointer: object) -> MapPointer:
    """The map that a kernel has put into global memory (`cpasync.copy_tensormap`), as copies take it."""
    return MapPointer(emit(ptx.CvtaTensorMapOp(address(pointer).ssa)).results[0])


def _map(x: object) -> MapPointer:
    """A map as copies take it: of the launch, or at a pointer to global memory."""
    return x if isinstance(x, MapPointer) else tensor_map_at(x)


def tensormap_replace(field: TensormapField, ptr: object, new_value: Scalar, ord: int | None = None) -> None:
    """Changes a field of a map in global or shared memory: of the dimension `ord`, from 0 for the contiguous one, where
    each has one (sm_90a). A rank is given less 1, a `GLOBAL_STRIDE` in bytes; of fields with words, such as
    `SWIZZLE_MODE`, `new_value` is the number of one. `fence_proxy_release` and `fence_proxy_acquire` lie between the
    changes and the copies by the map. Raises TilefoldError (E5002) for a word that the field does not have.
    """
    of, name = ptx.MAP_FIELDS[field.value], field.value
    if not of.words:
        value = convert(new_value, Int64 if of.bits == 64 else Int32).ssa
        emit(ptx.TensorMapReplaceOp(name, address(ptr).ssa, value, ord))
        return
    if type(new_value) is not int or new_value not in range(len(of.words)):
        numbered = ", ".join(f"{number}: {word}" for number, word in enumerate(of.words))
        raise TilefoldError(Code.BUILD_VALUE, f"the {name} of a map is not {new_value!r}", f"its values are {numbered}")
    emit(ptx.TensorMapReplaceOp(name, address(ptr).ssa, None, ord, of.words[new_value]))


def fence_proxy_release(scope: MemScope, from_proxy: Proxy = Proxy.GENERIC, to_proxy: Proxy = Proxy.TENSORMAP) -> None:
    """Releases the thread's changes of tensor maps. Raises TilefoldError (E5002) for other proxies."""
    _check_proxies(from_proxy, to_proxy)
    emit(ptx.FenceTensorMapReleaseOp(scope=scope.value))


def fence_proxy_acquire(
    scope: MemScope,
    ptr: object,
    size: int = ptx.MAP_BYTES,
    from_proxy: Proxy = Proxy.GENERIC,
    to_proxy: Proxy = Proxy.TENSORMAP,
) -> None:
    """Makes the released map at a pointer visible to the TMA copies of the thread. Raises TilefoldError (E5002)
    for other proxies, and for other than the 128 bytes of a map.
    """
    _check_proxies(from_proxy, to_proxy)
    if size != ptx.MAP_BYTES:
        raise TilefoldError(Code.BUILD_VALUE, f"a map has {ptx.MAP_BYTES} bytes, not {size}", "leave out the size")
    emit(ptx.FenceTensorMapAcquireOp(address(ptr).ssa, scope=scope.value))


def _check_proxies(from_proxy: Proxy, to_proxy: Proxy) -> None:
    if (from_proxy, to_proxy) != (Proxy.GENERIC, Proxy.TENSORMAP):
        message = f"this fence cannot order {from_proxy} before {to_proxy}"
        raise TilefoldError(Code.BUILD_VALUE, message, "it leads from Proxy.GENERIC to Proxy.TENSORMAP")


def create_tensor_map_tiled(
    global_address: object,
    dtype: object,
    *,
    global_dims: Sequence[Any],
    global_strides: Sequence[Any],
    box_dims: Sequence[int],
    swizzle: TensorMapSwizzle = TensorMapSwizzle.none,
    tma_format: TensorMapDataFormat = TensorMapDataFormat.DEFAULT,
    l2_promotion: TensorMapL2Promotion | None = None,
) -> TensorMap:
    """The map of the elements from where a tensor begins, `global_address=t.iterator.toint()`. The strides, of all
    dimensions but the first, are in units of 16 bytes. A launch chooses the fetches of L2, whatever `l2_promotion`.
    Raises TilefoldError if no map describes it (E0322), or no copy moves the box (E0323). Elements of 4 and 6 bits are
    padded to a byte each in shared memory, unless the format is B4X16.
    """
    pointer = _pointer_to(global_address)
    if not isinstance(pointer, Pointer):
        hint = "give tensor.iterator.toint()"
        raise TilefoldError(Code.BUILD_VALUE, f"expected an address, got {type(pointer).__name__}", hint)
    first = pointer.raw_ptr().recast(dtype)
    held = _held_as(tma_format, first.dtype, default=TensorMapDataFormat.B4X16_P64)
    elements, units = (128, first.dtype.bits) if 128 % first.dtype.bits else (128 // first.dtype.bits, 1)
    steps = (1, *(stride * elements // units if units > 1 else stride * elements for stride in global_strides))
    start = Tensor(first.base.ssa, first.dtype).iterator
    return _map_of(make_tensor(start, make_layout(tuple(global_dims), steps)), box_dims, swizzle, held)


def _held_as(
    format: TensorMapDataFormat, dtype: DType, default: TensorMapDataFormat = TensorMapDataFormat.B4X16
) -> str:
    """The elements of a map of this format, where they are not those of the type; `default` is the format of elements
    of 4 bits. Raises TilefoldError (E0322) for a format in which no map holds elements of the type.
    """
    formats = TensorMapDataFormat
    fitting = {4: (formats.B4X16, formats.B4X16_P64), 6: (formats.B6X16_P32,)}.get(dtype.bits, (formats.BYTE,))
    if format not in (formats.DEFAULT, *fitting):
        hint = f"elements of {dtype} have maps of the format {' or '.join(known.name for known in fitting)}"
        raise TilefoldError(Code.TENSOR_MAP, f"tensor maps of the format {format.name} are not supported", hint)
    if dtype.bits == 6:
        return "b6x16_p32"
    chosen = default if format is formats.DEFAULT else format
    return "b4x16_p64" if dtype.bits == 4 and chosen is formats.B4X16_P64 else ""


def _pointer_to(x: object) -> Any:
    """The pointer whose address a number is; any other value as it is."""
    if isinstance(x, PointerNumber):
        return x.pointer
    made = x.ssa.owner if isinstance(x, Int) else None
    if isinstance(made, ptx.PtrToIntOp) and isinstance(place := made.ptr.owner, PtrOp):
        return Tensor(place.tensor, dtype_of(place.tensor.type.element_type)).iterator
    return x


def create_tensor_map_tiled_from_view(
    tensor: Tensor,
    *,
    box_dims: Sequence[int],
    stride_order: Sequence[int] | None = None,
    swizzle: TensorMapSwizzle = TensorMapSwizzle.none,
    tma_format: TensorMapDataFormat = TensorMapDataFormat.DEFAULT,
    dtype: DType | None = None,
    l2_promotion: TensorMapL2Promotion | None = None,
) -> TensorMap:
    """The map of a tensor, whose modes are its dimensions, and the extents of a box by these modes. `stride_order`
    ranks the modes by their strides, 0 for the contiguous one. By default the strides do, but modes along which a box
    has one element are the last dimensions, in the tensor's order. `dtype` is another type of the same width, or that
    of the bytes that hold two elements. A launch chooses the fetches of L2, whatever `l2_promotion`. Raises
    TilefoldError (E0322) for another one, and for a format of other elements.
    """
    element = tensor.element_type
    if dtype is not None and dtype.bits != element.bits and str(dtype) != f"{element}x2":
        hint = f"leave it out, or recast the pointer to {dtype}"
        raise TilefoldError(Code.TENSOR_MAP, f"a map of {element} cannot have elements of {dtype}", hint)
    held = _held_as(tma_format, element)
    shape, stride = tensor.layout.shape, tensor.layout.stride
    modes = range(len(shape))
    ranks = list(stride_order) if stride_order is not None else _ranks(stride)
    order = sorted(modes, key=lambda mode: ranks[mode])
    if stride_order is None:
        order = [mode for mode in order if box_dims[mode] > 1] + [mode for mode in modes if box_dims[mode] == 1]
    relaid = make_layout(tuple(shape[mode] for mode in order), tuple(stride[mode] for mode in order))
    return _map_of(make_tensor(tensor.iterator, relaid), [box_dims[mode] for mode in order], swizzle, held)


def _ranks(stride: Sequence[object]) -> list[Any]:
    """The places of modes by their strides; where some are known only when the kernel runs, from the last mode on, but
    the contiguous one first.
    """
    if all(type(step) is int for step in stride):
        return list(stride)
    return [0 if type(step) is int and step == 1 else len(stride) - mode for mode, step in enumerate(stride)]


def _map_of(tensor: Tensor, box: Sequence[int], swizzle: TensorMapSwizzle, held: str) -> TensorMap:
    tile: LayoutLike = make_layout(tuple(box))
    bits = Swizzle.from_name(swizzle.value)
    if bits.bits:
        unit = 0 if held else (tensor.element_type.bits // 8).bit_length() - 1
        assert isinstance(tile, Layout)
        tile = ComposedLayout(Swizzle(bits.bits, bits.base - unit, bits.shift), 0, tile)
    atom, coords = tiled_tma_atom(CopyBulkTensorTileG2SOp(), tensor, tile, tuple(box), held=held)
    made = tuple(atom.type.tma_copy.box)
    if made == tuple(box):
        return TensorMap(atom)
    places = {step.path[0]: mode for mode, step in enumerate(coords.stride) if isinstance(step, ScaledBasis)}
    order = tuple(places[dimension] for dimension in range(len(made)) if dimension in places)
    if tuple(box[mode] for mode in order) != made:
        message, hint = f"the box {tuple(box)} becomes {made}", "leave out modes of one element"
        raise TilefoldError(Code.TMA_BOX, message, hint)
    return TensorMap(atom, order)


def cp_async_bulk_tensor_shared_cta_global(
    dst: object, tensor_map: object, coordinates: Sequence[object], mbar: object, cache_policy: object = None
) -> None:
    """Starts copying the box at these coordinates to shared memory; an mbarrier counts its bytes. The map is that of a
    launch (`TensorMap.get_ptr`), or a pointer to one in global memory.
    """
    map = _map(tensor_map)
    emit(
        ptx.TensorLoadOp(
            map.ssa, map.coordinates(coordinates), address(dst).ssa, address(mbar).ssa, None, _policy(cache_policy)
        )
    )


def cp_async_bulk_tensor_shared_cluster_global(
    dst: object,
    tensor_map: object,
    coordinates: Sequence[object],
    mbar: object,
    im2col_offsets: Sequence[object] = (),
    *,
    multicast_mask: Any = None,
    group: CTAGroup | None = None,
    cache_policy: object = None,
) -> None:
    """Does `cp_async_bulk_tensor_shared_cta_global`; with `multicast_mask` to the same place in each block of the
    cluster that it names by a bit, whose own mbarrier counts the bytes. For the group of two blocks the mbarrier of
    the even block counts them (sm_100a). Raises TilefoldError (E2102) for offsets.
    """
    if im2col_offsets:
        raise TilefoldError(Code.TARGET_TOO_OLD, "TMA copies in im2col mode are not supported", "copy tiles")
    pair = group is CTAGroup.CTA_2
    at = address(mbar).ssa
    bar = emit(ptx.PairLeaderOp(at)).results[0] if pair and at.type == ptx.SHARED else at
    mask = None if multicast_mask is None else convert(multicast_mask, Uint16).ssa
    map = _map(tensor_map)
    emit(
        ptx.TensorLoadOp(
            map.ssa, map.coordinates(coordinates), address(dst).ssa, bar, mask, _policy(cache_policy), pair=pair
        )
    )


def cp_async_bulk_tensor_global_shared_cta(
    tensor_map: object, src: object, coordinates: Sequence[object], cache_policy: object = None
) -> None:
    """Starts copying a box from shared memory to the tensor, in the thread's bulk group."""
    map = _map(tensor_map)
    emit(ptx.TensorStoreOp(map.ssa, map.coordinates(coordinates), address(src).ssa, _policy(cache_policy)))


def prefetch_tensormap(tensor_map: object) -> None:
    """Prefetches a map that copies will use into a cache."""
    emit(ptx.PrefetchTensorMapOp(_map(tensor_map).ssa))


def _policy(policy: Any) -> SSAValue | None:
    return None if policy is None else convert(policy, Int64).ssa
