# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels find where they run: a thread's own memory at generic addresses, clocks, and what CUDA's driver and
cooperative groups put into registers and memory.
"""

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold
from tests.ptx.texts import STORE_LANE, kernel

DEPOT = """
    .local .align 8 .b8 depot[64];
    mov.u64 %d10, depot;
    cvta.local.u64 %d11, %d10;
"""


def run(body: str, count: int = 32, grid: int = 1, cooperative: bool = False) -> list[int]:
    """What a kernel leaves in an array of i32, an element for each thread of a block, from -1."""
    a = np.full(count, -1, np.int32)
    tilefold.load_ptx(kernel(f"{STORE_LANE}{body} ret;"))["k"](a).launch(
        grid=grid, block=count // grid, cooperative=cooperative
    )
    return a.tolist()


def test_an_address_of_local_memory_goes_through_memory_as_a_number() -> None:
    stored = "add.u64 %d12, %d11, 16; st.u64 [%d11], %d12; st.u32 [%d11+20], %r1; ld.u64 %d13, [%d11];"
    for load in ("ld.u32 %r5, [%d13+4]", "cvta.to.local.u64 %d14, %d13; ld.local.u32 %r5, [%d14+4]"):
        assert run(f"{DEPOT}{stored}{load}; st.global.u32 [%d4], %r5;") == list(range(32))
    spaces = "".join(
        f"isspacep.{space} %p1, %d13; selp.u32 %r6, {bit}, 0, %p1; or.b32 %r5, %r5, %r6;"
        for space, bit in (("local", 1), ("shared", 2), ("global", 4), ("const", 8), ("param", 16))
    )
    assert run(f"{DEPOT}{stored} mov.u32 %r5, 0; {spaces} st.global.u32 [%d4], %r5;") == [1] * 32


def test_a_register_holds_an_address_of_one_memory_or_another() -> None:
    chosen = "setp.lt.u32 %p1, %r1, 3; selp.b64 %d12, %d4, %d11, %p1; st.u32 [%d12], 7;"
    assert run(f"{DEPOT}{chosen}") == [7] * 3 + [-1] * 29
    null = "mov.u64 %d12, 0; @%p1 bra USE; mov.u64 %d12, %d11; USE: st.u32 [%d12], 7;"
    assert run(f"{DEPOT} setp.gt.u32 %p1, %r1, 40; {null} st.global.u32 [%d4], 1;") == [1] * 32
    with pytest.raises(TilefoldError, match="at 0x0, where the simulator has no memory"):
        run(f"{DEPOT} setp.gt.u32 %p1, %r1, 30; {null}")


def test_a_number_leads_to_no_byte_beyond_local_memory() -> None:
    with pytest.raises(TilefoldError, match="accesses local memory out of bounds"):
        run(f"{DEPOT} st.u64 [%d11], %d11; ld.u64 %d13, [%d11]; st.u32 [%d13+64], 1;")


def test_clocks_go_on_so_that_a_wait_for_a_time_ends() -> None:
    wait = "mov.u64 %d5, %clock64; AGAIN: mov.u64 %d6, %globaltimer; sub.u64 %d7, %d6, %d5;"
    assert run(f"{wait} setp.lt.u64 %p1, %d7, 9000; @%p1 bra AGAIN; st.global.u32 [%d4], 1;") == [1] * 32


def test_the_workspace_of_a_grid_is_memory_where_blocks_count_each_other() -> None:
    word = "mov.u32 %r2, %envreg1; mov.u32 %r3, %envreg2; mov.b64 %d5, {%r3, %r2};"
    count = "setp.ne.u32 %p1, %r1, 0; @!%p1 atom.add.release.gpu.u32 %r4, [%d5+4], 1; @%p1 bra DONE;"
    wait = "AGAIN: ld.acquire.gpu.u32 %r5, [%d5+4]; setp.lt.u32 %p2, %r5, 2; @%p2 bra AGAIN;"
    place = "mov.u32 %r6, %ctaid.x; mul.wide.u32 %d6, %r6, 64; add.u64 %d4, %d4, %d6;"
    body = f"{word}{count}{wait}{place} st.global.u32 [%d4], %r5; DONE:"
    assert run(body, grid=2, cooperative=True) == [2, *[-1] * 15, 2, *[-1] * 15]


def test_reserved_shared_memory_begins_with_zeros() -> None:
    body = ".shared .align 4 .b8 s[8]; mov.u32 %r2, %reserved_smem_offset_1; ld.shared.u32 %r3, [%r2+16];"
    size = "mov.u32 %r4, s; mov.u32 %r5, %total_smem_size; sub.u32 %r6, %r2, %r4; add.u32 %r7, %r3, %r6;"
    assert run(f"{body}{size} sub.u32 %r8, %r5, %r7; st.global.u32 [%d4], %r8;") == [1024] * 32


@pytest.mark.parametrize("cluster", [None, 2])
def test_registers_and_addresses_of_clusters(cluster: int | None) -> None:
    """%is_explicit_cluster, %current_graph_exec, and the rank of an address that has been in memory."""
    is_cluster = "mov.pred %p1, %is_explicit_cluster; selp.u32 %r2, 1, 0, %p1;"
    graph = "mov.u64 %d5, %current_graph_exec; cvt.u32.u64 %r3, %d5; mad.lo.u32 %r2, %r3, 10, %r2;"
    own = ".shared .align 4 .b8 s[128]; mov.u32 %r4, s; mov.u32 %r5, %cluster_nctarank; sub.u32 %r5, %r5, 1;"
    peer = "mapa.shared::cluster.u32 %r6, %r4, %r5;"
    stored = "mad.lo.u32 %r7, %r1, 4, %r4; st.shared.u32 [%r7], %r6; ld.shared.u32 %r8, [%r7];"
    rank = "getctarank.shared::cluster.u32 %r9, %r8; mad.lo.u32 %r2, %r9, 100, %r2; st.global.u32 [%d4], %r2;"
    head = kernel(f"{STORE_LANE}{is_cluster}{graph}{own}{peer}{stored}{rank} ret;")
    text = head.replace(".version 8.0\n.target sm_80", ".version 8.0\n.target sm_90")
    a = np.full(32, -1, np.int32)
    tilefold.load_ptx(text)["k"](a).launch(grid=2, block=32, cluster=cluster)
    assert a.tolist() == [0 if cluster is None else 101] * 32
    kept = "mapa.u64 %d9, %d9, %r5; st.local.u64 [l], %d9; ld.local.u64 %d8, [l]; getctarank.u64"
    generic = f".local .b64 l; mov.u64 %d9, s; cvta.shared.u64 %d9, %d9; {kept}"
    a[:] = -1
    tilefold.load_ptx(text.replace("getctarank.shared::cluster.u32 %r9, %r8", f"{generic} %r9, %d8"))["k"](a).launch(
        grid=2, block=32, cluster=cluster
    )
    assert a.tolist() == [0 if cluster is None else 101] * 32


def test_a_barrier_has_its_number_of_threads_in_a_register() -> None:
    body = ".shared .align 4 .b8 s[128]; mov.u32 %r9, s; mad.lo.u32 %r3, %r1, 4, %r9; st.shared.u32 [%r3], %r1;"
    assert run(f"{body} mov.u32 %r5, 1; mov.u32 %r6, 32; barrier.sync %r5, %r6; ld.shared.u32 %r7, [%r9+8];"
               "st.global.u32 [%d4], %r7;") == [2] * 32  # fmt: skip


@pytest.mark.parametrize(
    "arrival", ["mov.u32 %r6, 2; mbarrier.arrive.shared.b64 %d9, [%r9], %r6;",
                "mbarrier.arrive.shared.b64 %d9, [%r9], 1; mbarrier.arrive.noComplete.shared.b64 %d10, [%r9], 1;"]
)  # fmt: skip
def test_several_arrivals_return_the_state_of_the_phase(arrival: str) -> None:
    head = ".shared .align 8 .b8 s[8]; mov.u32 %r9, s; setp.ne.u32 %p1, %r1, 0;"
    init = "@!%p1 mbarrier.init.shared.b64 [%r9], 64; bar.sync 0;"
    wait = "AGAIN: mbarrier.test_wait.shared.b64 %p2, [%r9], %d9; @!%p2 bra AGAIN; st.global.u32 [%d4], 1;"
    assert run(f"{head}{init}{arrival}{wait}") == [1] * 32


def test_fns_finds_the_nth_one_of_a_word() -> None:
    def nth(word: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if word >> base & 1 else -1
        places = range(base, 32) if offset > 0 else range(base, -1, -1)
        ones = [place for place in places if word >> place & 1]
        return ones[abs(offset) - 1] if len(ones) >= abs(offset) else -1

    word = 0b1010_0000_0110_0001
    for offset in (-3, -1, 0, 1, 2):
        operands = f"mov.u32 %r2, {word}; mov.s32 %r3, {offset};"
        found = run(f"{operands} fns.b32 %r4, %r2, %r1, %r3; st.global.u32 [%d4], %r4;")
        assert found == [nth(word, base, offset) for base in range(32)]
