# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Swizzles of pointers as libraries use them: partitions by addresses that are swizzled once, in place of each."""

from typing import Any

import numpy as np
import pytest
from tilefold.builder.control.builtin import is_instance

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cute import utils
from tilefold.cute.nvgpu import tcgen05, warp, warpgroup
from tilefold.cute.utils import blackwell_helpers
from tilefold.cutlass.mlir.dialects import cute as dialect
from tilefold.cutlass.mlir.dialects import cute_nvgpu, llvm


def _swizzled(pointer: Any) -> Any:
    """A pointer to the place to which the swizzle of its type maps its address."""
    kind = pointer.type.swizzle_type
    number, mask = pointer.toint(), ((1 << kind.num_bits) - 1) << kind.num_base + kind.num_shift
    number = number ^ ((number & mask) >> kind.num_shift)
    return cute.make_ptr(pointer.dtype, number, pointer.memspace, assumed_align=pointer.alignment)


def _in_its_layout(tensor: Any) -> Any:
    """The same tensor, the swizzle of whose pointer is one of its layout."""
    kind, width = tensor.iterator.type.swizzle_type, tensor.element_type.width
    inner = cute.make_swizzle(kind.num_bits, kind.num_base, kind.num_shift)
    bytes = cute.make_composed_layout(inner, 0, cute.recast_layout(8, width, tensor.layout))
    return cute.make_tensor(
        cute.recast_ptr(tensor.iterator, dtype=tensor.element_type), cute.recast_layout(width, 8, bytes)
    )


@cute.kernel
def store_fragments(x: cute.Tensor, by_address: cute.Constexpr[bool]):
    kind = warpgroup.SmemLayoutAtomKind.K_SW128
    layout: Any = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, cute.Float16), (64, 64), (0, 1))
    s = utils.SmemAllocator().allocate_tensor(cute.Float16, layout.outer, 1024, swizzle=layout.inner)
    t, _, _ = cute.arch.thread_idx()
    op = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((4, 1, 1)), permutation_mnk=(64, 16, 16))
    copy = cute.make_tiled_copy_C(cute.make_copy_atom(warp.StMatrix8x8x16bOp(num_matrices=4), cute.Float16), mma)
    part = copy.get_slice(t)
    target = part.partition_D(s)
    if by_address:
        target = cute.make_tensor(_swizzled(target.iterator), part.partition_D(_in_its_layout(s)).layout)
    fragment = cute.make_rmem_tensor(mma.get_slice(t).partition_shape_C((64, 64)), cute.Float16)
    for i in cute.range_constexpr(cute.size(fragment)):
        fragment[i] = cute.Float16(t) + cute.Float16(i / 100)
    cute.copy(copy, copy.retile(fragment), target)
    cute.arch.sync_threads()
    for i in range(t, 4096, 128):
        x[i // 64, i % 64] = s[i // 64, i % 64]


def test_a_partition_by_swizzled_addresses_is_the_partition() -> None:
    plain, swizzled = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16)
    for array, by_address in ((plain, False), (swizzled, True)):
        store_fragments(array, by_address).launch(grid=1, block=128)
    assert len(np.unique(plain)) > 1000
    np.testing.assert_array_equal(swizzled, plain)


def test_a_stage_takes_its_swizzle_into_its_layout() -> None:
    @cute.kernel
    def move(x: cute.Tensor, stage: cute.Int32):
        kind = warpgroup.SmemLayoutAtomKind.K_SW128
        layout: Any = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, cute.Float16), (8, 64, 3), (0, 1, 2))
        s = utils.SmemAllocator().allocate_tensor(cute.Float16, layout.outer, 1024, swizzle=layout.inner)
        t, _, _ = cute.arch.thread_idx()
        for part, from_ in ((s[None, None, 1], 0), (s[None, None, stage], 4)):
            other = _in_its_layout(part)
            for i in cute.range_constexpr(4):
                other[from_ + i, t] = x[from_ + i, t]
        cute.arch.sync_threads()
        for i in cute.range_constexpr(8):
            x[i, t] = -s[i, t, 1] if cute.const_expr(i < 4) else -s[i, t, stage]

    x = np.arange(1, 513, dtype=np.float16).reshape(8, 64)
    given = x.copy()
    move(x, 2).launch(grid=1, block=64)
    np.testing.assert_array_equal(x, -given)


