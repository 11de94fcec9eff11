# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tutorials of CuTe C++ for Blackwell: D = A * B + 2 C by tensor memory, of one block to a cluster of pairs, called
by the kernel of `cute/blackwell/`, against NumPy.

As they are, they have no fence of tcgen05, and the first one none between its writes of shared memory and the tensor
core; `FENCES` adds them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tilefold
from tilefold.cute.loaded_ptx import PtxKernel

from .case import Case
from .cute_tutorials import FOLDER, HEADERS, OURS, device_text

CALLER = "blackwell/gemm_sm100.cu"
MORE_HEADERS = """\
#include <cute/arch/tmem_allocator_sm100.hpp>
#include <cute/algorithm/cooperative_copy.hpp>
"""
SILENT = "#define thread0() false  // which prints\n"
M, N, DEPTH = 128, 256, 128
"""The rows and columns of D that a block has, and K."""
SWIZZLE = 128
INITIALISED = (
    ("cute::cluster_sync();", "cutlass::arch::fence_barrier_init(); cute::cluster_sync();"),
    (
        "// Make sure all threads observe",
        "cutlass::arch::fence_barrier_init(); __syncthreads(); // Now threads observe",
    ),
)
FENCES = (
    *INITIALISED,
    (
        "cute::wait_barrier(shared_storage.mma_barrier, mma_barrier_phase_bit);",
        "cute::wait_barrier(shared_storage.mma_barrier, mma_barrier_phase_bit);"
        'asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
    ),
    (
        "copy(tiled_t2r_copy, tDtAcc, tDrAcc);",
        "copy(tiled_t2r_copy, tDtAcc, tDrAcc); cutlass::arch::fence_view_async_tmem_load();",
    ),
    (
        "copy(t2r_copy, tTR_tAcc(_,_,epi_tile_idx), tTR_rD);",
        "copy(t2r_copy, tTR_tAcc(_,_,epi_tile_idx), tTR_rD); cutlass::arch::fence_view_async_tmem_load();",
    ),
    ("// Wait for loads to SMEM", "cutlass::arch::fence_view_async_shared(); // Wait for loads to SMEM"),
)
"""Lines of the tutorials, and the same with the fences that the PTX ISA asks for."""


@dataclass(frozen=True)
class Tutorial:
    """A tutorial by its number: the file, the blocks of a cluster along M and N, the codes of its faults."""

    number: int
    name: str
    cluster: tuple[int, int] = (1, 1)
    codes: tuple[str, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()
    """The changes without which no launch ends."""
    prints: bool = False
    """Whether its thread 0 prints tensors, as the tutorial has it; the others do the same at greater length."""
    left: tuple[str, ...] = ("E3232",)
    """The codes of faults that stay with all fences: a warp may be late for a phase that others have used again."""

    @property
    def shared(self) -> int:
        """The bytes of shared memory: of a stage of A and B, and of barriers, from a multiple of 1024 on."""
        return 2048 + 2 * 64 * (M + N)


TUTORIALS = (
    Tutorial(1, "01_mma_sm100", codes=("E3216",), prints=True, left=()),
    Tutorial(2, "02_mma_tma_sm100", codes=("E3263",)),
    Tutorial(3, "03_mma_tma_multicast_sm100", (2, 2), ("E3263",), INITIALISED),
    Tutorial(4, "04_mma_tma_2sm_sm100", (2, 2), ("E3263",), INITIALISED),
    Tutorial(5, "05_mma_tma_epi_sm100", (2, 2), ("E3263",), INITIALISED),
)


def cases(checkout: Path) -> Iterator[Case]:
    """The kernels of the tutorials: with numbers that are right and the faults that they have, as they are and with
    fences.
    """
    for tutorial in TUTORIALS:
        file = checkout / FOLDER / "blackwell" / f"{tutorial.name}.cu"
        headers = MORE_HEADERS if tutorial.prints else MORE_HEADERS + SILENT
        for changes, codes in ((tutorial.changes, tutorial.codes), (FENCES, tutorial.left)):
            theirs = device_text(file.read_text())
            for old, new in changes:
                theirs = theirs.replace(old, new)
            yield Case(
                name=f"blackwell/{tutorial.name}.cu" + (" with fences" if changes is FENCES else ""),
                text=HEADERS + headers + theirs + (OURS / CALLER).read_text(),
                file=file,
                expected="faults" if codes else "clean",
                codes=codes,
                grid=tutorial.cluster,
                block=(128,),
                inputs=(partial(arguments, tutorial),),
                kernel="k",
                nvrtc=(
                    f"-I{checkout / 'include'}", "-w", f"-DTUTORIAL={tutorial.number}",
                    *(f"-DC{axis}={size}" for axis, size in zip("MN", tutorial.cluster, strict=True)),
                ),
                target="sm_100a",
                shared=tutorial.shared,
                judge=difference,
                options={} if tutorial.cluster == (1, 1) else {"cluster": (*tutorial.cluster, 1)},
            )  # fmt: skip


def arguments(tutorial: Tutorial, kernel: PtxKernel) -> Sequence[Any]:
    """The arguments of a tutorial: small integers, whose sums are exact."""
    rng = np.random.default_rng(0)
    blocks_m, blocks_n = tutorial.cluster
    m, n = blocks_m * M, blocks_n * N
    a, b = (rng.integers(-2, 3, (size, DEPTH)).astype(np.float16) for size in (m, n))
    c, d = rng.integers(-2, 3, (m, n)).astype(np.float32), np.zeros((m, n), np.float32)
    if tutorial.number == 1:
        return m, n, DEPTH, a, b, c, d
    pair = 2 if tutorial.number > 3 else 1
    boxes = (M // blocks_n, 64), (N // pair // max(blocks_m // pair, 1), 64)  # each block copies a part for others
    maps = [tilefold.tensor_map(x, box, swizzle=SWIZZLE) for x, box in zip((a, b), boxes, strict=True)]
    results = [tilefold.tensor_map(x, (M, 32), swizzle=SWIZZLE) for x in (c, d)] if tutorial.number == 5 else [c, d]
    return m, n, DEPTH, *maps, *results


def difference(given: Sequence[Any]) -> str:
    """How the results differ from NumPy's; an empty text if they do not."""
    a, b, c, d = (np.asarray(getattr(x, "array", x), np.float32) for x in given[3:])
    expected = a @ b.T + 2 * c
    return "" if np.array_equal(expected, d) else f"{np.count_nonzero(expected != d)} of {d.size} elements differ"
