# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several simulated devices: symmetric and multicast memory, flags, races between devices, and waits in vain."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.runtime import from_dlpack
from tilefold.cute.several_devices import meet, memory_at, multicast, peers, run_on_devices, symmetric
from tilefold.cute.utils import distributed

N, THREADS = 3, 32


@cute.kernel
def add_peers(own: cute.Tensor, first: cute.Tensor, second: cute.Tensor, out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    out[t] = first[t] + second[t] + own[t] * 0


@cute.kernel
def all_reduce(
    inputs: cute.Tensor,
    outputs: cute.Tensor,
    flag: cute.Tensor,
    flags: cute.Tensor,
    rank: cute.Constexpr[int],
    scope: cute.Constexpr[str],
    dtype: cute.Constexpr[Any],
):
    """Each device sums a part of all inputs, and writes it to the outputs of all."""
    t, _, _ = cute.arch.thread_idx()
    width = 128 // dtype.width
    at = (rank * THREADS + t) * width
    parts = distributed.multimem_ld_reduce(inputs.iterator + at, dtype=dtype, num_elements=width)
    distributed.multimem_st(outputs.iterator + at, *parts)
    cute.arch.sync_threads()
    if t == 0:
        distributed.multimem_red_add1(flags.iterator, order="release", scope=scope)
        distributed.spin_lock_atom_cas_acquire_wait(flag.iterator, expected_val=N, reset_val=0, scope=scope)


def reduced(dtype: Any, scope: str, rank: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The output of a device, and the expected one."""
    count = N * THREADS * 128 // dtype.width
    numpy_type = np.float16 if dtype.width == 16 else np.float32
    inputs, outputs, flag = symmetric(count, numpy_type), symmetric(count, numpy_type), symmetric(1, np.int32)
    inputs[:] = np.arange(count) % 31 * (rank + 1)
    places = [multicast(array) for array in (inputs, outputs, flag)]
    meet()
    all_reduce(places[0], places[1], flag, places[2], rank, scope, dtype).launch(grid=1, block=THREADS)
    assert flag[0] == 0
    return outputs, np.stack(peers(inputs)).astype(np.float32).sum(0).astype(numpy_type)


@cute.kernel
def address_of_shared(out: cute.Tensor, rank: cute.Constexpr[int]):
    t, _, _ = cute.arch.thread_idx()
    values = cute.make_smem_tensor(30000, cute.Float32)
    values[t] = cute.Float32(t + rank)
    cute.arch.sync_threads()
    out[t] = cute.Int32(values.iterator.toint()) * 0 + cute.Int32(values[t ^ 1])
    if t == 0:
        out[THREADS] = cute.Int32(values.iterator.toint())


def test_blocks_of_each_device_have_shared_memory_at_the_same_addresses() -> None:
    def program(rank: int) -> NDArray[Any]:
        out = np.zeros(THREADS + 1, np.int32)
        address_of_shared(out, rank).launch(grid=1, block=THREADS)
        return out

    first, *others = run_on_devices(N, program)
    assert first[THREADS] < 1 << 18  # what a descriptor of shared memory can name
    for rank, other in enumerate(others, 1):
        assert other[THREADS] == first[THREADS]
        assert (other[:THREADS] == first[:THREADS] + rank).all()


@cute.kernel
def sum_beside_an_address(
    inputs: cute.Tensor, outputs: cute.Tensor, address: cute.Int64, seen: cute.Tensor, rank: cute.Constexpr[int]
):
    t, _, _ = cute.arch.thread_idx()
    own = cute.make_tensor(
        cute.make_ptr(cute.Float32, address, cute.AddressSpace.gmem, assumed_align=4), cute.make_layout(THREADS)
    )
    seen[t] = own[t]
    at = (rank * THREADS + t) * 4
    parts = distributed.multimem_ld_reduce(inputs.iterator + at, dtype=cute.Float32, num_elements=4)
    distributed.multimem_st(outputs.iterator + at, *parts)


def test_symmetric_memory_of_a_kernel_that_makes_pointers_of_numbers() -> None:
    def program(rank: int) -> tuple[NDArray[Any], ...]:
        inputs, outputs, seen = symmetric(N * THREADS * 4), symmetric(N * THREADS * 4), symmetric(THREADS)
        inputs[:] = np.arange(inputs.size) * (rank + 1)
        places = [multicast(array) for array in (inputs, outputs)]
        kept = [from_dlpack(array) for array in (inputs, outputs)]  # whose addresses may be numbers
        meet()
        sum_beside_an_address(*places, inputs.ctypes.data, seen, rank).launch(grid=1, block=THREADS)
        assert kept
        return inputs, outputs, seen

    results = run_on_devices(N, program)
    total = sum(inputs for inputs, _, _ in results)
    for inputs, outputs, seen in results:
        assert (outputs == total).all()
        assert (seen == inputs[:THREADS]).all()


def test_a_kernel_reads_the_memory_of_its_peers() -> None:
    def program(rank: int) -> NDArray[Any]:
        own, out = symmetric(THREADS), np.zeros(THREADS, np.float32)
        own[:] = 10.0**rank
        meet()
        add_peers(own, *peers(own), out).launch(grid=1, block=THREADS)
        return out

    for out in run_on_devices(2, program):
        assert (out == 11).all()


@pytest.mark.parametrize("dtype", [cute.Float32, cute.Float16], ids=str)
def test_multicast_memory_is_summed_and_written_on_all_devices(dtype: Any) -> None:
    for out, expected in run_on_devices(N, partial(reduced, dtype, "sys")):
        np.testing.assert_array_equal(out, expected)


def test_memory_of_devices_by_its_address() -> None:
    def program(rank: int) -> None:
        mine = symmetric(4, np.int32)
        mine[:] = rank
        meet()
        found = [memory_at(array.ctypes.data).view(np.int32)[0] for array in peers(mine)]
        assert found == [0, 1]
        assert memory_at(multicast(mine).ctypes.data).nbytes == mine.nbytes
        with pytest.raises(TilefoldError, match="E0213"):
            memory_at(mine.ctypes.data + 4)

    run_on_devices(2, program)


def test_the_scope_of_a_gpu_does_not_reach_another_device() -> None:
    with pytest.raises(TilefoldError, match=r'E3205.*of device 0(.|\n)*scope "sys"'):
        run_on_devices(N, partial(reduced, cute.Float32, "gpu"))


@cute.kernel
def write_to_peer(peer: cute.Tensor, own: cute.Tensor, out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    peer[t] = 1.0
    out[t] = own[t]


def test_accesses_of_two_devices_that_nothing_orders_are_a_race() -> None:
    def program(rank: int) -> None:
        own = symmetric(THREADS)
        write_to_peer(peers(own)[1 - rank], own, np.zeros(THREADS, np.float32)).launch(grid=1, block=THREADS)

    with pytest.raises(TilefoldError, match=r"E3205.*device 1: race: .*of device 0"):
        run_on_devices(2, program)


@cute.kernel
def wait_for(flag: cute.Tensor, expected: cute.Constexpr[int]):
    distributed.spin_lock_ld_lt_relaxed_wait(flag.iterator, expected_val=expected)


def test_a_wait_for_a_flag_that_nobody_sets_is_found() -> None:
    def program(rank: int) -> None:
        wait_for(symmetric(1, np.int32), 1).launch(grid=1, block=1)

    with pytest.raises(TilefoldError, match=r"E3231"):
        run_on_devices(2, program)


@cute.kernel
def sum_of(array: cute.Tensor, out: cute.Tensor):
    (out[0],) = distributed.multimem_ld_reduce(array.iterator)


def test_multimem_takes_multicast_addresses_only() -> None:
    def program(rank: int) -> None:
        sum_of(symmetric(1), np.zeros(1, np.float32)).launch(grid=1, block=1)

    with pytest.raises(TilefoldError, match=r"E3202.*not one of multicast memory"):
        run_on_devices(2, program)


@cute.kernel
def plain_store(out: cute.Tensor):
    out[cute.arch.thread_idx()[0]] = 1.0


def test_multicast_memory_takes_multimem_only() -> None:
    def program(rank: int) -> None:
        place = multicast(symmetric(THREADS))
        meet()
        plain_store(place).launch(grid=1, block=THREADS)

    with pytest.raises(TilefoldError, match=r"E3202.*writes 4 bytes.* an address of multicast memory"):
        run_on_devices(2, program)


def test_what_multimem_lacks_is_refused() -> None:
    @cute.kernel
    def too_wide(array: cute.Tensor):
        distributed.multimem_ld_reduce(array.iterator, num_elements=8)

    @cute.kernel
    def three(array: cute.Tensor):
        distributed.multimem_st(array.iterator, 1, 2, 3)

    for kernel in (too_wide, three):
        with pytest.raises(TilefoldError, match=r"E5002.*multimem"):
            kernel(np.zeros(8, np.float32)).launch(grid=1, block=1)


def test_devices_that_wait_for_each_other_in_vain_are_named() -> None:
    def program(rank: int) -> None:
        meet("the first barrier" if rank else "another one")

    with pytest.raises(TilefoldError, match=r"E3105.*device 0 at another one, device 1 at the first barrier"):
        run_on_devices(2, program)
    with pytest.raises(TilefoldError, match=r"E3105.*device 1 at a barrier; device 0 ended"):
        run_on_devices(2, lambda rank: meet() if rank else None)


@cute.kernel
def counted(counts: list[cute.Tensor], flag: cute.Tensor, total: cute.Constexpr[int]):
    """Each thread of all devices counts itself everywhere, and thread 0 of each block waits for all."""
    t, _, _ = cute.arch.thread_idx()
    for count in counts:
        distributed.red_add1(count.iterator, order="release", scope="sys")
    if t == 0:
        distributed.spin_lock_ld_lt_relaxed_wait(flag.iterator, expected_val=total, scope="sys")


def test_grids_of_different_sizes_run_together() -> None:
    def program(rank: int) -> int:
        count = symmetric(1, np.int32)
        total = 2 * 96 + 3 * 32
        counted(peers(count), count, total).launch(grid=2 + rank, block=32 * (3 - 2 * rank))
        return int(count[0])

    assert run_on_devices(2, program) == [288, 288]


def test_what_only_devices_have_is_refused_elsewhere() -> None:
    with pytest.raises(TilefoldError, match=r"E0213.*there is one device"):
        symmetric(1)

    def program(rank: int) -> None:
        with pytest.raises(TilefoldError, match=r"E0213.*not in symmetric memory"):
            peers(np.zeros(1))
        run_on_devices(2, lambda rank: None)

    with pytest.raises(TilefoldError, match=r"E0213.*devices run in devices"):
        run_on_devices(2, program)
