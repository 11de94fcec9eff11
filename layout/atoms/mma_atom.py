# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix multiply-accumulate instruction, D = A * B + C, as CuTe partitions its operands."""

from dataclasses import dataclass
from typing import cast, final, get_args

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.target import Targets
from ..algebra.coalesce import filter_layout
from ..algebra.complement import complement
from ..algebra.core import Layout, cosize
from ..algebra.display import Displayed
from ..algebra.inttuple import product
from .contract import Contract, Counted, Major, Named, Operand, Role
from .copy_atom import check_name
from .instructions import MmaInstruction, MmaSync
from .numbers import Products, Shape, Types, check_members


@final
@dataclass(frozen=True, slots=True)
class MmaAtom(Displayed):
    """A matrix multiply-accumulate by its contract, as CuTe's MMA_Atom.

    The layouts of A, B, C and D map (thread, value), or (block, value), to a place in A (M,K), B (N,K), C and D (M,N),
    each counted first mode fastest. `name` is CuTe's, as `mma_name` derives it, or that of a package.

    Raises `LayoutError` (E0301) if a layout does not hold its matrix.
    """

    name: str
    contract: Contract

    def __post_init__(self) -> None:
        check_name(self.name)
        check_members((self.contract.instruction,), (get_args(MmaInstruction),))
        contract = self.contract
        if not isinstance(contract.numbers, Products) or not all(map(contract.has, (Role.D, Role.A, Role.B))):
            raise LayoutError(Code.ATOM_INVALID, f"{self.name} is not a multiplication: it lacks D, A, B or products")
        m, n, k = self.shape
        sizes = {Role.A: m * k, Role.B: n * k, Role.C: m * n, Role.D: m * n}
        for operand in contract.operands:
            if operand.role in sizes:
                self._check(operand, sizes[operand.role])

    def __hash__(self) -> int:
        return hash(self.name)  # that of a contract takes longer, and names tell atoms apart

    def _check(self, operand: Operand, size: int) -> None:
        name, layout = operand.role.value, operand.layout
        held = filter_layout(layout)
        if product(held.shape) != size or cosize(layout) != size or complement(held, size).size != 1:
            raise LayoutError(Code.ATOM_INVALID, f"{self.name}: {name} {layout} does not hold the {size} elements once")
        if operand.element not in BY_PTX:
            raise LayoutError(Code.ATOM_INVALID, f"{self.name}: {name} has no element type")
        in_registers = operand.named is Named.VALUE and self.contract.counts is Counted.THREADS and self.threads > 1
        if in_registers and layout[1].size * self.held_bits(operand) % 32:
            raise LayoutError(
                Code.ATOM_INVALID, f"{self.name}: {layout[1].size} values of {name} do not fill whole registers"
            )

    def held_bits(self, operand: Operand) -> int:
        """The bits that an element takes in registers; one of a sparse A on average, since half of them are there."""
        instruction = self.contract.instruction
        in_bytes = isinstance(instruction, MmaSync) and instruction.in_bytes and operand.role in (Role.A, Role.B)
        bits = 8 if in_bytes else BY_PTX[operand.element].bits
        return bits // 2 if self.is_sparse and operand.role is Role.A else bits

    @property
    def is_sparse(self) -> bool:
        """Whether A is sparse, and metadata name the elements that it has."""
        return self.contract.has(Role.METADATA)

    @property
    def stored_k(self) -> int:
        """The stored elements of a row of A: K, or half of it."""
        return self.shape[2] // (2 if self.is_sparse else 1)

    @property
    def has_scales(self) -> bool:
        """Whether A and B have scales."""
        return self.contract.has(Role.SCALE_A)

    def operand(self, name: str) -> Operand:
        """The operand "D", "A", "B" or "C"; an instruction that updates D has it as C, too."""
        role = Role(name)
        return self.contract.operand(Role.D if role is Role.C and not self.contract.has(role) else role)

    @property
    def thr_id(self) -> Layout:
        """The lanes of the threads, or the ranks of the blocks, that layouts number."""
        return self.contract.ids

    @property
    def threads(self) -> int:
        """How many threads, or blocks, layouts number."""
        return product(self.contract.ids.shape)

    @property
    def layout_a(self) -> Layout:
        """(thread, value) to a place in A (M,K)."""
        return self.operand("A").layout

    @property
    def layout_b(self) -> Layout:
        """(thread, value) to a place in B (N,K)."""
        return self.operand("B").layout

    @property
    def layout_c(self) -> Layout:
        """(thread, value) to a place in C (M,N)."""
        return self.operand("C").layout

    @property
    def products(self) -> Products:
        """How it multiplies and adds."""
        assert isinstance(self.contract.numbers, Products)
        return self.contract.numbers

    @property
    def shape(self) -> Shape:
        """M, N and K."""
        return self.products.shape

    @property
    def types(self) -> Types:
        """The element types of D, A, B and C by their PTX names."""
        d, a, b, c = (self.operand(name).element for name in "DABC")
        return d, a, b, c

    @property
    def bits(self) -> tuple[int, int, int, int]:
        """The widths of the elements of D, A, B and C in registers."""
        d, a, b, c = (self.held_bits(self.operand(name)) for name in "DABC")
        return d, a, b, c

    @property
    def majors(self) -> tuple[Major, Major]:
        """The contiguous modes of A and B."""
        return self.operand("A").major, self.operand("B").major

    @property
    def instruction(self) -> MmaInstruction:
        """The instruction."""
        return cast("MmaInstruction", self.contract.instruction)

    @property
    def targets(self) -> Targets:
        """The targets that have the instruction."""
        return self.contract.targets

    @property
    def source(self) -> str:
        """The section of the PTX ISA."""
        return self.contract.section

    def __str__(self) -> str:
        return self.name
