# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.load_ptx`: arguments, names, sizes, memory of the module, and messages."""

from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError

import tilefold
from tests.emit.ptx_interpreter import run_ptx
from tests.ptx.texts import HEAD, STORE_LANE, kernel

SCALE = kernel(
    f"""{STORE_LANE}
    ld.param.f32 %f1, [k];
    ld.param.u32 %r2, [n];
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra END;
    ld.global.f32 %f2, [%d4];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%d4], %f3;
END:
    ret;""",
    ".param .u64 A, .param .f32 k, .param .u32 n",
    "_Z5scalePffi",
)


def test_arrays_and_numbers_are_passed(tmp_path: Path) -> None:
    file = tmp_path / "scale.ptx"
    file.write_text(SCALE)
    program = tilefold.load_ptx(file)
    assert program.kernels == ("_Z5scalePffi",)
    a = np.arange(64, dtype=np.float32)
    result = program["scale"](a, 3, 40).launch(grid=1, block=64)
    assert (a == np.arange(64) * np.where(np.arange(64) < 40, 3, 1)).all()
    assert result.counters.instructions["ld.global.b32"].threads == 40


def test_faults_show_the_line_of_the_text() -> None:
    a = np.zeros(16, np.float32)
    with pytest.raises(TilefoldError, match=r"ld.global.f32 %f2") as error:
        tilefold.load_ptx(SCALE)["scale"](a, 3.0, 40).launch(grid=1, block=64)
    assert error.value.code == Code.SIM_OUT_OF_BOUNDS
    assert str(error.value).startswith("<ptx>:18:5: error[E3202]")


def test_names_sizes_and_arguments_are_checked() -> None:
    program, a = tilefold.load_ptx(SCALE), np.zeros(16, np.float32)
    with pytest.raises(TilefoldError, match="no kernel 'scales'"):
        program["scales"]
    with pytest.raises(TypeError, match="takes 3 arguments, not 1"):
        program["scale"](a)
    with pytest.raises(TilefoldError, match="the launch has no block"):
        program["scale"](a, 1.0, 1).launch(grid=1)
    with pytest.raises(TilefoldError, match="which is not passed as an array"):
        program["scale"](a, a, 1).launch(grid=1, block=32)
    structure = kernel("ret;", ".param .align 4 .b8 S[8]")
    with pytest.raises(TilefoldError, match="is a structure of 8 bytes"):
        tilefold.load_ptx(structure)["k"](b"1234567").launch(grid=1, block=32)
    required = tilefold.load_ptx(kernel("ret;").replace("(.param .u64 A)", "(.param .u64 A) .reqntid 64"))
    with pytest.raises(TilefoldError, match="requires blocks of"):
        required["k"](a).launch(grid=1, block=32)
    required["k"](a).launch(grid=1)


def test_a_kernel_of_several_is_named() -> None:
    two = tilefold.load_ptx(kernel("ret;") + kernel("ret;", name="other").removeprefix(HEAD))
    with pytest.raises(TilefoldError, match="its kernels: k, other; --launch NAME takes one"):
        two.module.find(None)


def test_an_array_of_shared_memory_that_the_launch_sizes() -> None:
    body = f"""{STORE_LANE}
        mov.u32 %r2, dynamic;
        shl.b32 %r3, %r1, 2;
        add.u32 %r4, %r2, %r3;
        st.shared.u32 [%r4], %r1;
        bar.sync 0;
        ld.shared.u32 %r5, [%r2+124];
        st.global.u32 [%d4], %r5;
        ret;"""
    text = kernel(body).replace(HEAD, f"{HEAD}.extern .shared .align 16 .b8 dynamic[];\n")
    a = np.zeros(32, np.int32)
    tilefold.load_ptx(text)["k"](a).launch(grid=1, block=32, shared=128)
    assert (a == 31).all()
    with pytest.raises(TilefoldError) as error:
        tilefold.load_ptx(text)["k"](a).launch(grid=1, block=32, shared=120)
    assert error.value.code == Code.SIM_OUT_OF_BOUNDS


