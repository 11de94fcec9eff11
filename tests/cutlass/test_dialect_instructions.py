# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that programs write in the form of MLIR's dialects `nvvm` and `llvm`."""

from typing import Any

import numpy as np

from tilefold import cute
from tilefold.cutlass.cutlass_dsl import T, dsl_user_op
from tilefold.cutlass.mlir import ir
from tilefold.cutlass.mlir.dialects import llvm, nvvm, vector


def in_tensor_memory(number: Any) -> Any:
    return llvm.inttoptr(llvm.PointerType.get(cute.AddressSpace.tmem.value), cute.Int32(number))


@dsl_user_op
def arrive(bar: cute.Pointer, kind: nvvm.MBarrierTxnKind, count: int) -> None:
    with cute.arch.elect_one():
        nvvm.mbarrier_txn(bar.to_llvm_ptr(), cute.Int32(count).ir_value(), kind=kind)


@cute.kernel
def through_tensor_memory(A: cute.Tensor, out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    place = cute.make_smem_tensor(1, cute.Int32)
    bar = cute.make_smem_tensor(1, cute.Int64)
    one = nvvm.CTAGroupKind.CTA_1
    nvvm.tcgen05_alloc(place.iterator, cute.Uint32(32).ir_value(), group=one)
    if t == 0:
        cute.arch.mbarrier_init(bar.iterator, 2)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    arrive(bar.iterator, nvvm.MBarrierTxnKind.ARRIVE, 1)
    arrive(bar.iterator, nvvm.MBarrierTxnKind.ARRIVE_EXPECT_TX, 0)
    cute.arch.mbarrier_wait(bar.iterator, 0)
    at, shape = in_tensor_memory(place[0]), nvvm.Tcgen05LdStShape.SHAPE_32X32B
    words: Any = ir.VectorType.get([2], T.i32())
    nvvm.tcgen05_st(shape, at, vector.from_elements(words, [A[t, 0], A[t, 1]]))
    nvvm.tcgen05_st(shape, in_tensor_memory(place[0] + 2), A[t, 2].ir_value())
    nvvm.tcgen05_wait(nvvm.Tcgen05WaitKind.STORE)
    pair, last = nvvm.tcgen05_ld(words, shape, 2, at), nvvm.tcgen05_ld(T.i32(), shape, in_tensor_memory(place[0] + 2))
    nvvm.tcgen05_wait(nvvm.Tcgen05WaitKind.LOAD)
    out[t, 0], out[t, 1], out[t, 2] = last, pair[1], pair[0]
    nvvm.nanosleep(cute.Int32(20).ir_value())
    nvvm.tcgen05_relinquish_alloc(group=one)
    nvvm.tcgen05_dealloc(at, cute.Int32(32).ir_value(), group=one)


def test_tensor_memory_by_names_of_the_dialect() -> None:
    a, o = np.arange(96, dtype=np.int32).reshape(32, 3), np.zeros((32, 3), np.int32)
    through_tensor_memory(a, o).launch(grid=1, block=32, device="sim")
    assert np.array_equal(o, a[:, ::-1])


@cute.kernel
def texts(out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t, 0] = llvm.inline_asm(T.i32(), [t, cute.Int32(10)], "sub.s32 $2, $1, $0;", "r,r,=r")
    out[t, 1] = cute.Int32(llvm.inline_asm(T.i64(), [cute.Int32(-1)], "shr.u64 $0, $1, 4;", "=l,l"))


def test_constraints_number_registers_and_widen_integers() -> None:
    o = np.zeros((2, 2), np.int32)
    texts(o).launch(grid=1, block=2, device="sim")
    assert o.tolist() == [[10, 0x0FFFFFFF], [9, 0x0FFFFFFF]]


@cute.kernel
def counting(out: cute.Tensor, n: cute.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    rows = cute.make_tensor(3, cute.make_layout((cute.ceil_div(n, 4), 4), stride=(4, 1)))
    assert not isinstance(out, cute.Int32)  # programs tell a tensor from a value so
    assert isinstance(n, cute.Int32)
    out[t, 0] = rows[t, 1]
    out[t, 1] = cute.local_tile(cute.make_tensor(n, cute.make_layout((4, 8), stride=(8, 1))), (2, 4), (1, 1))[t, 2]
    out[t, 2] = cute.Int32(cute.math.div(cute.abs(cute.Float32(-7)), 2.0, rounding=cute.math.RoundingMode.NEAREST_EVEN))


def test_a_tensor_that_counts_from_an_integer() -> None:
    o = np.zeros((2, 3), np.int32)
    counting(o, 20).launch(grid=1, block=2, device="sim")
    assert o.tolist() == [[3 + 1, 20 + 2 * 8 + 4 + 2, 3], [3 + 4 + 1, 20 + 3 * 8 + 4 + 2, 3]]


def test_a_context_that_a_program_changes() -> None:
    class SingleThreaded(ir.Context):
        def __init__(self) -> None:
            super().__init__()
            self.enable_multithreading(False)

    SingleThreaded()
