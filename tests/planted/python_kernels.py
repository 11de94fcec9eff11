# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Python with a planted fault each; with `right` they are their corrected twins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefold import cute


@dataclass(frozen=True)
class Call:
    """A call with a fault: the kernel, the sizes of its two arrays, the launch, and the code and words expected; None
    as code for a correct kernel.
    """

    kernel: Any
    code: str | None
    words: str = ""
    shape: tuple[int, ...] = (64,)
    grid: int = 1
    block: int = 64
    outputs: tuple[str, ...] | None = ("b",)
    numbers: bool = False
    shift: int = 0
    """By how many elements the second array begins before the first in the same memory; 0 for memory of its own."""
    types: str = "ff"
    """The elements of the arrays: f for f32, h for f16."""
    is_marked: bool = False
    """Whether the lines that the report may name end in `# !`."""

    def arrays(self) -> tuple[Any, Any]:
        """The arguments."""
        if self.shift:
            both = np.arange(self.shape[0] + self.shift, dtype=np.float32)
            return both[self.shift :], both[: -self.shift]
        first, second = ({"f": np.float32, "h": np.float16}[type] for type in self.types)
        a = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        return (a % 7 if self.types[0] == "h" else a).astype(first), np.zeros(self.shape, second)


CALLS: dict[str, Call] = {}
PROTOCOLS: dict[str, Call] = {}
"""Calls of kernels with several roles, of the modules beside this one."""


def planted(title: str, code: str | None, words: str = "", **options: Any) -> Callable[[Any], Any]:
    """Adds the kernel that follows to the calls."""

    def add(kernel: Any) -> Any:
        CALLS[title] = Call(kernel, code, words, **options)
        return kernel

    return add


def protocol(title: str, code: str, **options: Any) -> Callable[[Any], Any]:
    """Adds the kernel that follows to the protocols; it need not write all of its output."""

    def add(kernel: Any) -> Any:
        PROTOCOLS[title] = Call(kernel, code, is_marked=True, outputs=(), **options)
        return kernel

    return add


