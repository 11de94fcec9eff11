# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of a warp on registers (PTX ISA, Matrix multiply-accumulate operation using mma instruction)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Self

from xdsl.dialects.builtin import StringAttr, f32, f64, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...base.errors import TilefoldError
from ...base.target import Targets
from ...layout.atoms.instructions import MmaInstruction, MmaSync
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.mma_registers import registers
from ...layout.atoms.mma_table import mma_atom
from ...layout.atoms.ptx_text import mma_mnemonic
from ..definitions import fields, irdl_op_definition, prop, text
from ..errors import raise_at, refusing
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
        for operand, values in (("A", self.a), ("B", self.b), ("C", self.c), ("D", self.d)):
            given, wanted = [value.type for value in values], register_types(atom, operand)
            if given != wanted:
                types = ", ".join(map(str, given))
                raise VerifyException(f"operand {operand} of {atom.name} is {len(wanted)} of {wanted[0]}, not {types}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        at = parser.pos
        name = parser.parse_str_literal()
        try:
            atom = mma_atom(name)
        except TilefoldError as error:
            raise_at(parser, error, at, at + len(name) + 2)
        if not isinstance(atom.instruction, MmaSync):
            parser.raise_error(f"{name} is not an instruction of a warp on registers", at, parser.pos)
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
        op = cls(name, *operands)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.atom_name.data)
        for index, values in enumerate((self.a, self.b, self.c)):
            printer.print_string(", (" if index else " (")
            printer.print_list(values, printer.print_operand)
            printer.print_string(")")
        printer.print_op_attributes(self.attributes)


def register_types(atom: MmaAtom, operand: str) -> list[Attribute]:
    """The types of the registers of operand "A", "B", "C" or "D" of a warp-wide instruction."""
    held = registers(atom, operand)
    return [REGISTER_TYPES[held.kind]] * held.count
