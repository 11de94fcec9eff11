# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications by warpgroups: each form is assembled as the instruction that it names, with its operands."""

import re

import pytest
from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.dialects.ptx import WgmmaMmaAsyncOp
from tilefold.passes.errors import LoweringError

from tests.emit.examples import ARGS, WARPGROUPS, multiplication
from tests.emit.harness import kernel, parse, ptx_of

SM90A = Target("sm_90a")
MAJORS = ("K", "MN")
FLOAT_N = range(8, 257, 8)
INTEGER_N = (8, 16, 24, *range(32, 257, 16))
SOME_N = (8, 24, 144, 256)
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
    with pytest.raises(LoweringError, match="an instruction of sm_90a alone"):
        ptx_of(kernel(body, ARGS, "128"), Target(arch))
