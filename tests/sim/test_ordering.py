# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clocks and races against a model that keeps, for each warp, the set of accesses that happened before; and
asynchronous operations on shared memory and on registers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tilefold.base.limits import Limits
from tilefold.base.spaces import GMEM, SMEM
from tilefold.layout.atoms.contract import Proxy
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.faults import SimulationError, Site
from tilefold.runtime.sim.grids import Grids
from tilefold.runtime.sim.launch import LaunchState
from tilefold.runtime.sim.memory.arena import Access
from tilefold.runtime.sim.memory.local import LocalSpace
from tilefold.runtime.sim.memory.spaces import Space
from tilefold.runtime.sim.ordering import asynchronous, knowledge
from tilefold.runtime.sim.ordering.mbarrier import Mbarrier
from tilefold.runtime.sim.ordering.races import RaceShadow
from tilefold.runtime.sim.ordering.releases import Releases, fence
from tilefold.runtime.sim.warp import Block, Cluster, Warp

WARPS = 3
SITE = Site("ptx.test", "test.cute", 1, 1)


def launch_of(threads: int, blocks: int = 1) -> LaunchState:
    return LaunchState(Grids.single(LaunchConfig((blocks, 1, 1), (threads, 1, 1))), Limits(), lambda _: None)


def cluster_of(launch: LaunchState, number: int = 0, lanes: int = 32) -> Cluster:
    """A cluster of one block, whose warps have so many lanes."""
    cluster = Cluster(launch, number, 1, launch.tick())
    block = Block(cluster, launch.coordinate(number))
    for index in range(WARPS):
        Warp(block, index, lanes, [])
    return cluster


class Model:
    """What each warp of a block knows: the accesses that happened before its next one."""

    def __init__(self) -> None:
        self.known: list[set[int]] = [set() for _ in range(WARPS)]
        self.fenced: list[set[int]] = [set() for _ in range(WARPS)]
        self.observed: list[set[int]] = [set() for _ in range(WARPS)]

    def join(self, arrived: set[int], waiting: set[int]) -> None:
        total = {access for warp in arrived for access in self.known[warp]}
        for warp in waiting:
            self.known[warp] |= total


WARP = st.integers(0, WARPS - 1)
EVENT = st.one_of(
    st.tuples(st.sampled_from(["read", "write", "update", "observe"]), WARP, st.integers(0, 1)),
    st.tuples(st.sampled_from(["release", "acquire", "relaxed write", "relaxed read", "count"]), WARP, st.just(0)),
    st.tuples(st.just("fence"), WARP, st.just(0)),
    st.tuples(st.just("barrier"), st.just(0), st.just(0)),
    st.tuples(st.just("meet"), WARP, WARP),
    st.tuples(st.just("arrive"), WARP, WARP),
    st.tuples(st.just("next cluster"), st.just(0), st.just(0)),
)


