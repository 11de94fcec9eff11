# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications by warpgroups on a GPU of compute capability 9.0: exact on small integers, equal to the simulator."""

import numpy as np
import pytest

from tests.kernels.warpgroup_gemm import TYPES, Case, multiply
from tilefold.cute.nvgpu import warpgroup
from tilefold.cute.utils import LayoutEnum

pytestmark = pytest.mark.gpu

ROW, COL = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
RMEM = warpgroup.OperandSource.RMEM
CASES = [
    *(Case(types) for types in TYPES),
    *(Case(types, source=RMEM) for types in TYPES),
    *(Case(n=n, k=16, mode="SW32") for n in (8, 136, 248)),
    Case(n=256, k=128, warpgroups=(2, 1), stages=2),
    *(Case(orders=orders, n=128) for orders in ((COL, COL), (ROW, COL), (COL, ROW))),
    *(Case(mode=mode, k=128) for mode in ("INTER", "SW32", "SW64", "SW128")),
    *(Case(mode=mode, orders=(COL, COL), n=128) for mode in ("INTER", "SW32", "SW64", "SW128")),
    *(Case(warpgroups=groups, n=16) for groups in ((4, 1), (1, 2), (1, 4), (2, 2))),
    Case(blocks=(2, 2), orders=(COL, ROW)),
    Case(source=RMEM, warpgroups=(2, 1), blocks=(2, 1), n=32, stages=2),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_product(case: Case) -> None:
    a, b, c = case.operands()
    expected = case.expected(a, b, c)
    multiply(a, b, c, case).launch(grid=1, block=case.threads, device="cuda")
    np.testing.assert_array_equal(c.astype(np.float64), expected)
