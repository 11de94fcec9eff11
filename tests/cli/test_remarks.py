# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--remarks`: what the compiler decided, with the lines that it concerns."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import FileLineColLoc

from tests.kernels.harness import EXAMPLES, TARGET, example, program, program_of, target_of
from tilefold.commands.cli import main

Capture = pytest.CaptureFixture[str]

KERNEL = """\
!g = !tile.tensor<f32, gmem, align<16>, "(32,8):(8,1)">
!s = !tile.tensor<f32, smem, align<128>, "(32,32):(32,1)">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !g) threads(32) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %s = tile.alloc : !s
    scf.for %i = %c0 to %c8 step %c1 {
      %v = tile.load %A(%t, %i)
      tile.store %v, %s(%t, %i)
    }
    scf.for %i = %c0 to %c8 step %c1 {
      ptx.bar.sync 0
      %v = tile.load %s(%t, %i)
      tile.store %v, %B(%t, %i)
    } {unroll = 2 : i64}
    %a = tile.slice %A, (%t, _)
    %b = tile.slice %B, (%t, _)
    tile.copy %a, %b
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !g = "zeros"
  run.arg "B" : !g = "poison"
}
"""


def _said(text: str) -> list[tuple[int, str, str]]:
    remarks = program_of(text).remarks(TARGET)
    return [(remark.place.line if remark.place else 0, remark.op, remark.text) for remark in remarks]


@pytest.mark.parametrize(("threads", "named"), [(32, 0), (64, 4)])
def test_partitions_among_other_threads_than_the_block_has(threads: int, named: int) -> None:
    text = example("tiled_copy").read_text().replace("threads(32)", f"threads({threads})")
    first = "%c32 = arith.constant 32 : index\n%first = arith.cmpi ult, %t, %c32 : index\n"
    text = text.replace("%m = gpu.block_id x", f"{first}%m = gpu.block_id x", 1)
    text = re.sub(r"(tile\.copy %\w+, %\w+, %\w+)", r"scf.if %first {\n\1\n}", text)
    found = [text for _, _, text in _said(text) if "threads" in text]
    assert found == [f"shares the tensor among 32 threads, but the block has {threads}"] * named


def test_warps_with_work_of_their_own_share_among_themselves() -> None:
    """The branch of a kernel that waits for other warps has the threads that share the tensor."""
    text = example("tiled_copy").read_text().replace("threads(32)", "threads(64)")
    first = "%c32 = arith.constant 32 : index\n%first = arith.cmpi ult, %t, %c32 : index\n"
    text = text.replace("%m = gpu.block_id x", f"{first}%m = gpu.block_id x", 1)
    text = re.sub(r"(tile\.copy %\w+, %\w+, %\w+)", r"scf.if %first {\n\1\n}", text)
    bar = "%bar = ptx.smem.alloc 8 align 8\n%even = arith.constant 0 : i32\n"
    waiting = f"{bar}scf.if %first {{\nptx.mbarrier.wait %bar, %even\n}}\n"
    assert [told for _, _, told in _said(text) if "but the block has" in told]
    text = text.replace("%m = gpu.block_id x", f"{waiting}%m = gpu.block_id x", 1)
    assert not [told for _, _, told in _said(text) if "but the block has" in told]


