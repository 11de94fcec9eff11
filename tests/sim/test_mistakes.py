# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mistakes with asynchronous copies, multiplications by warpgroups and clusters that the simulator must find: the
smallest kernel with each, its error, and the change that cures it. Variants are in the tests of their operations.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pytest
from tilefold.base.errors import TilefoldError

from tests.sim import test_cluster_memory as cluster
from tests.sim import test_multicast as multicast
from tests.sim import test_tma as tensor
from tests.sim import test_wgmma as wgmma


@dataclass(frozen=True)
class Mistake:
    """A mistake: how a kernel runs, the body with the mistake, its code, words of the message, and the cure: a text
    instead of another. By some seeds of the order of warps it has one of `other` codes.
    """

    name: str
    run: Callable[..., object]
    body: str
    code: str
    said: str
    cure: tuple[str, str]
    other: frozenset[str] = frozenset()
    seeds: Sequence[int | None] = (None,)


SEEDS = (None, 0, 1)
_in_cluster = partial(Mistake, run=cluster.run, seeds=SEEDS)
_in_multicast = partial(Mistake, run=multicast.run, seeds=SEEDS)
_one = tensor.one
_LOADED = tensor.INIT + _one(tensor.EXPECT, tensor.LOAD) + tensor.WAIT + tensor.USE
_STORED = tensor.FILL + tensor.FENCE + tensor.SYNC + _one(tensor.STORE, tensor.COMMIT, tensor.WAIT_READ)

