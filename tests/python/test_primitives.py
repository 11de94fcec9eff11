# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels below layouts: arrays, pointers, vectors, and single instructions on them."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.primitives.arrays import Array
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.vectors import from_elements, outerproduct
from tilefold.layout.algebra.swizzle import Swizzle

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cutlass.experimental import primitives
from tilefold.cutlass.experimental import primitives as prims
from tilefold.cutlass.mlir.dialects import llvm

SMEM = AddressSpace.smem


@cute.kernel
def hand_over(dst: Array, count: cute.Constexpr[int]):
    t, _, _ = cute.arch.thread_idx()
    data = Array(cute.Float32, count, space=SMEM)
    bar = Array(cute.Int64, 1, space=SMEM)
    if prims.elect_sync():
        prims.mbarrier_init(bar, 1)
    prims.fence_mbarrier_init()
    prims.barrier_cta_sync(0)
    if t == 0:
        for i in range(count):
            data[i] = cute.Float32(i) + 0.5
        prims.mbarrier_arrive(bar)
    while not prims.mbarrier_try_wait_parity(bar, 0, time_limit=10_000):
        pass
    dst[t] = data[t]


def test_an_mbarrier_orders_an_array() -> None:
    dst = np.zeros(32, np.float32)
    hand_over(dst, 32).launch(grid=1, block=32, device="sim")
    assert (dst == np.arange(32) + 0.5).all()
    assert "mbarrier.try_wait.parity" in hand_over.ptx("sm_90")


@cute.kernel
def swizzled(src: cute.Tensor, dst: cute.Tensor, name: cute.Constexpr[str]):
    t, _, _ = cute.arch.thread_idx()
    data = Array(cute.Float32, 1024, space=SMEM, alignment=128)
    swizzle = Swizzle.from_name(name)
    place = data.data_ptr() + t * 8
    for half in range(2):
        to = (place + half * 4).apply_swizzle(swizzle)
        prims.cp_async_shared_global(to, src.iterator.raw_ptr() + t * 8 + half * 4, 16, "cg")
    prims.cp_async_commit_group()
    prims.cp_async_wait_group(0)
    prims.barrier_cta_sync(0)
    (dst.iterator.raw_ptr() + t * 8).store(place.load_swizzled(swizzle, alignment=16, count=8), alignment=16)
    data.data_ptr(t * 8).store_swizzled(from_elements([1.0] * 8, cute.Float32), swizzle)


@pytest.mark.parametrize("name", ["none", "s32b", "s64b", "s128b"])
def test_swizzled_pointers_read_what_they_wrote_in_wide_accesses(name: str) -> None:
    src = np.random.default_rng(0).random(1024, np.float32)
    dst = np.zeros_like(src)
    swizzled(src, dst, name).launch(grid=1, block=128, device="sim")
    assert (dst == src).all()
    text = swizzled.ptx("sm_90")
    assert text.count("cp.async.cg") == text.count("ld.shared.v4") == text.count("st.global.v4") == 2
    assert text.count("st.shared.v4") == 2
    assert ("xor" in text) == (name != "none")


def test_a_swizzle_acts_on_byte_addresses_as_tma_copies_do() -> None:
    assert Swizzle.from_name("s128b") == Swizzle(3, 4, 3)
    with pytest.raises(TilefoldError, match="unknown swizzle 's256b'"):
        Swizzle.from_name("s256b")


@cute.kernel
def transposed(src: Array, dst: Array):
    t, _, _ = cute.arch.thread_idx()
    before = Array(cute.Float16, (32, 8), space=SMEM, alignment=128)
    after = Array(cute.Float16, (8, 40), space=SMEM, alignment=128)
    before[t, :] = src[t, :].tensor.load()
    prims.barrier_cta_sync(0)
    matrix, row = t // 8, t % 8
    words = prims.ldmatrix(before.data_ptr(t * 8), 4, prims.MMALayout.ROW)
    prims.stmatrix(after.data_ptr(row * 40 + matrix * 8), words, prims.MMALayout.COL)
    prims.barrier_cta_sync(0)
    for i in range(8):
        dst[i, t] = after[i, t]


