# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives of tensor memory and its tensor core (PTX ISA, tcgen05; sm_100a and sm_103a)."""

from enum import Enum
from typing import Any

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType, i16, i32
from xdsl.ir import SSAValue

from ...base.element_types import BY_NAME
from ...base.errors import Code, TilefoldError
from ...base.target import WARP
from ...dialects import ptx
from ...dialects.ptx.base import scalar_bits
from ...layout.algebra.core import Layout
from ...layout.atoms.tcgen05_shapes import shape_named
from ...layout.atoms.umma_descriptors import InstructionDescriptor, MmaKind, Swizzling
from ..scalars.casts import from_vector, in_vector
from ..scalars.dtypes import DTYPES, Boolean, DType, Float32, Int32, Int64, as_dtype
from ..scalars.operators import Operand
from ..scalars.values import Int, convert, wrap
from ..tensors.fragments import load
from ..tensors.tensor_base import registers
from ..tensors.tensors import Tensor
from ..tracing.cuda_names import NamedEnum
from ..tracing.state import emit, insert_value
from .barriers import address
from .enums import CTAGroup
from .tmem_addresses import TmemAddr, TmemPointer

WARPS_OF_LANES = 4
"""The warps whose lanes make up those of tensor memory."""


class Tcgen05MMAKind(Enum):
    """The kinds of multiplications."""

    F16 = "f16"
    TF32 = "tf32"
    F8F6F4 = "f8f6f4"
    I8 = "i8"


class Tcgen05SmemSwizzle(Enum):
    """The forms of matrices in shared memory, as descriptors encode them."""

    NONE = Swizzling.NONE.value
    SWIZZLE_128B_BASE32B = Swizzling.BYTES_128_ATOM_32.value
    SWIZZLE_128B = Swizzling.BYTES_128.value
    SWIZZLE_64B = Swizzling.BYTES_64.value
    SWIZZLE_32B = Swizzling.BYTES_32.value


class Tcgen05Wait(NamedEnum):
    """The work that a wait waits for."""

    LOAD = "ld"
    STORE = "st"


class Tcgen05Fence(Enum):
    """On which side of a synchronisation of threads a fence stands."""

    BEFORE_THREAD_SYNC = "before_thread_sync"
    AFTER_THREAD_SYNC = "after_thread_sync"


class Tcgen05MMACollectorOp(Enum):
    """How the collector buffer near the tensor core treats A."""

    DISCARD = "discard"
    LASTUSE = "lastuse"
    FILL = "fill"
    USE = "use"


class Tcgen05LdStShape(Enum):
    """The shapes of loads and stores."""

    SHAPE_32X32B = "32x32b"
    SHAPE_16X64B = "16x64b"
    SHAPE_16X128B = "16x128b"
    SHAPE_16X256B = "16x256b"
    SHAPE_16X32BX2 = "16x32bx2"


def make_tmem_ptr(number: object, dtype: object = Float32) -> TmemPointer:
    """The pointer to elements of tensor memory at an address."""
    return TmemPointer(number, dtype)


def make_tmem_ptr_from_warp_row_col(base: Operand, warp: Operand, col: Operand, dtype: DType = Float32) -> TmemPointer:
    """The pointer to elements in the lanes of a warp, by its number, at a column offset from an address."""
    rows = convert(warp, Int32) % WARPS_OF_LANES * WARP << 16
    return TmemPointer(TmemAddr(base).number + rows + convert(col, Int32), dtype)


def cell(x: object) -> SSAValue:
    """The address of a cell."""
    if isinstance(x, TmemAddr):
        x = x.as_ptr()
    if not isinstance(x, TmemPointer):
        message = f"expected an address in tensor memory, got {type(x).__name__}"
        raise TilefoldError(Code.BUILD_VALUE, message, "make it by make_tmem_ptr, or TmemAddr(...).as_ptr")
    return x.ssa


def group_of(group: Any) -> int:
    """The blocks of an instruction, which a word or a number says."""
    if isinstance(group, CTAGroup):
        return group.value
    return {"cta_1": 1, "cta_2": 2}.get(str(group), 0) or int(group)


