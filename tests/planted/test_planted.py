# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every planted fault is found and told with both places and its cure; corrected and correct kernels are silent."""

import pytest

from tests.planted import python_pipelines as python_pipelines
from tests.planted import python_turns as python_turns
from tests.planted.judging import judged, judged_call
from tests.planted.planting import Planted, planted
from tests.planted.python_kernels import CALLS, PROTOCOLS
from tests.project.tree import ROOT

KERNELS = tuple(planted())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.table}: {kernel.title}")
@pytest.mark.sampled(40)
def test_a_planted_kernel(kernel: Planted) -> None:
    for outcome in judged(kernel):
        assert not outcome.problem, f"{outcome.kind}: {outcome.problem}\n{outcome.report}"


@pytest.mark.parametrize("title", CALLS)
def test_a_planted_call(title: str) -> None:
    for outcome in judged_call(CALLS[title]):
        assert not outcome.problem, f"{outcome.kind}: {outcome.problem}\n{outcome.report}"


@pytest.mark.parametrize("title", PROTOCOLS)
@pytest.mark.sampled(6)
def test_a_protocol(title: str) -> None:
    for outcome in judged_call(PROTOCOLS[title]):
        assert not outcome.problem, f"{outcome.kind}: {outcome.problem}\n{outcome.report}"


def test_there_are_enough() -> None:
    faulty = [kernel for kernel in KERNELS if kernel.code != "ok"]
    assert len(faulty) >= 73
    assert len(KERNELS) - len(faulty) >= 30


def test_the_readme_has_their_number() -> None:
    number = sum(kernel.code != "ok" for kernel in KERNELS) + sum(
        call.code is not None for call in (CALLS | PROTOCOLS).values()
    )
    text = (ROOT / "README.md").read_text()
    assert f"all {number} that the project plants" in text
    assert f"the project's {number} kernels with a planted fault" in text


def test_faults_of_every_kind_are_planted() -> None:
    codes = {"E3202", "E3203", "E3204", "E3205", "E3206", "E3207", "E3215", "E3216", "E3230", "E3231", "E3241", "E3242"}
    assert codes <= {kernel.code for kernel in KERNELS}
