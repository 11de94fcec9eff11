# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A command of the user's that tells programs of interest from others."""

import os
import shlex
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tilefold.base.errors import Code, TilefoldError

SECONDS = 60
"""The time that a command may take. One that takes longer finds nothing of interest."""


@dataclass(frozen=True)
class Command:
    """The words of a command, with `{}` for the name of a program's file."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Command":
        """The command of a text, which is taken apart as a shell does. TilefoldError (E4003) for none."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise TilefoldError(Code.CLI_VALUE, f"--test {text[:80]}: {error}") from None
        if not words:
            raise TilefoldError(Code.CLI_VALUE, "--test: no command")
        return cls(words if any("{}" in word for word in words) else (*words, "{}"))

    def fails(self, text: str) -> bool:
        """Whether the command ends with another exit status than 0 for a program. TilefoldError (E4003) where it cannot
        run.
        """
        with TemporaryDirectory(prefix="tilefold-") as folder:
            path = Path(folder) / "reduced.cute"
            path.write_text(text, encoding="utf-8")
            words = [word.replace("{}", str(path)) for word in self.words]
            quiet = subprocess.DEVNULL
            try:
                process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
            except OSError as error:
                raise TilefoldError(Code.CLI_VALUE, f"--test {words[0]}: {error.strerror}") from None
            try:
                return process.wait(SECONDS) != 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
