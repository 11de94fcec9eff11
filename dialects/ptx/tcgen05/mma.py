# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications that one thread issues for its block or a pair of blocks, and the signals of their completion (PTX
ISA, 5th Generation Tensor Core Instructions: tcgen05.mma, tcgen05.commit).

The tensor core reads shared memory by the async proxy, and reads and writes tensor memory. A multiplication comes after
an earlier one that accumulates in the same cells by the same shape, and after earlier copies by `ptx.tcgen05.cp`.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I1, I16, I32, I64, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    EqAttrConstraint,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)

from ....base.element_types import BY_PTX
from ....base.target import Targets
from ....layout.atoms.umma_descriptors import InstructionDescriptor, MmaKind, SmemDescriptor
from ...definitions import irdl_op_definition, operand, optional_operand, row
from ..base import SHARED
from ..effects import Act, Effect, Group, Mbarrier, Proxy, Via, by_thread, ends, issued, reads, updates
from .base import INTEGERS, SINGLE, TCGEN05, TENSOR, GroupOp, constant_of, refuse_form

_COLLECTED = ("fill", "use", "lastuse", "discard")
SCALES = {
    MmaKind.MXF8F6F4: ("", "scale_vec::1X", "block32"),
    MmaKind.MXF4: ("", "scale_vec::2X", "block32"),
    MmaKind.MXF4NVF4: ("scale_vec::2X", "block32", "scale_vec::4X", "block16"),
}
"""How each scaled kind can say how many elements share a scale factor; the empty word is a default."""


def _issued(*more: Effect) -> tuple[Effect, ...]:
    """The effects of a multiplication: bytes follow from the instruction descriptor."""
    a, b = reads("a", "a_bytes", Via.DESCRIPTOR), reads("b", "b_bytes", Via.DESCRIPTOR)
    return issued(Group.TENSOR_CORE, Proxy.TENSOR, updates("d", "d_bytes"), a, b, *more)


