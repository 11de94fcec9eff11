# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A command of the user that tells programs of interest from others, and PTX in lines that it may lose."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
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


_STAYS = (".version", ".target", ".address_size", ".reg")


def reduced_ptx(
    text: str, is_interesting: Callable[[str], bool], seconds: float, progress: Callable[[str], None]
) -> str:
    """The smallest text of interest that is found in some seconds, by its lines; no line more can go, if they suffice.
    The head of a module and declarations of registers stay, and a malformed text is not interesting.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("//")]
    deadline = time.monotonic() + seconds
    progress(f"the program: {len(lines)} lines")
    size, changed = max(len(lines) // 2, 1), False
    while time.monotonic() < deadline:
        begin = 0
        while begin < len(lines) and time.monotonic() < deadline:
            kept = [line for line in lines[begin : begin + size] if line.lstrip().startswith(_STAYS)]
            fewer = lines[:begin] + kept + lines[begin + size :]
            if len(fewer) < len(lines) and is_interesting("\n".join(fewer) + "\n"):
                lines, changed = fewer, True
                progress(f"{len(lines)} lines")
            else:
                begin += size
        if size == 1 and not changed:
            break
        size, changed = max(size // 2, 1), False
    return "\n".join(lines) + "\n"
