# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of accesses to global memory: caches by name, and memory orders of copies."""

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


def _volatile(op: CopyG2ROp | CopyR2GOp, bits: int) -> cute.CopyAtom:
    return cute.make_copy_atom(op, cute.Float32, num_bits_per_copy=bits, memory_order=MemoryOrder.VOLATILE)


@cute.kernel
def handing(x: cute.Tensor, y: cute.Tensor, slots: cute.Tensor, order: cute.Constexpr) -> None:
    """One warp hands four values a lane to another, which waits until none of them is 0."""
    t, _, _ = cute.arch.thread_idx()
    lane = t % 32
    way: Any = {"memory_order": order, "memory_scope": MemoryScope.GPU}
    load = cute.make_copy_atom(CopyG2ROp(), cute.Float32, num_bits_per_copy=128, **way)
    store = cute.make_copy_atom(CopyR2GOp(), cute.Float32, num_bits_per_copy=64, **way)
    tiled = cute.make_tiled_copy_tv(load, cute.make_layout(32), cute.make_layout(4)).get_slice(lane)
    slot, own = cute.local_tile(slots, (4,), (lane,)), cute.make_rmem_tensor(4, cute.Float32)
    if t >= 32:
        cute.copy(load, cute.local_tile(x, (4,), (lane,)), own)
        cute.copy(store, own, slot)
    else:
        part = tiled.partition_S(slots)
        own = cute.make_fragment_like(part)
        own.fill(0.0)
        while own[0] * own[1] * own[2] * own[3] == 0.0:
            cute.copy(tiled, part, own)
        cute.copy(store, own[None, 0], cute.local_tile(y, (4,), (lane,)))


def test_copies_with_an_order_are_no_race() -> None:
    x, y, slots = np.arange(1, 129, dtype=np.float32), np.zeros(128, np.float32), np.zeros(128, np.float32)
    for order in (MemoryOrder.RELAXED, MemoryOrder.VOLATILE):
        y[:] = slots[:] = 0
        call = handing(x, y, slots, order)
        call.launch(grid=1, block=64, device="sim")
        assert (y == x).all()
    with pytest.raises(TilefoldError) as caught:
        handing(x, y, np.zeros(128, np.float32), MemoryOrder.WEAK).launch(grid=1, block=64, device="sim")
    assert caught.value.code == "E3205"


@cute.kernel
def moving_halves(x: cute.Tensor, y: cute.Tensor, bits: cute.Constexpr) -> None:
    load = cute.make_copy_atom(
        CopyG2ROp(), x.element_type, bits, memory_order=MemoryOrder.ACQUIRE, memory_scope=MemoryScope.CTA
    )
    store = cute.make_copy_atom(
        CopyR2GOp(), x.element_type, bits, memory_order=MemoryOrder.RELEASE, memory_scope=MemoryScope.SYS
    )
    t, _, _ = cute.arch.thread_idx()
    source, target = (cute.local_tile(a, (8, 2), (t, 0)) for a in (x, y))
    own = cute.make_rmem_tensor(cute.make_layout((8, 2), stride=(2, 1)), x.element_type)
    cute.copy(load, source, own)
    cute.copy(store, own, target)


@pytest.mark.parametrize(
    ("dtype", "bits", "words"),
    [
        (np.float16, 128, "v4.b32"), (np.float16, 32, "b32"), (np.float16, 16, "b16"), (np.float16, None, "b16"),
        (np.int8, 64, "v2.b32"), (np.float64, 64, "b64"), (np.float64, 128, "b64"), (np.float32, None, "b32"),
    ],
)  # fmt: skip
def test_words_of_copies_with_an_order(dtype: type[np.generic], bits: int | None, words: str) -> None:
    x, y = np.asfortranarray(np.arange(64).reshape(32, 2).astype(dtype)), np.zeros((32, 2), dtype, order="F")
    moving_halves(x, y, bits).launch(grid=1, block=4, device="sim")
    assert (x == y).all()
    found = {
        line.split()[0]
        for line in moving_halves.ptx("sm_80").splitlines()
        if line.strip().startswith(("ld.", "st.")) and ".global" in line
    }
    assert found == {f"ld.acquire.cta.global.{words}", f"st.release.sys.global.{words}"}


MISTAKES: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "an order of stores": (
        lambda x: cute.make_copy_atom(CopyG2ROp(), cute.Float32, memory_order=MemoryOrder.RELEASE),
        "E5002", "a load is not release",
    ),
    "an order without a scope": (
        lambda x: cute.make_copy_atom(CopyR2GOp(), cute.Float32, memory_order=MemoryOrder.RELEASE),
        "E5002", "a copy with the order release needs a scope",
    ),
    "an order and caches": (
        lambda x: cute.make_copy_atom(
            CopyG2ROp(), cute.Float32, memory_order=MemoryOrder.VOLATILE, load_cache_mode=LoadCacheMode.GLOBAL
        ),
        "E5002", "takes no attributes of caches",
    ),
    "an order in the other direction": (
        lambda x: cute.copy(_volatile(CopyR2GOp(), 128), x, cute.make_rmem_tensor(4, cute.Float32)),
        "E5002", "moves from registers to global memory, not from gmem to rmem",
    ),
    "an order and predicates": (
        lambda x: cute.copy(
            _volatile(CopyG2ROp(), 32), cute.prepend(x), cute.make_rmem_tensor((1, 4), cute.Float32),
            pred=cute.make_rmem_tensor((1, 4), cute.Boolean),
        ),
        "E5002", "a copy by instructions of its own has no predicates",
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