class TensorMmaBase(GroupOp):
    """A multiplication by the tensor core: D = A * B + D, or D = A * B where `accumulate` does not hold.

    D is in tensor memory, B in shared memory, A in either; `idesc` is the instruction descriptor.
    """

    kind = prop_def(StringAttr)
    collector = opt_prop_def(StringAttr)
    d = operand_def(TENSOR)
    a = operand_def(EqAttrConstraint(i64) | EqAttrConstraint(TENSOR))
    b = operand_def(I64)
    idesc = operand_def(I32)
    accumulate = operand_def(I1)
    metadata = opt_operand_def(TENSOR)

    WS: ClassVar[bool] = False
    KINDS: ClassVar[tuple[MmaKind, ...]] = tuple([kind for kind in MmaKind if not kind.is_scaled])
    COLLECTORS: ClassVar[tuple[str, ...]] = tuple([f"a::{act}" for act in _COLLECTED])

    def build_from(
        self,
        operands: Sequence[SSAValue | Operation],
        more: Mapping[str, SSAValue | Operation | Sequence[SSAValue] | None],
        properties: Mapping[str, Attribute | None],
    ) -> None:
        """Builds the operation: of D, A, B, the instruction descriptor and `accumulate`, and of further operands."""
        named = dict(zip(("d", "a", "b", "idesc", "accumulate"), operands, strict=True)) | dict(more)
        order = [name for name, _ in self.get_irdl_definition().operands]
        IRDLOperation.__init__(self, operands=[named[name] for name in order], properties=dict(properties))

    @property
    def of(self) -> MmaKind:
        """The kind. ValueError for a name that the verifier refuses."""
        return MmaKind(self.kind.data)

    @property
    def described(self) -> InstructionDescriptor | None:
        """The instruction descriptor, where it is a constant."""
        idesc = constant_of(self.idesc)
        return None if idesc is None else InstructionDescriptor.decode(self.of, idesc)

    @property
    def d_bytes(self) -> int | None:
        """The bytes of D in tensor memory, where the instruction descriptor is a constant."""
        given = self.described
        return None if given is None else given.m * given.n * BY_PTX[given.types[0]].bits // 8

    @property
    def a_bytes(self) -> int | None:
        """The bytes of A."""
        given = self.described
        return None if given is None else given.m * given.k * given.kind.element_bits() // (8 << self.is_sparse)

    @property
    def b_bytes(self) -> int | None:
        """The bytes of B."""
        given = self.described
        return None if given is None else given.n * given.k * given.kind.element_bits() // 8

    @property
    def is_sparse(self) -> bool:
        """Whether A has only half of its elements."""
        return self.metadata is not None

    @property
    def a_in_tensor_memory(self) -> bool:
        """Whether A is in tensor memory."""
        return self.a.type == TENSOR

    @property
    def scale_words(self) -> str:
        """The modifiers of scale factors."""
        return ""

    @property
    def targets(self) -> Targets:
        return INTEGERS if self.kind.data == MmaKind.I8.value else TCGEN05

    def mnemonic(self) -> str:
        words = ["tcgen05.mma", *(["ws"] if self.WS else []), *(["sp"] if self.is_sparse else [])]
        words += [self.suffix, f"kind::{self.kind.data}", *([self.scale_words] if self.scale_words else [])]
        if self.collector is not None:
            words.append(f"collector::{self.collector.data}")
        return ".".join(words)

    def verify_(self) -> None:
        super().verify_()
        kinds = [kind.value for kind in self.KINDS]
        if self.kind.data not in kinds:
            refuse_form(f'{self.name.removeprefix("ptx.")} has the kinds {", ".join(kinds)}; not "{self.kind.data}"')
        if self.collector is not None and self.collector.data not in self.COLLECTORS:
            refuse_form(f'the collector is {", ".join(self.COLLECTORS)}; not "{self.collector.data}"')
        self.check_constants()

    def check_constants(self) -> None:
        """Checks descriptors that are constants, into which no assembler looks."""
        given = self.described
        problem = None if given is None else next(given.problems(self.blocks, ws=self.WS, sparse=self.is_sparse), None)
        if given is not None and problem is not None:
            text = f"the instruction descriptor {given.value:#010x}: {problem}"
            refuse_form(text, "docs/blackwell.md has the fields of instruction descriptors")
        for name, value in (("A", self.a), ("B", self.b)):
            matrix = constant_of(value)
            problem = None if matrix is None else next(SmemDescriptor.decode(matrix).problems(), None)
            if problem is not None:
                refuse_form(f"the descriptor of {name} has {problem}", "make it by ptx.tcgen05.descriptor")


