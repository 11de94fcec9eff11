# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator's rules on memory that keeps who touches which bytes: those that contracts declare, and no others."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import LayoutError
from tilefold.base.spaces import GMEM, RMEM, SMEM
from tilefold.layout.algebra.core import Layout, LayoutLike
from tilefold.layout.algebra.product import tile_to_shape
from tilefold.layout.atoms.contract import Major, Named, Operand
from tilefold.layout.atoms.copy_atom import CopyAtom
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.copy_table import COPY_ATOMS
from tilefold.layout.atoms.instructions import AutoMove, BulkCopy, MovMatrix, WideMove
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.atoms.numbers import MmaOperation
from tilefold.layout.atoms.wgmma_smem import operand_descriptor, wgmma_smem_atom
from tilefold.layout.text.layouts import to_text
from tilefold.runtime.sim.atoms.mma_arithmetic import DTYPES, executor
from tilefold.runtime.sim.memory.journal import Journal
from tilefold.runtime.sim.memory.matrices import ROW, matrix_of
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.sim.harness import launch


@dataclass(slots=True)
class Trace(Journal):
    """By space and whether it is written, the bytes that were touched by copies, each with the thread."""

    touched: dict[tuple[str, bool], set[tuple[int, int]]] = field(
        default_factory=dict[tuple[str, bool], set[tuple[int, int]]]
    )

    def see(self, space: str, warp: Any, site: Any, rows: NDArray[Any], width: int, *, writes: bool) -> None:
        if site.op != "tile.copy":
            return
        threads = (warp.first_thread + warp.lane_numbers()).tolist()
        for thread, row in zip(threads, np.asarray(rows).tolist(), strict=True):
            found = self.touched.setdefault((space, writes), set())
            found.update((thread, byte) for byte in range(row * width, (row + 1) * width))


def bits_of(name: str) -> int:
    """The width of elements that an atom copies here: f16, or bytes."""
    return 8 if "U8" in name or "uint8_t" in name else 16


def is_traced(name: str) -> bool:
    """Whether an atom copies, by threads, between memory and memory or registers."""
    try:
        atom = copy_atom(name, bits_of(name))
        atom.check_executable()
    except LayoutError:
        return False
    return not isinstance(atom.instruction, AutoMove | BulkCopy | MovMatrix | WideMove)


TRACED = tuple([name for name in COPY_ATOMS if is_traced(name)])


def sides(atom: CopyAtom) -> tuple[Any, Any]:
    """The spaces of source and destination: registers where they must be, else global and shared memory."""
    if SMEM not in atom.destination.spaces:
        return SMEM, RMEM
    return (GMEM if GMEM in atom.source.spaces else RMEM), SMEM


def program(name: str, atom: CopyAtom) -> str:
    """A kernel that executes an atom once, on a tensor of all of its values."""
    total, element = atom.ref.size, "i8" if atom.val_bits == 8 else "f16"
    total = max(int(atom.ref(t, v)) for t in range(atom.threads) for v in range(atom.values)) + 1
    source, destination = sides(atom)
    number = "0 : i8" if element == "i8" else "1.0 : f16"
    lines = [
        f'%copy = tile.tiled_copy #tile.copy_atom<"{name}", {element}> tv "{to_text(atom.ref)}" tiler "[{total}:1]"',
        "%s = tile.alloc : !s",
        f"%x = arith.constant {number}",
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        f"%n = arith.constant {total} : index",
        "%first = arith.cmpi eq, %t, %c0 : index",
        "scf.if %first {\nscf.for %i = %c0 to %n step %c1 {\ntile.store %x, %s(%i)\n}\n}",
        "ptx.bar.sync 0",
    ]
    for side, space, part in (("S", source, "%from"), ("D", destination, "%to")):
        if space is RMEM:
            lines += [f"{part}_whole = tile.partition_{side} %copy, %A, %t"]
            lines += [f"{part} = tile.make_fragment_like {part}_whole", f"tile.fill {part}, %x"]
        else:
            lines.append(f"{part} = tile.partition_{side} %copy, {'%A' if space is GMEM else '%s'}, %t")
    lines += ["tile.copy %copy, %from, %to", "ptx.cp.async.wait_all"]
    types = [
        f'!{key} = !tile.tensor<{element}, {space}, align<128>, "{total}:1">'
        for key, space in (("g", "gmem"), ("s", "smem"))
    ]
    body = "\n".join(lines)
    return "\n".join([
        *types, "gpu.module @kernels {", f"tile.kernel @k(%A: !g) threads({atom.threads}) {{", "%t = gpu.thread_id x",
        body, "tile.return", "}", "}",
    ])  # fmt: skip


