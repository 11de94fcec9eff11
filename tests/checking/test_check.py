# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold check` and `.check(...)`: each faulty kernel is reported, its corrected twin is not."""

import json
from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.cli.kernels import write
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.cute.nvgpu import cpasync

Capture = pytest.CaptureFixture[str]

FRAME = """\
!g = !tile.tensor<f32, gmem, align<16>, "64:1">
!s = !tile.tensor<f32, smem, align<16>, "64:1">
gpu.module @kernels {{
  tile.kernel @k(%A: !g, %B: !g) threads(64) {{
    %t = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
{body}
    return
  }}
}}
run.launch @kernels::@k grid(1) {{
  run.arg "A" : !g = "arange"
  run.arg "B" : !g = "poison"
  run.check "{condition}"
}}
"""

REVERSED = """\
%s = tile.alloc : !s
%a = tile.load %A(%t)
tile.store %a, %s(%t)
ptx.bar.sync 0
%r = arith.subi %c63, %t : index
%v = tile.load %s(%r)
tile.store %v, %B(%t)
"""
"""Reverses A by way of shared memory."""

NEIGHBOUR = """\
%s = tile.alloc : !s
%other = tile.alloc : !s
%a = tile.load %A(%t)
tile.store %a, %s(%t)
tile.store %a, %other(%t)
ptx.bar.sync 0
%r = arith.subi %c63, %t : index
%v = tile.load %s(%r)
tile.store %v, %B(%t)
"""

AGAIN = (
    REVERSED + "ptx.bar.sync 0\ntile.store %v, %s(%t)\nptx.bar.sync 0\n%w = tile.load %s(%t)\ntile.store %w, %B(%t)\n"
)
"""The same, and then the reversed numbers once more through the same memory."""

HALF = """\
%i = arith.shrui %t, %c1 : index
%a = tile.load %A(%t)
tile.store %a, %B({place})
"""


def kernel(body: str, condition: str = "max(B) >= 0") -> str:
    return FRAME.format(body="\n".join(f"    {line}" for line in body.splitlines()), condition=condition)


def check(path: str, *options: str) -> int:
    return main(["check", path, *options])


