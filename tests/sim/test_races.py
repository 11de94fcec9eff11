# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pairs of kernels that must race and must not."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.runtime.options import SimOptions

from tests.sim.harness import SimEngine, entry, fault, launch, seeded

PREFIX = """
%t = gpu.thread_id x
%c4 = arith.constant 4 : index
%c1 = arith.constant 1 : index
%c32 = arith.constant 32 : index
%n = gpu.block_dim x
%v = arith.index_cast %t : index to i32
%s = ptx.smem.addr 0
"""
BLOCK = "ptx.bar.sync 0\n"
WARP = "ptx.bar.warp.sync -1\n"


def at(name: str, index: str) -> str:
    """`%name`, the address of the shared word that `%index` counts."""
    return f"""
%{name}.o = arith.muli {index}, %c4 : index
%{name} = ptx.ptr_add %s, %{name}.o : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
"""


def write(name: str) -> str:
    return f"ptx.st %v, %{name} align 4 : i32, !ptx.ptr<shared>\n"


def read(name: str, result: str = "w") -> str:
    return f"%{result} = ptx.ld %{name} align 4 : !ptx.ptr<shared> -> i32\n"


MINE = at("mine", "%t")
NEXT_LANE = "%u = arith.xori %t, %c1 : index\n" + at("other", "%u")
NEXT_WARP = "%u = arith.xori %t, %c32 : index\n" + at("other", "%u")
SAME = at("same", "%c1")

MUST_RACE = {
    "read what another lane wrote": MINE + NEXT_LANE + write("mine") + read("other"),
    "read what another warp writes": MINE + NEXT_WARP + write("mine") + BLOCK + write("mine") + read("other"),
    "a warp barrier does not order warps": (
        MINE + NEXT_WARP + write("mine") + BLOCK + write("mine") + WARP + read("other")
    ),
    "write what another lane wrote": MINE + NEXT_LANE + write("mine") + write("other"),
    "write what another lane read": MINE + NEXT_LANE + write("mine") + BLOCK + read("other") + write("mine"),
    "write what another warp read": MINE + NEXT_WARP + write("mine") + BLOCK + read("other") + WARP + write("mine"),
    "all lanes write one word": SAME + write("same"),
    "many lanes read what one writes": MINE + SAME + write("mine") + BLOCK + read("same") + write("mine"),
    "many warps read what one writes after a warp barrier": (
        MINE + SAME + write("mine") + BLOCK + read("same") + WARP + write("mine")
    ),
}
MUST_NOT_RACE = {
    "own word": MINE + write("mine") + read("mine") + write("mine"),
    "a barrier before another lane reads": MINE + NEXT_LANE + write("mine") + BLOCK + read("other"),
    "a barrier before another warp reads": MINE + NEXT_WARP + write("mine") + BLOCK + read("other"),
    "a warp barrier before another lane reads": MINE + NEXT_LANE + write("mine") + WARP + read("other"),
    "a barrier before another lane writes": MINE + NEXT_LANE + write("mine") + BLOCK + write("other"),
    "a warp barrier between read and write": (
        MINE + NEXT_LANE + write("mine") + WARP + read("other") + WARP + write("mine")
    ),
    "a barrier between read and write": (
        MINE + NEXT_WARP + write("mine") + BLOCK + read("other") + BLOCK + write("mine")
    ),
    "many read one word": MINE + SAME + write("mine") + BLOCK + read("same") + read("same", "w2"),
    "many read one word, then a barrier, then it is written": (
        MINE + SAME + write("mine") + BLOCK + read("same") + BLOCK + write("mine")
    ),
}


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("name", MUST_RACE)
def test_must_race(name: str, seed: int | None) -> None:
    text = entry(PREFIX + MUST_RACE[name], "", "64", shared=256)
    error = fault(text, "E3205", block=(64, 1, 1), engine=SimEngine(seeded(seed)))
    assert "no barrier in between" in error.message
    assert error.thread is not None


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("name", MUST_NOT_RACE)
def test_must_not_race(name: str, seed: int | None) -> None:
    text = entry(PREFIX + MUST_NOT_RACE[name], "", "64", shared=256)
    launch(text, block=(64, 1, 1), engine=SimEngine(seeded(seed)))


def test_races_can_be_left_unchecked() -> None:
    text = entry(PREFIX + MUST_RACE["all lanes write one word"], "", "64", shared=256)
    launch(text, block=(64, 1, 1), engine=SimEngine(SimOptions(races=False)))


