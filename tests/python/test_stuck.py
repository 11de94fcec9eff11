# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Python that never end: found within a second, at each stage and as files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.work import calls
from tilefold import cute


@cute.kernel
def stuck(F: cute.Tensor, case: cute.Constexpr):
    """Waits or loops forever, in one of several ways. F is zero."""
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    warp = t // 32
    if case == "flag":
        while cute.arch.load_acquire(F.ptr(0)) == 0:
            pass
        cute.arch.store_release(F.ptr(0), 1)
    if case == "counted flag":
        tries = cute.Int32(0)
        while cute.arch.load_acquire(F.ptr(0)) == 0:
            tries = tries + 1
        F[t] = tries
    if case == "plain flag":
        while F[0] == 0:
            pass
        F[t] = 1
    if case == "lock taken twice" and t == 0:
        while cute.arch.atomic_cas(F.ptr(0), 0, 1) != 0:
            pass
        while cute.arch.atomic_cas(F.ptr(0), 0, 1) != 0:
            pass
        cute.arch.atomic_exch(F.ptr(0), 0)
    if case == "lock between lanes":
        while cute.arch.atomic_cas(F.ptr(0), 0, 1) != 0:
            pass
        cute.arch.sync_warp()
        cute.arch.atomic_exch(F.ptr(0), 0)
    if case == "nothing changes":
        x = cute.Int32(t)
        while x >= 0:
            x = x & 31
        F[t] = x
    if case == "to and fro":
        x = cute.Int32(t)
        while x < 64:
            x = x ^ 1
        F[t] = x
    if case == "one warp beside a barrier":
        if warp == 0:
            while cute.arch.load_acquire(F.ptr(0)) == 0:
                pass
        cute.arch.sync_threads()
        cute.arch.store_release(F.ptr(0), 1)
    if case == "two warps for each other":
        mine, other = F.ptr(warp), F.ptr(1 - warp)
        while cute.arch.load_acquire(other) == 0:
            cute.arch.atomic_add(mine, 0)
        cute.arch.store_release(mine, 1)
    if case == "a later block":
        if block == 0:
            while cute.arch.load_acquire(F.ptr(0)) == 0:
                pass
        else:
            cute.arch.store_release(F.ptr(0), 1)
    if case == "a value that never comes":
        if t == 0:
            cute.arch.atomic_add(F.ptr(0), 1)
        while cute.arch.load_acquire(F.ptr(0)) != 64:
            pass


CASES = {
    "flag": "byte 0 of argument F", "counted flag": "byte 0 of argument F", "plain flag": "repeats a loop",
    "lock taken twice": "ptx.atom.cas", "lock between lanes": "ptx.atom.cas", "nothing changes": "repeats a loop",
    "to and fro": "repeats a loop", "one warp beside a barrier": "warp 0", "two warps for each other": "byte 4",
    "a later block": "1 of 2 blocks have not begun", "a value that never comes": "byte 0 of argument F",
}  # fmt: skip


def launch(case: str, **options: Any) -> None:
    stuck(np.zeros(64, np.int32), case).launch(grid=2, block=64, device="sim", races=False, **options)


# passes drop a loop without effects, as CUDA C++ allows: it waits at stage cute only
PAIRS = [(case, stage) for case in CASES for stage in ("cute", "instr") if (case, stage) != ("plain flag", "instr")]


@pytest.mark.parametrize(("case", "stage"), PAIRS)
@pytest.mark.sampled(6)
def test_kernels_that_never_end_are_found_soon(case: str, stage: str) -> None:
    stuck(np.zeros(64, np.int32), case).build(64).ir(stage)

    def run() -> None:
        with pytest.raises(TilefoldError) as caught:
            launch(case, stage=stage)
        assert caught.value.code == "E3231", str(caught.value)
        assert CASES[case] in str(caught.value)
        assert f"{Path(__file__).name}:" in str(caught.value)

    assert calls(run) < 2_000_000


@cute.kernel
def patient(F: cute.Tensor, G: cute.Tensor, limited: cute.Constexpr):
    """Block 0 counts its attempts until block 1 has counted to 3000, or gives up."""
    block, _, _ = cute.arch.block_idx()
    if block == 0:
        tries = cute.Int32(0)
        if limited:
            while (cute.arch.load_acquire(F.ptr(0)) == 0) & (tries < 5000):
                tries = tries + 1
        else:
            while cute.arch.load_acquire(F.ptr(0)) == 0:
                tries = tries + 1
        G[0] = tries
    else:
        n = cute.Int32(0)
        while n < 3000:
            n = n + 1
        cute.arch.store_release(F.ptr(0), n)


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize("limited", [True, False])
def test_those_that_end_are_left_alone(limited: bool, stage: str) -> None:
    f, g = np.zeros(1, np.int32), np.zeros(1, np.int32)
    patient(f, g, limited).launch(grid=2, block=1, device="sim", stage=stage, resident=2)
    assert f[0] == 3000
    assert 0 < g[0] <= 5000
    f, g = np.zeros(1, np.int32), np.zeros(1, np.int32)
    if limited:
        patient(f, g, limited).launch(grid=2, block=1, device="sim", stage=stage)
        assert g[0] == 5000
    else:
        with pytest.raises(TilefoldError, match="1 of 2 blocks have not begun"):
            patient(f, g, limited).launch(grid=2, block=1, device="sim", stage=stage)


def test_a_count_that_an_outer_loop_reads_matters() -> None:
    """The inner loop repeats its state but for a count, by which the outer one ends."""
    f, g = np.zeros(64, np.int32), np.zeros(64, np.int32)
    counted(f, g).launch(grid=1, block=32, device="sim", races=False)
    assert (g[:32] >= 20000).all()


@cute.kernel
def counted(F: cute.Tensor, G: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    total = cute.Int32(0)
    while total < 20000:
        x = cute.Int32(0)
        while x < 70:
            x = x + 1
            total = total + 1
    G[t] = total
