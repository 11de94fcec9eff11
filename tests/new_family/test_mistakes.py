# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes with the instructions of the family are found at every stage, with the operation and a cure."""

from typing import NamedTuple

import pytest
from tilefold.base.errors import Code
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import program_of, simulate
from tests.new_family.kernels import PROGRAM
from tilefold.driver.launches import Changes, read_launches


class Mistake(NamedTuple):
    """A change of the kernel, the code and a part of the message that follow from it."""

    old: str
    new: str
    code: Code
    text: str


LOAD = 'tile.instruction "acme.load"(%r, %X'
FREE = '    tile.instruction "acme.free"(%address : !ptx.ptr<xmem>)\n'
COPY = '      tile.instruction "acme.copy"(%X, %sC, %bar : !cells, !sc, !ptx.ptr<shared>)\n'
RESULT = "    scf.for %n = %c0 to %c8 step %c1 {\n      %d ="


def _elsewhere(cells: int) -> str:
    return (
        f"%w = arith.constant {cells} : i32\n"
        "%wa = ptx.ptr_add %address, %w : !ptx.ptr<xmem>, i32 -> !ptx.ptr<xmem>\n"
        f'%W = tile.tensor_at %wa : !cells\ntile.instruction "acme.load"(%r, %W'
    )


MISTAKES = {
    "no wait for the load": Mistake(
        '    tile.instruction "acme.wait"()', "    // ", Code.SIM_IN_FLIGHT, "is still writing it"
    ),
    "no wait for the multiplication": Mistake(
        "    ptx.mbarrier.wait %bar, %one ", "    // ", Code.SIM_IN_FLIGHT, "reads lane 0, column 0 while"
    ),
    "no wait for the copy": Mistake(
        "    ptx.mbarrier.wait %bar, %zero ", "    // ", Code.SIM_IN_FLIGHT, "reads lane 0, column 0 while"
    ),
    "the lanes of another warp": Mistake(
        LOAD, _elsewhere(32 << 16), Code.SIM_OUT_OF_BOUNDS, "reaches lane 32 of xmem; warp 0 reaches lanes 0 to 31"
    ),
    "columns beyond the allocation": Mistake(
        LOAD, _elsewhere(32), Code.SIM_OUT_OF_BOUNDS, "reads 4 bytes of xmem memory out of bounds at lane 0, column 32"
    ),
    "undefined cells": Mistake(
        COPY, "ptx.mbarrier.complete_tx %bar, %bytes\n", Code.SIM_UNINITIALISED, "reads xmem lane 0, column 0"
    ),
    "a race": Mistake(
        RESULT,
        f"scf.if %first {{\n ptx.mbarrier.arrive.expect_tx %bar, %bytes\n{COPY}}}\n"
        f"ptx.mbarrier.wait %bar, %zero\n{RESULT}",
        Code.SIM_RACE,
        "race: writes xmem lane 1, column 0, which thread (1,0,0) read",
    ),
    "an operand overwritten too early": Mistake(
        "    ptx.mbarrier.wait %bar, %one ",
        "    %early = tile.load %A(0, %t)\n    tile.store %early, %sA(0, %t)\n    ptx.mbarrier.wait %bar, %one ",
        Code.SIM_IN_FLIGHT,
        "while acme.mma at",
    ),
    "the second operand overwritten too early": Mistake(
        "    ptx.mbarrier.wait %bar, %one ",
        "    %early = tile.load %B(0, 0)\n    scf.if %first {\n      tile.store %early, %sB(0, 0)\n    }\n"
        "    ptx.mbarrier.wait %bar, %one ",
        Code.SIM_IN_FLIGHT,
        "is still reading it",
    ),
    "cells overwritten while they are loaded": Mistake(
        '    tile.instruction "acme.wait"()',
        f"    scf.if %first {{\n ptx.mbarrier.arrive.expect_tx %bar, %bytes\n{COPY}    }}\n"
        '    tile.instruction "acme.wait"()',
        Code.SIM_IN_FLIGHT,
        "writes lane 0, column 0 while acme.load at",
    ),
    "all lanes issue": Mistake(
        '    scf.if %first {\n      tile.instruction "acme.mma"',
        '    %always = arith.constant true\n    scf.if %always {\n      tile.instruction "acme.mma"',
        Code.SIM_CONVERGENCE,
        "32 lanes of the warp execute acme.mma, which is an instruction of an elected thread of a warp",
    ),
    "one lane loads": Mistake(
        f"    {LOAD} : !part, !cells)",
        f"    scf.if %first {{\n    {LOAD} : !part, !cells)\n}}",
        Code.SIM_CONVERGENCE,
        "1 lanes of the warp execute acme.load, which is an instruction of a warp",
    ),
    "no fence of the proxy": Mistake(
        "    ptx.fence.proxy.async\n", "", Code.SIM_PROXY, "fence.proxy.async between them is missing"
    ),
    "not freed": Mistake(FREE, "", Code.SIM_EXIT, "the block ends with 32 columns of xmem, from column 0 on"),
    "freed twice": Mistake(FREE, FREE + FREE, Code.SIM_OUT_OF_BOUNDS, "which no allocation made"),
}


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize("mistake", list(MISTAKES.values()), ids=list(MISTAKES))
@pytest.mark.sampled(9)
def test_it_is_found(mistake: Mistake, stage: str) -> None:
    assert PROGRAM.count(mistake.old) == 1
    program = program_of(PROGRAM.replace(mistake.old, mistake.new))
    (launch,) = read_launches(program.module, program.source, Changes())
    with pytest.raises(SimulationError) as caught:
        simulate(program, launch, stage)
    assert caught.value.code == mistake.code.id
    assert mistake.text in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        ("(8,32):(1,65536)", "(8,32):(1,8)", Code.ATOM_VALUES, "the tensor is (8,32):(1,8)"),
        ("!tile.tensor<f32, xmem", "!tile.tensor<f16, xmem", Code.ATOM_VALUE_WIDTH, "the tensor holds f16"),
        ('"acme.wait"()', '"acme.wail"()', Code.ATOM_UNKNOWN, "no package has an instruction 'acme.wail'"),
        ("(%slot : !slot)", "(%bar : !ptx.ptr<shared>)", Code.ATOM_SPACE, "it must be a tensor in smem"),
        ('rmem, align<16>, "8:1"', 'rmem, align<16>, "4:1"', Code.ATOM_VALUES, "has 8 elements, the tensor is 4:1"),
        (
            '!tile.tensor<f16, smem, align<128>, "(16,8)',
            '!tile.tensor<f16, smem, align<2>, "(16,8)',
            Code.ATOM_OPERAND,
            "B of acme.mma must be aligned to 4 bytes, the tensor is to 2",
        ),
    ],
)
def test_a_wrong_type_is_refused(old: str, new: str, code: Code, text: str) -> None:
    assert old in PROGRAM
    with pytest.raises(ProgramError) as caught:
        program_of(PROGRAM.replace(old, new))
    assert code.id in str(caught.value)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("%q = tile.load %X(0, 0)", "loads and stores do not reach xmem"),
        ("%q = ptx.ld %address align 4 : !ptx.ptr<xmem> -> f32", "loads and stores do not reach !ptx.ptr<xmem>"),
        ("%q = tile.alloc : !cells", "a kernel allocates only in smem and rmem"),
        ('tile.instruction "acme.wait"(%t : index)', "acme.wait has 0 operands: none"),
        ('ptx.instruction "acme.wail"()', "no package has an instruction 'acme.wail'"),
        ('ptx.instruction "acme.free"(%bar : !ptx.ptr<shared>)', "is an address in xmem, not a !ptx.ptr<shared>"),
        ('ptx.instruction "acme.load"(%bar, %address : !ptx.ptr<shared>, !ptx.ptr<xmem>)', "of acme.load is in rmem"),
        ('tile.instruction "acme.mma"(%X, %sA, %sB, %one : !cells, !sa, !sb, i32)', "accumulate of acme.mma is an i1"),
    ],
)
def test_other_operations_do_not_reach_the_memory(line: str, text: str) -> None:
    place = "    // the result\n"
    with pytest.raises(ProgramError) as caught:
        program_of(PROGRAM.replace(place, place + line + "\n"))
    assert text in str(caught.value)
