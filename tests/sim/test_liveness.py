# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that do not end, each beside its twin that does: spins, and loops that repeat their state."""

from typing import Any

import numpy as np
import pytest

from tests.alarms import interrupt_at
from tests.sim.harness import SimEngine, entry, fault, launch, seeded

POINTER = "%A: !ptx.ptr<global> align 16"
HEAD = """
%t = gpu.thread_id x
%b = gpu.block_id x
%i = arith.index_cast %t : index to i32
%j = arith.index_cast %b : index to i32
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%c32 = arith.constant 32 : i32
%true = arith.constant true
%first = arith.cmpi ult, %i, %c32 : i32
"""
LOADS = {
    "acquire": "%v = ptx.ld.acquire %A : !ptx.ptr<global> -> i32",
    "atom": '%v = ptx.atom "add" %A, %zero : !ptx.ptr<global>, i32',
    "cas": "%v = ptx.atom.cas %A, %one, %one : !ptx.ptr<global>, i32",
    "sleep": "ptx.nanosleep %one\n%v = ptx.ld.acquire %A : !ptx.ptr<global> -> i32",
}
STORE = "ptx.st.release %one, %A : i32, !ptx.ptr<global>\n"


def spin(load: str) -> str:
    """Waits until A[0] is not 0."""
    return f"""scf.while () : () -> () {{
  {LOADS[load]}
  %again = arith.cmpi eq, %v, %zero : i32
  scf.condition(%again)
}} do {{
  scf.yield
}}
"""


def choice(then: str, otherwise: str = "", condition: str = "%first") -> str:
    return f"scf.if {condition} {{\n{then}\n}} else {{\n{otherwise}\n}}\n"


def options(threads: int, blocks: int = 1, seed: int | None = None) -> dict[str, Any]:
    engine = SimEngine(seeded(seed), sink=lambda _: None)
    return {"grid": (blocks, 1, 1), "block": (threads, 1, 1), "engine": engine, "A": np.zeros(1, np.int32)}


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("load", LOADS)
def test_warps_wait_for_what_nobody_writes(load: str, seed: int | None) -> None:
    text = entry(HEAD + choice(spin(load), spin(load) + STORE), POINTER, "128")
    error = fault(text, "E3231", **options(128, seed=seed))
    assert "waits for memory that no thread changes, forever" in error.message
    assert "warps 1 to 3 of block (0,0,0)" in error.message
    assert "byte 0 of argument A (4 bytes)" in error.message
    launch(entry(HEAD + choice(spin(load), STORE), POINTER, "64"), **options(64, seed=seed))


def test_the_message_names_the_writes_that_have_not_run() -> None:
    text = entry(HEAD + spin("acquire") + STORE, POINTER)
    error = fault(text, "E3231", **options(32))
    line = text[: text.index("ptx.st.release")].count("\n") + 1
    assert f"global memory is written by ptx.st.release at test.cute:{line}:1 (0 times)" in error.message
    assert error.site is not None
    assert error.site.op == "ptx.ld.acquire"


def test_blocks_that_have_not_begun() -> None:
    """The first block waits for the second, which begins when the first one has ended."""
    is_first = "%is_first = arith.cmpi eq, %j, %zero : i32\n"
    text = entry(HEAD + is_first + choice(spin("acquire"), STORE, "%is_first"), POINTER)
    error = fault(text, "E3231", **options(32, 4))
    assert "3 of 4 blocks have not begun" in error.message
    assert "run at the same time" in error.hint
    launch(entry(HEAD + is_first + choice(STORE, spin("acquire"), "%is_first"), POINTER), **options(32, 4))


def test_a_spin_beside_warps_at_a_barrier() -> None:
    """The writer waits at a barrier that the spinning warp does not reach."""
    error = fault(
        entry(HEAD + choice(spin("acquire") + "ptx.bar.sync 0", "ptx.bar.sync 0\n" + STORE), POINTER, "64"),
        "E3231", **options(64),
    )  # fmt: skip
    assert "warp 0 of block" in error.message
    text = entry(HEAD + choice(spin("acquire") + "ptx.bar.sync 0", STORE + "ptx.bar.sync 0"), POINTER, "64")
    launch(text, **options(64))


REPEATS = """
%end = scf.while (%n = %zero) : (i32) -> i32 {
  %less = arith.cmpi slt, %n, %c32 : i32
  scf.condition(%less) %n : i32
} do {
^bb0(%k : i32):
  %next = STEP
  scf.yield %next : i32
}
"""


@pytest.mark.parametrize("step", ["arith.addi %k, %zero : i32", "arith.xori %k, %one : i32"])
def test_a_loop_that_repeats_its_state(step: str) -> None:
    error = fault(entry(HEAD + REPEATS.replace("STEP", step), POINTER), "E3231", **options(32))
    assert "repeats a loop that changes nothing, forever" in error.message
    assert error.site is not None
    assert error.site.op == "scf.while"
    launch(entry(HEAD + REPEATS.replace("STEP", "arith.addi %k, %one : i32"), POINTER), **options(32))


def test_a_loop_that_counts_in_memory_ends() -> None:
    """Its registers repeat, memory does not: it runs 3,000 times."""
    many = "%many = arith.constant 3000 : i32\n"
    body = """scf.while () : () -> () {
  %v = ptx.ld %A align 4 : !ptx.ptr<global> -> i32
  %again = arith.cmpi slt, %v, %many : i32
  %n = arith.addi %v, %one : i32
  %is = arith.cmpi eq, %i, %zero : i32
  scf.if %is {
    ptx.st %n, %A align 4 : i32, !ptx.ptr<global>
  }
  scf.condition(%again)
} do {
  scf.yield
}
"""
    given = options(1)
    launch(entry(HEAD + many + body, POINTER, "1"), **given)
    assert given["A"][0] == 3001


def test_an_interrupt_says_where_the_simulation_was() -> None:
    text = entry(HEAD + REPEATS.replace("STEP", "arith.subi %k, %i : i32"), POINTER)

    with pytest.raises(KeyboardInterrupt) as caught, interrupt_at(20_000, "/runtime/sim/"):
        launch(text, **options(32))
    note = caught.value.__notes__[0]
    assert note.startswith("simulator: block (0,0,0), warp 0 was in scf.while at test.cute:"), note
