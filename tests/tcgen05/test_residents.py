# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of a multiprocessor share its columns of tensor memory: two that hold some and ask for more may wait for each
other forever.
"""

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError

import tilefold
from tests.kernels.harness import program_of, simulate
from tilefold.driver.launches import Changes, read_launches

KERNEL = """
gpu.module @kernels {{
  ptx.entry @k() threads(32) shared({shared}) {{
    %slot = ptx.smem.addr 0
    %n = arith.constant {first} : i32
    %more = arith.constant {more} : i32
    ptx.tcgen05.alloc cta_group 1 %slot, %n
    ptx.bar.sync 0
    %a = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32
    %A = ptx.inttoptr %a align 4 : i32 -> !ptx.ptr<tmem>
    ptx.bar.sync 0
    {free}
    ptx.tcgen05.alloc cta_group 1 %slot, %more
    ptx.bar.sync 0
    %b = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32
    %B = ptx.inttoptr %b align 4 : i32 -> !ptx.ptr<tmem>
    ptx.tcgen05.dealloc cta_group 1 %B, %more
    {later}
    ptx.ret
  }}
}}
run.launch @kernels::@k grid({grid}) {{
}}
"""
FREE = "ptx.tcgen05.dealloc cta_group 1 %A, %n"


def run(first: int, more: int, grid: int = 2, shared: int = 16, *, holds: bool = True) -> None:
    free, later = ("", FREE) if holds else (FREE, "")
    program = program_of(KERNEL.format(first=first, more=more, grid=grid, shared=shared, free=free, later=later))
    (launch,) = read_launches(program.module, program.source, Changes())
    simulate(program, launch, "instr")


@pytest.mark.parametrize(("first", "more", "left"), [(256, 32, 0), (128, 64, 0), (256, 256, 0)])
def test_blocks_that_hold_columns_wait_for_each_other(first: int, more: int, left: int) -> None:
    with pytest.raises(TilefoldError) as caught:
        run(first, more)
    assert caught.value.code == Code.SIM_TENSOR_RESIDENT.id
    assert f"while the block has {first}" in str(caught.value)
    assert f"{left} are left" in str(caught.value)
    assert "at once" in (caught.value.hint or "")


def test_columns_suffice_or_are_free_or_no_other_block_is_there() -> None:
    run(256, 32, holds=False)
    run(256, 32, grid=1)
    run(256, 32, shared=200_000)
    run(128, 64, shared=100_000)  # two blocks, and 256 columns left


MANY = """
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 A) .maxntid 384 {{
  .reg .b32 %a, %n; .reg .b64 %p; .reg .f32 %s, %f<{live}>;
  .shared .align 4 .b8 slot[4];
  .reg .pred %q; .reg .b32 %t;
  ld.param.u64 %p, [A];
  cvta.to.global.u64 %p, %p;
  mov.u32 %t, %tid.x;
  ld.global.f32 %f0, [%p];
{before}
  setp.ge.u32 %q, %t, 32;
  @%q bra END;
  mov.u32 %a, slot;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%a], 256;
  ld.shared.u32 %n, [slot];
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%a], 64;
  ld.shared.u32 %t, [slot];
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %n, 256;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  cvt.rn.f32.u32 %s, %n;
{after}
  st.global.f32 [%p], %s;
END:
  ret;
}}
"""


@pytest.mark.parametrize("live", [4, 120])
def test_registers_of_the_machine_code_decide_how_many_blocks_are_neighbours(live: int) -> None:
    before = "\n".join(f"  fma.rn.f32 %f{n + 1}, %f{n}, %f{n}, 0f3F800000;" for n in range(live))
    after = "\n".join(f"  fma.rn.f32 %s, %s, %f{n}, %f{n};" for n in range(live))
    kernel = tilefold.load_ptx(MANY.format(live=live + 1, before=before, after=after))["k"]
    report = kernel(np.zeros(128, np.float32)).check(grid=2, block=384)
    codes = {fault.code for fault in report.faults}
    assert (Code.SIM_TENSOR_RESIDENT.id in codes) == (live < 80)  # two blocks of 384 threads have 80 registers at most
