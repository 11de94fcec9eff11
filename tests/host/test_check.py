# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold check` of programs that begin on the host: each launch is checked, with what the host passes."""

import json
from pathlib import Path

import pytest

from tests.host.harness import kernel
from tilefold.commands.cli import main

BODY = """\
%t = gpu.thread_id x
%i = arith.index_cast %t : index to i32
%r = arith.divui %n, %i : i32
%l = cute.make_shape(%r) : (i32) -> !cute.shape<"?">
cute.print(%l) : !cute.shape<"?">"""
CALLS = """\
%five = arith.constant 5 : i32
gpu.launch_func @m::@k blocks in (%g, %y, %y) threads in (%x, %y, %y) args(%five : i32)
gpu.launch_func @m::@k blocks in (%g, %y, %y) threads in (%x, %y, %y) args(%five : i32)"""
WRONG = kernel(BODY, "%n: i32", call=CALLS)
RIGHT = WRONG.replace("%r = arith.divui %n, %i : i32", "%r = arith.addi %n, %i : i32")


def checked(text: str, path: Path, *options: str) -> int:
    path.write_text(text)
    return main(["check", str(path), *options])


def test_each_launch_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "main.mlir"
    assert checked(WRONG, path, "--format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert [(fault["code"], fault["stages"], fault["place"]["line"]) for fault in report["faults"]] == [
        ("E3209", ["cute", "instr"], 5)
    ]
    assert report["launches"] == ["m::k"]
    assert "block (0,0,0), thread (0,0,0)" in report["faults"][0]["message"]
    for stages in ([], ["--stage", "all"]):
        assert checked(RIGHT, path, *stages) == 0
        assert "no faults" in capsys.readouterr().out


def test_stages_and_options_that_hosts_do_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "main.mlir"
    for options in (("--stage", "atoms"), ("--grid", "2"), ("--max-steps", "0")):
        assert checked(RIGHT, path, *options) == 1
        assert "E4003" in capsys.readouterr().err
