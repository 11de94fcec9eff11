# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that nobody has written: read, they are no fault; used, they are, and the message names both places."""

import re

import numpy as np
import pytest
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import STAGES, Ran, program_of, simulate
from tests.sim.harness import entry, fault, launch
from tilefold.driver.launches import Changes, read_launches

_B = "%B: !ptx.ptr<global> align 16"
_HEAD = """\
%s = ptx.smem.addr 0
%t = gpu.thread_id x
%c0 = arith.constant 0 : index
%c4 = arith.constant 4 : index
%c16 = arith.constant 16 : index
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%o4 = arith.muli %t, %c4 : index
%out = ptx.ptr_add %B, %o4 : !ptx.ptr<global>, index -> !ptx.ptr<global>
"""
_STORE = "ptx.st %r, %out align 4 : i32, !ptx.ptr<global>\n"
_ROWS = """\
%o16 = arith.muli %t, %c16 : index
%row = ptx.ptr_add %s, %o16 : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
%c8 = arith.constant 8 : index
%first = arith.cmpi ult, %t, %c8 : index
%ones = arith.constant dense<1006648320> : vector<4xi32>
scf.if %first {
  ptx.st %ones, %row align 16 : vector<4xi32>, !ptx.ptr<shared>
}
ptx.bar.sync 0
%m = ptx.ldmatrix x 2 %row : vector<2xi32>
%a0 = vector.extract %m[0] : i32 from vector<2xi32>
%a1 = vector.extract %m[1] : i32 from vector<2xi32>
"""
"""Rows 0 to 7 of a matrix of 16 rows of 8 elements are ones, the others nobody writes; `%a1` is of these."""
_MMA = """\
%f0 = arith.constant 0.0 : f32
%d:4 = ptx.mma.sync "SM80_16x8x8_F32F16F16F32_TN" (%a0, %a1), (%a0), (%f0, %f0, %f0, %f0)
"""
_WORD = "%v = ptx.ld %s align 4 : !ptx.ptr<shared> -> i32\n"
_CHOICE = f"""\
{_WORD}%some = arith.cmpi slt, %v, %zero : i32
%c = scf.if %some -> (i32) {{
  %less = arith.subi %v, %one : i32
  scf.yield %less : i32
}} else {{
  scf.yield %zero : i32
}}
"""
_PAIR = """\
%o8 = arith.addi %o4, %o4 : index
%both = ptx.ptr_add %s, %o8 : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
ptx.st %one, %both align 4 : i32, !ptx.ptr<shared>
%p = ptx.ld %both align 8 : !ptx.ptr<shared> -> vector<2xi32>
"""

CASES = {
    "nothing": (_WORD, f"{_WORD}%r = arith.addi %v, %one : i32\n{_STORE}"),
    "rows of a matrix": (f"{_ROWS}%r = arith.addi %a0, %zero : i32\n{_STORE}",
                         f"{_ROWS}%r = arith.addi %a1, %zero : i32\n{_STORE}"),
    "half of a vector": (f"{_PAIR}%r = vector.extract %p[0] : i32 from vector<2xi32>\n{_STORE}",
                         f"{_PAIR}%r = vector.extract %p[1] : i32 from vector<2xi32>\n{_STORE}"),
    "a selection": (f"{_WORD}%no = arith.cmpi eq, %zero, %one : i32\n%r = arith.select %no, %v, %one : i32\n{_STORE}",
                    f"{_WORD}%no = arith.cmpi eq, %zero, %zero : i32\n%r = arith.select %no, %v, %one : i32\n{_STORE}"),
    "bits masked off": (f"{_WORD}%r = arith.andi %v, %zero : i32\n{_STORE}",
                        f"{_WORD}%r = arith.andi %v, %one : i32\n{_STORE}"),
    "a condition": (f"{_WORD}%c = arith.cmpi slt, %v, %zero : i32\n%r = arith.select %c, %one, %one : i32\n{_STORE}",
                    f"{_WORD}%c = arith.cmpi slt, %v, %zero : i32\nscf.if %c {{\nptx.bar.warp.sync -1\n}}"),
    "a branch that chooses": (f"{_CHOICE}%r = arith.andi %c, %zero : i32\n{_STORE}",
                              f"{_CHOICE}%r = arith.addi %c, %zero : i32\n{_STORE}"),
    "an address": (f"{_WORD}%q = ptx.ptr_add %B, %v : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
                   f"{_WORD}%bit = arith.andi %v, %one : i32\n"
                   "%q = ptx.ptr_add %B, %bit : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
                   "%w = ptx.ld %q align 1 : !ptx.ptr<global> -> i8"),
    "text": (_WORD, f'{_WORD}ptx.printf "%d\\0A"(%v) : i32'),
    "a shuffle": (f'{_WORD}%r = ptx.shfl.sync "bfly" %v, %one : i32\n',
                  f'{_WORD}%r = ptx.shfl.sync "bfly" %v, %one : i32\n{_STORE}'),
}  # fmt: skip
"""Of each a program that uses nothing undefined, and one that does."""

