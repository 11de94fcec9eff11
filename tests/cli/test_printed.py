# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`-o` of commands that print as they go."""

import re
from pathlib import Path

import pytest

from tests.cli.kernels import SCALE, write
from tilefold.commands.cli import COMMANDS, build_parser, main

_TIME = re.compile(r"[\d.]+ (?:s|ms|µs)\b")
SERVERS = {"lsp", "mcp"}
"""Commands whose output is a conversation."""


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - SERVERS))
def test_every_command_writes_to_a_file(command: str) -> None:
    parser = build_parser([command])
    (subparsers,) = [action for action in parser._actions if action.dest == "command"]  # pyright: ignore[reportPrivateUsage]
    assert subparsers.choices is not None
    assert "-o" in subparsers.choices[command].format_help()  # pyright: ignore


@pytest.mark.parametrize("command", ["run", "bisect"])
@pytest.mark.parametrize("right", [True, False])
def test_what_a_command_prints_is_in_the_file(
    command: str, right: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, write(tmp_path, SCALE if right else SCALE.replace("== A * 2", "== A * 3"))]
    words += ["--device", "sim"] if command == "run" else []
    status = main(words)
    printed = capsys.readouterr().out
    assert main([*words, "-o", str(tmp_path / "out.txt")]) == status == (0 if right else 1)
    assert capsys.readouterr().out == ""
    written = (tmp_path / "out.txt").read_text()
    assert _TIME.sub("", written) == _TIME.sub("", printed)


def test_the_folder_of_the_cache_is_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "path", "-o", str(tmp_path / "out.txt")]) == 0
    assert capsys.readouterr().out == ""
    assert Path((tmp_path / "out.txt").read_text().strip()).is_absolute()
