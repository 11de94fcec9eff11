# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every mistake on the command line of `tilefold show` gets a typed message that marks the characters at fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.show.harness import refused
from tilefold.commands.cli import main

DEFAULTS = {"--type": "f16", "--atom": "cp.async.ca.16", "--thr": "(8,4):(1,8)", "--val": "8:1"}
SRC: dict[str, str | None] = {"--src": "(1024,1024):(1,1024)"}

CASES: list[tuple[dict[str, str | None], str, str, str]] = [
    ({"--thr": "(8,x):(1,8)"}, "E0101", "--thr", "x"),
    ({"--thr": "(8,4):(1,9)"}, "E0313", "--thr", "(8,4):(1,9)"),
    ({"--thr": "S<1,0,1> o 0 o (8,4):(1,8)"}, "E0211", "--thr", "S<1,0,1> o 0 o (8,4):(1,8)"),
    ({"--thr": "(8,?):(1,8)"}, "E0207", "--thr", "(8,?):(1,8)"),
    ({"--val": "4:1"}, "E0306", "--val", "4:1"),
    ({"--val": "8:2"}, "E0313", "--val", "8:2"),
    ({"--type": "f17"}, "E4003", "--type", "f17"),
    ({"--atom": "ldmatrix.x3"}, "E0302", "--atom", "ldmatrix.x3"),
    ({"--atom": "cp.async.cg.8"}, "E0304", "--atom", "cp.async.cg.8"),
    ({"--atom": "copy.8"}, "E0303", "--atom", "copy.8"),
    ({"--atom": "ldmatrix.x4", "--thr": "(4,4):(1,4)"}, "E0305", "--thr", "(4,4):(1,4)"),
    ({"--thread": "32"}, "E4003", "--thread", "32"),
    ({"--thread": "-1"}, "E4003", "--thread", "-1"),
    ({"--src": "(1024,1024):(1,1024"}, "E0101", "--src", ""),
    ({"--src": "(0,4):(1,1)"}, "E0205", "--src", "0"),
    ({"--src": "64:1"}, "E0307", "--src", "64:1"),
    ({"--src": "(96,4):(1,96)"}, "E0314", "--src", "(96,4):(1,96)"),
    ({"--dst": "(64,6):(1,64)"}, "E0314", "--dst", "(64,6):(1,64)"),
    ({"--src": "(1000,1024):(1,1000)", "--cta-tiler": "(128,32)"}, "E0314", "--cta-tiler", "128"),
    (SRC | {"--cta-tiler": "(128,128,24)", "--proj": "(1,X,1)"}, "E0314", "--cta-tiler", "24"),
    (SRC | {"--cta-tiler": "(32,32)"}, "E0314", "--cta-tiler", "(32,32)"),
    (SRC | {"--cta-tiler": "(128,128,32)"}, "E0202", "--cta-tiler", "(128,128,32)"),
    (SRC | {"--cta-tiler": "(128,0)"}, "E0205", "--cta-tiler", "(128,0)"),
    (SRC | {"--cta-tiler": "(128,32)", "--cta-coord": "(8,0)"}, "E4003", "--cta-coord", "8"),
    (SRC | {"--cta-tiler": "(128,32)", "--cta-coord": "(0,0,0)"}, "E0202", "--cta-coord", "(0,0,0)"),
    (SRC | {"--cta-tiler": "(128,32)", "--cta-coord": "(0,(1,1))"}, "E0201", "--cta-coord", "(0,(1,1))"),
    (SRC | {"--cta-tiler": "(128,8,32)", "--cta-coord": "(0,_)", "--proj": "(1,X,1)"}, "E0202", "--cta-coord", "(0,_)"),
    (SRC | {"--cta-tiler": "(128,32)", "--proj": "(1,X,1)"}, "E0202", "--proj", "(1,X,1)"),
    (SRC | {"--cta-tiler": "(128,32)", "--proj": "Step<1,y>"}, "E0101", "--proj", "y"),
    (SRC | {"--cta-tiler": "(128,32)", "--proj": "(X,X)"}, "E4003", "--proj", "(X,X)"),
    ({"--cta-tiler": "(128,32)"}, "E4003", "--cta-tiler", "(128,32)"),
    (SRC | {"--cta-coord": "(0,0)"}, "E4003", "--cta-coord", "(0,0)"),
    ({"--thr": None, "--val": None, "--tv": "(32,8,1):(8,1,0)", "--tiler": "256"}, "E0202", "--tv", "(32,8,1):(8,1,0)"),
    ({"--thr": None, "--val": None, "--tv": "(32,8):(8,1)", "--tiler": "(_,4)"}, "E0207", "--tiler", "(_,4)"),
]


def arguments(options: dict[str, str | None]) -> list[str]:
    """The command line of these options, and of the defaults for the others."""
    return ["tiled-copy", *(f"{k}={v}" for k, v in {**DEFAULTS, **options}.items() if v is not None)]


@pytest.mark.parametrize(("options", "code", "blamed", "marked"), CASES, ids=[f"{c[2]}-{c[1]}-{c[3]}" for c in CASES])
def test_mistakes_are_marked(
    capsys: pytest.CaptureFixture[str], options: dict[str, str | None], code: str, blamed: str, marked: str
) -> None:
    message, shown, marker, *_ = refused(capsys, *arguments(options))
    assert message.startswith(f"error[{code}]: {blamed}: ")
    assert shown == f"  {options[blamed]}"
    start, end = marker.index("^"), len(marker)
    assert set(marker[start:end]) == {"^"}
    assert shown[start:end] == marked


@pytest.mark.parametrize(
    "options", [{"--thr": None}, {"--tv": "(32,8):(8,1)"}, {"--thr": None, "--tv": "(32,8):(8,1)"}]
)
def test_a_tiled_copy_is_made_in_one_way(capsys: pytest.CaptureFixture[str], options: dict[str, str | None]) -> None:
    first, hint = refused(capsys, *arguments(options))
    assert "a tiled copy is made of" in first
    assert hint == "  hint: give --thr and --val, --tv and --tiler, --cotiled and --data, or --mma and --operand"


def test_long_and_strange_values_stay_readable(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown, marker, *_ = refused(capsys, *arguments({"--thr": "(" * 40 + "\x1b[31m" + "8" * 500}))
    assert len(shown) <= 102
    assert "\x1b" not in shown
    assert marker.strip("^ ") == ""


@given(st.text("(),:_X18;[]<>S o?@-", max_size=24))
def test_no_text_gives_a_traceback(text: str) -> None:
    for option in ("--thr", "--src", "--cta-tiler", "--cta-coord", "--proj", "--tv"):
        given_options: dict[str, str | None] = {**SRC, "--cta-tiler": "(128,32)", option: text}
        if option == "--tv":
            given_options |= {"--thr": None, "--val": None, "--tiler": "(64,4)"}
        assert main(["show", *arguments(given_options)]) in (0, 1)