def declared(operand: Operand, layout: Layout, bits: int) -> set[tuple[int, int]]:
    """The thread and the byte of the tensor, for all that a contract says is touched."""
    threads, values = layout[0].size, layout[1].size
    assert layout.size == threads * values
    return {
        (thread, int(layout(thread, value)) * bits // 8 + byte)
        for thread, value in product(range(threads), range(values))
        for byte in range(bits // 8)
    }


@pytest.mark.parametrize("name", TRACED)
def test_copies_touch_the_bytes_of_their_contract(name: str) -> None:
    bits, trace = bits_of(name), Trace()
    atom = copy_atom(name, bits)
    given = np.zeros(1 << 12, np.int8 if bits == 8 else np.float16)
    engine = SimEngine(sink=lambda _: None, journal=trace)
    total = int(max(byte for _, byte in declared(atom.source, atom.src, bits))) + 1
    launch(program(name, atom), block=(atom.threads, 1, 1), engine=engine, A=given[: total * 8 // bits])
    names = {GMEM: "global", SMEM: "shared"}
    expected: dict[tuple[str, bool], set[tuple[int, int]]] = {}
    for space, operand, layout in zip(sides(atom), (atom.source, atom.destination), (atom.src, atom.dst), strict=True):
        if space is not RMEM:
            expected[names[space], operand.writes] = declared(operand, layout, bits)
    assert set(trace.touched) == set(expected)
    for place, bytes in expected.items():
        found = trace.touched[place]
        start = min(byte for _, byte in found) - min(byte for _, byte in bytes)
        found = {(thread, byte - start) for thread, byte in found}
        assert found <= bytes  # of lanes that name the same row, one touches it
        assert {byte for _, byte in found} == {byte for _, byte in bytes}
        if atom.threads == 1:
            assert found == bytes


def homes(layout: Layout, rows: int) -> dict[tuple[int, int], tuple[int, int]]:
    """By thread and value the row and the column of an operand."""
    threads, values = layout[0].size, layout[1].size
    return {
        (t, v): (int(layout(t, v)) % rows, int(layout(t, v)) // rows) for t, v in product(range(threads), range(values))
    }


def lanes_of(atom: MmaAtom, thread: int) -> int:
    return int(atom.thr_id(thread))


@pytest.mark.parametrize("name", MMA_ATOMS)
def test_multiplications_read_and_write_the_values_of_their_contract(name: str) -> None:
    """One value of A and one of B are 1, or one bit: only the element of D in their row and column is the product."""
    atom = mma_atom(name)
    (m, n, _), lanes = atom.shape, 32 if atom.threads > 1 else 1
    a_homes, b_homes, d_homes = homes(atom.layout_a, m), homes(atom.layout_b, n), homes(atom.layout_c, m)
    run, rng = executor(atom), np.random.default_rng(0)
    plain = atom.products.operation in (MmaOperation.MULTIPLY_ADD, MmaOperation.SATURATE, MmaOperation.AND_POPC)
    picks = [(list(x)[rng.integers(len(x))], list(y)[rng.integers(len(y))]) for x, y in [(a_homes, b_homes)] * 24]
    for at_a, at_b in picks:
        a, b, c = (
            np.zeros((lanes, operand.layout[1].size), DTYPES[operand.element])
            for operand in (atom.operand("A"), atom.operand("B"), atom.operand("C"))
        )
        a[lanes_of(atom, at_a[0]), at_a[1]] = 1
        b[lanes_of(atom, at_b[0]), at_b[1]] = 1
        d = run(a, b, c)
        (row, k), (column, other) = a_homes[at_a], b_homes[at_b]
        for (thread, value), (i, j) in d_homes.items():
            if plain:
                expected = i == row and j == column and k == other
            else:
                expected = (i == row) + (j == column) - 2 * (i == row and j == column and k == other)
            assert d[lanes_of(atom, thread), value] == expected


SHARED = (
    ("SM90_64x64x16_F32F16F16_SS<Major::K,Major::MN>", "A"),
    ("SM90_64x64x16_F32F16F16_SS<Major::K,Major::MN>", "B"),
    ("SM90_64x32x8_F32TF32TF32_SS_TN", "B"),
    ("SM90_64x128x32_S32S8S8_SS_TN", "A"),
)


@pytest.mark.parametrize("mode", ["INTER", "SW32", "SW64", "SW128"])
@pytest.mark.parametrize(("name", "operand"), SHARED)
def test_descriptors_lead_to_the_bytes_of_the_contract(name: str, operand: str, mode: str) -> None:
    atom = mma_atom(name)
    given, bits = atom.operand(operand), atom.bits["DAB".index(operand)]
    rows = atom.shape[0] if operand == "A" else atom.shape[1]
    assert given.named is Named.DESCRIPTOR
    major = "MN" if given.major is Major.MN else "K"
    columns = (
        max(atom.shape[2], (128 << ("INTER", "SW32", "SW64", "SW128").index(mode)) // bits)
        if major == "K"
        else atom.shape[2]
    )
    if major == "MN" and rows * bits % (128 << ("INTER", "SW32", "SW64", "SW128").index(mode)):
        pytest.skip("no whole row of the swizzle fits the operand")
    whole: LayoutLike = tile_to_shape(wgmma_smem_atom(major, mode, bits), (rows, columns))
    part = _first_columns(whole, rows, atom.shape[2])
    descriptor = operand_descriptor(part, bits, major).value
    matrix = matrix_of(atom, operand, descriptor)
    touched = {int(row) + byte for row in matrix.addresses.ravel() for byte in range(ROW)}
    places = {int(given.layout(thread, value)) for thread in (0, 127) for value in range(given.layout[1].size)}
    expected = {
        int(whole(place % rows, place // rows)) * bits // 8 + byte for place in places for byte in range(bits // 8)
    }
    assert touched == expected


def _first_columns(whole: LayoutLike, rows: int, columns: int) -> LayoutLike:
    """The first columns of a matrix."""
    from tilefold.layout.algebra.compose import composition

    return composition(whole, (Layout(rows, 1), Layout(columns, 1)))
