# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordinates and distances that differ from good ones by multiples of 2**32, or of 2**64 in bytes: narrower index
arithmetic would take them for the good ones. At every stage their access is a fault.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.kernels.harness import STAGES, program_of
from tilefold import cute
from tilefold.driver.lowering import Program

FAULTS = ("E3202", "E3209")
OFFSETS = (1 << 32, -(3 << 32), 1 << 61, -(1 << 61), 1 << 62, -(1 << 63))
"""What a good coordinate is off by: in elements of 4 bytes, in rows of 8 of them, multiples of 2**64 bytes, too."""


def load(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = A[n, 2]


def load_by_lane(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    t = cute.arch.thread_idx()[0]
    B[t] = A[n + t, 2]


def store(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[n] = A[0, 2]


def row(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = A[n, None][2]


def tile(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = cute.local_tile(A, (4, 4), (n, 0))[1, 1]


def tile_by_lane(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    t = cute.arch.thread_idx()[0]
    B[t] = cute.local_tile(A, (1, 4), (n + t, 0))[0, 1]


def whole_tile(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = cute.local_tile(A, (4, 4), (n, 0)).load()[3]


def ragged_tile(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = cute.local_tile(A, (3, 3), (n, 0))[0, 0]


def tile_of_a_divide(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = cute.zipped_divide(A, (4, 4))[(None, None), (n, 0)][1, 1]


def fragment(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    part = cute.make_fragment(8, cute.Float32)
    for i in range(8):
        part[i] = A[i, 0]
    B[0] = part[n]


def shared(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    s = cute.make_smem_tensor(cute.make_layout((4, 8), stride=(8, 1)), cute.Float32)
    s[0, 0] = A[0, 0]
    s[1, 0] = A[0, 1]
    B[0] = s[n, 0]


def swizzled(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    swizzle = cute.make_composed_layout(cute.make_swizzle(1, 0, 3), 0, cute.make_layout((4, 8), stride=(8, 1)))
    s = cute.make_smem_tensor(swizzle, cute.Float32)
    s[0, 0] = A[0, 0]
    s[1, 0] = A[0, 1]
    B[0] = s[n, None][0]


def pointer(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = cute.make_tensor(A.iterator + n, 4)[0]


def raw_pointer(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = A.iterator.raw_ptr()[n]


def raw_pointer_by_lane(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    t = cute.arch.thread_idx()[0]
    B[t] = A.iterator.raw_ptr()[n + t]


def raw_pointer_in_steps(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = (A.iterator.raw_ptr() + n + n + n + n)[0]


def raw_pointer_back(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = (A.iterator.raw_ptr() + 2 - n)[0]


def domain_offset(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = cute.domain_offset((n, 0), A)[0, 1]


def domain_offset_by_lane(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    t = cute.arch.thread_idx()[0]
    B[t] = cute.domain_offset((n + t, 0), A)[0, 1]


def element_pointer(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    cute.arch.atomic_add(B.ptr(n), cute.Float32(5.0))


def run_time_stride(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = cute.make_tensor(A.iterator, cute.make_layout(4, stride=n))[2]


def run_time_stride_by_lane(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    t = cute.arch.thread_idx()[0]
    B[t] = cute.make_tensor(A.iterator, cute.make_layout(8, stride=n))[t + 2]


def run_time_extent(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    B[0] = cute.make_tensor(A.iterator, cute.make_layout((n, 4), stride=(4, 1)))[n - 1, 0]


def coordinate(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    i, j = cute.make_identity_tensor((8, 8))[n, 2]
    if i < 8:
        B[0] = A[i, j]


def coordinate_of_a_tile(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    t = cute.arch.thread_idx()[0]
    i, j = cute.local_tile(cute.make_identity_tensor((8, 8)), (2, 4), (n + t, 0))[1, 1]
    if i < 8:
        B[t] = A[i, j]


def predicate(A: cute.Tensor, B: cute.Tensor, n: cute.Int64):
    part = cute.local_tile(cute.make_identity_tensor((8, 8)), (1, 8), (n, 0))
    source = cute.local_tile(A, (1, 8), (n, 0))
    target = cute.make_fragment_like(source)
    target.fill(0.0)
    holds = cute.make_fragment(cute.make_layout((1, 8)), cute.Boolean)
    for j in range(8):
        holds[0, j] = part[0, j][0] < 8
    cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32), source, target, pred=holds)
    B[0] = target[0, 2]


KERNELS: list[Callable[..., None]] = [
    load, load_by_lane, store, row, tile, tile_by_lane, whole_tile, ragged_tile, tile_of_a_divide, fragment, shared,
    swizzled, pointer, raw_pointer, raw_pointer_by_lane, raw_pointer_in_steps, raw_pointer_back, domain_offset,
    domain_offset_by_lane, element_pointer, run_time_stride, run_time_stride_by_lane, run_time_extent, coordinate,
    coordinate_of_a_tile, predicate,
]  # fmt: skip


@cache
def _kernel(function: Callable[..., None]) -> Any:
    return cute.kernel(function)


def _run_python(function: Callable[..., None], n: int, stage: str) -> Any:
    a, b = np.arange(64, dtype=np.float32).reshape(8, 8) + 1, np.zeros(16, np.float32)
    block = 4 if function.__name__.endswith(("lane", "a_tile")) else 1
    _kernel(function)(a, b, cute.Int64(n)).launch(grid=1, block=block, device="sim", stage=stage)
    return b


_TEXT = """
!a = !tile.tensor<f32, gmem, align<16>, "(8,8):(8,1)">
!b = !tile.tensor<f32, gmem, align<16>, "16:1">
!s = !tile.tensor<f32, smem, align<128>, "(1,8):(8,1)">
gpu.module @m {{
  tile.kernel @k(%A: !a, %B: !b, %wide: i64) threads(32) {{
    %n = arith.index_cast %wide : i64 to index
    %t = gpu.thread_id x
    %zero = arith.constant 0 : index
    %leads = arith.cmpi eq, %t, %zero : index
    {body}
    return
  }}
}}
"""
_CHOICE = """
%u = tile.slice %A, (0, _)
%v = tile.slice %A, (1, _)
%c = tile.choose %n of %u, %v
%e = tile.load %c(2)
tile.store %e, %B(0)
"""
_SWIZZLED_CHOICE = """
%p = tile.alloc : !tile.tensor<f32, smem, align<128>, "S<1,0,3> o 0 o (8,8):(8,1)">
%q = tile.alloc : !tile.tensor<f32, smem, align<128>, "S<1,0,3> o 0 o (8,8):(8,1)">
scf.if %leads {
tile.copy %A, %p
tile.copy %A, %q
}
ptx.bar.sync 0
%u = tile.slice %p, (1, _)
%v = tile.slice %q, (1, _)
%c = tile.choose %n of %u, %v
%e = tile.load %c(2)
tile.store %e, %B(0)
"""
_BOUNDS = """
%i = tile.identity like %A
%gI = tile.local_tile %i, "(2,8)", (%n, 0) ragged
%gA = tile.local_tile %A, "(2,8)", (%n, 0) ragged
%holds = tile.bounds %gI, (8, 8)
%r = tile.alloc : !tile.tensor<f32, rmem, align<16>, "(2,8):(8,1)">
%nothing = arith.constant 0.0 : f32
tile.fill %r, %nothing
tile.copy %gA, %r if %holds
%e = tile.load %r(0, 2)
tile.store %e, %B(0)
"""
_TMA_COPY = """
%one = arith.constant 1 : i32
%even = arith.constant 0 : i32
%bytes = arith.constant 32 : i32
%s = tile.alloc : !s
%s0 = tile.group_modes %s, [0, 2]
%bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">
%bar = tile.ptr %bars(0)
%a = tile.tensor_map "SM90_TMA_LOAD" %A smem "(1,8):(8,1)"
%a0 = tile.tma_tensor %a
%a1 = tile.local_tile %a0, "(1,8)", (%n, 0)
%a2 = tile.group_modes %a1, [0, 2]
%from = tile.tma_partition %a, %a2, 0 in "1:0"
%to = tile.tma_partition %a, %s0, 0 in "1:0"
scf.if %leads {
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
ptx.mbarrier.arrive.expect_tx %bar, %bytes
tile.copy %a, %from, %to mbarrier %bar
ptx.mbarrier.wait %bar, %even
%e = tile.load %s(0, 2)
tile.store %e, %B(0)
}
"""
TEXTS = {"choice": _CHOICE, "swizzled choice": _SWIZZLED_CHOICE, "bounds": _BOUNDS, "TMA copy": _TMA_COPY}


@cache
def _program(body: str) -> Program:
    return program_of(_TEXT.format(body=body))


def _run_text(body: str, n: int, stage: str) -> Any:
    a, b = np.arange(64, dtype=np.float32) + 1, np.zeros(16, np.float32)
    module = _program(body).at(stage, Target("sm_90a"))
    assert module is not None
    arguments = {"A": TensorArgument(a), "B": TensorArgument(b), "wide": n}
    SimEngine().launch(SimProgram(module, "k"), LaunchConfig((1, 1, 1), (32, 1, 1)), arguments)
    return b


def _outcome(run: Callable[[int], Any], n: int) -> Any:
    """What a run leaves in B, or the code of its fault."""
    try:
        return run(n)
    except TilefoldError as error:
        return str(error.code)


def _check(run: Callable[[int], Any], good: int, no_access_is_right: bool) -> None:
    assert run(good).any()
    for offset in OFFSETS:
        outcome = _outcome(run, good + offset)
        if isinstance(outcome, str):
            assert outcome in FAULTS, offset
        else:
            assert no_access_is_right, offset
            assert not outcome.any(), offset


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("function", KERNELS, ids=lambda function: function.__name__)
@pytest.mark.sampled(33)
def test_of_kernels_in_python(function: Callable[..., None], stage: str) -> None:
    """Where a kernel compares the coordinate itself, leaving the access out is right, too."""
    compares = function in (coordinate, coordinate_of_a_tile, predicate)
    _check(lambda n: _run_python(function, n, stage), 1, compares)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("body", TEXTS.values(), ids=TEXTS)
def test_of_kernels_as_text(body: str, stage: str) -> None:
    """Likewise where predicates do."""
    _check(lambda n: _run_text(body, n, stage), 1, body == _BOUNDS)
