# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of a warp on registers (PTX ISA, Matrix multiply-accumulate operation using mma instruction)."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Self

from xdsl.dialects.builtin import (
    I32,
    I64,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...base.errors import TilefoldError
from ...base.target import Targets
from ...layout.atoms.contract import Role
from ...layout.atoms.instructions import MmaInstruction, MmaSync
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.mma_sparse import ORDERED_VERSION, selectors
from ...layout.atoms.mma_sync import registers
from ...layout.atoms.mma_table import mma_atom
from ...layout.atoms.ptx_text import mma_mnemonic
from ..definitions import (
    fields,
    flag,
    irdl_op_definition,
    number,
    optional_prop,
    prop,
    raise_at,
    refusing,
    text,
)
from .base import PtxOp
from .effects import EXCHANGES, Unit, by_warp, issues

REGISTER_TYPES: Mapping[str, Attribute] = MappingProxyType({"b32": i32, "f32": f32, "f64": f64})
"""The type of a value for each kind of register."""


@fields
class MmaAtomOp(PtxOp):
    """A multiplication by the instruction of an MMA atom."""

    atom_name: StringAttr = prop(converter=text)

    @property
    def atom(self) -> MmaAtom:
        """The atom's record. `LayoutError` if there is none."""
        return mma_atom(self.atom_name.data)

    def mnemonic(self) -> str:
        return mma_mnemonic(self.atom)

    @property
    def targets(self) -> Targets:
        return self.atom.targets

    def checked_atom(self, kind: type[MmaInstruction], executed_by: str) -> MmaAtom:
        """The atom's record. VerifyException if there is none, or its instruction is of another kind than that of
        `executed_by`.
        """
        with refusing():
            atom = self.atom
        if not isinstance(atom.instruction, kind):
            raise VerifyException(f"{atom.name} is not an instruction of {executed_by}")
        return atom


@irdl_op_definition
class MmaSyncOp(MmaAtomOp):
    """`%d:4 = ptx.mma.sync "SM80_16x8x16_F32F16F16F32_TN" (%a0, %a1, %a2, %a3), (%b0, %b1), (%c0, %c1, %c2, %c3)`: D =
    A * B + C by the instruction of an MMA atom.

    Registers of f32 and f64 accumulators have these types. All others are i32 and hold the values from the lowest bits
    up. The types follow from the atom and are not written.

    Preconditions: all lanes of the warp execute it.
    """

    name = "ptx.mma.sync"
    a = var_operand_def()
    b = var_operand_def()
    c = var_operand_def()
    d = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_warp(*EXCHANGES.declared, issues(Unit.TENSOR_CORE)))

    def __init__(
        self,
        name: str,
        a: Sequence[SSAValue | Operation],
        b: Sequence[SSAValue | Operation],
        c: Sequence[SSAValue | Operation],
    ):
        results = register_types(mma_atom(name), "D")
        IRDLOperation.__init__(
            self, operands=[a, b, c], properties={"atom_name": StringAttr(name)}, result_types=[results]
        )

    def verify_(self) -> None:
        atom = self.checked_atom(MmaSync, "a warp on registers")
        if atom.has_scales or atom.is_sparse:
            form, other = ("has scales", "block_scale") if atom.has_scales else ("has metadata", "sp")
            raise VerifyException(f"{atom.name} {form}; write ptx.mma.sync.{other}")
        _check_registers(atom, (("A", self.a), ("B", self.b), ("C", self.c), ("D", self.d)))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name, operands = _parse_matrices(parser, "")
        op = cls(name, *operands)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        _print_matrices(self, printer)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class MmaSyncScaledOp(MmaAtomOp):
    """`%d:4 = ptx.mma.sync.block_scale "SM120_16x8x64_TN_VS<...>" (%a0, %a1, %a2, %a3), (%b0, %b1), (%c0, %c1, %c2,
    %c3) scales (%sfa, %sfb) select (0, 0, 0, 0)`: D = A * B + C, where neighbouring elements of a row of A, and of a
    column of B, have a scale as a factor.

    The registers of scales are i32. `select` has, of A and then of B, the byte with the first scale and the thread
    whose register counts: the byte is a multiple of the number of scales, the thread 0 or 1 of A, 0 to 3 of B. Other
    lanes' registers are ignored. The scale of row r of A comes from lane 4 * (r mod 8) + r / 8 + 2 * thread, that of
    column n of B from lane 4 * n + thread (PTX ISA, Block Scaling for mma.sync).

    Preconditions: all lanes of the warp execute it.
    """

    name = "ptx.mma.sync.block_scale"
    a = var_operand_def()
    b = var_operand_def()
    c = var_operand_def()
    scale_a = operand_def(I32)
    scale_b = operand_def(I32)
    select = prop_def(DenseArrayBase[IntegerType])
    d = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_warp(*EXCHANGES.declared, issues(Unit.TENSOR_CORE)))

    def __init__(
        self,
        name: str,
        matrices: Sequence[Sequence[SSAValue | Operation]],
        scales: Sequence[SSAValue | Operation],
        select: Sequence[int] = (0, 0, 0, 0),
    ):
        results = register_types(mma_atom(name), "D")
        properties = {"atom_name": StringAttr(name), "select": DenseArrayBase.from_list(i64, [*select])}
        IRDLOperation.__init__(self, operands=[*matrices, *scales], properties=properties, result_types=[results])

    @property
    def selected(self) -> tuple[int, int, int, int]:
        """Byte and thread of the scales of A, and of B."""
        a, thread_a, b, thread_b = (int(x) for x in self.select.get_values())
        return a, thread_a, b, thread_b

    def verify_(self) -> None:
        atom = self.checked_atom(MmaSync, "a warp on registers")
        if not atom.has_scales:
            raise VerifyException(f"{atom.name} has no scales; write ptx.mma.sync")
        _check_registers(atom, (("A", self.a), ("B", self.b), ("C", self.c), ("D", self.d)))
        if len(self.select) != 4:
            raise VerifyException("select has a byte and a thread for A, and the same for B")
        step, (byte_a, thread_a, byte_b, thread_b) = atom.products.factors, self.selected
        for matrix, byte, thread, threads in (("A", byte_a, thread_a, 2), ("B", byte_b, thread_b, 4)):
            if not 0 <= byte < 4 or byte % step:
                allowed = ", ".join(map(str, range(0, 4, step)))
                raise VerifyException(f"the scales of {matrix} begin at byte {byte}; {atom.name} takes {allowed}")
            if not 0 <= thread < threads:
                raise VerifyException(f"the scales of {matrix} are in thread {thread}; it is 0 to {threads - 1}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name, operands = _parse_matrices(parser, "scales")
        parser.parse_keyword("scales")
        at = parser.pos
        given = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        if len(given) != 2:
            parser.raise_error("expected the registers of the scales of A and B", at, parser.pos)
        scales = parser.resolve_operands(given, [i32, i32], at)
        parser.parse_keyword("select")
        at = parser.pos
        select = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_integer)
        if len(select) != 4:
            parser.raise_error("expected byte and thread of the scales of A, and of B", at, parser.pos)
        op = cls(name, operands, scales, select)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        _print_matrices(self, printer)
        printer.print_string(" scales (")
        printer.print_list((self.scale_a, self.scale_b), printer.print_operand)
        printer.print_string(f") select ({', '.join(map(str, self.selected))})")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class MmaSyncSparseOp(MmaAtomOp):
    """`%d:4 = ptx.mma.sync.sp "SM80_SPARSE_16x8x32_F32F16F16F32_TN" (%a0, %a1, %a2, %a3), (%b0, %b1, %b2, %b3), (%c0,
    %c1, %c2, %c3) metadata %e select 0 ordered`: D = A * B + C, where A is sparse: its registers have half of its
    elements, and the metadata their places (PTX ISA, mma.sp).

    The register of metadata is i32. `select` says which threads of four have them: of k16 in 16 bits and of k8 in tf32
    one, 0 to 3; of the shapes with twice this K, and of the smaller ones of 8 and 4 bits, 0 for the first two and 1 for
    the others; else 0 for all. Other lanes' registers are ignored. With `ordered` the indices of a chunk rise, which
    PTX has from 8.5 on, and which is faster on some GPUs.

    Preconditions: all lanes of the warp execute it; the two indices of a chunk differ.
    """

    name = "ptx.mma.sync.sp"
    a = var_operand_def()
    b = var_operand_def()
    c = var_operand_def()
    metadata = operand_def(I32)
    select: IntegerAttr[I64] = prop(converter=number)
    ordered: UnitAttr | None = optional_prop(converter=flag)
    d = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_warp(*EXCHANGES.declared, issues(Unit.TENSOR_CORE)))

    def __init__(
        self,
        name: str,
        matrices: Sequence[Sequence[SSAValue | Operation]],
        metadata: SSAValue | Operation,
        select: int = 0,
        ordered: bool = False,
    ):
        properties: dict[str, Attribute] = {"atom_name": StringAttr(name), "select": IntegerAttr(select, i64)}
        properties |= {"ordered": UnitAttr()} if ordered else {}
        results = register_types(mma_atom(name), "D")
        IRDLOperation.__init__(self, operands=[*matrices, metadata], properties=properties, result_types=[results])

    def mnemonic(self) -> str:
        return super().mnemonic().replace(".sp.", ".sp::ordered_metadata.") if self.ordered else super().mnemonic()

    @property
    def targets(self) -> Targets:
        return self.atom.targets.since(80, ORDERED_VERSION) if self.ordered else self.atom.targets

    def verify_(self) -> None:
        atom = self.checked_atom(MmaSync, "a warp on registers")
        if not atom.is_sparse:
            raise VerifyException(f"{atom.name} has no metadata; write ptx.mma.sync")
        _check_registers(atom, (("A", self.a), ("B", self.b), ("C", self.c), ("D", self.d)))
        check_selector(atom, self.select.value.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name, operands = _parse_matrices(parser, "metadata")
        parser.parse_keyword("metadata")
        at = parser.pos
        (metadata,) = parser.resolve_operands([parser.parse_unresolved_operand()], [i32], at)
        parser.parse_keyword("select")
        select = parser.parse_integer(allow_boolean=False, allow_negative=False)
        op = cls(name, operands, metadata, select, parser.parse_optional_keyword("ordered") is not None)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        _print_matrices(self, printer)
        printer.print_string(" metadata ")
        printer.print_operand(self.metadata)
        printer.print_string(f" select {self.select.value.data}{' ordered' if self.ordered else ''}")
        printer.print_op_attributes(self.attributes)


def check_selector(atom: MmaAtom, selected: int) -> None:
    """VerifyException for a sparsity selector that an instruction does not have."""
    allowed = selectors(atom.contract.operand(Role.METADATA).layout)
    if not 0 <= selected < allowed:
        known = "0" if allowed == 1 else f"0 to {allowed - 1}"
        raise VerifyException(f"the sparsity selector is {selected}; {atom.name} has {known}")


def _check_registers(atom: MmaAtom, operands: Iterable[tuple[str, Sequence[SSAValue]]]) -> None:
    """VerifyException unless the operands have the registers of the instruction."""
    for operand, values in operands:
        given, wanted = [value.type for value in values], register_types(atom, operand)
        if given != wanted:
            types = ", ".join(map(str, given))
            raise VerifyException(f"operand {operand} of {atom.name} is {len(wanted)} of {wanted[0]}, not {types}")


def _parse_matrices(parser: Parser, more: str) -> tuple[str, list[Sequence[SSAValue]]]:
    """The name of an atom of a warp with `more`, "scales", "metadata" or nothing, and the registers of A, B and C."""
    at = parser.pos
    name = parser.parse_str_literal()
    try:
        atom = mma_atom(name)
    except TilefoldError as error:
        raise_at(parser, error, at, at + len(name) + 2)
    if not isinstance(atom.instruction, MmaSync):
        parser.raise_error(f"{name} is not an instruction of a warp on registers", at, parser.pos)
    has = "scales" if atom.has_scales else "metadata" if atom.is_sparse else ""
    if has != more:
        parser.raise_error(f"{name} has {has or f'no {more}'}", at, parser.pos)
    operands: list[Sequence[SSAValue]] = []
    for operand in "ABC":
        at = parser.pos
        given = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        types = register_types(atom, operand)
        if len(given) != len(types):
            parser.raise_error(f"operand {operand} of {name} is {len(types)} registers", at, parser.pos)
        operands.append(parser.resolve_operands(given, types, at))
        if operand != "C":
            parser.parse_punctuation(",")
    return name, operands


def _print_matrices(op: MmaSyncOp | MmaSyncScaledOp | MmaSyncSparseOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_string_literal(op.atom_name.data)
    for index, values in enumerate((op.a, op.b, op.c)):
        printer.print_string(", (" if index else " (")
        printer.print_list(values, printer.print_operand)
        printer.print_string(")")


def register_types(atom: MmaAtom, operand: str) -> list[Attribute]:
    """The types of the registers of operand "A", "B", "C" or "D" of a warp-wide instruction."""
    held = registers(atom, operand)
    return [REGISTER_TYPES[held.kind]] * held.count