@pytest.mark.parametrize(("barrier", "condition", "specialised"), [
    ("ptx.bar.sync 1 threads 32", "%first", True),
    ("ptx.bar.arrive 1 threads 32", "%first", True),
    ("ptx.bar.sync 1 threads 32", "%by_warp", True),
    ('%p = ptx.bar.red "or" %first, 1 threads 32 : i1', "%first", True),
    ("ptx.bar.sync 1 threads 64", "%first", False),  # of the whole block
    ("ptx.bar.sync 1", "%first", False),
    ("ptx.bar.sync 1 threads 32", "%by_block", False),  # every thread takes the same path
])  # fmt: skip
def test_barriers_of_some_warps_mean_work_of_their_own(barrier: str, condition: str, specialised: bool) -> None:
    text = example("tiled_copy").read_text().replace("threads(32)", "threads(64)")
    conditions = """
%c32 = arith.constant 32 : index
%first = arith.cmpi ult, %t, %c32 : index
%warp = arith.divui %t, %c32 : index
%none = arith.constant 0 : index
%by_warp = arith.cmpi eq, %warp, %none : index
%m = gpu.block_id x
%by_block = arith.cmpi eq, %m, %none : index
"""
    text = text.replace("%m = gpu.block_id x", f"{conditions}scf.if {condition} {{\n{barrier}\n}}\n", 1)
    text = re.sub(r"(tile\.copy %\w+, %\w+, %\w+)", r"scf.if %first {\n\1\n}", text)
    assert specialised != any("but the block has" in told for _, _, told in _said(text))


@pytest.mark.parametrize("name", ["tma_copy", "gemm_sm90", "attention_sm90"])
def test_each_tma_copy_is_told_once(name: str) -> None:
    path = example(name)
    told = [remark for remark in program(path).remarks(target_of(path)) if "TMA_" in remark.text]
    assert len({remark.place for remark in told}) == len(told) > 0


NEIGHBOURS = """\
gpu.module @kernels {
  tile.kernel @k(%A: !tile.tensor<ELEMENT, gmem, align<ALIGN>, "(32,8):(8,1)">,
                 %B: !tile.tensor<ELEMENT, gmem, align<64>, "(32,8):(8,1)">) threads(32) {
    %t = gpu.thread_id x
LINES
    return
  }
}
"""


@pytest.mark.parametrize(("element", "align", "columns", "told"), [
    ("f32", 4, (0, 1, 2, 3), ["4 neighbouring loads of 4 bytes would be one of 16, but the address of the tensor is "
                              "known to be a multiple of 4 bytes only"]),
    ("f32", 8, (0, 1, 2, 3), []),  # two of 8 bytes
    ("f32", 4, (0, 1, 4), ["2 neighbouring loads of 4 bytes would be one of 8, but the address of the tensor is known "
                           "to be a multiple of 4 bytes only"]),
    ("f16", 2, (2, 3), ["2 neighbouring loads of 2 bytes would be one of 4, but the address of the tensor is known to "
                        "be a multiple of 2 bytes only"]),
    ("i8", 1, (0, 1), ["2 neighbouring loads of 1 byte would be one of 2, but the address of the tensor is known to be "
                       "a multiple of 1 byte only"]),
    ("f32", 16, (1, 2), []),  # no instruction can take these two
    ("f32", 16, (0, 1, 2), []),  # one of 8 bytes, and one that is left
    ("f32", 4, (0, 2, 4), []),
])  # fmt: skip
def test_neighbouring_loads_that_could_be_one(
    element: str, align: int, columns: tuple[int, ...], told: list[str]
) -> None:
    lines = [f"%v{column} = tile.load %A(%t, {column})" for column in columns]
    lines += [f"tile.store %v{column}, %B(%t, {column})" for column in columns]
    text = NEIGHBOURS.replace("ELEMENT", element).replace("ALIGN", str(align)).replace("LINES", "\n".join(lines))
    said = [(line, each) for line, _, each in _said(text) if "neighbouring" in each]
    assert said == [(5, each) for each in told]


