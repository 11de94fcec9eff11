# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared memory whose size the launch gives, and how much shared memory a launched kernel has."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

STAGES = ("cute", "folded", "atoms", "index", "instr")


@cute.kernel
def reversed_twice(x: cute.Tensor, n: cute.Int32) -> None:
    t = cute.arch.thread_idx()[0]
    own = cute.make_smem_tensor(32, cute.Float32)  # apart from the launch's memory
    first = cute.make_tensor(cute.arch.get_dyn_smem(cute.Float32, alignment=128), cute.make_layout((1, n)))
    second = cute.make_tensor(cute.arch.get_dyn_smem(cute.Float32) + n, cute.make_layout(n))
    first[0, t], own[t] = x[t], x[t]
    cute.arch.sync_threads()
    second[t] = first[0, n - 1 - t] + own[t]
    cute.arch.sync_threads()
    x[t] = second[n - 1 - t] + cute.arch.get_dyn_smem_size()


@cute.jit
def launch(x: cute.Tensor) -> None:
    kernel: Any = reversed_twice(x, x.shape[0])
    kernel.launch(grid=1, block=32, smem=x.shape[0] * 8)
    print(kernel.smem_usage())


@pytest.mark.parametrize("stage", STAGES)
def test_the_memory_of_the_launch_at_every_stage(stage: str) -> None:
    x = np.arange(32, dtype=np.float32)
    reversed_twice(x, 32).launch(grid=1, block=32, smem=256, stage=stage)
    assert (x == 31 + 256).all()


def test_its_size_is_that_of_each_launch(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(32, dtype=np.float32)
    launch(x)
    assert (x == 31 + 256).all()
    assert capsys.readouterr().out == "384\n"
    call = reversed_twice(x, 32)
    assert ".extern .shared .align 1024 .b8" in call.build(32, smem=65536).ptx("sm_80")
    with pytest.raises(TilefoldError, match=r"computed from shared memory \(252 bytes\)"):
        call.launch(grid=1, block=32, smem=252, device="sim")


@cute.kernel
def beside_an_allocator(x: cute.Tensor) -> None:
    cute.utils.SmemAllocator().allocate_array(cute.Float32, 4)
    cute.arch.get_dyn_smem(cute.Float32)


@cute.kernel
def at_strict_addresses(x: cute.Tensor) -> None:
    cute.arch.get_dyn_smem(cute.Float32, alignment=4096)


@pytest.mark.parametrize(
    ("kernel", "smem", "words"),
    [
        (beside_an_allocator, 64, "by SmemAllocator and by get_dyn_smem"),
        (beside_an_allocator, 1 << 20, "gives 1048576 bytes of shared memory; a block has at most 232448"),
        (at_strict_addresses, 64, "the alignment is 4096"),
        (reversed_twice, None, "gives 0 bytes of shared memory, less than an element of Float32"),
        (reversed_twice, -1, "smem is -1"),
    ],
)
def test_mistakes(kernel: Any, smem: int | None, words: str) -> None:
    arguments = (np.zeros(32, np.float32), 32)[: len(kernel.signature.names)]
    with pytest.raises(TilefoldError, match=words):
        kernel(*arguments).build(32, smem=smem)
