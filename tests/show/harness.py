# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running `tilefold show` in tests."""

import pytest

from tilefold.commands.cli import main


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `tilefold show` prints for arguments that it accepts."""
    status = main(["show", *arguments])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return captured.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines of the message for arguments that it refuses; nothing else is printed, and the exit status is 1."""
    status = main(["show", *arguments])
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    return captured.err.splitlines()