def test_stmatrix_transposes_what_ldmatrix_loads() -> None:
    src = np.arange(256, dtype=np.float16).reshape(32, 8)
    dst = np.zeros((8, 32), np.float16)
    transposed(src, dst).launch(grid=1, block=32, device="sim")
    assert (dst == src.T).all()
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in (text := transposed.ptx("sm_90"))
    assert "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in text


@cute.kernel
def masked(src: Array, dst: Array, count: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    mask = Array(cute.Boolean, 4)
    for i in range(4):
        mask[i] = t * 4 + i < count
    x = src.masked_load(t * 4, 4, mask, default=-2.0)
    dst.masked_store(t * 4, x * 2, mask)
    dst[16 + t * 4 : 4] = src[t * 4 : 4] + src[t * 4 : 4]
    dst.subview(32)[t] = x.reduce(cute.ReductionOp.ADD)


def test_elements_under_a_mask_and_slices_by_their_number() -> None:
    src, dst = np.arange(16, dtype=np.float32), np.full(36, -1, np.float32)
    masked(src, dst, 13).launch(grid=1, block=4, device="sim")
    kept = np.where(np.arange(16) < 13, 2 * src, -1)
    sums = np.where(np.arange(16) < 13, src, -2).reshape(4, 4).sum(1)
    assert (dst == np.concatenate([kept, 2 * src, sums])).all()


@cute.kernel
def products(dst: cute.Tensor, x: cute.Float32):
    to = dst.iterator.raw_ptr()
    to.store(outerproduct(from_elements((1.0, x)), from_elements((3.0, 4.0, x))), alignment=8)
    to[6] = from_elements((x, 2.0))[1]


def test_a_vector_of_two_modes_is_stored_row_by_row() -> None:
    dst = np.zeros(8, np.float32)
    products(dst, 5).launch(grid=1, block=1, device="sim")
    assert dst.tolist() == [3, 4, 5, 15, 20, 25, 2, 0]


@cute.kernel
def lanes(dst: Array, src: Array):
    t, _, _ = cute.arch.thread_idx()
    ballot = prims.vote_sync(0xFFFFFFFF, src[t] > 0, prims.VoteSync.BALLOT)
    least = prims.redux_sync(src[t], prims.ReductionKind.MIN)
    if t == 0:
        dst[0] = ballot
        dst[1] = least
        dst[2] = prims.vote_sync(0x1, src[t] > 0, prims.VoteSync.UNI)
    prims.red(prims.ReductionOp.ADD, prims.ReductionType.S32, dst.data_ptr(3), src[t])


def test_votes_reductions_and_atomics_on_pointers() -> None:
    src = np.random.default_rng(1).integers(-9, 9, 32).astype(np.int32)
    dst = np.zeros(4, np.int32)
    lanes(dst, src).launch(grid=1, block=32, device="sim")
    ballot = int(sum(1 << lane for lane in range(32) if src[lane] > 0))
    assert dst.tolist() == [np.uint32(ballot).astype(np.int32), src.min(), 1, src.sum()]


@cute.kernel
def neighbours(dst: Array, src: Array, control: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    value, valid = prims.shfl_sync(0xFFFFFFFF, src[t], 1, control, prims.Shfl.DOWN, return_value_and_is_valid=True)
    dst[0, t] = value
    dst[1, t] = valid
    dst[2, t] = prims.shfl_sync(0xFFFFFFFF, src[t], 3, 31, prims.Shfl.IDX)
    dst[3, t] = prims.barrier_cta_red(src[t] > 4.0, 1, "popc", thread_count=32)


def test_shuffles_that_say_whether_there_is_a_neighbour() -> None:
    src, dst = np.arange(32, dtype=np.float32) / 4, np.zeros((4, 32), np.float32)
    neighbours(dst, src, 0x1807).launch(grid=1, block=32, device="sim")
    valid = np.arange(32) % 8 != 7
    assert (dst[0] == np.where(valid, src + 0.25, src)).all()
    assert (dst[1:] == [valid, np.full(32, 0.75), np.full(32, 15)]).all()


@cute.kernel
def phases(dst: Array):
    bar = Array(cute.Int64, 1, space=SMEM, alignment=8)
    t, _, _ = cute.arch.thread_idx()
    if t == 0:
        prims.mbarrier_init(bar, 32)
    prims.barrier_cta_sync(0)
    state = prims.mbarrier_arrive(bar)
    while not prims.mbarrier_try_wait_timelimit(bar, state, 1000):
        pass
    dst[t] = prims.mbarrier_try_wait_timelimit(bar, state, 1000)
    prims.barrier_cta_sync(0)
    if t == 0:
        prims.mbarrier_inval(bar)


def test_the_state_of_an_arrival_is_waited_for() -> None:
    dst = np.zeros(32, np.int32)
    phases(dst).launch(grid=1, block=32, device="sim")
    assert dst.tolist() == [1] * 32


@cute.kernel(cluster=2)
def exchange(dst: Array):
    t, _, _ = cute.arch.thread_idx()
    rank = cute.arch.block_idx_in_cluster()
    own = Array(cute.Int32, 32, space=SMEM)
    own[t] = t + 100 * rank
    prims.barrier_cluster_arrive()
    prims.barrier_cluster_wait()
    peer = prims.mapa(own, 1 - rank)
    dst[rank, t] = peer[t]
    prims.barrier_cluster_arrive()
    prims.barrier_cluster_wait()


def test_pointers_into_the_shared_memory_of_a_peer() -> None:
    dst = np.zeros((2, 32), np.int32)
    exchange(dst).launch(grid=2, block=32, device="sim")
    assert (dst == np.arange(32) + np.array([[100], [0]])).all()


@cute.kernel
def through_maps(src: cute.Tensor, dst: cute.Tensor, swizzle: cute.Constexpr):
    rows, columns = src.shape
    given: dict[str, Any] = {"dtype": cute.Float16, "box_dims": [64, 16], "swizzle": swizzle}
    load = primitives.create_tensor_map_tiled(
        global_address=src.iterator.toint(), global_dims=[columns, rows], global_strides=[columns // 8], **given
    )
    store = primitives.create_tensor_map_tiled_from_view(dst, box_dims=(16, 64), stride_order=(1, 0), swizzle=swizzle)
    t, _, _ = cute.arch.thread_idx()
    tile = Array(cute.Float16, (16, 64), space=SMEM)
    bar = Array(cute.Int64, 1, space=SMEM)
    if t == 0:
        prims.mbarrier_init(bar, 1)
    prims.fence_mbarrier_init()
    prims.barrier_cta_sync(0)
    if prims.elect_sync():
        prims.prefetch_tensormap(load.get_ptr())
        prims.mbarrier_arrive_expect_tx(bar, load.global_tx_bytes())
        prims.cp_async_bulk_tensor_shared_cta_global(tile, load.get_ptr(), (64, 8), bar)
    while not prims.mbarrier_try_wait_parity(bar, 0):
        pass
    row = tile.data_ptr() + (t % 16) * 64
    chunk = (row + t // 16 * 32).load_swizzled(Swizzle.from_name(swizzle.value), count=32)
    (row + t // 16 * 32).store_swizzled(chunk * 2, Swizzle.from_name(swizzle.value))
    prims.fence_proxy(prims.Proxy.ASYNC_SHARED, space=prims.SharedSpace.shared_cta)
    prims.bar_warp_sync()
    if prims.elect_sync():
        prims.cp_async_bulk_tensor_global_shared_cta(store.get_ptr(), tile, (0, 4))
        prims.cp_async_bulk_commit_group()
        prims.cp_async_bulk_wait_group(0)


@pytest.mark.parametrize("stage", ["cute", "folded", "atoms", "index", "instr"])
@pytest.mark.parametrize("swizzle", [primitives.TensorMapSwizzle.none, primitives.TensorMapSwizzle.s128b])
def test_boxes_by_tensor_maps_of_extents_and_strides(swizzle: primitives.TensorMapSwizzle, stage: str) -> None:
    src = np.random.default_rng(2).random((32, 128)).astype(np.float16)
    dst = np.zeros((32, 64), np.float16)
    through_maps(src, dst, swizzle).launch(grid=1, block=32, device="sim", stage=stage)
    expected = np.zeros_like(dst)
    expected[4:20] = 2 * src[8:24, 64:]
    assert (dst == expected).all()


@cute.kernel
def four_bits(src: cute.Tensor):
    primitives.create_tensor_map_tiled(
        global_address=src.iterator.toint(), dtype=cute.Float16, global_dims=[2], global_strides=[], box_dims=[2],
        tma_format=primitives.TensorMapDataFormat.B4X16,
    )  # fmt: skip


@cute.kernel
def no_address(src: cute.Tensor):
    primitives.create_tensor_map_tiled(
        global_address=src, dtype=cute.Float16, global_dims=[2], global_strides=[], box_dims=[2]
    )


def test_maps_of_packed_elements() -> None:
    @cute.kernel
    def packed(src: cute.Tensor):
        start = cute.make_ptr(cute.Float4E2M1FN, src.iterator.raw_ptr(), mem_space=cute.AddressSpace.gmem)
        made = primitives.create_tensor_map_tiled_from_view(
            cute.make_tensor(start, cute.make_layout((256, 8), stride=(1, 256))),
            box_dims=(256, 8), stride_order=(0, 1), swizzle=primitives.TensorMapSwizzle.s128b,
            tma_format=primitives.TensorMapDataFormat.B4X16,
        )  # fmt: skip
        prims.prefetch_tensormap(made.get_ptr())

    text = packed(np.zeros((8, 128), np.uint8)).build(32).ir("instr")
    assert 'map of "e2m1 src dims (256, 8) strides (128) box (256, 8) swizzle 128B"' in text


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (four_bits, "tensor maps of the format B4X16 are not supported"),
        (no_address, "expected an address, got Tensor"),
    ],
)
def test_maps_that_there_are_not(kernel: cute.Kernel, message: str) -> None:
    with pytest.raises(TilefoldError, match=message):
        kernel(np.zeros(64, np.float32)).build(1)


@cute.kernel
def unswizzlable(dst: cute.Tensor):
    dst.iterator.raw_ptr().apply_swizzle(Swizzle.from_name("s128b")).store(1.0)


@cute.kernel
def no_pointer(dst: cute.Tensor):
    prims.mbarrier_init(3, 1)


@cute.kernel
def iterated(dst: Array):
    for x in dst:
        dst[0] = x


@cute.kernel
def typeless(dst: cute.Tensor):
    dst.store(from_elements((1.0, 2.0)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (unswizzlable, "needs shared memory that begins at a multiple of 1024 bytes"),
        (no_pointer, "expected a pointer, got int"),
        (iterated, "cannot iterate over an array"),
        (typeless, "numbers have no type of their own"),
    ],
)
def test_what_is_refused(kernel: cute.Kernel, message: str) -> None:
    with pytest.raises(TilefoldError, match=message) as caught:
        kernel(np.zeros(2, np.float32)).build(1)
    assert caught.value.code == Code.BUILD_VALUE


def test_an_access_outside_of_the_memory_of_a_pointer_is_reported() -> None:
    @cute.kernel
    def outside(dst: cute.Tensor):
        (dst.iterator.raw_ptr() + 8).store(1.0)

    with pytest.raises(TilefoldError, match="0 bytes past the end of argument dst"):
        outside(np.zeros(8, np.float32)).launch(grid=1, block=1, device="sim")


def test_types_convert_numbers_outside_of_kernels() -> None:
    assert (cute.Int32(3.0), cute.Float32(2), cute.Boolean(5)) == (3, 2.0, True)
    assert (float(cute.Float32(2)), str(cute.Float32(2))) == (2.0, "2.0")


@cute.kernel
def rows(src: Array):
    src[1].print_runtime(max_elements=2)
    cute.printf("{} of {} bytes", src.shape, cute.arch.dynamic_smem_size())
    src[0][0] = 5.0


def test_rows_and_printing_of_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    src = np.arange(6, dtype=np.float32).reshape(2, 3)
    rows(src).launch(grid=1, block=1, device="sim")
    assert capsys.readouterr().out == "(0): 3.000000\n(1): 4.000000\n(2,3) of 0 bytes\n"
    assert src[0, 0] == 5


@cute.kernel
def printed(src: cute.Tensor, n: cute.Int32):
    layout = cute.make_layout((4, n), stride=(n, 1))
    cute.printf("{}; {}; 100%", layout, src.shape)
    cute.printf(src.layout(1), "text", n)
    cute.printf("{} {}", src, cute.make_swizzle(2, 3, 3))


def test_layouts_and_tensors_are_printed_with_their_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    printed(np.zeros((2, 3), np.float32), 7).launch(grid=1, block=1, device="sim")
    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, second) == ("(4,7):(7,1); (2,3); 100%", "3 text 7")
    assert third.startswith("gmem_ptr[32b](0x")
    assert third.endswith(") o (2,3):(3,1) S<2,3,3>")


def test_tables_as_latex(capsys: pytest.CaptureFixture[str]) -> None:
    cute.utils.print_latex(cute.make_layout((2, 3), stride=(3, 1)))
    text = capsys.readouterr().out
    assert text.startswith("\\documentclass")
    assert text.count("\\node[fill=") == 6
    assert "at (1,2) {5};" in text
    cute.utils.print_latex_tv(cute.make_layout((2, 2), stride=(2, 1)), (2, 2))
    assert "at (0,1) {\\shortstack{T1 \\\\ V0}};" in capsys.readouterr().out


@cute.jit
def doubled(src: cute.Tensor, dst: cute.Tensor, shape: tuple[int, ...], factor: cute.Float32):
    for i in cute.range_constexpr(cute.size(shape)):
        cute.printf("{} -> {}", i, src[i])
    dst.store(src.load() * factor)
    cute.print_tensor(dst, verbose=True)
    cute.print_tensor(src.load() + 1)


def test_a_function_of_the_host_that_reads_elements_is_a_thread(capsys: pytest.CaptureFixture[str]) -> None:
    src, dst = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    doubled(src, dst, (2,), 2)
    assert dst.tolist() == [0, 2, 4]
    out = capsys.readouterr().out
    assert out.startswith("0 -> 0.000000\n1 -> 1.000000\ntensor: gmem_ptr[32b](0x")
    assert out.endswith(" o (3):(1):\n  1\n  2\n  3\n")


def test_coalesced_by_the_name_of_programs() -> None:
    layout = cute.make_layout((2, (1, 6)), stride=(1, (6, 2)))
    assert str(cute.coalesce(layout, target_profile=(1, 1))) == "(2,6):(1,2)"


@cute.kernel
def cast(dst: Array):
    data = Array(cute.Float32, 4, space=SMEM)
    peer = llvm.addrspacecast(llvm.PointerType.get(AddressSpace.dsmem.value), data.ir_value())
    peer[1] = 3.0
    dst[0] = data[1]


@cute.kernel
def cast_of_global_memory(dst: Array):
    llvm.addrspacecast(llvm.PointerType.get(3), dst.ir_value())


def test_addresses_of_shared_memory_are_addresses_of_the_cluster() -> None:
    dst = np.zeros(1, np.float32)
    cast(dst).launch(grid=1, block=1, device="sim")
    assert dst[0] == 3
    with pytest.raises(TilefoldError, match="an address in gmem is not one in smem"):
        cast_of_global_memory(dst).build(1)
    with pytest.raises(TilefoldError, match="unknown address space 9"):
        llvm.PointerType.get(9)


@cute.kernel
def through_dimensions_of_one(src: cute.Tensor, dst: cute.Tensor):
    """Loads the rows (0, :, block, :): the mode along which boxes have one element is the last coordinate."""
    load = primitives.create_tensor_map_tiled_from_view(src, box_dims=(1, 8, 1, 16))
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    tile = Array(cute.Float16, (8, 16), space=SMEM)
    bar = Array(cute.Int64, 1, space=SMEM)
    if t == 0:
        prims.mbarrier_init(bar, 1)
    prims.fence_mbarrier_init()
    prims.barrier_cta_sync(0)
    if prims.elect_sync():
        prims.mbarrier_arrive_expect_tx(bar, load.global_tx_bytes())
        prims.cp_async_bulk_tensor_shared_cta_global(tile, load.get_ptr(), (0, 0, 0, block), bar)
    while not prims.mbarrier_try_wait_parity(bar, 0):
        pass
    for i in cute.range_constexpr(4):
        dst[block, t * 4 + i] = (tile.data_ptr() + t * 4 + i).load()


def test_dimensions_of_one_element_follow_those_of_a_box() -> None:
    src = np.arange(256).reshape(1, 8, 2, 16).astype(np.float16)
    dst = np.zeros((2, 128), np.float16)
    through_dimensions_of_one(src, dst).launch(grid=2, block=32, device="sim")
    assert np.array_equal(dst, src[0].transpose(1, 0, 2).reshape(2, 128))


@cute.kernel
def rows_from(
    src: cute.Tensor,
    tensor_map: primitives.TensorMap,
    words: cute.Tensor,
    out: cute.Tensor,
    at: cute.Int32,
    rows: cute.Int32,
    fenced: cute.Constexpr[bool],
):
    t, _, _ = cute.arch.thread_idx()
    tile = Array(cute.Float16, 8 * 16, space=SMEM, alignment=128)
    bar = Array(cute.Int64, 1, space=SMEM)
    if prims.elect_sync():
        prims.mbarrier_init(bar, 1)
    prims.fence_mbarrier_init()
    prims.barrier_cta_sync(0)
    there = words.iterator.raw_ptr()
    if prims.elect_sync():
        given = cutlass.Pointer(tensor_map.get_ptr(), dtype=cute.Int64)
        for i in cute.range_constexpr(16):
            (there + i).store((given + i).load())
        first = src.iterator.raw_ptr() + at * 32
        prims.tensormap_replace(prims.TensormapField.GLOBAL_ADDRESS, there, new_value=first.toint(cute.Int64))
        prims.tensormap_replace(prims.TensormapField.GLOBAL_DIM, there, new_value=rows, ord=1)
        prims.tensormap_replace(prims.TensormapField.FILL_MODE, there, new_value=0)
        if fenced:
            prims.fence_proxy_release(prims.MemScope.GPU)
            prims.fence_proxy_acquire(prims.MemScope.GPU, there.tospace(AddressSpace.generic), 128)
        prims.mbarrier_arrive_expect_tx(bar, tensor_map.global_tx_bytes())
        prims.cp_async_bulk_tensor_shared_cta_global(tile, there, (0, 0), bar)
    while not prims.mbarrier_try_wait_parity(bar, 0):
        pass
    for row in range(8):
        if t < 16:
            out[row, t] = tile[row * 16 + t]


@cute.jit
def launch_rows_from(
    src: cute.Tensor, words: cute.Tensor, out: cute.Tensor, at: cute.Int32, rows: cute.Int32, fenced: bool
) -> None:
    tensor_map = primitives.create_tensor_map_tiled_from_view(src, box_dims=(8, 16), stride_order=(1, 0))
    rows_from(src, tensor_map, words, out, at, rows, fenced).launch(grid=1, block=32)


def map_words() -> Any:
    return np.zeros(16, np.int64)


def test_a_map_is_copied_by_words_and_changed() -> None:
    src, out = np.arange(32 * 32, dtype=np.float16).reshape(32, 32), np.ones((8, 16), np.float16)
    launch_rows_from(src, map_words(), out, 5, 6, True)
    assert np.array_equal(out[:6], src[5:11, :16])
    assert (out[6:] == 0).all()
    with pytest.raises(TilefoldError, match=r"tensormap::generic\.release between them is missing") as error:
        launch_rows_from(src, map_words(), out, 5, 6, False)
    assert error.value.code == "E3216"


def wrong_word(p: Any) -> None:
    prims.tensormap_replace(prims.TensormapField.SWIZZLE_MODE, p, 9)


def wrong_proxy(p: Any) -> None:
    prims.fence_proxy_release(prims.MemScope.GPU, prims.Proxy.ASYNC)


def wrong_size(p: Any) -> None:
    prims.fence_proxy_acquire(prims.MemScope.GPU, p, 64)


def wrong_space(p: Any) -> None:
    p.tospace(SMEM)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (wrong_word, "swizzle_mode of a map is not 9"),
        (wrong_proxy, "this fence cannot order"),
        (wrong_size, "a map has 128 bytes, not 64"),
        (wrong_space, "an address in gmem is not one in smem"),
    ],
)
def test_mistakes_with_maps(call: Any, said: str) -> None:
    @cute.kernel
    def kernel(words: cute.Tensor):
        call(words.iterator.raw_ptr())

    with pytest.raises(TilefoldError, match=said) as error:
        kernel(map_words()).launch(grid=1, block=32, device="sim")
    assert error.value.code == "E5002"