MISTAKES = {
    1: Mistake(
        "no expect_tx", tensor.run, _LOADED.replace(tensor.EXPECT, "ptx.mbarrier.arrive %bar\n"), "E3206",
        "is still writing it", ("ptx.mbarrier.arrive %bar\n", tensor.EXPECT),
    ),
    2: Mistake(
        "too few bytes expected", tensor.run, _LOADED.replace("%bar, %bytes", "%bar, %half"), "E3207",
        "phase 0: 1 of 1 arrivals, has 512 bytes more than it expects", ("%bar, %half", "%bar, %bytes"),
    ),
    3: Mistake(
        "too many bytes expected", tensor.run, _LOADED.replace("%bar, %bytes", "%bar, %more"), "E3207",
        "lacks 1024 bytes", ("%bar, %more", "%bar, %bytes"),
    ),
    4: Mistake(
        "a wait for the other parity", tensor.run, _LOADED.replace("wait %bar, %zero", "wait %bar, %odd"), "E3206",
        "is still writing it", ("%odd", "%zero"),
    ),
    5: Mistake(
        "another number of arrivals", tensor.run, _LOADED.replace("init %bar, %one", "init %bar, %two"), "E3207",
        "phase 0: 1 of 2 arrivals", ("%two", "%one"),
    ),
    6: Mistake(
        "a store of what threads wrote, without a fence of proxies", tensor.run, _STORED.replace(tensor.FENCE, ""),
        "E3216", "which thread (0,0,0) wrote by the generic one; fence.proxy.async between them is missing",
        (tensor.SYNC, tensor.FENCE + tensor.SYNC),
    ),
    7: Mistake(
        "a multiplication of what threads wrote, without a fence of proxies", wgmma.run,
        wgmma.RIGHT.replace(wgmma.PROXY, ""), "E3216", "which thread (0,0,0) wrote by the generic one",
        (wgmma.FILL, wgmma.FILL + wgmma.PROXY),
    ),
    8: _in_multicast(
        "mbarriers whose initialisation the cluster does not know", body=multicast.KERNEL.replace(multicast.FENCE, ""),
        code="E3219", said="and its initialisation lacks a fence",
        cure=(_one(multicast.INIT), _one(multicast.INIT, multicast.FENCE)),
    ),
    9: Mistake(
        "a copy into a stage that is still multiplied", wgmma.run,
        wgmma.FILLED + wgmma.INIT + wgmma.FENCE + wgmma.MULTIPLY + wgmma.COMMIT + wgmma.LOAD + wgmma.WAIT + wgmma.USE,
        "E3206", "is still reading it", (wgmma.LOAD + wgmma.WAIT, wgmma.WAIT + wgmma.SYNC + wgmma.LOAD),
    ),
    10: _in_multicast(
        "a copy into a stage that a peer still reads", body=multicast.KERNEL.replace(multicast.FREE, ""), code="E3205",
        said="", cure=(multicast.RELEASE, multicast.RELEASE + multicast.FREE), other=frozenset({"E3206", "E3207"}),
    ),
    11: Mistake(
        "accumulators read before the wait", wgmma.run,
        wgmma.FILLED + wgmma.FENCE + wgmma.MULTIPLY + wgmma.COMMIT + wgmma.USE + wgmma.WAIT, "E3206",
        "uses byte 0 of fragment %d (32 bytes) while ptx.wgmma.mma_async at",
        (wgmma.USE + wgmma.WAIT, wgmma.WAIT + wgmma.USE),
    ),
    12: Mistake(
        "registers of A changed in flight", wgmma.run,
        wgmma.REGISTERS.replace(wgmma.WAIT, wgmma.SET + wgmma.WAIT), "E3206",
        "writes registers of A, byte 0 of fragment %r (16 bytes), while ptx.wgmma.mma_async at",
        (wgmma.SET + wgmma.WAIT, wgmma.WAIT + wgmma.SET),
    ),
    13: Mistake(
        "no wgmma.fence", wgmma.run, wgmma.RIGHT.replace(wgmma.FENCE, ""), "E3225", "multiplies with accumulators",
        (wgmma.MULTIPLY, wgmma.FENCE + wgmma.MULTIPLY),
    ),
    14: Mistake(
        "no commit", wgmma.run, wgmma.RIGHT.replace(wgmma.COMMIT, ""), "E3206",
        "which is in no group yet, is still writing it", (wgmma.MULTIPLY, wgmma.MULTIPLY + wgmma.COMMIT),
    ),
    15: Mistake(
        "the source of a store overwritten before it has been read", tensor.run,
        tensor.FILL + tensor.FENCE + tensor.SYNC + _one(tensor.STORE, tensor.COMMIT)
        + "ptx.st %f, %mine align 16 : vector<4xf32>, !ptx.ptr<shared>\n" + _one(tensor.WAIT_READ), "E3206",
        "by the async proxy of thread (0,0,0) is still reading it",
        (tensor.COMMIT + "}\n", tensor.COMMIT + tensor.WAIT_READ + "}\n" + tensor.SYNC),
    ),
    16: Mistake(
        "exit before the source of a store has been read", tensor.run, _STORED.replace(tensor.WAIT_READ, ""), "E3217",
        "ends while its bulk copy may still read", (tensor.COMMIT, tensor.COMMIT + tensor.WAIT_READ),
    ),
    17: _in_cluster(
        "exit while a peer reads the block's shared memory", body=cluster.PUT + cluster.SYNC + cluster.GET,
        code="E3220",
        said="ptx.ld at test.cute:29:6: block (1,0,0), thread (0,0,0): accesses the shared memory of block (0,0,0)",
        cure=(cluster.GET, cluster.GET + cluster.SYNC),
    ),
    18: _in_multicast(
        "a mask beyond the cluster",
        body="%seven = arith.constant 7 : i16\n" + multicast.KERNEL.replace("%mask", "%seven"), code="E3202",
        said="the mask 0x0007 names rank 2; the cluster has 2 blocks",
        cure=("constant 7 : i16", "constant 3 : i16"),
    ),
    19: Mistake(
        "a tile misaligned for its swizzle", tensor.run,
        "%s128 = ptx.smem.addr 128\n" + _LOADED.replace("%s, %bar", "%s128, %bar"), "E3203",
        "which is not a multiple of 1024 bytes", ("%s128, %bar", "%s, %bar"),
    ),
    20: Mistake(
        "a descriptor that leads outside", wgmma.run,
        "%a2 = ptx.wgmma.descriptor %s leading 64 stride 800 swizzle 0\n" + wgmma.RIGHT.replace("%a,", "%a2,"),
        "E3226", "outside the block's shared memory", ("stride 800", "stride 8"),
    ),
    21: Mistake(
        "a descriptor with another swizzle than the map", wgmma.run_swizzled,
        wgmma.SWIZZLED.replace(wgmma.SWIZZLE, "leading 64 stride 8 swizzle 0"), "E3226",
        "by no swizzle, where a TMA copy has written by a swizzle of 32 bytes",
        ("leading 64 stride 8 swizzle 0", wgmma.SWIZZLE),
    ),
    22: Mistake(
        "a multiplication by a part of a warp", wgmma.run,
        wgmma.RIGHT.replace(wgmma.MULTIPLY, "scf.if %leads {\n" + wgmma.MULTIPLY + "}\n"), "E3208",
        "1 lanes execute", ("scf.if %leads {\n" + wgmma.MULTIPLY + "}\n", wgmma.MULTIPLY),
    ),
    23: Mistake(
        "more registers than the block has", partial(wgmma.run, threads=384),
        wgmma.FILL + "%seven = arith.constant 7 : i32\n" + wgmma.POOL.replace("232", "240"), "E3227",
        "waits at 240 registers a thread forever", ("240", "232"),
    ),
    24: _in_cluster(
        "two arrivals at the cluster barrier without a wait", body=cluster.ARRIVE + cluster.SYNC, code="E3221",
        said="arrives at the cluster barrier in phase 0 again, without a wait since its last arrival",
        cure=(cluster.ARRIVE + cluster.SYNC, cluster.SYNC),
    ),
    25: _in_cluster(
        "an arrival at a peer's mbarrier by a plain address",
        body=cluster.FENCED + cluster.SYNC + cluster.REMOTE.replace("%their_bar", "%bar")
        .replace("scf.if %is_first", "%only = arith.andi %is_first, %in_block_0 : i1\nscf.if %only")
        + cluster.AWAIT + cluster.SYNC,
        code="E3207",
        said="the mbarrier of block (0,0,0) at the same place has 1 arrivals, this one 0, none by other blocks: a "
        "thread arrives at a peer's mbarrier by the address from ptx.mapa",
        cure=("scf.if %only {\nptx.mbarrier.arrive %bar\n", "scf.if %is_first {\nptx.mbarrier.arrive %their_bar\n"),
    ),
    26: Mistake(
        "all lanes issue a copy", tensor.run,
        tensor.INIT + _one(tensor.EXPECT) + tensor.LOAD + tensor.WAIT + tensor.USE,
        "E3206", "is still writing it",
        (_one(tensor.EXPECT) + tensor.LOAD, _one(tensor.EXPECT, tensor.LOAD)),
    ),
    27: Mistake(
        "a map in local memory", tensor.run,
        "%local = ptx.local.alloc 128 align 64\n%m2 = ptx.cvta.tensor_map %local\n" + _LOADED.replace("%m[", "%m2["),
        "E1001", "", ("%local = ptx.local.alloc 128 align 64\n%m2 = ptx.cvta.tensor_map %local\n", ""),
    ),
}  # fmt: skip
"""By the numbers under which the project knows them. The 8th is also that of a cluster that has not met."""


@pytest.mark.parametrize("number", MISTAKES)
def test_mistakes_are_found_and_cured(number: int) -> None:
    mistake = MISTAKES[number]
    wrong, right = mistake.cure
    assert mistake.body.count(wrong) == 1
    cured = mistake.body.replace(wrong, right).replace("%m2[", "%m[")
    for seed in mistake.seeds:
        with pytest.raises(TilefoldError) as caught:
            mistake.run(mistake.body, seed=seed)
        assert caught.value.code in {mistake.code, *mistake.other}, str(caught.value)
        assert seed is not None or mistake.said in str(caught.value)
        assert re.match(r"(.|\n)*test\.cute:\d+:\d+", str(caught.value))
        mistake.run(cured, seed=seed)
