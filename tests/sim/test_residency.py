# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters that run at the same time: blocks wait for later ones, meet, and are ordered only as far as they say so."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.limits import Limits
from tilefold.runtime.options import SimOptions

from tests.sim.harness import SimEngine, entry, fault, launch, seeded
from tests.sim.test_clusters import HEAD, PING_PONG, POINTERS, word

SCHEDULES = [None, 1, 2, 3]


def engine(resident: int, seed: int | None = None) -> SimEngine:
    return SimEngine(seeded(seed, resident=resident), sink=lambda _: None)


def run(text: str, blocks: int, resident: int, seed: int | None = None, threads: int = 1, **arrays: Any) -> None:
    launch(text, (blocks, 1, 1), (threads, 1, 1), engine(resident, seed), **arrays)


def races(text: str, blocks: int, seed: int | None, **arrays: Any) -> str:
    options: dict[str, Any] = {"grid": (blocks, 1, 1), "block": (1, 1, 1), "engine": engine(blocks, seed)}
    return fault(text, "E3205", **options, **arrays).message


@pytest.mark.parametrize("seed", SCHEDULES)
def test_blocks_wait_for_each_other(seed: int | None) -> None:
    a, b = np.zeros(1, np.int32), np.zeros(4, np.int32)
    run(entry(PING_PONG, POINTERS, "1"), 2, 2, seed, A=a, B=b)
    assert b.tolist() == [4, 5, 5, 0]


def meet(order: str = "acq_rel", phase: str = "one", fences: str = "") -> str:
    """A barrier of all blocks, of one thread each: `phase` of them."""
    return f"""
{fences}
%old.{phase} = ptx.atom "add" %A, %one order "{order}" : !ptx.ptr<global>, i32
%all.{phase} = arith.muli %count, %{phase} : i32
scf.while () : () -> () {{
  %v = ptx.ld.acquire %A : !ptx.ptr<global> -> i32
  %more = arith.cmpi slt, %v, %all.{phase} : i32
  scf.condition(%more)
}} do {{
  scf.yield
}}
"""


def counted(blocks: int) -> str:
    return f"{HEAD}%count = arith.constant {blocks} : i32\n%n = arith.addi %b, %one : i32\n"


def neighbours(blocks: int, order: str = "acq_rel") -> str:
    """Each block writes B[b], all meet, and each reads the element of the next block and writes C[b]."""
    last = blocks - 1
    return entry(
        f"""{counted(blocks)}
%last = arith.constant {last} : i32
%is_last = arith.cmpi eq, %b, %last : i32
%next = arith.select %is_last, %zero, %n : i32
{word("mine", "B", "b")}{word("other", "B", "next")}{word("result", "C", "b")}
ptx.st %n, %mine align 4 : i32, !ptx.ptr<global>
{meet(order)}
%x = ptx.ld %other align 4 : !ptx.ptr<global> -> i32
ptx.st %x, %result align 4 : i32, !ptx.ptr<global>
""",
        f"{POINTERS}, %C: !ptx.ptr<global> align 16",
        "1",
    )


@pytest.mark.parametrize("seed", SCHEDULES)
@pytest.mark.parametrize("blocks", [2, 12])
def test_a_barrier_of_all_blocks_orders_their_accesses(blocks: int, seed: int | None) -> None:
    a, b, c = np.zeros(1, np.int32), np.zeros(blocks, np.int32), np.zeros(blocks, np.int32)
    run(neighbours(blocks), blocks, blocks, seed, A=a, B=b, C=c)
    assert c.tolist() == [*range(2, blocks + 1), 1]


@pytest.mark.parametrize("seed", SCHEDULES)
@pytest.mark.parametrize("order", ["relaxed", "acquire"])
def test_a_barrier_that_does_not_release_orders_nothing(order: str, seed: int | None) -> None:
    a, b, c = np.zeros(1, np.int32), np.zeros(3, np.int32), np.zeros(3, np.int32)
    message = races(neighbours(3, order), 3, seed, A=a, B=b, C=c)
    assert "argument B" in message
    assert "of block (" in message


def read_then_write(between: str, blocks: int) -> str:
    """All blocks read B[0]; after `between`, the first writes it."""
    return entry(
        f"""{counted(blocks)}
%x = ptx.ld %B align 4 : !ptx.ptr<global> -> i32
{between}
scf.if %in_block_0 {{
  ptx.st %one, %B align 4 : i32, !ptx.ptr<global>
}}
""",
        POINTERS,
        "1",
    )


@pytest.mark.parametrize("seed", SCHEDULES)
@pytest.mark.parametrize("blocks", [3, 20])
def test_what_all_blocks_have_read_is_written_after_they_met(blocks: int, seed: int | None) -> None:
    b = np.zeros(1, np.int32)
    run(read_then_write(meet(), blocks), blocks, blocks, seed, A=np.zeros(1, np.int32), B=b)
    assert b[0] == 1
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(1, np.int32)}
    races(read_then_write("", blocks), blocks, seed, **arrays)


