# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that begin on the host, with their kernels on a GPU: they print what they print on the simulator."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.harness import C, kernel

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
FIRST = "%t = gpu.thread_id x\n%z = arith.constant 0 : index\n%first = arith.cmpi eq, %t, %z : index\n"
CALL = (
    "%b = func.call @base() : () -> i32\ncute.print(%s) : !cute.shape<\"(2,3)\">\n"
    "gpu.launch_func @m::@k blocks in (%y, %y, %y) threads in (%x, %y, %y) args(%b : i32)\n"
    "cute.print(%s) : !cute.shape<\"(2,3)\">"
)  # fmt: skip
ALGEBRA = """
%l = cute.make_shape(%n, %n) : (i32, i32) -> !cute.shape<"(?,?)">
%d = cute.make_stride(%n) : (i32) -> !cute.stride<"(1,?)">
%a = cute.make_layout(%l, %d) : (!cute.shape<"(?,?)">, !cute.stride<"(1,?)">) -> !cute.layout<"(?,?):(1,?)">
%c = cute.coalesce(%a) : (!cute.layout<"(?,?):(1,?)">) -> !cute.layout<"(?,?):(1,?)">
%m = cute.cosize(%a) : (!cute.layout<"(?,?):(1,?)">) -> !cute.int_tuple<"?">
%i = arith.index_cast %t : index to i32
%p = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
%q = cute.idx2crd(%p, %l) : (!cute.int_tuple<"?">, !cute.shape<"(?,?)">) -> !cute.coord<"(?,?)">
%e = cute.layout_eval(%q, %a) : (!cute.coord<"(?,?)">, !cute.layout<"(?,?):(1,?)">) -> !cute.int_tuple<"?">
%w = cute.static : !cute.swizzle<"S<2,0,3>">
%o = cute.make_composed_layout(%w, %p, %a)
  : (!cute.swizzle<"S<2,0,3>">, !cute.int_tuple<"?">, !cute.layout<"(?,?):(1,?)">)
  -> !cute.composed_layout<"S<2,0,3> o ? o (?,?):(1,?)">
%v = cute.layout_eval(%q, %o)
  : (!cute.coord<"(?,?)">, !cute.composed_layout<"S<2,0,3> o ? o (?,?):(1,?)">) -> !cute.int_tuple<"?">
scf.if %first {
  cute.print(%c) : !cute.layout<"(?,?):(1,?)">
  cute.print(%m) : !cute.int_tuple<"?">
}
cute.print(%q) : !cute.coord<"(?,?)">
cute.print(%e) : !cute.int_tuple<"?">
cute.print(%v) : !cute.int_tuple<"?">"""
PROGRAMS = {
    "algebra": FIRST + ALGEBRA,
    "texts": FIRST + 'scf.if %first {\ngpu.printf "%d%% of\\n", %n : i32\n}',
    "every thread": '%t = gpu.thread_id x\n%i = arith.index_cast %t : index to i32\ngpu.printf "%d\\n", %i : i32',
}


def _run(path: Path, device: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tilefold", "run", str(path), "--device", device, "--allow-env", "BASE=7"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gpu_prints_what_the_simulator_prints(name: str, tmp_path: Path) -> None:
    static = '%s = cute.static : !cute.shape<"(2,3)">\n'
    path = tmp_path / "p.mlir"
    path.write_text(C + kernel(PROGRAMS[name], "%n: i32", threads=40, call=static + CALL))
    on_gpu, simulated = _run(path, "cuda"), _run(path, "sim")
    assert on_gpu[0] == on_gpu[-1] == "(2,3)"
    # each thread prints its values one after the other, but threads take turns in any order
    assert sorted(on_gpu) == sorted(simulated)
    assert len(on_gpu) > 2
