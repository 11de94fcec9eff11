# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of an array that a launch is given."""

from dataclasses import dataclass

from ...layout.algebra.core import Layout
from .library_types import ELEMENTS

HOST = None
"""The device of an array in the host's memory."""
NOWHERE = -1
"""The device of an array that is described only: kernels are built for it, but not launched on it."""


class ArrayError(Exception):
    """An array that no kernel can be given; the text goes on from "argument 'A' "."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Array:
    """An array: the `address` of its first element, its element type as MLIR names it (`ui8` of unsigned integers, `i1`
    of bools, a byte each), its shape, its strides in elements, and the CUDA device that holds it, None for the host,
    `NOWHERE` for none. One of the host need not be `writable`.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int | None
    writable: bool = True

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return ELEMENTS[self.dtype].bytes

    @property
    def layout(self) -> Layout:
        """Shape and strides; an array without modes is one element."""
        return Layout(self.shape, self.strides) if self.shape else Layout(1, 0)

    @property
    def span(self) -> int:
        """The elements from the first to the last that a coordinate reaches, both included; 0 for an empty array."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A compact array's strides, the last mode fastest, as NumPy has them: CuTe's are 0 where the extent is 1."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
