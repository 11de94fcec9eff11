# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One execution of a tcgen05.mma: its matrices in shared and in tensor memory, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ....base.element_types import BY_PTX
from ....base.errors import Code
from ....base.spaces import SMEM
from ....layout.atoms.mma_sparse import CHUNK_BITS, Chunk, chunk_of
from ....layout.atoms.tcgen05_shapes import places_of_d
from ....layout.atoms.umma_descriptors import InstructionDescriptor, MmaKind
from ....layout.tmem.scales import BLOCK_ROWS, CELL_FACTORS
from ..atoms.sparse import invalid, say_invalid, selected
from ..faults import site_of
from ..memory import bulk
from ..memory.matrices import offsets_of
from ..memory.space_state import count_matrix
from ..translate import Translator
from ..warp import Block, Warp
from .arithmetic import TensorArithmetic
from .cells import LANES, Area, TensorCells, area
from .columns import peers
from .matrices import ROW, shared_matrix
from .order import Use
from .pipe import TensorWork, issue
from .scaled import Scales, factors_in

Places: TypeAlias = NDArray[np.int64]
BlockRows: TypeAlias = tuple[int, Places, Places]
"""A block's rows of D from one on, and the lanes and columns of its elements."""

_WORD = (1 << 64) - 1


@lru_cache(maxsize=64)
def _parts(m: int, n: int, blocks: int, ws: bool, sparse: bool = False) -> Sequence[BlockRows]:
    """The parts of D in the blocks."""
    found: list[BlockRows] = []
    for part in places_of_d(m, n, blocks, ws=ws, sparse=sparse):
        lanes, columns = part.cell(*np.ogrid[: part.rows, :n])  # pyright: ignore[reportArgumentType]
        lanes, columns = np.broadcast_arrays(lanes, columns, np.zeros((part.rows, n), np.int64))[:2]
        found.append((part.first, lanes, columns))
    return found


@dataclass(frozen=True, slots=True)
class Call:
    """The operands of an execution: descriptors and addresses as numbers; `a` is (lane, column) in tensor memory."""

    d: tuple[int, int]
    a: int | tuple[int, int]
    b: int
    idesc: int
    accumulates: bool
    mask: tuple[int, ...] = ()
    zero_columns: int = 0
    scales: tuple[tuple[int, int], tuple[int, int]] | None = None
    """The addresses of the scale factors of A and B."""
    metadata: tuple[int, int] | None = None
    """The address of the metadata of a sparse A."""


