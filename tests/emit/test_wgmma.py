# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a kernel and its message stand on one line
"""Multiplications by warpgroups: each form is assembled as the instruction that it names, with its operands."""

import re

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.dialects.ptx import WgmmaMmaAsyncOp
from tilefold.layout.atoms.wgmma_smem import MatrixDescriptor
from tilefold.passes.errors import LoweringError

from tests.emit.examples import ARGS, WARPGROUPS, multiplication
from tests.emit.harness import kernel, parse, ptx_of
from tests.emit.ptx_interpreter import run_ptx
from tests.ptxas import installed, needs_ptxas, program
from tests.sass import disassemble, instructions
from tests.warp_specialised import text

SM90A = Target("sm_90a")
MAJORS = ("K", "MN")
FLOAT_N = range(8, 257, 8)
INTEGER_N = (8, 16, 24, *range(32, 257, 16))
SOME_N = (8, 144)
FP8 = ("E4M3", "E5M2")
BYTES = ("S8", "U8")
NAMES = [
    *(f"SM90_64x{n}x16_F32F16F16_SS<Major::K,Major::K>" for n in FLOAT_N),
    *(f"SM90_64x{n}x16_{types}_SS<Major::{a},Major::{b}>"
      for n in SOME_N for types in ("F32F16F16", "F16F16F16", "F32BF16BF16") for a in MAJORS for b in MAJORS),
    *(f"SM90_64x{n}x16_{types}_RS<Major::K,Major::{b}>"
      for n in SOME_N for types in ("F32F16F16", "F16F16F16", "F32BF16BF16") for b in MAJORS),
    *(f"SM90_64x{n}x8_F32TF32TF32_{a}_TN" for n in SOME_N for a in ("SS", "RS")),
    *(f"SM90_64x{n}x32_{d}{a}{b}_{space}_TN"
      for n in SOME_N for d in ("F16", "F32") for a in FP8 for b in FP8 for space in ("SS", "RS")),
    *(f"SM90_64x{n}x32_S32S8U8_SS_TN" for n in INTEGER_N),
    *(f"SM90_64x{n}x32_S32{a}{b}_{space}_TN{clamped}"
      for n in SOME_N for a in BYTES for b in BYTES for space in ("SS", "RS") for clamped in ("", "_SATURATE")),
]  # fmt: skip


def assembled(bodies: list[str], threads: int = 128) -> str:
    """The PTX of kernels, which the assembler takes without a word about multiplications or local memory."""
    kernels = [kernel(body, ARGS, str(threads), name=f"k{i}") for i, body in enumerate(bodies)]
    inside = "".join(text.partition("{\n")[2].rpartition("}\n")[0] for text in kernels)
    ptx = compile_llvm(emit_llvm(parse(f"gpu.module @kernels {{\n{inside}}}\n"), SM90A), SM90A)
    cubin = assemble(ptx, SM90A)
    assert len(cubin.kernels) == len(bodies)
    assert not re.search(r"C75\d\d|wgmma", cubin.log), cubin.log
    assert all(used.stack == used.spill_stores == 0 for used in cubin.kernels.values())
    return ptx


@pytest.mark.parametrize("part", range(8))
@pytest.mark.sampled(1)
def test_each_form_is_assembled(part: int) -> None:
    names = NAMES[part::8]
    ptx = assembled([multiplication(name) for name in names])
    counts = count_instructions(ptx)
    for index, name in enumerate(names):
        (op,) = [
            op for op in parse(kernel(multiplication(name), ARGS, "128")).walk() if isinstance(op, WgmmaMmaAsyncOp)
        ]
        assert counts[f"k{index}"][op.mnemonic()] == 1, name


@pytest.mark.parametrize(("name", "flags", "operands"), [
    ("SM90_64x8x16_F32F16F16_SS<Major::K,Major::MN>", "",
     r"\{%f\d+, %f\d+, %f\d+, %f\d+\}, %rd\d+, %rd\d+, p, 1, 1, 0, 1;"),
    ("SM90_64x8x16_F16F16F16_SS<Major::MN,Major::K>", "negate_a",
     r"\{%r\d+, %r\d+\}, %rd\d+, %rd\d+, p, -1, 1, 1, 0;"),
    ("SM90_64x8x16_F32BF16BF16_RS<Major::K,Major::MN>", "negate_b",
     r"\{%f\d+, .*\}, \{%r\d+, %r\d+, %r\d+, %r\d+\}, %rd\d+, p, 1, -1, 1;"),
    ("SM90_64x8x8_F32TF32TF32_SS_TN", "negate_a negate_b", r"\{%f\d+, .*\}, %rd\d+, %rd\d+, p, -1, -1;"),
    ("SM90_64x8x32_S32S8U8_RS_TN_SATURATE", "",
     r"\{%r\d+, %r\d+, %r\d+, %r\d+\}, \{%r\d+, %r\d+, %r\d+, %r\d+\}, %rd\d+, p;"),
])  # fmt: skip
def test_operands(name: str, flags: str, operands: str) -> None:
    ptx = assembled([multiplication(name, flags)])
    (line,) = re.findall(r"wgmma\.mma_async\S+ (.*)", ptx)
    assert re.fullmatch(operands.replace("%f", "%(?:f|r)"), line), line


