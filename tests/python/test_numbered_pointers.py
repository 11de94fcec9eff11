# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers that are made of numbers: memory of the host by its address, and shared memory."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError

from tilefold import cute
from tilefold.cute import utils
from tilefold.cute.runtime import from_dlpack, make_ptr

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

STAGES = ("cute", "folded", "atoms", "index", "instr")


@cute.kernel
def first_columns(pointers, sizes, out):
    """Adds 1 to each matrix's first column, and keeps what was there."""
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    start = make_ptr(cute.Float32, pointers[block], cute.AddressSpace.gmem, assumed_align=4)
    matrix = cute.make_tensor(start, cute.make_layout((8, sizes[block]), stride=(sizes[block], 1)))
    out[block, t] = matrix[t, 0]
    matrix[t, 0] = matrix[t, 0] + 1.0


def launched(pointers: Any, sizes: Any, **options: Any) -> Any:
    out = np.zeros((len(pointers), 8), np.float32)
    first_columns(np.array(pointers, np.int64), np.array(sizes, np.int32), out).launch(
        grid=len(pointers), block=8, **options
    )
    return out


def matrices() -> list[NDArray[np.float32]]:
    return [np.random.default_rng(n).random((8, n), np.float32) for n in (3, 5)]


@pytest.mark.parametrize("stage", STAGES)
def test_arrays_are_read_and_written_by_their_addresses(stage: str) -> None:
    arrays = matrices()
    before = [array.copy() for array in arrays]
    addresses = [from_dlpack(array).data_ptr for array in arrays]
    out = launched(addresses, [3, 5], stage=stage)
    for array, old, row in zip(arrays, before, out, strict=True):
        assert np.array_equal(row, old[:, 0])
        assert np.array_equal(array[:, 0], old[:, 0] + 1)
        assert np.array_equal(array[:, 1:], old[:, 1:])


@pytest.mark.gpu
def test_memory_of_a_gpu_by_its_addresses() -> None:
    torch = pytest.importorskip("torch")
    arrays = [torch.from_numpy(array).cuda() for array in matrices()]
    before = [array.clone() for array in arrays]
    pointers = torch.tensor([array.data_ptr() for array in arrays], device="cuda")
    sizes, out = torch.tensor([3, 5], dtype=torch.int32, device="cuda"), torch.zeros(2, 8, device="cuda")
    first_columns(pointers, sizes, out).launch(grid=2, block=8)
    for array, old, row in zip(arrays, before, out, strict=True):
        assert (row == old[:, 0]).all()
        assert (array[:, 0] == old[:, 0] + 1).all()


def test_an_argument_is_the_same_memory_by_its_address() -> None:
    @cute.kernel
    def both(pointers, x, out):
        by_number = cute.make_tensor(make_ptr(cute.Float32, pointers[0]), 4)
        x[1] = 5.0
        out[0] = by_number[2]
        by_number[3] = 7.0
        out[1] = x[2]

    whole, out = np.zeros(8, np.float32), np.zeros(2, np.float32)
    x = whole[2:6]
    both(np.array([from_dlpack(whole[1:]).data_ptr], np.int64), x, out).launch(grid=1, block=1, device="sim")
    assert whole.tolist() == [0, 0, 0, 5, 7, 0, 0, 0]
    assert out.tolist() == [5, 7]


def test_memory_that_nobody_told_of_is_refused() -> None:
    told, others = matrices()
    address = from_dlpack(told).data_ptr
    with pytest.raises(ProgramError, match="the simulator has no memory") as error:
        launched([address, others.ctypes.data], [3, 5], device="sim")
    assert error.value.code == "E3202"
    assert "from_dlpack" in (error.value.hint or "")
    with pytest.raises(ProgramError, match="at 0x0, where the simulator has no memory") as error:
        launched([0], [3], device="sim")
    assert error.value.code == "E3202"


@cute.kernel
def arriving(counter: cute.Pointer, seen: cute.Tensor) -> None:
    """Each block adds itself to a counter, and waits until all have."""
    assert counter.memspace == cute.AddressSpace.gmem
    block, _, _ = cute.arch.block_idx()
    cute.arch.atomic_add(counter, 1, sem="release", scope="gpu")
    found = cute.Uint32(0)
    while found < 4:
        found = cute.arch.load(counter, sem="acquire", scope="gpu")
    seen[block] = found


