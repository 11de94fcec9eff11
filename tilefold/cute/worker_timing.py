# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configurations timed by the workers of an executor, each on its own GPU.

A job has the machine code and the types of the arguments, so that a worker needs neither the module of the kernel nor
the arguments: it makes arrays of its own.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.arrays.array import Array
from tilefold.runtime.compiled.artifact import Build
from tilefold.runtime.errors import Dim3


@dataclass(frozen=True, slots=True)
class TimingJob:
    """A launch to time: `build` as bytes, the numbers among its arguments, and the arrays by element type, shape and
    strides; `device` is the name of the GPU for which times count.
    """

    build: bytes
    grid: Dim3
    numbers: Mapping[str, Any]
    arrays: Mapping[str, tuple[str, tuple[int, ...], tuple[int, ...]]]
    device: str
    repeat: int

    @classmethod
    def of(
        cls,
        build: Build,
        grid: Dim3,
        values: Mapping[str, object],
        arrays: Mapping[str, Array],
        device: str,
        repeat: int,
    ) -> "TimingJob":
        """The job for a kernel and the arguments of a call."""
        numbers = {name: value for name, value in values.items() if name not in arrays}
        kinds = {name: (array.dtype, array.shape, array.strides) for name, array in arrays.items()}
        return cls(build.to_bytes(), grid, numbers, kinds, device, repeat)


def time_all(executor: Executor, jobs: Sequence[TimingJob | None]) -> list[float | Exception | None]:
    """The milliseconds of jobs, or why they were not timed; None for no job. Lost workers are replaced."""
    from tilefold.driver.output import progress
    from tilefold.driver.workers import results

    times: list[float | Exception | None] = [None] * len(jobs)
    places = [number for number, job in enumerate(jobs) if job is not None]
    with progress("timing", len(places)) as advance:
        for job, made in results(time_job, [job for job in jobs if job is not None], lambda: executor):
            times[places[job]] = made
            advance()
    return times


def time_job(job: TimingJob) -> float | TilefoldError:
    """The milliseconds of a launch on the first GPU that the process sees, or an error. Runs in a worker, perhaps
    on another machine.
    """
    from tilefold.driver import devices
    from tilefold.runtime.arrays.host_tensors import random_tensor
    from tilefold.runtime.engine import LaunchConfig

    try:
        engine = devices.gpu_engine(0)
        if engine.driver.name != job.device:
            message = f"a worker has the GPU {engine.driver.name}, but the timings are for {job.device}"
            return TilefoldError(Code.RUN_LAUNCH, message, "let workers with the GPU of this process time")
        (artifact,) = Build.from_bytes(job.build).artifacts
        arguments = {**job.numbers, **{name: random_tensor(*kind) for name, kind in job.arrays.items()}}
        with engine.driver.current():
            config = LaunchConfig(job.grid, artifact.block)
            return engine.time(artifact, config, arguments, repeat=job.repeat).median_ms
    except TilefoldError as error:
        return error