FAULTS = [
    pytest.param(
        REVERSED.replace("ptx.bar.sync 0\n", ""),
        REVERSED,
        None,
        ["E3204", "byte 252 of shared tensor %s", "thread (63,0,0) of block (0,0,0) writes it here, later",
         "the write comes too late: put a barrier of the block between it and the read"],
        id="no barrier before the first read",
    ),
    pytest.param(
        AGAIN.replace("ptx.bar.sync 0\ntile.store %v, %s", "tile.store %v, %s"),
        AGAIN,
        None,
        ["E3205", "race: reads shared", "put a barrier of the block between", "writes it here"],
        id="no barrier before memory is used again",
    ),
    pytest.param(
        AGAIN.replace("ptx.bar.sync 0\n%w", "ptx.bar.warp.sync -1\n%r2 = arith.subi %c63, %t : index\n%w").replace(
            "%w = tile.load %s(%t)", "%w = tile.load %s(%r2)"
        ),
        AGAIN,
        None,
        ["E3205", "race: writes shared", "reads it here"],
        id="a barrier of warps where one of the block is needed",
    ),
    pytest.param(
        NEIGHBOUR.replace("arith.subi %c63, %t", "arith.addi %c1, %t"),
        NEIGHBOUR,
        None,
        ["E3202", "block (0,0,0), thread (63,0,0): the coordinate 64 is outside the 64 elements of its mode"],
        id="an access that meets the next allocation",
    ),
    pytest.param(
        HALF.format(place="%i"), HALF.format(place="%t"), None,
        ["E3205", "race: writes global"],
        id="two threads write one element",
    ),
    pytest.param(
        "%a = tile.load %A(%t)\n%b = arith.cmpi ult, %t, %c1 : index\nscf.if %b {\n  tile.store %a, %B(%t)\n}",
        "%a = tile.load %A(%t)\ntile.store %a, %B(%t)",
        None,
        ["k.cute:4:26: error[E3230]: argument B: the launch leaves 63 of 64 elements unwritten",
         "k.cute:11:7: note: this store writes 1 of its elements"],
        id="an output that is written in part",
    ),
    pytest.param(
        "%a = tile.load %A(%t)", "%a = tile.load %A(%t)\ntile.store %a, %B(%t)", None,
        ["k.cute:4:26: error[E3230]: argument B: the launch writes none of its 64 elements"],
        id="an output that is not written",
    ),
    pytest.param(
        "%a = tile.load %A(%t)\n%b = arith.cmpi eq, %t, %c1 : index\nscf.if %b {\n  tile.store %a, %B(%t)\n}\n"
        "%n = arith.cmpi ugt, %t, %c63 : index\nscf.if %n {\n  tile.store %a, %B(%t)\n}",
        "%a = tile.load %A(%t)\ntile.store %a, %B(%t)",
        None,
        ["E3230", "k.cute:15:7: note: no thread executes this store to it"],
        id="a store under a condition that never holds",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("faulty", "right", "condition", "messages"), FAULTS)
def test_a_fault_is_reported_and_its_cure_is_not(
    tmp_path: Path, capsys: Capture, faulty: str, right: str, condition: str | None, messages: list[str]
) -> None:
    assert check(write(tmp_path, kernel(faulty))) == 1
    report = capsys.readouterr().out
    for message in messages:
        assert message in report
    assert report.endswith("1 fault at cute and instr\n"), report
    assert check(write(tmp_path, kernel(right))) == 0
    assert capsys.readouterr().out == "kernels::k: clean: no faults at cute and instr\n"


TWO = """\
%s = tile.alloc : !s
%u = tile.alloc : !s
%a = tile.load %A(%t)
tile.store %a, %s(%t)
%r = arith.subi %c63, %t : index
%v = tile.load %s(%r)
%w = tile.load %u(%t)
%x = arith.addf %v, %w : f32
tile.store %x, %B(%t)
"""


def test_all_faults_are_reported(tmp_path: Path, capsys: Capture) -> None:
    assert check(write(tmp_path, kernel(TWO))) == 1
    report = capsys.readouterr().out
    assert "writes it here, later" in report
    assert "note: nothing in the launch writes this byte" in report
    assert report.endswith("kernels::k: 2 faults at cute and instr\n")


def test_a_check_that_fails_is_a_fault(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, kernel(REVERSED, "B == A"))
    assert check(path) == 1
    report = capsys.readouterr().out
    assert f"{path}:21:3: error[E3104]: B == A: 64 elements: FAILED" in report


def test_reports_for_other_programs(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, kernel(REVERSED.replace("ptx.bar.sync 0\n", "")))
    assert check(path, "--format", "json") == 1
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert fault["code"] == "E3204"
    assert fault["stages"] == ["cute", "instr"]
    assert fault["place"] == {"file": path, "line": 13, "column": 5}
    assert fault["other"] == {"file": path, "line": 10, "column": 5}
    assert check(path, "--format", "sarif", "-o", str(tmp_path / "k.sarif")) == 1
    (run,) = json.loads((tmp_path / "k.sarif").read_text())["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["E3204"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 13, "startColumn": 5}
    assert result["relatedLocations"][0]["message"]["text"].endswith("writes it here, later")


def test_options_that_cannot_be_used(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, kernel(REVERSED))
    assert check(path, "--stage", "sass") == 1
    assert "--stage sass: unknown stage" in capsys.readouterr().err
    assert check(path, "--stage", "all") == 0
    assert "no faults at cute and folded and atoms and index and instr" in capsys.readouterr().out


POINTERS = """\
gpu.module @kernels {
  ptx.entry @k() threads(32) shared(256) {
    %t = ptx.sreg "tid.x"
    %s = ptx.smem.addr 0 bytes 128
    %other = ptx.smem.addr 128 bytes 128
    %size = arith.constant 8 : i32
    %o = arith.muli %t, %size : i32
    %p = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    ptx.st %t, %p align 4 : i32, !ptx.ptr<shared>
    ptx.ret
  }
}
"""


def test_an_address_stays_in_its_allocation_among_the_instructions(tmp_path: Path, capsys: Capture) -> None:
    assert check(write(tmp_path, POINTERS)) == 1
    report = capsys.readouterr().out
    assert "E3202" in report
    assert (
        "thread (16,0,0): writes 4 bytes of shared memory at 0x880 (byte 0 of shared tensor %other (128 bytes)), by an "
        "address computed from shared tensor %s (128 bytes)" in report
    )
    assert check(write(tmp_path, POINTERS.replace("constant 8", "constant 4"))) == 0


@cute.kernel
def turned(a: cute.Tensor, b: cute.Tensor, synchronised: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = a[t]
    if synchronised:
        cute.arch.sync_threads()
    if t < 60:
        b[t] = s[63 - t]


def test_calls_in_python_are_checked() -> None:
    a, b = np.arange(64, dtype=np.float32), np.full(64, -1, np.float32)
    report = turned(a, b, False).check(grid=1, block=64)
    assert [fault.code.id for fault in report.faults] == ["E3204"]
    assert "writes it here, later" in str(report)
    assert "test_check.py" in str(report)
    assert (b == -1).all(), "it works on copies"
    assert turned(a, b, True).check(grid=1, block=64, outputs=[]).passed
    for named in ({}, {"outputs": ["b"]}):
        report = turned(a, b, True).check(grid=1, block=64, **named)
        message = "argument b: the launch leaves 4 of 64 elements unwritten, the first of them at (60)"
        fault = report.faults[0]
        assert fault.message == message
        assert fault.place is not None
        assert fault.place.text[fault.place.column - 1 :].startswith("b: cute.Tensor")
        assert fault.other is not None
        assert fault.other.text.strip() == "b[t] = s[63 - t]"
        assert fault.role == "this store writes 60 of its elements"
    assert turned(a, a, True).check(grid=1, block=64).passed, "an argument that is read keeps its values"
    with pytest.raises(TilefoldError, match="outputs: 'c' is not a tensor argument"):
        turned(a, b, True).check(grid=1, block=64, outputs=["c"])


@pytest.mark.parametrize("stage", ["cute", "index", "instr"])
def test_an_element_of_a_fragment_is_named_at_every_stage(
    stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the fragment has become bytes, by its layout as it was written."""
    path = tmp_path / "k.cute"
    body = '%r = tile.alloc : !tile.tensor<f32, rmem, align<16>, "(2,4):(4,1)">\n'
    path.write_text(kernel(body + "%v = tile.load %r(1, 3)\ntile.store %v, %B(%t)\n"))
    assert check(str(path), "--stage", stage) == 1
    assert "reads element (1,3) of fragment %r (32 bytes), which is unwritten" in capsys.readouterr().out


@cute.kernel
def boxes(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """c = a and b = a by TMA copies, c by a reduction; a box for each block."""
    block, _, _ = cute.arch.block_idx()
    layout = cute.make_layout((8, 32), stride=(32, 1))
    load, from_a = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, (8, 32))
    store, to_b = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, layout, (8, 32))
    add, to_c = cpasync.make_tiled_tma_atom(cpasync.CopyReduceBulkTensorTileS2GOp(), c, layout, (8, 32))
    s = cute.group_modes(cute.make_smem_tensor(layout, cute.Float32, 1024), 0, 2)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    tiles = [cute.group_modes(cute.local_tile(x, (8, 32), (block, 0)), 0, 2) for x in (from_a, to_b, to_c)]
    parts = [
        cpasync.tma_partition(x, 0, cute.make_layout(1), s, g) for x, g in zip((load, store, add), tiles, strict=True)
    ]
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
        cute.copy(load, parts[0][1], parts[0][0], tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)
        cute.copy(store, *parts[1])
        cute.copy(add, *parts[2])
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


def test_outputs_that_tma_copies_store_are_found() -> None:
    a = np.ones((16, 32), np.float32)
    call = boxes(a, np.zeros_like(a), np.zeros_like(a))
    assert call.check(grid=2, block=32).passed, "a reduction reads what it changes"
    faults = {fault.code.id: fault for fault in call.check(grid=1, block=32).faults}
    left = faults["E3230"]
    assert left.message == "argument b: the launch leaves 256 of 512 elements unwritten, the first of them at (8, 0)"
    assert left.other is not None
    assert left.other.text.strip() == "cute.copy(store, *parts[1])"


@cute.kernel
def overlapping(a: cute.Tensor, b: cute.Tensor, stride: cute.Constexpr):
    """b = a by way of shared memory, whose rows are `stride` elements apart."""
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout((2, 32), stride=(stride, 1)), cute.Float32)
    for i in range(2):
        s[i, t] = a[i, t]
    cute.arch.sync_threads()
    for i in range(2):
        b[i, t] = s[i, t]


def test_elements_that_share_memory_are_named() -> None:
    a = np.arange(64, dtype=np.float32).reshape(2, 32)
    (fault,) = overlapping(a, np.zeros_like(a), 16).check(grid=1, block=32, stages=["cute"]).faults
    assert fault.code.id == "E3205"
    assert "; elements (1,0) and (0,16) of the layout (2,32):(16,1) are both there" in fault.message
    assert fault.hint == "use strides that give each element bytes of its own"
    assert overlapping(a, np.zeros_like(a), 32).check(grid=1, block=32).passed
