# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel that measures TMA copies: it brings what a GEMM needs, each byte once, and does nothing else."""

import pytest
from tilefold.base.target import Target

from benchmarks.tma_rate import DEPTH, FILE, ROWS_A, ROWS_B, last_rows
from benchmarks.workloads import Workload
from tests.kernels.harness import simulate
from tests.sass import instructions

SM90A = Target("sm_90a")
SHARED = {"M": 256, "N": 768, "K": 192, "BLOCKS": 4, "STAGES": 2}
OWN = {"M": 512, "N": 1024, "K": 192, "BLOCKS": 4, "STAGES": 2, "OWN": 1}


@pytest.mark.parametrize("size", [
    SHARED, {**SHARED, "CLUSTER": 2}, {**SHARED, "STAGES": 4}, {**SHARED, "CLUSTER": 2, "STAGES": 3}, OWN,
], ids=str)  # fmt: skip
def test_blocks_bring_their_tiles(size: dict[str, int | str]) -> None:
    m, n, k, blocks = (int(size[name]) for name in ("M", "N", "K", "BLOCKS"))
    program, launch = Workload("", FILE, size).loaded()
    ran = simulate(program, launch, "instr", SM90A)
    own = size.get("OWN") == 1
    a, b, brought = (ran.array(name) for name in "ABR")
    for block, (row_a, row_b) in enumerate(last_rows(m, n, blocks, own)):
        assert brought[:, block].tolist() == [a[row_a, k - DEPTH], b[row_b, k - DEPTH]]
    tiles = m // ROWS_A * (1 if own else n // ROWS_B)
    counts = ran.result.counters.instructions
    loads = {name: count for name, count in counts.items() if "tensor.2d" in name}
    assert sum(count.warps for count in loads.values()) == 2 * tiles * k // DEPTH
    assert any("multicast" in name for name in loads) is (size.get("CLUSTER") == 2)


@pytest.mark.parametrize("cluster", [1, 2])
def test_the_machine_code_copies_by_tma(cluster: int) -> None:
    program, _ = Workload("", FILE, {"CLUSTER": cluster}).loaded()
    counts = instructions(program.build(SM90A).cubin)["tma_rate"]
    assert counts["UTMALDG"] == 2
    assert counts["LDL"] == counts["STL"] == 0
