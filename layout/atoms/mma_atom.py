# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record that describes one matrix multiply-accumulate instruction, D = A * B + C."""

from dataclasses import dataclass
from typing import final

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM, Space
from ...base.target import WARP, TargetFamily
from ..algebra.coalesce import filter_layout
from ..algebra.complement import complement
from ..algebra.core import Layout, cosize
from ..algebra.display import Displayed
from ..algebra.inttuple import product
from .copy_atom import check_name
from .instructions import MmaInstruction, MmaSync, Shape, Types, WgMma


@final
@dataclass(frozen=True, slots=True)
class MmaAtom(Displayed):
    """A matrix multiply-accumulate of one or more threads, as CuTe's MMA_Atom.

    `instruction` has the shape (M, N, K) and the types of D, A, B and C. `layout_a`, `layout_b` and `layout_c` map
    (thread, value) to a place in A (M,K), B (N,K) and C (M,N), each counted first mode fastest. D has the layout of C,
    since one `partition_C` serves both. Threads are numbered by `thr_id`, which maps them to lanes. `targets` are those
    that have the instruction.

    Raises `LayoutError` (E0301) if a layout does not hold its matrix, or an mma.sync is not of a warp or of an equal
    part of it.
    """

    name: str
    thr_id: Layout
    instruction: MmaInstruction
    layout_a: Layout
    layout_b: Layout
    layout_c: Layout
    targets: TargetFamily
    source: str

    def __post_init__(self) -> None:
        check_name(self.name)
        if isinstance(self.instruction, MmaSync) and (self.threads < 2 or WARP % self.threads):
            raise LayoutError(
                Code.ATOM_INVALID, f"{self.name}: {self.threads} threads are not a warp or an equal part of one"
            )
        m, n, k = self.shape
        operands = (
            ("A", self.layout_a, m * k),
            ("B", self.layout_b, n * k),
            ("C", self.layout_c, m * n),
        )
        for operand, layout, size in operands:
            if len(layout) != 2 or layout[0].size != self.thr_id.size:
                raise LayoutError(
                    Code.ATOM_INVALID, f"{self.name}: {operand} {layout} does not have {self.thr_id.size} threads"
                )
            held = filter_layout(layout)
            if product(held.shape) != size or cosize(layout) != size or complement(held, size).size != 1:
                raise LayoutError(
                    Code.ATOM_INVALID, f"{self.name}: {operand} {layout} does not hold the {size} elements once"
                )
        for name in self.types:
            if name not in BY_PTX:
                raise LayoutError(Code.ATOM_INVALID, f"{self.name}: there is no element type {name!r}")
        layouts = (self.layout_c, self.layout_a, self.layout_b, self.layout_c)
        for operand, layout, name in zip("DABC", layouts, self.types, strict=True):
            if self.threads > 1 and layout[1].size * BY_PTX[name].bits % 32:
                raise LayoutError(
                    Code.ATOM_INVALID, f"{self.name}: {layout[1].size} values of {operand} do not fill whole registers"
                )

    @property
    def threads(self) -> int:
        """How many threads execute the instruction together."""
        return product(self.thr_id.shape)

    @property
    def shape(self) -> Shape:
        """M, N and K."""
        return self.instruction.shape

    @property
    def types(self) -> Types:
        """The element types of D, A, B and C by their PTX names."""
        return self.instruction.types

    @property
    def spaces(self) -> tuple[Space, Space]:
        """Where A and B are: in registers, or in shared memory, which a descriptor names."""
        return (self.instruction.a_space, SMEM) if isinstance(self.instruction, WgMma) else (RMEM, RMEM)

    @property
    def bits(self) -> tuple[int, int, int, int]:
        """The widths of the elements of D, A, B and C."""
        d, a, b, c = (BY_PTX[name].bits for name in self.types)
        return d, a, b, c

    def __str__(self) -> str:
        return self.name
