# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workers of this machine, or of a Dask or Ray cluster, to which `driver.workers.results` gives jobs."""

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from socket import create_connection
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Generator

R = TypeVar("R")


@contextmanager
def workers_at(place: str | None, count: int | None) -> "Generator[Callable[[], Workers], None, None]":
    """Opens the workers of a place: processes of this machine, `count` of them, by default one for each core, or
    those of Dask's scheduler at `dask:ADDRESS` or of the Ray cluster at `ray:ADDRESS`. Raises TilefoldError (E4003) for
    another place, and E4001 where no cluster answers.
    """
    if place is None:
        opened: list[Executor] = []

        def processes() -> Workers:
            opened.append(ProcessPoolExecutor(count or os.cpu_count() or 1, get_context("spawn")))
            return opened[-1]

        try:
            yield processes
        finally:
            for pool in opened:
                pool.shutdown(wait=False, cancel_futures=True)
        return
    kind, _, address = place.partition(":")
    if kind not in _OPENERS or not address:
        hint = "write dask:ADDRESS, the address of Dask's scheduler, such as dask:tcp://10.0.0.1:8786, or ray:ADDRESS"
        raise TilefoldError(Code.CLI_VALUE, f"--executor {place}: no such workers", hint)
    with _OPENERS[kind](place, address) as opened_workers:
        yield opened_workers


@contextmanager
def _dask(place: str, address: str) -> "Generator[Callable[[], Workers], None, None]":
    distributed = _package(place, "distributed")
    try:
        client = distributed.Client(address, timeout=30)
    except (OSError, ValueError) as error:
        raise TilefoldError(Code.CLI_READ, f"{address}: {error}", "start dask scheduler there") from None
    try:
        yield lambda: client.get_executor(pure=False)
    finally:
        client.close()


class RayExecutor(Executor):
    """The workers of a Ray cluster, to which this process is connected. A call has `gpus` GPUs of its own. The package
    `ray` is imported with the first call; a call whose worker is lost fails, and is not tried again.
    """

    def __init__(self, gpus: float = 0) -> None:
        self.gpus = gpus

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> "Future[R]":
        """Queues a call."""
        ray = import_module("ray")
        task = ray.remote(num_gpus=self.gpus, max_retries=0)(fn)
        return task.remote(*args, **kwargs).future()


@contextmanager
def _ray(place: str, address: str) -> "Generator[Callable[[], Workers], None, None]":
    ray = _package(place, "ray")
    host, colon, port = address.rpartition(":")
    try:
        if colon and port.isdecimal():  # ray.init waits for minutes where nothing listens
            create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address=address, log_to_driver=False)
    except (OSError, OverflowError, ValueError) as error:
        raise TilefoldError(Code.CLI_READ, f"{address}: {error}", "start a cluster there: ray start --head") from None
    try:
        yield RayExecutor
    finally:
        ray.shutdown()


_OPENERS = {"dask": _dask, "ray": _ray}
"""The functions that open the workers of each kind of cluster."""


def _package(place: str, name: str) -> ModuleType:
    """A package. TilefoldError (E4003) where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        message = f"--executor {place}: the package {name} is not installed"
        raise TilefoldError(Code.CLI_VALUE, message, f"pip install {name}") from None
