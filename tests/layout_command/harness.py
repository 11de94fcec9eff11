# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running `tilefold layout` in tests."""

import pytest
from tilefold.layout.text.evaluate import Evaluator
from tilefold.layout.text.printing import lines, plain_style

from tilefold.commands.cli import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `tilefold layout` prints for arguments that it accepts."""
    status = main(["layout", *arguments])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert captured.err == ""
    return captured.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines of the message for arguments that it refuses; nothing else is printed, and the exit status is 1."""
    status = main(["layout", *arguments])
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    return captured.err.splitlines()


def text_of(expression: str) -> str:
    """The canonical text of the last value of some statements."""
    return "\n".join(lines(Evaluator().run(expression)[-1].value, plain_style))
