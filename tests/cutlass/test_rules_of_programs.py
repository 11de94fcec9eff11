# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of CuTe on which public programs rely."""

from functools import partial
from typing import Any

import numpy as np

import tilefold.cutlass as cutlass
from tilefold import cute


def test_a_number_divided_by_a_tuple_is_divided_by_its_product() -> None:
    assert cute.ceil_div(1000, (512,)) == 2
    assert cute.ceil_div(1000, (8, (4, 2))) == 16


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
