# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tutorials of CuTe C++ for Ampere and Hopper: their kernels, called by kernels of `cute/`, against NumPy.

The device functions are taken from a checkout of NVIDIA/cutlass as they are, except that a kernel becomes a function,
which takes its tensor maps by reference, and that arrays of shared memory get the sizes of the launch.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilefold
from tilefold.cute.loaded_ptx import PtxKernel

from .case import Case

FOLDER = "examples/cute/tutorial"
OURS = Path(__file__).parent / "cute_cpp"
HEADERS = """\
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/pipeline/sm90_pipeline.hpp>
"""
_KERNEL = re.compile(r"__global__\s+(?:static\s+)?(?:__launch_bounds__\(decltype\(size\(\w+\{\}\)\)::value\)\s*)?void")
_FIRST = re.compile(r"^(?:template|struct)\b", re.MULTILINE)


@dataclass(frozen=True)
class Tutorial:
    """A kernel of a tutorial: its file, that of its caller, and the sizes of the problem and of the launch."""

    path: str
    caller: str
    sizes: tuple[int, ...]
    grid: tuple[int, ...]
    block: int = 256
    element: Any = np.float32
    shared: int = 0
    target: str = "sm_80"
    rows: bool = False
    maps: bool = False
    fault: str = ""
    """The code of a fault that the tutorial has."""
    changed: tuple[str, str] | None = None
    """A text of the tutorial, and that which replaces it."""
    cluster: tuple[int, int, int] | None = None


_MEETING = "cutlass::arch::fence_view_async_shared(); __syncthreads();"
_TILES = 2 * 3 * 128 * 64 * 2
TUTORIALS = (
    Tutorial("tiled_copy.cu", "tiled_copy.cu", (256, 128), (2, 2)),
    Tutorial("tiled_copy.cu", "tiled_copy_vectorized.cu", (256, 128), (2, 2)),
    Tutorial("tiled_copy_if.cu", "tiled_copy_if.cu", (200, 100), (2, 2)),
    Tutorial("tiled_copy_if.cu", "tiled_copy_if_vectorized.cu", (200, 100), (2, 2)),
    Tutorial("sgemm_1.cu", "sgemm_1.cu", (128, 256, 32), (1, 2)),
    Tutorial("sgemm_2.cu", "sgemm_2.cu", (128, 256, 32), (1, 2)),
    Tutorial("sgemm_sm70.cu", "sgemm_sm70.cu", (128, 256, 32), (1, 2)),
    Tutorial("sgemm_sm80.cu", "sgemm_sm80.cu", (128, 128, 192), (1, 1), 128, np.float16, _TILES, rows=True),
    Tutorial(
        "hopper/wgmma_sm90.cu", "hopper/wgmma_sm90.cu", (128, 128, 256), (1, 1), 128, np.float16, _TILES, "sm_90a",
        fault="E3206",
    ),
    Tutorial(
        "hopper/wgmma_sm90.cu", "hopper/wgmma_sm90.cu", (128, 128, 256), (1, 1), 128, np.float16, _TILES, "sm_90a",
        changed=("cp_async_wait<0>();", f"cp_async_wait<0>(); {_MEETING}"),
    ),
    Tutorial(
        "hopper/wgmma_tma_sm90.cu", "hopper/wgmma_tma_sm90.cu", (256, 128, 256), (2, 1), 128, np.float16, _TILES + 1024,
        "sm_90a", maps=True, cluster=(2, 1, 1),
    ),
    Tutorial(
        "hopper/wgmma_tma_sm90.cu", "hopper/wgmma_tma_sm90.cu", (256, 128, 256), (2, 1), 128, np.float16, _TILES + 1024,
        "sm_90a", maps=True, cluster=(2, 1, 1),
        changed=("cluster_sync();", "cutlass::arch::fence_barrier_init(); cluster_sync();"),
    ),
)  # fmt: skip


def cases(checkout: Path) -> Iterator[Case]:
    """The kernels of all tutorials."""
    for tutorial in TUTORIALS:
        file = checkout / FOLDER / tutorial.path
        theirs = device_text(file.read_text())
        if tutorial.changed is not None:
            if theirs.count(tutorial.changed[0]) != 1:
                raise ValueError(f"{file} does not have '{tutorial.changed[0]}' once")
            theirs = theirs.replace(*tutorial.changed)
        text = HEADERS + theirs + Path(OURS, tutorial.caller).read_text()
        yield Case(
            name=tutorial.caller + (" with a barrier" if tutorial.changed else ""),
            text=text,
            file=file,
            expected="faults" if tutorial.fault else "clean",
            codes=(tutorial.fault,) if tutorial.fault else (),
            grid=tutorial.grid,
            block=(tutorial.block,),
            inputs=(partial(arguments, tutorial),),
            kernel="k",
            nvrtc=(f"-I{checkout / 'include'}", "-w"),
            target=tutorial.target,
            shared=tutorial.shared,
            judge=None if tutorial.fault else partial(difference, tutorial),
            options={} if tutorial.cluster is None else {"cluster": tutorial.cluster},
        )


def device_text(text: str) -> str:
    """The device functions of a tutorial, from its first template to the end of its last kernel."""
    first = _FIRST.search(text)
    assert first is not None
    last = list(_KERNEL.finditer(text))[-1]
    body = text[first.start() : text.index("\n}\n", last.end()) + 3]
    body = re.sub(r"(?:CUTLASS|CUTE)_GRID_CONSTANT (\w+) const (\w+)", r"\1 const &\2", body)
    using = "using namespace cute;\n" if re.search(r"^using namespace cute;", text, re.MULTILINE) else ""
    return using + _KERNEL.sub("__device__ void", body)


def arguments(tutorial: Tutorial, kernel: PtxKernel) -> Sequence[Any]:
    """The arguments of a tutorial: small integers, whose sums are exact."""
    rng = np.random.default_rng(0)
    if len(tutorial.sizes) == 2:
        m, n = tutorial.sizes
        return m, n, rng.random((n, m), np.float32), np.zeros((n, m), np.float32)
    m, n, k = tutorial.sizes
    a, b = (rng.integers(-2, 3, (k, size)).astype(tutorial.element) for size in (m, n))
    c = np.zeros((n, m), tutorial.element)
    if tutorial.maps:
        return m, n, k, *(tilefold.tensor_map(x, (8, 64), swizzle=128) for x in (a, b)), c
    if tutorial.rows:
        a, b = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    return m, n, k, a, b, c


def difference(tutorial: Tutorial, given: Sequence[Any]) -> str:
    """How the results differ from NumPy's; an empty text if they do not."""
    arrays: list[NDArray[np.float32]] = [np.asarray(getattr(x, "array", x), np.float32) for x in given[2:]]
    a, b, c = arrays[-3:] if len(arrays) > 2 else (None, *arrays)
    if a is None:
        return "" if np.array_equal(b, c) else "D is not S"
    product = b @ a.T if tutorial.rows else b.T @ a
    return "" if np.array_equal(product, c) else f"{np.count_nonzero(product != c)} of {c.size} elements differ"
