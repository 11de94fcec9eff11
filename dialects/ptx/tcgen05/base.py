# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common parts of tcgen05 instructions: targets, the block or pair of blocks that issues them, and the descriptors
of their operands in shared memory.
"""

from typing import ClassVar, NoReturn

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import result_def, traits_def
from xdsl.traits import Pure

from ....base.errors import Code, TilefoldError
from ....base.spaces import TMEM
from ....base.target import TargetFamily, Targets
from ....layout.atoms.umma_descriptors import FIELD, SmemDescriptor, Swizzling
from ...definitions import fields, number, operand, prop, refuse, row
from ...kernel import kernel_of
from ..base import SHARED, PtrType, PtxOp, SpaceAttr

TENSOR = PtrType(SpaceAttr(TMEM))
"""An address in tensor memory: the lane in the upper 16 bits, the column in the lower 16."""


def _families(*first: tuple[int, int]) -> Targets:
    """Targets of each generation from some sm and PTX version on."""
    return Targets(frozenset([TargetFamily(sm, ptx, "f", sm // 10) for sm, ptx in first]))


def _exactly(*first: tuple[int, int]) -> Targets:
    """Single targets."""
    return Targets(frozenset([TargetFamily(sm, ptx, "a") for sm, ptx in first]))


TCGEN05 = _families((100, 86), (110, 90))
"""The targets of tcgen05 (its Target ISA Notes)."""
SINGLE = _exactly((100, 86), (103, 88), (110, 90))
"""Those of shifts, of scale_vec and of sparse matrices of 4 bits, which no target of a family has."""
INTEGERS = _exactly((100, 86), (110, 90))
"""Those of kind::i8, which sm_103a lacks."""
REDUCING = _exactly((103, 88), (110, 90))
"""Those of tcgen05.ld.red."""


class Tcgen05Op(PtxOp):
    """An instruction of tcgen05."""

    TARGETS: ClassVar[Targets | None] = TCGEN05


@fields
class GroupOp(Tcgen05Op):
    """An instruction of one block, `cta_group 1`, or of a pair of blocks, `cta_group 2`. A kernel has only one kind."""

    group: IntegerAttr[I64] = prop(converter=number)

    @property
    def blocks(self) -> int:
        """The number of blocks that it works for."""
        return self.group.value.data

    @property
    def suffix(self) -> str:
        """The modifier of PTX."""
        return f"cta_group::{self.blocks}"

    def verify_(self) -> None:
        if self.blocks not in (1, 2):
            refuse_form(f"cta_group is 1 or 2, not {self.blocks}")
        kernel = kernel_of(self)
        first = None if kernel is None else next((op for op in kernel.walk() if isinstance(op, GroupOp)), None)
        if first is not None and first.blocks != self.blocks:
            text = f"the kernel has instructions of cta_group {first.blocks} and of cta_group {self.blocks}"
            refuse_form(text, "let all tcgen05 instructions of a kernel have the same cta_group")


def refuse_form(text: str, hint: str = "") -> NoReturn:
    """Raises the error of an instruction that PTX does not have."""
    refuse(TilefoldError(Code.TENSOR_FORM, text, hint))


def constant_of(value: SSAValue) -> int | None:
    """The number that a value is, if it is a constant."""
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


@row
class TensorDescriptorOp(Tcgen05Op):
    """`%d = ptx.tcgen05.descriptor %p leading 1 stride 64 swizzling 2`: the descriptor of a matrix that begins at `p`,
    for `ptx.tcgen05.mma` and `ptx.tcgen05.cp` (PTX ISA, Shared memory descriptor). No instruction of its own.

    `leading` and `stride` are its byte offsets in units of 16 bytes. `swizzling` is the code of the form: 0 none, 2 of
    128 bytes, 4 of 64, 6 of 32, and 1 of 128 bytes in units of 32, for tf32 that is MN-major. A descriptor plus 1
    begins 16 bytes further on.
    """

    name = "ptx.tcgen05.descriptor"
    ptr: SSAValue = operand(SHARED)
    leading: IntegerAttr[I64] = prop(converter=number)
    stride: IntegerAttr[I64] = prop(converter=number)
    swizzling: IntegerAttr[I64] = prop(converter=number)
    result = result_def(I64)
    traits = traits_def(Pure())
    assembly_format = "$ptr `leading` $leading `stride` $stride `swizzling` $swizzling attr-dict"

    @property
    def fields(self) -> SmemDescriptor:
        """The descriptor of a matrix at address 0."""
        leading, stride, code = (field.value.data for field in (self.leading, self.stride, self.swizzling))
        return SmemDescriptor(0, leading, stride, code)

    def verify_(self) -> None:
        for name, field in (("leading", self.leading), ("stride", self.stride)):
            if not 0 <= field.value.data <= FIELD:
                refuse_form(f"the field `{name}` is {field.value.data}; it has 14 bits")
        codes = [form.value for form in Swizzling]
        if self.swizzling.value.data not in codes:
            refuse_form(f"the form is {', '.join(map(str, codes))}, not {self.swizzling.value.data}")
