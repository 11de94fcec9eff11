# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ldmatrix against the PTX ISA's figure, and the wavefronts that its rows cost."""

import numpy as np
import pytest

from tests.sim.harness import entry, fault, launch, unwritten

ARGS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"


def kernel(num: int, trans: bool, row_bytes: int, offset: int = 0) -> str:
    """Stages 32 rows of 16 bytes from A, `row_bytes` apart in shared memory; stores what ldmatrix gives to B."""
    return entry(
        f"""
        %t = gpu.thread_id x
        %c16 = arith.constant 16 : index
        %pitch = arith.constant {row_bytes} : index
        %out = arith.constant {4 * num} : index
        %go = arith.muli %t, %c16 : index
        %so = arith.muli %t, %pitch : index
        %bo = arith.muli %t, %out : index
        %a = ptx.ptr_add %A, %go : !ptx.ptr<global>, index -> !ptx.ptr<global>
        %b = ptx.ptr_add %B, %bo : !ptx.ptr<global>, index -> !ptx.ptr<global>
        %s0 = ptx.smem.addr {offset}
        %s = ptx.ptr_add %s0, %so : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
        %v = ptx.ld %a align 16 : !ptx.ptr<global> -> vector<8xf16>
        ptx.st %v, %s align 16 : vector<8xf16>, !ptx.ptr<shared>
        ptx.bar.sync 0
        %m = ptx.ldmatrix x {num} {"trans" if trans else ""} %s : vector<{num}xi32>
        ptx.st %m, %b align {4 * num} : vector<{num}xi32>, !ptx.ptr<global>""",
        ARGS,
        shared=32 * row_bytes + offset,
    )


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_fragments(num: int, trans: bool) -> None:
    rows = np.arange(32 * 8, dtype=np.float16).reshape(32, 8)
    out = np.zeros(32 * 2 * num, np.float16)
    result = launch(kernel(num, trans, 16), A=rows.ravel(), B=unwritten(out))
    got = out.reshape(32, num, 2)
    for lane in range(32):
        for i in range(num):
            for j in range(2):
                # PTX ISA, ldmatrix: row lane/4 holds in its columns 2*(lane%4) and the next the fragment of a
                # lane.
                row, column = lane // 4, 2 * (lane % 4) + j
                if trans:
                    row, column = column, row
                assert got[lane, i, j] == rows[8 * i + row, column]
    name = f"ldmatrix.sync.aligned.m8n8.x{num}{'.trans' if trans else ''}.shared.b16"
    assert result.counters.instructions[name].warps == 1


@pytest.mark.parametrize(
    ("row_bytes", "each"),
    [(16, 1), (32, 2), (64, 4), (128, 8), (144, 1), (272, 1), (256, 8)],
    ids=lambda n: str(n),
)
def test_wavefronts(row_bytes: int, each: int) -> None:
    """Eight rows of 16 bytes fill the 32 banks once, if they lie in different banks."""
    for num in (1, 2, 4):
        rows, out = np.zeros(256, np.float16), np.zeros(64 * num, np.float16)
        counters = launch(kernel(num, False, row_bytes), A=rows, B=unwritten(out)).counters
        (access,) = (a for a in counters.accesses if a.kind == "matrix")
        assert (access.transactions, access.minimum) == (each * num, num)
        assert access.excess == (each - 1) * num


def test_the_whole_warp_must_take_part() -> None:
    body = """
        %s = ptx.smem.addr 0
        %m = ptx.ldmatrix x 1 %s : vector<1xi32>"""
    assert "16 lanes execute ldmatrix" in fault(entry(body, "", "16", 64), "E3208", block=(16, 1, 1)).message
    guarded = (
        """
        %t = gpu.thread_id x
        %c8 = arith.constant 8 : index
        %low = arith.cmpi ult, %t, %c8 : index
        scf.if %low {"""
        + body
        + "\n}"
    )
    assert "8 lanes execute ldmatrix" in fault(entry(guarded, shared=64), "E3208").message


def test_rows_are_aligned_and_written() -> None:
    array = np.zeros(256, np.float16)
    fault(kernel(1, False, 24), "E3203", A=array, B=array.copy())
    body = """
        %s = ptx.smem.addr 0
        %m = ptx.ldmatrix x 1 %s : vector<1xi32>
        %e = vector.extract %m[0] : i32 from vector<1xi32>
        %z = arith.constant 0 : i32
        %is = arith.cmpi eq, %e, %z : i32
        scf.if %is {
        }"""
    assert "ptx.ldmatrix at test.cute:5:" in fault(entry(body, shared=64), "E3204").message


def test_rows_without_a_barrier_race() -> None:
    """Each row is written by the lane that supplies its address; then another lane's row is taken."""
    text = kernel(4, False, 16).replace("ptx.bar.sync 0", "")
    turned = text.replace(
        "%m = ptx.ldmatrix x 4  %s",
        """%c1 = arith.constant 1 : index
        %u = arith.xori %t, %c1 : index
        %uo = arith.muli %u, %pitch : index
        %su = ptx.ptr_add %s0, %uo : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
        %m = ptx.ldmatrix x 4 %su""",
    )
    array, out = np.zeros(256, np.float16), np.zeros(256, np.float16)
    fault(turned, "E3205", A=array, B=unwritten(out))


def test_lanes_beyond_the_rows_need_no_address() -> None:
    """ldmatrix x1 uses the addresses of lanes 0 to 7 only."""
    text = kernel(1, False, 16).replace(
        "%m = ptx.ldmatrix x 1  %s",
        """%c8 = arith.constant 8 : index
        %far = arith.constant 1000000 : index
        %low = arith.cmpi ult, %t, %c8 : index
        %d = arith.select %low, %so, %far : index
        %sd = ptx.ptr_add %s0, %d : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
        %m = ptx.ldmatrix x 1 %sd""",
    )
    assert "%sd :" in text
    rows, out = np.arange(256, dtype=np.float16), np.zeros(64, np.float16)
    launch(text, A=rows, B=unwritten(out))
    assert (out == rows[:64]).all()
