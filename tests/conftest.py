# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of the whole suite: tests that need a GPU run only where `-m` asks for them, and then they do not skip.

Hypothesis sets no time limits: machines differ, and the whole run has one.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

settings.register_profile("tilefold", deadline=None, max_examples=60)
# one failing example is enough for tests.mutants, always the same one, and as it was found
settings.register_profile(
    "mutants",
    settings.get_profile("tilefold"),
    phases=(Phase.explicit, Phase.generate),
    derandomize=True,
    database=None,
)
settings.load_profile("tilefold")


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random kernels of each generator run on a GPU, and from which seed on."""
    parser.addoption("--fuzz", type=int, default=20, help="random kernels of each generator on a GPU (default: 20)")
    parser.addoption("--fuzz-seed", type=int, default=0, help="the seed of the first (default: 0)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests marked `gpu` unless a marker expression was given."""
    if config.getoption("markexpr"):
        return
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu:
        config.hook.pytest_deselected(items=gpu)
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]


@pytest.fixture(scope="session", autouse=True)
def _cache_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:  # pyright: ignore[reportUnusedFunction]
    """Machine code is kept in a folder of the run's own, for the processes that tests start as well."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEFOLD_CACHE_DIR", str(folder))
        yield folder
