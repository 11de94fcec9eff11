# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of kernels of attention: reductions of rows of scores, and products that overlap with loads."""

from collections.abc import Callable, Sequence
from typing import Any

from tilefold import cute
from tilefold.cute.typing import Int


def quad_reduce(x: cute.TensorSSA, op: cute.ReductionOp) -> cute.TensorSSA:
    """A value for each row combined with those of the four threads that share the row."""
    return cute.arch.warp_reduction(x, op, threads_in_group=4)


def exp2(x: cute.TensorSSA) -> cute.TensorSSA:
    """2 ** x by one instruction."""
    return cute.arch.approx("ex2", x, ftz=True)


def quad_transposed(words: Sequence[object], lane: Int) -> list[Any]:
    """Of four words of each of four neighbouring threads, `lane` being the thread among them, those with its number:
    word i is that of thread i.
    """
    found = list(words)
    for bit in (1, 2):
        is_high = lane // bit % 2 == 1
        for low in range(4):
            high = low | bit
            if low != high:
                given = cute.where(is_high, found[low], found[high])
                got = cute.arch.shuffle_sync_bfly(given, bit)
                found[low] = cute.where(is_high, got, found[low])
                found[high] = cute.where(is_high, found[high], got)
    return found


@cute.jit
def pipelined(count: int, fetch: Callable[[int], None], multiply: Callable[[int], None]) -> None:
    """Products one after the other, while the operands of the next one are on their way from shared memory."""
    fetch(0)
    for e in cute.range(count, unroll_full=True):
        if e + 1 < count:
            fetch(e + 1)
        multiply(e)
