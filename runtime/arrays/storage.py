# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logical arrays and the storage behind them: how a layout places the elements of a NumPy array in memory.

The logical array of a layout has one axis for each top-level mode, of that mode's size; a nested mode counts
its coordinates colexicographically, as CuTe does. The storage is one-dimensional and has `cosize` elements. Elements of
4 bits and 1 bit are packed in memory, the first in the lowest bits; computations have one a byte.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import Code, TilefoldError
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, all_indices, cosize, plain_layout, size
from ...layout.algebra.inttuple import are_static, leaves
from ..engine import NumPyArray, strided_view


class StorageError(TilefoldError):
    """Storage or an array that does not fit its layout."""


def mode_sizes(layout: LayoutLike) -> tuple[int, ...]:
    """The shape of the logical array: the size of each top-level mode. The layout must be static."""
    return tuple([size(mode) for mode in _static_outer(layout)])


def distances(layout: Layout) -> NDArray[np.int64]:
    """The index of each coordinate of a static plain layout, in colexicographic order (1-D)."""
    return all_indices(layout, np.arange)


def element_indices(layout: LayoutLike) -> NDArray[np.int64]:
    """The position of each element in the storage: an array of the logical shape. The layout must be static."""
    outer = _static_outer(layout)
    sizes = mode_sizes(outer)
    whole = distances(outer).reshape(sizes, order="F")
    if isinstance(layout, ComposedLayout):
        assert type(layout.offset) is int
        inner: Any = layout.inner
        whole = np.asarray(inner(whole + layout.offset))
    return whole


def storage_size(layout: LayoutLike) -> int:
    """Elements that storage for a static layout must have: one more than its greatest index."""
    if isinstance(layout, ComposedLayout):
        return int(element_indices(layout).max()) + 1
    return int(cosize(layout))


def read_logical_array(storage: NumPyArray, layout: LayoutLike) -> NumPyArray:
    """The elements of `storage` as a logical array: a read-only view where every mode has one stride, else a
    copy.

    StorageError (E3106) where the storage is not one-dimensional or too small.
    """
    _check_storage(storage, layout)
    if isinstance(layout, Layout):
        strides = [coalesce(mode).stride for mode in layout]
        if all(isinstance(stride, int) for stride in strides):
            step = storage.strides[0]
            view = strided_view(storage, mode_sizes(layout), [stride * step for stride in strides])
            view.flags.writeable = False
            return view
    return storage[element_indices(layout)]


def read_logical_numbers(exact: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The storages of arguments that hold exact numbers as logical arrays, by their layouts."""
    layouts = {name: arguments[name].layout for name in exact}
    return {
        name: storage if layouts[name] is None else storage[element_indices(layouts[name])]
        for name, storage in exact.items()
    }


def scatter(array: NumPyArray, storage: NumPyArray, layout: LayoutLike) -> None:
    """Writes a logical array into `storage`; elements that no coordinate reaches keep their values.

    StorageError (E3106) where the array's shape is not the layout's, or the storage does not fit.
    """
    _check_storage(storage, layout)
    sizes = mode_sizes(layout)
    if array.shape != sizes:
        raise StorageError(
            Code.RUN_ARGUMENT,
            f"an array of shape {array.shape} does not fit the layout {layout}",
            f"its logical shape is {sizes}",
        )
    storage[element_indices(layout)] = array


def storage_of(array: NumPyArray, layout: LayoutLike) -> NumPyArray:
    """New storage that holds a logical array; elements that no coordinate reaches are zero. Errors as
    `scatter`.
    """
    storage = np.zeros(storage_size(layout), array.dtype)
    scatter(array, storage, layout)
    return storage


def _static_outer(layout: LayoutLike) -> Layout:
    outer = plain_layout(layout)
    offset = layout.offset if isinstance(layout, ComposedLayout) else 0
    if not are_static([*leaves(outer.shape), *leaves(outer.stride), offset]):
        raise StorageError(Code.RUN_ARGUMENT, f"the layout {layout} is not static", "storage needs known extents")
    return outer


def _check_storage(storage: NumPyArray, layout: LayoutLike) -> None:
    need = storage_size(layout)
    if storage.ndim != 1 or storage.size < need:
        raise StorageError(
            Code.RUN_ARGUMENT,
            f"the layout {layout} needs a one-dimensional array of {need} elements, not {storage.shape}",
        )


Bytes = NDArray[np.uint8]


def unpack(content: Bytes, bits: int, signed: bool = False) -> NumPyArray:
    """The elements of `bits` (4 or 1) in each byte, along the last axis: int8 where they are signed, else uint8.

    The last axis becomes 2 or 8 times as long.
    """
    if bits == 1:
        return np.unpackbits(content, axis=-1, bitorder="little")
    pairs = np.stack([content << 4, content & np.uint8(0xF0)], axis=-1).reshape(*content.shape[:-1], -1)
    return pairs.view(np.int8) >> 4 if signed else pairs >> 4


def pack(elements: NumPyArray, bits: int) -> Bytes:
    """The bytes that hold `elements`, whose lowest `bits` (4 or 1) count; the inverse of `unpack`.

    The last axis is filled up with zeros to whole bytes.
    """
    is_integer = elements.dtype.kind in "iub"
    whole = elements.astype(np.uint8) if is_integer else elements.view(np.uint8)  # floats by their bits
    low = whole & np.uint8((1 << bits) - 1)
    if bits == 1:
        return np.packbits(low, axis=-1, bitorder="little")
    if low.shape[-1] % 2:
        low = np.concatenate([low, np.zeros((*low.shape[:-1], 1), np.uint8)], axis=-1)
    return low[..., 0::2] | low[..., 1::2] * np.uint8(16)
