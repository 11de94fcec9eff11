# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--repro DIR` and `.repro(...)`: the folder repeats the failure in another process and another place."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from xdsl.dialects.builtin import ModuleOp

from tests.bisection.test_bisect import planted
from tests.cli.kernels import SCALE, write
from tilefold import cute
from tilefold.commands.cli import main

Capture = pytest.CaptureFixture[str]
WRONG = SCALE.replace("A * 2", "A * 3")


def repeated(folder: Path, elsewhere: Path) -> "subprocess.CompletedProcess[str]":
    """The script of a folder, executed where the folder has been moved to."""
    shutil.move(folder, elsewhere)
    script = elsewhere / "repro.py"
    return subprocess.run([sys.executable, str(script)], cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["run", "check", "bisect"])
@pytest.mark.sampled(1)
def test_a_wrong_result_is_repeated(command: str, tmp_path: Path, capsys: Capture) -> None:
    path, folder = write(tmp_path, WRONG), tmp_path / "bug"
    assert main([command, path, "--seed", "7", "-D", "M=32", f"--repro={folder}"]) == 1
    captured = capsys.readouterr()
    assert f"note: python {folder / 'repro.py'} repeats this" in captured.err
    assert sorted(file.name for file in folder.iterdir()) == [
        "A.npy", "facts.json", "kernel.cute", "n.npy", "output.txt", "repro.py",
    ]  # fmt: skip
    assert np.load(folder / "A.npy").shape == (32, 8)
    assert (folder / "output.txt").read_text().startswith(captured.out)
    assert json.loads((folder / "facts.json").read_text())["numpy"] == np.__version__
    Path(path).unlink()
    done = repeated(folder, tmp_path / "elsewhere")
    assert done.returncode == 1
    failed = next(line for line in (captured.out + captured.err).splitlines() if "FAILED" in line)
    assert failed.partition(":")[2] in done.stdout + done.stderr


def test_the_values_are_those_of_the_launch(tmp_path: Path, capsys: Capture) -> None:
    """The folder does not depend on how the values were made."""
    given = np.arange(256, dtype=np.float32).reshape(32, 8)
    np.save(tmp_path / "A.npy", given)
    options = ["--arg", f"A={tmp_path / 'A.npy'}", "--fill", "n=5", "--repro", str(tmp_path / "bug")]
    assert main(["run", write(tmp_path, WRONG), "--device", "sim", *options]) == 1
    (tmp_path / "A.npy").unlink()
    assert (np.load(tmp_path / "bug" / "A.npy") == given).all()
    assert np.load(tmp_path / "bug" / "n.npy") == 5
    done = repeated(tmp_path / "bug", tmp_path / "elsewhere")
    assert "255 wrong; first B[0, 1] is 2.0, expected 3.0" in done.stderr


def test_a_crash_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def fails(module: ModuleOp) -> None:
        raise RuntimeError("it does not work")

    folder = tmp_path / "bug"
    with planted(monkeypatch, "lower-tensors", fails):
        assert main(["run", write(tmp_path), "--device", "sim", "--repro", str(folder)]) == 70
    assert "RuntimeError: it does not work" in (folder / "output.txt").read_text()
    assert main(["opt", str(folder / "before-the-pass.cute"), "-p", "lower-tensors"]) == 0
    assert repeated(folder, tmp_path / "elsewhere").returncode == 0, "without the wrong pass it is right"


def test_a_file_that_cannot_be_read_is_kept(tmp_path: Path, capsys: Capture) -> None:
    path, folder = write(tmp_path, SCALE.replace("addf", "adf")), tmp_path / "bug"
    assert main(["check", path, "--repro", str(folder)]) == 1
    assert "E1002" in capsys.readouterr().err
    done = repeated(folder, tmp_path / "elsewhere")
    assert done.returncode == 1
    assert "unknown operation 'arith.adf'" in done.stderr


def test_nothing_is_written_for_what_is_right(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check", write(tmp_path), "--repro", str(tmp_path / "bug")]) == 0
    assert "note: nothing has failed" in capsys.readouterr().err
    assert not (tmp_path / "bug").exists()
    assert main(["check", "-", "--repro", str(tmp_path / "bug")]) == 1
    assert "the program is on the standard input" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["run", write(tmp_path, WRONG), "--device", "sim", "--repro", str(tmp_path / "file")]) == 1
    assert "error[E4002]" in capsys.readouterr().err


@cute.kernel
def shifted(a: cute.Tensor, b: cute.Tensor, offset: cute.Int32, factor: cute.Float32) -> None:
    t, _, _ = cute.arch.thread_idx()
    x = a[t + offset] * factor
    if t < 31:
        b[t] = x


def test_calls_in_python_are_repeated(tmp_path: Path) -> None:
    a, b = np.arange(64, dtype=np.float32)[::2], np.full(32, -1, np.float16)
    call = shifted(a, b, 1, 2.5)
    script = call.repro(tmp_path / "bug", grid=1, block=32, outputs=["b"])
    assert (np.load(tmp_path / "bug" / "a.npy") == a).all()
    assert not (tmp_path / "bug" / "b.npy").exists()
    done = repeated(script.parent, tmp_path / "elsewhere")
    assert done.returncode == 1
    assert "error[E3202]" in done.stdout
    assert "test_repro.py:" in done.stdout, "it names the line of Python"
    ended = subprocess.run([sys.executable, str(call.repro(tmp_path / "run", 1, 32, command="bisect"))], check=False)
    assert ended.returncode == 1


def test_calls_in_python_are_reduced(tmp_path: Path) -> None:
    a, b = np.arange(32, dtype=np.float32), np.full(32, -1, np.float32)
    small = shifted(a, b, 1, 2.5).reduce(tmp_path / "bug", grid=1, block=32)
    assert (tmp_path / "bug" / "kernel.cute").read_text() == small
    assert "tile.load" in small
    assert "arith.mulf" not in small
    assert "scf.if" not in small
    assert "factor" not in small
    with pytest.raises(TilefoldError, match="does not fail"):
        shifted(a, b, 0, 2.5).reduce(tmp_path / "bug", grid=1, block=32)
