# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/attention_decode.py: right for shared heads, masks, lengths and pages, in clusters that share
the keys, at every stage; its machine code spills nothing; and the entries take it for few rows of Q.
"""

import math
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target

from tests.kernels.attention_decode import Problem, example
from tests.kernels.harness import STAGES
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions

SM90A = Target("sm_90a")


def decode(*sizes: int) -> Any:
    """A configuration: keys, warps, tiles, stages, splits, parts."""
    return example().Decode(*sizes)


@pytest.mark.parametrize(
    ("problem", "config"),
    [
        (Problem(keys=200, shared=4), (32, 2, 1, 2, 2)),
        (Problem(3, 70, heads_k=2, depth=128, causal=True), (32, 2, 1, 2, 2)),
        (Problem(keys=128, heads_k=2, shared=4, batch=3, lengths=(0, 37, 128)), (32, 2, 1, 2, 4)),
        (Problem(5, 90, shared=8, causal=True, lengths=(77,)), (32, 4, 2, 2, 2)),  # three tiles of Q, two of a block
        (Problem(4, 3, causal=True, dtype=bfloat16), (64, 4, 1, 2, 1)),  # rows without a key
        (Problem(2, 96, shared=2, depth=256, causal=True), (16, 1, 1, 2, 1)),
        (Problem(keys=128, heads_k=2, batch=2, lengths=(100, 33), page=32), (16, 1, 1, 3, 2)),
        (Problem(keys=600, shared=2), ()),
        (Problem(20, 200, causal=True, lengths=(190, 16), batch=2, heads_k=2), (32, 2, 1, 2, 1, 3)),
    ],
    ids=str,
)
@pytest.mark.sampled(2)
def test_heads_masks_lengths_and_pages(problem: Problem, config: tuple[int, ...]) -> None:
    problem.check(decode(*config) if config else None, blocks=2)


@pytest.mark.sampled(0)
def test_the_first_and_the_last_stage_give_the_same_bytes() -> None:
    problem = Problem(2, 70, shared=2, causal=True, lengths=(50,))
    results = {problem.check(decode(32, 2, 1, 2, 2), stage=stage).tobytes() for stage in (STAGES[0], STAGES[-1])}
    assert len(results) == 1


def test_a_launch_has_no_fault() -> None:
    config = decode(32, 2, 1, 2, 2)
    problem = Problem(2, 64, shared=2, lengths=(50,))
    given, options = problem.arrays()
    call = example().decode_kernel(*given, np.empty_like(given[0]), 0.125, config, options["lengths"])
    report = call.check((2, 1, 1), config.threads, cluster=(2, 1, 1))
    assert report.passed, report


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((8, 8, 8192, 132), (64, 4, 1, 3, 1)),
        ((1, 8, 8192, 132), (64, 4, 1, 6, 1, 8)),  # blocks of 1024 keys each
        ((1, 8, 4096, 132), (64, 4, 1, 3, 8)),
        ((1, 1, 32768, 132), (64, 4, 1, 6, 1, 32)),
        ((1, 8, 131072, 132), (64, 4, 1, 6, 1, 16)),  # 16 blocks by memory
        ((64, 32, 4096, 132), (128, 4, 1, 1, 1)),
        ((16, 8, 4096, 132), (128, 4, 1, 3, 1)),
        ((16, 8, 4096, 132, 1, 128, 64), (64, 4, 1, 6, 1)),  # on pages of 64 keys
        ((1, 8, 256, 132), (64, 4, 1, 3, 2)),  # two tiles of keys for each block
        ((8, 8, 8192, 132, 64), (64, 8, 4, 2, 1)),
        ((64, 8, 8192, 132, 20), (64, 4, 2, 3, 1)),
        ((8, 4, 8192, 132, 4, 256), (64, 4, 1, 3, 1, 4)),
        ((16, 8, 8192, 132, 4, 64), (128, 4, 1, 3, 1)),
    ],
)
def test_choice(given: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert example().chosen_decode(*given) == decode(*expected)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((2, 64, 2, 1, 1, 96), "D = 96 is not"),
        ((2, 64, 3, 2, 1, 64), "2 heads of K do not divide 3"),
        ((2, 40, 1, 1, 1, 64), "a page of 40 keys"),
    ],
)
def test_sizes_that_are_refused(sizes: tuple[int, ...], said: str) -> None:
    batch, keys, heads, heads_k, rows, depth = sizes
    Q, K = (np.empty(shape, np.float16) for shape in ((batch, rows, heads, depth), (batch, keys, heads_k, depth)))
    with pytest.raises(TilefoldError, match=said):
        example().decode_attention(Q, K, K, Q, device="sim", table=np.zeros((batch, 1), np.int32))
    with pytest.raises(TilefoldError, match="a warp has 16 keys"):
        decode(32, 4)


@pytest.mark.parametrize(
    ("rows", "shared", "depth", "is_taken"),
    [(1, 8, 128, True), (16, 4, 64, True), (17, 1, 64, False), (16, 8, 64, False), (1, 1, 96, False)],
)
def test_the_entries_take_it_for_few_rows(
    monkeypatch: pytest.MonkeyPatch, rows: int, shared: int, depth: int, is_taken: bool
) -> None:
    taken: list[str] = []
    entry = example("attention")

    class Launched:
        def launch(self, *_: Any, **__: Any) -> None:
            taken.append("usual")

    def usual(*_: Any) -> Launched:
        return Launched()

    def noted(*_: Any, **__: Any) -> None:
        taken.append("decode")

    monkeypatch.setattr(entry, "decode_attention", noted)
    monkeypatch.setattr(entry, "attention_kernel", usual)
    Q, K = (np.empty(shape, np.float16) for shape in ((1, rows, shared, depth), (1, 64, 1, depth)))
    entry.attention(Q, K, K, Q, device="sim")
    entry.attention(Q, K, K, Q, entry.chosen_config(depth), device="sim")
    assert taken == ["decode" if is_taken else "usual", "usual"]


@needs_ptxas
@pytest.mark.parametrize(
    ("depth", "sizes", "most"), [(64, (128, 4, 1, 3), 200), (128, (64, 4, 1, 3), 200), (256, (64, 4, 1, 3), 255)]
)
@pytest.mark.sampled(1)
def test_machine_code(depth: int, sizes: tuple[int, ...], most: int) -> None:
    """Nothing is spilled, and two blocks have room, but for D = 256. The loop over keys, once with a mask and once
    without, multiplies 16 x 8 x 16 at a time, each element of K and of V once.
    """
    config, shape = decode(*sizes), (8, 8192, 8, depth)
    strides = tuple(2 * math.prod(shape[i + 1 :]) for i in range(4))
    K = np.lib.stride_tricks.as_strided(np.empty(8, np.float16), shape, strides)
    Q = np.empty((8, 1, 32, depth), np.float16)
    ptx = example().decode_kernel(Q, K, K, Q, 1.0, config, np.zeros(8, np.int32)).build(config.threads).ptx("sm_90a")
    found = installed()
    assert found is not None
    cubin = found.assemble(ptx, SM90A)
    used = cubin.kernels["decode_kernel"]
    assert (used.spill_stores, used.stack) == (0, 0)
    assert used.registers <= most
    products = 2 * config.keys // config.slices * depth // (8 * 16)
    assert instructions(cubin.code)["decode_kernel"]["HMMA"] == 2 * products
