# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix multiplications: of whole fragments by a tiled MMA, and one execution of an MMA atom."""

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects.builtin import I1, i1
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ...base.element_types import ElementType
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM
from ...layout.algebra.core import size
from ...layout.atoms.mma_sync import thread_values
from ...layout.atoms.scalar_mma import fma_of
from ..definitions import irdl_op_definition, refusing
from ..element_types import element_of
from .assembly import parse_defined
from .directives import TileOp
from .gemm_rules import check_gemm, check_mma_call
from .mma_types import MmaAtomAttr, TiledMmaType
from .types import TensorType
from .wgmma_rules import check_accumulation, check_block, check_registers


@irdl_op_definition
class GemmOp(IRDLOperation):
    """`tile.gemm %mma, %A, %B, %C`: C = A * B + C, on each thread's fragments (CuTe's gemm).

    `tile.gemm %mma, %D, %A, %B, %C` puts the result in D. The ranks of A, B and C select the product: `(V)x(V)->(V)`,
    `(M)x(N)->(M,N)`, `(M,K)x(N,K)->(M,N)`, `(V,M)x(V,N)->(V,M,N)` or `(V,M,K)x(V,N,K)->(V,M,N)`, where V are the values
    of one execution of the atom, and M, N and K count executions. Without a tiled MMA the atom is UniversalFMA of the
    element types, with signed integers.
    At stage `folded` the atom stands in the operation itself: `tile.gemm #tile.mma_atom<...> %A, %B, %C`.

    C and D are in rmem, A and B in rmem or smem. From smem, each K is first copied to a fragment, with accesses as wide
    as layout and alignment allow. The products of all K are added in order, each execution of the atom rounding as its
    instruction does.

    An atom of a warpgroup (wgmma) reads B, and A where its name ends in SS, from smem by descriptors, so that these are
    parts in smem, and starts executions that go on until `ptx.wgmma.wait_group`. With `accumulate %p`, an i1, C is
    added where it is true, and the first product of each M and N takes the place of C where it is false.

    An atom with scales takes them as `scales %SFA, %SFB`: fragments (V,M,K) and (V,N,K) of the elements of the atom's
    scales, whose V are the K of one execution; neighbouring K that share a scale are one element.

    Preconditions: element types and sizes of modes are the atom's; values that share a register are adjacent. All lanes
    of a warp execute it, all warps of a warpgroup an atom of that, unless the atom has one thread. D is C, or overlaps
    neither C nor A nor B.
    """

    name = "tile.gemm"
    atom = opt_prop_def(MmaAtomAttr)
    tiled_mma = opt_operand_def(TiledMmaType)
    result = opt_operand_def(TensorType)
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)
    accumulate = opt_operand_def(I1)
    scale_a = opt_operand_def(TensorType)
    scale_b = opt_operand_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        d: SSAValue | None = None,
        tiled_mma: SSAValue | None = None,
        atom: MmaAtomAttr | None = None,
        accumulate: SSAValue | None = None,
        scales: Sequence[SSAValue] = (),
    ):
        scale_a, scale_b = scales or (None, None)
        super().__init__(operands=[tiled_mma, d, a, b, c, accumulate, scale_a, scale_b], properties={"atom": atom})

    @property
    def scales(self) -> tuple[SSAValue, ...]:
        """The scales of A and B, if there are any."""
        return () if self.scale_a is None or self.scale_b is None else (self.scale_a, self.scale_b)

    @property
    def d(self) -> SSAValue:
        """The destination: D, or C where there are three operands."""
        return self.c if self.result is None else self.result

    @property
    def types(self) -> tuple[TensorType, TensorType, TensorType, TensorType]:
        """The types of D, A, B and C."""
        d, a, b, c = (cast("TensorType", value.type) for value in (self.d, self.a, self.b, self.c))
        return d, a, b, c

    @property
    def mma_atom(self) -> MmaAtomAttr:
        """The atom of the tiled MMA, of the operation, or UniversalFMA. `LayoutError` if its types have none."""
        if self.tiled_mma is not None:
            return cast("TiledMmaType", self.tiled_mma.type).atom
        if self.atom is not None:
            return self.atom
        elements: list[ElementType] = []
        for type in self.types:
            element = element_of(type.element_type)  # of integers, which have no sign here, the signed one
            if element is None or not element.has_fma:
                raise LayoutError(
                    Code.MMA_OPERAND,
                    f"there is no multiplication of single elements of type {type.element_type}",
                    "name an atom, such as the one of tile.tiled_mma",
                )
            elements.append(element)
        d, a, b, c = elements
        return MmaAtomAttr(fma_of((d, a, b, c)))

    def verify_(self) -> None:
        if self.tiled_mma is not None and self.atom is not None:
            raise VerifyException("the atom is given twice: by the tiled MMA and by the attribute")
        with refusing():
            check_gemm(self.mma_atom, *self.types, scale_types(self))
            _check_contract(self, self.mma_atom)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        at = parser.pos
        atom = parser.parse_optional_attribute()
        if atom is not None and not isinstance(atom, MmaAtomAttr):
            parser.raise_error("expected an MMA atom or an operand", at, parser.pos)
        at = parser.pos
        operands = parser.parse_comma_separated_list(Parser.Delimiter.NONE, lambda: parse_defined(parser))
        mma = operands.pop(0) if isinstance(operands[0].type, TiledMmaType) else None
        if len(operands) not in (3, 4) or not all(isinstance(value.type, TensorType) for value in operands):
            parser.raise_error(
                "expected tensors A, B, C or D, A, B, C, with a tiled MMA or an atom before", at, parser.pos
            )
        result = operands.pop(0) if len(operands) == 4 else None
        accumulate = None
        if parser.parse_optional_keyword("accumulate") is not None:
            accumulate = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        scales: list[SSAValue] = []
        if parser.parse_optional_keyword("scales") is not None:
            at = parser.pos
            scales = parser.parse_comma_separated_list(Parser.Delimiter.NONE, lambda: parse_defined(parser))
            if len(scales) != 2 or not all(isinstance(value.type, TensorType) for value in scales):
                parser.raise_error("expected the scales of A and B, two tensors", at, parser.pos)
        op = cls(operands[0], operands[1], operands[2], result, mma, atom, accumulate, scales)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.atom is not None:
            printer.print_attribute(self.atom)
            printer.print_string(" ")
        given = (self.tiled_mma, self.result, self.a, self.b, self.c)
        printer.print_list([value for value in given if value is not None], printer.print_operand)
        if self.accumulate is not None:
            printer.print_string(" accumulate ")
            printer.print_operand(self.accumulate)
        if self.scales:
            printer.print_string(" scales ")
            printer.print_list(self.scales, printer.print_operand)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class MmaCallOp(TileOp):
    """`tile.mma_call #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN"> %d, %a, %b, %c`: one execution of an MMA atom,
    D = A * B + C.

    The operands are fragments of exactly a thread's values, or the part in smem that the instruction reads. With
    `accumulate %p` and preconditions as of `tile.gemm`; `%d` may be `%c`.
    """

    name = "tile.mma_call"
    atom = prop_def(MmaAtomAttr)
    d = operand_def(TensorType)
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)
    accumulate = opt_operand_def(I1)
    scale_a = opt_operand_def(TensorType)
    scale_b = opt_operand_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "custom<MmaAtom>($atom) custom<Tensor>($d, type($d)) `,` custom<Tensor>($a, type($a)) `,` "
        "custom<Tensor>($b, type($b)) `,` custom<Tensor>($c, type($c)) (`accumulate` $accumulate^)? "
        "(`scales` custom<Tensor>($scale_a, type($scale_a))^ `,` custom<Tensor>($scale_b, type($scale_b)))? attr-dict"
    )

    def __init__(
        self,
        atom: MmaAtomAttr,
        d: SSAValue,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        accumulate: SSAValue | None = None,
        scales: Sequence[SSAValue] = (),
    ):
        super().__init__(operands=[d, a, b, c, accumulate, *(scales or (None, None))], properties={"atom": atom})

    @property
    def scales(self) -> tuple[SSAValue, ...]:
        """The scales of A and B, if there are any."""
        return () if self.scale_a is None or self.scale_b is None else (self.scale_a, self.scale_b)

    @property
    def types(self) -> tuple[TensorType, TensorType, TensorType, TensorType]:
        """The types of D, A, B and C."""
        d, a, b, c = (cast("TensorType", value.type) for value in (self.d, self.a, self.b, self.c))
        return d, a, b, c

    def verify_(self) -> None:
        with refusing():
            check_mma_call(self.atom, *self.types, scale_types(self))
            _check_contract(self, self.atom)


def scale_types(op: GemmOp | MmaCallOp) -> tuple[TensorType, ...]:
    """The types of the scales."""
    return tuple([cast("TensorType", value.type) for value in op.scales])


def _check_contract(op: GemmOp | MmaCallOp, attr: MmaAtomAttr) -> None:
    """Checks the conditions of an atom's contract on the operation and on the block around it."""
    atom = attr.atom
    check_accumulation(atom, op.d is not op.c, op.accumulate is not None)
    check_block(op, atom)
    _, a, _, c = op.types
    executions = size(c.layout.data) // thread_values(atom, "C")
    in_registers = size(a.layout.data) * a.element_bits // 32 if a.space.data is RMEM else 0
    check_registers(op, atom, executions, in_registers)
