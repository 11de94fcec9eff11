# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the modules that checks of faulty kernels import in a warm process, and the processes that they start."""

import io
import os
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

from benchmarks.verdicts import KERNELS
from tilefold.commands.agent_worker import command, execute, prepare
from tilefold.tools.agents.server import launch_options


def main() -> None:
    """Checks the kernels of the benchmark, those in CUDA C++ and in Python whose faults take the most to tell."""
    started: list[str] = []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        prepare(Path(folder))
        before = set(sys.modules)
        sys.addaudithook(lambda event, _: started.append(event) if event in ("os.fork", "subprocess.Popen") else None)
        for kernel in KERNELS[2:]:
            Path(kernel.file).write_text(kernel.faulty)
            words = ["check", kernel.file, *launch_options(**kernel.options)]
            with redirect_stdout(io.StringIO()):
                status = execute(kernel.file, "check") if kernel.file.endswith(".py") else command(words)
            assert status == 1, kernel.name
    for name, found in (("modules", set(sys.modules) - before), ("processes", started)):
        print(f"{name}: {', '.join(sorted(found)) or 'none'}")


if __name__ == "__main__":
    os.environ.pop("TILEFOLD_SIM_PROCESSES", None)
    main()