@cute.jit
def all_arrive(counter: cute.Pointer, seen: cute.Tensor) -> None:
    arriving(counter, seen).launch(grid=4, block=1, cooperative=True)


def test_a_pointer_reaches_the_registered_array_that_it_points_into() -> None:
    counters, seen = np.zeros(3, np.uint32), np.zeros(4, np.uint32)
    address = from_dlpack(counters).data_ptr + 4
    all_arrive(make_ptr(cute.Uint32, address, cute.AddressSpace.gmem), seen)
    assert (counters.tolist(), seen.tolist()) == ([0, 4, 0], [4] * 4)
    other = np.zeros(3, np.uint32)
    with pytest.raises(TilefoldError, match="give the array to from_dlpack") as error:
        all_arrive(make_ptr(cute.Uint32, other.ctypes.data, cute.AddressSpace.gmem), seen)
    assert error.value.code == "E3106"


def test_memory_that_is_too_short_or_gone_is_refused() -> None:
    array = matrices()[0]
    address = from_dlpack(array).data_ptr
    with pytest.raises(ProgramError, match="bytes past the end of memory of the host") as error:
        launched([address + 4], [4], device="sim")
    assert error.value.code == "E3202"
    del array
    gc.collect()
    with pytest.raises(ProgramError, match="the simulator has no memory"):
        launched([address], [3], device="sim")


def test_shared_memory_has_numbers_too() -> None:
    @cute.kernel
    def swapped(x):
        t, _, _ = cute.arch.thread_idx()
        shared = cute.make_smem_tensor(32, cute.Int32)
        shared[t] = x[t]
        cute.arch.sync_threads()
        number = shared.iterator.toint() + (31 - t) * 4
        there = make_ptr(cute.Int32, number, cute.AddressSpace.smem, assumed_align=4)
        x[t] = cute.make_tensor(there, 1)[0]

    x = np.arange(32, dtype=np.int32)
    swapped(x).launch(grid=1, block=32, device="sim")
    assert x.tolist() == list(range(31, -1, -1))
    assert "ld.shared" in swapped.ptx("sm_80")


def test_tensors_that_may_overlap_are_read_first() -> None:
    @cute.kernel
    def shifted(x, pointers):
        cute.make_tensor(x.iterator + 1, 4).store(cute.make_tensor(x.iterator, 4).load())
        there = cute.make_tensor(make_ptr(cute.Float32, pointers[0]), 5)
        value = there.load()
        x[0] = 9.0
        there.store(value * 2.0)

    x = np.arange(6, dtype=np.float32)
    shifted(x, np.array([from_dlpack(x).data_ptr], np.int64)).launch(grid=1, block=1, device="sim")
    assert x.tolist() == [0, 0, 2, 4, 6, 5]


def test_an_alignment_is_a_promise() -> None:
    @cute.kernel
    def halves(x, out, at: cute.Int32):
        t, _, _ = cute.arch.thread_idx()
        there = cute.make_tensor((x.iterator + at).align(16), 16)
        fragment = cute.make_rmem_tensor(4, cute.Float32)
        cute.autovec_copy(cute.local_tile(there, (4,), (t,)), fragment)
        out[t] = fragment[0] + fragment[3]

    x, out = np.arange(32, dtype=np.float32), np.zeros(4, np.float32)
    halves(x, out, 8).launch(grid=1, block=4, device="sim")
    assert out.tolist() == [19, 27, 35, 43]
    assert "ld.global.v4.b32" in halves.ptx("sm_80")
    with pytest.raises(ProgramError, match="not a multiple of the 16 bytes") as error:
        halves(x, out, 6).launch(grid=1, block=4, device="sim")
    assert error.value.code == "E3203"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: make_ptr(cute.Float32, 0, cute.AddressSpace.rmem), "no number is an address in rmem"),
        (lambda: make_ptr(cute.Float32, 0, assumed_align=12), "assumed_align is 12"),
        (lambda: make_ptr(cute.Float32, 0).align(3), "the alignment is 3"),
        (lambda: cute.make_rmem_tensor(4, cute.Int8).iterator.align(64), "known to be aligned to"),
    ],
)
def test_mistakes(call: Callable[[], object], said: str) -> None:
    @cute.kernel
    def kernel(out):
        call()

    with pytest.raises(ProgramError, match=said) as error:
        kernel(np.zeros(1, np.float32)).launch(grid=1, block=1, device="sim")
    assert error.value.code == "E5002"


