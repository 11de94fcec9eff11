# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of packed floats, vectors and structures made member by member, and tensor maps as values."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.tensors.coordinates import pack_shape

from tilefold import cute
from tilefold.cute.nvgpu import cpasync, tcgen05
from tilefold.cute.utils import SmemAllocator, TmemAllocator, blackwell_helpers
from tilefold.cutlass import tensor as v
from tilefold.cutlass.cutlass_dsl import T
from tilefold.cutlass.experimental import primitives as prims
from tilefold.cutlass.mlir import ir
from tilefold.cutlass.mlir.dialects import arith, cute_nvgpu, llvm, nvvm, vector

FINITE = prims.SaturationModeKind.SATFINITE
E4M3, UE8M0 = prims.CVTPackFloat.E4M3X2, nvvm.CVTPackFloatKind.UE8M0x2
TILE = (16, 32)


@cute.kernel
def packing(A: cute.Tensor, B: cute.Tensor, out: cute.Tensor) -> None:
    f = [A[i] for i in cute.range_constexpr(4)]
    low = prims.cvt_packfloat_f32(f[1], f[0], cute.Int32(0), E4M3, sat=FINITE)
    out[0] = prims.cvt_packfloat_f32(f[3], f[2], low, E4M3, sat=FINITE, extract_hi=True)
    out[1] = prims.cvt_packfloat_f32(f[1], f[0], 0, prims.CVTPackFloat.F16X2, relu=True)
    out[2] = nvvm.cvt_packfloat(T.i32(), out[0], 0, nvvm.CVTPackFloatKind.E4M3x2, nvvm.CVTPackFloatKind.F16x2)
    out[3] = prims.convert_and_pack_integer(B[0], B[1], T.i16(), is_signed=True)
    out[4] = prims.prmt(B[0], 0x4140, prims.PermuteMode.DEFAULT, hi=0)
    made: Any = llvm.mlir_undef(ir.VectorType.get([2], cute.Int32.mlir_type))
    for place in cute.range_constexpr(2):
        made = vector.insert(B[place], made, dynamic_position=[], static_position=[1 - place])
    changed: Any = vector.insert(cute.Int32(9), made, dynamic_position=[], static_position=[0])
    out[5], out[6] = made[0] * 1000 + made[1], changed[0]
    out[7] = prims.mov_b32(f[2], target_type=cute.Int32)
    pair = llvm.insertvalue(llvm.mlir_undef(ir.Type.parse("!llvm.struct<(i32, f32)>")), f[0], [1])
    pair = llvm.insertvalue(pair, B[1], [0])
    llvm.store(llvm.extractvalue(T.i32(), pair, [0]), out.iterator + 8)


def test_pairs_of_floats_and_values_made_of_members() -> None:
    a, b = np.array([1.5, -2, 3e5, 0.3], np.float32), np.array([70000, -5], np.int32)
    o = np.zeros(9, np.int32)
    packing(a, b, o).launch(grid=1, block=1, device="sim")
    e4m3, halves = 0x2A7EC03C, 0x00003E00
    as_halves = int(np.array([1.5, -2], np.float16).view(np.int32)[0])
    expected = [e4m3, halves, as_halves, 0x7FFFFFFB, 0x110070, -5000 + 70000, 9, int(a[2:3].view(np.int32)[0]), -5]
    assert o.tolist() == expected


@cute.kernel
def scaling(A: cute.Tensor, out: cute.Tensor) -> None:
    rounding, whole = nvvm.FPRoundingMode.RP, nvvm.SaturationModeKind.NONE
    for i in cute.range_constexpr(3):
        zero = cute.Int32(0)
        scale = nvvm.cvt_packfloat_f32(T.i32(), cute.Float32(0.0), A[i], zero, UE8M0, rnd=rounding, sat=whole)
        out[i] = scale
        out[i + 3] = nvvm.cvt_packfloat(T.i32(), scale, zero, UE8M0, nvvm.CVTPackFloatKind.BF16x2) & 0xFFFF


def test_scale_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_100a")
    a, o = np.array([1.5, 0.25, 1e-3], np.float32), np.zeros(6, np.int32)
    scaling(a, o).launch(grid=1, block=1, device="sim")
    powers = np.exp2(np.ceil(np.log2(a)))
    assert o[:3].tolist() == (127 + np.log2(powers)).astype(int).tolist()
    assert np.array_equal((o[3:] << 16).view(np.float32), powers.astype(np.float32))


