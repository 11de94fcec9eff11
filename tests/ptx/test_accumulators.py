# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of a warpgroup that name some of the same registers as accumulators: matrices of zeros, so that the
accumulators keep the values that a thread gives them.
"""

import numpy as np
import pytest
from tilefold.base.errors import Code

import tilefold
from tests.ptx.texts import STORE_LANE, kernel
from tilefold.driver.faults import Report

FENCE, COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
WAIT = f"{COMMIT} wgmma.wait_group.sync.aligned 0;"
BEGIN = f"""{STORE_LANE} .shared .align 128 .b8 as[2304]; mov.u32 %r2, as; shl.b32 %r3, %r1, 4; mov.b32 %r5, 0;
    add.u32 %r3, %r3, %r2; st.shared.v4.b32 [%r3], {{%r5, %r5, %r5, %r5}}; setp.gt.u32 %p1, %r1, 15; @%p1 bra MEET;
    st.shared.v4.b32 [%r3+2048], {{%r5, %r5, %r5, %r5}}; MEET: fence.proxy.async.shared::cta; bar.sync 0;
    shr.u32 %r2, %r2, 4; cvt.u64.u32 %d5, %r2; or.b64 %d5, %d5, {8 << 16 | 16 << 32}; add.s64 %d6, %d5, 128;
    mov.f32 %f1, 0f40A00000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; {FENCE}"""
"""A and B, and 5 in four registers."""
TOUCH = "add.f32 %f9, %f1, 0f3F800000;"
STORE = "st.global.f32 [%d4], %f9; ret;"


def product(registers: str) -> str:
    return f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{registers}}}, %d5, %d6, 1, 1, 1, 0, 0;"


FIRST, SECOND = product("%f1, %f2, %f3, %f4"), product("%f9, %f2, %f3, %f4")


def check(body: str) -> tuple[Report, np.ndarray]:
    A = np.zeros(128, np.float32)
    text = kernel(BEGIN + body).replace("sm_80", "sm_90a")
    launch = tilefold.load_ptx(text)["k"](A)
    report = launch.check(1, 128)
    if report.verdict == "clean":
        launch.launch(1, 128)
    return report, A


def test_two_registers_have_one_place_one_after_the_other() -> None:
    report, A = check(f"{FIRST} {WAIT} {TOUCH} {FENCE} {SECOND} {WAIT} {STORE}")
    assert (report.verdict, report.gaps) == ("clean", ())
    assert (A == 6).all()


@pytest.mark.parametrize(
    ("between", "code"),
    [(f"{COMMIT} {TOUCH} {FENCE}", Code.SIM_IN_FLIGHT), (f"{WAIT} {TOUCH}", Code.SIM_WGMMA_FENCE)],
)
def test_an_accumulator_touched_between_products_is_a_fault(between: str, code: Code) -> None:
    report, _ = check(f"{FIRST} {between} {SECOND} {WAIT} {STORE}")
    assert [fault.code for fault in report.faults] == [code]


@pytest.mark.parametrize(
    ("between", "second", "last"),
    [
        (TOUCH, SECOND, "%f1"),  # the first one's value is still read
        ("mov.f32 %f9, 0f3F800000;", SECOND, "%f9"),  # nothing reads the first product
        (TOUCH, product("%f2, %f9, %f3, %f4"), "%f9"),
    ],
)
def test_registers_that_cannot_have_one_place_are_refused(between: str, second: str, last: str) -> None:
    report, _ = check(f"{FIRST} {WAIT} {between} {FENCE} {second} {WAIT} {STORE.replace('%f9', last)}")
    assert report.verdict == "incomplete"
    assert [gap.code for gap in report.gaps] == [Code.PTX_UNSUPPORTED]
    assert "is a register of two different operands of wgmma" in report.gaps[0].message
