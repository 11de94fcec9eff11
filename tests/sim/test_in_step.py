# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warps and blocks in step against warps one after the other: the same results, counters and faults."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.runtime.engine import LaunchConfig, RunResult, TensorArgument
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.memory.journal import Journal
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from benchmarks.workloads import Workload
from tests.sim.harness import entry, launch, module_of
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import load

THREADS = 96


def in_order() -> SimEngine:
    """A simulator that runs warp after warp, as an observer of a launch wants it."""
    return SimEngine(journal=Journal(keeps_values=True), sink=lambda _: None)


def nothing(*_: object) -> None:
    """In place of a run in step."""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For each run that a launch has made to its end, how many blocks were in step."""
    made: list[int] = []
    once = vars(SimEngine)["_run_once"]

    def recorded(*args: Any, in_step: int = 0, **options: Any) -> Any:
        result = once(*args, in_step=in_step, **options)
        made.append(in_step)
        return result

    monkeypatch.setattr(SimEngine, "_run_once", recorded)
    return made


EXAMPLES = {
    "gemm.cute": {"M": 64, "N": 64, "K": 64, "TILE_M": 64, "TILE_N": 64, "WARPS_M": 2, "WARPS_N": 2},
    "attention.cute": {"HEADS": 1},
    "softmax.cute": {},
    "rmsnorm.cute": {},
    "sgemm.cute": {},
    "ldmatrix.cute": {},
    "copy_atoms.cute": {},
    "transpose.cute": {},
    "ragged_copy.cute": {},
}


@pytest.mark.parametrize("stage", ["cute", "index", "instr"])
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.sampled(3)
def test_examples(name: str, stage: str, runs: list[int]) -> None:
    program = load(Workload(name, f"examples/{name}", EXAMPLES[name]).source())
    module = program.at(stage)
    assert module is not None
    for wanted in read_launches(program.module, program.source, Changes()):
        outcomes: list[RunResult] = []
        contents: list[list[bytes]] = []
        for engine in (SimEngine(sink=lambda _: None), in_order()):
            given = prepare(wanted, {}, seed=0, max_bytes=1 << 30).launchable()
            config = LaunchConfig(wanted.grid, wanted.block)
            outcomes.append(engine.launch(SimProgram(module, wanted.kernel), config, given))
            contents.append([array.storage.tobytes() for array in given.values() if isinstance(array, TensorArgument)])
        assert outcomes[0].counters == outcomes[1].counters
        assert contents[0] == contents[1]
    assert max(runs) > 0


def body_of(text: str) -> str:
    """A kernel of 96 threads: `text` computes the i32 %r of each from its number %i."""
    return entry(
        f"""
      %t = gpu.thread_id x
      %i = arith.index_cast %t : index to i32
      %c4 = arith.constant 4 : index
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %w = arith.divui %t, %c32 : index
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %s = ptx.smem.addr 0
      %n = arith.constant 96 : index
      %block = gpu.block_id x
      %begin = arith.muli %block, %n : index
      %g = arith.addi %begin, %t : index
      {text}
      %o = arith.muli %g, %c4 : index
      %p = ptx.ptr_add %B, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
      ptx.st %r, %p align 4 : i32, !ptx.ptr<global>""",
        "%B: !ptx.ptr<global> align 16",
        str(THREADS),
        shared=4 * THREADS,
    )


KERNELS = {
    "shuffle": '%r = ptx.shfl.sync "bfly" %i, %one : i32',
    "vote": """
      %odd = arith.andi %i, %one : i32
      %p1 = arith.trunci %odd : i32 to i1
      %r = ptx.vote.sync "ballot" %p1 : i32""",
    "active lanes": "%r = ptx.activemask",
    "an instruction by its name": """
      %r = ptx.inline "fns.b32 $0, $1, $2, $3;" constraints "=r,r,r,r"(%i, %zero, %one) : (i32, i32, i32) -> (i32)""",
    "one warp alone": """
      %second = arith.cmpi uge, %t, %c64 : index
      %r = scf.if %second -> (i32) {
        %below = ptx.shfl.sync "down" %i, %one : i32
        scf.yield %below : i32
      } else {
        scf.yield %i : i32
      }""",
    "loops of different lengths": """
      %first = arith.constant 0 : index
      %step = arith.constant 1 : index
      %r = scf.for %k = %first to %w step %step iter_args(%sum = %zero) -> (i32) {
        %moved = ptx.shfl.sync "down" %i, %one : i32
        %next = arith.addi %sum, %moved : i32
        scf.yield %next : i32
      }""",
    "half a warp": """
      %part = arith.andi %i, %one : i32
      %is = arith.cmpi eq, %part, %one : i32
      %r = scf.if %is -> (i32) {
        %m = ptx.activemask
        scf.yield %m : i32
      } else {
        scf.yield %i : i32
      }""",
    "votes of the odd lanes": """
      %part = arith.andi %i, %one : i32
      %odd = arith.trunci %part : i32 to i1
      %r = scf.if %odd -> (i32) {
        %m = arith.constant -1431655766 : i32
        %v = ptx.vote.sync "ballot" %odd mask %m : i32
        scf.yield %v : i32
      } else {
        scf.yield %i : i32
      }""",
    "matches": """
      %part = arith.andi %i, %one : i32
      %r = ptx.match.any.sync %part""",
    "barriers as often as the block says": """
      %first = arith.constant 0 : index
      %step = arith.constant 1 : index
      %so = arith.muli %t, %c4 : index
      %mine = ptx.ptr_add %s, %so : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
      %far = arith.addi %t, %c32 : index
      %other = arith.remui %far, %n : index
      %q = arith.muli %other, %c4 : index
      %there = ptx.ptr_add %s, %q : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
      %r = scf.for %k = %first to %block step %step iter_args(%sum = %i) -> (i32) {
        ptx.st %sum, %mine align 4 : i32, !ptx.ptr<shared>
        ptx.bar.sync 0
        %got = ptx.ld %there align 4 : !ptx.ptr<shared> -> i32
        ptx.bar.sync 0
        %next = arith.addi %sum, %got : i32
        scf.yield %next : i32
      }""",
    "a barrier in place": """
      %go = arith.muli %g, %c4 : index
      %at = ptx.ptr_add %B, %go : !ptx.ptr<global>, index -> !ptx.ptr<global>
      %old = ptx.ld %at align 4 : !ptx.ptr<global> -> i32
      %far = arith.addi %t, %c32 : index
      %other = arith.remui %far, %n : index
      %place = arith.addi %begin, %other : index
      %po = arith.muli %place, %c4 : index
      %there = ptx.ptr_add %B, %po : !ptx.ptr<global>, index -> !ptx.ptr<global>
      %near = ptx.ld %there align 4 : !ptx.ptr<global> -> i32
      ptx.bar.sync 0
      %sum = arith.addi %near, %i : i32
      %r = arith.addi %sum, %old : i32""",
}
FEWER = ("votes of the odd lanes",)
"""Kernels that only the warps of one block execute in step."""


BLOCKS = 7
"""Blocks of the grid: four of them run in step, then two, then one."""


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str, runs: list[int]) -> None:
    results: list[NDArray[np.int32]] = []
    counters: list[Any] = []
    for engine in (SimEngine(), in_order()):
        b = np.zeros(BLOCKS * THREADS, np.int32)
        ran = launch(body_of(KERNELS[name]), (BLOCKS, 1, 1), (THREADS, 1, 1), engine, B=b)
        counters.append(ran.counters)
        results.append(b)
    assert np.array_equal(results[0], results[1])
    assert counters[0] == counters[1]
    assert runs == [1 if name in FEWER else 4, 0]


SHARED = """
      %t = gpu.thread_id x
      %c4 = arith.constant 4 : index
      %c32 = arith.constant 32 : index
      %n = arith.constant 96 : index
      %i = arith.index_cast %t : index to i32
      %s = ptx.smem.addr 0
      %o = arith.muli %t, %c4 : index
      %p = ptx.ptr_add %s, %o : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
      %far = arith.addi %t, %c32 : index
      %other = arith.remui %far, %n : index
      %q = arith.muli %other, %c4 : index
      %there = ptx.ptr_add %s, %q : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
      ptx.st %i, %p align 4 : i32, !ptx.ptr<shared>
      %r = ptx.ld %there align 4 : !ptx.ptr<shared> -> i32
      %g = ptx.ptr_add %B, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
      ptx.st %r, %g align 4 : i32, !ptx.ptr<global>"""


def test_a_fault_is_that_of_warps_in_order(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing barrier between warps: the message names the first fault in their order."""
    text = entry(SHARED, "%B: !ptx.ptr<global> align 16", "96", shared=384)
    messages: list[str] = []
    for is_in_step in (True, False):
        with monkeypatch.context() as patch:
            if not is_in_step:
                patch.setattr(SimEngine, "_run_in_step", nothing)
            with pytest.raises(SimulationError) as caught:
                launch(text, block=(THREADS, 1, 1), B=np.zeros(THREADS, np.int32))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    b = np.zeros(THREADS, np.int32)
    launch(text.replace("%r = ptx.ld", "ptx.bar.sync 0\n%r = ptx.ld"), block=(THREADS, 1, 1), B=b)
    assert np.array_equal(b, np.roll(np.arange(THREADS), -32))
    assert runs[-1] == 1


