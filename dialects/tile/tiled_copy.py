# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled copies, in all the ways in which CuTe makes them (copy_atom.hpp)."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, opt_operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...base.spaces import TMEM
from ...layout.algebra.core import Layout
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.tiling.tiled_copy import BY_COPY, BY_MMA, TiledCopy, make_cotiled_copy, make_tiled_copy
from ...layout.tiling.tmem_copies import make_tmem_copy, make_utccp_copy
from ..cute import LayoutAttr, TilerAttr
from ..definitions import irdl_op_definition
from ..operands import parse_operand
from .copy_types import CopyAtomAttr, TiledCopyType
from .directives import DIRECTIVES
from .mma_types import TiledMmaType
from .results import InferringOp
from .types import TensorType

BY_LAYOUTS = (("thr", "val"), ("tv", "tiler"), ("cotiled", "data"))
"""The ways that take two layouts, or a layout and a tiler, by the words before them."""

BY_TENSOR: Mapping[str, Callable[[CopyAtom, Layout], TiledCopy]] = MappingProxyType({
    TMEM.name: lambda atom, tensor: (make_utccp_copy if atom.threads <= 2 else make_tmem_copy)(atom, tensor)
})  # fmt: skip
"""The way that takes a tensor in tensor memory."""

_EXPECTED = (
    'expected thr "..." val "...", tv "..." tiler "...", cotiled "..." data "...", one of A, B, C and C_atom with a '
    "tiled MMA, S or D with a tiled copy, or tmem with a tensor in tensor memory"
)


@irdl_custom_directive
class PartsOf(CustomDirective):
    """`A %mma`: the parts of a tiled MMA's or a tiled copy's operand, where no layouts are given."""

    role: AttributeVariable
    like: OptionalOperandVariable
    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.like.set_empty(state)
        self.type.set_empty(state)
        for roles, kind, expected in (
            (BY_MMA, TiledMmaType, "a tiled MMA"),
            (BY_COPY, TiledCopyType, "a tiled copy"),
            (BY_TENSOR, TensorType, "a tensor in tensor memory"),
        ):
            for role in roles:
                if parser.parse_optional_keyword(role) is not None:
                    self.role.set(state, StringAttr(role))
                    parse_operand(parser, state, (self.like, self.type), (kind,), expected)
                    return
        if len(state.properties) < 2:
            parser.raise_error(_EXPECTED)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        role = op.properties.get(self.role.name)
        if isinstance(role, StringAttr):
            printer.print_string(f" {role.data}")
            self.like.print(printer, state, op)


@irdl_op_definition
class TiledCopyOp(InferringOp):
    """A tiled copy: an atom, spread over threads and values.

    `tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> thr "(8,4):(1,8)" val "8:1"`: the
    layouts map positions in the tile to threads, and to the values of a thread (CuTe's make_tiled_copy).
    `... tv "((16,8),8):((64,1),8)" tiler "(8,128)"`: the layout maps (thread, value) to a position in the tile.
    `... cotiled "(32,8):(8,1)" data "(16,16):(16,1)"`: the layout maps (thread, value) to an index into the data layout
    (make_cotiled_copy).
    `... A %mma`, `B %mma`, `C %mma`, `C_atom %mma`: the parts of an operand that the threads of a tiled MMA hold;
    `C_atom` takes only as many values of C in each thread as the atom moves. `... S %copy`, `D %copy`:
    the elements that another tiled copy reads, or writes.
    `... tmem %tensor`, of an atom that reaches tensor memory: the copy of four warps between registers and a tensor
    there, or that of a thread from shared memory (make_tmem_copy, make_utccp_copy).
    """

    name = "tile.tiled_copy"
    atom = prop_def(CopyAtomAttr)
    thr = opt_prop_def(LayoutAttr)
    val = opt_prop_def(LayoutAttr)
    tv = opt_prop_def(LayoutAttr)
    tiler = opt_prop_def(TilerAttr)
    cotiled = opt_prop_def(LayoutAttr)
    data = opt_prop_def(LayoutAttr)
    role = opt_prop_def(StringAttr)
    like = opt_operand_def(TiledMmaType | TiledCopyType | TensorType)
    result = result_def(TiledCopyType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<CopyAtom>($atom) "
        "(`thr` custom<Plain>($thr)^ `val` custom<Plain>($val))? "
        "(`tv` custom<Plain>($tv)^ `tiler` custom<Quoted>($tiler))? "
        "(`cotiled` custom<Plain>($cotiled)^ `data` custom<Plain>($data))? "
        "custom<PartsOf>($role, $like, type($like)) attr-dict custom<InferredTiling>(type($result))"
    )
    custom_directives = (*DIRECTIVES, PartsOf)

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        atom, role, like = properties["atom"], properties.get("role"), next(iter(operand_types), None)
        assert isinstance(atom, CopyAtomAttr)
        given: dict[str, Any] = {
            name: value.data for name, value in properties.items() if isinstance(value, LayoutAttr | TilerAttr)
        }
        if isinstance(role, StringAttr) and isinstance(like, TiledMmaType):
            made = BY_MMA[role.data](atom.atom, like.tiled_mma)
        elif isinstance(role, StringAttr) and isinstance(like, TiledCopyType):
            made = BY_COPY[role.data](atom.atom, like.tiled_copy)
        elif isinstance(role, StringAttr) and isinstance(like, TensorType):
            if like.space.data is not TMEM:
                text = f"a copy to or from tensor memory is made for a tensor there, not in {like.space.data}"
                raise LayoutError(Code.ATOM_SPACE, text, "pass the tensor whose space is tmem")
            made = BY_TENSOR[role.data](atom.atom, like.plain_layout)
        elif "tv" in given:
            made = TiledCopy(atom.atom, given["tv"], given["tiler"])
        elif "cotiled" in given:
            made = make_cotiled_copy(atom.atom, given["cotiled"], given["data"])
        else:
            made = make_tiled_copy(atom.atom, given["thr"], given["val"])
        return [TiledCopyType(atom, LayoutAttr(made.layout_tv), TilerAttr(made.tiler))]

    def verify_(self) -> None:
        given = [name for names in BY_LAYOUTS for name in names if name in self.properties]
        by_layouts = any(given == list(names) for names in BY_LAYOUTS) and self.role is None and self.like is None
        by_like = not given and self.role is not None and self.like is not None
        if not by_layouts and not by_like:
            raise VerifyException(f"a tiled copy is made in one way: {_EXPECTED}")
        for layout in (self.thr, self.val, self.tv, self.cotiled, self.data):
            if layout is not None and not isinstance(layout.data, Layout):
                raise VerifyException("the layouts of a tiled copy are plain ones, without a swizzle")
        if self.role is not None and self.like is not None:
            type = self.like.type
            allowed = (
                BY_MMA if isinstance(type, TiledMmaType) else BY_COPY if isinstance(type, TiledCopyType) else BY_TENSOR
            )
            if self.role.data not in allowed:
                raise VerifyException(f"the part is '{self.role.data}'; {self.like.type} has {', '.join(allowed)}")
        super().verify_()