@settings(max_examples=300, deadline=None)
@example([("read", 1, 0), ("observe", 0, 0), ("write", 1, 0)], False)
@example([("read", 0, 0), ("next cluster", 0, 0), ("read", 0, 0), ("barrier", 0, 0), ("write", 0, 0)], False)
@given(st.lists(EVENT, min_size=2, max_size=24), st.booleans())
def test_clocks_order_what_the_model_orders(events: list[tuple[str, int, int]], forgets: bool) -> None:
    """Warps of one lane that read and write two words of a memory, and synchronise at one address."""
    launch = launch_of(32 * WARPS, 30)
    launch.fences.add("gpu")
    shadow, releases = RaceShadow(256, WARPS if forgets else 1, (SMEM if forgets else GMEM).ptx, forgets), Releases()
    cluster, model, number = cluster_of(launch, lanes=1), Model(), 0
    accesses: list[tuple[int, int, bool, bool, int]] = []  # owner, word, writes, atomic, cluster
    left: set[int] = set()
    for kind, first, second in events:
        warp, owner = cluster.warps[first], number * WARPS + first
        known = model.known[first]
        match kind:
            case "read" | "write" | "update" | "observe":
                writes, atomic = kind in ("write", "update"), kind in ("update", "observe")
                expected = any(
                    place == second and (writes or wrote) and not (atomic and was_atomic)
                    and index not in known and not (forgets and when < number)
                    for index, (who, place, wrote, was_atomic, when) in enumerate(accesses) if who != owner
                )  # fmt: skip
                conflict = getattr(shadow, kind)(warp, np.array([second]), 8)
                assert conflict is not None or not expected
                if conflict is not None:
                    merged = any(place == second and not wrote for _, place, wrote, _, _ in accesses)
                    assert expected or (merged and not forgets)  # reads of several warps count as one
                    return
                known.add(len(accesses))
                accesses.append((owner, second, writes, atomic, number))
            case "release" | "count" | "relaxed write":
                releases.write(warp, 0, 0, kind != "relaxed write", kind != "count", "gpu", SITE)
                mine = set(known) if kind != "relaxed write" else set(model.fenced[first])
                left = mine | (left if kind == "count" else set())
            case "acquire" | "relaxed read":
                releases.read(warp, 0, kind == "acquire", "gpu")
                (known if kind == "acquire" else model.observed[first]).update(left)
            case "fence":
                fence(warp, "gpu")
                known |= model.observed[first]
                model.observed[first], model.fenced[first] = set(), set(known)
            case "barrier":
                knowledge.meet_block(warp.block)
                model.join(set(range(WARPS)), set(range(WARPS)))
            case "meet" | "arrive":
                meeting = [cluster.warps[first], cluster.warps[second]]
                offered = [knowledge.snapshot(one, np.array([0])) for one in meeting]
                knowledge.meet_warps(offered, meeting if kind == "meet" else meeting[1:])
                model.join({first, second}, {first, second} if kind == "meet" else {second})
            case _:
                number += 1
                cluster, model = cluster_of(launch, number, lanes=1), Model()
                if forgets:
                    shadow.reset()


