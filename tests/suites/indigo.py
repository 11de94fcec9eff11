# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Indigo kernels of HiRace's artifact: the name of a file lists the bugs that were planted in it.

A kernel with `boundsBug` reads beyond its arrays, one with another bug has a data race. See
https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24 and Liu et al., The Indigo Program-Verification Microbenchmark
Suite of Irregular Parallel Code Patterns, ISPASS 2022.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .case import Case

FOLDER = "indigo/indigo_sources"
"""Where the kernels are in a checkout."""
RACE = re.compile(r"(?<!bounds)Bug")
BOUNDS, RACES = "E3202", "E3205"
NODES = 24


def cases(checkout: Path) -> Iterator[Case]:
    """All kernels, in the order of their paths."""
    for file in sorted(Path(checkout, FOLDER).rglob("*.cu")):
        racy, out_of_bounds = bool(RACE.search(file.stem)), "boundsBug" in file.stem
        expected = "faults" if racy or out_of_bounds else "clean"
        by_block = "_block" in file.stem
        by_warp = "_warp" in file.stem
        blocks = NODES + 1 if by_block else 12 if by_warp else 2
        threads = 64 if by_block or by_warp else 16
        if "persistent" in file.stem:
            blocks = max(2, blocks // 3)
        yield Case(
            name=file.stem,
            text=file.read_text(),
            file=file,
            expected=expected,
            grid=(blocks,),
            block=(threads,),
            inputs=(partial(arguments, False), partial(arguments, True)),
            kernel="test_kernel",
            nvrtc=("-G",),
            codes=((RACES,) if racy else ()) + ((BOUNDS,) if out_of_bounds else ()),
        )


def arguments(isolated: bool, _: Any) -> Sequence[Any]:
    """A graph in compressed rows, the two arrays of data, and the number of nodes. With `isolated` the first and the
    last node have no neighbours. Neighbours are among the second half of the nodes, so that some are shared.
    """
    rng = np.random.default_rng(3)
    degree = rng.integers(1, 6, NODES)
    if isolated:
        degree[[0, -1]] = 0
    begins = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    edges = int(begins[-1])
    neighbours = rng.integers(NODES // 2, NODES, edges).astype(np.int32)
    size = max(NODES, edges)
    data1 = rng.integers(0, NODES, size).astype(np.int32)
    data2 = rng.integers(0, edges, size).astype(np.int32)
    data1[0] = data2[0] = 0
    return begins, neighbours, data1, data2, NODES