@cute.kernel
def fenced() -> None:
    prims.fence_proxy("async_shared", prims.SharedSpace.shared_cta)


def test_a_proxy_by_its_name() -> None:
    assert "fence.proxy.async.shared::cta" in fenced().build(32).ptx("sm_90a")


@cute.kernel
def sent(A: cute.Tensor, B: cute.Tensor) -> None:
    """Each of two blocks sends its row to the other one."""
    t, _, _ = cute.arch.thread_idx()
    rank = cute.arch.block_idx_in_cluster()
    mine, theirs = (Array(cute.Int32, 32, cute.AddressSpace.smem, alignment=16) for _ in range(2))
    bar = Array(cute.Int64, 1, cute.AddressSpace.smem)
    mine.store(A[rank, t], idx=t)
    if t == 0:
        prims.mbarrier_init(bar, 1)
        prims.fence_mbarrier_init()
    prims.fence_proxy("async_shared", prims.SharedSpace.shared_cta)
    prims.barrier_cluster_arrive()
    prims.barrier_cluster_wait()
    if t == 0:
        prims.mbarrier_arrive_expect_tx(bar, 128)
        at, their_bar = prims.mapa(theirs, 1 - rank), prims.mapa(bar, 1 - rank)
        prims.cp_async_bulk_shared_cluster_shared_cta(at, mine, their_bar, 128)
    cute.arch.mbarrier_wait(bar.pointer.address, 0)
    B[rank, t] = theirs.load(idx=t)
    prims.barrier_cluster_arrive()
    prims.barrier_cluster_wait()


def test_bytes_that_a_block_sends_to_its_peer() -> None:
    A = np.arange(64, dtype=np.int32).reshape(2, 32)
    B = np.zeros_like(A)
    sent(A, B).launch(grid=2, block=32, cluster=2, device="sim")
    assert np.array_equal(B, A[::-1])
