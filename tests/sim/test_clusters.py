# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters: their blocks run at the same time, each in its own shared memory."""

import numpy as np
import pytest
from tilefold.base.limits import Limits
from tilefold.runtime.options import SimOptions

from tests.sim.harness import SimEngine, entry, fault, launch, seeded

POINTERS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
HEAD = """
%t = gpu.thread_id x
%bx = gpu.block_id x
%by = gpu.block_id y
%i = arith.index_cast %t : index to i32
%b = arith.index_cast %bx : index to i32
%c = arith.index_cast %by : index to i32
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%four = arith.constant 4 : i32
%is_first = arith.cmpi eq, %i, %zero : i32
%in_block_0 = arith.cmpi eq, %b, %zero : i32
"""


def word(name: str, base: str, index: str, space: str = "global") -> str:
    """`%name`, the address of the word `%index` from `%base` on."""
    return (
        f"%{name}.o = arith.muli %{index}, %four : i32\n"
        f"%{name} = ptx.ptr_add %{base}, %{name}.o : !ptx.ptr<{space}>, i32 -> !ptx.ptr<{space}>\n"
    )


def wait_for(value: str) -> str:
    """Waits until the word at %A holds `value`, and acquires it."""
    return f"""
scf.while () : () -> () {{
  %v = ptx.ld.acquire %A : !ptx.ptr<global> -> i32
  %more = arith.cmpi ne, %v, %{value} : i32
  scf.condition(%more)
}} do {{
  scf.yield
}}
"""


PING_PONG = f"""{HEAD}{word("at_1", "B", "one")}{word("at_2", "B", "two")}
scf.if %in_block_0 {{
  ptx.st %four, %B align 4 : i32, !ptx.ptr<global>
  ptx.st.release %one, %A : i32, !ptx.ptr<global>
  {wait_for("two")}
  %answer = ptx.ld %at_1 align 4 : !ptx.ptr<global> -> i32
  ptx.st %answer, %at_2 align 4 : i32, !ptx.ptr<global>
}} else {{
  {wait_for("one")}
  %question = ptx.ld %B align 4 : !ptx.ptr<global> -> i32
  %sum = arith.addi %question, %one : i32
  ptx.st %sum, %at_1 align 4 : i32, !ptx.ptr<global>
  ptx.st.release %two, %A : i32, !ptx.ptr<global>
}}
"""
"""Block 0 asks, block 1 answers, and block 0 goes on."""


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_two_blocks_of_a_cluster_wait_for_each_other(seed: int | None) -> None:
    a, b = np.zeros(1, np.int32), np.zeros(4, np.int32)
    text = entry(PING_PONG, POINTERS, "1")
    launch(text, (2, 1, 1), (1, 1, 1), SimEngine(seeded(seed)), (2, 1, 1), A=a, B=b)
    assert b.tolist() == [4, 5, 5, 0]


def test_blocks_of_two_clusters_run_one_after_the_other() -> None:
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(4, np.int32)}
    engine = SimEngine(budget=Limits(steps=10_000))
    fault(entry(PING_PONG, POINTERS, "1"), "E3231", grid=(2, 1, 1), block=(1, 1, 1), engine=engine, **arrays)


OWN = (
    HEAD
    + "%s = ptx.smem.alloc 256 align 128\n%frag = ptx.local.alloc 4 align 4\n"
    + word("mine", "s", "i", "shared")
    + """%hundred = arith.constant 100 : i32
%k = arith.muli %b, %hundred : i32
%v = arith.addi %k, %i : i32
ptx.st %v, %mine align 4 : i32, !ptx.ptr<shared>
ptx.st %v, %frag align 4 : i32, !ptx.ptr<local>
ptx.bar.sync 0
%top = arith.constant 63 : i32
%u = arith.subi %top, %i : i32
"""
    + word("other", "s", "u", "shared")
    + """%w = ptx.ld %other align 4 : !ptx.ptr<shared> -> i32
%mine_again = ptx.ld %frag align 4 : !ptx.ptr<local> -> i32
%x = arith.addi %w, %mine_again : i32
%n = arith.constant 64 : i32
%base = arith.muli %b, %n : i32
%at = arith.addi %base, %i : i32
"""
    + word("out", "B", "at")
    + "ptx.st %x, %out align 4 : i32, !ptx.ptr<global>\n"
)
"""Each thread adds its number, kept in a fragment, and that of thread 63 - t, by way of shared memory."""


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_each_block_has_its_own_shared_memory_and_fragments(size: int, seed: int | None) -> None:
    b = np.zeros(4 * 64, np.int32)
    text = entry(OWN, POINTERS, "64")
    launch(text, (4, 1, 1), (64, 1, 1), SimEngine(seeded(seed)), (size, 1, 1), A=np.zeros(1, np.int32), B=b)
    assert b.reshape(4, 64).tolist() == [[2 * 100 * block + 63] * 64 for block in range(4)]