def test_tiles_of_a_group_of_products() -> None:
    @cute.kernel
    def walk(sizes, out, total: cute.Int32):
        params = utils.PersistentTileSchedulerParams((1, 1, total), (1, 1, 1))
        tiles = utils.StaticPersistentGroupTileScheduler.create(
            params,
            cute.arch.block_idx(),
            cute.arch.grid_dim(),
            (64, 64, 32),
            utils.create_initial_search_state(),
            sizes.shape[0],
            sizes,
        )
        work = tiles.initial_work_tile_info()
        while work.is_valid_tile:
            tile = work.group_search_result
            row = work.tile_idx[2]
            out[row, 0], out[row, 1], out[row, 2] = tile.group_idx, tile.cta_tile_idx_m, tile.cta_tile_idx_n
            out[row, 3], out[row, 4] = tile.cta_tile_count_k, tiles.num_tiles_executed
            tiles.advance_to_next_work()
            work = tiles.get_current_work()

    sizes = np.array([[64, 128, 64, 1], [0, 64, 32, 1], [72, 65, 96, 1]], np.int32)
    out = np.full((6, 5), -1, np.int32)
    walk(sizes, out, 6).launch(grid=(1, 1, 4), block=1, device="sim")
    assert out.tolist() == [
        [0, 0, 0, 2, 0], [0, 0, 1, 2, 0], [2, 0, 0, 3, 0], [2, 1, 0, 3, 0], [2, 0, 1, 3, 1], [2, 1, 1, 3, 1],
    ]  # fmt: skip


@cute.kernel
def added(a, b, out):
    t, _, _ = cute.arch.thread_idx()
    out[t] = a[0, t] + b[0, t]


@cute.jit
def odd_rows_added(x: cute.Tensor, out: cute.Tensor):
    added(x, cute.make_tensor(x.iterator + 2, x.layout), out).launch(grid=1, block=8)


def test_a_tensor_that_the_host_makes_of_another_reaches_the_rest_of_its_allocation() -> None:
    pairs = np.arange(32, dtype=np.float32).reshape(8, 2, 2)
    out = np.zeros(8, np.float32)
    for first in (pairs[:, 0].T, from_dlpack(pairs[:, 0].T)):
        odd_rows_added(first, out)
        assert np.array_equal(out, pairs[:, 0, 0] + pairs[:, 1, 0])


def test_a_tensor_that_the_host_makes_of_another_does_not_leave_its_allocation() -> None:
    x = np.zeros((2, 8), np.float32, order="F")
    with pytest.raises(ProgramError, match=r"E3202.*argument x \(64 bytes\)"):
        odd_rows_added(x, np.zeros(8, np.float32))


def test_a_tensor_alone_ends_with_its_view() -> None:
    pairs = np.zeros((8, 2, 2), np.float32)
    column = from_dlpack(pairs[:7, 0].T)
    with pytest.raises(ProgramError, match="E3202"):
        added(column, column, np.zeros(8, np.float32)).launch(grid=1, block=8)


@cute.kernel
def doubled_digits(addresses, out):
    t, _, _ = cute.arch.thread_idx()
    start = make_ptr(cute.Float4E2M1FN, addresses[0], cute.AddressSpace.gmem).align(16)
    pair = cute.local_tile(cute.make_tensor(start, cute.make_layout(64)), (2,), (t,)).load().to(cute.Float32)
    out[t] = pair[0] + pair[1]


def test_a_pointer_to_elements_of_4_bits_promises_an_alignment() -> None:
    bytes = np.zeros(64, np.uint8)
    first = -bytes.ctypes.data % 16
    bytes[first : first + 32] = 0x22  # 1 and 1
    out = np.zeros(32, np.float32)
    doubled_digits(np.array([from_dlpack(bytes).data_ptr + first], np.int64), out).launch(grid=1, block=32)
    assert out.tolist() == [2.0] * 32
