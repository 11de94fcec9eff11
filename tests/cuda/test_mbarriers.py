# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A ring of two stages between a warp that copies and one that reads: the same bytes by the simulator and on a GPU."""

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.cuda.harness import artifact
from tests.emit.harness import kernel, parse
from tests.sim.harness import seeded

CHUNKS = 37
"""Pieces of 512 bytes that go through the ring."""
LAUNCH = LaunchConfig((3, 1, 1), (64, 1, 1))

RING = f"""
%t = ptx.sreg "tid.x"
%block = ptx.sreg "ctaid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%eight = arith.constant 8 : i32
%sixteen = arith.constant 16 : i32
%warp = arith.constant 32 : i32
%stage_bytes = arith.constant 512 : i32
%chunks = arith.constant {CHUNKS} : i32
%all_bytes = arith.constant {512 * CHUNKS} : i32
%false = arith.constant false
%lane = arith.remui %t, %warp : i32
%copies = arith.cmpi ult, %t, %warp : i32
%leads = arith.cmpi eq, %lane, %zero : i32
%s = ptx.smem.addr 0
%full = ptx.smem.addr 1024
%empty = ptx.smem.addr 1040
%first = arith.cmpi eq, %t, %zero : i32
scf.if %first {{
  scf.for %i = %zero to %two step %one : i32 {{
    %at = arith.muli %i, %eight : i32
    %f = ptx.ptr_add %full, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %e = ptx.ptr_add %empty, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    ptx.mbarrier.init %f, %warp
    ptx.mbarrier.init %e, %ARRIVALS
  }}
}}
ptx.bar.sync 0
%from = arith.muli %block, %all_bytes : i32
%a = ptx.ptr_add %A, %from : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%b = ptx.ptr_add %B, %from : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%own = arith.muli %lane, %sixteen : i32
%neighbour = arith.xori %lane, %one : i32
%others = arith.muli %neighbour, %sixteen : i32
scf.for %i = %zero to %chunks step %one : i32 {{
  %stage = arith.remui %i, %two : i32
  %round = arith.divui %i, %two : i32
  %parity = arith.andi %round, %one : i32
  %before = arith.xori %parity, %one : i32
  %at = arith.muli %stage, %eight : i32
  %f = ptx.ptr_add %full, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  %e = ptx.ptr_add %empty, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  %chunk = arith.muli %i, %stage_bytes : i32
  %place = arith.muli %stage, %stage_bytes : i32
  %ac = ptx.ptr_add %a, %chunk : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
  %bc = ptx.ptr_add %b, %chunk : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
  %sc = ptx.ptr_add %s, %place : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  scf.if %copies {{
    ptx.mbarrier.wait %e, %before
    %to = ptx.ptr_add %sc, %own : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %src = ptx.ptr_add %ac, %own : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    ptx.cp.async "cg" 16 %to, %src
    COPIES_ARRIVE
  }} else {{
    WAIT
    %at_other = ptx.ptr_add %sc, %others : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %v = ptx.ld %at_other align 16 : !ptx.ptr<shared> -> vector<4xf32>
    %dst = ptx.ptr_add %bc, %own : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    ptx.st %v, %dst align 16 : vector<4xf32>, !ptx.ptr<global>
    ptx.bar.warp.sync -1
    scf.if %leads {{
      ARRIVE
    }}
  }}
}}
"""
"""The lanes of warp 1 read what their neighbours in warp 0 have copied, and let it go on."""

NOINC = "ptx.cp.async.mbarrier.arrive noinc %f"
COUNTED = "ptx.cp.async.mbarrier.arrive %f\nptx.mbarrier.arrive %f"


def _spin(test: str) -> str:
    return (
        f"scf.while () : () -> () {{\n%done = ptx.mbarrier.{test} %f, %parity\n"
        "%no = arith.cmpi eq, %done, %false : i1\nscf.condition(%no)\n} do {\nscf.yield\n}"
    )


FORMS = {
    "wait": (NOINC, "ptx.mbarrier.wait %f, %parity", "ptx.mbarrier.arrive %e", "one"),
    "test_wait": (COUNTED, _spin("test_wait"), "ptx.mbarrier.arrive %e", "one"),
    "try_wait": (NOINC, _spin("try_wait"), "ptx.mbarrier.arrive %e count %two", "two"),
}
"""How copies arrive, how the reading warp waits, how it arrives, and how many arrivals that is."""


def _text(form: str) -> str:
    copies_arrive, wait, arrive, arrivals = FORMS[form]
    body = RING.replace("COPIES_ARRIVE", copies_arrive).replace("WAIT", wait).replace("ARRIVE", arrive, 1)
    pointers = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
    return kernel(body.replace("%ARRIVALS", f"%{arrivals}"), pointers, "64", shared=1056)


def _arguments() -> tuple[dict[str, TensorArgument], np.ndarray]:
    numbers = np.random.default_rng(1).standard_normal((3 * CHUNKS, 16, 2, 4)).astype(np.float32)
    out = np.full(numbers.size, np.nan, np.float32)
    return {"A": TensorArgument(numbers.reshape(-1)), "B": TensorArgument(out)}, numbers[:, :, ::-1].reshape(-1)


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("form", FORMS)
def test_a_ring_in_the_simulator(form: str, seed: int | None) -> None:
    given, expected = _arguments()
    SimEngine(seeded(seed)).launch(SimProgram(parse(_text(form)), "k"), LAUNCH, given)
    np.testing.assert_array_equal(given["B"].storage, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMS)
def test_a_ring_on_a_gpu(form: str) -> None:
    engine = CudaEngine()
    if form == "try_wait" and engine.driver.target.sm < 90:
        pytest.skip("try_wait, and arrivals that are counted, need sm_90")
    given, expected = _arguments()
    engine.launch(artifact(_text(form), engine.driver.target), LAUNCH, given)
    np.testing.assert_array_equal(given["B"].storage, expected)