_GEMM = """\
!a = !tile.tensor<f16, gmem, align<16>, "(8,8):(8,1)">
!s = !tile.tensor<f16, smem, align<128>, "(16,8):(8,1)">
!c = !tile.tensor<f32, gmem, align<16>, "(16,8):(8,1)">
gpu.module @m {
  tile.kernel @k(%A: !a, %C: !c) threads(32) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %first = arith.cmpi eq, %t, %c0 : index
    %s = tile.alloc : !s
    %top = tile.local_tile %s, "(8,8)", (0, 0)
    scf.if %first {
      tile.copy %A, %top
    }
    ptx.bar.sync 0
    %mma = tile.tiled_mma #tile.mma_atom<"SM80_16x8x8_F32F16F16F32_TN">
    %tAsA = tile.partition_A %mma, %s, %t
    %tBsB = tile.partition_B %mma, %top, %t
    %rA = tile.make_fragment_A %mma, %tAsA
    %rB = tile.make_fragment_B %mma, %tBsB
    %load = tile.tiled_copy #tile.copy_atom<"SM75_U32x2_LDSM_N", f16> A %mma
    %sA = tile.partition_S %load, %s, %t
    %dA = tile.retile_D %load, %rA
    tile.copy %load, %sA, %dA
    tile.copy %tBsB, %rB
    %tC = tile.partition_C %mma, %C, %t
    %rC = tile.make_fragment_C %mma, %tC
    %zero = arith.constant 0.0 : f32
    tile.fill %rC, %zero
    tile.gemm %mma, %rA, %rB, %rC
    %mine = tile.slice %rC, ((_, ROWS), 0, 0)
    %to = tile.slice %tC, ((_, ROWS), 0, 0)
    tile.copy %mine, %to
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !a = "normal(seed=0)"
  run.arg "C" : !c = "poison"
}
"""


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_used_is_no_fault(case: str) -> None:
    launch(entry(_HEAD + CASES[case][0], _B, shared=512), B=np.zeros(32, np.int32))


@pytest.mark.parametrize("case", CASES)
def test_what_is_used_is_a_fault_that_names_both_places(case: str) -> None:
    text = entry(_HEAD + CASES[case][1], _B, shared=512)
    error = fault(text, "E3204", B=np.zeros(32, np.int32))
    read = next(i for i, line in enumerate(text.splitlines(), 1) if re.search(r"ptx.ld.*shared|ldmatrix", line))
    said = rf"ptx.ld\w* at test.cute:{read}:\d+: thread \(\d+,0,0\) reads shared .*, which is unwritten"
    assert re.search(said, error.message), error.message
    assert error.site is not None
    assert error.site.location.startswith("test.cute:")
    assert not error.site.location.startswith(f"test.cute:{read}:")


def test_rows_of_a_product_are_undefined_by_rows() -> None:
    text = _HEAD + _ROWS + _MMA + "ptx.st %d#WHICH, %out align 4 : f32, !ptx.ptr<global>\n"
    out = np.zeros(32, np.float32)
    launch(entry(text.replace("WHICH", "0"), _B, shared=512), B=out)
    assert len(set(out.tolist())) == 1
    assert fault(entry(text.replace("WHICH", "2"), _B, shared=512), "E3204", B=out).thread == (0, 0, 0)


def test_the_thread_is_that_which_uses_it() -> None:
    body = _HEAD + _WORD + "%c8 = arith.constant 8 : index\n%is = arith.cmpi eq, %t, %c8 : index\n"
    body += f"%r = arith.select %is, %v, %one : i32\n{_STORE}"
    assert fault(entry(body, _B, shared=512), "E3204", B=np.zeros(32, np.int32)).thread == (8, 0, 0)


def test_text_is_printed_once() -> None:
    body = f'{_HEAD}ptx.printf "before "() : \n{_WORD}ptx.printf "after "() : '
    result = launch(entry(body, _B, "1", shared=512), block=(1, 1, 1), B=np.zeros(1, np.int32))
    assert result.output == "before after "


def test_another_fault_is_told_as_it_is() -> None:
    body = _HEAD + _WORD + "%far = arith.constant 4096 : i32\n"
    body += "%q = ptx.ptr_add %B, %far : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
    text = entry(body + "%w = ptx.ld %q align 4 : !ptx.ptr<global> -> i32", _B, shared=512)
    fault(text, "E3202", B=np.zeros(8, np.int32))


def _gemm(rows: int, stage: str) -> Ran:
    found = program_of(_GEMM.replace("ROWS", str(rows)))
    (run,) = read_launches(found.module, found.source, Changes())
    return simulate(found, run, stage)


@pytest.mark.parametrize("stage", STAGES)
def test_padded_rows_of_a_gemm(stage: str) -> None:
    ran = _gemm(0, stage)
    a = ran.array("A").astype(np.float32)
    assert np.allclose(ran.array("C")[:8], a @ a.T, atol=1e-2)
    with pytest.raises(SimulationError, match=r"reads shared .* unwritten") as caught:
        _gemm(1, stage)
    assert caught.value.code == "E3204"
