# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks with further inputs: given ones, and random draws from the types of the parameters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.layout.algebra.integers import Unknown

from tests.checking.test_verdict import validated
from tests.cli.kernels import write
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.tools.checking.draws import Draw, Geometry

Capture = pytest.CaptureFixture[str]

GUARDED = """\
!g = !tile.tensor<f32, gmem, align<16>, "(?,?{div=4}):(?{div=4},1)">
!c = !tile.tensor<f32, gmem, align<16>, "(8,16):(16,1)">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !g, %rows: i32, %columns: i32) threads(128) {
    %t = gpu.thread_id x
    %c16 = arith.constant 16 : index
    %i = arith.divui %t, %c16 : index
    %j = arith.remui %t, %c16 : index
    %n = arith.index_cast %rows : i32 to index
    %m = arith.index_cast %columns : i32 to index
    %in = arith.cmpi ult, %i, %n : index
    %too = arith.cmpi ult, %j, %m : index
    %both = arith.andi %in, %too : i1
    scf.if GUARD {
      %a = tile.load %A(%i, %j)
      tile.store %a, %B(%i, %j)
    }
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !c = "normal"
  run.arg "B" : !c = "poison"
  run.arg "rows" : i32 = "8"
  run.arg "columns" : i32 = "16"
  run.check "B == A"
}
"""


@cute.kernel
def shifted(a: cute.Tensor, b: cute.Tensor, n: cute.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t < n:
        b[t] = a[t]
    elif t == n:
        b[t] = a[t + 60]


def test_each_of_the_given_inputs_is_checked() -> None:
    a = np.arange(64, dtype=np.float32)
    call = shifted(a, np.zeros_like(a), 64)
    assert call.check(grid=1, block=64, outputs="partial").verdict == "incomplete"
    report = call.check(grid=1, block=64, outputs="partial", inputs=[{"n": 2}])
    assert (report.verdict, report.inputs) == ("clean", ("as given", "inputs[0]"))
    report = call.check(grid=1, block=64, outputs="partial", inputs=[{"n": 2}, {"n": 60}])
    assert [(fault.code.id, fault.input) for fault in report.faults] == [("E3202", "inputs[1]")]
    assert "note: with inputs[1]" in str(report)
    with pytest.raises(TilefoldError, match="the kernel has no argument 'm'"):
        call.check(grid=1, block=64, inputs=[{"m": 2}])


def test_draws_of_a_call(tmp_path: Path, capsys: Capture) -> None:
    a = np.arange(64, dtype=np.float32)
    call = shifted(a, np.zeros_like(a), 64)
    for ranges, verdict in (({"n": range(1, 4)}, "clean"), ({"n": range(10, 63)}, "faults")):
        report = call.check(grid=1, block=64, outputs="partial", fuzz=4, ranges=ranges)
        assert (report.verdict, len(report.inputs)) == (verdict, 5)
    first = validated(report.json())
    path = tmp_path / "report.json"
    path.write_text(report.json())
    assert main(["check", "--replay", str(path), "--json"]) == 1
    assert validated(capsys.readouterr().out) == first
    sizes: set[int] = set()

    def grid(given: Mapping[str, Any]) -> int:
        sizes.add(given["n"])
        return 1

    call.check(grid=grid, block=64, outputs="partial", fuzz=3, stages=["cute"])
    assert len(sizes) > 1


@pytest.mark.parametrize(("guard", "status"), [("%both", 0), ("%in", 1), ("%too", 1)])
def test_draws_of_a_file(tmp_path: Path, capsys: Capture, guard: str, status: int) -> None:
    path = write(tmp_path, GUARDED.replace("GUARD", guard))
    assert main(["check", path, "--stage", "cute"]) == 0
    assert main(["check", path, "--stage", "cute", "--fuzz", "8", "--json"]) == status
    report = validated(capsys.readouterr().out.split("\n", 1)[1])
    assert len(report["inputs"]) == 9
    assert [fault["code"] for fault in report["faults"]] == ["E3202"] * status


@pytest.mark.parametrize("text", ["n=1", "n=4:1", "n=1:2:x", "n"])
def test_ranges_that_are_none(tmp_path: Path, capsys: Capture, text: str) -> None:
    path = write(tmp_path, GUARDED.replace("GUARD", "%both"))
    assert main(["check", path, "--fuzz", "1", "--range", text, "--stage", "cute"]) == 1
    assert "E4003" in capsys.readouterr().err


def test_extents_strides_and_numbers_keep_the_promises_of_types() -> None:
    array = Geometry((24, 40), (48, 1), (Unknown(32, 8), 40), (Unknown(32, 4), 1), 16)
    other = Geometry((40, 24), (24, 1), (40, Unknown()), (Unknown(), 1), 16)
    for seed in range(50):
        draw = Draw(np.random.default_rng(seed), {"k": range(3, 9, 3)})
        draw.begin([array, other])
        (m, n), (step, one) = draw.layout("A", array)
        assert (m % 8, n, step % 4, one) == (0, 40, 0, 1)
        assert 0 < m <= 24
        assert step >= 40
        assert draw.layout("B", other)[0] == (40, m), "equal extents stay equal"
        assert draw.number("m", 24) == m
        assert draw.number("ld", 48) == 48, "a stride stays"
        assert draw.number("k", 5) in (3, 6)
        assert 0 <= draw.number("i", 7) <= 7
        indices = np.arange(12).reshape(3, 4)
        assert sorted(draw.values("I", indices).ravel()) == list(range(12))
