# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies to several blocks of a cluster: each block loads a half of a tile for both."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.runtime.engine import RunResult
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import Completion

from tests.sim.harness import SimEngine, entry, launch, seeded

STAGES = 3
ARGS = (
    "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16, "
    f'%m: !ptx.tensor_map of "f32 A dims (32, {8 * STAGES}) strides (128) box (32, 4)"'
)
SETUP = """
%t = ptx.sreg "tid.x"
%rank = ptx.sreg "cluster_ctarank"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%four = arith.constant 4 : i32
%eight = arith.constant 8 : i32
%sixteen = arith.constant 16 : i32
%half = arith.constant 512 : i32
%bytes = arith.constant 1024 : i32
%mask = arith.constant 3 : i16
%s = ptx.smem.addr 0
%full = ptx.smem.addr 4096
%empty = ptx.smem.addr 4104
%peer = arith.xori %rank, %one : i32
%their_empty = ptx.mapa %empty, %peer
%leads = arith.cmpi eq, %t, %zero : i32
%first = arith.cmpi eq, %rank, %zero : i32
%place = arith.muli %rank, %half : i32
%part = ptx.ptr_add %s, %place : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%own = arith.muli %rank, %four : i32
%o = arith.muli %t, %sixteen : i32
%mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%row = arith.muli %rank, %bytes : i32
"""
INIT = "ptx.mbarrier.init %full, %one\nptx.mbarrier.init %empty, %two\n"
FENCE = "ptx.fence.mbarrier_init\n"
SYNC = "ptx.barrier.cluster.arrive aligned\nptx.barrier.cluster.wait aligned\n"
EXPECT = "ptx.mbarrier.arrive.expect_tx %full, %bytes\n"
LOAD = "ptx.cp.async.bulk.tensor.load %m[%zero, %y], %part, %full multicast %mask\n"
WAIT = 'ptx.mbarrier.wait %full, %parity scope "cluster"\n'
USE = (
    "%v = ptx.ld %mine align 16 : !ptx.ptr<shared> -> vector<4xf32>\n"
    "ptx.st %v, %to align 16 : vector<4xf32>, !ptx.ptr<global>\n"
)
RELEASE = "ptx.mbarrier.arrive %empty\nptx.mbarrier.arrive %their_empty\n"
FREE = 'ptx.mbarrier.wait %empty, %parity scope "cluster"\n'


def one(*lines: str, leads: str = "%leads") -> str:
    """Lines that one thread executes."""
    return f"scf.if {leads} {{\n{''.join(lines)}}}\n"


BEGIN = one(INIT, FENCE) + SYNC
STEPS = f"""
%count = arith.constant {STAGES} : i32
scf.for %i = %zero to %count step %one : i32 {{
  %y0 = arith.muli %i, %eight : i32
  %y = arith.addi %y0, %own : i32
  %parity = arith.andi %i, %one : i32
  %i2 = arith.muli %i, %two : i32
  %at0 = arith.muli %i2, %bytes : i32
  %at1 = arith.addi %at0, %row : i32
  %at = arith.addi %at1, %o : i32
  %to = ptx.ptr_add %B, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
  {one(EXPECT, LOAD)}
  {WAIT}
  {USE}
  ptx.bar.sync 0
  {one(RELEASE, FREE)}
}}
"""
"""Both blocks copy each tile to B, one after the other. A block loads the next tile when both have read this one."""
KERNEL = BEGIN + STEPS + SYNC


def run(body: str, seed: int | None = None, completion: Completion = Completion.LATE) -> tuple[NDArray[Any], RunResult]:
    """What a kernel of two blocks leaves in B: by tile, by block."""
    b = np.zeros(512 * STAGES, np.float32)
    a = np.arange(256 * STAGES, dtype=np.float32)
    text = entry(SETUP + body, ARGS, "64", shared=4112).replace("threads(64)", "threads(64) cluster(2)")
    engine = SimEngine(seeded(seed), completion=completion)
    result = launch(text, (2, 1, 1), (64, 1, 1), engine, A=a, B=b)
    return b.reshape(STAGES, 2, 256), result


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("seed", [None, *range(3)])
def test_both_blocks_get_both_halves(seed: int | None, completion: Completion) -> None:
    b, _ = run(KERNEL, seed, completion)
    tiles = np.arange(256 * STAGES).reshape(STAGES, 1, 256)
    np.testing.assert_array_equal(b, np.broadcast_to(tiles, b.shape))


def test_the_tensor_is_read_once() -> None:
    _, result = run(KERNEL)
    counts = {
        (access.space, access.kind): access.threads * access.width
        for access in result.counters.accesses
        if access.op == "ptx.cp.async.bulk.tensor.load"
    }
    tile = 1024 * STAGES
    assert counts == {("global", "bulk"): tile, ("shared", "bulk"): tile, ("shared", "multicast"): tile}


