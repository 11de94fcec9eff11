# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses and atomic operations of 128 bits at once."""

import numpy as np
import pytest
from tilefold.base.target import Target

import tilefold
from tests.ptx.test_printing import check_printed
from tests.ptx.texts import HEAD, STORE_LANE, kernel

SWAP = """mul.wide.u32 %d5, %r1, 16; add.u64 %d5, %d2, %d5; ld.global.b128 %q1, [%d5]; mov.b128 {%d6, %d7}, %q1;
    mov.b128 %q2, {%d7, %d6}; st.global.b128 [%d5], %q2; ret;"""
EXCHANGE = """mov.u64 %d6, 5; cvt.u64.u32 %d7, %r1; mov.b128 %q2, {%d6, %d7};
    atom.global.exch.b128 %q1, [%d2], %q2; mov.b128 {%d8, %d9}, %q1;
    mul.wide.u32 %d5, %r1, 16; add.u64 %d5, %d2, %d5; st.global.u64 [%d5+16], %d9; ret;"""
ADD = """AGAIN: ld.relaxed.gpu.global.b128 %q1, [%d2]; mov.b128 {%d6, %d7}, %q1; add.u64 %d8, %d6, 1;
    cvt.u64.u32 %d9, %r1; add.u64 %d9, %d7, %d9; mov.b128 %q2, {%d8, %d9};
    atom.acq_rel.gpu.global.cas.b128 %q3, [%d2], %q1, %q2; mov.b128 {%d8, %d9}, %q3;
    setp.ne.u64 %p1, %d8, %d6; @%p1 bra AGAIN; setp.ne.u64 %p1, %d9, %d7; @%p1 bra AGAIN; ret;"""


def text(body: str) -> str:
    head = HEAD.replace("8.0", "8.4").replace("sm_80", "sm_90")
    return kernel(STORE_LANE + body, registers=".reg .b128 %q<8>;").replace(HEAD, head)


def run(body: str, elements: int) -> list[int]:
    A = np.arange(elements, dtype=np.int64)
    tilefold.load_ptx(text(body))["k"](A).launch(1, 32)
    return A.tolist()


def test_halves_change_places() -> None:
    assert run(SWAP, 64) == [i ^ 1 for i in range(64)]


def test_exchange_and_compare() -> None:
    made = run(EXCHANGE, 128)
    assert made[0] == 5
    assert sorted([made[1], *made[2:66:2]]) == sorted([1, *range(32)])
    assert run(ADD, 2) == [32, 1 + sum(range(32))]


@pytest.mark.parametrize("body", [SWAP, EXCHANGE, ADD])
def test_what_is_printed_assembles(body: str) -> None:
    check_printed(text(body), Target("sm_90"))
