# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of a printed tensor: the same in the simulator and on the device."""

from collections.abc import Sequence
from typing import Any

from ...layout.algebra.core import LayoutLike
from ...layout.algebra.inttuple import product, rank
from ...layout.text.layouts import to_text
from ...layout.text.printing import tensor_text
from ..cute.values import with_scalars
from .types import TensorType

MAX_ELEMENTS = 1024
"""The most elements that one print_tensor prints: each becomes a load in the program."""
MAX_VALUES = 16
"""The most values of one call of printf; longer rows are printed in pieces."""


def tensor_header(text: str, type: TensorType, pointer: str, scalars: Sequence[object] = ()) -> str:
    """The line that names a tensor, as CuTe prints it: `gA: gmem_ptr[16b](0x7f...) o (128,32):(1,1024)`.

    `scalars` stand for the `?` of its type.
    """
    kind = type.space.data.pointer
    layout = to_text(with_scalars(type.layout.data, scalars))
    return f"{text}: {tensor_text(kind, type.element_bits, pointer, layout)}"


def elements_in_print_order(layout: LayoutLike) -> list[list[Any]]:
    """The coordinates of a tensor's elements, row by row, as CuTe's print_tensor orders them.

    A tensor of one mode has one element per row; one of two modes has a row for each coordinate of mode 0.
    Further modes follow each other, the third fastest.
    """
    sizes = [product(mode) for mode in (layout.shape if isinstance(layout.shape, tuple) else (layout.shape,))]
    if rank(layout.shape) == 1:
        return [[i] for i in range(sizes[0])]
    rows: list[list[Any]] = []
    outer = 1
    for n in sizes[2:]:
        outer *= n
    for place in range(outer):
        rest: list[int] = []
        for n in sizes[2:]:
            rest.append(place % n)
            place //= n
        rows += [[(m, k, *rest) for k in range(sizes[1])] for m in range(sizes[0])]
    return rows
