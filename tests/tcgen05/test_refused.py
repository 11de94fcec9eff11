# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - an instruction stands on one line
"""What no assembler looks into is refused before anything runs: by its noun the code, the place, and a cure."""

from typing import Any

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target

from tests.emit.harness import ptx_of
from tests.sim.harness import entry
from tilefold import cute
from tilefold.cute.nvgpu import tcgen05
from tilefold.cute.utils import blackwell_helpers as sm100

_CELL = "%x = arith.constant 0 : i32\n%c = ptx.inttoptr %x align 4 : i32 -> !ptx.ptr<tmem>\n%s = ptx.smem.addr 0\n"
_ZERO = f"{_CELL}%off = arith.constant false\n%v = ptx.tcgen05.descriptor %s leading 1 stride 64 swizzling 2\n"


def _mma(idesc: int, kind: str = "f16", group: int = 1, scaled: bool = False) -> str:
    name, scales = ("mma.block_scale", ", %c, %c") if scaled else ("mma", "")
    return f'{_ZERO}%d = arith.constant {idesc} : i32\nptx.tcgen05.{name} "{kind}" cta_group {group} %c, %v, %v, %d, %off{scales} : i64'


def _tile(
    operand: str = 'align<1024>, "S<3,3,3> o 0 o ((128,16),1,4):((64,1),0,16)"', mma: str = "Major::K", load: str = ""
) -> str:
    atom = f'#tile.mma_atom<"SM100_MMA_F16BF16_SS<half_t,half_t,float,{64 if load else 128},64,{mma},Major::K>">'
    rows = "(((16,4),64),1,1):(((65536,2097152),1),0,0)" if load else "((128,64),1,1):((65536,1),0,0)"
    body = f'%t = tile.tiled_copy #tile.copy_atom<"{load}", f32> tmem %d' if load else f"tile.gemm {atom} %a, %b, %d"
    return f"""gpu.module @kernels {{
tile.kernel @k() threads(128) {{
%x = tile.tmem_alloc 64 cta_group 1
%a = tile.alloc : !tile.tensor<f16, smem, {operand}>
%b = tile.alloc : !tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o ((64,16),1,4):((64,1),0,16)">
%d = tile.tensor_at %x : !tile.tensor<f32, tmem, align<4>, "{rows}">
{body}
tile.tmem_dealloc %x
tile.return
}}
}}
"""


F16 = 0x8100010
_FIELDS = "docs/blackwell.md has the fields of instruction descriptors"
REFUSED: dict[str, tuple[str, str, str, str]] = {
    "shape of a load": (entry(f'{_CELL}%r = ptx.tcgen05.ld "8x8b" x 1 %c : vector<1xi32>'), "E1010", 'not by "8x8b"', "32x32b, 16x64b, 16x128b"),
    "kind": (entry(_mma(F16, "mxf4")), "E1010", 'not "mxf4"', "the kinds f16, tf32, f8f6f4, i8"),
    "major of fp4": (entry(_mma(0x8880480 | 1 << 15, "mxf4", scaled=True)), "E1010", "elements of 4 bits are K-major", _FIELDS),
    "major of a layout": (_tile(mma="Major::MN"), "E0315", "describes the MN-major operand", "a layout of umma_smem_atom"),
    "swizzle": (entry(f"{_CELL}%v = ptx.tcgen05.descriptor %s leading 1 stride 8 swizzling 3"), "E1010", "not 3", "the form is 0, 1, 2, 4, 6"),
    "M": (entry(_mma(0x5100010)), "E1010", "M = 80", "of one block has 64, 128"),
    "N": (entry(_mma(F16 + (1 << 17), group=2)), "E1010", "N = 72", "16 to 256 in steps of 16"),
    "type": (entry(_mma(F16 | 5 << 7)), "E1010", "the type of A has code 5", "0 (f16), 1 (bf16)"),
    "reserved bit": (entry(_mma(F16 | 1 << 29)), "E1010", "bits 0x20000000 are set", _FIELDS),
    "cta_group mixed": (entry(f"{_CELL}%n = arith.constant 32 : i32\nptx.tcgen05.alloc cta_group 1 %s, %n\nptx.tcgen05.alloc cta_group 2 %s, %n"), "E1010", "of cta_group 1 and of cta_group 2", "have the same cta_group"),
    "columns": (entry(f"{_CELL}%n = arith.constant 48 : i32\nptx.tcgen05.alloc cta_group 1 %s, %n"), "E1010", "48 columns", "allocate 32, 64, 128, 256 or 512"),
    "lanes of a warp": (_tile(load="SM100_TMEM_LOAD_32dp32b1x"), "E0308", "does not hold", "of 16 lanes for 64 rows"),
    "alignment": (_tile('align<512>, "S<3,3,3> o 0 o ((128,16),1,4):((64,1),0,16)"'), "E0312", "known to be aligned to 512", "allocate it with align<1024>"),
    "padding": (entry("%z = arith.constant 0 : i32", '%A: !ptx.ptr<global> align 32, %m: !ptx.tensor_map of "b4x16_p64 A dims (128, 8) strides (64) box (64, 8)"'), "E0323", "64 padded elements", "128 elements"),
    "setmaxnreg": (entry("ptx.setmaxnreg inc 100", threads="128"), "E1003", "100 registers by setmaxnreg", "a multiple of 8 from 24 to 256"),
    "shared memory of sm_120a": (entry("ptx.bar.sync 0", shared=101_377), "E2103", "101377", "at most 101376 on sm_120a"),
}  # fmt: skip
"""The program, the code, a part of the message that names the fault, and one that says the cure."""


@pytest.mark.parametrize("noun", REFUSED)
def test_a_noun_is_refused(noun: str) -> None:
    text, code, said, cure = REFUSED[noun]
    with pytest.raises(TilefoldError) as caught:
        ptx_of(text, Target("sm_120a" if "sm_120a" in noun else "sm_100a"))
    assert caught.value.code == code, str(caught.value)
    assert said in str(caught.value)
    assert cure in str(caught.value)
    assert "k.cute:" in str(caught.value) or "kernel 'k'" in str(caught.value)


@pytest.mark.parametrize(("elements", "scale", "vector"), [
    ((cute.Float4E2M1FN, cute.Float4E2M1FN), cute.Float8E4M3FN, 32),
    ((cute.Float8E4M3FN, cute.Float8E4M3FN), cute.Float8E4M3FN, 32),
    ((cute.Float8E4M3FN, cute.Float4E2M1FN), cute.Float8E8M0FNU, 16),
])  # fmt: skip
def test_scales_that_no_instruction_has(elements: tuple[Any, Any], scale: Any, vector: int) -> None:
    K, one = cute.nvgpu.OperandMajorMode.K, tcgen05.CtaGroup.ONE
    with pytest.raises(TilefoldError, match=f"for {vector} elements") as caught:
        sm100.make_blockscaled_trivial_tiled_mma(*elements, K, K, scale, vector, one, (128, 128))
    assert caught.value.code == "E5002"
