# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX that is read and printed assembles to the same machine code."""

from pathlib import Path

import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.ptx.parser import parse_ptx
from tilefold.compiler.ptx.printing import print_ptx

from tests.kernels.harness import EXAMPLES, program, target_of
from tests.ptx.test_cuda_source import REVERSE, needs_nvrtc
from tests.ptx.test_instructions import FUNCTIONS
from tests.ptx.test_stack import ALLOCATE, FIBONACCI, FREE, MALLOC
from tests.ptx.texts import HEAD, STORE_LANE, kernel
from tests.sass import instructions
from tilefold.commands.cli import main

REGISTERS_DIFFER = frozenset({"attention_sm100", "gemm_blockscaled", "gemm_sm100", "gemm_sm100_dynamic", "umma"})
"""Examples whose printed text has the same instructions in other registers."""


def check_printed(text: str, target: Target, name: str = "") -> None:
    """Checks that a text assembles to the same machine code when it has been read and printed."""
    printed = print_ptx(parse_ptx(text))
    codes = [assemble(each, target).code for each in (printed, text)]
    if name in REGISTERS_DIFFER:
        assert instructions(codes[0]) == instructions(codes[1])
    else:
        assert codes[0] == codes[1]
    assert print_ptx(parse_ptx(printed)) == printed


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.sampled(5)
def test_an_example(path: Path) -> None:
    target = target_of(path)
    check_printed(program(path).ptx(target, lines=False), target, path.stem)


def test_functions_tables_variables_and_directives() -> None:
    data = """.global .align 4 .u32 x[2] = {5, 7};
        .global .align 8 .u64 place[3] = {1, generic(x)+4, 18446744073709551615U};
        .const .align 4 .b8 table[4] = {1, 2, 3, 4};
        .extern .shared .align 16 .b8 dynamic[];
        """
    body = f"""{STORE_LANE}
        .pragma "nounroll";
        .shared .align 4 .b8 s[128];
        ld.global.u64 %d5, [place+8];
        ld.u32 %r2, [%d5];
        ld.const.u8 %h1, [table+2];
        cvt.u32.u16 %r3, %h1;
        {{ .reg .b32 %r2; mov.u32 %r2, 7; st.shared.u32 [s], %r2; }}
        {{ .param .b32 given; .param .b32 back; st.param.b32 [given], %r2;
          call.uni (back), twice, (given); ld.param.b32 %r4, [back]; }}
        mov.f32 %f1, 0f3FC00000; mov.f64 %g1, 0d4000000000000000;
        cvt.rn.f32.f64 %f2, %g1; add.f32 %f3, %f1, %f2; cvt.rzi.s32.f32 %r5, %f3;
        and.b32 %r6, %r1, 1;
    places: .branchtargets ZERO, ONE;
        brx.idx %r6, places;
    ZERO: add.u32 %r4, %r4, %r3;
    ONE: add.u32 %r4, %r4, %r5; st.global.u32 [%d4+-4], %r4; ret;"""
    text = kernel(body).replace(HEAD, HEAD + data + FUNCTIONS).replace("(.param .u64 A)", "(.param .u64 A) .maxntid 64")
    check_printed(text, Target("sm_80"))


def test_recursion_and_memory_of_the_stack_and_the_heap() -> None:
    body = f"""{STORE_LANE}
        stacksave.u64 %d6; alloca.u64 %d7, 64, 32; st.local.u32 [%d7+4], %r1; ld.local.u32 %r2, [%d7+4];
        stackrestore.u64 %d6;
        {{ .param .b32 given; .param .b32 back; st.param.b32 [given], %r2;
          call.uni (back), fib, (given); ld.param.b32 %r3, [back]; }}
        {ALLOCATE} {FREE} ld.global.u64 %d8, [table]; {{ .param .b32 given; .param .b32 back; st.param.b32 [given], %r2;
          kind: .callprototype (.param .b32 _) _ (.param .b32 _);
          call (back), %d8, (given), kind; ld.param.b32 %r3, [back]; }} st.global.u32 [%d4], %r3; ret;"""
    table = ".global .align 8 .u64 table[1] = {fib};\n"
    check_printed(kernel(body).replace(HEAD, HEAD + FIBONACCI + MALLOC + table), Target("sm_80"))


def test_debugging_information_goes_with_the_word_that_announces_it() -> None:
    text = kernel("ret;").replace(".target sm_80", ".target sm_80, debug")
    information = ".section .debug_info\n{\n.b32 2\n.b8 0\n}\n"
    assert ".target sm_80, debug" in text
    assert print_ptx(parse_ptx(text + information)) == print_ptx(parse_ptx(kernel("ret;")))


@needs_nvrtc
def test_what_nvrtc_writes() -> None:
    from tilefold.compiler.machine.nvrtc import compile_cuda

    text = compile_cuda(REVERSE, "reverse.cu", "sm_80", {"FACTOR": "2.0f"})
    lines = [line for line in text.splitlines() if not line.lstrip().startswith((".loc", ".file"))]
    check_printed("\n".join(lines).split(".section")[0], Target("sm_80"))


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(kernel("ret;"))
    assert main(["compile", str(file), "--emit", "ptx"]) == 0
    assert ".entry k(.param .u64 A)" in capsys.readouterr().out
    assert main(["compile", str(file), "--emit", "instr"]) == 1
    assert "PTX is the only form" in capsys.readouterr().err