LANE_EVENT = st.one_of(
    st.tuples(st.sampled_from(["read", "write"]), WARP, st.sets(st.integers(0, 2), min_size=1), st.integers(0, 1)),
    st.tuples(st.just("sync"), WARP, st.sets(st.integers(0, 2), min_size=1), st.just(0)),
    st.tuples(st.just("barrier"), st.just(0), st.just({0}), st.just(0)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(LANE_EVENT, min_size=2, max_size=16))
def test_no_race_of_lanes_is_missed(events: list[tuple[str, int, set[int], int]]) -> None:
    """Lanes of warps that read and write two words: a race of the model is reported, and others only where the reads of
    several lanes count as one.
    """
    launch = launch_of(32 * WARPS)
    cluster, shadow = cluster_of(launch, lanes=3), RaceShadow(256, WARPS, SMEM.ptx, True)
    known: dict[tuple[int, int], set[int]] = {(warp, lane): set() for warp in range(WARPS) for lane in range(3)}
    accesses: list[tuple[tuple[int, int], int, bool]] = []
    for kind, index, lanes, word in events:
        warp = cluster.warps[index]
        agents = [(index, lane) for lane in sorted(lanes)]
        if kind == "barrier":
            knowledge.meet_block(warp.block)
            everything = set(range(len(accesses)))
            known = {agent: set(everything) for agent in known}
        elif kind == "sync":
            knowledge.meet_lanes(warp, np.array(sorted(lanes)))
            total = {access for agent in agents for access in known[agent]}
            known |= {agent: set(total) for agent in agents}
        else:
            writes = kind == "write"
            if writes:
                agents = agents[:1]
            warp.narrow(np.isin(np.arange(3), [lane for _, lane in agents]))
            expected = any(
                place == word and who != agent and (writes or wrote) and number not in known[agent]
                for number, (who, place, wrote) in enumerate(accesses)
                for agent in agents
            )
            rows = np.full(len(agents), word)
            conflict = (shadow.write if writes else shadow.read)(warp, rows, 8)
            assert conflict is not None or not expected
            if conflict is not None:
                assert expected or any(place == word and not wrote for _, place, wrote in accesses)
                return
            for agent in agents:
                known[agent].add(len(accesses))
                accesses.append((agent, word, writes))


def wait_for_groups(warp: Warp) -> None:
    asynchronous.commit(warp)
    asynchronous.wait(warp, 0)


def wait_at_an_mbarrier(warp: Warp) -> None:
    barrier = Mbarrier(0, 32, 0, 0)
    barrier.arrivals.append(asynchronous.tie(warp, SITE, warp.lane_numbers()))
    barrier.land()
    assert barrier.phase == 1
    barrier.acquire(warp, 0, warp.lane_numbers(), reach=0, site=SITE)


@pytest.fixture
def registers() -> tuple[Warp, LocalSpace]:
    """A warp that has written a fragment of 8 bytes at 256, and one of 4 bytes behind it."""
    warp = cluster_of(launch_of(32 * WARPS)).warps[1]
    space = LocalSpace()
    first, second = space.frame.allocate("a fragment", 8), space.frame.allocate("another", 4)
    assert (first, second) == (256, 768)
    space.build(32 * WARPS)
    for allocation in space.frame.allocations:
        space.define(warp, allocation)
        space.store(warp, SITE, allocation.start, np.ones((32, allocation.size), np.uint8))
    return warp, space


@pytest.mark.parametrize("wait", [wait_for_groups, wait_at_an_mbarrier])
def test_registers_in_flight(registers: tuple[Warp, LocalSpace], wait: Callable[[Warp], None]) -> None:
    warp, space = registers
    assert space.load(warp, SITE, 256, 4).tolist() == [[1] * 4] * 32  # the warp knows these bytes as written
    rows = space.claim(warp, SITE, 256, 4)
    content = np.arange(128, dtype=np.uint8).reshape(32, 4)
    site = Site("ptx.start", "test.cute", 9, 1)
    asynchronous.start(warp, site, Proxy.ASYNC, space, rows, 4, content)
    uses: list[Callable[[], Any]] = [
        lambda: space.load(warp, SITE, 256, 4),
        lambda: space.load(warp, SITE, np.full(32, 258), 1),
        lambda: space.store(warp, SITE, 256, np.zeros((32, 8), np.uint8)),
        lambda: space.claim(warp, SITE, 256, 2),
    ]
    for use in uses:
        with pytest.raises(SimulationError) as caught:
            use()
        assert caught.value.code == "E3206"
        assert caught.value.thread == (32, 0, 0)
        said = "while ptx.start at test.cute:9:1 by the async proxy of thread (32,0,0) is still writing it"
        assert f"of a fragment (8 bytes) {said}" in caught.value.message
    assert (space.load(warp, SITE, 260, 4) == 1).all()
    assert (space.load(warp, SITE, 768, 4) == 1).all()
    wait(warp)
    assert (space.load(warp, SITE, 256, 4) == content).all()


def test_registers_in_flight_of_some_lanes(registers: tuple[Warp, LocalSpace]) -> None:
    warp, space = registers
    low = np.arange(32) < 8
    warp.narrow(low)
    rows = space.claim(warp, SITE, 256, 4)
    asynchronous.start(warp, SITE, Proxy.ASYNC, space, rows, 4, np.zeros((8, 4), np.uint8))
    warp.narrow(~low)
    assert (space.load(warp, SITE, 256, 4) == 1).all()
    asynchronous.wait_all(warp)  # these lanes have nothing to wait for
    warp.narrow(np.ones(32, bool))
    with pytest.raises(SimulationError) as caught:
        space.load(warp, SITE, 256, 4)
    assert caught.value.thread == (32, 0, 0)
    asynchronous.wait_all(warp)
    assert not space.load(warp, SITE, 256, 4)[:8].any()


def shared_space() -> tuple[list[Warp], Space]:
    cluster = cluster_of(launch_of(32 * WARPS))
    space = Space(SMEM, 0, races=True)
    space.arena.allocate("shared memory", 4096)
    space.build(1, WARPS)
    return cluster.warps, space


def copy_to(space: Space, warp: Warp, address: int) -> None:
    """Starts a copy of 4 bytes for each lane, from `address` on."""
    at = address + 4 * np.arange(32)
    rows = space.claim(warp, Access(SITE, "shared", "async", 4), at)
    asynchronous.start(warp, SITE, Proxy.GENERIC, space, rows, 4, np.zeros((32, 4), np.uint8))


def reads(space: Space, warp: Warp, address: int) -> str:
    """What comes of reading the bytes of a copy."""
    try:
        space.load(warp, Access(SITE, "shared", "load", 4), address + 4 * np.arange(32))
    except SimulationError as error:
        return str(error.code)
    return "fine"


@pytest.mark.parametrize("wait", [wait_for_groups, wait_at_an_mbarrier])
def test_what_an_operation_reads_stays_until_it_is_complete(wait: Callable[[Warp], None]) -> None:
    """An operation of each lane reads 8 bytes of shared memory, and writes 4 bytes elsewhere."""
    (issuer, other, _), space = shared_space()
    at = 256 + 8 * np.arange(32)
    store, half = Access(SITE, "shared", "store", 8), Access(SITE, "shared", "store", 4)
    space.store(issuer, store, at, np.ones((32, 8), np.uint8))
    knowledge.meet_block(issuer.block)
    source = asynchronous.Source(space, at // 8, 8, np.arange(32))
    rows = space.claim(issuer, half, 1024 + 4 * np.arange(32))
    zeros = np.zeros((32, 4), np.uint8)
    asynchronous.start(issuer, SITE, Proxy.ASYNC, space, rows, 4, zeros, source)
    assert (space.load(other, store, at) == 1).all()
    knowledge.meet_block(issuer.block)
    for write in (space.store, partial(space.publish, releases=False)):
        with pytest.raises(SimulationError) as caught:
            write(other, half, at + 4, zeros)
        assert caught.value.code == "E3206"
        said = "while ptx.test at test.cute:1:1 by the async proxy of thread (0,0,0) is still reading it"
        assert f"writes 0x104 (byte 4 of shared memory (4096 bytes)) {said}" in caught.value.message
    space.store(other, half, 512 + 4 * np.arange(32), zeros)  # behind it
    wait(issuer)
    knowledge.meet_block(issuer.block)
    space.store(other, half, at + 4, zeros)


def test_who_waits_for_one_mbarrier_knows_the_copies_that_it_tells_of_only() -> None:
    """A warp starts X, lets B tell of it, and then Y, of which only A tells: A tells of both."""
    (issuer, by_a, by_b), space = shared_space()
    a, b = Mbarrier(0, 32, 0, 0), Mbarrier(1, 32, 0, 1)
    copy_to(space, issuer, 256)
    b.arrivals.append(asynchronous.tie(issuer, SITE, issuer.lane_numbers()))
    copy_to(space, issuer, 512)
    a.arrivals.append(asynchronous.tie(issuer, SITE, issuer.lane_numbers()))
    assert reads(space, by_a, 256) == reads(space, by_a, 512) == "E3206"
    a.land()
    b.land()
    assert reads(space, by_a, 256) == reads(space, issuer, 512) == "E3205"
    a.acquire(by_a, 0, by_a.lane_numbers(), reach=0, site=SITE)
    b.acquire(by_b, 0, by_b.lane_numbers(), reach=0, site=SITE)
    assert (reads(space, by_a, 256), reads(space, by_a, 512)) == ("fine", "fine")
    assert (reads(space, by_b, 256), reads(space, by_b, 512)) == ("fine", "E3205")


def test_an_mbarrier_tells_of_copies_that_another_has_told_of() -> None:
    (issuer, by_a, by_b), space = shared_space()
    a, b = Mbarrier(0, 32, 0, 0), Mbarrier(1, 32, 0, 1)
    copy_to(space, issuer, 256)
    a.arrivals.append(asynchronous.tie(issuer, SITE, issuer.lane_numbers()))
    a.land()
    b.arrivals.append(asynchronous.tie(issuer, SITE, issuer.lane_numbers()))
    b.land()
    b.acquire(by_b, 0, by_b.lane_numbers(), reach=0, site=SITE)
    assert (reads(space, by_a, 256), reads(space, by_b, 256)) == ("E3205", "fine")


def test_a_barrier_of_the_block_hands_on_no_copy_that_nobody_waited_for() -> None:
    """The copy is complete, since the mbarrier was looked at; but no warp knows it."""
    (issuer, reader, _), space = shared_space()
    barrier = Mbarrier(0, 64, 0, 0)
    copy_to(space, issuer, 256)
    barrier.arrivals.append(asynchronous.tie(issuer, SITE, issuer.lane_numbers()))
    barrier.land()
    knowledge.meet_block(issuer.block)
    assert reads(space, reader, 256) == "E3205"
    barrier.released.append((barrier.offered, barrier.near))
    barrier.phase = 1
    barrier.acquire(issuer, 0, issuer.lane_numbers(), reach=0, site=SITE)
    assert reads(space, reader, 256) == "E3205"
    knowledge.meet_block(issuer.block)
    assert reads(space, reader, 256) == "fine"
    assert reader.horizon == issuer.horizon > issuer.block.cluster.start
