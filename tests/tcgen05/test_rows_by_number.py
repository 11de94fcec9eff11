# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of a matrix by their numbers, in the words of `tile` and in Python: gather4 and scatter4 of TMA copies."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import STAGES, program_of, simulate
from tilefold import cute
from tilefold.cute.nvgpu import cpasync
from tilefold.driver.launches import Changes, read_launches

LAID = "S<3,2,3> o 0 o (4,32):(32,1)"
_NUMBERS = "\n".join(
    f"%{side}{n}i = tile.load %{side}(%c{n})\n%{side}{n} = arith.index_cast %{side}{n}i : i32 to index"
    for side in ("from", "to")
    for n in range(4)
)
TEXT = f"""// cute-format 1
!A = !tile.tensor<f32, gmem, align<16>, "(40,64):(64,1)">
!I = !tile.tensor<i32, gmem, align<16>, "4:1">
gpu.module @kernels {{
  tile.kernel @move(%A: !A, %from: !I, %to: !I, %D: !A) threads(32) {{
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %column = arith.constant 16 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %bytes = arith.constant 512 : i32
    %s = tile.alloc : !tile.tensor<f32, smem, align<1024>, "{LAID}">
    %bar = ptx.smem.alloc 8 align 8
    %a = tile.tensor_map "SM100_TMA_LOAD_2D_GATHER4" %A smem "{LAID}"
    %d = tile.tensor_map "SM100_TMA_STORE_2D_SCATTER4" %D smem "{LAID}"
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {{
      ptx.mbarrier.init %bar, %one
      ptx.fence.mbarrier_init
{_NUMBERS}
      ptx.mbarrier.arrive.expect_tx %bar, %bytes
      tile.tma_call %a(%column, %from0, %from1, %from2, %from3), %s mbarrier %bar
      ptx.mbarrier.wait %bar, %zero
      tile.tma_call %d(%column, %to0, %to1, %to2, %to3), %s
      ptx.cp.async.bulk.commit_group
      ptx.cp.async.bulk.wait_group 0
    }}
    tile.return
  }}
}}
run.launch @kernels::@move grid(1) {{
  run.arg "A" : !A = "normal(seed=0)"
  run.arg "from" : !I = "integers(-1, 41, seed=1)"
  run.arg "to" : !I = "arange"
  run.arg "D" : !A = "zeros"
}}
"""


def expected(a: Any, rows: Any, to: Any) -> Any:
    """D after the copy of four rows from column 16 on; rows outside A are zero."""
    d, whole = np.zeros_like(a), np.pad(a, ((0, 9), (0, 0)))
    d[to, 16:48] = whole[rows, 16:48]
    return d


def run(text: str, stage: str) -> Any:
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    return simulate(program, launch, stage).after


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage(stage: str) -> None:
    after = run(TEXT, stage)
    assert np.array_equal(after["D"], expected(after["A"], after["from"], after["to"]))


MISTAKES = {
    "no wait": ("      ptx.mbarrier.wait %bar, %zero\n", "", "E3206", "still writing"),
    "the bytes of a row are expected": ("constant 512", "constant 128", "E3207", "mbarrier"),
    "a row before the matrix is stored": (
        "%to0i : i32 to index", "%to0i : i32 to index\n%to0x = arith.subi %to0, %c1 : index", "E3202",
        "before the tensor",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found(name: str) -> None:
    old, new, code, said = MISTAKES[name]
    assert TEXT.count(old) == 1
    text = TEXT.replace(old, new)
    text = text.replace("(%column, %to0, ", "(%column, %to0x, ") if "%to0x" in new else text
    with pytest.raises(SimulationError, match=said) as caught:
        run(text, "cute")
    assert caught.value.code == code, str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("%from2, %from3)", "%from2)", "the map takes a column and four rows, the coordinate 4"),
        ('GATHER4" %A smem "S<3,2,3> o 0 o (4,32):(32,1)"', 'GATHER4" %A smem "S<3,2,3> o 0 o (8,32):(32,1)"', "E0323"),
    ],
)  # fmt: skip
def test_other_forms_are_refused(old: str, new: str, said: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(ProgramError, match=said):
        program_of(TEXT.replace(old, new))


def test_another_target_is_refused() -> None:
    with pytest.raises(TilefoldError, match="sm_90a"):
        program_of(TEXT).ptx(Target("sm_90a"))
    assert "tile::scatter4" in program_of(TEXT).ptx(Target("sm_100a"))


@cute.kernel
def move(A: cute.Tensor, rows: cute.Tensor, to: cute.Tensor, D: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    laid = cute.make_layout((4, 32), stride=(32, 1))
    s = cute.make_smem_tensor(laid, cute.Float32, 128)
    bar = cute.make_smem_tensor(cute.make_layout(1), cute.Int64, 8).iterator
    load, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorGather4G2SOp(), A, laid, (4, 32))
    store, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorScatter4S2GOp(), D, laid, (4, 32))
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 512)
        cpasync.gather4(load, 16, [rows[i] for i in range(4)], s, bar)
        cute.arch.mbarrier_wait(bar, 0)
        cpasync.scatter4(store, s, 16, [to[i] for i in range(4)])
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


def test_python() -> None:
    a, d = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32), np.zeros((40, 64), np.float32)
    rows, to = np.array([3, 39, 3, 0], np.int32), np.array([7, 1, 0, 20], np.int32)
    move(a, rows, to, d).launch(grid=1, block=32, device="sim")
    assert np.array_equal(d, expected(a, rows, to))


def test_python_refuses_other_numbers_of_rows() -> None:
    @cute.kernel
    def wrong(A: cute.Tensor) -> None:
        laid = cute.make_layout((4, 64), stride=(64, 1))
        s = cute.make_smem_tensor(laid, cute.Float32, 128)
        load, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorGather4G2SOp(), A, laid, (4, 64))
        cpasync.gather4(load, 0, [0, 1, 2], s, s.iterator)

    with pytest.raises(TilefoldError, match="an instruction moves 4 rows, but 3 are given"):
        wrong(np.zeros((8, 64), np.float32)).build(32)