def test_shared_memory_ends_where_the_next_window_begins() -> None:
    body = HEAD + "%s = ptx.smem.addr 0\n%far = arith.constant 192 : i32\n" + word("past", "s", "far", "shared")
    body += "ptx.st %i, %past align 4 : i32, !ptx.ptr<shared>\n"
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(1, np.int32)}
    text = entry(body, POINTERS, "1", shared=256)
    error = fault(text, "E3202", grid=(2, 1, 1), block=(1, 1, 1), cluster=(2, 1, 1), **arrays)
    assert "out of bounds" in error.message


@pytest.mark.parametrize("shuffle", [False, True])
def test_blocks_keep_their_coordinates(shuffle: bool) -> None:
    """Clusters of 2 x 2 blocks in a grid of 4 x 6: all blocks run, and blocks 0, 1, 4 and 5 do so together."""
    body = HEAD + '%order = ptx.atom "add" %A, %one : !ptx.ptr<global>, i32\n%at.r = arith.muli %c, %four : i32\n'
    body += "%at = arith.addi %at.r, %b : i32\n" + word("out", "B", "at")
    body += "ptx.st %order, %out align 4 : i32, !ptx.ptr<global>\n"
    b = np.full(24, -1, np.int32)
    engine = SimEngine(SimOptions(seed=1), shuffle_blocks=True) if shuffle else None
    text = entry(body, POINTERS, "1")
    launch(text, (4, 6, 1), (1, 1, 1), engine, (2, 2, 1), A=np.zeros(1, np.int32), B=b)
    groups = b.reshape(3, 2, 2, 2).transpose(0, 2, 1, 3).reshape(6, 4) // 4
    assert (groups == groups[:, :1]).all()
    assert sorted(groups[:, 0]) == list(range(6))


def test_races_between_blocks_of_a_cluster() -> None:
    body = HEAD + "ptx.st %b, %B align 4 : i32, !ptx.ptr<global>\nptx.bar.sync 0\n"
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(4, np.int32)}
    options = {"grid": (4, 1, 1), "block": (1, 1, 1), "cluster": (2, 1, 1)}
    message = fault(entry(body, POINTERS, "1"), "E3205", **options, **arrays).message
    assert "block (1,0,0), thread (0,0,0): race: writes global " in message
    assert "which thread (0,0,0) of block (0,0,0) wrote" in message


ALL_READ = (
    HEAD
    + f"""
%v0 = ptx.ld %B align 4 : !ptx.ptr<global> -> i32
ptx.bar.sync 0
scf.if %is_first {{
  RELEASE
}}
%second = arith.cmpi eq, %b, %one : i32
%writes = arith.andi %second, %is_first : i1
scf.if %writes {{
  {wait_for("two")}
  ptx.st %one, %B align 4 : i32, !ptx.ptr<global>
}}
"""
)
"""The threads of two blocks read a word, which one of them writes after both blocks have counted."""


def test_what_several_blocks_read_is_written_once_all_have_released() -> None:
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(4, np.int32)}
    counts = 'ptx.red "add" %A, %one order "release" : !ptx.ptr<global>, i32'
    text = entry(ALL_READ.replace("RELEASE", counts), POINTERS, "64")
    for seed in (None, 0, 1):
        arrays["A"][0] = 0
        launch(text, (2, 1, 1), (64, 1, 1), SimEngine(seeded(seed)), (2, 1, 1), **arrays)
    arrays["A"][0] = 0
    relaxed = entry(ALL_READ.replace("RELEASE", counts.replace(' order "release"', "")), POINTERS, "64")
    error = fault(relaxed, "E3205", grid=(2, 1, 1), block=(64, 1, 1), cluster=(2, 1, 1), **arrays)
    assert "race: writes global" in error.message


def test_a_deadlock_names_the_blocks() -> None:
    body = (
        HEAD
        + """
%t32 = arith.constant 32 : index
%low = arith.cmpi ult, %t, %t32 : index
scf.if %low {
  ptx.bar.sync 1 threads 64
}
"""
    )
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(4, np.int32)}
    options = {"grid": (2, 1, 1), "block": (64, 1, 1), "cluster": (2, 1, 1)}
    error = fault(entry(body, POINTERS, "64"), "E3207", **options, **arrays)
    assert error.message.endswith(
        "warp 0 waits at barrier 1 forever; "
        "barrier 1 of block (0,0,0), phase 0: 32 of 64 threads, warp 0 of block (0,0,0) waits; "
        "barrier 1 of block (1,0,0), phase 0: 32 of 64 threads, warp 0 of block (1,0,0) waits; "
        "warps 1 of block (0,0,0) and 1 of block (1,0,0) have ended"
    )
