# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of 4, 6 and 8 bits on their way to tensor memory: `ptx.tcgen05.cp` gives each a byte, and multiplications
take A from there; warps load columns of bytes to convert them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.primitives.arrays import Array

from tilefold import cute
from tilefold.cutlass.experimental import primitives
from tilefold.cutlass.experimental import primitives as prims

SMEM = cute.AddressSpace.smem
M, N, K = 128, 16, 32
FORMATS = {4: prims.Tcgen05CpSrcFormat.B4X16_P64, 6: prims.Tcgen05CpSrcFormat.B6X16_P32}


@cute.kernel
def multiply(A: cute.Tensor, B: cute.Tensor, cells: cute.Tensor, D: cute.Tensor, a_type: cute.Constexpr) -> None:
    """Copies A to tensor memory, 16 elements in each 16 bytes of shared memory, and multiplies it there."""
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.warp_idx()
    a, b = Array(cute.Uint8, (K // 16, M, 16), SMEM), Array(cute.Uint8, (K // 16, N, 16), SMEM)
    bar, slot = Array(cute.Int64, 1, SMEM), Array(cute.Int32, 1, SMEM)
    for k in cute.range_constexpr(K):
        a[k // 16, t, k % 16] = A[t, k]
        if t < N:
            b[k // 16, t, k % 16] = B[t, k]
    if warp == 0:
        prims.tcgen05_alloc(slot, 32)
    if t == 0:
        prims.mbarrier_init(bar, 1)
        prims.fence_mbarrier_init()
    cute.arch.fence_proxy("async")
    cute.arch.barrier()
    narrow = prims.TmemAddr(slot[0] + N)
    if t == 0:
        build, form = prims.Tcgen05SmemDesc.build, prims.Tcgen05SmemSwizzle.NONE
        shape, multicast = prims.S2TCopyMode.S2T_128x256b
        prims.tcgen05_cp(
            shape, narrow.as_ptr(cute.Int32), build(a, M * 16, 128, form), multicast=multicast,
            src_format=FORMATS[a_type.bits],
        )  # fmt: skip
        prims.tcgen05_mma(
            prims.Tcgen05MMAKind.F8F6F4, prims.CTAGroup.CTA_1, prims.make_tmem_ptr(slot[0], cute.Float32),
            narrow.as_ptr(cute.Int32), build(b, N * 16, 128, form),
            prims.Tcgen05InstrDesc.build(cute.Float32, a_type, cute.Float8E4M3FN, n_dim=N, m_dim=M), False,
        )  # fmt: skip
        prims.tcgen05_commit(bar)
    cute.arch.mbarrier_wait(bar.pointer.address, 0)
    prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
    base = prims.TmemAddr(slot[0])
    for n in cute.range_constexpr(2):
        row = prims.TmemAddr.from_row_col(base.row_id + warp * 32, base.col_id + n * N)
        values = prims.tcgen05_ld("32x32b", row.as_ptr(cute.Int32 if n else cute.Float32), num=8 if n else N)
        prims.tcgen05_wait(prims.Tcgen05Wait.LOAD)
        for i in cute.range_constexpr(8 if n else N):
            if cute.const_expr(n):
                cells[t, i] = values[i]
            else:
                D[t, i] = values[i]
    cute.arch.barrier()
    if warp == 0:
        prims.tcgen05_dealloc(prims.make_tmem_ptr(slot[0], cute.Int32), 32)


def value_of(code: int, exponent: int, mantissa: int) -> float:
    """The number of a code of 1, `exponent` and `mantissa` bits (OCP Microscaling Formats, 5.3)."""
    bias, field = 2 ** (exponent - 1) - 1, code >> mantissa & (1 << exponent) - 1
    part = code & (1 << mantissa) - 1
    size = (part + (1 << mantissa if field else 0)) * 2.0 ** (max(field, 1) - bias - mantissa)
    return -size if code >> (exponent + mantissa) else size


@pytest.mark.parametrize(
    ("a_type", "form", "place"),
    [(cute.Float4E2M1FN, (2, 1), 2), (cute.Float6E3M2FN, (3, 2), 1)],
    ids=str,
)
def test_a_copy_puts_elements_into_the_middle_of_bytes(a_type: Any, form: tuple[int, int], place: int) -> None:
    chance, bits = np.random.default_rng(5), a_type.bits
    codes = chance.integers(0, 1 << bits, (M, K)).astype(np.uint8)
    single = np.unpackbits(codes[:, :, None], axis=2, bitorder="little")[:, :, :bits].reshape(M, K // 16, 16 * bits)
    packed = np.full((M, K // 16, 16), 0xEE, np.uint8)
    packed[:, :, : 2 * bits] = np.packbits(single, axis=2, bitorder="little")
    ones = np.where(chance.integers(0, 2, (N, K)), 0x38, 0xB8).astype(np.uint8)
    cells, d = np.zeros((M, 8), np.int32), np.zeros((M, N), np.float32)
    multiply(packed.reshape(M, K), ones, cells, d, a_type).launch(grid=1, block=M, device="sim")
    assert np.array_equal(cells.view(np.uint8), codes << np.uint8(place))
    numbers = np.array([value_of(code, *form) for code in range(1 << bits)], np.float32)[codes]
    assert np.array_equal(d, numbers @ np.where(ones == 0x38, 1, -1).astype(np.float32).T)


@cute.kernel
def columns(A: cute.Tensor, B: cute.Tensor, matrices: cute.Constexpr) -> None:
    """A warp loads columns of bytes from shared memory, in the order in which `St16x256bOp` stores them."""
    t, _, _ = cute.arch.thread_idx()
    rows = 16 * matrices
    held = cute.make_tensor(
        cute.arch.alloc_smem(cute.Int8, 16 * rows, alignment=128), cute.make_layout((16, rows), stride=(1, 16))
    )
    for k in cute.range_constexpr(rows // 2):
        held[t % 16, 2 * k + t // 16] = A[t % 16, 2 * k + t // 16]
    cute.arch.barrier()
    atom = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix16x16x8bOp(transpose=True, num_matrices=matrices), cute.Int8)
    values = cute.make_layout(((4, 8), (4, 2, matrices)), stride=((64, 1), (16, 8, 256)))
    copy = cute.make_tiled_copy(atom, values, (16, rows)).get_slice(t)
    source, target = copy.partition_S(held), copy.partition_D(B)
    registers = cute.make_rmem_tensor(target.shape, cute.Int8)
    cute.copy(copy, source, registers)
    cute.autovec_copy(registers, target)


@pytest.mark.parametrize("stage", ["cute", "ptx"])
@pytest.mark.parametrize("matrices", [1, 2])
def test_a_warp_loads_columns_of_bytes(matrices: int, stage: str) -> None:
    a = np.random.default_rng(7).integers(-128, 128, (16, 16 * matrices)).astype(np.int8)
    b = np.zeros_like(a)
    columns(a, b, matrices).launch(grid=1, block=32, device="sim", stage=stage)
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (cute.nvgpu.warp.LdMatrix16x16x8bOp(), "ldmatrix transposes matrices of 16 x 16 elements"),
        (cute.nvgpu.warp.LdMatrix16x16x8bOp(True, 1, 4), "no atom transposes matrices of 16 x 16 elements of 4 bits"),
        (cute.nvgpu.warp.LdMatrix8x16x8bOp(False, 1, 4), "makes bytes of elements of 4 bits"),
    ],
)  # fmt: skip
def test_other_loads_of_matrices_are_refused(op: Any, text: str) -> None:
    with pytest.raises(TilefoldError, match=text):
        cute.make_copy_atom(op, cute.Int8)


@dataclass(frozen=True)
class Form:
    """A map of elements of 4 or 6 bits, the width of its boxes, and the bytes that the mbarrier waits for."""

    swizzle: primitives.TensorMapSwizzle = primitives.TensorMapSwizzle.none
    format: primitives.TensorMapDataFormat = primitives.TensorMapDataFormat.DEFAULT
    width: int = 128
    bytes: int = 512
    element: Any = cute.Float4E2M1FN


@cute.kernel
def padded(A: cute.Tensor, B: cute.Tensor, form: cute.Constexpr) -> None:
    """A TMA copy pads rows of 128 elements of 4 or 6 bits; B is what shared memory has then."""
    t, _, _ = cute.arch.thread_idx()
    held, bar = Array(cute.Uint8, (8, 128), SMEM, alignment=1024), Array(cute.Int64, 1, SMEM)
    tensor_map = primitives.create_tensor_map_tiled(
        A.iterator.toint(), form.element, global_dims=[256, 8], global_strides=[2 * form.element.bits],
        box_dims=[form.width, 8], swizzle=form.swizzle, tma_format=form.format,
    )  # fmt: skip
    if t == 0:
        prims.mbarrier_init(bar, 1)
        prims.fence_mbarrier_init()
        assert tensor_map.global_tx_bytes() == form.element.bits * form.width
        prims.mbarrier_arrive_expect_tx(bar, form.bytes)
        prims.cp_async_bulk_tensor_shared_cta_global(held, tensor_map.get_ptr(), (128, 0), bar)
    cute.arch.barrier()
    cute.arch.mbarrier_wait(bar.pointer.address, 0)
    for row in cute.range_constexpr(8):
        for part in cute.range_constexpr(4):
            B[row, 4 * t + part] = held[row, 4 * t + part]


@pytest.mark.parametrize("swizzle", [primitives.TensorMapSwizzle.none, primitives.TensorMapSwizzle.s128b])
@pytest.mark.parametrize("stage", ["cute", "instr", "ptx"])
def test_a_tma_copy_pads_elements(swizzle: Any, stage: str) -> None:
    a = np.random.default_rng(9).integers(0, 256, (8, 128)).astype(np.uint8)
    b = np.zeros((8, 128), np.uint8)
    padded(a, b, Form(swizzle)).launch(grid=1, block=32, device="sim", stage=stage)
    groups = b.reshape(8, 8, 16)
    if swizzle is primitives.TensorMapSwizzle.s128b:
        groups = np.stack([row[np.arange(8) ^ number] for number, row in enumerate(groups)])
    assert np.array_equal(groups[:, :, :8].reshape(8, 64), a[:, 64:])


@pytest.mark.parametrize("stage", ["cute", "instr", "ptx"])
def test_a_tma_copy_pads_elements_of_6_bits(stage: str) -> None:
    a = np.random.default_rng(9).integers(0, 256, (8, 192)).astype(np.uint8)
    b = np.zeros((8, 128), np.uint8)
    form = Form(element=cute.Float6E3M2FN, format=primitives.TensorMapDataFormat.B6X16_P32, bytes=768)
    padded(a, b, form).launch(grid=1, block=32, device="sim", stage=stage)
    assert np.array_equal(b.reshape(8, 8, 16)[:, :, :12].reshape(8, 96), a[:, 96:])


MISTAKES = {
    "elements are not padded": (Form(format=primitives.TensorMapDataFormat.B4X16), "E3204"),
    "padded bytes are expected": (Form(bytes=1024), "E3207"),
    "a box of 64 padded elements": (Form(width=64, bytes=256), "E0323"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_with_padded_elements(name: str) -> None:
    form, code = MISTAKES[name]
    with pytest.raises(TilefoldError) as caught:
        padded(np.zeros((8, 128), np.uint8), np.zeros((8, 128), np.uint8), form).launch(grid=1, block=32, device="sim")
    assert caught.value.code == code, str(caught.value)
    assert caught.value.hint
