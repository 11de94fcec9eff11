# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many kernels compiled at the same time, by any executor of `concurrent.futures`: processes of this machine, or those
of a cluster.

A job is the kernel's program as text. So where it is compiled neither the module of the kernel nor what its closure
holds is needed, only tilefold; and the results are sent back, since a cache on disk may not be shared.
"""

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.runtime.compiled.artifact import Build

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .compiled_kernel import CompiledKernel


def compile_all(
    kernels: Sequence["CompiledKernel"], target: Target, executor: "Executor | None"
) -> list[Build | Exception]:
    """The machine code of kernels, or why there is none: a TilefoldError of the compiler, or the fault of the process
    that compiled. The kernels keep it from now on. `None` compiles in processes of this machine.

    Kernels in the disk cache are not compiled. On a terminal a bar shows how far it is.
    """
    builds: dict[int, Build | Exception] = {}
    for number, kernel in enumerate(kernels):
        if (kept := kernel.program.cached_build(target)) is not None:
            builds[number] = kept
    missing = [number for number in range(len(kernels)) if number not in builds]
    if missing:
        from tilefold.driver.output import progress
        from tilefold.driver.workers import results

        pool = _processes(len(missing)) if executor is None else executor
        sources = [kernels[number].traced.source for number in missing]
        jobs = [(source.text, source.name, target.arch) for source in sources]
        try:
            with progress("compiling", len(missing)) as advance:
                for job, made in results(_compile_job, jobs, lambda: pool):
                    number = missing[job]
                    builds[number] = _taken(kernels[number], target, made)
                    advance()
        finally:
            if executor is None:
                pool.shutdown()
    return [builds[number] for number in range(len(kernels))]


def _compile_job(job: tuple[str, str, str]) -> bytes | TilefoldError:
    return compile_text(*job)


def compile_text(text: str, name: str, arch: str) -> bytes | TilefoldError:
    """Compiles a program of this text, whose file has this name; the result of `Build.to_bytes`, or an error.

    Runs in another process, perhaps on another machine.
    """
    from tilefold.compiler.frontend.source import plain_source
    from tilefold.driver.lowering import load

    try:
        program = load(plain_source(text, name), arch, cached=True)
        program.text = None  # so that its key on disk is that of the same program in the process of the kernel
        return program.build(Target(arch)).to_bytes()
    except TilefoldError as error:
        return error


def _taken(kernel: "CompiledKernel", target: Target, made: "bytes | Exception") -> Build | Exception:
    if isinstance(made, Exception):
        return made
    try:
        build = Build.from_bytes(made)
    except ValueError as error:  # of a worker with another version
        return error
    kernel.program.store_build(target, build)
    return build


def _processes(jobs: int) -> "Executor":
    """Processes of this machine, newly started: a process that uses a GPU cannot be forked."""
    import os
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(min(jobs, os.cpu_count() or 1), get_context("spawn"), _begin)


def _begin() -> None:
    """Ends at once, and silently, when the keyboard interrupts all processes of the terminal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