def test_decisions_are_explained_at_their_lines() -> None:
    free = "8 wavefronts each time a warp executes it where 4 would do: bank conflicts"
    apart = "32 sectors each time a warp executes it where 4 would do: not coalesced"
    halves = "32 sectors each time a warp executes it where 16 would do: not coalesced"
    assert _said(KERNEL.replace("(32,32):(32,1)", "(32,32):(36,1)")) == [
        (4, "ptx.entry", "offsets in global memory: 6 in 32 bits, which reach element 255 at most"),
        (10, "scf.for", "unrolled completely, to join its narrow accesses"),
        (11, "tile.load", "2 instructions ld.global.v4.b32"),
        (11, "ld.global.v4.b32", halves),
        (12, "tile.store", "2 instructions st.shared.v4.b32"),
        (12, "st.shared.v4.b32", "4 wavefronts each time a warp executes it, no bank conflicts"),
        (14, "scf.for", "unrolled, 2 iterations at a time: 8 iterations"),
        (16, "tile.load", "1 instruction ld.shared.b32"),
        (16, "ld.shared.b32", "4 wavefronts each time a warp executes it where 1 would do: bank conflicts"),
        (17, "tile.store", "1 instruction st.global.b32"),
        (17, "st.global.b32", apart),
        (21, "tile.atom_call", "128 bits: 4 elements at a time"),
        (21, "ld.global.v4.b32", halves),
        (21, "st.global.v4.b32", halves),
    ]
    assert (12, "st.shared.v4.b32", free.replace("8 wave", "32 wave")) in _said(KERNEL)
    kept = KERNEL.replace("{unroll = 2 : i64}", "{unroll = 1 : i64}")
    assert (14, "scf.for", "stays a loop, in machine code too: 8 iterations") in _said(kept)


def test_what_kept_a_copy_from_being_wider_is_said() -> None:
    narrow = KERNEL.replace('gmem, align<16>, "(32,8):(8,1)"', 'gmem, align<8>, "(32,8):(8,1)"')
    line = next(text for number, op, text in _said(narrow) if (number, op) == (21, "tile.atom_call"))
    assert line.startswith("64 bits: 2 elements at a time; 128 bits rejected: ")
    assert "aligned to 8 bytes" in line


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
@pytest.mark.sampled(6)
def test_every_copy_of_an_example_is_explained_in_order(path: Path) -> None:
    remarks = program(path).remarks(target_of(path))
    lines = [remark.place.line for remark in remarks if remark.place]
    assert lines == sorted(lines)
    assert len(lines) == len(remarks)
    text = path.read_text().splitlines()
    read = {place.line.data for op in program(path).module.walk() if isinstance(place := op.location, FileLineColLoc)}
    copies = {n for n, line in enumerate(text, 1) if line.strip().startswith("tile.copy") and n in read}
    calls = ("tile.atom_call", "tile.tma_call")
    explained = [remark.place.line for remark in remarks if remark.place and remark.op in calls]
    assert copies <= set(explained)
    assert len(set(explained)) == len(explained), "what moves registers before or after an instruction says nothing"
    assert program(path).remarks(target_of(path)) == remarks


def test_text_and_json(tmp_path: Path, capsys: Capture) -> None:
    path = str(example("tiled_copy"))
    assert main(["compile", path, "--remarks", "-o", str(tmp_path / "k.ptx")]) == 0
    said = capsys.readouterr().err
    assert (
        f"{path}:28:5: remark: tile.atom_call: SM80_CP_ASYNC_CACHEALWAYS<uint128_t>: chosen by the tiled copy\n" in said
    )
    assert main(["compile", "--remarks=json", path, "-o", str(tmp_path / "k.ptx")]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().err)
    assert {"file": path, "line": 37, "column": 5, "stage": "instr", "op": "ld.shared.v4.b32",
            "text": "4 wavefronts each time a warp executes it, no bank conflicts"} in found  # fmt: skip
    assert main(["run", path, "--device", "sim", "--remarks", "--grid", "1"]) == 1  # B is not whole; but remarks are
    assert "remark: tile.atom_call" in capsys.readouterr().err


def test_passes_one_by_one(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "k.cute"
    file.write_text(
        KERNEL.replace("    tile.copy", "    // expected-remark@+1 {{128 bits: 4 elements at a time}}\n    tile.copy")
    )
    command = ["opt", str(file), "-p", "fold-layouts,expand-copies"]
    assert main([*command, "--remarks"]) == 0
    assert ":22:5: remark: tile.atom_call: 128 bits" in capsys.readouterr().err
    assert main([*command, "--remarks", "--verify-diagnostics"]) == 0
    assert main([*command, "--verify-diagnostics"]) == 1  # the remark was asked for, and not made
