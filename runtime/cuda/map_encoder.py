# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensor maps of a kernel's launches, as the driver encodes them (CUDA Driver API, Tensor Map Object Management).

The inputs of a map apart from the address are checked and laid out once; each address then takes one call of the
driver. The maps of the latest launches are kept, so that most launches call nothing.
"""

import ctypes
from dataclasses import dataclass

from ...base.errors import Code
from ...base.parameters import TENSOR_MAP, Scalar
from ...layout.tma.recipe import PROMOTIONS, MapRecipe, PlacedMap
from ..compiled.artifact import Artifact, value_name
from ..errors import LaunchError
from ..map_arguments import place_map, value_words
from .driver import Driver, Library

_KEPT = 256
"""The launches whose maps are kept, and the shapes of tensors."""
_SMALL = 128 * 1024
_SMALL_BIT, _FIXED_DRIVER = 1 << 21, 13020
"""Drivers before 13.2 set a bit of the second word that tensors of less than 128 KiB must not have on sm_100 (CUTLASS,
copy_traits_sm90_tma.hpp).
"""


@dataclass(frozen=True, slots=True)
class _Shape:
    """A map but for its address: the place of the tensor among the values, the bytes after its address, and the
    driver's arguments before and after the address.
    """

    recipe: MapRecipe
    tensor: int
    offset: int
    before: tuple[object, ...]
    after: tuple[object, ...]
    clears_bit: bool


class MapEncoder:
    """Encodes the maps of a kernel's launches. `places` are the numbers of the values that they depend on."""

    def __init__(self, artifact: Artifact, library: Library, driver: Driver) -> None:
        """LaunchError (E3105) for a driver without tensor maps."""
        if library.encode_tensor_map is None:
            message = f"kernel '{artifact.kernel}' has tensor maps, which the driver does not support"
            raise LaunchError(Code.RUN_LAUNCH, message, "update the driver: tensor maps came with CUDA 12.0")
        self._artifact, self._driver, self._encode = artifact, driver, library.encode_tensor_map
        kinds = artifact.kinds
        numbers = {value_name(number): number for number in range(len(kinds))}
        used = {numbers[name] for recipe in artifact.maps for name in (recipe.tensor, *recipe.names)}
        self.places = tuple(sorted(used))
        self._known: dict[tuple[int, ...], bytes] = {}
        self._shapes: dict[tuple[int, ...], list[_Shape]] = {}
        self._is_addressed = [kinds[place].is_tensor for place in self.places]
        self._names = [value_name(place) for place in self.places]
        self._words = {value_name(i): word for i, word in enumerate(value_words(artifact.parameters))}
        sizes = [8 * kind.size if isinstance(kind, Scalar) else 0 for kind in kinds]
        self._bits = [sizes[place] for place in self.places]
        """Those of integers, which have a sign; 0 for addresses."""

    def encoded(self, values: tuple[int, ...]) -> bytes:
        """The bytes of all maps, one after the other, for the values at `places`, integers as without a sign.

        LaunchError (E0322) for a tensor that no map describes; CudaError if the driver refuses it.
        """
        maps = self._known.get(values)
        if maps is None:
            maps = b"".join(self._bytes(shape, values) for shape in self._shapes_of(values))
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[values] = maps
        return maps

    def _shapes_of(self, values: tuple[int, ...]) -> list[_Shape]:
        key = tuple([0 if is_address else x for x, is_address in zip(values, self._is_addressed, strict=True)])
        shapes = self._shapes.get(key)
        if shapes is None:
            shapes = [self._shape(recipe, values) for recipe in self._artifact.maps]
            if len(self._shapes) >= _KEPT:
                self._shapes.clear()
            self._shapes[key] = shapes
        return shapes

    def _placed(self, recipe: MapRecipe, values: tuple[int, ...]) -> PlacedMap:
        signed = (
            value - (value >> bits - 1 << bits) if bits else value
            for value, bits in zip(values, self._bits, strict=True)
        )
        return place_map(recipe, dict(zip(self._names, signed, strict=True)), self._words)

    def _shape(self, recipe: MapRecipe, values: tuple[int, ...]) -> _Shape:
        placed = self._placed(recipe, values)
        made, rank = placed.map, len(placed.map.box)
        longs, integers = ctypes.c_uint64, ctypes.c_uint32
        before = placed.element.number, integers(rank)
        after = (
            (longs * rank)(*made.dims),
            (longs * max(rank - 1, 1))(*made.strides),
            (integers * rank)(*made.box),
            (integers * rank)(*[1] * rank),
            0,
            made.swizzle_bits,
            PROMOTIONS.index(placed.promotion),
            int(placed.nan_fill),
        )
        tensor = self._names.index(recipe.tensor)
        row = (made.dims[0] - 1) * made.bits // 8
        span = row + sum((n - 1) * step for n, step in zip(made.dims[1:], made.strides, strict=True))
        is_old = self._driver.capability >= (10, 0) and self._driver.call("cuDriverGetVersion") < _FIXED_DRIVER
        offset, is_small = placed.address - values[tensor], span + 1 < _SMALL
        return _Shape(recipe, tensor, offset, before, after, is_old and is_small)

    def _bytes(self, shape: _Shape, values: tuple[int, ...]) -> bytes:
        address = values[shape.tensor] + shape.offset
        if address % 16:
            self._placed(shape.recipe, values)
        size, align = TENSOR_MAP.size, TENSOR_MAP.align
        memory = ctypes.create_string_buffer(size + align)
        begin = -ctypes.addressof(memory) % align
        place = ctypes.c_void_p(ctypes.addressof(memory) + begin)
        status = self._encode(place, *shape.before, ctypes.c_void_p(address), *shape.after)
        if status:
            doing = f"describing a tensor to kernel '{self._artifact.kernel}'"
            self._driver.fail("cuTensorMapEncodeTiled", status, doing=doing)
        made = bytearray(memory[begin : begin + size])
        if shape.clears_bit:
            word = int.from_bytes(made[8:16], "little") & ~_SMALL_BIT
            made[8:16] = word.to_bytes(8, "little")
        return bytes(made)
