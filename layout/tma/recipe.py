# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a launch makes a tensor map of a kernel's arguments (CUDA Driver API, cuTensorMapEncodeTiled)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import final

from ...base.element_types import BY_PTX, ElementType
from ...base.errors import Code, LayoutError
from .launch_int import LaunchValue, names_of, renamed, value_for
from .tensor_map import PADDED_ROW, UNIT, TensorMap, check_stored_rows

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
"""The ways in which a copy combines elements in global memory (PTX ISA, cp.reduce.async.bulk.tensor)."""
OOB_NAN = 0x7FF7
"""The bits of a word of 16 bits of elements outside a tensor, where a map fills with NaN; wider elements have several
(measured on an H200). `fma.oob` takes it for 0.
"""
_BITWISE = REDUCTIONS[5:]
_ORDERED = REDUCTIONS[:3]


_DRIVER_NAMES: Mapping[str, str] = MappingProxyType(
    {"b4x16": "16U4_ALIGN8B", "b4x16_p64": "16U4_ALIGN16B", "b6x16_p32": "16U6_ALIGN16B"}
)


@final
@dataclass(frozen=True, slots=True)
class MapElement:
    """The type of a map's elements: its name in PTX, its number in CUtensorMapDataType, and the reductions that copies
    have of it (PTX ISA, cp.reduce.async.bulk). `packed` is PTX's word for elements of less than a byte. Where they are
    `padded`, 16 of them begin each 16 bytes of shared memory.
    """

    name: str
    number: int
    reductions: tuple[str, ...] = ()
    packed: str = ""
    padded: bool = False

    @property
    def key(self) -> str:
        """The name of the elements among those of maps."""
        return self.packed if self.padded else self.name

    @property
    def type(self) -> ElementType:
        """The type of the elements."""
        return BY_PTX[self.name]

    @property
    def driver_name(self) -> str:
        """The constant of CUtensorMapDataType, without the words that all have."""
        return _DRIVER_NAMES.get(self.packed, self.type.name.upper())


MAP_ELEMENTS: Mapping[str, MapElement] = MappingProxyType({
    element.key: element for element in (
        MapElement("u8", 0), MapElement("u16", 1), MapElement("u32", 2, REDUCTIONS),
        MapElement("s32", 3, _ORDERED + _BITWISE), MapElement("u64", 4, _ORDERED + _BITWISE),
        MapElement("s64", 5, _ORDERED[1:]), MapElement("f16", 6, _ORDERED), MapElement("f32", 7, ("add",)),
        MapElement("f64", 8, ("add",)), MapElement("bf16", 9, _ORDERED), MapElement("tf32", 11),
        MapElement("e2m1", 13, packed="b4x16"), MapElement("e2m1", 14, packed="b4x16_p64", padded=True),
        MapElement("e2m3", 15, packed="b6x16_p32", padded=True),
    )
})  # fmt: skip
"""The elements of maps by name. Those of 8 bits, floats too, are u8; as tf32, a copy rounds elements of f32. Two of
e2m1, as which integers of 4 bits are copied, share a byte (16U4_ALIGN8B). As b4x16_p64 and b6x16_p32 elements of 4
bits, and of 6 bits, e2m3 or e3m2, are padded in shared memory (16U4_ALIGN16B, 16U6_ALIGN16B), as multiplications want
them that mix types."""

PROMOTIONS = (0, 64, 128, 256)
"""The bytes that the L2 cache fetches at a time, by CUtensorMapL2promotion; 0 leaves it at its sectors."""


def promotion_for(strides: Iterable[int], most: int = PROMOTIONS[-1]) -> int:
    """The most bytes, up to `most`, that the L2 cache fetches at a time without those of other rows: boxes begin at
    multiples of them. Measured on an H200: rows of 8032 bytes by 256 bytes at a time take a tenth more time.
    """
    return max(size for size in PROMOTIONS if size <= most and all(not size or x % size == 0 for x in strides))


@final
@dataclass(frozen=True, slots=True)
class PlacedMap:
    """A tensor map with all that it is encoded of: the tensor's `address`, its elements, the value of elements outside
    of the tensor, and the bytes that the L2 cache fetches at a time.
    """

    map: TensorMap
    address: int
    element: MapElement
    nan_fill: bool
    promotion: int