def test_a_pointer_knows_its_swizzle_and_the_alignment_behind_it() -> None:
    seen: list[Any] = []

    @cute.kernel
    def look(x: cute.Tensor):
        layout = cute.make_layout((64, 64), stride=(64, 1))
        s = utils.SmemAllocator().allocate_tensor(cute.Float16, layout, 1024, swizzle=cute.make_swizzle(3, 4, 3))
        row = s[(x.shape[0], None)]
        t, _, _ = cute.arch.thread_idx()
        moved = cute.local_tile(s, (1, 8), (t, t)).iterator
        seen.extend([s.iterator.type.swizzle_type, s.iterator.alignment, moved.alignment, row.iterator.alignment])
        seen.append(x.iterator.type.swizzle_type.num_bits)

    look(np.zeros(4, np.float32)).launch(grid=1, block=8)
    assert seen == [cute.make_swizzle(3, 4, 3), 1024, 16, 16, 0]


def test_the_layout_of_a_tensor_with_a_swizzled_pointer_is_plain() -> None:
    seen: list[str] = []

    @cute.kernel
    def look(x: cute.Tensor):
        kind = warpgroup.SmemLayoutAtomKind.K_SW128
        layout: Any = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, cute.Float16), (64, 64, 2), (0, 1, 2))
        allocator = utils.SmemAllocator()
        s = allocator.allocate_tensor(cute.Float16, layout.outer, 1024, swizzle=layout.inner)
        by_layout = allocator.allocate_tensor(cute.Float16, layout, 1024)
        stage = s[None, None, 1]
        again = cute.make_tensor(stage.iterator, stage.layout)
        seen.extend(str(t.layout) for t in (s, stage, again, by_layout, by_layout[None, None, 0], _in_its_layout(s)))

    look(np.zeros(4, np.float32)).launch(grid=1, block=1)
    stage = "((8,8),(64,1)):((64,512),(1,0))"
    whole = "((8,8),(64,1),(1,2)):((64,512),(1,0),(0,4096))"
    assert seen == [whole, stage, stage, *(f"S<3,3,3> o 0 o {x}" for x in (whole, stage, whole))]


def test_descriptors_count_units_of_16_bytes() -> None:
    seen: list[str] = []

    @cute.kernel
    def look(x: cute.Tensor, kind: cute.Constexpr):
        major = tcgen05.OperandMajorMode(kind)
        of_group = tcgen05.CtaGroup.ONE
        mma = blackwell_helpers.make_trivial_tiled_mma(
            cute.Float16, major, major, cute.Float32, of_group, (128, 128)
        )  # fmt: skip
        layout = blackwell_helpers.make_smem_layout_b(mma, (128, 128, 128), cute.Float16, 3)
        s = utils.SmemAllocator().allocate_tensor(cute.Float16, layout.outer, 1024, swizzle=layout.inner)
        part = mma.make_fragment_B(s)
        seen.extend(str(t.layout) for t in (s, part, part[None, None, None, 1], part[None, 0, None, 2]))

    for kind in ("K", "MN"):
        look(np.zeros(4, np.float32), kind).launch(grid=1, block=32)
    assert seen == [
        "((128,16),1,(4,2),3):((64,1),0,(16,8192),16384)", "(1,1,(4,2),3):(0,0,(2,1024),2048)",
        "(1,1,(4,2)):(0,0,(2,1024))", "(1,(4,2)):(0,(2,1024))",
        "(((64,2),16),1,8,3):(((1,8192),64),0,1024,16384)", "(1,1,8,3):(0,0,128,2048)", "(1,1,8):(0,0,128)",
        "(1,8):(0,128)",
    ]  # fmt: skip