def test_variables_of_the_module_keep_what_launches_write() -> None:
    body = f"""{STORE_LANE}
        mov.u64 %d5, counter;
        cvta.global.u64 %d6, %d5;
        atom.global.add.u32 %r2, [%d6], 1;
        ld.const.u32 %r3, [table+4];
        add.u32 %r4, %r2, %r3;
        st.global.u32 [%d4], %r4;
        ret;"""
    data = ".global .align 4 .u32 counter = 10;\n.const .align 4 .u32 table[2] = {1, 100};\n"
    program, a = tilefold.load_ptx(kernel(body).replace(HEAD, HEAD + data)), np.zeros(1, np.int32)
    for expected in (110, 111):
        program["k"](a).launch(grid=1, block=1)
        assert a[0] == expected


ARITHMETIC = """
    ld.param.u64 %d1, [A]; ld.param.u64 %d2, [B];
    mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 8; add.s64 %d4, %d1, %d3; mul.wide.u32 %d5, %r1, 256;
    add.s64 %d6, %d2, %d5; ld.global.v2.u32 {%r2, %r3}, [%d4]; mov.b64 %d7, {%r2, %r3}; and.b32 %r4, %r3, 63;
"""
CASES = (
    "add.s32 R, %r2, %r3", "sub.s32 R, %r2, %r3", "mul.lo.s32 R, %r2, %r3", "mul.hi.s32 R, %r2, %r3",
    "mul.hi.u32 R, %r2, %r3", "mad.lo.s32 R, %r2, %r3, %r4", "min.s32 R, %r2, %r3", "max.u32 R, %r2, %r3",
    "shl.b32 R, %r2, %r4", "shr.u32 R, %r2, %r4", "shr.s32 R, %r2, %r4", "shr.s32 R, %r2, 40", "shl.b32 R, %r2, 33",
    "and.b32 R, %r2, %r3", "or.b32 R, %r2, %r3", "xor.b32 R, %r2, %r3", "not.b32 R, %r2",
    "bfe.u32 R, %r2, 5, 9", "bfe.s32 R, %r2, 5, 9", "prmt.b32 R, %r2, %r3, 0x5410", "cvt.s32.s8 R, %r2",
    "cvt.u32.u16 R, %r2", "mul.wide.s16 R, H0, H1", "cvt.u32.u64 R, %d7",
)  # fmt: skip
FLOATS = (
    "add.rn.f32 R, %r2, %r3", "sub.rn.f32 R, %r2, %r3", "mul.rn.f32 R, %r2, %r3", "fma.rn.f32 R, %r2, %r3, %r2",
    "min.f32 R, %r2, %r3", "max.NaN.f32 R, %r2, %r3", "neg.f32 R, %r2", "abs.f32 R, %r2", "div.rn.f32 R, %r2, %r3",
    "cvt.rzi.s32.f32 R, %r2", "cvt.rn.f32.s32 R, %r2", "cvt.rn.f32.u32 R, %r2", "cvt.rz.f32.s32 R, %r2",
    "cvt.rni.f32.f32 R, %r2", "add.rn.f16x2 R, %r2, %r3", "fma.rn.f16x2 R, %r2, %r3, %r3",
    "copysign.f32 R, %r2, %r3", "cvt.rn.f16x2.f32 R, %r2, %r3",
)  # fmt: skip


