# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensor maps of an exported kernel in C: its launch encodes them from the arguments."""

from collections.abc import Mapping, Sequence

from tilefold.layout.tma.launch_int import LaunchValue, renamed
from tilefold.layout.tma.recipe import PROMOTIONS, MapRecipe, promotion_for
from tilefold.layout.tma.tensor_map import SWIZZLE_NAMES, UNIT
from tilefold.runtime.compiled.artifact import value_name
from tilefold.tools.export.c_names import Argument


def write_encoding(recipe: MapRecipe, name: str, passed: Sequence[Argument]) -> str:
    """The statements that declare a tensor map under a name and encode it, or return the driver's status; that of an
    invalid value for rows that tensor copies cannot store.
    """
    names = {value_name(number): f"(cuuint64_t){argument.name}" for number, argument in enumerate(passed)}
    rank = len(recipe.box)
    tensor = next(argument.name for number, argument in enumerate(passed) if value_name(number) == recipe.tensor)
    offset = "" if recipe.offset == 0 else f" + {_text(recipe.offset, names)}"
    dims, strides = (", ".join(_text(x, names) for x in values) for values in (recipe.dims, recipe.strides))
    fill = "NAN_REQUEST_ZERO_FMA" if recipe.nan_fill else "NONE"
    row = f"{name}_dims[0] * {recipe.element.type.bits // 8} % {UNIT}"
    checked = f"\n    if ({row})\n        return CUDA_ERROR_INVALID_VALUE;" if recipe.stored else ""
    return f"""
    CUtensorMap {name};
    const cuuint64_t {name}_dims[] = {{{dims}}};{checked}
    const cuuint64_t {name}_strides[] = {{{strides or 0}}};
    const cuuint32_t {name}_box[] = {{{", ".join(map(str, recipe.box))}}};
    const cuuint32_t {name}_steps[] = {{{", ".join(["1"] * rank)}}};
    CUresult {name}_status = cuTensorMapEncodeTiled(
        &{name}, CU_TENSOR_MAP_DATA_TYPE_{recipe.element.type.name.upper()}, {rank},
        (void *)(uintptr_t)({tensor}{offset}), {name}_dims, {name}_strides, {name}_box,
        {name}_steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_{SWIZZLE_NAMES[recipe.swizzle_bits]},
        {_promotion(recipe, f"{name}_strides")}, CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill});
    if ({name}_status != CUDA_SUCCESS)
        return {name}_status;
"""


def _promotion(recipe: MapRecipe, strides: str) -> str:
    """The expression of `promotion_for`."""
    known = [stride for stride in recipe.strides if isinstance(stride, int)]
    most = promotion_for(known, recipe.promotion)
    places = [place for place, stride in enumerate(recipe.strides) if not isinstance(stride, int)]
    together = " | ".join(f"{strides}[{place}]" for place in places)
    expression = "CU_TENSOR_MAP_L2_PROMOTION_NONE"
    for size in PROMOTIONS[1 : PROMOTIONS.index(most) + 1]:
        promotion = f"CU_TENSOR_MAP_L2_PROMOTION_L2_{size}B"
        expression = f"({together}) % {size} == 0 ? {promotion} : {expression}" if places else promotion
    return expression


def _text(value: LaunchValue, names: Mapping[str, str]) -> str:
    return str(renamed(value, names)).replace("//", "/")