BULK_STEPS = STEPS.replace(
    "%own : i32",
    "%own : i32\n  %a0 = arith.muli %y, %a_row : i32\n"
    "  %from = ptx.ptr_add %A, %a0 : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
)
BULK = ("%a_row = arith.constant 128 : i32\n" + BEGIN + BULK_STEPS + SYNC).replace(
    LOAD, "ptx.cp.async.bulk.load %part, %from, %half, %full multicast %mask\n"
)
"""The same by copies of contiguous bytes."""


@pytest.mark.parametrize("completion", Completion)
def test_contiguous_bytes_go_to_both_blocks(completion: Completion) -> None:
    b, result = run(BULK, completion=completion)
    tiles = np.arange(256 * STAGES).reshape(STAGES, 1, 256)
    np.testing.assert_array_equal(b, np.broadcast_to(tiles, b.shape))
    counts = {
        (access.space, access.kind): access.threads * access.width
        for access in result.counters.accesses
        if access.op == "ptx.cp.async.bulk.load"
    }
    tile = 1024 * STAGES
    assert counts == {("global", "bulk"): tile, ("shared", "bulk"): tile, ("shared", "multicast"): tile}


def test_a_mask_of_a_block_that_the_cluster_lacks() -> None:
    text = "the mask 0x0004 names rank 2; the cluster has 2 blocks"
    with pytest.raises(SimulationError, match=text):
        run("%other = arith.constant 4 : i16\n" + BULK.replace("multicast %mask", "multicast %other"))


# Each mistake: the kernel with it, the codes that a seed or a time of completion leads to, words of the message in the
# order of blocks, and the cure: a text instead of another.
MISTAKES: dict[str, tuple[str, set[str], str, tuple[str, str]]] = {
    "the peer expects no bytes": (
        KERNEL.replace(EXPECT, one(EXPECT, leads="%first")), {"E3207", "E3206"}, "has 1024 bytes more than it expects",
        (one(EXPECT, leads="%first"), EXPECT),
    ),
    "each block expects its own half only": (
        KERNEL.replace(EXPECT, EXPECT.replace("%bytes", "%half")), {"E3204", "E3206", "E3207", "E3215"},
        "is still writing it", ("%full, %half", "%full, %bytes"),
    ),
    "the cluster has not met": (
        KERNEL.replace(BEGIN, one(INIT, FENCE) + "ptx.bar.sync 0\n"), {"E3218", "E3215"},
        "which may not have begun", ("ptx.bar.sync 0\n" + STEPS, SYNC + STEPS),
    ),
    "the peer's release is not waited for": (
        KERNEL.replace("%empty, %two", "%empty, %one").replace("ptx.mbarrier.arrive %their_empty\n", ""),
        {"E3205", "E3206", "E3207"}, "which a bulk copy wrote, with no barrier", ("%empty, %one", "%empty, %two"),
    ),
}  # fmt: skip


def _refused(body: str, seed: int | None, completion: Completion = Completion.LATE) -> SimulationError:
    with pytest.raises(SimulationError) as caught:
        run(body, seed, completion)
    return caught.value


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str, seed: int | None) -> None:
    body, codes, said, (wrong, right) = MISTAKES[mistake]
    error = _refused(body, seed)
    assert error.code in codes, str(error)
    assert seed is not None or said in str(error), str(error)
    assert re.match(r".*test\.cute:\d+:", str(error))
    cured = body.replace(wrong, right)
    if mistake == "the peer's release is not waited for":
        cured = cured.replace("ptx.mbarrier.arrive %empty\n", RELEASE)
    run(cured, seed)


@pytest.mark.parametrize("completion", [Completion.LATE, Completion.EARLY])
def test_a_block_that_ends_before_its_bytes_come(completion: Completion) -> None:
    """Block 1 never waits for what block 0 sends it."""
    loads = one("%y = arith.constant 0 : i32\n", LOAD, leads="%loads")
    head = "%loads = arith.andi %leads, %first : i1\n%expected = arith.constant 512 : i32\n"
    expect = one("ptx.mbarrier.arrive.expect_tx %full, %expected\n")
    wait = 'ptx.mbarrier.wait %full, %zero scope "cluster"\n'
    body = BEGIN + head + expect + loads
    run(body + wait + SYNC, completion=completion)
    late = body + f"scf.if %first {{\n{wait}}}\n" + SYNC
    if completion is Completion.EARLY:
        run(late, completion=completion)
    else:
        error = _refused(late, None, completion)
        assert error.code == "E3217"
        assert "the block ends while the copy may still write its shared memory" in str(error)
    ended = BEGIN + head + expect + "scf.if %first {\n" + SYNC.replace(" aligned", "") + "}\n" + loads + wait
    assert _refused(ended, None, completion).code in ("E3220", "E3207", "E3217", "E3221")
