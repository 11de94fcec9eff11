# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registers of PTX for tcgen05: those that a load still writes, and the address in the even block of a pair."""

import pytest
from tilefold.base.errors import TilefoldError

from tests.ptx.test_reader import read

LOAD = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];"
REDUCE = "tcgen05.ld.red.sync.aligned.32x32b.x2.max.f32 {%r1, %r2}, %f1, [%r3];"
WAIT = "tcgen05.wait::ld.sync.aligned;"
BEGIN = "mov.b32 %r3, 0;"


@pytest.mark.parametrize("change", ["mov.b32 %r2, 7;", "add.s32 %r1, %r1, %r2;", LOAD])
def test_a_register_is_not_written_while_a_load_writes_it(change: str) -> None:
    with pytest.raises(TilefoldError, match=r"E1011.*which the tcgen05.ld of line \d+ may still be writing") as caught:
        read(f"{BEGIN}{LOAD}{change}{WAIT} ret;")
    assert "tcgen05.wait::ld" in (caught.value.hint or "")
    assert read(f"{BEGIN}{LOAD}{WAIT}{change}{WAIT} ret;")


def test_what_a_load_reduces_to_is_a_register_of_it() -> None:
    with pytest.raises(TilefoldError, match=r"E1011.*writes %f1"):
        read(f"{BEGIN}{REDUCE} mov.f32 %f1, 0f00000000; {WAIT} ret;")


def test_other_registers_are_written_meanwhile() -> None:
    assert read(
        f"{BEGIN}{LOAD} add.s32 %r4, %r1, %r2; {WAIT} tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32; ret;"
    )


@pytest.mark.parametrize(("mask", "leads"), [(-16777217, True), (-16777232, True), (-16777224, True),
                                             (-16777225, False), (-16, False)])  # fmt: skip
def test_a_mask_that_clears_the_bit_of_the_odd_block_leads_to_the_even_one(mask: int, leads: bool) -> None:
    text = f".shared .align 128 .b8 buffer[32]; mov.b32 %r1, buffer; and.b32 %r2, %r1, {mask}; "
    names = [
        op.name
        for op in read(f"{text} mbarrier.arrive.shared::cluster.b64 _, [%r2]; ret;" if leads else f"{text} ret;")
    ]
    assert ("ptx.pair.leader" in names) == leads
