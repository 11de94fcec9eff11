# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the ptx dialect's matrix loads, stores and transpositions (PTX ISA, ldmatrix, stmatrix, movmatrix)."""

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.target import WARP
from ....dialects import ptx
from ..events import Step
from ..faults import Site, site_of
from ..tcgen05.arithmetic import unpacked
from ..translate import Rules, Translator
from ..values import Lanes, Value, varies
from ..warp import Warp


def _check_whole(warp: Warp, site: Site, instruction: str) -> None:
    """A fault (E3208) unless all lanes of a full warp are active."""
    if not warp.is_whole:
        text = f"{warp.active} lanes execute {instruction}; all {WARP} of the warp must"
        warp.fault(Code.SIM_CONVERGENCE, site, None, text, "move it out of divergent control flow")


def _ldmatrix(op: ptx.LdMatrixOp, t: Translator) -> Step:
    pointer, result, site = t.slot(op.ptr), t.slot(op.result), site_of(op)
    instruction = op.instruction
    transposed, high, bits = instruction.trans, instruction.shape == "m16n16", instruction.unpacked_bits
    shared = t.spaces.shared
    access = t.access(op, shared.row, "matrix", 16)
    rows = (16 if high else 8) * op.num.value.data

    def step(warp: Warp) -> None:
        _check_whole(warp, site, "ldmatrix")
        address, before = warp.registers[pointer], warp.mask_state()
        warp.narrow(_first_lanes(warp, rows))  # only these lanes' addresses are used
        if bits is None:
            content = shared.load(warp, access, address)
        else:
            content = unpacked(shared.load_leading(warp, access, address, np.full(warp.active, 2 * bits)), bits)
        warp.restore(before)
        matrices = content.reshape(warp.warps, -1, 16)
        warp.registers[result] = warp.in_lanes(
            _bytes_loaded(matrices) if high else _load_registers(matrices, transposed)
        )

    return step


def _first_lanes(warp: Warp, count: int) -> NDArray[np.bool_]:
    """The first lanes of each active warp."""
    chosen = np.arange(warp.lanes) % WARP < count
    return chosen if warp.mask is None else chosen & warp.mask


def _load_registers(content: NDArray[np.uint8], transposed: bool) -> Lanes:
    """The registers of each lane of some warps, from the rows (warps, rows, 16) of 8x8 matrices of 16-bit elements."""
    matrices = content.view(np.uint16).reshape(-1, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    # Lane t receives of each matrix elements 2*(t % 4) and the next of row t / 4: reading row by row, pair t.
    return _by_lane(np.ascontiguousarray(matrices).view(np.int32), len(content))


def _bytes_loaded(content: NDArray[np.uint8]) -> Lanes:
    """The registers of each lane of some warps, from rows (warps, rows, 16) of 16x16 matrices of bytes, transposed."""
    transposed = content.reshape(-1, 16, 16).transpose(0, 2, 1)
    # Register h of a matrix is of rows 8*h to 8*h + 7 of the transpose: reading row by row, group t of four bytes.
    return _by_lane(np.ascontiguousarray(transposed).view(np.int32), len(content))


def _by_lane(registers: Lanes, warps: int) -> Lanes:
    """Registers that are in the order (warps, registers, lanes of a warp) as an array (lanes, registers)."""
    parts = registers.reshape(warps, -1, WARP).transpose(0, 2, 1)
    return np.ascontiguousarray(parts).reshape(warps * WARP, -1)


def _stmatrix(op: ptx.StMatrixOp, t: Translator) -> Step:
    value, pointer, site = t.slot(op.value), t.slot(op.ptr), site_of(op)
    count, transposed, of_bytes = op.num.value.data, op.trans is not None, op.shape is not None
    kind, shared = t.kind(op.value), t.spaces.shared
    access = t.access(op, shared.row, "matrix store", 16)

    def step(warp: Warp) -> None:
        _check_whole(warp, site, "stmatrix")
        lanes = warp.select(per_warp(warp.registers[value], kind.dtype, (warp.lanes, count)))
        registers = lanes.reshape(-1, WARP, count).transpose(0, 2, 1)
        content = _bytes_to_store(registers) if of_bytes else _to_store(registers, transposed)
        before = warp.mask_state()
        warp.narrow(_first_lanes(warp, 8 * count))  # only these lanes' addresses are used
        shared.store(warp, access, warp.registers[pointer], content)
        warp.restore(before)

    return step


def per_warp(value: Value, dtype: np.dtype[np.generic], shape: tuple[int, int]) -> Lanes:
    """A vector of registers as an array (lanes, count)."""
    lanes = np.asarray(value, dtype)
    return np.ascontiguousarray(np.broadcast_to(lanes, shape))


def _to_store(registers: Lanes, transposed: bool) -> NDArray[np.uint8]:
    """The rows of 8x8 matrices of 16-bit elements, from the registers (warps, count, lanes)."""
    matrices = np.ascontiguousarray(registers).view(np.uint16).reshape(-1, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    return np.ascontiguousarray(matrices).view(np.uint8).reshape(-1, 16)


def _bytes_to_store(registers: Lanes) -> NDArray[np.uint8]:
    """The columns of 16x8 matrices of bytes, from the registers (warps, count, lanes)."""
    # Byte 2*h + j of lane 4*r + c is element 2*c + j of row 8*h + r.
    parts = np.ascontiguousarray(registers).view(np.uint8).reshape(-1, 8, 4, 2, 2)
    columns = parts.transpose(0, 2, 4, 3, 1)  # to (matrix, c, j, h, r)
    return np.ascontiguousarray(columns).reshape(-1, 16)


def _movmatrix(op: ptx.MovMatrixOp, t: Translator) -> Step:
    value, result, site = t.slot(op.value), t.slot(op.result), site_of(op)

    def step(warp: Warp) -> None:
        _check_whole(warp, site, "movmatrix")
        given = warp.registers[value]
        registers = given if varies(given) else np.full(warp.lanes, given, np.int32)
        matrices = np.ascontiguousarray(registers).view(np.uint16).reshape(-1, 8, 8)
        warp.registers[result] = np.ascontiguousarray(matrices.transpose(0, 2, 1)).view(np.int32).ravel()

    return step


PTX_MATRIX: Rules = {ptx.LdMatrixOp: _ldmatrix, ptx.StMatrixOp: _stmatrix, ptx.MovMatrixOp: _movmatrix}
