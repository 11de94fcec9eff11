# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GEMM example on matrices of more than 2^31 elements: which offsets have 64 bits, and every element on a GPU."""

from typing import Any

import pytest
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig

from tests.kernels.gemm_variants import HOPPER, Parameters, gemm
from tilefold.driver.launches import Changes, read_launches

LARGE_D: Parameters = {"M": 65664, "N": 32768, "K": 64, "STAGES": 2}
LARGE_A: Parameters = {"M": 33554560, "N": 128, "K": 64, "STAGES": 2, "TILE_N": 128}

_VIEWS = {"%mA", "%mB", "%mD", "%gD", "%fromA", "%fromB", "%from"}
"""Views of matrices in global memory in the example."""

CASES: dict[str, Parameters] = {
    "D": LARGE_D,
    "D, dynamic": {**LARGE_D, "DYNAMIC": 1},
    "D, mbarriers": {**LARGE_D, "BLOCKS": 132, "PIPELINE": "mbarriers"},
    "A": LARGE_A,
    "A, dynamic": {**LARGE_A, "DYNAMIC": 1},
}


@pytest.mark.parametrize(
    ("parameters", "views", "total"),
    [
        (LARGE_D, {"%gD"}, "15 in 32 bits, which reach element 4194304 at most; 1 in 64 bits"),
        (LARGE_A, {"%gD", "%fromA", "%from"}, "3 in 64 bits"),
        ({**LARGE_D, "DYNAMIC": 1}, _VIEWS, "in global memory: 16 in 64 bits"),
    ],
    ids=["D", "A", "dynamic"],
)  # fmt: skip
def test_offsets_have_64_bits_where_they_reach_beyond_32(parameters: Parameters, views: set[str], total: str) -> None:
    """Of views, by the names of their results; the source of A's copies is %fromA, in the main loop %from."""
    found = gemm(parameters)
    lines = found.source.text.splitlines()
    remarks = [(remark.place, remark.text) for remark in found.remarks(HOPPER)]
    wide = {lines[place.line - 1].split()[0] for place, text in remarks if place and text.startswith("64-bit offset: ")}
    assert {view for view in wide if view in _VIEWS} == views
    assert any(text.startswith("offsets in global memory: ") and total in text for _, text in remarks)


def _matrix(torch: Any, rows: int, columns: int) -> Any:
    torch.manual_seed(rows)
    return torch.randn(rows, columns, device="cuda", dtype=torch.float16)


def _as_batch(matrix: Any) -> Any:
    """A matrix as the only one of a batch, which is the last mode."""
    rows, columns = matrix.shape
    return matrix.as_strided((rows, columns, 1), (columns, 1, rows * columns))


@pytest.mark.gpu
@pytest.mark.parametrize("parameters", CASES.values(), ids=CASES)
def test_every_element_of_a_product_of_huge_matrices(parameters: Parameters) -> None:
    torch = pytest.importorskip("torch", reason="torch makes and compares the matrices, of up to 9 GB, on the GPU")
    engine = CudaEngine()
    m, n, k = (int(parameters[name]) for name in "MNK")
    torch.manual_seed(0)
    a, b = _matrix(torch, m, k), _matrix(torch, n, k)
    d = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
    found = gemm(parameters)
    (launch,) = read_launches(found.module, found.source, Changes())
    given = {"A": _as_batch(a), "B": _as_batch(b), "D": _as_batch(d), "alpha": 1.0}
    torch.cuda.synchronize()
    engine.launch(found.artifact(launch.kernel, engine.driver.target), LaunchConfig(launch.grid, launch.block), given)
    rows = 2**27 // n
    for first in range(0, m, rows):
        part = slice(first, first + rows)
        expected = (a[part].float() @ b.float().T).half()
        close = torch.isclose(d[part], expected, rtol=2e-3, atol=2e-3)
        assert bool(close.all()), f"rows from {first} on: {int((~close).sum())} elements differ"