@planted("no barrier", "E3204", "put a barrier of the block")
@cute.kernel
def no_barrier(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = a[t]
    if right:
        cute.arch.sync_threads()
    b[t] = s[63 - t]


@planted("a barrier too few in a loop", "E3205", "barrier of the block")
@cute.kernel
def loop(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = a[t]
    for _ in cute.range(3):
        cute.arch.sync_threads()
        x = s[63 - t]
        if right:
            cute.arch.sync_threads()
        s[t] = x + 1.0
    b[t] = s[t]


@planted("an index one too large", "E3202", "outside")
@cute.kernel
def too_large(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    b[t] = a[t if right else t + 1]


@planted("a column beyond the row", "E3202", "outside", shape=(8, 8))
@cute.kernel
def column(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    if right:
        b[t // 8, t % 8] = a[t // 8, t % 8]
    else:
        b[t // 16, t % 16] = a[t // 16, t % 16]


@planted("an output written in part", "E3230", "4 of 64 elements")
@cute.kernel
def part(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t < (64 if right else 60):
        b[t] = a[t]


@planted("a barrier under a condition", "E3207", "barrier")
@cute.kernel
def divergent(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    if right or t < 16:
        cute.arch.sync_threads()
    b[t] = a[t]


@planted("all blocks add to one element by load and store", "E3205", "race", grid=3, outputs=())
@cute.kernel
def sums(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    m, _, _ = cute.arch.block_idx()
    if right:
        if m == 0:
            b[t] = b[t] + a[t]
    else:
        b[t] = b[t] + a[t] * m


@planted("a grid too small for the tiles", "E3241", "2 blocks", shape=(4, 64), grid=2, outputs=())
@cute.kernel
def grid(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    m, _, _ = cute.arch.block_idx()
    if right:
        for k in cute.range(m, 4, 2):
            cute.local_tile(b, (1, 64), (k, 0))[0, t] = cute.local_tile(a, (1, 64), (k, 0))[0, t]
    else:
        cute.local_tile(b, (1, 64), (m, 0))[0, t] = cute.local_tile(a, (1, 64), (m, 0))[0, t]


@planted("a warp sync where warps exchange", "E3204", "barrier of the block")
@cute.kernel
def warp_sync(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = a[t]
    if right:
        cute.arch.sync_threads()
    else:
        cute.arch.sync_warp()
    b[t] = s[(t + 32) % 64]


@planted("all threads store one value", None)
@cute.kernel
def one_value(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(1), cute.Float32)
    s[0] = cute.Float32(3)
    cute.arch.sync_threads()
    b[t] = a[t] + s[0]


@planted("lanes exchange behind a warp sync", None)
@cute.kernel
def lanes(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = a[t]
    cute.arch.sync_warp()
    b[t] = s[t ^ 1]


@planted("an output that a condition leaves unwritten", "E3230", "writes none of its 64 elements", outputs=None)
@cute.kernel
def unwritten(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t > (-1 if right else 64):
        b[t] = a[t]


@planted("elements that data select", None, outputs=None)
@cute.kernel
def selected(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    if a[t] > 20.0:
        b[t] = a[t]


@planted("elements at places that data say", None, outputs=None)
@cute.kernel
def scattered(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    b[a[t].to(cute.Int32) // 2] = 1.0


@planted("an array that is changed in part", None, outputs=None)
@cute.kernel
def changed(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t < 8:
        b[t] = b[t] + a[t]


@planted("a flag that is set without a release", "E3205", "does not release", grid=2, outputs=())
@cute.kernel
def relaxed_flag(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    if t == 0:
        if block == 0:
            b[0] = a[5]
            cute.arch.store(b.iterator + 1, 1.0, sem="release" if right else "relaxed", scope="gpu")
        else:
            while cute.arch.load(b.iterator + 1, sem="acquire", scope="gpu") == 0.0:
                pass
            b[2] = b[0]


@planted("a flag that is read without an acquire", "E3205", "does not acquire", grid=2, outputs=())
@cute.kernel
def relaxed_look(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    if t == 0:
        if block == 0:
            b[0] = a[5]
            cute.arch.store(b.iterator + 1, 1.0, sem="release", scope="gpu")
        else:
            while cute.arch.load(b.iterator + 1, sem="relaxed", scope="gpu") == 0.0:
                pass
            if right:
                cute.arch.fence_acq_rel_gpu()
            b[2] = b[0]


@planted("arguments that overlap", "E3205", "arguments a and b", shift=1, outputs=None)
@cute.kernel
def moved_in_place(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    x = a[t]
    if right:
        cute.arch.sync_threads()
    b[t] = x


@planted("an index that wraps before a quotient", "E3253", "wraps an index at 32 bits", numbers=True, outputs=())
@cute.kernel
def wrapped_quotient(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    wide = cute.Int64(t) if right else t
    b[t] = a[wide * (1 << 27) // (1 << 27) % 64]


@planted("an index that wraps before a remainder", "E3253", "wraps an index at 32 bits", numbers=True, outputs=())
@cute.kernel
def wrapped_remainder(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    wide = cute.Int64(t) if right else t
    b[t] = a[wide * (1 << 27) % 63]


@planted("a difference that cancels to 0", "E3255", "cancels all digits", numbers=True)
@cute.kernel
def vanished(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    large = cute.Float32(2.0**30)
    b[t] = a[t] + (large - large) if right else (a[t] + large) - large


@planted("an mbarrier that expects half of the arrivals of a round", "E3207", "too many arrivals", outputs=())
@cute.kernel
def two_phases_a_round(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(32), cute.Float32)
    full, empty = (cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0) for _ in range(2))
    if t == 0:
        cute.arch.mbarrier_init(full, 32)
        cute.arch.mbarrier_init(empty, 32 if right else 16)
    cute.arch.sync_threads()
    for k in cute.range(2):
        if t < 32:
            cute.arch.mbarrier_wait(empty, k % 2 ^ 1)
            s[t] = a[t] + k
            cute.arch.mbarrier_arrive(full)
        else:
            cute.arch.mbarrier_wait(full, k % 2)
            b[t] = s[t - 32]
            cute.arch.mbarrier_arrive(empty)


@planted("a row below the tile", "E3202", "outside the 8 elements", shape=(8, 8))
@cute.kernel
def row_below(a: cute.Tensor, b: cute.Tensor, right: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    row = t // 8 + (0 if right else 1)
    for k in cute.range(1):
        b[t // 8, t % 8] = a[row, k + t % 8]
