# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix descriptors: the place and form of an operand of tcgen05 in shared memory."""

from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import result_def, traits_def
from xdsl.traits import Pure

from ....layout.atoms.umma_descriptors import FIELD, SmemDescriptor, Swizzling
from ...definitions import number, operand, prop, row
from ..base import SHARED
from .base import Tcgen05Op, refuse_form


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