def test_the_message_names_both_threads() -> None:
    text = entry(PREFIX + MUST_RACE["read what another warp writes"], "", "64", shared=256)
    error = fault(text, "E3205", block=(64, 1, 1))
    assert error.thread == (32, 0, 0)
    assert "race: writes shared 0x880 (byte 128 of the block's shared memory (256 bytes))" in error.message
    assert "which thread (0,0,0) read" in error.message


def test_a_barrier_of_some_lanes_orders_just_them() -> None:
    """Lanes 0 to 15 synchronise; a lane sees the writes of those it has synchronised with, and of no others."""
    few = """
%c16 = arith.constant 16 : index
%low = arith.cmpi ult, %t, %c16 : index
"""
    body = PREFIX + MINE + few + "%u = arith.xori %t, {distance} : index\n" + at("other", "%u") + write("mine")
    body += "scf.if %low {{\nptx.bar.warp.sync 65535\n" + read("other") + "}}\n"
    launch(entry(body.format(distance="%c1"), "", "32", shared=256))
    fault(entry(body.format(distance="%c16"), "", "32", shared=256), "E3205")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["w", "r", "W", "R", "b", "s"]), min_size=1, max_size=7))
def test_against_a_happens_before_relation(program: list[str]) -> None:
    """Straight-line programs against the definition: conflicting accesses of two threads that no barrier
    orders.

    w and r access the thread's own word, W and R that of the thread 1 further in its warp; b and s are
    barriers of the block and of the warp.
    """
    body = PREFIX + MINE + NEXT_LANE + write("mine") + BLOCK
    events: list[tuple[int, int, bool, int, int]] = []  # (thread, word, is write, block epoch, warp epoch)
    epoch = warp_epoch = 0
    for number, op in enumerate(program):
        if op == "b":
            body += BLOCK
            epoch += 1
        elif op == "s":
            body += WARP
            warp_epoch += 1
        else:
            name = "mine" if op in "wr" else "other"
            body += write(name) if op in "wW" else read(name, f"w{number}")
            for thread in range(4):
                word = thread if op in "wr" else thread ^ 1
                events.append((thread, word, op in "wW", epoch, warp_epoch))
    expected = any(
        a[0] != b[0] and a[1] == b[1] and (a[2] or b[2]) and a[3] == b[3] and a[4] == b[4]
        for a in events
        for b in events
    )
    text = entry(body, "", "4", shared=256)
    if expected:
        fault(text, "E3205", block=(4, 1, 1))
    else:
        launch(text, block=(4, 1, 1))


GLOBAL = """
%t = gpu.thread_id x
%b = gpu.block_id x
%c4 = arith.constant 4 : index
%c32 = arith.constant 32 : index
%v = arith.index_cast %t : index to i32
%base = arith.muli {block}, %c32 : index
%i = arith.addi %base, %t : index
%o = arith.muli %i, %c4 : index
%p = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
"""
STORE = "ptx.st %v, %p align 4 : i32, !ptx.ptr<global>\n"
LOAD = "%w = ptx.ld %p align 4 : !ptx.ptr<global> -> i32\n"


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("body", [STORE, LOAD + BLOCK + STORE], ids=["write-write", "read-write"])
def test_blocks_race(body: str, shuffle: bool) -> None:
    text = entry(GLOBAL.format(block="%c4") + body, "%A: !ptx.ptr<global> align 16")
    engine = SimEngine(SimOptions(seed=3), shuffle_blocks=shuffle)
    error = fault(text, "E3205", grid=(3, 1, 1), engine=engine, A=np.zeros(256, np.int32))
    assert re.search(r"which thread \(\d+,0,0\) of block \([012],0,0\) (wrote|read)", error.message)


def test_blocks_may_read_the_same_and_write_their_own() -> None:
    array = np.zeros(96, np.int32)
    shared = entry(GLOBAL.format(block="%c4") + LOAD, "%A: !ptx.ptr<global> align 16")
    launch(shared, grid=(3, 1, 1), A=np.zeros(256, np.int32))
    own = entry(GLOBAL.format(block="%b") + LOAD + STORE, "%A: !ptx.ptr<global> align 16")
    launch(own, grid=(3, 1, 1), A=array)
    assert array.tolist() == list(range(32)) * 3