def test_a_thread_of_a_copy_stands_for_the_copy() -> None:
    seen: list[bool] = []

    @cute.kernel
    def look(x: cute.Tensor):
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16), cute.Float32)
        start = cute.arch.retrieve_tmem_ptr(cute.Float32, 16, cute.make_smem_tensor(1, cute.Int32).iterator)
        tiled = tcgen05.make_tmem_copy(load, cute.make_tensor(start, cute.make_layout((128, 16), stride=(65536, 1))))
        thread = tiled.get_slice(0)
        atoms = [
            blackwell_helpers.get_smem_store_op(utils.LayoutEnum.ROW_MAJOR, cute.Float16, cute.Float32, copy)
            for copy in (tiled, thread)
        ]
        for make in (cute.make_tiled_copy_D, cute.make_tiled_copy_S):
            seen.append(str(make(atoms[0], tiled)) == str(make(atoms[1], thread)))

    look(np.zeros(4, np.float32)).launch(grid=1, block=128)
    assert seen == [True, True]


def test_a_tensor_of_coordinates_is_a_tensor_to_programs() -> None:
    @cute.kernel
    def look(x: cute.Tensor):
        assert isinstance(cute.make_identity_tensor((4, 4)), cute.Tensor)
        assert not isinstance(x.layout, cute.Tensor)

    look(np.zeros(4, np.float32)).launch(grid=1, block=1)


def test_an_argument_of_the_host_is_a_tensor_to_programs() -> None:
    given = cute.runtime.from_dlpack(np.zeros(4, np.float32))
    assert is_instance(given, cute.Tensor)
    assert is_instance(given, int | cute.Tensor)
    assert not is_instance(given, cute.Layout)
    assert not is_instance(np.zeros(4), cute.Tensor)


def test_a_generic_pointer_keeps_its_memory() -> None:
    @cute.kernel
    def write(x: cute.Tensor):
        generic = llvm.addrspacecast(llvm.PointerType.get(cute.AddressSpace.generic), x.iterator.to_llvm_ptr())
        pointer = cute.make_ptr(x.element_type, generic, cute.AddressSpace.generic, assumed_align=4)
        assert pointer.memspace is cute.AddressSpace.gmem
        type = dialect.PtrType.get(cute_nvgpu.TmaDescriptorTiledType.get(), pointer.memspace, pointer.alignment)
        (dialect.recast_iter(type, pointer.value) + 1).store(2.0)

    x = np.zeros(2, np.float32)
    write(x).launch(grid=1, block=1)
    assert x.tolist() == [0, 2]


def test_the_type_of_elements_is_a_type_to_programs() -> None:
    @cute.kernel
    def look(x: cute.Tensor):
        assert isinstance(x.element_type, type)
        assert not isinstance(x, type)

    look(np.zeros(4, np.float32)).launch(grid=1, block=1)


