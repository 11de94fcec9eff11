# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses of 256 bits, and shared memory that one instruction fills with zeros (sm_100)."""

import pytest
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import assert_checks_hold, program_of, simulate
from tilefold.driver.launches import Changes, read_launches


def run(text: str, stage: str) -> None:
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    assert_checks_hold(launch, simulate(program, launch, stage).after)


def wide(type: str, element: str, count: int, offset: int = 0) -> str:
    return f"""// cute-format 1
!A = !tile.tensor<{element}, gmem, align<32>, "(40,{count}):({count},1)">
gpu.module @kernels {{
  tile.kernel @copy(%A: !A, %B: !A) threads(32) {{
    %t = gpu.thread_id x
    %c0 = arith.constant {offset} : index
    %p = tile.ptr %A(%t, %c0)
    %q = tile.ptr %B(%t, %c0)
    %v = ptx.ld %p align 32 : !ptx.ptr<global> -> {type}
    ptx.st %v, %q align 32 : {type}, !ptx.ptr<global>
    tile.return
  }}
}}
run.launch @kernels::@copy grid(1) {{
  run.arg "A" : !A = "integers(-9, 9, seed=0)"
  run.arg "B" : !A = "zeros"
  run.check "B[:32] == A[:32]"
}}
"""


@pytest.mark.parametrize("stage", ["cute", "instr", "ptx"])
@pytest.mark.parametrize(("type", "element", "count"), [
    ("vector<8xf32>", "f32", 8), ("vector<4xi64>", "i64", 4), ("vector<16xbf16>", "bf16", 16),
])  # fmt: skip
def test_accesses_of_256_bits(type: str, element: str, count: int, stage: str) -> None:
    run(wide(type, element, count), stage)


def test_their_address_is_a_multiple_of_32() -> None:
    with pytest.raises(SimulationError, match="not a multiple of the 32 bytes accessed"):
        run(wide("vector<8xf32>", "f32", 8, offset=4), "instr")


ZEROS = """// cute-format 1
!B = !tile.tensor<f32, gmem, align<16>, "(64,4):(4,1)">
!S = !tile.tensor<f32, smem, align<16>, "(64,4):(4,1)">
gpu.module @kernels {
  tile.kernel @zeros(%B: !B) threads(64) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %s = tile.alloc : !S
    %p = tile.ptr %s(%t, %c0)
    %n = arith.constant 16 : i64
    ptx.st.bulk %p, %n
    %q = tile.ptr %B(%t, %c0)
    %v = ptx.ld %p align 16 : !ptx.ptr<shared> -> vector<4xf32>
    ptx.st %v, %q align 16 : vector<4xf32>, !ptx.ptr<global>
    tile.return
  }
}
run.launch @kernels::@zeros grid(1) {
  run.arg "B" : !B = "poison"
  run.check "B == 0"
}
"""


@pytest.mark.parametrize("stage", ["cute", "instr", "ptx"])
def test_shared_memory_is_filled_with_zeros(stage: str) -> None:
    run(ZEROS, stage)


@pytest.mark.parametrize(("size", "said"), [
    (12, "fills 12 bytes, which is not a multiple of 8"), (24, "race"), (8, "undefined"),
])  # fmt: skip
def test_mistakes_with_zeros(size: int, said: str) -> None:
    with pytest.raises(SimulationError, match=said):
        run(ZEROS.replace("constant 16 : i64", f"constant {size} : i64"), "instr")
