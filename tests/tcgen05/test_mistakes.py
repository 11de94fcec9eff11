# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - an instruction stands on one line
"""Mistakes with tensor memory: each is found at every stage, with the operation and a cure. The twin of each is the
kernel without it, which `test_first` runs.
"""

from typing import NamedTuple

import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.kernels.harness import assert_checks_hold, program_of, simulate
from tests.tcgen05.kernels import PROGRAM
from tilefold.driver.launches import Changes, read_launches


class Mistake(NamedTuple):
    """A change of the kernel, the code and a part of the message that follow from it."""

    old: str
    new: str
    code: Code
    text: str


ALLOC = "      ptx.tcgen05.alloc cta_group 1 %slot, %columns\n"
RELINQUISH = "      ptx.tcgen05.relinquish_alloc_permit cta_group 1\n"
DEALLOC = "      ptx.tcgen05.dealloc cta_group 1 %X, %columns\n"
FREED = f"    scf.if %first_warp {{\n{DEALLOC}    }}\n"
MMA = '      ptx.tcgen05.mma "f16" cta_group 1 %X, %da, %db, %idesc, %fresh : i64\n'
COMMIT = "      ptx.tcgen05.commit cta_group 1 %bar\n"
WAIT = "    ptx.mbarrier.wait %bar, %zero\n"
AFTER = f'{WAIT}    ptx.tcgen05.fence "after_thread_sync"\n'
LOAD = '      %v = ptx.tcgen05.ld "32x32b" x 4 %part : vector<4xi32>\n'
LOADED = '      ptx.tcgen05.wait "ld"\n'
STORED = "      %at = tile.ptr %D(%t, %n)\n      ptx.st %v, %at align 16 : vector<4xi32>, !ptx.ptr<global>\n    }\n"
END = '    ptx.tcgen05.fence "before_thread_sync"\n    ptx.bar.sync 0\n    scf.if %first_warp {\n' + DEALLOC
NUMBER = "    %number = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32\n"


def _number(name: str, value: int) -> str:
    """A number that the verifier does not know."""
    return f"%{name}0 = arith.constant {value - 1} : i32\n%{name} = arith.addi %{name}0, %one : i32\n"