def test_an_attempt_ends_at_the_first_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    once = vars(SimEngine)["_run_once"]

    def counted(*args: Any, in_step: int = 0, **options: Any) -> Any:
        begun.append(in_step)
        return once(*args, in_step=in_step, **options)

    monkeypatch.setattr(SimEngine, "_run_once", counted)
    b = np.zeros(THREADS, np.int32)
    faulty = entry(SHARED, "%B: !ptx.ptr<global> align 16", "96", shared=384)
    for text in (faulty, faulty.replace("%r = ptx.ld", "ptx.bar.sync 0\n%r = ptx.ld")):
        program, config = SimProgram(module_of(text), "k"), LaunchConfig((1, 1, 1), (THREADS, 1, 1))
        result = SimEngine().attempt(program, config, {"B": TensorArgument(b)})
        assert (result is None) is (text == faulty)
    assert begun == [1, 1], "no run tells the fault"
    assert np.array_equal(b, np.roll(np.arange(THREADS), -32))


CROSS = """
      %r0 = ptx.ld %p align 4 : !ptx.ptr<global> -> i32
      ptx.bar.sync 0
      %other.b = arith.xori %block, %one.i : index
      %other.o = arith.muli %other.b, %n : index
      %other.g = arith.addi %other.o, %t : index
      %other.q = arith.muli %other.g, %c4 : index
      %q = ptx.ptr_add %B, %other.q : !ptx.ptr<global>, index -> !ptx.ptr<global>
      ptx.st %r, %q align 4 : i32, !ptx.ptr<global>"""


@pytest.mark.parametrize("reads", [False, True])
def test_races_between_blocks_in_step(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block writes its own part, or reads it, and after a barrier, which orders no blocks, that of the other."""
    text = body_of("%r = arith.addi %i, %one : i32\n%one.i = arith.constant 1 : index")
    store = "ptx.st %r, %p align 4 : i32, !ptx.ptr<global>"
    text = text.replace(
        store, CROSS if reads else CROSS.replace("%r0 = ptx.ld %p align 4 : !ptx.ptr<global> -> i32", store)
    )
    messages: list[str] = []
    for is_in_step in (True, False):
        with monkeypatch.context() as patch:
            if not is_in_step:
                patch.setattr(SimEngine, "_run_in_step", nothing)
            with pytest.raises(SimulationError) as caught:
                launch(text, (2, 1, 1), (THREADS, 1, 1), B=np.zeros(2 * THREADS, np.int32))
        assert caught.value.code == "E3205"
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
