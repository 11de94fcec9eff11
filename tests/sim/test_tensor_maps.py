# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps that a kernel changes in memory: what copies by them move, and the mistakes with them, each with its
cure.
"""

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import Completion

from tests.sim.harness import SimEngine, entry, launch_on, seeded
from tests.sim.tensor_maps import (
    ACQUIRE,
    ARGS,
    CHANGES,
    COPY,
    IN_SHARED,
    LOAD,
    PUBLISH,
    RELEASE,
    REPLACE,
    SETUP,
    SYNC,
    field,
    lead,
)


def run(body: str, completion: Completion = Completion.LATE, seed: int | None = None, n: int = 2) -> NDArray[Any]:
    """What a kernel leaves in B, which begins as ones, for d = 256."""
    a, b, w = np.arange(512, dtype=np.float32), np.ones(128, np.float32), np.zeros(32, np.int32)
    text, engine = entry(SETUP + body, ARGS, "64", shared=2056), SimEngine(seeded(seed), completion=completion)
    launch_on(text, {"A": a, "B": b, "W": w, "n": n, "d": 256}, block=(64, 1, 1), engine=engine)
    return b


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("name", CHANGES)
def test_copies_by_a_changed_map(name: str, completion: Completion, seed: int | None) -> None:
    body, expected = CHANGES[name]
    b = run(body, completion, seed)
    np.testing.assert_array_equal(b[: expected.size], expected.ravel())
    assert (b[expected.size :] == 1).all()


# Each mistake: the kernel with it, the code, words of the message, and the cure: a text instead of another.
RIGHT = lead(COPY, REPLACE, RELEASE, ACQUIRE, LOAD)
APART = lead(COPY, REPLACE, RELEASE) + SYNC + lead(ACQUIRE, LOAD, who="second")
MISTAKES = {
    "no fences": (
        lead(COPY, LOAD), "E3216",
        "which thread (0,0,0) wrote; fence.proxy.tensormap::generic.release between them is missing",
        (COPY, COPY + RELEASE + ACQUIRE),
    ),
    "no release": (
        lead(COPY, REPLACE, ACQUIRE, LOAD), "E3216", "generic.release between them is missing",
        (ACQUIRE, RELEASE + ACQUIRE),
    ),
    "no acquire": (
        lead(COPY, REPLACE, RELEASE, LOAD), "E3216", "generic.acquire between them is missing",
        (RELEASE, RELEASE + ACQUIRE),
    ),
    "changed after the fences": (
        lead(COPY, RELEASE, ACQUIRE, REPLACE, LOAD), "E3216", "generic.release between them is missing",
        (REPLACE, REPLACE + RELEASE + ACQUIRE),
    ),
    "the writer alone acquires": (
        lead(COPY, RELEASE) + SYNC + lead(LOAD, who="second"), "E3216", "generic.acquire between them is missing",
        (SYNC, SYNC + lead(ACQUIRE, who="second")),
    ),
    "a release too late": (
        lead(COPY, REPLACE) + SYNC + lead(RELEASE) + lead(ACQUIRE, LOAD, who="second"), "E3216",
        "release between them is missing",
        (SYNC + lead(RELEASE), lead(RELEASE) + SYNC),
    ),
    "no barrier": (APART.replace(SYNC, ""), "E3205", "race: reads global", (APART.replace(SYNC, ""), APART)),
    "another map": (
        lead(COPY, RELEASE, ACQUIRE.replace("%W", "%B"), LOAD), "E3216", "acquire between them is missing",
        ("acquire %B", "acquire %W"),
    ),
    "no map": (lead(LOAD), "E0322", "holds no tensor map", (LOAD, COPY + RELEASE + ACQUIRE + LOAD)),
    "fields that nothing sets": (
        lead(REPLACE + RELEASE + ACQUIRE + LOAD), "E0322", "an element stride of 0",
        (REPLACE, COPY + REPLACE),
    ),
    "a box that TMA does not move": (
        RIGHT.replace(REPLACE, field("box_dim", ", %one : i32", 0)), "E0323", "the tensor map at",
        ("box_dim\" at 0 %W, %one", "box_dim\" at 0 %W, %thirtytwo"),
    ),
    "an extent of 0": (RIGHT, "E0322", "dimension 1 has the extent 0", ("%n", "%four")),
    "part of a warp": (
        lead(IN_SHARED, PUBLISH), "E3208", "which threads of its warp do",
        (lead(IN_SHARED, PUBLISH), lead(IN_SHARED) + f"scf.if %first {{\nptx.bar.warp.sync -1\n{PUBLISH}}}\n"),
    ),
    "no barrier of the warp": (
        lead(IN_SHARED) + f"scf.if %first {{\n{PUBLISH}}}\n", "E3205", "race: reads shared",
        (PUBLISH, "ptx.bar.warp.sync -1\n" + PUBLISH),
    ),
    "skipped elements": (
        RIGHT.replace(REPLACE, field("element_stride", ", %four : i32", 1)), "E3201", "skips elements",
        ("%four", "%one"),
    ),
    "interleaved": (
        RIGHT.replace(REPLACE, field("interleave_layout", word="16B")), "E3201", "interleaves", ("16B", "none"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    body, code, said, (wrong, right) = MISTAKES[name]
    n = 0 if name == "an extent of 0" else 2
    with pytest.raises(SimulationError) as caught:
        run(body, n=n)
    assert caught.value.code == code, str(caught.value)
    assert said in str(caught.value)
    assert re.match(r".*test\.cute:\d+:1", str(caught.value))
    assert wrong in body
    run(body.replace(wrong, right), n=n)