class Tcgen05SmemDesc(Int):
    """The descriptor of a matrix in shared memory, an integer of 64 bits. A sum with a number is the descriptor of a
    matrix that begins this many units of 16 bytes further on.
    """

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        number = convert(value, Int64)
        assert isinstance(number, Int)
        super().__init__(number.ssa, Int64, number.known, number.range)

    @staticmethod
    def build(
        start_address: object,
        leading_byte_offset: int,
        stride_byte_offset: int,
        layout: Any = Tcgen05SmemSwizzle.NONE,
        base_offset: int = 0,
    ) -> "Tcgen05SmemDesc":
        """The descriptor of a matrix with these distances in bytes and this form, which begins at an address."""
        code = layout.value if isinstance(layout, Enum) else int(layout)
        op = ptx.TensorDescriptorOp(address(start_address).ssa, leading_byte_offset >> 4, stride_byte_offset >> 4, code)
        made = wrap(emit(op).results[0])
        return Tcgen05SmemDesc(made | base_offset << 49 if base_offset else made)

    def advance_start_address(self, bytes: Any) -> "Tcgen05SmemDesc":
        """The descriptor of a matrix that begins some bytes further on."""
        return Tcgen05SmemDesc(self + (convert(bytes, Int64) >> 4))


_CODES = {name: code for kind in MmaKind if not kind.is_scaled for code, name in kind.inputs.items()}
_SUMS = {name: code for kind in MmaKind for code, name in kind.outputs.items()}