@pytest.mark.parametrize("seed", SCHEDULES)
def test_knowledge_comes_back_by_way_of_another_block(seed: int | None) -> None:
    """Warp 0 of block 0 hands on to block 1, which hands on to warp 1 of block 0."""

    def wait_for(value: str) -> str:
        return (
            "scf.while () : () -> () {\n  %v = ptx.ld.acquire %A : !ptx.ptr<global> -> i32\n"
            f"  %more = arith.cmpi ne, %v, %{value} : i32\n  scf.condition(%more)\n}} do {{\n  scf.yield\n}}\n"
        )

    def text(awaited: str) -> str:
        return entry(
            f"""{HEAD}%c32 = arith.constant 32 : i32
%is_next = arith.cmpi eq, %i, %c32 : i32
scf.if %in_block_0 {{
  scf.if %is_first {{
    ptx.st %four, %B align 4 : i32, !ptx.ptr<global>
    ptx.st.release %one, %A : i32, !ptx.ptr<global>
  }}
  scf.if %is_next {{
    {wait_for(awaited)}
    %x = ptx.ld %B align 4 : !ptx.ptr<global> -> i32
  }}
}} else {{
  scf.if %is_first {{
    {wait_for("one")}
    %y = ptx.ld %B align 4 : !ptx.ptr<global> -> i32
    ptx.st.release %two, %A : i32, !ptx.ptr<global>
  }}
}}
""",
            POINTERS,
            "64",
        )

    run(text("two"), 2, 2, seed, threads=64, A=np.zeros(1, np.int32), B=np.zeros(1, np.int32))


OWN = f"""{HEAD}%count = arith.constant 4 : i32
%s = ptx.smem.alloc 128 align 128
{word("mine", "s", "i", "shared")}
%k = arith.addi %b, %i : i32
ptx.st %k, %mine align 4 : i32, !ptx.ptr<shared>
ptx.bar.sync 0
scf.if %is_first {{
  {meet().strip()}
}}
ptx.bar.sync 0
%c31 = arith.constant 31 : i32
%back = arith.subi %c31, %i : i32
{word("theirs", "s", "back", "shared")}
%x = ptx.ld %theirs align 4 : !ptx.ptr<shared> -> i32
%c32 = arith.constant 32 : i32
%row = arith.muli %b, %c32 : i32
%at = arith.addi %row, %i : i32
{word("result", "B", "at")}
ptx.st %x, %result align 4 : i32, !ptx.ptr<global>
"""


@pytest.mark.parametrize("seed", SCHEDULES)
def test_each_block_has_its_own_shared_memory(seed: int | None) -> None:
    b = np.zeros(128, np.int32)
    run(entry(OWN, POINTERS, "32"), 4, 4, seed, threads=32, A=np.zeros(1, np.int32), B=b)
    assert np.array_equal(b.reshape(4, 32), np.arange(4)[:, None] + np.arange(32)[::-1])


def test_fewer_seats_than_blocks_that_wait() -> None:
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(5, np.int32), "C": np.zeros(5, np.int32)}
    options = {"grid": (5, 1, 1), "block": (1, 1, 1), "engine": engine(3)}
    error = fault(neighbours(5), "E3231", **options, **arrays)
    assert "2 of 5 blocks have not begun" in error.message
    blocks = ", ".join(f"warp 0 of block ({b},0,0)" for b in range(3))
    assert f"in {blocks} ptx.ld.acquire" in error.message
    assert "byte 0 of argument A" in error.message
    assert "all 5 of them, by --resident" in error.hint


def test_seats_are_taken_again() -> None:
    """A chain: each block waits for the one before; two run at the same time."""
    text = entry(
        f"""{HEAD}
{word("mine", "B", "b")}
scf.while () : () -> () {{
  %v = ptx.ld.acquire %A : !ptx.ptr<global> -> i32
  %more = arith.cmpi ne, %v, %b : i32
  scf.condition(%more)
}} do {{
  scf.yield
}}
%n = arith.addi %b, %one : i32
ptx.st %n, %mine align 4 : i32, !ptx.ptr<global>
ptx.st.release %n, %A : i32, !ptx.ptr<global>
""",
        POINTERS,
        "1",
    )
    for seed in SCHEDULES:
        b = np.zeros(9, np.int32)
        run(text, 9, 2, seed, A=np.zeros(1, np.int32), B=b)
        assert b.tolist() == [*range(1, 10)]


def test_memory_is_counted_for_all_that_run() -> None:
    text, arrays = entry(OWN, POINTERS, "32"), {"A": np.zeros(1, np.int32), "B": np.zeros(128, np.int32)}
    one = fault(text, "E3211", grid=(4, 1, 1), engine=_small(1), **arrays).message
    four = fault(text, "E3211", grid=(4, 1, 1), engine=_small(4), **arrays).message
    assert _bytes(four) > 2 * _bytes(one)


def _small(resident: int) -> SimEngine:
    return SimEngine(SimOptions(resident=resident), budget=Limits(bytes=16))


def _bytes(message: str) -> int:
    return int(message.split("needs ")[1].split()[0])
