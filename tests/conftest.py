# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of the whole suite: tests that need a GPU run only where `-m` asks for them, and then they do not skip.

A test with the mark `sampled(n)` runs for n of its cases, and for all of them with `--nightly`. Hypothesis generates
the same examples in every run, and new ones with the profile `nightly`. It sets no time limits: machines differ, and
every test has one that only a hang exceeds (`timeout` in pyproject.toml).
"""

import faulthandler
import gc
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests.examples import USUAL

settings.register_profile(
    "nightly", deadline=None, max_examples=400, derandomize=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "tilefold", settings.get_profile("nightly"), max_examples=USUAL, derandomize=True, database=None
)
# one failing example is enough for tests.mutants, as it was found
settings.register_profile(
    "mutants", settings.get_profile("tilefold"), max_examples=60, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("tilefold")


def _same_constants_in_every_process() -> None:
    """Hypothesis also draws constants of the modules that are loaded, which depend on the tests that ran before. The
    examples that are to be the same draw none.
    """
    collected, none = providers._get_local_constants, Constants()  # pyright: ignore[reportPrivateUsage]
    providers._get_local_constants = (  # pyright: ignore[reportPrivateUsage]
        lambda: none if settings().derandomize else collected()
    )


_same_constants_in_every_process()


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random kernels of each generator run on a GPU, and from which seed on."""
    parser.addoption("--fuzz", type=int, default=20, help="random kernels of each generator on a GPU (default: 20)")
    parser.addoption("--fuzz-seed", type=int, default=0, help="the seed of the first (default: 0)")
    parser.addoption("--nightly", action="store_true", help="every case of the tests marked `sampled`")


class Limit(Protocol):
    """The settings of pytest-timeout for a test, as far as they are needed here."""

    @property
    def timeout(self) -> float: ...


_armed = pytest.StashKey[tuple[float, float]]()
"""When the alarm of this process was set, and the limit of the test that set it, in seconds."""


def pytest_timeout_set_timer(item: pytest.Item, settings: Limit) -> bool:
    """One alarm for many tests: a thread for each, as pytest-timeout starts it, would take longer than most tests, and
    much longer where other processes run. It is set again when a twentieth of the limit is over, so a test has that
    much more than its limit at most. The alarm prints the stacks of all threads, even of one that keeps Python's lock,
    and ends the process.
    """
    now, (since, limit) = time.monotonic(), item.config.stash.get(_armed, (0.0, 0.0))
    if settings.timeout != limit or now - since > limit / 20:
        stderr = item.config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(settings.timeout * 1.05, exit=True, file=stderr)
        item.config.stash[_armed] = now, settings.timeout
    return True


def pytest_timeout_cancel_timer() -> bool:
    """The alarm stays for the next test."""
    return True


def pytest_unconfigure() -> None:
    """After the last test there is no alarm."""
    faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests marked `gpu` unless a marker expression was given, and cases of those marked `sampled`.

    Cases that are named on the command line (`FILE::TEST[CASE]`) are run.
    """
    left_out: set[pytest.Item] = set()
    if not config.getoption("markexpr"):
        left_out |= {item for item in items if item.get_closest_marker("gpu")}
    if not config.getoption("nightly") and not any("::" in argument for argument in config.args):
        left_out |= _beside_samples(items)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _beside_samples(items: list[pytest.Item]) -> set[pytest.Item]:
    """All cases of the tests marked `sampled(n)` but for n of each, at equal distances from the first on."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out: set[pytest.Item] = set()
    for group in cases.values():
        mark = group[0].get_closest_marker("sampled")
        assert mark
        (count,) = mark.args
        assert count < len(group), f"{group[0].nodeid} has {len(group)} cases, of which none is left out"
        left_out |= set(group) - {group[index * len(group) // count] for index in range(count)}
    return left_out


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector rests while tests are collected: it would pass over ever more objects that stay. Then it
    begins less often than by Python's default, as in the process of the command.
    """
    gc.disable()
    gc.set_threshold(20_000)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _collected_objects() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """The garbage collector leaves alone what modules of tests left behind: it would pass over ever more objects."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _cache_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:  # pyright: ignore[reportUnusedFunction]
    """Machine code is kept in a folder of the run's own, for the processes that tests start as well; none of them shows
    how far a long launch is, which would be output that depends on the machine. Where Python is to leave no bytecode
    in the tree, these processes share it in that folder: hundreds of them import the same modules.
    """
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEFOLD_CACHE_DIR", str(folder))
        patch.setenv("TILEFOLD_SIM_PROGRESS", "0")
        if sys.dont_write_bytecode:
            patch.setenv("PYTHONDONTWRITEBYTECODE", "")
            patch.setenv("PYTHONPYCACHEPREFIX", str(folder.parent / "bytecode"))
        yield folder
