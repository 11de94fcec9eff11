# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of accesses to global memory: caches by name, and the orders that copies do not have."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.nvgpu import (
    CacheEvictionPriority,
    CopyG2ROp,
    CopyR2GOp,
    CopyR2SOp,
    CopyS2ROp,
    CopyUniversalOp,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
)


@cute.kernel
def moving(x: cute.Tensor, y: cute.Tensor, n: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    source, target = cute.local_tile(x, (4,), (t,)), cute.local_tile(y, (4,), (t,))
    own, shared = cute.make_rmem_tensor(4, cute.Float32), cute.make_smem_tensor(128, cute.Float32)
    place = cute.local_tile(shared, (4,), (t,))
    load = cute.make_copy_atom(
        CopyG2ROp(),
        cute.Float32,
        num_bits_per_copy=128,
        memory_order=MemoryOrder.WEAK,
        memory_scope=MemoryScope.CTA,
        l2_prefetch_size=L2PrefetchSize.SIZE_128B,
        l1c_evict_priority=CacheEvictionPriority.NO_ALLOCATE,
        load_cache_mode=LoadCacheMode.ALWAYS,
        invariant=True,
    )
    priority = CacheEvictionPriority.EVICT_FIRST
    store = cute.make_copy_atom(CopyR2GOp(), cute.Float32, num_bits_per_copy=128, l1c_evict_priority=priority)
    cute.copy(load, source, own)
    cute.copy(cute.make_copy_atom(CopyR2SOp(), cute.Float32, num_bits_per_copy=128), own, place)
    cute.copy(cute.make_copy_atom(CopyS2ROp(), cute.Float32, num_bits_per_copy=128), place, own)
    cute.copy(store, own, target)
    cute.autovec_copy(own, cute.local_tile(y, (4,), (t + 32,)), l1c_evict_priority=CacheEvictionPriority.NO_ALLOCATE)
    n[t + 32] = cute.arch.load(n.iterator + t, cute.Int32, cop="cg", level_prefetch_size="size_64b")
    word = cute.arch.load(n.iterator + t, level1_eviction_priority="evict_no_allocate")
    cute.arch.store(n.iterator + t + 64, word, cop="cs")
    cute.arch.red(n.iterator + t + 96, t, op="max", dtype="s32", sem="relaxed", scope="gpu")


def test_caches_by_name() -> None:
    x, y, n = np.arange(128, dtype=np.float32), np.zeros(256, np.float32), np.arange(128, dtype=np.int32)
    n[96:] = 10
    moving(x, y, n).launch(grid=1, block=32, device="sim")
    assert (y.reshape(2, 128) == x).all()
    assert (n[:96].reshape(3, 32) == np.arange(32)).all()
    assert (n[96:] == np.maximum(np.arange(32), 10)).all()
    words = {line.split()[0] for line in moving.ptx("sm_80").splitlines() if ".global" in line}
    assert words >= {
        "ld.global.nc.L1::no_allocate.L2::128B.v4.b32", "st.global.L1::evict_first.v4.b32",
        "st.global.L1::no_allocate.v4.b32", "ld.global.cg.L2::64B.b32", "ld.global.L1::no_allocate.b32",
        "st.global.cs.b32",
    }  # fmt: skip


MISTAKES: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "an order": (
        lambda x: cute.make_copy_atom(CopyG2ROp(), cute.Float32, memory_order=MemoryOrder.VOLATILE),
        "E5002", "copies are weak, not volatile",
    ),
    "an attribute of loads": (
        lambda x: cute.make_copy_atom(CopyR2GOp(), cute.Float32, invariant=True), "E5009", "no attribute 'invariant'",
    ),
    "an instruction without attributes": (
        lambda x: cute.make_copy_atom(CopyUniversalOp(), cute.Float32, memory_scope=MemoryScope.GPU),
        "E5009", "no attribute 'memory_scope'",
    ),
    "another value": (
        lambda x: cute.make_copy_atom(CopyG2ROp(), cute.Float32, l1c_evict_priority="first"),
        "E5002", "l1c_evict_priority is 'first'",
    ),
    "caches with an order": (
        lambda x: cute.arch.load(x.iterator, sem="acquire", cop="cg"), "E5002", "takes no cache hint",
    ),
    "an unknown operator": (lambda x: cute.arch.store(x.iterator, 1.0, cop="cu"), "E0317", "'cu' is not a cache hint"),
}  # fmt: skip


@cute.kernel
def mistaken(x: cute.Tensor, call: cute.Constexpr) -> None:
    call(x)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    call, code, words = MISTAKES[name]
    with pytest.raises(TilefoldError, match=words) as caught:
        mistaken(np.zeros(4, np.float32), call).launch(grid=1, block=32, device="sim")
    assert caught.value.code == code
