# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sample of `make policies`: the kernels for Hopper while copies complete early or, every other one, at random
times.
"""

from itertools import cycle

import pytest
from tilefold.runtime.sim.launch import Completion

from tests.kernels import policies


@pytest.mark.parametrize(
    ("name", "completion"), list(zip(policies.KERNELS, cycle([Completion.EARLY, Completion.RANDOM]), strict=False))
)
@pytest.mark.sampled(2)
def test_kernels(name: str, completion: Completion) -> None:
    with policies.policy(completion, 0):
        policies.KERNELS[name]()


def test_a_policy_that_finds_a_fault_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise AssertionError("it is wrong")

    monkeypatch.setattr(policies, "KERNELS", {"one": fails, "other": lambda: None})
    assert policies.main(["--count", "1"]) == 1
    assert capsys.readouterr().out.count("it is wrong") == 2 * len(Completion)