@irdl_op_definition
class TensorMmaOp(TensorMmaBase):
    """`ptx.tcgen05.mma "f16" cta_group 1 %d, %a, %b, %idesc, %accumulate : i64`: starts D = A * B + D, or where
    `accumulate` does not hold D = A * B (PTX ISA, tcgen05.mma). The kinds are f16, tf32, f8f6f4 and i8.

    `a` is the descriptor of A in shared memory, or its address in tensor memory (`!ptx.ptr<tmem>`). `sparse %m` makes A
    one of half of the elements, whose numbers are at `m`. `mask(%m0, %m1, %m2, %m3)`, 8 of them of a pair, names lanes
    that keep their D, a bit each. `scale_d 3` divides D by 2**3 before the addition, of f16 and tf32. `ashift` shifts
    the rows of A, which is in tensor memory. `collector "a::fill"` keeps A near the tensor core.

    Preconditions: one thread executes it, in a pair a thread of one block. Postcondition: until a `ptx.tcgen05.commit`
    of the thread has arrived, nobody writes A and B, and D is used only by further multiplications of the same shape.
    """

    name = "ptx.tcgen05.mma"
    mask = var_operand_def(I32)
    scale_d = opt_prop_def(IntegerAttr[I64])
    ashift = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_thread(*_issued()))
    assembly_format = (
        "$kind `cta_group` $group $d `,` $a `,` $b `,` $idesc `,` $accumulate (`sparse` $metadata^)? "
        "(`mask` `(` $mask^ `)`)? (`scale_d` $scale_d^)? (`ashift` $ashift^)? (`collector` $collector^)? attr-dict "
        "`:` type($a)"
    )

    def __init__(
        self,
        kind: str,
        group: int,
        operands: Sequence[SSAValue | Operation],
        *,
        metadata: SSAValue | None = None,
        mask: Sequence[SSAValue] = (),
        scale_d: int | None = None,
        ashift: bool = False,
        collector: str = "",
    ):
        more = {
            "scale_d": None if scale_d is None else IntegerAttr(scale_d, i64),
            "ashift": UnitAttr() if ashift else None,
        }
        self.build_from(operands, {"metadata": metadata, "mask": list(mask)}, _given(kind, group, collector) | more)

    @property
    def divisor(self) -> int:
        """The binary logarithm of the number that D is divided by."""
        return 0 if self.scale_d is None else self.scale_d.value.data

    def mnemonic(self) -> str:
        name = super().mnemonic()
        if self.ashift is None:
            return name
        head, found, collector = name.partition(".collector")
        return f"{head}.ashift{found}{collector}"

    def verify_(self) -> None:
        super().verify_()
        lanes = 4 * self.blocks
        if len(self.mask) not in (0, lanes):
            refuse_form(f"a mask of lanes has {lanes} words with cta_group {self.blocks}, not {len(self.mask)}")
        if self.scale_d is not None and (not self.of.divides or not 0 <= self.divisor <= 15):
            refuse_form("scale_d is 0 to 15, of the kinds f16 and tf32")
        if self.ashift is not None and not self.a_in_tensor_memory:
            refuse_form("ashift is for A in tensor memory")
        if self.ashift is not None and self.collector is not None and self.collector.data in ("a::fill", "a::use"):
            refuse_form("ashift excludes the collector's fill and use")


@irdl_op_definition
class TensorMmaWsOp(TensorMmaBase):
    """`ptx.tcgen05.mma.ws "f16" cta_group 1 %d, %a, %b, %idesc, %accumulate : i64`: as `ptx.tcgen05.mma`, and B stays
    in the tensor core rather than A (PTX ISA, tcgen05.mma.ws); for one block. `zero_columns %m` names columns of B that
    count as zero. The collector is `b0::fill` to `b3::discard`.

    Preconditions and postcondition: those of `ptx.tcgen05.mma`.
    """

    name = "ptx.tcgen05.mma.ws"
    WS: ClassVar[bool] = True
    COLLECTORS: ClassVar[tuple[str, ...]] = tuple([f"b{n}::{act}" for n in range(4) for act in _COLLECTED])
    zero_columns = opt_operand_def(I64)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_thread(*_issued()))
    assembly_format = (
        "$kind `cta_group` $group $d `,` $a `,` $b `,` $idesc `,` $accumulate (`sparse` $metadata^)? "
        "(`zero_columns` $zero_columns^)? (`collector` $collector^)? attr-dict `:` type($a)"
    )

    def __init__(
        self,
        kind: str,
        operands: Sequence[SSAValue | Operation],
        *,
        metadata: SSAValue | None = None,
        zero_columns: SSAValue | None = None,
        collector: str = "",
    ):
        self.build_from(operands, {"metadata": metadata, "zero_columns": zero_columns}, _given(kind, 1, collector))

    def verify_(self) -> None:
        if self.blocks != 1:
            refuse_form("tcgen05.mma.ws is of one block: cta_group 1")
        super().verify_()


