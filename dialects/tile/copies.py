# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies: of whole tensors by a tiled copy or element by element, and one execution of a copy atom."""

from typing import Self, cast

from xdsl.dialects.builtin import I16, I32, I64
from xdsl.ir import Operation, SSAValue
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

from ...base.errors import Code, LayoutError
from ...base.spaces import GMEM
from ...layout.algebra.core import Layout, size
from ...layout.algebra.inttuple import rank
from ...layout.atoms.contract import Role
from ..definitions import irdl_op_definition, refuse, refusing, typed_operand
from ..ptx.base import GLOBAL, SHARED, PtrType
from .assembly import AnyTensor, parse_defined, parse_tensor
from .bulk_rules import bulk_runs, check_bulk_operands
from .copy_rules import atom_values, check_atom_operands, check_tiled_operands
from .copy_types import CopyAtomAttr, TiledCopyType
from .directives import TileOp
from .predicates import infer_predicate_layout
from .tma_rules import check_mbarrier, check_operands_of, check_tma_copy
from .tma_types import TmaType
from .types import TensorType


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copies `src` to `dst`, coordinate by coordinate in colexicographic order.

    `tile.copy %copy, %src, %dst` copies by a tiled copy's atom: the operands are partitions, whose first mode holds
    the atom's values, and the atom is executed for each coordinate of the rest. `tile.copy %src, %dst` copies element
    by element, as wide as layouts and alignments allow. At stage `folded` the atom stands in the operation itself:
    `tile.copy #tile.copy_atom<...> %src, %dst`.

    `... if %pred` copies under predicates: a fragment of i1 with the modes of the source, strides of 0 where one
    predicate serves for several elements, and possibly a mode 0 of one element, which serves for all of mode 0. An
    atom is executed where its predicate holds; an atom with zero-fill (SM80_CP_ASYNC_CACHEALWAYS_ZFILL<...>) copies
    the values whose predicates hold and writes zeros for the others.

    `tile.copy %tma, %src, %dst mbarrier %bar multicast %mask policy %p` copies tiles by a tensor map: one side is in
    shared memory, the other a view of `tile.tma_tensor`, and both are results of `tile.tma_partition`. The thread that
    executes it issues an instruction for each coordinate of the modes after TMA. A load counts its bytes on the
    mbarrier, in each block that a multicast names by a bit of the mask; a store is part of the thread's bulk group, to
    commit and wait for by `ptx.cp.async.bulk.commit_group` and `wait_group`. The policy is one of the L2 cache. With
    `descriptor %d` the map is the one at this address in global memory, which began as a copy of `%tma`.

    `tile.copy #tile.copy_atom<"SM90_BULK_COPY_G2S", f16> %src, %dst mbarrier %bar policy %p` copies tensors between
    global and shared memory by bulk copies: each thread that executes it issues one for each run of elements that are
    contiguous on both sides. SM90_BULK_COPY_G2S loads, SM90_BULK_COPY_S2G stores, SM90_BULK_COPY_AUTO does either.

    Preconditions: equal element types, equal sizes of each mode, and the atom's requirements on spaces, contiguity and
    alignment. The predicates of the values of one execution are equal; with zero-fill those that hold come first. The
    elements of one copy are moved in no fixed order. After cp.async the destination is undefined until waited for.
    """

    name = "tile.copy"
    atom = opt_prop_def(CopyAtomAttr)
    tiled_copy = opt_operand_def(TiledCopyType | TmaType)
    src = cast("SSAValue[TensorType]", operand_def(AnyTensor))  # of coordinates on a side of a TMA copy alone
    dst = cast("SSAValue[TensorType]", operand_def(AnyTensor))
    pred = opt_operand_def(TensorType)
    mbarrier = opt_operand_def(PtrType)
    multicast = opt_operand_def(I16)
    policy = opt_operand_def(I64)
    descriptor = opt_operand_def(GLOBAL)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        src: SSAValue | Operation,
        dst: SSAValue | Operation,
        tiled_copy: SSAValue | None = None,
        atom: CopyAtomAttr | None = None,
        pred: SSAValue | None = None,
        mbarrier: SSAValue | None = None,
        multicast: SSAValue | None = None,
        policy: SSAValue | None = None,
        descriptor: SSAValue | None = None,
    ):
        operands = [tiled_copy, src, dst, pred, mbarrier, multicast, policy, descriptor]
        super().__init__(operands=operands, properties={"atom": atom})

    @property
    def tma(self) -> SSAValue[TmaType] | None:
        """The tensor map of a TMA copy; None for any other copy."""
        value = self.tiled_copy
        return None if value is None or not isinstance(value.type, TmaType) else cast("SSAValue[TmaType]", value)

    @property
    def copy_atom(self) -> CopyAtomAttr | None:
        """The atom, from the tiled copy or the operation itself; None for an element-by-element copy."""
        if self.tiled_copy is not None:
            assert isinstance(self.tiled_copy.type, TiledCopyType)
            return self.tiled_copy.type.atom
        return self.atom

    @property
    def pred_layout(self) -> Layout | None:
        """The predicates, one for each element of the source; None if there are none. Raises `LayoutError`."""
        if self.pred is None:
            return None
        atom = self.copy_atom
        assert isinstance(self.pred.type, TensorType)
        return infer_predicate_layout(self.pred.type, self.src.type, 1 if atom is None else atom_values(atom)[0])

    def verify_(self) -> None:
        if self.tiled_copy is not None and self.atom is not None:
            raise VerifyException("the atom is given twice: by the tiled copy and by the attribute")
        if self.tma is not None:
            self._check_tma_copy(self.tma.type)
            return
        src, dst = self.src.type, self.dst.type
        if not isinstance(src, TensorType) or not isinstance(dst, TensorType):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise VerifyException("only a TMA copy takes a tensor of coordinates: tile.copy %tma, %src, %dst")
        is_bulk = self.copy_atom is not None and self.copy_atom.atom.is_bulk
        counted = self.copy_atom is not None and self.copy_atom.atom.contract.has(Role.BARRIER)
        taken = _OF_TMA_COPIES if is_bulk else [word for word in _OF_TMA_COPIES if word != "mbarrier" or not counted]
        if not is_bulk and any(getattr(self, word) is not None for word in taken):
            raise VerifyException(
                "only a TMA copy has an mbarrier, a mask of blocks, a policy and a descriptor, a bulk copy an "
                "mbarrier and a policy"
            )
        if src.element_type != dst.element_type:
            raise VerifyException(
                f"the source's elements are {src.element_type}, the destination's {dst.element_type}, and a copy does "
                "not convert: compute the destination by tile.map"
            )
        ranks = rank(src.layout.data.shape), rank(dst.layout.data.shape)
        if ranks[0] != ranks[1]:
            raise VerifyException(f"the source has rank {ranks[0]}, the destination rank {ranks[1]}")
        for mode in range(ranks[0]):
            sizes = size(src.layout.data[mode]), size(dst.layout.data[mode])
            for side, tensor in (("source", src), ("destination", dst)):
                _check_static(mode, side, tensor)
            if sizes[0] != sizes[1] and (mode > 0 or is_bulk or self.copy_atom is None):
                raise VerifyException(
                    f"mode {mode} has {sizes[0]} elements in the source, {sizes[1]} in the destination"
                )
        if src.is_predicate:
            raise VerifyException("predicates (i1) cannot be copied; read and write them by tile.load and tile.store")
        with refusing():
            if self.copy_atom is not None and is_bulk:
                others = [value for value in (self.pred, self.multicast, self.descriptor) if value is not None]
                check_bulk_operands(self.copy_atom, src, dst, self.mbarrier, others)
            elif self.copy_atom is not None:
                check_tiled_operands(self.copy_atom, src, dst)
                if counted:
                    check_mbarrier(self.copy_atom.atom_name, counted, self.mbarrier)
            _ = self.pred_layout

    def _check_tma_copy(self, tma: TmaType) -> None:
        if self.pred is not None:
            raise VerifyException("a TMA copy has no predicates: it skips elements outside its tensor")
        with refusing():
            check_operands_of(self, tma, self.mbarrier, self.multicast)
            check_tma_copy(tma, self.src.type, self.dst.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        at = parser.pos
        atom = parser.parse_optional_attribute()
        if atom is not None and not isinstance(atom, CopyAtomAttr):
            parser.raise_error("expected a copy atom or an operand", at, parser.pos)
        operands = parser.parse_comma_separated_list(Parser.Delimiter.NONE, lambda: parse_defined(parser))
        if len(operands) not in (2, 3) or (len(operands) == 3 and atom is not None):
            parser.raise_error(
                "expected a source and a destination, with a tiled copy or an atom before them", at, parser.pos
            )
        copy = operands.pop(0) if len(operands) == 3 else None
        pred = parse_tensor(parser) if parser.parse_optional_keyword("if") is not None else None
        rest = [
            None if parser.parse_optional_keyword(word) is None else parse_defined(parser) for word in _OF_TMA_COPIES
        ]
        op = cls(operands[0], operands[1], copy, atom, pred, *rest)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.atom is not None:
            printer.print_attribute(self.atom)
            printer.print_string(" ")
        moved = [value for value in (self.tiled_copy, self.src, self.dst) if value is not None]
        printer.print_list(moved, printer.print_operand)
        if self.pred is not None:
            printer.print_string(" if ")
            printer.print_operand(self.pred)
        for word in _OF_TMA_COPIES:
            if (operand := getattr(self, word)) is not None:
                printer.print_string(f" {word} ")
                printer.print_operand(operand)
        printer.print_op_attributes(self.attributes)


_OF_TMA_COPIES = ("mbarrier", "multicast", "policy", "descriptor")
"""The operands that only TMA copies have, by the words before them."""


@irdl_op_definition
class AtomCallOp(TileOp):
    """`tile.atom_call #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> %src, %dst`: one execution of a
    copy atom by each thread.

    At stage `atoms` the operands are tensors of exactly the thread's values; at stage `index` pointers to the first
    of them, the others following in order. For ldmatrix the source is the row whose address the lane supplies.

    `... count %n` is for atoms with zero-fill: only the first `%n` values, an i32, are copied, and zeros are written
    for the others; without it all are copied. `... mbarrier %bar policy %p` is for bulk copies of a known size,
    `SM90_BULK_COPY_G2S<4096>`.
    """

    name = "tile.atom_call"
    atom = prop_def(CopyAtomAttr)
    src = operand_def(TensorType | PtrType)
    dst = operand_def(TensorType | PtrType)
    count = opt_operand_def(I32)
    mbarrier = opt_operand_def(SHARED)
    policy = opt_operand_def(I64)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "custom<CopyAtom>($atom) custom<Defined>($src, type($src)) `,` custom<Defined>($dst, type($dst)) "
        "(`count` custom<Operand>($count)^)? (`mbarrier` custom<Operand>($mbarrier)^)? "
        "(`policy` custom<Operand>($policy)^)? attr-dict"
    )

    def __init__(
        self,
        atom: CopyAtomAttr,
        src: SSAValue | Operation,
        dst: SSAValue | Operation,
        count: SSAValue | None = None,
        mbarrier: SSAValue | None = None,
        policy: SSAValue | None = None,
    ):
        super().__init__(operands=[src, dst, count, mbarrier, policy], properties={"atom": atom})

    def verify_(self) -> None:
        src, dst = self.src.type, self.dst.type
        self._check_bulk()
        if isinstance(src, TensorType) and isinstance(dst, TensorType):
            with refusing():
                check_atom_operands(self.atom, src, dst)
        elif not isinstance(src, PtrType) or not isinstance(dst, PtrType):
            raise VerifyException("source and destination must be two tensors or two pointers")
        if self.count is not None and not self.atom.atom.zfill:
            raise VerifyException(f"{self.atom.atom_name} has no zero-fill, so it copies all values or none")

    def _check_bulk(self) -> None:
        name, atom = self.atom.atom_name, self.atom.atom
        if not atom.is_bulk:
            if self.mbarrier is not None or self.policy is not None:
                raise VerifyException("only a bulk copy has an mbarrier and a policy")
            return
        if atom.bits is None or atom.loads is None:
            raise VerifyException(
                f"one execution of {name} has a direction and a known number of bits, such as SM90_BULK_COPY_G2S<4096>"
            )
        with refusing():
            check_mbarrier(name, atom.contract.has(Role.BARRIER), self.mbarrier)


@irdl_op_definition
class PrefetchTensorOp(TileOp):
    """`tile.prefetch_tensor %A policy %p`: the L2 cache may fetch the elements of a tensor in global memory, by a
    prefetch for each run that is contiguous (CuTe's SM90_BULK_COPY_G2S::PREFETCH).

    Each thread that executes it issues its own.
    """

    name = "tile.prefetch_tensor"
    tensor = typed_operand(TensorType)
    policy = opt_operand_def(I64)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "custom<Tensor>($tensor, type($tensor)) (`policy` custom<Operand>($policy)^)? attr-dict"

    def __init__(self, tensor: SSAValue, policy: SSAValue | None = None):
        super().__init__(operands=[tensor, policy])

    def runs(self) -> tuple[Layout, Layout]:
        """The elements of a prefetch, and the places where prefetches begin, as `bulk_runs` returns them."""
        return bulk_runs("a bulk prefetch", None, self.tensor.type)

    def verify_(self) -> None:
        type = self.tensor.type
        if type.space.data is not GMEM:
            raise VerifyException(f"the L2 cache holds elements of gmem, and the tensor is in {type.space.data.name}")
        for mode in range(rank(type.layout.data.shape)):
            _check_static(mode, "tensor", type)
        with refusing():
            run, _ = self.runs()
            if (bytes := run.size * type.element_bits // 8) >= 1 << 31:
                text = f"a bulk prefetch is of less than 2^31 bytes, and {bytes} are contiguous"
                raise LayoutError(Code.ATOM_OPERAND, text, "prefetch the tile that the block reads")


def _check_static(mode: int, side: str, tensor: TensorType) -> None:
    if not isinstance(extent := size(tensor.layout.data[mode]), int):
        refuse(
            LayoutError(
                Code.DYNAMIC_UNSUPPORTED,
                f"mode {mode} of the {side} has {extent} elements; the extents of a copy are static",
                "copy tiles of a static shape in a loop, the last ones under predicates",
            )
        )
