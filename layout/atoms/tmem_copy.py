# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of a warp between tensor memory and registers, and of a thread from shared to tensor memory (PTX ISA, tcgen05
data movement: tcgen05.ld, tcgen05.st and tcgen05.cp; CuTe's copy_traits_sm100.hpp).

The bits of an atom are those of the cells that it reaches, the bits of a lane together. `cells_of` tells which cells
those are: by it a tiled copy finds them in a tensor.

Which of them an epilogue takes, and in which layouts it stages results, is CUTLASS's choice (op_repeater,
sm100_get_tmem_load_op and sm100_get_epilogue_smem_swizzle_layout_atom).
"""

from collections.abc import Mapping
from types import MappingProxyType

from ...base.errors import Code, LayoutError
from ...base.spaces import LANE_SHIFT, RMEM, SMEM, TMEM, Space
from ...base.target import WARP, targets
from ..algebra.core import Layout, LayoutLike, join
from .contract import (
    ANY_BITS,
    Act,
    Agent,
    AtWait,
    Completion,
    Contract,
    Counted,
    Major,
    Named,
    OnArrivals,
    Operand,
    Proxy,
    Role,
    Whose,
)
from .copy_atom import CopyAtom
from .instructions import TmemCp, TmemLoad, TmemStore
from .numbers import Copied
from .tcgen05_shapes import ACCESS_SHAPES
from .umma_smem import select_umma_mode, umma_smem_atom
from .wgmma_smem import UNIT

TCGEN05_TARGETS = targets(100, 86, "f")
"""The targets that have tensor memory (Target ISA Notes of the tcgen05 instructions)."""
UMMA_COMMIT = OnArrivals("tcgen05.commit")
"""When the work of tcgen05.mma and tcgen05.cp is done."""
LANE_BITS = TMEM.unit_bits << LANE_SHIFT
"""The distance in bits between neighbouring lanes, where a cell follows the one before by its own bits."""
HALF = TMEM.unit_bits // 2
"""The bits of a cell that packing moves, and unpacking fills."""

SHAPES: Mapping[str, tuple[str, int, int, int]] = MappingProxyType({
    name: (shape.word, shape.lanes, shape.width, shape.most) for name, shape in ACCESS_SHAPES.items()
})  # fmt: skip
"""The shapes of loads and stores: CuTe's word, lanes, bits of a lane, and the greatest number of repetitions."""


def tmem_move_name(loads: bool, shape: str, num: int, packs: bool) -> str:
    """CuTe's name of a load or store, `SM100_TMEM_LOAD_32dp32b8x`; with `_16b` it packs."""
    direction = "LOAD" if loads else "STORE"
    return f"SM100_TMEM_{direction}_{SHAPES[shape][0]}{num}x{'_16b' if packs else ''}"


def tmem_load(shape: str, num: int, packs: bool = False) -> CopyAtom:
    """A warp loads `num` times a shape of tensor memory. Raises `LayoutError` (E0304) for numbers that PTX lacks."""
    return _move(TmemLoad(shape, num, packs), shape, num, packs)


def tmem_store(shape: str, num: int, unpacks: bool = False) -> CopyAtom:
    """A warp stores to `num` times a shape of tensor memory; see `tmem_load`."""
    return _move(TmemStore(shape, num, unpacks), shape, num, unpacks)


def _move(instruction: TmemLoad | TmemStore, shape: str, num: int, packs: bool) -> CopyAtom:
    loads = isinstance(instruction, TmemLoad)
    _, lanes, width, most = SHAPES[shape]
    if num not in [1 << i for i in range(most.bit_length())]:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"tcgen05.{'ld' if loads else 'st'} of shape {shape} has no x{num}",
            f"repetitions are powers of two from 1 to {most}",
        )
    cells, registers = Layout((WARP, width * num * lanes), (0, 1)), _registers(shape, num)
    completion = AtWait(f"tcgen05.wait::{'ld' if loads else 'st'}")

    def side(role: Role, act: Act, space: Space) -> Operand:
        named, layout, proxy = (Named.CELL, cells, Proxy.TENSOR) if space is TMEM else (
            Named.VALUE, registers, Proxy.GENERIC
        )  # fmt: skip
        return Operand(role, ANY_BITS, (space,), named, Major.FIXED, act, Whose.OWN, completion, proxy, 4, layout)

    contract = Contract(
        agent=Agent.WARP,
        counts=Counted.THREADS,
        ids=Layout(WARP, 1),
        operands=(
            side(Role.SOURCE, Act.READ, TMEM if loads else RMEM),
            side(Role.DESTINATION, Act.WRITE, RMEM if loads else TMEM),
        ),
        numbers=Copied(),
        targets=TCGEN05_TARGETS,
        instruction=instruction,
        section=f"PTX ISA, Tensor Memory Data Movement: tcgen05.{'ld' if loads else 'st'}",
    )
    return CopyAtom(tmem_move_name(loads, shape, num, packs), contract)


