# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Planted faults between devices: an exchange in rounds, right and with one mistake each."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.several_devices import multicast, peers, run_on_devices, symmetric
from tilefold.cute.utils import distributed

COUNT, ROUNDS, THREADS = 2, 2, 64


@cute.kernel
def exchange(
    next_box: cute.Tensor,
    box: cute.Tensor,
    flags: tuple[cute.Tensor, ...],
    all_flags: cute.Tensor,
    out: cute.Tensor,
    rank: cute.Constexpr[int],
    wrong: cute.Constexpr[str],
):
    """In each round a device writes to the box of the next one, signals its round to all, by multicast or one by one,
    waits for the others, and reads its own box. A box has two stages, which take turns.
    """
    t, _, _ = cute.arch.thread_idx()
    others = tuple(each for each in range(COUNT) if (each == rank) is (wrong == "rank" and rank == 1))
    scope = "gpu" if wrong == "scope" else "sys"
    for turn in cute.range_constexpr(ROUNDS):
        stage = 0 if wrong == "reuse" else turn % 2
        next_box[stage, t] = 100 * rank + 10 * turn + cute.Float32(t)
        cute.arch.sync_threads()
        if t == 0:
            if wrong != "signal" or rank != 1 or turn + 1 < ROUNDS:
                if wrong == "multicast":
                    distributed.multimem_red_add1(all_flags.iterator + rank, order="relaxed", scope="sys")
                elif turn == 0:
                    distributed.multimem_red_add1(all_flags.iterator + rank, order="release", scope=scope)
                else:
                    for each in flags:
                        distributed.red_add1(each.iterator + rank, order="release", scope=scope)
            for each in others:
                while cute.arch.load(flags[rank].iterator + each, sem="acquire", scope="sys") <= turn:
                    pass
        if wrong != "barrier":
            cute.arch.sync_threads()
        out[turn, t] = box[stage, t]


def run(wrong: str) -> list[Any]:
    """What the devices have read."""

    def program(rank: int) -> Any:
        box, flags = symmetric(2 * THREADS), symmetric(COUNT, np.int32)
        boxes = [each.reshape(2, THREADS) for each in peers(box)]
        out = np.zeros((ROUNDS, THREADS), np.float32)
        call = exchange(
            boxes[(rank + 1) % COUNT], boxes[rank], tuple(peers(flags)), multicast(flags), out, rank, wrong
        )  # fmt: skip
        call.launch(grid=1, block=THREADS)
        return out

    return run_on_devices(COUNT, program, check=True)


def test_the_right_program_is_silent() -> None:
    for rank, out in enumerate(run("")):
        first = 100 * ((rank - 1) % COUNT) + 10 * np.arange(ROUNDS)[:, None]
        np.testing.assert_array_equal(out, first + np.arange(THREADS))


@pytest.mark.parametrize(
    ("wrong", "code"),
    {
        "signal": "E3231",
        "rank": "E3205",
        "scope": "E3205",
        "multicast": "E3205",
        "reuse": "E3205",
        "barrier": "E3205",
    }.items(),
)
def test_a_planted_fault_is_found(wrong: str, code: str) -> None:
    with pytest.raises(TilefoldError, match=rf"{code}.*device \d") as error:
        run(wrong)
    assert "test_planted.py:" in str(error.value)