@pytest.mark.parametrize(("name", "body"), WARPGROUPS)
@pytest.mark.parametrize("arch", ["sm_90", "sm_100a"])
def test_other_targets_have_no_warpgroups(name: str, body: str, arch: str) -> None:
    if (name, arch) == ("ptx.setmaxnreg", "sm_100a"):
        assert "setmaxnreg.dec" in ptx_of(kernel(body, ARGS, "128"), Target(arch))
        return
    if (name, arch) == ("ptx.tensormap.replace", "sm_100a"):
        assert "tensormap.replace" in ptx_of(kernel(body, ARGS, "128", shared=1024), Target(arch))
        return
    with pytest.raises(LoweringError, match="an instruction of sm_90a only"):
        ptx_of(kernel(body, ARGS, "128"), Target(arch))


@pytest.mark.parametrize("body", [body for _, body in WARPGROUPS if "SPARSE" in body])
def test_a_sparse_matrix_assembles(body: str) -> None:
    ptx = ptx_of(kernel(body, ARGS, "128"), SM90A)
    assert ptx.count("wgmma.mma_async.sp.") == len(assemble(ptx, SM90A).kernels) == 1


def test_the_loop_of_a_matrix_multiplication() -> None:
    """Four multiplications in place for each stage: accumulators are neither moved nor kept in memory."""
    ptx = ptx_of(text(), SM90A)
    loop = next(part for part in re.split(r"^\$L__BB", ptx, flags=re.MULTILINE) if "wgmma.mma_async" in part)
    taken = re.findall(r"wgmma\.mma_async\S+ \{(.*?)\}", loop)
    assert len(taken) == 4
    assert len(set(taken)) == 1
    (registers,) = set(taken)
    assert len(registers.split(", ")) == 128
    moved = set(re.findall(r"mov\.\w+\s+(%\w+)", loop))
    assert not moved & set(registers.split(", "))
    order = re.findall(r"wgmma\.(\w+)", loop)
    assert order == ["fence", *["mma_async"] * 4, "commit_group", "wait_group"]


@needs_ptxas
@pytest.mark.parametrize("running", [0, 1])
def test_the_machine_code_of_a_matrix_multiplication(running: int) -> None:
    ptxas = installed()
    assert ptxas is not None
    cubin = ptxas.assemble(ptx_of(text(running), SM90A), SM90A)
    used = cubin.kernels["k"]
    assert (used.stack, used.spill_stores, used.spill_loads) == (0, 0, 0)
    assert not re.search(r"C75\d\d", cubin.log), cubin.log
    counts = instructions(cubin.code)["k"]
    assert (counts["HGMMA"], counts["USETMAXREG"], counts["LDL"], counts["STL"]) == (4, 2, 0, 0)
    loop = disassemble(cubin.code).partition("HGMMA")[2].rpartition("HGMMA")[0]
    assert not re.search(r"\bMOV\b", loop)


UNIFORM = "%zero = arith.constant 0 : i32\n%n = arith.constant {} : i32\n%p = arith.cmpi {}, %t, %n : i32\n"
INSIDE = "scf.if %p {{\n{}\n}}\n"


@pytest.mark.parametrize(("body", "threads", "said"), [
    (UNIFORM.format(16, "ult") + INSIDE.format("ptx.wgmma.fence"), 128, "16 of the 128 threads of warps 0 to 3 execute 'ptx.wgmma.fence'"),
    (UNIFORM.format(64, "ult") + INSIDE.format("ptx.setmaxnreg dec 40"), 256, "64 of the 128 threads of warps 0 to 3"),
    (UNIFORM.format(160, "uge") + INSIDE.format("ptx.wgmma.commit_group"), 256, "96 of the 128 threads of warps 4 to 7"),
    ("ptx.wgmma.wait_group 0", 192, "warps 4 to 5 are not a whole warpgroup"),
    ("ptx.wgmma.fence", 32, "warps 0 to 0 are not a whole warpgroup"),
])  # fmt: skip
def test_parts_of_warpgroups_are_refused(body: str, threads: int, said: str) -> None:
    with pytest.raises(LoweringError, match=said) as caught:
        ptx_of(kernel(f'%t = ptx.sreg "tid.x"\n{body}', threads=str(threads)), SM90A)
    assert caught.value.code == "E2210"