def test_mistakes_with_packed_floats() -> None:
    @cute.kernel
    def wrong(A: cute.Tensor, B: cute.Tensor, case: cute.Constexpr[int]) -> None:
        undefined = llvm.mlir_undef(ir.VectorType.get([2], cute.Int32.mlir_type))
        if case == 0:
            _ = prims.cvt_packfloat_f32(A[0], A[1], B[0], E4M3, sat=FINITE)
        elif case == 1:
            _ = prims.cvt_packfloat_f32(A[0], A[1], 0, E4M3, rnd=prims.FPRoundingMode.RZ)
        elif case == 2:
            _ = vector.insert(B[0], undefined, dynamic_position=[B[0]], static_position=[])
        elif case == 3:
            _ = vector.insert(B[0], undefined, dynamic_position=[], static_position=[2])
        elif case == 4:
            llvm.store(undefined, A.iterator)
        else:
            _ = cute_nvgpu.unrealized_conversion_cast([T.i32()], [B[0]])

    a, b = np.zeros(4, np.float32), np.zeros(4, np.int32)
    texts = (
        "does not use c", "no conversion cvt.rz.e4m3x2.f32", "static position", "no member 2",
        "cannot be placed in memory", "supports only tensor maps",
    )  # fmt: skip
    for case, text in enumerate(texts):
        with pytest.raises(TilefoldError, match=text) as caught:
            wrong(a, b, case).launch(grid=1, block=1, device="sim")
        assert caught.value.code == "E5002"


@cute.kernel
def through_a_stored_map(A: cute.Tensor, B: cute.Tensor, W: cute.Tensor) -> None:
    t, half = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    layout = cute.make_layout(TILE, stride=(32, 1))
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A[None, None, 0], layout, TILE)
    s = cute.make_smem_tensor(layout, cute.Float32, 128)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    place: Any = cute.make_ptr(cute.Int64, W[half, None].iterator.toint(), cute.AddressSpace.gmem, assumed_align=128)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        own = cute.make_tensor(A.iterator + half * 512, cute.make_layout(TILE, stride=(32, 1)))
        atom, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), own, layout, TILE)
        value: Any = atom._trait.value  # pyright: ignore[reportPrivateUsage]
        assert "non_exec_tiled_tma_load" in str(value.type)
        field = ir.Attribute.parse("#cute_nvgpu.atom_copy_field_non_exec_tma_load<tma_desc>")
        words = cute_nvgpu.atom_get_value(cute_nvgpu.TmaDescriptorTiledType.get(), value, field)
        whole = ir.Type.parse("!llvm.struct<(array<16 x i64>)>")
        words = cute_nvgpu.unrealized_conversion_cast([whole], [words])
        llvm.store(words, place.llvm_ptr, alignment=128)
        cpasync.fence_tma_desc_release()
    cute.arch.sync_threads()
    cpasync.fence_tma_desc_acquire(place)
    g = cute.group_modes(cute.local_tile(coords, TILE, (0, 0)), 0, 2)
    to, source = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), g)
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(full, 2048)
        cute.copy(load, source, to, tma_bar_ptr=full, tma_desc_ptr=place)
    cute.arch.mbarrier_wait(full, 0)
    for row in range(16):
        B[half * 16 + row, t] = s[row, t]


def test_a_tensor_map_is_stored_as_words() -> None:
    a = np.arange(2 * 16 * 32, dtype=np.float32).reshape(2, 16, 32)
    b, w = np.zeros((32, 32), np.float32), np.zeros((2, 16), np.int64)
    through_a_stored_map(a.transpose(1, 2, 0), b, w).launch(grid=2, block=32, device="sim")
    assert np.array_equal(b, a.reshape(32, 32))


def test_tiled_mmas_by_the_names_of_their_arguments() -> None:
    k, one = tcgen05.OperandMajorMode.K, tcgen05.CtaGroup.ONE
    half, single, place = cute.Float16, cute.Float32, tcgen05.OperandSource.TMEM
    make = blackwell_helpers.make_trivial_tiled_mma
    by_place = make(half, half, k, k, single, one, (128, 64), place)
    by_name = make(
        ab_dtype=half, a_leading_mode=k, b_leading_mode=k, acc_dtype=single, cta_group=one, mma_tiler_mn=(128, 64),
        a_source=place,
    )  # fmt: skip
    assert str(by_place.op) == str(by_name.op) == str(make(half, k, k, single, one, (128, 64), a_source=place).op)
    assert str(by_place.op) != str(make(half, k, k, single, one, (128, 64)).op)
    for given, text in (({}, "has no cta_group"), ({"cta_group": one, "b": 1}, "takes no b")):
        with pytest.raises(TilefoldError, match=text):
            make(half, k, k, single, mma_tiler_mn=(128, 64), **given)


