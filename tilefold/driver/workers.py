# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs on the workers of an executor: results as they come, and another try for jobs whose worker was lost."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Protocol, TypeVar

A = TypeVar("A")
R = TypeVar("R")


class Workers(Protocol):
    """An executor: of `concurrent.futures`, Dask's `Client.get_executor()`, or any that gives such futures."""

    def submit(self, function: Callable[..., R], /, *arguments: object) -> "Future[R]":
        """Queues a call."""
        ...


def results(
    function: Callable[[A], R], jobs: Sequence[A], open_workers: Callable[[], Workers], retries: int = 2
) -> Iterator[tuple[int, R | Exception]]:
    """The number of each job and the result of a function for it, in the order in which they come. `function` returns
    all that it finds wrong, so an exception means that its worker was lost: the job is queued again up to `retries`
    times, on the workers that `open_workers` returns anew. After that, the exception is the result. Jobs that nobody
    waits for any more are cancelled.
    """
    workers = open_workers()
    tries = dict.fromkeys(range(len(jobs)), 0)
    waiting = {_submitted(workers, function, job): number for number, job in enumerate(jobs)}
    try:
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            lost: list[int] = []
            for future in sorted(done, key=waiting.__getitem__):
                number = waiting.pop(future)
                error = future.exception()
                if error is None:
                    yield number, future.result()
                elif tries[number] < retries and isinstance(error, Exception):
                    tries[number] += 1
                    lost.append(number)
                else:
                    yield number, error if isinstance(error, Exception) else RuntimeError(str(error))
            if lost:
                workers = open_workers()
                waiting.update({_submitted(workers, function, jobs[number]): number for number in lost})
    finally:
        for future in waiting:
            future.cancel()


def _submitted(workers: Workers, function: Callable[[A], R], job: A) -> "Future[R]":
    """The result to come of a job; of workers that take no more jobs, their error."""
    try:
        return workers.submit(function, job)
    except Exception as error:  # whatever an executor raises, such as a pool whose process died
        failed: Future[R] = Future()
        failed.set_exception(error)
        return failed