@final
@dataclass(frozen=True, slots=True)
class MapRecipe:
    """The tensor map of the tensor parameter `tensor`, or of a part that begins `offset` bytes after it.

    `dims` and `strides` are those of `TensorMap`, integers or the values of integer parameters; a stride of a mode
    of extent 1 may be any number. Elements outside the tensor are zero, or NaN with `nan_fill`. A map by which
    copies write the tensor is `stored`. The L2 cache fetches up to `promotion` bytes at a time (`promotion_for`).

    Raises `LayoutError` (E0322) for a tensor that no map describes whatever the launch, (E0323) for a box that TMA does
    not move.
    """

    tensor: str
    element: MapElement
    dims: tuple[LaunchValue, ...]
    strides: tuple[LaunchValue, ...]
    box: tuple[int, ...]
    swizzle_bits: int = 0
    offset: LaunchValue = 0
    nan_fill: bool = False
    promotion: int = PROMOTIONS[-1]
    stored: bool = False

    def __post_init__(self) -> None:
        if len(self.dims) != len(self.box) or len(self.strides) != len(self.box) - 1:
            problem = f"it has {len(self.dims)} extents, {len(self.strides)} strides and a box of rank {len(self.box)}"
            raise _refused(problem, "give an extent for each mode of the box, and a stride for each but the first")
        if self.nan_fill and (self.element.type.kind != "float" or self.element.padded):
            raise _refused(f"elements of {self.element.key} cannot be NaN", "fill with zeros")
        if self.promotion not in PROMOTIONS:
            raise _refused(f"the L2 cache does not fetch {self.promotion} bytes", f"use one of {PROMOTIONS}")
        self._map(self._known)

    @property
    def names(self) -> frozenset[str]:
        """The integer parameters on which the map depends."""
        return frozenset[str]().union(*map(names_of, (*self.dims, *self.strides, self.offset)))

    def renamed(self, names: Mapping[str, str]) -> "MapRecipe":
        """The recipe with other names of the same parameters."""
        dims, strides = (tuple(renamed(x, names) for x in values) for values in (self.dims, self.strides))
        offset = renamed(self.offset, names)
        return replace(self, tensor=names[self.tensor], dims=dims, strides=strides, offset=offset)

    def place(self, address: int, given: Mapping[str, int]) -> PlacedMap:
        """The map for a tensor at `address` and the values of integer parameters.

        Raises `LayoutError` (E0322) for a tensor that no map describes.
        """
        try:
            dims, strides = (tuple(value_for(x, given) for x in values) for values in (self.dims, self.strides))
            address += value_for(self.offset, given)
        except ZeroDivisionError as error:
            raise _refused("its extents divide by 0", "pass a tensor without empty modes") from error
        made = self._map((dims, strides))
        made.check_address(address)
        return PlacedMap(made, address, self.element, self.nan_fill, promotion_for(made.strides, self.promotion))

    def cause(self, given: Mapping[str, int]) -> LaunchValue | None:
        """The first extent or stride that no map has, where it depends on a launch."""
        known = self._known
        for which, values in enumerate((self.dims, self.strides)):
            for mode, value in enumerate(values):
                changed = [list(part) for part in known]
                changed[which][mode] = value_for(value, given)
                try:
                    self._map((tuple(changed[0]), tuple(changed[1])))
                except LayoutError:
                    return value
        return None

    @property
    def _known(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Extents and strides, with some that every map has for those of a launch."""
        return _if_known(self.dims, PADDED_ROW if self.element.padded else UNIT), _if_known(self.strides, 0)

    def _map(self, modes: tuple[tuple[int, ...], tuple[int, ...]]) -> TensorMap:
        dims, strides = modes
        # No element is a stride away in a mode of extent 1, in which libraries leave any number.
        pairs = zip(dims[1:], strides, strict=True)
        strides = tuple(PROMOTIONS[-1] if extent == 1 and step % UNIT else step for extent, step in pairs)
        made = TensorMap(self.element.type.bits, dims, strides, self.box, self.swizzle_bits, self.element.padded)
        if self.stored and made.padded:
            raise _refused("copies store no padded elements", "make a map of elements that are not padded")
        if self.stored:
            check_stored_rows(made.dims[0], made.bits)
        return made


def _if_known(values: Iterable[LaunchValue], default: int) -> tuple[int, ...]:
    return tuple(value if isinstance(value, int) else default for value in values)


def _refused(problem: str, hint: str) -> LayoutError:
    return LayoutError(Code.TENSOR_MAP, f"no tensor map describes the tensor: {problem}", hint)