def _registers(shape: str, num: int) -> Layout:
    """(thread, bit) to a bit of the cells, for the registers."""
    _, lanes, width, _ = SHAPES[shape]
    row = width * num
    if shape == "32x32b":
        return Layout((WARP, row), (row, 1))
    if shape == "16x32bx2":
        return Layout(((lanes, 2), row // 2), ((row, row // 2), 1))
    if shape == "16x64b":
        more = (32, ()) if num == 1 else ((32, num), (1, width))
        return Layout(((2, 2, 8), more[0]), ((8 * row, 32, row), more[1] or 1))
    each = width // 4
    repeats = ((), ()) if num == 1 else ((num,), (width,))
    return Layout(((4, 8), (each, 2, *repeats[0])), ((each, row), (1, 8 * row, *repeats[1])))


def halves_apart(shape: str, num: int, packs: bool) -> int | None:
    """The columns between the cells that the halves of a warp reach, where PTX lets a load or a store choose them;
    here they follow each other.
    """
    return num * (2 if packs else 1) if shape == "16x32bx2" else None


CP_SHAPES: Mapping[str, tuple[str, str, Layout]] = MappingProxyType({
    "128dp256bit": ("128x256b", "", Layout((128, 256), (LANE_BITS, 1))),
    "128dp128bit": ("128x128b", "", Layout((128, 128), (LANE_BITS, 1))),
    "4dp256bit": ("4x256b", "", Layout((128, 256), (LANE_BITS, 1))),
    "4x32dp128bit": ("32x128b", "warpx4", Layout((32, 128, 4), (LANE_BITS, 1, 32 * LANE_BITS))),
    "2x64dp128bitlw0213": ("64x128b", "warpx2::02_13", Layout((64, 128, 2), (LANE_BITS, 1, 64 * LANE_BITS))),
    "2x64dp128bitlw0123": (
        "64x128b", "warpx2::01_23",
        Layout((32, 128, 2, 2), (LANE_BITS, 1, 64 * LANE_BITS, 32 * LANE_BITS)),
    ),
})  # fmt: skip
"""The copies from shared memory by CuTe's words: shape and multicast of PTX, and the bits of the cells that they write.
CuTe counts 4x256b by all rows that it refreshes.
"""
_CP_CELLS = MappingProxyType({(shape, multicast): cells for shape, multicast, cells in CP_SHAPES.values()})


def tmem_cp_name(word: str, blocks: int) -> str:
    """CuTe's name of a copy from shared to tensor memory, `SM100_UTCCP_4x32dp128bit_1cta`."""
    return f"SM100_UTCCP_{word}_{blocks}cta"


def tmem_cp(word: str, blocks: int) -> CopyAtom:
    """A thread has a matrix of shared memory copied to the tensor memory of its block, or of each block of its pair."""
    shape, multicast, cells = CP_SHAPES[word]
    bits = cells.size
    read, written = Layout((1, bits), (0, 1)), Layout((1, bits), (0, 1))
    if word == "4dp256bit":  # 4 rows, each the last of its quarter
        read = written = Layout((1, (4, 256)), (0, (32, 128)))
    elif word == "2x64dp128bitlw0123":
        read = Layout((1, (32, 128, 2, 2)), (0, (1, 32, 4096, 0)))
    elif multicast:
        rows = cells[0].size
        read = Layout((1, (rows, 128, cells[2].size)), (0, (1, rows, 0)))

    def side(role: Role, act: Act, space: Space, named: Named, proxy: Proxy, layout: Layout) -> Operand:
        counted = join((Layout(blocks, 0), layout[1]))
        align = UNIT if space is SMEM else 4
        done: Completion = UMMA_COMMIT
        return Operand(role, ANY_BITS, (space,), named, Major.FIXED, act, Whose.OWN, done, proxy, align, counted)

    contract = Contract(
        agent=Agent.BLOCK_PAIR if blocks == 2 else Agent.ELECTED,
        counts=Counted.BLOCKS if blocks == 2 else Counted.THREADS,
        ids=Layout(2, 1) if blocks == 2 else Layout(1, 0),
        operands=(
            side(Role.SOURCE, Act.READ, SMEM, Named.DESCRIPTOR, Proxy.ASYNC, read),
            side(Role.DESTINATION, Act.WRITE, TMEM, Named.CELL, Proxy.TENSOR, written),
        ),
        numbers=Copied(),
        targets=TCGEN05_TARGETS,
        instruction=TmemCp(shape, multicast),
        section="PTX ISA, Tensor Memory Data Movement: tcgen05.cp",
    )
    return CopyAtom(tmem_cp_name(word, blocks), contract)


def cells_of(atom: CopyAtom) -> Layout:
    """The bits of an atom to bits of tensor memory, from that of the address on (CuTe's ValID): columns are 32 bits,
    lanes 65536 columns apart. Raises `LayoutError` (E0304) for an atom that does not reach tensor memory.
    """
    match atom.instruction:
        case TmemLoad(shape, num, packs) | TmemStore(shape, num, packs):
            _, lanes, width, _ = SHAPES[shape]
            row = width * num
            if packs:
                return Layout(((HALF, row // HALF), lanes), ((1, 2 * HALF), LANE_BITS))
            return Layout((row, lanes), (1, LANE_BITS))
        case TmemCp(shape, multicast):
            return _CP_CELLS[shape, multicast]
        case _:
            raise LayoutError(Code.ATOM_OPERAND, f"{atom.name} does not reach tensor memory", "use a tcgen05 copy")


def repeat_to(loads: bool, shape: str, column_bits: int, packs: bool = False) -> CopyAtom:
    """The load or store of a shape with the most repetitions that divide the `column_bits` bits of a lane.

    Raises `LayoutError` (E0304) for bits that no number of repetitions divides.
    """
    _, _, width, most = SHAPES[shape]
    fitting = [
        n for n in (1 << i for i in range(most.bit_length())) if column_bits > 0 and column_bits % (width * n) == 0
    ]
    if not fitting:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"a lane of {column_bits} bits is not a multiple of the {width} of shape {shape}",
            "use a wider tile",
        )
    return (tmem_load if loads else tmem_store)(shape, fitting[-1], packs)


def select_tmem_load(accumulator_bits: int, result_bits: int, lanes: int, columns: int, major: str) -> CopyAtom:
    """The load for a warp's part of an accumulator, `lanes` by `columns`, whose results of `result_bits` bits go to a
    matrix with the `major` "M" or "N". It suits the stores to shared memory that follow.

    Raises `LayoutError` (E0304) for widths or lanes that have none.
    """
    bits = columns * accumulator_bits
    halves = accumulator_bits == 16
    shape = _SHAPES.get((accumulator_bits, result_bits if result_bits in (8, 16, 32) else 4, lanes, major))
    if shape is None:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"no load of tensor memory suits {lanes} lanes of {accumulator_bits}-bit accumulators with {major}-major "
            f"results of {result_bits} bits",
            "a warp has 32 lanes, or 16 for results of 8 bits or more",
        )
    return repeat_to(True, shape, bits, halves)


_SHAPES = {
    **{(32, result, 32, major): "32x32b" for result in (4, 8, 16, 32) for major in "MN"},
    (32, 16, 32, "M"): "16x256b",
    (32, 32, 16, "M"): "16x256b", (32, 32, 16, "N"): "16x128b",
    (32, 16, 16, "M"): "16x256b", (32, 16, 16, "N"): "16x256b",
    (32, 8, 16, "M"): "16x256b", (32, 8, 16, "N"): "16x32bx2",
    (16, 16, 16, "M"): "16x128b", (16, 16, 16, "N"): "16x128b",
    (16, 16, 32, "M"): "16x128b", (16, 16, 32, "N"): "32x32b",
}  # fmt: skip
"""The shapes of loads by the bits of accumulators and results, the lanes of a warp and the major of the results."""


def select_epilogue_smem(val_bits: int, m: int, n: int, major: str) -> LayoutLike:
    """The smallest layout of shared memory for results of `val_bits` bits that a TMA copy stores, of a tile m x n
    with the `major` "M" or "N". Raises `LayoutError` (E0213) where none divides the tile.
    """
    of_operand = "MN" if major == "M" else "K"
    return umma_smem_atom(of_operand, select_umma_mode(of_operand, val_bits, m, n), val_bits)
