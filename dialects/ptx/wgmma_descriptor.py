# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix descriptors: the place and form of an operand of wgmma in shared memory."""

from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.target import Targets
from ...layout.atoms.wgmma import WGMMA_TARGETS
from ...layout.atoms.wgmma_smem import START_MASK, MatrixDescriptor
from ..definitions import number, operand, prop, row
from .base import SHARED, PtxOp


@row
class WgmmaDescriptorOp(PtxOp):
    """`%d = ptx.wgmma.descriptor %p leading 1 stride 64 swizzle 3`: the matrix descriptor of an operand that begins at
    `p`, for `ptx.wgmma.mma_async` (PTX ISA, Asynchronous warpgroup-level matrix instructions: matrix descriptors). No
    instruction of its own.

    `leading` and `stride` are its byte offsets in units of 16 bytes. `swizzle` is the number of address bits that the
    hardware xors: none, or 1 in 32 bytes, 2 in 64 and 3 in 128. A descriptor plus 1 begins 16 bytes further on.
    """

    name = "ptx.wgmma.descriptor"
    ptr: SSAValue = operand(SHARED)
    leading: IntegerAttr[I64] = prop(converter=number)
    stride: IntegerAttr[I64] = prop(converter=number)
    swizzle: IntegerAttr[I64] = prop(converter=number)
    result = result_def(I64)
    traits = traits_def(Pure())
    assembly_format = "$ptr `leading` $leading `stride` $stride `swizzle` $swizzle attr-dict"

    TARGETS: ClassVar[Targets | None] = WGMMA_TARGETS

    @property
    def fields(self) -> MatrixDescriptor:
        """The descriptor of an operand at address 0."""
        leading, stride, swizzle = (field.value.data for field in (self.leading, self.stride, self.swizzle))
        return MatrixDescriptor.of(0, leading, stride, swizzle)

    def verify_(self) -> None:
        for name, field in (("leading", self.leading), ("stride", self.stride)):
            if not 0 <= field.value.data <= START_MASK:
                raise VerifyException(f"the field `{name}` is {field.value.data}; it has 14 bits")
        if not 0 <= self.swizzle.value.data <= 3:
            raise VerifyException(f"the swizzle xors {self.swizzle.value.data} bits; 0 to 3 are possible")
