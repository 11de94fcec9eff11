# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every example computes what NumPy does, with the same bits at every stage."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import (
    ALL_LAUNCHES,
    LAUNCH_IDS,
    STAGES,
    assert_checks_hold,
    launches,
    program,
    simulate,
    simulated,
)


@pytest.mark.parametrize(("path", "number"), ALL_LAUNCHES, ids=LAUNCH_IDS)
@pytest.mark.sampled(10)
def test_a_launch_does_what_the_file_says(path: Path, number: int) -> None:
    launch = launches(path)[number]
    assert_checks_hold(launch, simulate(program(path), launch, "instr").after)


@pytest.mark.parametrize(("path", "number"), ALL_LAUNCHES, ids=LAUNCH_IDS)
@pytest.mark.sampled(7)
def test_every_stage_leaves_the_same_bits_and_prints_the_same(path: Path, number: int) -> None:
    first = simulated(path, number, STAGES[0])
    for stage in STAGES[1:]:
        other = simulated(path, number, stage)
        assert other.result.output == first.result.output, stage
        for name in first.after:
            assert other.array(name).tobytes() == first.array(name).tobytes(), (stage, name)


WHOLE = {"B == A": False, "B == A.T": True, "B == transpose(A)": True}
"""What the check of a copy or a transpose says, and whether it is a transpose."""
COPIES = [
    (path, number)
    for path, number in ALL_LAUNCHES
    if any(check.condition.text in WHOLE for check in launches(path)[number].checks)
]


@pytest.mark.parametrize(("path", "number"), COPIES, ids=[launches(p)[n].label for p, n in COPIES])
def test_copies_and_transposes_equal_numpys(path: Path, number: int) -> None:
    ran = simulate(program(path), launches(path)[number], "instr")
    source = np.asarray(ran.before["A"])
    transposes = any(WHOLE.get(check.condition.text, False) for check in launches(path)[number].checks)
    expected = source.T if transposes else source
    assert np.array_equal(ran.array("B"), expected)
    assert np.array_equal(ran.array("A"), source)  # and the source is left alone


def test_there_is_a_launch_for_every_kernel() -> None:
    for path in {path for path, _ in ALL_LAUNCHES}:
        launched = {launch.kernel.rpartition("::")[2] for launch in launches(path)}
        text = path.read_text()
        assert launched == {part.split("(")[0] for part in text.split("tile.kernel @")[1:]}, path.name
