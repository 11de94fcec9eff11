# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps as arguments of kernels in PTX, as the command line describes them: `map(A, box=64x64, swizzle=128)`."""

import re
from collections.abc import Mapping
from math import prod

from xdsl.dialects.builtin import ModuleOp

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.ptx.syntax import Parameter
from tilefold.dialects.kernel import kernels_in
from tilefold.dialects.ptx import EntryOp
from tilefold.dialects.ptx.base import GLOBAL, MAP
from tilefold.dialects.tile import TensorType
from tilefold.driver.launches import Argument
from tilefold.layout.tma.recipe import MAP_ELEMENTS, MapRecipe
from tilefold.runtime.arrays.storage import mode_sizes

_MAP = re.compile(
    r"map\((?P<array>\w+),\s*box=(?P<box>\d{1,9}(?:x\d{1,9})*)(?:,\s*swizzle=(?P<swizzle>\d{1,9}))?"
    r"(?:,\s*fill=(?P<fill>zero|nan))?\)"
)
_SWIZZLES = (0, 32, 64, 128)
_BYTES = 128


def array_of_map(text: str) -> str | None:
    """The name of the array of a map that an option describes; None for another value. TilefoldError (E3106) for a
    malformed one.
    """
    if not text.startswith("map("):
        return None
    match = _MAP.fullmatch(text)
    if match is None or int(match["swizzle"] or 0) not in _SWIZZLES:
        problem = f"{text[:80]}: not a tensor map"
        raise TilefoldError(Code.RUN_ARGUMENT, problem, "for example: map(A, box=64x64, swizzle=128, fill=nan)")
    return match["array"]


def check_map_parameter(name: str, parameter: Parameter) -> None:
    """TilefoldError (E3106) for a parameter that cannot be a tensor map."""
    if not parameter.is_structure or parameter.size != _BYTES:
        message = f"argument '{name}' is not a structure of {_BYTES} bytes, the size of a tensor map"
        raise TilefoldError(Code.RUN_ARGUMENT, message)


def recipe_of(text: str, array: Argument) -> MapRecipe:
    """The map of an array whose last mode is contiguous. LayoutError (E0322, E0323) for one that there is not."""
    match, type = _MAP.fullmatch(text), array.type
    assert match is not None
    if not isinstance(type, TensorType):
        raise TilefoldError(Code.RUN_ARGUMENT, f"'{array.name}' is not an array, so no tensor map can describe it")
    shape, bits = mode_sizes(type.layout.data), type.element_bits
    word = "u8" if bits == 8 else str(type.element_type).replace("i", "s" if str(type.element_type) != "i16" else "u")
    element, box = MAP_ELEMENTS.get(word), tuple(int(n) for n in match["box"].split("x"))
    if element is None or len(box) != len(shape):
        problem = f"no tensor map with the box {match['box']} describes '{array.name}', {type.element_type} of {shape}"
        raise TilefoldError(Code.TENSOR_MAP, problem, "give the extent of the box in each mode of the array")
    rows = shape[:0:-1]
    strides = tuple([prod(rows[: k + 1]) * bits // 8 for k in range(len(rows))])
    swizzle = _SWIZZLES.index(int(match["swizzle"] or 0))
    return MapRecipe(array.name, element, shape[::-1], strides, box[::-1], swizzle, nan_fill=match["fill"] == "nan")


def with_maps(module: ModuleOp, maps: Mapping[str, MapRecipe]) -> ModuleOp:
    """A program whose launch makes the tensor maps among its kernel's parameters of arrays, which it passes, too."""
    if not maps:
        return module
    (entry,) = kernels_in(module, EntryOp)
    block, names = entry.body.blocks[0], [name.data for name in entry.arg_names]
    aligns = list(entry.arg_aligns.get_values())
    for array in dict.fromkeys(recipe.tensor for recipe in maps.values()):
        if array not in names:
            block.insert_arg(GLOBAL, len(block.args))
            names.append(array)
            aligns.append(16)
    for name in maps:
        old = block.args[names.index(name)]
        old.replace_all_uses_with(block.insert_arg(MAP, len(block.args)))
        del aligns[names.index(name)]
        block.erase_arg(old)
        names.remove(name)
        names.append(name)
        aligns.append(64)
    recipes = {names.index(name): recipe for name, recipe in maps.items()}
    shared = None if entry.shared_bytes is None else entry.shared_bytes.value.data
    region = entry.detach_region(0)
    return ModuleOp([EntryOp(entry.sym_name.data, names, aligns, entry.launch_bounds, region, shared, maps=recipes)])