def test_allocators_have_memory_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_100a")

    @cute.kernel
    def allocating(A: cute.Tensor) -> None:
        tmem = TmemAllocator(barrier_for_retrieve=cute.pipeline.NamedBarrier(1, 32))
        tmem.allocate(32)
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(cute.Float32)
        A[cute.arch.thread_idx()[0]] = 1
        tmem.relinquish_alloc_permit()
        tmem.free(start)

    a = np.zeros(32, np.float32)
    allocating(a).launch(grid=1, block=32, device="sim")
    assert a.all()


@cute.kernel
def copying_in_bulk(A: cute.Tensor, B: cute.Tensor) -> None:
    t, memory = cute.arch.thread_idx()[0], SmemAllocator()
    s, full = memory.allocate_tensor(cute.Float32, cute.make_layout((4, 8))), memory.allocate_array(cute.Int64)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if t == 0:
        source, target = cpasync.group_bulk_copy_modes(A, s)
        cute.arch.mbarrier_arrive_and_expect_tx(full, 128)
        cute.copy(cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32), source, target, mbar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    values = s[None, t].load()
    chosen = v.where(values > 3.0, values, v.full_like(values, -1.0))
    B[t, None] = v.where(v.create_mask([4], [t + 1]), chosen, values)


def test_the_modes_of_bulk_copies() -> None:
    a, b = np.arange(32, dtype=np.float32).reshape(8, 4), np.zeros((8, 4), np.float32)
    copying_in_bulk(a.T, b).launch(grid=1, block=8, device="sim")
    assert np.array_equal(b, np.where((a > 3) | (np.arange(4) > np.arange(8)[:, None]), a, -1))


