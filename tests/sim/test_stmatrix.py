# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""stmatrix, movmatrix and ldmatrix of bytes against the PTX ISA's figures."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sim.harness import entry, fault, launch, unwritten

ARGS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
PLACES = """
%t = gpu.thread_id x
%c4 = arith.constant 4 : index
%c16 = arith.constant 16 : index
%o4 = arith.muli %t, %c4 : index
%o16 = arith.muli %t, %c16 : index
%a4 = ptx.ptr_add %A, %o4 : !ptx.ptr<global>, index -> !ptx.ptr<global>
%b4 = ptx.ptr_add %B, %o4 : !ptx.ptr<global>, index -> !ptx.ptr<global>
%a16 = ptx.ptr_add %A, %o16 : !ptx.ptr<global>, index -> !ptx.ptr<global>
%b16 = ptx.ptr_add %B, %o16 : !ptx.ptr<global>, index -> !ptx.ptr<global>
%s0 = ptx.smem.addr 0
%s = ptx.ptr_add %s0, %o16 : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
"""


def stored(form: str, rows: int, registers: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """The rows of 16 bytes that stmatrix writes of four registers in each lane; only those of `rows` are read."""
    body = f"""{PLACES}
%v = ptx.ld %a16 align 16 : !ptx.ptr<global> -> vector<4xi32>
ptx.stmatrix x 4 {form} %v, %s : vector<4xi32>
ptx.bar.sync 0
%r = ptx.ld %s align 16 : !ptx.ptr<shared> -> vector<4xi32>
ptx.st %r, %b16 align 16 : vector<4xi32>, !ptx.ptr<global>"""
    out = np.zeros((rows, 16), np.uint8)
    launch(entry(body, ARGS, shared=512), A=registers.ravel(), B=unwritten(out.ravel()))
    return out


REGISTERS = np.random.default_rng(0).integers(0, 1 << 32, (32, 4), np.uint32)


@pytest.mark.parametrize("trans", [False, True])
def test_stored_matrices(trans: bool) -> None:
    out = stored("trans" if trans else "", 32, REGISTERS).view(np.uint16).reshape(4, 8, 8)
    pairs = REGISTERS.view(np.uint16).reshape(32, 4, 2)
    for lane in range(32):
        for matrix in range(4):
            for j in range(2):
                # PTX ISA, stmatrix: lane t holds elements 2 (t % 4) and the next of row t / 4
                row, column = lane // 4, 2 * (lane % 4) + j
                if trans:
                    row, column = column, row
                assert out[matrix, row, column] == pairs[lane, matrix, j]


def test_stored_matrices_of_bytes() -> None:
    out = stored('trans "m16n8.b8"', 32, REGISTERS).reshape(4, 8, 16)
    parts = REGISTERS.view(np.uint8).reshape(32, 4, 2, 2)
    for lane in range(32):
        for matrix in range(4):
            for half in range(2):
                for j in range(2):
                    # lane t holds elements 2 (t % 4) and the next of rows t / 4 and t / 4 + 8; a column is a row
                    assert out[matrix, 2 * (lane % 4) + j, lane // 4 + 8 * half] == parts[lane, matrix, half, j]


def test_loaded_matrices_of_bytes() -> None:
    body = f"""{PLACES}
%v = ptx.ld %a16 align 16 : !ptx.ptr<global> -> vector<4xi32>
ptx.st %v, %s align 16 : vector<4xi32>, !ptx.ptr<shared>
ptx.bar.sync 0
%m = ptx.ldmatrix x 2 trans "m16n16.b8" %s : vector<4xi32>
ptx.st %m, %b16 align 16 : vector<4xi32>, !ptx.ptr<global>"""
    rows = np.arange(512, dtype=np.uint16).astype(np.uint8).reshape(2, 16, 16)
    out = np.zeros((32, 2, 2, 4), np.uint8)
    launch(entry(body, ARGS, shared=512), A=rows.ravel(), B=unwritten(out.ravel()))
    for lane in range(32):
        for matrix in range(2):
            for half in range(2):
                for j in range(4):
                    # lane t holds elements 4 (t % 4) and the three after it of row t / 4 (+ 8) of the transpose
                    assert out[lane, matrix, half, j] == rows[matrix, 4 * (lane % 4) + j, lane // 4 + 8 * half]


@pytest.mark.parametrize(("bits", "elements"), [(4, "b8x16.b4x16_p64"), (6, "b8x16.b6x16_p32")])
@pytest.mark.parametrize(("form", "rows"), [("x 4", 8), ("x 2 trans", 16)])
def test_loaded_matrices_of_narrow_elements(bits: int, elements: str, form: str, rows: int) -> None:
    """Each becomes a byte. The padding of a row is not read: nobody writes it here."""
    more = """%c8 = arith.constant 8 : i32
%a8 = ptx.ptr_add %a16, %c8 : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%s8 = ptx.ptr_add %s, %c8 : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%w = ptx.ld %a8 align 4 : !ptx.ptr<global> -> i32
ptx.st %w, %s8 align 4 : i32, !ptx.ptr<shared>"""
    body = f"""{PLACES}
%v = ptx.ld %a16 align 8 : !ptx.ptr<global> -> i64
ptx.st %v, %s align 8 : i64, !ptx.ptr<shared>
{more if bits == 6 else ""}
ptx.bar.sync 0
%m = ptx.ldmatrix {form} "m{rows}n16.{elements}" %s : vector<4xi32>
ptx.st %m, %b16 align 16 : vector<4xi32>, !ptx.ptr<global>"""
    given = np.random.default_rng(bits).integers(0, 1 << bits, (32 // rows, rows, 16))
    packed = [
        sum(int(x) << bits * j for j, x in enumerate(row)).to_bytes(16, "little") for row in given.reshape(32, 16)
    ]
    out = np.zeros((32, 4, 4), np.uint8)
    rows_in = np.frombuffer(b"".join(packed), np.uint8)
    launch(entry(body, ARGS, shared=512), A=rows_in.copy(), B=unwritten(out.ravel()))
    for lane in range(32):
        for register in range(4):
            for j in range(4):
                if rows == 8:  # lane t holds elements 4 (t % 4) and the three after it of row t / 4
                    wanted = given[register, lane // 4, 4 * (lane % 4) + j]
                else:  # the same of row t / 4 (+ 8) of the transpose
                    wanted = given[register // 2, 4 * (lane % 4) + j, lane // 4 + 8 * (register % 2)]
                assert out[lane, register, j] == wanted


MOVE = f"""{PLACES}
%v = ptx.ld %a4 align 4 : !ptx.ptr<global> -> i32
%m = ptx.movmatrix trans %v
ptx.st %m, %b4 align 4 : i32, !ptx.ptr<global>"""


def test_movmatrix_transposes() -> None:
    matrix, out = np.arange(64, dtype=np.uint16), np.zeros(64, np.uint16)
    launch(entry(MOVE, ARGS, shared=512), A=matrix, B=unwritten(out))
    assert (out.reshape(8, 8) == matrix.reshape(8, 8).T).all()


@pytest.mark.parametrize("instruction", ["%m = ptx.movmatrix trans %v", "ptx.stmatrix x 1 %w, %s : vector<1xi32>"])
def test_all_lanes_must_take_part(instruction: str) -> None:
    body = f"""{PLACES}
%v = ptx.ld %a4 align 4 : !ptx.ptr<global> -> i32
%w = ptx.ld %a4 align 4 : !ptx.ptr<global> -> vector<1xi32>
%c7 = arith.constant 7 : index
%some = arith.cmpi ult, %t, %c7 : index
scf.if %some {{
{instruction}
}}"""
    given = {name: np.zeros(128, np.uint32) for name in "AB"}
    error = fault(entry(body, ARGS, shared=512), "E3208", **given)
    assert "7 lanes execute" in error.message
