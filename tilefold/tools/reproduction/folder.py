# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A folder that repeats a command: the program, the first values of its arguments, a script, and its output."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path

import numpy as np

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.output import write_output
from tilefold.runtime.engine import NumPyArray
from tilefold.runtime.options import NUMERICS, SimOptions
from tilefold.runtime.settings import given_settings
from tilefold.version import VERSION

PROGRAM = "kernel.cute"
"""The name of the program in the folder."""
_PACKAGES = "xdsl", "llvmlite", "numpy", "ml_dtypes", "cuda-bindings"

_SCRIPT = '''\
#!/usr/bin/env python3
"""Repeats the run of `output.txt`: python {name}. It takes tilefold, of a version that facts.json has."""

import os
import subprocess
import sys
from pathlib import Path

SETTINGS = {settings}
COMMANDS = {commands}

status = 0
for words in COMMANDS:
    done = subprocess.run(
        [sys.executable, "-m", "tilefold", *words], cwd=Path(__file__).parent, env={{**os.environ, **SETTINGS}}
    )
    status = status or done.returncode
sys.exit(status)
'''


@dataclass(frozen=True)
class Values:
    """The first values of a launch's arguments, by their names, and the words that choose the launch."""

    words: Sequence[str] = ()
    arrays: Mapping[str, NumPyArray] = field(default_factory=dict[str, NumPyArray])


@dataclass(frozen=True)
class Reproduction:
    """A program, and the words of the command on it, without those for the launch and its values. `said` is the output
    of the command; `passed_to` are programs by their names that a pass was given when it failed.
    """

    text: str
    words: Sequence[str]
    launches: Sequence[Values] = (Values(),)
    said: str = ""
    passed_to: Mapping[str, str] = field(default_factory=dict[str, str])

    def write(self, folder: Path) -> None:
        """Writes the folder, which is made where it does not exist. TilefoldError (E4002) where that fails."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TilefoldError(Code.CLI_WRITE, f"{folder}: {error.strerror}") from None
        write_output(self.text, str(folder / PROGRAM))
        for name, program in self.passed_to.items():
            write_output(program, str(folder / name))
        commands = [self._command(folder, number, launch) for number, launch in enumerate(self.launches)]
        listed = "[\n" + "".join(f"    {json.dumps(command)},\n" for command in commands) + "]"
        settings = json.dumps(dict(given_settings()))
        script = _SCRIPT.format(name="repro.py", settings=settings, commands=listed)
        write_output(script, str(folder / "repro.py"))
        write_output(json.dumps(facts(), indent=2) + "\n", str(folder / "facts.json"))
        write_output(self.said, str(folder / "output.txt"))

    def _command(self, folder: Path, number: int, launch: Values) -> list[str]:
        """The command for a launch, whose arrays are written to the folder."""
        words = [*self.words, *launch.words]
        for name, array in launch.arrays.items():
            file = f"{number}-{name}.npy" if len(self.launches) > 1 else f"{name}.npy"
            buffer = BytesIO()
            np.save(buffer, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
            write_output(buffer.getvalue(), str(folder / file))
            words += ["--arg", f"{name}={file}"]
        return words


def facts() -> dict[str, str]:
    """The versions of all that a result may depend on."""
    facts = {"tilefold": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return facts


def simulation_options(options: SimOptions) -> list[str]:
    """The words by which a command runs the simulator with these options."""
    words = ["--seed", str(options.seed)]
    for name, limit in (("--max-steps", options.max_steps), ("--max-memory", options.max_memory)):
        words += [] if limit is None else [name, str(limit)]
    words += [] if options.races else ["--no-races"]
    words += ["--numbers"] if options.numbers else []
    words += [] if options.resident == 1 else ["--resident", str(options.resident)]
    return words if options.numerics == NUMERICS[0] else [*words, "--numerics", options.numerics]