class Tcgen05MmaRule:
    """The multiplications by one operation of the program."""

    def __init__(
        self,
        op: Operation,
        t: Translator,
        kind: MmaKind,
        blocks: int,
        name: str,
        *,
        ws: bool = False,
        divisor: int = 0,
        factors: int = 0,
        is_sparse: bool = False,
    ) -> None:
        self.site, self.cells, self.shared = site_of(op), TensorCells(site_of(op), t), t.spaces.shared
        self.access = t.access(op, SMEM, "matrix", ROW)
        self.kind, self.blocks, self.name, self.ws, self.divisor = kind, blocks, name, ws, divisor
        self.factors, self.is_sparse = factors, is_sparse
        self.exact, self.measured = t.launch.exact, t.launch.tensor_cores is not None

    def start(self, warp: Warp, lane: int, call: Call) -> None:
        """Executes it for a lane."""
        given = InstructionDescriptor.decode(self.kind, call.idesc)
        problem = next(given.problems(self.blocks, ws=self.ws, sparse=self.is_sparse), None)
        if problem is not None:
            text = f"the instruction descriptor {call.idesc & 0xFFFFFFFF:#010x} of {self.name}: {problem}"
            self._fault(warp, lane, text, "make it for the kind, the types and the shape of the instruction")
        arithmetic = TensorArithmetic(given, self.measured, self.exact)
        pair = peers(warp, self.blocks, self.site)
        _, of_a, of_b = given.types
        rows: list[NDArray[np.int64]] = []
        b = np.concatenate([
            self._shared(warp, lane, block, arithmetic, ("B", of_b), call.b, given.n // len(pair), rows)
            for block in pair
        ])  # fmt: skip
        self._check_halves(warp, lane, "B", rows)
        if call.zero_columns:
            keeps = [not call.zero_columns >> n & 1 for n in range(len(b))]
            b = b * np.array(keeps)[:, None]
        reads: list[Area] = []
        if isinstance(call.a, tuple):
            a = np.concatenate([self._held(warp, lane, block, arithmetic, call.a, reads) for block in pair])
        else:
            a = np.concatenate([
                self._shared(warp, lane, block, arithmetic, ("A", of_a), call.a, given.m // len(pair), rows)
                for block in pair
            ])  # fmt: skip
            self._check_halves(warp, lane, "A", rows[len(pair) :])
        places = None
        if call.metadata is not None:
            found = [self._metadata(warp, lane, block, given, call.metadata, reads) for block in pair]
            places = selected(np.concatenate(found), self._chunk(given))
        scales = None
        if call.scales is not None:
            scales = self._scales(warp, lane, pair, given, call.scales, reads)
        self._accumulate(warp, lane, call, arithmetic, (a, b, scales, places), reads, rows)

    def _chunk(self, given: InstructionDescriptor) -> Chunk:
        """The chunks of a sparse A."""
        return chunk_of(given.types[1], in_bytes=not given.kind.is_dense_fp4)

    def _metadata(
        self,
        warp: Warp,
        lane: int,
        block: Block,
        given: InstructionDescriptor,
        at: tuple[int, int],
        reads: list[Area],
    ) -> Places:
        """The descriptions (rows, chunks) of the chunks of A of a block; adds their cells. Of 8-bit elements a row has
        the two columns of its lane. Of wider ones a column of 16 lanes has 16 rows: eight lanes the first half of K,
        and a lane the row of its number and the one 8 further on (CuTe's tmem_e_frg).
        """
        wide = given.kind.element_bits() > 8
        if given.m // self.blocks != LANES or given.selector > wide or (wide and at[1] % 2):
            what = f"M = {given.m}, selector {given.selector}, column {at[1]}"
            text = f"the simulator knows no layout of the metadata of {self.name} for {what}"
            hint = "128 rows a block are known; of 16 and 32 bits even columns, and 0 or 1 as the selector"
            warp.fault(Code.SIM_UNSUPPORTED, self.site, lane, text, hint)
        first, count = (at[1] + given.selector, 1) if wide else (at[1], 2)
        part = area(block.rank, np.arange(LANES)[:, None] + at[0], first + np.arange(count)[None])
        self.cells.check_columns(warp, part)
        reads.append(part)
        words = self.cells.read(warp, part, lane).astype(np.int64)
        codes = (words[..., None] >> CHUNK_BITS * np.arange(8) & 15).reshape(LANES, -1)
        if wide:  # (16 rows, half of K, row, row + 8 or not, chunk)
            codes = codes.reshape(8, 2, 8, 2, 4).transpose(0, 3, 2, 1, 4).reshape(LANES, 8)
        wrong = invalid(codes, self._chunk(given), ordered=False)
        if wrong.any():
            row, number = np.argwhere(wrong)[0].tolist()
            say_invalid(warp, self.site, lane, self.name, self._chunk(given), row, number, codes)
        return codes

    def _scales(
        self,
        warp: Warp,
        lane: int,
        pair: Sequence[Block],
        given: InstructionDescriptor,
        at: tuple[tuple[int, int], tuple[int, int]],
        reads: list[Area],
    ) -> Scales:
        """The scale factors: those of A are in the block of the row, those of B in each block. A fault for numbers of
        factors that the kind does not have, and for copies that differ.
        """
        first, factors = (given.a_scale, given.b_scale), self.factors * given.k // given.kind.k
        allowed = {1: (0, 1, 2, 3), 2: (0, 2), 3: (0, 1, 2, 3), 4: (0,), 6: (0, 2)}[factors]
        for letter, number in zip("AB", first, strict=True):
            if number not in allowed:
                known = ", ".join(map(str, allowed))
                text = f"the scale factors of {letter} have the number {number}; {self.name} has {known}"
                self._fault(warp, lane, text, "set the number in the instruction descriptor")
        rows = given.m // len(pair), given.n
        found: list[list[Any]] = [[], []]
        for block in pair:
            for which in (0, 1):
                (at_lane, column), count = at[which], -(-rows[which] // 32)
                groups = -(-(first[which] + factors) // CELL_FACTORS)
                columns = np.arange(groups)[:, None] * (-(-rows[which] // BLOCK_ROWS) * 4) + np.arange(count)
                part = area(block.rank, np.arange(128)[:, None] + at_lane, column + columns.reshape(1, -1))
                self.cells.check_columns(warp, part)
                reads.append(part)
                codes = np.ascontiguousarray(self.cells.read(warp, part, lane)).view(np.uint8)
                codes = codes.reshape(4, 32, groups, count, CELL_FACTORS).transpose(0, 1, 3, 2, 4)
                codes = codes.reshape(4, 32, count, -1)[..., first[which] : first[which] + factors]
                if (codes != codes[0]).any():
                    text = f"the scale factors of {'AB'[which]} differ between the quarters of the lanes"
                    self._fault(warp, lane, text, "copy them by tcgen05.cp.32x128b.warpx4, which writes all four")
                found[which].append(codes[0].transpose(1, 0, 2).reshape(count * 32, -1)[: rows[which]])
        if any((codes != found[1][0]).any() for codes in found[1]):
            text = "the scale factors of B differ between the blocks of the pair"
            self._fault(warp, lane, text, "let each block have the scale factors of all N")
        a, b = np.concatenate(found[0]), found[1][0]
        return Scales(*[factors_in(codes, given.scale_type == 1) for codes in (a, b)])

    def _accumulate(
        self,
        warp: Warp,
        lane: int,
        call: Call,
        arithmetic: TensorArithmetic,
        factors: tuple[Any, Any, Scales | None, Places | None],
        reads: Sequence[Area],
        rows: Sequence[NDArray[np.int64]],
    ) -> None:
        given, cells = arithmetic.given, self.cells
        width = BY_PTX[given.types[0]].bits // 8
        pair = peers(warp, self.blocks, self.site)
        parts = _parts(given.m, given.n, self.blocks, self.ws, self.is_sparse)
        areas: list[Area] = []
        for block, (_, lanes, columns) in zip(pair, parts, strict=True):
            areas.append(area(block.rank, lanes + call.d[0], columns + call.d[1], width))
            cells.check_columns(warp, areas[-1])
        written = tuple([part.region for part in areas])
        read = tuple([part.region for part in reads]) + (written if call.accumulates else ())
        use = Use(self.site, warp, lane, "mma", read, written, (given.m, given.n, self.blocks, self.ws))
        cells.begin(warp, use)
        before = None
        if call.accumulates:
            before = np.concatenate([arithmetic.accumulators(cells.read(warp, part, lane)) for part in areas])
        a, b, scales, places = factors
        words = arithmetic.words(arithmetic.result(a, b, before, self.divisor, scales, places))
        for number, ((first, lanes, _), part) in enumerate(zip(parts, areas, strict=True)):
            new = words[first : first + len(lanes)]
            if call.mask:
                masked = _masked(call.mask, number, self.blocks)[part.lanes[:, 0]]
                part = Area(part.region, part.lanes[~masked], part.columns[~masked], part.width)
                new = new[~masked]
            cells.write(warp, part, new, lane)
        issue(TensorWork(use, self.shared, np.unique(np.concatenate(rows)), ROW))

    def _shared(
        self,
        warp: Warp,
        lane: int,
        block: Block,
        arithmetic: TensorArithmetic,
        operand: tuple[str, str],
        descriptor: int,
        extent: int,
        rows: list[NDArray[np.int64]],
    ) -> Any:
        """The part (MN, K) of an operand in the shared memory of a block; adds its rows. The faults of a descriptor."""
        (letter, element), given, space = operand, arithmetic.given, self.shared
        mn_major = given.a_is_mn if letter == "A" else given.b_is_mn
        bits = given.kind.element_bits()
        matrix = shared_matrix(descriptor & _WORD, extent, self._k(given, letter) * bits // 8, bits, mn_major)
        subject = f"the descriptor {descriptor & _WORD:#018x} of {letter}"
        if matrix.problem:
            self._fault(warp, lane, f"{subject}: {matrix.problem}", "make it by ptx.tcgen05.descriptor")
        offsets, where = offsets_of(space, matrix.addresses)
        if where is not None:
            text = f"{subject} leads to {where}, outside the block's shared memory"
            self._fault(
                warp, lane, text, "check its address, its strides, and the majors of the instruction descriptor"
            )
        at = (offsets + block.rank * space.arena.span) // ROW
        count_matrix(self.access, matrix.addresses.T.ravel(), ROW)
        self._check_swizzle(warp, lane, letter, at, matrix.swizzle_bits)
        if (narrow := BY_PTX[element].bits) < 8:
            self._check_packing(warp, lane, letter, at, -narrow if given.kind.is_dense_fp4 else narrow)
        content = bulk.read(space, warp, self.access, lane, at)
        rows.append(at)
        return arithmetic.elements(element, content.reshape(matrix.addresses.shape[0], -1), mn_major)

    def _check_halves(self, warp: Warp, lane: int, letter: str, rows: Sequence[NDArray[np.int64]]) -> None:
        """A fault where TMA copies have brought the same rows of an operand to both blocks of a pair, of which each
        has a half.
        """
        if len(rows) < 2:
            return
        first, second = (self.shared.origins[part] for part in rows[:2])
        if (first != 0).all() and np.array_equal(first, second):
            text = f"multiplies by rows of {letter} of which both blocks of the pair have the same half"
            hint = f"let each block load its own half of {letter}, by its rank in the pair"
            warp.fault(Code.SIM_TENSOR_PAIR, self.site, lane, text, hint)

    def _check_swizzle(self, warp: Warp, lane: int, letter: str, rows: NDArray[np.int64], bits: int) -> None:
        """A fault for a matrix that a TMA copy has written by another swizzle."""
        space = self.shared
        by = space.swizzles[rows]
        wrong = (by != 0) & (by != 1 + bits)
        if space.shadow is None or not wrong.any():
            return
        wrong &= space.shadow.by_async(rows, ROW)
        if wrong.any():
            where = space.show_row(int(rows[wrong.argmax()]), ROW)
            text = f"reads {where} of {letter} by another swizzle than the TMA copy has written it by"
            self._fault(warp, lane, text, "let the tensor map and the descriptor have the swizzle of the tile's layout")

    def _check_packing(self, warp: Warp, lane: int, letter: str, rows: NDArray[np.int64], packing: int) -> None:
        """A fault for a matrix of elements of 4 or 6 bits that a TMA copy has padded though the kind takes them
        without gaps, or has not padded, or as elements of other bits.
        """
        space = self.shared
        by = space.packings[rows]
        wrong = (by != 0) & (by != packing)
        if space.shadow is None or not wrong.any():
            return
        wrong &= space.shadow.by_async(rows, ROW)
        if wrong.any():
            at = int(wrong.argmax())
            where, found = space.show_row(int(rows[at]), ROW), int(by[at])
            text = f"reads {where} of {letter} as {_packed(packing)}, but a TMA copy has written {_packed(found)}"
            word = "e2m1" if packing < 0 else MAP_WORDS[packing]
            self._fault(warp, lane, text, f"let the tensor map have elements {word}, as this kind takes them")

    def _held(
        self,
        warp: Warp,
        lane: int,
        block: Block,
        arithmetic: TensorArithmetic,
        address: tuple[int, int],
        reads: list[Area],
    ) -> Any:
        """The part (M, K) of A in the tensor memory of a block, in the lanes of D; adds its cells."""
        given = arithmetic.given
        (_, lanes, _), *_ = _parts(given.m, given.n, self.blocks, self.ws, self.is_sparse)
        columns = self._k(given, "A") * given.kind.element_bits() // 32
        found = area(block.rank, lanes[:, :1] + address[0], address[1] + np.arange(columns)[None])
        self.cells.check_columns(warp, found)
        reads.append(found)
        words = np.ascontiguousarray(self.cells.read(warp, found, lane))
        return arithmetic.elements(given.types[1], words.view(np.uint8).reshape(len(words), -1), False, in_cells=True)

    def _k(self, given: InstructionDescriptor, letter: str) -> int:
        """The elements of a row that are there."""
        return given.k // 2 if self.is_sparse and letter == "A" else given.k

    def _fault(self, warp: Warp, lane: int, text: str, hint: str) -> NoReturn:
        warp.fault(Code.SIM_DESCRIPTOR, self.site, lane, text, hint)


MAP_WORDS = {4: "b4x16_p64", 6: "b6x16_p32"}
"""The elements of tensor maps whose loads pad elements of this many bits to bytes."""


def _packed(packing: int) -> str:
    """Elements of 4 or 6 bits in words."""
    gaps = "without gaps" if packing < 0 else "that are padded to bytes"
    return f"elements of {abs(packing)} bits {gaps}"


def _masked(mask: tuple[int, ...], number: int, blocks: int) -> NDArray[np.bool_]:
    """The lanes of a block whose D a mask keeps."""
    words = mask[number * 4 : number * 4 + 4] if blocks == 2 else mask
    return np.array([bool(words[lane // 32] >> (lane % 32) & 1) for lane in range(128)])
