# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications with K = 96 (sm_103a), whose rows of 48 bytes go on in another buffer: their descriptors, and the
scale factors of one and a half cells.
"""

import numpy as np
import pytest
from tilefold.layout.atoms.umma_descriptors import SmemDescriptor
from tilefold.runtime.sim.tcgen05.matrices import shared_matrix

from tests.tcgen05.results import copy_result
from tilefold import cute
from tilefold.cute.nvgpu import tcgen05
from tilefold.cute.utils import blockscaled_layout
from tilefold.cutlass.experimental import primitives as prims

ROWS, BYTES, FACTORS = 128, 256, 12
"""Rows of A and B, the bytes of a row in two buffers, and its scale factors."""
FIRST = 96
"""The byte at which the first multiplication begins: 32 of its bytes are in the first buffer, 16 in the second."""
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


@cute.kernel
def multiply(
    A: cute.Tensor, B: cute.Tensor, SFA: cute.Tensor, SFB: cute.Tensor, D: cute.Tensor, vector: cute.Constexpr
) -> None:
    """D = A * B^T of 192 elements of K, by two multiplications."""
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    shape = (ROWS, ROWS, 96)
    wide = tcgen05.SM103MmaMXF4NVF4Op(cute.Float8E8M0FNU, shape), tcgen05.SM103MmaMXF4Op(shape)
    mma = cute.make_tiled_mma(cute.make_mma_atom(wide[vector == 32]))
    assert mma.op.a_major_mode == tcgen05.OperandMajorMode.K
    kind = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, cute.Uint8)
    layout = tcgen05.tile_to_mma_shape(kind, ((ROWS, 16), 1, 8, 2), (0, 1, 2))
    sA, sB = (cute.make_smem_tensor(layout, cute.Uint8, 1024) for _ in range(2))
    sSFA, sSFB = (cute.make_smem_tensor(512 * FACTORS // 4, cute.Uint8, 128) for _ in range(2))
    slot, bar = cute.make_smem_tensor(1, cute.Int32), cute.make_smem_tensor(1, cute.Int64).iterator
    for c in cute.range(BYTES):
        sA[(t, c % 16), 0, c // 16 % 8, c // 128] = A[t, c]
        sB[(t, c % 16), 0, c // 16 % 8, c // 128] = B[t, c]
    for c in cute.range(FACTORS):
        place = 16 * (t % 32) + 4 * (t // 32) + c % 4 + 512 * (c // 4)
        sSFA[place], sSFB[place] = SFA[t, c], SFB[t, c]
    if warp == 0:
        cute.arch.alloc_tmem(256, slot.iterator)
        cute.arch.relinquish_tmem_alloc_permit()
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    start = cute.arch.retrieve_tmem_ptr(cute.Float32, 16, slot.iterator)
    acc = cute.make_tensor(start, mma.make_fragment_C(mma.partition_shape_C((ROWS, ROWS))).layout)
    factors = cute.make_layout(((((32, 4), 1), (vector, 1)), 1, FACTORS))
    tSFA, tSFB = (
        cute.make_tensor(
            cute.recast_ptr(start + column, dtype=cute.Float8E8M0FNU),
            blockscaled_layout.make_tmem_layout_sfa(mma, shape, vector, factors),
        )
        for column in (128, 160)
    )
    if warp == 0:
        with cute.arch.elect_one():
            for block in cute.range_constexpr(FACTORS // 4):
                for column, source in ((128, sSFA), (160, sSFB)):
                    matrix = prims.Tcgen05SmemDesc.build(source.iterator + 512 * block, 128, 128)
                    into = prims.make_tmem_ptr((start + (column + 4 * block)).toint())
                    prims.tcgen05_cp("32x128b", into, matrix, multicast="warpx4")
            for number, (first, following) in enumerate((((6, 0), (0, 1)), ((1, 1), (0, 1)))):
                at, then = [(None, 0, chunk, stage) for chunk, stage in (first, following)]
                mma.set(tcgen05.Field.SFA, tSFA[None, None, 96 // vector * number].iterator)
                mma.set(tcgen05.Field.SFB, tSFB[None, None, 96 // vector * number].iterator)
                a, b = [
                    tcgen05.make_umma_smem_desc(s[at].iterator, s[at].layout, "k", next_src=s[then].iterator)
                    for s in (sA, sB)
                ]
                one = cute.make_layout(1, stride=0)
                d = acc[(None, None, None)]
                cute.mma_atom_call(mma, d, cute.make_tensor(a, one), cute.make_tensor(b, one), d)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            tcgen05.commit(bar)
    cute.arch.mbarrier_wait(bar, 0)
    prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
    copy_result(acc, mma.get_slice(0).partition_C(D), start, 256)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("vector", [16, 32])
def test_rows_go_on_in_another_buffer(vector: int) -> None:
    chance = np.random.default_rng(0)
    A, B = (chance.integers(0, 256, (ROWS, BYTES)).astype(np.uint8) for _ in range(2))
    SFA, SFB = (chance.integers(125, 130, (ROWS, FACTORS)).astype(np.uint8) for _ in range(2))
    D = np.zeros((ROWS, ROWS), np.float32)
    multiply(A, B, SFA, SFB, D, vector).launch(grid=1, block=ROWS, device="sim")
    a, b = (_numbers(codes, scales, vector) for codes, scales in ((A, SFA), (B, SFB)))
    assert np.array_equal(D, a @ b.T)


@cute.kernel
def describe(major: cute.Constexpr, wide: cute.Constexpr) -> None:
    s = cute.make_smem_tensor(cute.make_layout((64, 32), stride=(32, 1)), cute.Uint8, 1024)
    r = cute.make_rmem_tensor((64, 32), cute.Uint8)
    tcgen05.make_umma_smem_desc((r if wide else s).iterator, s.layout, major, next_src=s.iterator)


@pytest.mark.parametrize(("wide", "said"), [(False, "E0315"), (True, "of shared memory, and this is rmem")])
def test_refused(wide: bool, said: str) -> None:
    with pytest.raises(Exception, match=said):
        describe("k", wide).launch(grid=1, block=128, device="sim")


def test_only_48_bytes_go_on() -> None:
    descriptor = SmemDescriptor(6, 512, 64, 2, is_absolute=True).value
    found = shared_matrix(descriptor, 16, 48, 4, False)
    assert not found.problem
    assert found.addresses[0].tolist() == [96, 112, 8192]
    assert found.addresses[9].tolist() == [1024 + 128 + 112, 1024 + 128 + 96, 8192 + 1024 + 128 + 16]  # swizzled by row
    assert "only 48 bytes of K" in shared_matrix(descriptor, 16, 32, 4, False).problem


def test_parts_of_rows_may_lie_between_each_other() -> None:
    """Four atoms 32 bytes apart, of whose rows of 128 bytes 32 are read: parts of K become more of N."""
    descriptor = SmemDescriptor(64, 1, 2, 2).value
    found = shared_matrix(descriptor, 32, 32, 8, False)
    assert not found.problem
    assert sorted(found.addresses.ravel()) == list(range(1024, 2048, 16))
    assert "overlap, as they are 32 bytes apart" in shared_matrix(descriptor, 32, 64, 8, False).problem


def _numbers(codes: np.ndarray, scales: np.ndarray, vector: int) -> np.ndarray:
    used = codes[:, FIRST : FIRST + 96]
    values = E2M1[np.stack([used & 15, used >> 4], axis=2).reshape(len(used), -1)]
    return values * np.exp2(scales[:, : 192 // vector].astype(np.float64) - 127).repeat(vector, axis=1)
