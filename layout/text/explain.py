# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a result of the layout algebra came about: `print(explain(composition, a, b))`."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from ...base.errors import Code, LayoutError
from ..algebra.axes import has_basis
from ..algebra.coalesce import coalesce
from ..algebra.complement import complement
from ..algebra.compose import composition
from ..algebra.core import ComposedLayout, Layout
from ..algebra.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from ..algebra.inttuple import is_fully_static, leaves
from ..algebra.inverse import left_inverse, right_inverse
from ..algebra.product import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tiled_product,
    zipped_product,
)
from ..tiling.partition import inner_partition, local_tile, outer_partition
from ..tiling.tiled_copy import TiledCopy
from .explain_layouts import (
    explain_coalesce,
    explain_complement,
    explain_composition,
    explain_left_inverse,
    explain_right_inverse,
)
from .explain_tiles import (
    explain_arranged_product,
    explain_form,
    explain_inner_or_outer,
    explain_local_tile,
    explain_logical_divide,
    explain_logical_product,
    explain_partition,
)
from .explanation import Explanation

EXPLAINED: Mapping[Callable[..., Any], Callable[..., Explanation]] = MappingProxyType(
    {
        coalesce: explain_coalesce,
        complement: explain_complement,
        composition: explain_composition,
        right_inverse: explain_right_inverse,
        left_inverse: explain_left_inverse,
        logical_divide: explain_logical_divide,
        zipped_divide: partial(explain_form, "zipped", "divide"),
        tiled_divide: partial(explain_form, "tiled", "divide"),
        flat_divide: partial(explain_form, "flat", "divide"),
        logical_product: explain_logical_product,
        zipped_product: partial(explain_form, "zipped", "product"),
        tiled_product: partial(explain_form, "tiled", "product"),
        flat_product: partial(explain_form, "flat", "product"),
        blocked_product: partial(explain_arranged_product, "blocked_product"),
        raked_product: partial(explain_arranged_product, "raked_product"),
        local_tile: explain_local_tile,
        inner_partition: partial(explain_inner_or_outer, "inner_partition"),
        outer_partition: partial(explain_inner_or_outer, "outer_partition"),
        TiledCopy.partition_S: partial(explain_partition, "S"),
        TiledCopy.partition_D: partial(explain_partition, "D"),
    }
)
"""The function that explains each operation."""


def explain(operation: Callable[..., object], *arguments: object) -> Explanation:
    """Calls `operation` and says, step by step, how its result came about.

    `operation` is one of `EXPLAINED`, such as `composition` or `TiledCopy.partition_S`, and the arguments are its
    own; layouts are plain and static, with integer strides. The explanation prints itself; each of its steps has
    a claim that can be checked.

    Raises `LayoutError` for an operation without an explanation (E0213), a swizzle (E0211), a dynamic integer
    (E0207) or a basis (E0213) among the arguments, and whatever the operation refuses.
    """
    explained = EXPLAINED.get(operation)
    if explained is None:
        name = getattr(operation, "__name__", str(operation))
        names = ", ".join([f.__name__ for f in EXPLAINED])
        raise LayoutError(Code.BAD_ARGUMENT, f"{name} has no explanation", f"there is one of {names}")
    for argument in arguments:
        _check(argument)
    return explained(*arguments)


def _check(argument: Any) -> None:
    for part in leaves(argument):
        if part is None or isinstance(part, TiledCopy):
            continue
        if isinstance(part, ComposedLayout):
            hint = f"explain the outer layout, {part.outer}, and apply {part.inner} to its indices"
            raise LayoutError(Code.COMPOSED_UNSUPPORTED, f"{part} is not a plain layout", hint)
        integers = (part.shape, part.stride) if isinstance(part, Layout) else part
        if not isinstance(part, Layout | int) or has_basis(integers):
            raise LayoutError(Code.BAD_ARGUMENT, f"{part} has no explanation", "use layouts with integer strides")
        if not is_fully_static(integers):
            raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{part} is not static", "give every integer")