MISTAKES = {
    "48 columns": Mistake(
        ALLOC, f"{_number('nn', 48)}ptx.tcgen05.alloc cta_group 1 %slot, %nn\n", Code.SIM_TENSOR_COLUMNS,
        "48 columns",
    ),
    "a larger allocation later": Mistake(
        ALLOC, f"{ALLOC}{_number('nn', 128)}ptx.tcgen05.alloc cta_group 1 %slot, %nn\n", Code.SIM_TENSOR_COLUMNS,
        "allocates 128 columns of tensor memory after 64",
    ),
    "an allocation behind the permit": Mistake(
        RELINQUISH, RELINQUISH + ALLOC, Code.SIM_TENSOR_COLUMNS, "has given up the permit"
    ),
    "columns run out": Mistake(
        ALLOC, f"{_number('nn', 512)}ptx.tcgen05.alloc cta_group 1 %slot, %nn\n{ALLOC}", Code.SIM_TENSOR_COLUMNS,
        "64 free columns of tensor memory",
    ),
    "one lane allocates": Mistake(
        ALLOC, f"scf.if %first {{\n{ALLOC}}}\n", Code.SIM_CONVERGENCE, "1 lanes execute tcgen05.alloc"
    ),
    "not freed": Mistake(DEALLOC, "", Code.SIM_EXIT, "the block ends with 64 columns of tmem, from column 0 on"),
    "freed twice": Mistake(DEALLOC, DEALLOC * 2, Code.SIM_TENSOR_COLUMNS, "the block has nothing"),
    "half freed": Mistake(
        DEALLOC, f"{_number('nn', 32)}ptx.tcgen05.dealloc cta_group 1 %X, %nn\n", Code.SIM_TENSOR_COLUMNS,
        "frees 32 columns of tensor memory from lane 0, column 0 on; the block has 64 from column 0 on",
    ),
    "another address is freed": Mistake(
        DEALLOC,
        "%y = ptx.ptr_add %X, %one : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>\nptx.tcgen05.dealloc cta_group 1 %y, %columns",
        Code.SIM_TENSOR_COLUMNS, "from lane 0, column 1 on",
    ),
    "the address is read too early": Mistake(
        "    ptx.bar.sync 0\n    ptx.tcgen05.fence \"after_thread_sync\"\n" + NUMBER,
        NUMBER + "    ptx.bar.sync 0\n    ptx.tcgen05.fence \"after_thread_sync\"\n",
        Code.SIM_RACE, "reads shared",
    ),
    "columns beyond the allocation": Mistake(
        LOAD,
        f'{_number("nn", 61)}%q = ptx.ptr_add %part, %nn : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>\n'
        '%v = ptx.tcgen05.ld "32x32b" x 4 %q : vector<4xi32>\n',
        Code.SIM_TENSOR_COLUMNS, "reaches column 64 of tensor memory, which the block has not allocated",
    ),
    "columns beyond the memory": Mistake(
        LOAD,
        f'{_number("nn", 510)}%q = ptx.ptr_add %part, %nn : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>\n'
        '%v = ptx.tcgen05.ld "32x32b" x 4 %q : vector<4xi32>\n',
        Code.SIM_TENSOR_COLUMNS, "reaches column 513 of tensor memory, which has 128 lanes and 512 columns",
    ),
    "the lanes of another warp": Mistake(
        "    %own = ptx.ptr_add %X, %lane",
        f"{_number('nn', 32 << 16)}%own = ptx.ptr_add %X, %nn", Code.SIM_TENSOR_LANES,
        "reaches lane 32 of tensor memory; warp",
    ),
    "a lane within the warp's": Mistake(
        "    %own = ptx.ptr_add %X, %lane",
        f"{_number('nn', 16 << 16)}%own = ptx.ptr_add %X, %nn", Code.SIM_TENSOR_LANES,
        "a shape of 32 lanes begins at lane 16",
    ),
    "different addresses": Mistake(
        "      %column = arith.index_cast %n : index to i32\n",
        "      %c = arith.index_cast %n : index to i32\n      %tt = arith.index_cast %t : index to i32\n"
        "      %column = arith.addi %c, %tt : i32\n",
        Code.SIM_TENSOR_LANES, "the lanes of a warp pass different addresses of tensor memory",
    ),
    "undefined cells": Mistake(
        "    %fresh = arith.constant false\n", "    %fresh = arith.constant true\n", Code.SIM_UNINITIALISED,
        "tensor memory at lane 0, column 0, which is unwritten",
    ),
    "no wait for the commit": Mistake(
        AFTER, '    ptx.bar.sync 0\n    ptx.tcgen05.fence "after_thread_sync"\n', Code.SIM_TENSOR_BUSY,
        "reads lane 0, column 0 of tensor memory, which",
    ),
    "no fence behind the wait": Mistake(AFTER, WAIT, Code.SIM_TENSOR_FENCE, "without a tcgen05 fence in between"),
    "another thread commits": Mistake(
        f"{COMMIT}    }}\n",
        "}\n%next = arith.cmpi eq, %t, %c1 : index\nptx.bar.warp.sync -1\n"
        f"scf.if %next {{\n{COMMIT}}}\n",
        Code.SIM_TENSOR_ISSUE, "commits nothing, and ptx.tcgen05.mma",
    ),
    "all lanes issue": Mistake(
        f"{MMA}{COMMIT}    }}\n",
        f"{COMMIT}    }}\n%pa = tile.ptr %sA(0, 0)\n%pb = tile.ptr %sB(0, 0)\n"
        "%da = ptx.tcgen05.descriptor %pa leading 128 stride 8 swizzling 0\n"
        f"%db = ptx.tcgen05.descriptor %pb leading 64 stride 8 swizzling 0\n{MMA}",
        Code.SIM_TENSOR_ISSUE, "32 lanes of the warp execute tcgen05.mma.cta_group::1.kind::f16, and each issues it",
    ),
    "freed while other warps may load": Mistake(
        LOADED + STORED + END,
        f"{STORED}%c3 = arith.constant 3 : index\n%last = arith.cmpi eq, %warp, %c3 : index\nscf.if %last {{\n{DEALLOC}",
        Code.SIM_TENSOR_BUSY, "frees columns of tensor memory that ptx.tcgen05.ld",
    ),
    "freed by a warp that has not met those that have loaded": Mistake(
        END,
        f"%c3 = arith.constant 3 : index\n%last = arith.cmpi eq, %warp, %c3 : index\nscf.if %last {{\n{DEALLOC}",
        Code.SIM_TENSOR_BUSY, "frees columns of tensor memory that ptx.tcgen05.ld",
    ),
    "a second multiplication before the first is read": Mistake(
        END,
        '    scf.if %first {\n%pa = tile.ptr %sA(0, 0)\n%da = ptx.tcgen05.descriptor %pa leading 128 stride 8 swizzling 0\n'
        '%pb = tile.ptr %sB(0, 0)\n%db = ptx.tcgen05.descriptor %pb leading 64 stride 8 swizzling 0\n'
        f"{MMA}{COMMIT}    }}\n    ptx.mbarrier.wait %bar, %one\n{END}",
        Code.SIM_TENSOR_BUSY, "of tensor memory, which ptx.tcgen05.",
    ),
    "a descriptor of wgmma": Mistake(
        MMA, MMA.replace("%da", "%d").join((
            "%bits = arith.constant 1 : i64\n%shift = arith.constant 46 : i64\n%v1 = arith.shli %bits, %shift : i64\n"
            "%d = arith.xori %da, %v1 : i64\n", "")),
        Code.SIM_DESCRIPTOR, "version 0 in bits 46 to 48",
    ),
    "a wrong N": Mistake(
        "    %idesc = arith.constant 0x8100010 : i32\n", _number("idesc", 0x8100010 + (33 << 17)), Code.SIM_DESCRIPTOR,
        "N = 328; kind::f16 of one block with M = 128 has 8 to 256 in steps of 8",
    ),
    "rows beyond the matrix": Mistake(
        "      %da = ptx.tcgen05.descriptor %pa leading 128 stride 8",
        "      %da = ptx.tcgen05.descriptor %pa leading 8000 stride 8", Code.SIM_DESCRIPTOR,
        "outside the block's shared memory",
    ),
    "no fence of the proxy": Mistake(
        "    ptx.fence.proxy.async\n", "", Code.SIM_PROXY, "fence.proxy.async between them is missing"
    ),
    "an operand overwritten too early": Mistake(
        AFTER, f"    %early = tile.load %A(0, 0)\n    scf.if %first {{\n    tile.store %early, %sA(0, 0)\n    }}\n{AFTER}",
        Code.SIM_IN_FLIGHT, "is still reading it",
    ),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize("mistake", list(MISTAKES.values()), ids=list(MISTAKES))
def test_it_is_found(mistake: Mistake, stage: str) -> None:
    assert PROGRAM.count(mistake.old) == 1, PROGRAM.count(mistake.old)
    program = program_of(PROGRAM.replace(mistake.old, mistake.new))
    (launch,) = read_launches(program.module, program.source, Changes())
    with pytest.raises(TilefoldError) as caught:
        simulate(program, launch, stage)
    known = isinstance(caught.value, ProgramError)  # where a pass has folded constants, before anything runs
    assert caught.value.code == (Code.TENSOR_FORM if known else mistake.code).id, str(caught.value)
    assert mistake.text in str(caught.value)
    assert caught.value.hint or known


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_columns_are_freed_behind_the_barrier_after_loads(stage: str) -> None:
    """Loads without a wait: the release, which is synchronous, comes after them (PTX ISA, Asynchronous Operations)."""
    program = program_of(PROGRAM.replace(LOADED, ""))
    (launch,) = read_launches(program.module, program.source, Changes())
    assert_checks_hold(launch, simulate(program, launch, stage).after)


def test_a_read_before_the_multiplication_says_who_writes_the_cell_later() -> None:
    """Warp 3 multiplies, and warp 0, which does not wait, has loaded by then."""
    text = PROGRAM.replace(AFTER, '    ptx.tcgen05.fence "after_thread_sync"\n')
    last = "    %c127 = arith.constant 127 : index\n    %last = arith.cmpi eq, %t, %c127 : index\n"
    program = program_of(text.replace("    scf.if %first {\n      %pa", f"{last}    scf.if %last {{\n      %pa"))
    (launch,) = read_launches(program.module, program.source, Changes())
    with pytest.raises(TilefoldError) as caught:
        simulate(program, launch, "instr")
    assert caught.value.code == Code.SIM_UNINITIALISED.id
    assert "the write comes too late: put ptx.tcgen05.commit, and a wait at its mbarrier, between" in caught.value.hint