@cute.kernel
def pack(x: cute.Tensor, out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    out[t] = cute.arch.inline_ptx("cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f", x[t], x[t + 4], results=cute.Int32)


def test_the_text_that_packs_two_halves() -> None:
    x, out = np.array([1.5, -2, np.nan, 1e9, 3, 4, 5, 1 / 3], np.float32), np.zeros(4, np.int32)
    pack(x, out).launch(grid=1, block=4)
    halves = out.view(np.float16).reshape(4, 2)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(halves, x.reshape(2, 4).T[:, ::-1].astype(np.float16))


def test_a_part_of_shared_memory_behind_a_tensor() -> None:
    @cute.kernel
    def look(out: cute.Tensor):
        s = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((2, 8), stride=(8, 1)), 16)
        half = cute.local_tile(s, (2, 4), (0, 0))
        t, _, _ = cute.arch.thread_idx()
        s[t // 8, t % 8] = cute.Float32(t)
        cute.arch.sync_threads()
        out[t] = cute.domain_offset((0, 4), half)[t // 8, t % 4]

    out = np.zeros(16, np.float32)
    look(out).launch(grid=1, block=16)
    np.testing.assert_array_equal(out, [4, 5, 6, 7, 4, 5, 6, 7, 12, 13, 14, 15, 12, 13, 14, 15])


def test_the_layout_of_a_slice_makes_the_slice() -> None:
    """A stage that the run chooses keeps its alignment, by which TMA copies are allowed."""

    @cute.kernel
    def slices(stage: cute.Int32) -> None:
        atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
        layout: Any = cute.tile_to_shape(atom, (64, 64, 2), (0, 1, 2))
        s = utils.SmemAllocator().allocate_tensor(cute.Float16, layout.outer, 1024, swizzle=layout.inner)
        part = s[None, None, stage]
        assert cute.make_tensor(part.iterator, part.layout).ir_type == part.ir_type
        assert cute.filter_zeros(part).ir_type == part.ir_type

    slices(1).build(32)


@pytest.mark.parametrize(("behind", "align"), [(0, 1024), (128, 128), (0, 128)])
def test_the_swizzle_of_a_pointer_that_is_a_number_is_of_addresses(behind: int, align: int) -> None:
    """As in CuTe, bits 4 to 6 of an address are exchanged by bits 7 to 9, wherever the tensor begins."""

    @cute.kernel
    def write(out: cute.Tensor) -> None:
        memory = cute.make_smem_tensor(1024, cute.Float16, 1024)
        start: Any = memory.iterator.toint()
        pointer = cute.make_ptr(cute.Float16, start + behind, cute.AddressSpace.smem, assumed_align=align)
        pointer = cute.recast_ptr(pointer, cute.make_swizzle(3, 4, 3))
        part: Any = cute.make_tensor(pointer, cute.make_layout((8, 64), stride=(64, 1)))
        t = cute.arch.thread_idx()[0]
        for i in cute.range_constexpr(32):
            memory[t + 32 * i] = 0.0
        cute.arch.sync_threads()
        for i in cute.range_constexpr(16):
            part[i // 2, t + 32 * (i % 2)] = cute.Float16(t + 32 * i + 1)
        cute.arch.sync_threads()
        for i in cute.range_constexpr(32):
            out[t + 32 * i] = memory[t + 32 * i]

    out, expected = np.zeros(1024, np.float16), np.zeros(1024, np.float16)
    write(out).launch(grid=1, block=32)
    addresses = behind + 2 * np.arange(512)
    expected[(addresses ^ (addresses >> 3 & 0x70)) // 2] = np.arange(1, 513)
    np.testing.assert_array_equal(out, expected)


def test_a_number_of_python_tells_its_alignment() -> None:
    @cute.kernel
    def look() -> None:
        found = [cute.make_ptr(cute.Int32, n, cute.AddressSpace.smem, 16).alignment for n in (0, 4096, 48, 4)]
        assert found == [1024, 1024, 16, 16]
        start = cute.make_smem_tensor(64, cute.Int32, 128).iterator
        assert [(start + n).alignment for n in (0, 4, 32)] == [128, 16, 128]
        full: Any = cute.make_rmem_tensor((2, 3), cute.Int32).load()
        assert cutlass.Vector(full).shape == (6,)

    look().build(32)


def test_a_tiled_mma_has_fields_of_its_own() -> None:
    @cute.kernel
    def set_one() -> None:
        mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 64, 16)))
        other = mma.with_()
        other.set(warpgroup.Field.ACCUMULATE, False)
        assert mma.get(warpgroup.Field.ACCUMULATE) is True
        assert other.get(warpgroup.Field.ACCUMULATE) is False

    set_one().build(128)


@cute.kernel
def in_order_of_addresses(out: cute.Tensor, row: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    rows = cute.make_layout((8, 128), stride=(128, 1))
    tile = utils.SmemAllocator().allocate_tensor(cute.Uint8, rows, 1024, swizzle=cute.make_swizzle(3, 4, 3))
    for r in cutlass.range_constexpr(8):
        for i in cutlass.range_constexpr(4):
            tile[r, 4 * t + i] = cute.Uint8(r * 32 + t)
    cute.arch.sync_warp()
    for r in cutlass.range_constexpr(8):
        out[r, t] = cute.recast_tensor(tile, cute.Int32)[r, t] & 255
    row[t] = cute.recast_tensor(tile[5, None], cute.Int32)[t] & 255


def test_swizzled_memory_as_other_elements_has_no_swizzle() -> None:
    out, row = np.zeros((8, 32), np.int32), np.zeros(32, np.int32)
    in_order_of_addresses(out, row).launch(grid=1, block=32, device="sim")
    r, t = np.indices((8, 32))
    assert (out == r * 32 + (t ^ r << 2)).all()
    assert (row == out[5]).all()
