# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of memory, steps and time hold for every command, before anything is expanded."""

from pathlib import Path

import pytest

from tilefold.commands.cli import main

KERNEL = """\
!A = !tile.tensor<i32, gmem, align<16>, "@SIZE@:1">
gpu.module @k {
  tile.kernel @f(%A: !A) threads(32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 10000000000 : index
    @BODY@
    tile.return
  }
}
run.launch @k::@f grid(1) {
  run.arg "A" : !A = "@FILL@"
  run.check "@CHECK@"
}
"""
LOOP = "scf.for %i = %c0 to %n step %c1 { ptx.bar.sync 0 }"
EVERY = ("run", "check", "bisect", "reduce", "compile", "explain", "opt")
RUNNING = ("run", "check", "bisect")


def write(folder: Path, *, size: int = 64, body: str = "", fill: str = "zeros", check: str = "A == A") -> str:
    """Writes a file, and returns its path."""
    path = folder / "k.cute"
    text = KERNEL.replace("@SIZE@", str(size)).replace("@BODY@", body)
    path.write_text(text.replace("@FILL@", fill).replace("@CHECK@", check))
    return str(path)


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that must fail."""
    assert main(words) == 1
    return "".join(capsys.readouterr())


@pytest.mark.parametrize("command", EVERY)
@pytest.mark.parametrize(
    "body",
    [
        "%v = arith.constant dense<1> : vector<1000000000xi32>",
        "%v = arith.constant dense<1.0> : tensor<100000x100000xf32>",
        "%v = ub.poison : vector<65537xi8>",
        "%v = vector.broadcast %n : index to vector<4096x4096xindex>",
    ],
)
def test_vectors(command: str, body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal([command, write(tmp_path, body=body)], capsys)
    assert "error[E1005]" in said
    assert "elements; at most 65536 are accepted" in said
    assert "hint: keep the elements in a !tile.tensor" in said


@pytest.mark.parametrize("command", RUNNING)
@pytest.mark.parametrize(
    "fill",
    [
        "arange",
        "arange(1, 2)",
        "normal(seed=0)",
        "uniform",
        "integers(0, 9)",
        "full(3)",
        "zeros + ones",
        "zeros * 2 + 1",
    ],
)
def test_fills(command: str, fill: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal([command, write(tmp_path, size=1 << 22, fill=fill), "--max-memory", "20"], capsys)
    assert "error[E3103]" in said
    assert "allow more by --max-memory" in said
    assert "k.cute:12:" in said


@pytest.mark.parametrize(
    ("size", "check", "words"),
    [
        (64, "broadcast_to(A, (100000000, 64)) == 0", "elements; at most 268435456 are accepted"),
        (1 << 13, "broadcast_to(A, (32768, 8192)) @ broadcast_to(A, (8192, 8192)) == 0", "would take too long"),
    ],
)
def test_sizes_that_no_option_raises(
    size: int, check: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, size=size, check=check)
    said = refusal(["run", path, "--device", "sim", "--max-memory", "100000000"], capsys)
    assert words in said
    assert "or give an argument's values by --arg" in said


def test_more_memory_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", write(tmp_path, size=1 << 20, fill="arange"), "--device", "sim", "--no-races"]
    assert "allow more by --max-memory" in refusal([*words, "--max-memory", "10"], capsys)
    assert main([*words, "--max-memory", "100"]) == 0


@pytest.mark.parametrize(
    "check",
    [
        "broadcast_to(A, (100000000, 64)) == 0",
        "A == reshape(A, (64, 1)) + broadcast_to(A, (10000000, 1, 64))",
        "sum(broadcast_to(A, (2000000, 64)) * 2 + 1) == 0",
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_checks(command: str, check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal([command, write(tmp_path, check=check), "--max-memory", "64"], capsys)
    assert "error[E3103]" in said


@pytest.mark.parametrize("command", RUNNING)
@pytest.mark.parametrize(
    ("limit", "code"), [(("--max-seconds", "0.05"), "E3243"), (("--max-steps", "1000"), "E3210")], ids=["time", "steps"]
)
def test_endless_loops(
    command: str, limit: tuple[str, str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--device", "sim") if command == "run" else ()
    status = main([command, write(tmp_path, body=LOOP), *limit, *more])
    said = "".join(capsys.readouterr())
    assert status == (3 if command == "check" else 1)
    assert (code if command in ("bisect", "check") else f"error[{code}]") in said
    assert f"allow more by {limit[0]}" in said


@pytest.mark.parametrize("value", ["0", "-1", "nan"])
def test_senseless_time(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(["run", write(tmp_path), f"--max-seconds={value}"], capsys)
    assert "error[E4003]: --max-seconds" in said


@pytest.mark.parametrize("command", EVERY)
@pytest.mark.parametrize(
    "body",
    [
        "%v = arith.constant @ : i32",
        "%v = arith.constant -@ : index",
        "%v = arith.constant @.0 : f32",
        "%v = arith.constant 1.@ : f32",
        "%v = arith.constant dense<@> : vector<4xi32>",
        "%v = ub.poison : vector<@xi32>",
        '%v = cute.static : !cute.layout<"@:1">',
        "%v = arith.constant 0x@ : i64",
        '%v = tile.alloc : !tile.tensor<f32, rmem, align<4>, "4:@">',
    ],
)
def test_numbers_of_many_digits(command: str, body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal([command, write(tmp_path, body=body.replace("@", "9" * 5000))], capsys)
    assert "error[E" in said
    assert "k.cute:7:" in said
    assert "Exceeds the limit" not in said
    assert len(said) < 2000