@irdl_op_definition
class TensorMmaScaledOp(TensorMmaBase):
    """`ptx.tcgen05.mma.block_scale "mxf8f6f4" cta_group 1 scale "block32" %d, %a, %b, %idesc, %accumulate, %sfa, %sfb :
    i64`: as `ptx.tcgen05.mma`, and each 16 or 32 elements along K of A and of B have a scale factor in tensor memory
    (PTX ISA, tcgen05.mma with .block_scale). The kinds are mxf8f6f4, mxf4 and mxf4nvf4.

    The number of the scale factors in their cells is in the instruction descriptor. Preconditions and postcondition:
    those of `ptx.tcgen05.mma`.
    """

    name = "ptx.tcgen05.mma.block_scale"
    KINDS: ClassVar[tuple[MmaKind, ...]] = (MmaKind.MXF8F6F4, MmaKind.MXF4, MmaKind.MXF4NVF4)
    scale = opt_prop_def(StringAttr)
    sfa = operand_def(TENSOR)
    sfb = operand_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_thread(*_issued(reads("sfa", "sfa_bytes"), reads("sfb", "sfb_bytes"))))
    assembly_format = (
        "$kind `cta_group` $group (`scale` $scale^)? $d `,` $a `,` $b `,` $idesc `,` $accumulate `,` $sfa `,` $sfb "
        "(`sparse` $metadata^)? (`collector` $collector^)? attr-dict `:` type($a)"
    )

    def __init__(
        self,
        kind: str,
        group: int,
        operands: Sequence[SSAValue | Operation],
        scales: tuple[SSAValue | Operation, SSAValue | Operation],
        *,
        scale: str = "",
        metadata: SSAValue | None = None,
        collector: str = "",
    ):
        sfa, sfb = scales
        properties = _given(kind, group, collector) | {"scale": StringAttr(scale) if scale else None}
        self.build_from(operands, {"metadata": metadata, "sfa": sfa, "sfb": sfb}, properties)

    @property
    def word(self) -> str:
        """The modifier that says how many elements share a scale factor; empty for the default of the kind."""
        return "" if self.scale is None else self.scale.data

    @property
    def factors(self) -> int:
        """The scale factors of a row."""
        if self.of is MmaKind.MXF8F6F4:
            return 1
        return 4 if self.word in ("scale_vec::4X", "block16") else 2

    @property
    def sfa_bytes(self) -> int | None:
        """The bytes of the cells that have the scale factors of A, in the four quarters of the lanes."""
        given = self.described
        return None if given is None else given.m // 32 * 512

    @property
    def sfb_bytes(self) -> int | None:
        """The bytes of those of B: each block of a pair has all of them."""
        given = self.described
        return None if given is None else -(-given.n // 32) * 512 * self.blocks

    @property
    def scale_words(self) -> str:
        return ".".join(["block_scale", *([self.word] if self.word else [])])

    @property
    def targets(self) -> Targets:
        if self.word.startswith("scale_vec") or (self.is_sparse and self.of.is_dense_fp4):
            return SINGLE
        return TCGEN05.since(100, 88) if self.word else TCGEN05

    def verify_(self) -> None:
        super().verify_()
        if self.word not in SCALES[self.of]:
            known = ", ".join(word or "none" for word in SCALES[self.of])
            refuse_form(f'the scales of {self.kind.data} are {known}; not "{self.word or "none"}"')


def _given(kind: str, group: int, collector: str) -> dict[str, Attribute | None]:
    return {
        "kind": StringAttr(kind),
        "group": IntegerAttr(group, i64),
        "collector": StringAttr(collector) if collector else None,
    }


@row
class TensorCommitOp(GroupOp):
    """`ptx.tcgen05.commit cta_group 1 %bar`, `ptx.tcgen05.commit cta_group 2 %bar multicast %mask`: an arrival at an
    mbarrier once all multiplications, copies and shifts are complete that the thread has issued (PTX ISA,
    tcgen05.commit). `mask`, an i16, has the ranks of the blocks whose mbarriers at the same place it arrives at.

    Preconditions: one thread executes it, the one that issued them.
    """

    name = "ptx.tcgen05.commit"
    bar: SSAValue = operand(SHARED)
    multicast: SSAValue | None = optional_operand(I16, default=None)
    traits = traits_def(
        by_thread(ends(Group.TENSOR_CORE), Effect(Act.ARRIVES, Mbarrier("bar"), Proxy.ASYNC, Group.TENSOR_CORE))
    )
    assembly_format = "`cta_group` $group $bar (`multicast` $multicast^)? attr-dict"

    def mnemonic(self) -> str:
        multicast = "" if self.multicast is None else ".multicast::cluster"
        return f"tcgen05.commit.{self.suffix}.mbarrier::arrive::one.shared::cluster{multicast}.b64"
