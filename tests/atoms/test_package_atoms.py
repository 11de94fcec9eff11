# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A package brings atoms of its own instructions: kernels use them by tile.gemm and tile.copy, at every stage."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.custom import installed_instructions
from tilefold.layout.atoms.entry_points import installed_atoms
from tilefold.layout.atoms.mma_table import mma_atom

from tests.kernels.harness import STAGES, program_of, simulate
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import Program

PACKAGE = Path(__file__).with_name("packaged.py")
SIMULATED = [stage for stage in STAGES if stage != "ptx"]


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Puts the package into a folder as an installer does, and the folder on the path."""
    (tmp_path / "packaged.py").write_text(PACKAGE.read_text())
    info = tmp_path / "packaged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: packaged\nVersion: 1.0\n")
    points = ("atoms", "instructions")
    lines = "".join([f"[tilefold.{group}]\nmine = packaged:{group}\n" for group in points])
    (info / "entry_points.txt").write_text(lines)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "packaged", raising=False)
    for known in (installed_atoms, installed_instructions):
        known.cache_clear()
    yield tmp_path / "packaged.py"
    for known in (installed_atoms, installed_instructions):
        known.cache_clear()


GEMM = """
!ga = !tile.tensor<f16, gmem, align<16>, "(32,32):(1,32)">
!gb = !tile.tensor<f16, gmem, align<16>, "(8,32):(1,8)">
!gd = !tile.tensor<f32, gmem, align<16>, "(32,8):(1,32)">
!sa = !tile.tensor<f16, smem, align<16>, "(32,32):(1,32)">
!sb = !tile.tensor<f16, smem, align<16>, "((8),(16,2)):((1),(8,128))">
gpu.module @m {
  tile.kernel @multiply(%A: !ga, %B: !gb, %D: !gd) threads(32) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %sA = tile.alloc : !sa
    %sB = tile.alloc : !sb
    scf.for %k = %c0 to %c32 step %c1 {
      %a = tile.load %A(%t, %k)
      tile.store %a, %sA(%t, %k)
    }
    scf.for %n = %c0 to %c8 step %c1 {
      %b = tile.load %B(%n, %t)
      tile.store %b, %sB(%n, %t)
    }
    ptx.bar.sync 0
    %mma = tile.tiled_mma #tile.mma_atom<"MINE_32x8x16">
    %a = tile.partition_A %mma, %sA, %t
    %b = tile.partition_B %mma, %sB, %t
    %d = tile.partition_C %mma, %D, %t
    %r = tile.make_fragment_C %mma, %d
    %fresh = arith.constant false
    tile.gemm %mma, %a, %b, %r accumulate %fresh
    tile.copy %r, %d
    tile.return
  }
}
run.launch @m::@multiply grid(1) {
  run.arg "A" : !ga = "normal(seed=0)"
  run.arg "B" : !gb = "normal(seed=1)"
  run.arg "D" : !gd = "poison"
}
"""
COPY = """
!g = !tile.tensor<f16, gmem, align<16>, "(64,2):(1,64)">
!s = !tile.tensor<f16, smem, align<16>, "(64,2):(1,64)">
gpu.module @m {
  tile.kernel @move(%A: !g, %B: !g) threads(128) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %bytes = arith.constant 256 : i32
    %sA = tile.alloc : !s
    %sB = tile.alloc : !s
    %bar = ptx.smem.alloc 8 align 8
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      ptx.mbarrier.init %bar, %one
      ptx.fence.mbarrier_init
    }
    %i = arith.remui %t, %c64 : index
    %j = arith.divui %t, %c64 : index
    %a = tile.load %A(%i, %j)
    tile.store %a, %sA(%i, %j)
    ptx.fence.proxy.async
    ptx.bar.sync 0
    scf.if %first {
      ptx.mbarrier.arrive.expect_tx %bar, %bytes
      tile.copy #tile.copy_atom<"MINE_COPY", f16> %sA, %sB mbarrier %bar
    }
    ptx.mbarrier.wait %bar, %zero
    %b = tile.load %sB(%i, %j)
    tile.store %b, %B(%i, %j)
    tile.return
  }
}
run.launch @m::@move grid(1) {
  run.arg "A" : !g = "normal(seed=0)"
  run.arg "B" : !g = "poison"
}
"""


def after(text: str, stage: str) -> dict[str, np.ndarray]:
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    return dict(simulate(program, launch, stage).after)


@pytest.mark.parametrize("stage", SIMULATED)
def test_a_multiplication_at_every_stage(stage: str) -> None:
    found = after(GEMM, stage)
    a, b, d = (found[name].astype(np.float64) for name in "ABD")
    assert np.allclose(d, a @ b.T, atol=1e-3)


@pytest.mark.parametrize("stage", SIMULATED)
def test_a_copy_at_every_stage(stage: str) -> None:
    found = after(COPY, stage)
    assert (found["A"] == found["B"]).all()


def refusal(text: str) -> TilefoldError:
    with pytest.raises(TilefoldError) as caught:
        after(text, "cute")
    return caught.value


def test_a_missing_wait_is_a_fault() -> None:
    assert "is still writing it" in str(refusal(COPY.replace("    ptx.mbarrier.wait %bar, %zero\n", "")))


def test_a_copy_without_its_mbarrier_is_refused() -> None:
    assert "mbarrier" in str(refusal(COPY.replace(" mbarrier %bar\n", "\n")))


def test_elements_elsewhere_are_refused() -> None:
    text = str(refusal(GEMM.replace('"(32,32):(1,32)">\n!sb', '"(32,32):(32,1)">\n!sb')))
    assert "A of mine.mma has its elements at" in text


@pytest.mark.parametrize(("text", "said"), [(GEMM, "mine.mma {"), (COPY, "mine.copy ")])
def test_the_text_is_in_the_ptx(text: str, said: str) -> None:
    program: Program = program_of(text)
    assert program.ptx(Target("sm_90")).count(said) == 2
    with pytest.raises(TilefoldError) as caught:
        program.ptx(Target("sm_80"))
    assert caught.value.code == Code.TARGET_TOO_OLD.id


def test_an_atom_whose_instruction_has_another_contract(package: Path) -> None:
    changed = package.read_text().replace('MmaAtom("MINE_32x8x16", MULTIPLY)', (
        'MmaAtom("MINE_32x8x16", __import__("dataclasses").replace(MULTIPLY, targets=targets(100, 80)))'
    ))  # fmt: skip
    package.write_text(changed)
    with pytest.raises(TilefoldError) as caught:
        mma_atom("MINE_32x8x16")
    assert caught.value.code == Code.ATOM_PACKAGE.id
    assert "another contract" in caught.value.message
    with pytest.raises(TilefoldError):
        copy_atom("MINE_COPY")