class Tcgen05InstrDesc:
    """The instruction descriptor of a multiplication."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    @staticmethod
    def build(
        c_dtype: object = Float32,
        a_dtype: object = None,
        b_dtype: object = None,
        *,
        n_dim: int,
        m_dim: int,
        a_major: object = 0,
        b_major: object = 0,
        negate_a: bool = False,
        negate_b: bool = False,
        saturate: bool = False,
    ) -> "Tcgen05InstrDesc":
        """From types, f16 where none is given, M and N, and majors: 0 where K is contiguous, else 1. Operands of
        Float32 count as TFloat32, whose bits beyond the first 19 the tensor core does not read.
        """
        codes = [0 if x is None else code_of(_operand(x), _CODES) for x in (a_dtype, b_dtype)]
        majors = [bool(x.value if isinstance(x, Enum) else x) for x in (a_major, b_major)]
        return Tcgen05InstrDesc(
            InstructionDescriptor(
                MmaKind.F16, m_dim, n_dim, d=code_of(c_dtype, _SUMS), a=codes[0], b=codes[1], a_is_mn=majors[0],
                b_is_mn=majors[1], negate_a=negate_a, negate_b=negate_b, saturate=saturate,
            ).value
        )  # fmt: skip


def _operand(dtype: object) -> DType:
    element = as_dtype(dtype)
    return DTYPES["TFloat32"] if element is Float32 else element


def code_of(dtype: object, codes: dict[str, int]) -> int:
    """The code of an element type in an instruction descriptor. Raises TilefoldError (E5002) for one without a code."""
    name = BY_NAME[as_dtype(dtype).name].ptx
    if name not in codes:
        raise TilefoldError(
            Code.BUILD_VALUE, f"this tensor-core instruction does not support {dtype}", f"it has {', '.join(codes)}"
        )
    return codes[name]


def tcgen05_alloc(ptr: Any, ncols: Operand, group: Any = CTAGroup.CTA_1) -> None:
    """Allocates columns of tensor memory; their address goes to shared memory (PTX ISA, tcgen05.alloc). A whole warp
    executes it.
    """
    emit(ptx.TensorAllocOp(group_of(group), address(ptr).ssa, convert(ncols, Int32).ssa))


def tcgen05_dealloc(tmem_ptr: Any, ncols: Operand, group: Any = CTAGroup.CTA_1) -> None:
    """Frees columns as they were allocated (PTX ISA, tcgen05.dealloc)."""
    emit(ptx.TensorDeallocOp(group_of(group), cell(tmem_ptr), convert(ncols, Int32).ssa))


def tcgen05_relinquish_alloc_permit(group: object = CTAGroup.CTA_1) -> None:
    """The block allocates nothing more (PTX ISA, tcgen05.relinquish_alloc_permit)."""
    emit(ptx.TensorRelinquishOp(group_of(group)))


def tcgen05_ld(
    shape: object, tmem_ptr: object, num: int = 1, *, pack: bool = False, offset: int | None = None
) -> Operand:
    """Loads `num` units of a shape: the registers as a vector, of floats for a pointer to such of 32 or 16 bits, else
    of Int32 (PTX ISA, tcgen05.ld).
    """
    name = shape.value if isinstance(shape, Enum) else str(shape)
    op = ptx.TensorLoadRegistersOp(name, num, cell(tmem_ptr), packed=pack, offset=offset)
    given = getattr(tmem_ptr, "dtype", Int32)
    dtype = given if given.kind == "float" and given.bits in (16, 32) else Int32
    count = op.registers * 32 // dtype.bits
    words = emit(op).results[0]
    if dtype is not Int32:
        words = insert_value(vector.BitcastOp(words, VectorType(dtype.ir, [count])))
    held = Tensor(registers(dtype, Layout(count, 1)).ssa, dtype)
    for index, word in enumerate(from_vector(words, count)):
        held[index] = wrap(word, dtype)
    return load(held)


def tcgen05_st(
    shape: object, tmem_ptr: object, value: Operand, *, unpack: bool = False, offset: int | None = None
) -> None:
    """Stores registers, of 32 bits each (PTX ISA, tcgen05.st)."""
    name = shape.value if isinstance(shape, Enum) else str(shape)
    count = getattr(value, "size", None) or len(value)
    items = [_word(value[i]) for i in range(count)]
    whole = in_vector(items)
    bits = scalar_bits(items[0].type) or 32
    if bits != 32 or items[0].type != i32:
        count = count * bits // 32
        whole = insert_value(vector.BitcastOp(whole, VectorType(i32, [count])))
    num = count // shape_named(name).registers
    emit(ptx.TensorStoreRegistersOp(name, num, whole, cell(tmem_ptr), packed=unpack, offset=offset))


def _word(value: Operand) -> SSAValue:
    """A value in registers: as it is, or an Int32."""
    ssa: SSAValue | None = getattr(value, "ssa", None)
    return convert(value, Int32).ssa if ssa is None or scalar_bits(ssa.type) not in (16, 32) else ssa


def tcgen05_wait(kind: Tcgen05Wait | str) -> None:
    """Waits for the loads or the stores of the warp, "load" or "store" (PTX ISA, tcgen05.wait)."""
    emit(ptx.TensorWaitOp(Tcgen05Wait(kind).value))


def tcgen05_fence(kind: Tcgen05Fence) -> None:
    """Orders accesses before or after a synchronisation of threads (PTX ISA, tcgen05.fence)."""
    emit(ptx.TensorFenceOp(kind.value))


def tcgen05_mma(
    kind: Tcgen05MMAKind,
    group: Any,
    d: Any,
    a: Any,
    b: Any,
    idesc: Any,
    enable_input_d: Operand = True,
    *,
    collector_op: Any = None,
    a_shift: bool | None = None,
    scale_input_d: int | None = None,
    write_disable_mask: Any = None,
) -> None:
    """Starts D = A * B + D, or A * B where `enable_input_d` does not hold (PTX ISA, tcgen05.mma). One thread executes
    it.
    """
    first = convert(a, Int64).ssa if isinstance(a, Int) else cell(a)
    number = idesc.value if isinstance(idesc, Tcgen05InstrDesc) else idesc
    operands = [
        cell(d), first, convert(b, Int64).ssa, convert(number, Int32).ssa, convert(enable_input_d, Boolean).ssa,
    ]  # fmt: skip
    word = collector_op.value if isinstance(collector_op, Enum) else collector_op
    mask = [] if write_disable_mask is None else [convert(x, Int32).ssa for x in write_disable_mask]
    emit(
        ptx.TensorMmaOp(
            kind.value, group_of(group), operands, mask=mask, scale_d=scale_input_d, ashift=bool(a_shift),
            collector=f"a::{word}" if word else "",
        )
    )  # fmt: skip


def tcgen05_commit(mbar: object, multicast_mask: Operand = None, group: object = CTAGroup.CTA_1) -> None:
    """Arrives at an mbarrier, or at those of a mask of blocks, once the work that the thread has issued is complete
    (PTX ISA, tcgen05.commit).
    """
    mask = None if multicast_mask is None else convert(multicast_mask, as_dtype(i16)).ssa
    emit(ptx.TensorCommitOp(group_of(group), address(mbar).ssa, mask))