@cute.kernel
def truncating(A: cute.Tensor, out: cute.Tensor) -> None:
    text = "cvt.rz{}.{}.f32 $0, $2, $1;"
    forms = (("", "f16x2"), (".satfinite", "f16x2"), (".relu", "f16x2"), (".satfinite", "bf16x2"))
    for place, form in enumerate(forms):
        for i in cute.range_constexpr(cute.size(A.shape) // 2):
            pair = [A[2 * i + j] for j in range(2)]
            out[place, i] = llvm.inline_asm(T.i32(), pair, text.format(*form), "=r,f,f", has_side_effects=False)


def test_pairs_rounded_toward_zero() -> None:
    a = np.array([1 + 3e-3, -1 - 3e-3, 7e4, -7e4, np.inf, -np.inf, np.nan, 0.0, 1e-7, -1.5e-7], np.float32)
    o = np.zeros((4, 5), np.int32)
    truncating(a, o).launch(grid=1, block=1, device="sim")
    halves = o[:3].view(np.float16).astype(np.float32).reshape(3, 10)
    exact, most, least = 1 + 3 / 1024, 65504.0, 2.0**-24
    plain = [exact, -exact, most, -most, np.inf, -np.inf, np.nan, 0, least, -2 * least]
    assert np.array_equal(halves[0], np.array(plain, np.float32), equal_nan=True)
    assert np.array_equal(halves[1], np.clip(plain, -most, most).astype(np.float32), equal_nan=True)
    assert np.array_equal(halves[2], np.maximum(plain, 0).astype(np.float32), equal_nan=True)
    brain = a.copy().view(np.uint32) & np.uint32(0xFFFF0000)
    brain[4:7] = 0x7F7F0000, 0xFF7F0000, 0x7FFF0000
    assert (o[3].view(np.uint16).astype(np.uint32) << 16).tolist() == brain.tolist()


@cute.kernel
def halving(A: cute.Tensor, out: cute.Tensor) -> None:
    given = A.load()
    told = ir.VectorType(given.type)
    words = llvm.mlir_undef(ir.VectorType.get([told.shape[0] // 2], T.i32(), loc=None))
    for i in cute.range_constexpr(told.shape[0] // 2):
        pair = [vector.extract(given, dynamic_position=[], static_position=[2 * i + j]) for j in range(2)]
        packed = llvm.inline_asm(T.i32(), pair, "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,f,f")
        words = vector.insert(packed, words, dynamic_position=[], static_position=[i])
    made = llvm.bitcast(ir.VectorType.get(told.shape, cute.Float16.mlir_type), words)
    out.store(cute.TensorSSA(made, given.shape, cute.Float16))


def test_a_fragment_tells_its_type_as_a_vector() -> None:
    a, o = np.arange(8, dtype=np.float32) / 4, np.zeros(8, np.float16)
    halving(a, o).launch(grid=1, block=1, device="sim")
    assert np.array_equal(o, a.astype(np.float16))
    with pytest.raises(TilefoldError, match="is not a type of vectors") as caught:
        ir.VectorType(cute.Float32.mlir_type)
    assert caught.value.code == "E5002"


def test_the_bits_of_a_number_are_those_of_a_vector() -> None:
    @cute.kernel
    def swap_bytes(x: cute.Tensor) -> None:
        t = cute.arch.thread_idx()[0]
        bytes: Any = ir.VectorType.get([4], T.i(8))
        given = llvm.bitcast(bytes, x[t])
        parts = [vector.extract(given, dynamic_position=[], static_position=[3 - i]) for i in range(4)]
        swapped = vector.from_elements(bytes, parts)
        floats = ir.VectorType.get([4], cute.Float8E4M3FN.mlir_type)
        same: Any = cute_nvgpu.unrealized_conversion_cast([floats], [swapped])
        x[t] = llvm.bitcast(T.i32(), cute_nvgpu.unrealized_conversion_cast([bytes], [same]))
        with pytest.raises(TilefoldError, match="4 elements of Int8 are not those of one Float16"):
            llvm.bitcast(cute.Float16.mlir_type, given)

    x = np.array([0x01020304, -2], np.int32)
    swapped = x.byteswap()
    swap_bytes(x).launch(grid=1, block=2, device="sim")
    np.testing.assert_array_equal(x, swapped)


@cute.kernel
def by_elements(A: cute.Tensor, out: cute.Tensor) -> None:
    given = A.load()
    kind: Any = ir.VectorType.get([2], cute.Float32.mlir_type)
    t, _, _ = cute.arch.thread_idx()
    made: Any = llvm.mlir_zero(ir.VectorType.get([4], cute.Float32.mlir_type))
    made = llvm.insertelement(made, llvm.extractelement(given, t + 1), cute.Int32(3))
    made = vector.insertelement(vector.extractelement(given, position=2), made, position=0)
    made = vector.insert_strided_slice(vector.extract_strided_slice(kind, given, [3], [2], [1]), made, [1], [1])
    for i in cute.range_constexpr(4):
        out[i] = made[i]


def test_elements_and_slices_of_vectors() -> None:
    a, o = np.arange(1, 9, dtype=np.float32), np.zeros(4, np.float32)
    by_elements(a, o).launch(grid=1, block=1, device="sim")
    assert o.tolist() == [3, 4, 5, 2]
    with pytest.raises(TilefoldError, match="a slice must have one offset and the stride 1") as caught:
        vector.extract_strided_slice(None, None, [0], [1], [2])  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "E5002"


@cute.kernel
def by_constraints(A: cute.Tensor, out: cute.Tensor) -> None:
    wide = cute.Int64(A[0]) + (cute.Int64(7) << 32)
    out[0] = llvm.inline_asm(T.i32(), [wide, A[1]], "add.s32 $0, $1, $2;", "=r,r,r")
    out[1] = llvm.inline_asm(T.i32(), [A[1].ir_value()], "", "=r,0", has_side_effects=True)
    text, pair = "add.s32 $0, $2, $4; sub.s32 $1, $3, $4;", ir.Type.parse("!llvm.struct<(i32, i32)>")
    made = llvm.inline_asm(pair, [A[0], A[1], A[2]], text, "=r,=&r,0,1,r")
    out[2], out[3] = (llvm.extractvalue(T.i32(), made, [place]) for place in (0, 1))
    threes = prims.inline_ptx_hl("mov.b32 {$w0}, 0x40404040;", write_only_types=[cute.Int32])
    out[4] = prims.mul_bf16x2(0x40003FC0, threes)
    out[5] = cute.Int32(llvm.inline_asm(T.i64(), [A[3]], "shr.u64 $0, $1, 31;", "=l,l"))


def test_registers_by_the_constraints_of_llvm() -> None:
    a, out = np.array([5, 11, 100, -1], np.int32), np.zeros(6, np.int32)
    by_constraints(a, out).launch(grid=1, block=1, device="sim")
    assert out.tolist() == [16, 11, 105, -89, 0x40C04090, 1]

    @cute.kernel
    def beyond(A: cute.Tensor) -> None:
        A[0] = llvm.inline_asm(T.i32(), [A[0]], "", "=r,1")

    with pytest.raises(TilefoldError, match="the constraint 1 names no result"):
        beyond(a).launch(grid=1, block=1, device="sim")


class OwnMma(cute.nvgpu.warp.WarpMmaOp):
    """As a program defines an instruction that it needs."""

    def _make_trait(self) -> Any:
        shape: Any = pack_shape((16, 8, 8))
        types = cute.TFloat32.mlir_type, cute.TFloat32.mlir_type, cute.Float32.mlir_type
        return cute.Trait(cute.make_atom(cute_nvgpu.MmaAtomSM80Type.get(shape.type.attribute, *types)))


def test_a_matrix_instruction_that_a_program_defines() -> None:
    assert cute.make_mma_atom(OwnMma()) == cute.make_mma_atom(cute.nvgpu.warp.MmaTF32Op((16, 8, 8)))


@cute.kernel
def comparing(A: cute.Tensor, B: cute.Tensor, out: cute.Tensor) -> None:
    integers, floats = arith.CmpIPredicate, arith.CmpFPredicate
    assert (A[0].type, B[0].type, cute.arch.thread_idx()[0].type) == (T.i32(), T.f32(), T.i32())
    for at, (a, b) in enumerate(((A[0], A[1]), (A[1], A[0]), (A[0], A[0]))):
        for place, predicate in enumerate(integers):
            out[0, at, place] = cute.Int32(arith.cmpi(predicate, a, b))
    for at, (a, b) in enumerate(((B[0], B[1]), (B[1], B[0]), (B[0], B[0]), (B[0], B[2]), (B[2], B[2]))):
        for place, predicate in enumerate(floats):
            out[1, at, place] = cute.Int32(arith.cmpf(predicate, a, b))


def test_comparisons_of_integers_and_of_floats() -> None:
    """In the order of MLIR: eq ne slt sle sgt sge ult ule ugt uge, and false oeq ogt oge olt ole one ord, the unordered
    ones and true.
    """
    out = np.zeros((2, 5, 16), np.int32)
    comparing(np.array([-1, 1], np.int32), np.array([-1, 1, np.nan], np.float32), out).launch(
        grid=1, block=1, device="sim"
    )
    rows = ["".join(map(str, row)) for row in out.reshape(10, 16)]
    assert [row[:10] for row in rows[:3]] == ["0111000011", "0100111100", "1001010101"]
    less, greater, equal, unordered = "0000111100011101", "0011001101100101", "0101010110101001", "0" * 8 + "1" * 8
    assert rows[5:] == [less, greater, equal, unordered, unordered]
    assert ir.IntegerType(T.i16()).width == 16
    with pytest.raises(TilefoldError, match="f32 is not a type of integers"):
        ir.IntegerType(T.f32())


class OwnContext(ir.Context):
    """As quack derives it."""

    def __init__(self, *args: object, **given: object) -> None:
        super().__init__(*args, **given)
        self.enable_multithreading(False)


def test_a_context_of_a_program() -> None:
    assert isinstance(OwnContext(), ir.Context)


@cute.kernel
def fencing(A: cute.Tensor, order: cute.Constexpr[Any], scope: cute.Constexpr[Any]) -> None:
    A[0] = 1
    llvm.fence(order, syncscope=scope)


@pytest.mark.parametrize(
    ("order", "scope", "text"),
    [
        ("release", None, "fence.acq_rel.sys"),
        ("acquire", "device", "fence.acq_rel.gpu"),
        ("seq_cst", "block", "fence.sc.cta"),
    ],
)
def test_fences_of_llvm(order: str, scope: str | None, text: str) -> None:
    assert text in fencing(np.zeros(1, np.int32), llvm.AtomicOrdering[order], scope).build(32).ptx("sm_90")
    with pytest.raises(TilefoldError, match="a fence has no order 'unordered'"):
        fencing(np.zeros(1, np.int32), llvm.AtomicOrdering.unordered, scope).build(32)
