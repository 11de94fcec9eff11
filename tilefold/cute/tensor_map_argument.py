# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.tensor_map`: a tensor map of an array, for kernels of PTX that take one (CUDA Driver API,
cuTensorMapEncodeTiled).
"""

import ctypes
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tilefold.base.element_types import ELEMENTS
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.tma.recipe import MAP_ELEMENTS, PlacedMap, promotion_for
from tilefold.layout.tma.tensor_map import TensorMap
from tilefold.runtime.arrays.array import array_of
from tilefold.runtime.sim.memory.tensor_maps import encode


@dataclass(frozen=True)
class TensorMapArgument:
    """A tensor map for the simulator: the 128 bytes that a kernel finds, and the memory that copies by it reach. A
    structure with a map has the bytes of `content` where the map is; `memory=` of the launch then lists the array.
    """

    content: bytes
    memory: NDArray[np.uint8]
    array: Any
    """The array, which keeps its memory."""


def tensor_map(
    array: object,
    box: tuple[int, ...],
    *,
    swizzle: Literal[0, 32, 64, 128] = 0,
    fill: Literal["zero", "nan"] = "zero",
) -> TensorMapArgument:
    """The tensor map of an array in the host's memory, whose last mode is contiguous. `box` are the elements that one
    copy moves, in the order of the array's modes; `swizzle` the bytes of its pattern in shared memory; `fill` the value
    of elements outside the array. Elements of 8 bits, floats too, are bytes.

    Raises LayoutError (E0322) for an array that no map describes, (E0323) for a box that TMA does not move.
    """
    given = array_of("array", array)
    element = ELEMENTS[given.dtype]
    kind = MAP_ELEMENTS.get("u8" if element.bits == 8 else element.ptx or "")
    if kind is None or given.device is not None:
        problem = f"elements are {element.signed_name}" if given.device is None else "it is in the memory of a GPU"
        raise LayoutError(Code.TENSOR_MAP, f"no tensor map describes the array: {problem}", "pass an array of the host")
    if swizzle not in (0, 32, 64, 128):
        raise LayoutError(Code.TMA_BOX, f"a tensor map cannot swizzle by {swizzle} bytes", "use 0, 32, 64 or 128")
    if len(box) != len(given.shape):
        problem = f"the box {box} has {len(box)} modes, the array {len(given.shape)}"
        raise LayoutError(Code.TMA_BOX, problem, "give the extent of the box in each mode of the array")
    strides = tuple(stride * given.itemsize for stride in given.strides[::-1])
    if strides[0] != given.itemsize and given.shape[-1] > 1:
        problem = f"no tensor map describes the array: its last mode has a stride of {strides[0]} bytes"
        raise LayoutError(Code.TENSOR_MAP, problem, "pass an array whose last mode is contiguous")
    bits = (0, 32, 64, 128).index(swizzle)
    made = TensorMap(element.bits, given.shape[::-1], strides[1:], box[::-1], bits)
    made.check_address(given.address)
    placed = PlacedMap(made, given.address, kind, fill == "nan", promotion_for(made.strides))
    content = (ctypes.c_ubyte * (given.span * given.itemsize)).from_address(given.address)
    memory: NDArray[np.uint8] = np.ctypeslib.as_array(content)
    return TensorMapArgument(encode(placed).tobytes(), memory, array)