@pytest.mark.parametrize("body", [
    UNIFORM.format(128, "ult") + INSIDE.format("ptx.setmaxnreg dec 40"),
    "%p = arith.cmpi eq, %i32, %i32 : i32\n" + INSIDE.format("ptx.wgmma.fence"),
    "%p = arith.cmpi ult, %t, %i32 : i32\n" + INSIDE.format("ptx.wgmma.fence"),
], ids=["by warpgroup", "all or none", "known at run time only"])  # fmt: skip
def test_whole_warpgroups_and_unknown_threads_are_not_refused(body: str) -> None:
    assert "sync.aligned" in ptx_of(kernel(f'%t = ptx.sreg "tid.x"\n{body}', ARGS, threads="256"), SM90A)


def test_registers_of_a_warpgroup() -> None:
    wide = multiplication("SM90_64x256x16_F32F16F16_SS<Major::K,Major::K>")
    for threads, body, said in (
        ("512", wide, "take 128 registers of each thread at a time, which has 128 as that many fit a multiprocessor"),
        ("128) max_registers(128", wide, "which has 128 by max_registers"),
        ("384", f"ptx.setmaxnreg dec 144\n{wide}", "which has 144 by setmaxnreg"),
        ("128", _held(2), "take 256 registers of each thread at a time, which has 255"),
    ):
        with pytest.raises(LoweringError, match=said) as caught:
            ptx_of(kernel(body, ARGS, threads), SM90A)
        assert caught.value.code == "E0325"
    assert "wgmma" in ptx_of(kernel(f"ptx.setmaxnreg dec 152\n{wide}", ARGS, "384"), SM90A)
    assert "wgmma" in ptx_of(kernel(_held(2, "ptx.wgmma.wait_group 0"), ARGS, "128"), SM90A)


def _held(count: int, between: str = "") -> str:
    """Multiplications with accumulators of their own, 128 registers each."""
    name = "SM90_64x256x16_F32F16F16_SS<Major::K,Major::K>"
    return "\n".join(
        f"%d{i} = ptx.local.alloc 512 align 16\nptx.wgmma.fence\n"
        f'ptx.wgmma.mma_async "{name}" %d{i}, %i64, %i64, %i1 : i64\nptx.wgmma.commit_group\n{between}'
        for i in range(count)
    )


def test_too_many_multiplications_are_refused_before_llvm_sees_them() -> None:
    once = 'ptx.wgmma.mma_async "SM90_64x256x16_F32F16F16_SS<Major::K,Major::K>" %d, %i64, %i64, %i1 : i64'
    loop = "scf.for %i = %zero to %n step %one : i32 {{\n{}\n}} {{unroll}}"
    start = "%d = ptx.local.alloc 512 align 16\n%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n"
    with pytest.raises(LoweringError, match=r"has 64\d\d\d\d operations once its loops are unrolled"):
        ptx_of(kernel(f"{start}%n = arith.constant 1000 : i32\n{loop.format(once)}", ARGS, "128"), SM90A)


def test_registers_that_no_fragment_holds_are_refused() -> None:
    body = """
        %d = ptx.local.alloc 16 align 16
        %e = ptx.local.alloc 16 align 16
        %c = arith.select %i1, %d, %e : !ptx.ptr<local>
        ptx.wgmma.mma_async "SM90_64x8x16_F32F16F16_SS<Major::K,Major::K>" %c, %i64, %i64, %i1 : i64
        """
    with pytest.raises(LoweringError, match="the compiler cannot tell which fragment"):
        ptx_of(kernel(body, ARGS, "128"), SM90A)


def test_printing_beside_multiplications_is_remarked() -> None:
    printing = kernel(WARPGROUPS[3][1] + '\nptx.printf "x\\n"() :', ARGS, "128")
    (remark,) = [remark for remark in program(printing).remarks(SM90A) if remark.op == "ptx.printf"]
    assert "C7509" in remark.text


KEYS, VALUES = "SM90_64x128x16_F32F16F16_SS<Major::K,Major::K>", "SM90_64x128x16_F32F16F16_RS<Major::K,Major::MN>"


def _each(count: int, pointers: dict[str, int], line: str) -> str:
    """A line for each of so many places in fragments, `%N` at N bytes a place in each `%F`, unrolled."""
    steps = "\n".join(
        f"%o{name} = arith.muli %j, %w{size} : i32\n"
        f"%at{name} = ptx.ptr_add %{name}, %o{name} : !ptx.ptr<local>, i32 -> !ptx.ptr<local>"
        for name, size in pointers.items()
    )
    return f"%count = arith.constant {count} : i32\nscf.for %j = %zero to %count step %one : i32 {{\n{steps}\n{line}\n}} {{unroll}}\n"


