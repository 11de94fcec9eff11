# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of CuTe on which public programs rely."""

from functools import partial
from typing import Any

import numpy as np

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cute.nvgpu import cpasync, tcgen05


def test_a_number_divided_by_a_tuple_is_divided_by_its_product() -> None:
    assert cute.ceil_div(1000, (512,)) == 2
    assert cute.ceil_div(1000, (8, (4, 2))) == 16
    assert cute.ceil_div((100, 33), 32) == (4, 33)  # 100 has taken all of 32 (int_tuple.hpp)
    assert cute.round_up((7, 9), (4,)) == (8, 9)


def test_an_integer_is_one_mode() -> None:
    assert cute.group_modes(8192, 0, 1) == 8192
    assert cute.group_modes((4, 2), 0, 2) == ((4, 2),)


def test_a_copy_without_a_width_takes_nested_modes() -> None:
    """CuTe peels a mode that the instruction does not fit, and AutoVectorizingCopy fits every one."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor) -> None:
        t = cute.arch.thread_idx()[0]
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), x.element_type)
        held = cute.utils.SmemAllocator().allocate_tensor(x.element_type, cute.make_layout((4, 32), stride=(32, 1)))
        parts = cute.make_layout((4, (4, 8)), stride=(32, (1, 4)))
        mine = [cute.composition(whole, parts)[t, None] for whole in (x, held, y)]
        cute.copy(atom, mine[0], mine[1])
        cute.copy(atom, mine[1], mine[2])

    x, y = np.arange(128, dtype=np.float32).reshape(4, 32), np.zeros((4, 32), np.float32)
    kernel(x, y).launch(grid=1, block=4, device="sim")
    np.testing.assert_array_equal(y, x)


def test_a_loop_of_unknown_length_is_not_unrolled() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, n: cute.Int32) -> None:
        for i in cutlass.range(cute.arch.thread_idx()[0], n, 32, unroll_full=True):
            x[i] = i

    x = np.zeros(70, np.int32)
    kernel(x, 70).launch(grid=1, block=32, device="sim")
    np.testing.assert_array_equal(x, np.arange(70))
    assert "bra" in kernel(x, 70).build(32).ptx("sm_80")


def test_a_partial_function_is_compiled_with_its_arguments() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, factor: cutlass.Constexpr, more: cute.Int32) -> None:
        t = cute.arch.thread_idx()[0]
        x[t] = x[t] * factor + more

    @cute.jit
    def host(factor: cutlass.Constexpr, x: cute.Tensor, more: cute.Int32) -> None:
        kernel(x, factor, more).launch(grid=1, block=4)

    x: Any = np.arange(4, dtype=np.int32)
    cute.compile(partial(partial(host, 3), more=2), x)(x)
    np.testing.assert_array_equal(x, [2, 5, 8, 11])


def test_a_promise_below_the_size_of_an_element() -> None:
    @cute.jit
    def host(x: cute.Tensor) -> None:
        x[0] = 5.0

    x = np.zeros(4, np.float32)
    host(cute.runtime.from_dlpack(x, assumed_align=2))
    assert x[0] == 5


def test_a_call_names_its_kernel() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        for i in cutlass.range(4, unroll=-1):
            x[i] = i

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x, _name_prefix="four numbers").launch(grid=1, block=1)

    x = np.zeros(4, np.int32)
    host(x)
    np.testing.assert_array_equal(x, np.arange(4))
    assert ".entry four_numbers_kernel(" in kernel.last.ptx("sm_80")


def test_registers_take_a_fragment_of_other_modes_in_the_order_of_its_elements() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor) -> None:
        t = cute.arch.thread_idx()[0]
        held = cute.make_rmem_tensor(((4, 1), 2), cute.Float32)
        held.store(cute.make_tensor(x[t, None].iterator, cute.make_layout(((4, 2), 1))).load())
        for i in cute.range_constexpr(8):
            y[t, i] = held[i]

    x, y = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 8), np.float32)
    kernel(x, y).launch(grid=1, block=4, device="sim")
    np.testing.assert_array_equal(y, x)


def test_first_modes_align_where_last_ones_do_not() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        rows = cute.make_rmem_tensor(4, cute.Float32)
        for i in cute.range_constexpr(4):
            rows[i] = 10.0 * i
        x.store(x.load() + rows.load())

    x = np.zeros((4, 2), np.float32)
    kernel(x).launch(grid=1, block=1)
    np.testing.assert_array_equal(x, np.repeat(10.0 * np.arange(4), 2).reshape(4, 2))


def test_a_barrier_whose_number_differs_between_paths_is_that_of_its_path() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        t, warp = cute.arch.thread_idx()[0], cute.arch.warp_idx()
        barrier = cute.pipeline.NamedBarrier(2, 32)
        if warp == 0:
            barrier.arrive_and_wait()
        elif warp in (1, 2):
            barrier = cute.pipeline.NamedBarrier(barrier.barrier_id + warp, 32)
            barrier.arrive_and_wait()
        x[t] = warp

    x = np.zeros(128, np.int32)
    kernel(x).launch(grid=1, block=128)
    np.testing.assert_array_equal(x, np.arange(128) // 32)


def test_the_tile_of_an_operand_with_nested_rows() -> None:
    """The rows of a tile are 8 of 16 along the first part of the mode, and 8 along the second."""

    @cute.kernel
    def kernel(B: cute.Tensor) -> None:
        mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 64, 16)))
        kind = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, cute.Float16)
        layout = tcgen05.tile_to_mma_shape(kind, mma.partition_shape_B((64, 64)))
        nested: Any = cute.make_tensor(B.iterator, cute.make_layout(((16, 8), 64), stride=((64, 4096), 1)))
        op = cpasync.CopyBulkTensorTileG2SOp()
        made: Any = cute.nvgpu.make_tiled_tma_atom_B(op, nested, layout, (128, (8, 8), 64), mma)
        assert tuple(made.atom.type.tma_copy.box) == (64, 8, 8)

    kernel(np.zeros((512, 64), np.float16)).build(32)
