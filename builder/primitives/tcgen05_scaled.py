# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives of scaled multiplications, and of the copies that bring their factors to tensor memory (PTX ISA, tcgen05;
sm_100a and sm_103a).
"""

from dataclasses import replace
from enum import Enum
from typing import Any

from ...dialects import ptx
from ...layout.atoms.umma_descriptors import InstructionDescriptor, MmaKind
from ..scalars.dtypes import Boolean, Int32, Int64
from ..scalars.operators import Operand
from ..scalars.values import Int, Scalar, convert
from ..tracing.state import emit
from .enums import CTAGroup
from .tcgen05 import cell, code_of, group_of


class S2TCopyMode:
    """The shapes of copies from shared to tensor memory: each with the word for the warps that get the same, or
    None.
    """

    S2T_128x256b = ("128x256b", None)
    S2T_128x128b = ("128x128b", None)
    S2T_4x256b = ("4x256b", None)
    S2T_64x128b_WARPX2_02_13 = ("64x128b", "warpx2::02_13")
    S2T_64x128b_WARPX2_01_23 = ("64x128b", "warpx2::01_23")
    S2T_32x128b_WARPX4 = ("32x128b", "warpx4")


class Tcgen05CpSrcFormat(Enum):
    """Elements of 4 and 6 bits that a copy puts into bytes."""

    B6X16_P32 = "b6x16_p32"
    B4X16_P64 = "b4x16_p64"


class MMABlockScaleKind(Enum):
    """The kinds of scaled multiplications."""

    MXF8F6F4 = MmaKind.MXF8F6F4.value
    MXF4 = MmaKind.MXF4.value
    MXF4NVF4 = MmaKind.MXF4NVF4.value


class Tcgen05MMABlockScale(Enum):
    """How many elements along K share a factor."""

    BLOCK16 = "block16"
    BLOCK32 = "block32"


def tcgen05_cp(
    shape: str,
    tmem_ptr: object,
    smem_desc: Scalar,
    *,
    group: object = CTAGroup.CTA_1,
    multicast: str | None = None,
    src_format: Tcgen05CpSrcFormat | None = None,
) -> None:
    """Starts a copy of a matrix from shared to tensor memory (PTX ISA, tcgen05.cp); shape and multicast are those of an
    `S2TCopyMode`. One thread executes it.
    """
    name = shape if multicast is None else f"{shape}.{multicast}"
    unpack = None if src_format is None else src_format.value
    emit(ptx.TmaCopySharedOp(group_of(group), name, cell(tmem_ptr), convert(smem_desc, Int64).ssa, unpack))


class _ScaledInstrDesc:
    """The instruction descriptor of a scaled multiplication."""

    __slots__ = ("fields",)
    KIND: MmaKind

    def __init__(self, fields: InstructionDescriptor) -> None:
        self.fields = fields

    @classmethod
    def build(
        cls,
        a_dtype: object = None,
        b_dtype: object = None,
        *,
        n_dim: int,
        m_dim: int,
        scale_format: int = 0,
        a_major: object = 0,
        b_major: object = 0,
        negate_a: bool = False,
        negate_b: bool = False,
        a_sf_id: int = 0,
        b_sf_id: int = 0,
    ) -> Any:
        """From types, M and N, and the type of factors: 0 for e4m3 without a sign, 1 for powers of 2."""
        codes = {name: code for code, name in cls.KIND.inputs.items()}
        first = min(codes.values())
        a, b = (first if x is None else code_of(x, codes) for x in (a_dtype, b_dtype))
        majors = [bool(x.value if isinstance(x, Enum) else x) for x in (a_major, b_major)]
        return cls(
            InstructionDescriptor(
                cls.KIND, m_dim, n_dim, a=a, b=b, a_is_mn=majors[0], b_is_mn=majors[1], negate_a=negate_a,
                negate_b=negate_b, scale_type=scale_format, a_scale=a_sf_id, b_scale=b_sf_id,
            )
        )  # fmt: skip

    def set_sf_ids(self, a_sf_id: int = 0, b_sf_id: int = 0) -> Any:
        """The descriptor with the numbers of the factors in their cells."""
        return type(self)(replace(self.fields, a_scale=a_sf_id, b_scale=b_sf_id))


class Tcgen05MxInstrDesc(_ScaledInstrDesc):
    """That of elements of 8, 6 and 4 bits in bytes."""

    KIND = MmaKind.MXF8F6F4


class Tcgen05MxOmmaInstrDesc(_ScaledInstrDesc):
    """That of elements of 4 bits, two in a byte."""

    KIND = MmaKind.MXF4NVF4


def tcgen05_mma_block_scale(
    kind: MMABlockScaleKind,
    group: object,
    d: Any,
    a: Scalar,
    b: Scalar,
    idesc: Scalar,
    enable_input_d: Operand = True,
    scale_a: object = None,
    scale_b: object = None,
    *,
    scale_vec_size: Tcgen05MMABlockScale | None = None,
    collector_op: object = None,
) -> None:
    """Starts D = (A * scale_a) * (B * scale_b) + D, or without D where `enable_input_d` does not hold (PTX ISA,
    tcgen05.mma). One thread executes it.
    """
    first = convert(a, Int64).ssa if isinstance(a, Int) else cell(a)
    number = idesc.fields.value if isinstance(idesc, _ScaledInstrDesc) else idesc
    operands = [cell(d), first, convert(b, Int64).ssa, convert(number, Int32).ssa, convert(enable_input_d, Boolean).ssa]
    word = collector_op.value if isinstance(collector_op, Enum) else collector_op
    emit(
        ptx.TensorMmaScaledOp(
            kind.value, group_of(group), operands, (cell(scale_a), cell(scale_b)),
            scale="" if scale_vec_size is None else scale_vec_size.value, collector=f"a::{word}" if word else "",
        )
    )  # fmt: skip