def _scoped(text: str) -> str:
    """Lines whose names are their own."""
    return f"scf.if %true {{\n{text}}}\n"


EXPONENTIALS = _scoped(_each(64, {"S": 4}, """%v = ptx.ld %atS align 4 : !ptx.ptr<local> -> f32
%e = ptx.ex2.approx %v : f32
ptx.st %e, %atS align 4 : f32, !ptx.ptr<local>"""))  # fmt: skip
ROUNDED = _scoped(_each(32, {"S": 8, "P": 4}, """%v = ptx.ld %atS align 8 : !ptx.ptr<local> -> vector<2xf32>
%h = arith.truncf %v : vector<2xf32> to vector<2xf16>
ptx.st %h, %atP align 4 : vector<2xf16>, !ptx.ptr<local>"""))  # fmt: skip
SCORES = "\n".join(
    f'ptx.wgmma.mma_async "{KEYS}" %S, %i64, %i64, {"%true" if block else "%false"} : i64' for block in range(8)
)
SUMS = "\n".join(
    f"%p{block}o = arith.constant {16 * block} : i32\n"
    f"%p{block} = ptx.ptr_add %P, %p{block}o : !ptx.ptr<local>, i32 -> !ptx.ptr<local>\n"
    f'ptx.wgmma.mma_async "{VALUES}" %O, %p{block}, %i64, %true : !ptx.ptr<local>'
    for block in range(8)
)
ATTENTION = f"""
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%w4 = arith.constant 4 : i32
%w8 = arith.constant 8 : i32
%true = arith.constant true
%false = arith.constant false
%none = arith.constant 0.0 : f32
%S = ptx.local.alloc 256 align 16
%O = ptx.local.alloc 256 align 16
%P = ptx.local.alloc 128 align 16
{_scoped(_each(64, {"O": 4}, "ptx.st %none, %atO align 4 : f32, !ptx.ptr<local>"))}
ptx.wgmma.fence
{SCORES}
ptx.wgmma.commit_group
ptx.wgmma.wait_group 0
{EXPONENTIALS}{ROUNDED}
scf.for %k = %zero to %i32 step %one : i32 {{
ptx.wgmma.fence
{SCORES}
ptx.wgmma.commit_group
ptx.wgmma.fence
{SUMS}
ptx.wgmma.commit_group
ptx.wgmma.wait_group 1
{EXPONENTIALS}
ptx.wgmma.wait_group 0
{ROUNDED}
}}
{
    _scoped(
        _each(
            64,
            {"O": 4},
            '''%v = ptx.ld %atO align 4 : !ptx.ptr<local> -> f32
%to = ptx.ptr_add %B, %oO : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
ptx.st %v, %to align 4 : f32, !ptx.ptr<global>''',
        )
    )
}
"""
"""A loop of attention: the scores of the next keys are multiplied while the values are, and computed with meanwhile."""


@needs_ptxas
def test_the_machine_code_of_a_loop_of_attention() -> None:
    """A wait is for the registers of the groups that end there alone: the others are neither read nor moved."""
    ptxas = installed()
    assert ptxas is not None
    cubin = ptxas.assemble(ptx_of(kernel(ATTENTION, ARGS, "128"), SM90A), SM90A)
    used = cubin.kernels["k"]
    assert (used.stack, used.spill_stores, used.spill_loads) == (0, 0, 0)
    assert not re.search(r"C75\d\d", cubin.log), cubin.log
    text = disassemble(cubin.code)
    products = list(re.finditer(r"HGMMA.*", text))
    assert len(products) == 24
    loop = text[products[8].start() : products[-1].end()]
    assert not re.search(r"\bMOV\b|LDL|STL", loop)


@pytest.mark.parametrize("rank", [0, 1, 15])
def test_a_descriptor_has_no_rank_of_the_block(rank: int) -> None:
    """In a cluster the uppermost byte of an address in shared memory is the rank, which belongs to no field."""
    (body,) = (body for name, body in WARPGROUPS if name == "ptx.wgmma.descriptor")
    ptx = ptx_of(kernel(body, "%B: !ptx.ptr<global> align 16", "1", 2048), SM90A)
    addressed, count = re.subn(r"\bk\$shared;", f"{rank << 24};", ptx[ptx.index(".entry") :])
    assert count == 1
    written = np.zeros(1, np.int64)
    run_ptx(addressed, 1, 1, [written])
    assert written.view(np.uint64)[0] == MatrixDescriptor.of(1024 >> 4, 1, 64, 3).value