@pytest.mark.parametrize("cases", [CASES, FLOATS], ids=["integers", "floats"])
def test_arithmetic_is_that_of_a_second_reading_of_the_isa(cases: tuple[str, ...]) -> None:
    """Against the interpreter of the tests of emission, bit for bit but for the bits of NaN."""
    lines = [ARITHMETIC, "mov.b32 {%h1, %h2}, %r2;"]
    for number, case in enumerate(cases):
        text = case.replace("R", "%r20").replace("H0", "%h1").replace("H1", "%h2")
        lines += [f"{text};", f"st.global.b32 [%d6+{4 * number}], %r20;"]
    text = kernel("\n".join([*lines, "ret;"]), ".param .u64 A,\n.param .u64 B")
    # the interpreter wants LLVM's form: a line for each instruction, parameters by number
    plain = "\n".join(part.strip() + ";" if part.strip() else "" for part in text.split("{", 1)[1].split(";"))
    numbered = plain.replace("[A]", "[k_param_0]").replace("[B]", "[k_param_1]").replace("\n};", "\n}")
    chance = np.random.default_rng(0)
    a = chance.integers(0, 1 << 32, (64, 2), dtype=np.uint32)
    if cases is FLOATS:
        a[:32] = chance.standard_normal((32, 2)).astype(np.float32).view(np.uint32)
        a[32:36] = np.array([[0, 1 << 31], [0x7F800000, 0xFF800000], [1, 3], [0x7F7FFFFF, 2]], np.uint32)
    ours, theirs = np.zeros((64, 64), np.uint32), np.zeros((64, 64), np.uint32)
    tilefold.load_ptx(text)["k"](a.copy(), ours).launch(grid=1, block=64)
    run_ptx(f".entry k(\n{{\n{numbered}", 1, 64, [a.copy(), theirs])
    for number, case in enumerate(cases):
        one, other = ours[:, number].copy(), theirs[:, number].copy()
        same = one == other
        if cases is FLOATS:
            single = np.isnan(one.view(np.float32)) & np.isnan(other.view(np.float32))
            pairs = [x.view(np.float16).reshape(-1, 2) for x in (one, other)]
            halves = (pairs[0] == pairs[1]) | (np.isnan(pairs[0]) & np.isnan(pairs[1]))
            same |= single | (halves.all(axis=1) if "x2" in case else False)
        assert same.all(), (case, a[~same][:3], one[~same][:3], other[~same][:3])


def test_structures_are_passed_as_bytes_and_reach_memory_by_addresses() -> None:
    body = """
        ld.param.v2.u32 {%r1, %r2}, [S+8];
        ld.param.u64 %d1, [S];
        cvta.to.global.u64 %d2, %d1;
        mov.b64 %d3, S;
        cvta.param.u64 %d4, %d3;
        ld.u32 %r3, [%d4+12];
        mov.u32 %r4, %tid.x;
        mul.wide.u32 %d5, %r4, 4;
        add.s64 %d6, %d2, %d5;
        add.u32 %r5, %r1, %r2;
        add.u32 %r6, %r5, %r3;
        st.global.u32 [%d6], %r6;
        ret;"""
    a = np.zeros(32, np.int32)
    given = np.array([(a.ctypes.data, 5, 7)], [("a", "u8"), ("x", "i4"), ("y", "i4")])
    call = tilefold.load_ptx(kernel(body, ".param .align 8 .b8 S[16]"))["k"](given)
    call.launch(grid=1, block=32, memory=[a])
    assert (a == 19).all()
    report = call.check(grid=1, block=64, memory=[a])
    assert [fault.code for fault in report.faults] == [Code.SIM_OUT_OF_BOUNDS]
    assert "st.global.u32" in str(report)


def test_check_gathers_the_faults_on_copies() -> None:
    a = np.zeros(16, np.float32)
    call = tilefold.load_ptx(SCALE)["scale"](a, 3.0, 16)
    assert call.check(grid=1, block=32).passed
    report = call.check(grid=1, block=32, outputs=["A"])
    assert [fault.code for fault in report.faults][:1] == [Code.SIM_UNINITIALISED]
    with pytest.raises(TilefoldError, match="outputs: 'k' is not an array"):
        call.check(grid=1, block=32, outputs=["k"])
