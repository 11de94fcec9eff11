# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps that programs have CUDA's driver encode, on a machine without a GPU: those of the simulator."""

import ctypes
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tilefold.base.errors import Code, LayoutError
from tilefold.layout.tma.recipe import MAP_ELEMENTS, PROMOTIONS, PlacedMap
from tilefold.layout.tma.tensor_map import TensorMap
from tilefold.runtime.sim.memory.tensor_maps import encode

from ..replacements import Replacements

_SWIZZLES = 4
"""The patterns that the simulator models: none, and those of 32, 64 and 128 bytes (CUtensorMapSwizzle)."""


def tensor_maps_on_host(replaced: Replacements) -> None:
    """Lets cuda-python, if it is installed, encode tensor maps of tiles as the simulator reads them."""
    if find_spec("cuda") is None:
        return
    driver = import_module("cuda.bindings.driver")

    def encode_tiled(
        data_type: Any, rank: int, address: Any, dims: Sequence[Any], strides: Sequence[Any], box: Sequence[Any],
        element_strides: Sequence[Any], interleave: Any, swizzle: Any, promotion: Any, fill: Any,
    ) -> tuple[Any, Any]:  # fmt: skip
        """CUDA Driver API, cuTensorMapEncodeTiled. LayoutError (E0322, E0323) for a tensor or a box that no map has,
        and (E3201) for a map that the simulator does not model.
        """
        placed = _placed(
            (int(data_type), int(interleave), int(swizzle), int(promotion), int(fill)),
            int(address),
            *(tuple(int(n) for n in numbers)[:count] for numbers, count in (
                (dims, rank), (strides, rank - 1), (box, rank), (element_strides, rank),
            )),
        )  # fmt: skip
        made, content = driver.CUtensorMap(), encode(placed).tobytes()
        ctypes.memmove(int(made.getPtr()), content, len(content))
        return driver.CUresult.CUDA_SUCCESS, made

    replaced.set(driver, cuTensorMapEncodeTiled=encode_tiled)


def _placed(
    words: tuple[int, int, int, int, int], address: int, dims: tuple[int, ...], strides: tuple[int, ...],
    box: tuple[int, ...], element_strides: tuple[int, ...],
) -> PlacedMap:  # fmt: skip
    data_type, interleave, swizzle, promotion, fill = words
    kind = next((element for element in MAP_ELEMENTS.values() if element.number == data_type), None)
    for does, is_so in (
        (f"has elements of the type {data_type}", kind is None),
        ("interleaves its elements", interleave != 0),
        ("skips elements of the tensor", any(stride != 1 for stride in element_strides)),
        (f"swizzles by the pattern {swizzle}", swizzle >= _SWIZZLES),
    ):
        if is_so:
            hint = "encode a map of whole tiles, swizzled by 32, 64 or 128 bytes or not at all"
            raise LayoutError(Code.SIM_UNSUPPORTED, f"a tensor map {does}, which the simulator does not model", hint)
    assert kind is not None
    made = TensorMap(kind.type.bits, dims, strides, box, swizzle, kind.padded)
    made.check_address(address)
    return PlacedMap(made, address, kind, fill != 0, PROMOTIONS[promotion])
