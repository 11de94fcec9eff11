# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mark `cute_kernel` of pytest: each launch of a test on the simulator is checked, and a fault fails the test.

A suite takes it up in its `conftest.py`: `pytest_plugins = ["tilefold.pytest_plugin"]`. It is not an entry point,
because pytest would then rewrite the assertions of all of tilefold.

    @pytest.mark.cute_kernel
    def test_scale():
        scale(x, y).launch(grid=4, block=128, device="sim")
        assert np.array_equal(y, 2 * x)

`cute_kernel(stages=("cute", "instr"), incomplete=True)` chooses the stages, and also fails a test whose check did not
see everything.
"""

from collections.abc import Generator
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark."""
    config.addinivalue_line(
        "markers", "cute_kernel(stages=..., incomplete=False): check each launch of the test by tilefold check"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Checks the launches of a test that has the mark."""
    mark = item.get_closest_marker("cute_kernel")
    if mark is None:
        return (yield)
    from tilefold.cute.checked_launches import checking_launches
    from tilefold.tools.checking.check import STAGES

    fault: BaseException | None = None
    result = None
    with checking_launches(mark.kwargs.get("stages", STAGES)) as reports:
        try:
            result = yield
        except Exception as error:
            fault = error
    refused = (1, 3) if mark.kwargs.get("incomplete", False) else (1,)
    bad = [report for report in reports if report.verdict.status in refused]
    if bad:
        text = "\n".join(map(str, bad))
        pytest.fail(f"tilefold check: {len(bad)} of {len(reports)} launches\n{text}", pytrace=False)
    if fault is not None:
        raise fault
    if not reports:
        pytest.fail("tilefold check: the test launches no kernel on the simulator", pytrace=False)
    return result
