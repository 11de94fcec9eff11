# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions of `wmma` as loads, stores and `mma.sync` (PTX ISA, Warp-level Matrix Load, Store and
Multiply-and-Accumulate Instructions).

PTX does not say which lane has which element of a fragment. Here a fragment is that of the `mma.sync` with 16 rows and
8 columns, twice where the shape has more rows or columns, one after the other. A product with 8 rows and 32 columns is
that of the transposed matrices. Where `wmma` has more registers, they hold the same again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, VectorType, f16, f32, i32
from xdsl.ir import SSAValue

from ...base.element_types import BY_PTX
from ...dialects import ptx
from ...dialects.ptx.mma import register_types
from ...layout.atoms.contract import Major, Named
from ...layout.atoms.instructions import MmaSync
from ...layout.atoms.mma_names import MmaFacts
from ...layout.atoms.mma_table import mma_atom_of
from ...layout.atoms.numbers import MmaOperation
from .accesses import accessed
from .moves import Rule
from .registers import Registers
from .syntax import Instruction, Operand, Vector

_Place: TypeAlias = tuple[int, int, int]
"""An element of a tile, by its row and column: lane / 4 + the first, and the second * (lane % 4) + the third."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """A shape: rows, columns and depth. `rows` and `columns` are the tiles of 16 rows, and of 8 columns, one of which
    may be two; `is_transposed` says that the rows are those of B. Without `rows` there is one tile of 8 rows.
    """

    size: tuple[int, int, int]
    rows: int = 0
    columns: int = 1
    is_transposed: bool = False


_SHAPES: Mapping[str, _Shape] = MappingProxyType({
    "m16n16k16": _Shape((16, 16, 16), 1, 2), "m32n8k16": _Shape((32, 8, 16), 2, 1),
    "m8n32k16": _Shape((8, 32, 16), 2, 1, True), "m16n16k8": _Shape((16, 16, 8), 1, 2),
    "m8n8k4": _Shape((8, 8, 4)), "m8n8k32": _Shape((8, 8, 32)), "m8n8k128": _Shape((8, 8, 128)),
})  # fmt: skip
_BITS: Mapping[int, tuple[int, ...]] = MappingProxyType({16: (16, 8), 8: (32,), 4: (64,), 32: (4,), 128: (1,)})
"""The bits of elements of A and B by the depth of a shape."""
_OPERATIONS: Mapping[str, MmaOperation] = MappingProxyType({
    "satfinite": MmaOperation.SATURATE, "xor": MmaOperation.XOR_POPC, "and": MmaOperation.AND_POPC,
})  # fmt: skip
"""The modifiers that decide what happens to products."""
_OF_F16 = 8
"""The registers of A and of B if they are of f16."""


def _has_rows(letter: str, shape: _Shape) -> bool:
    """Whether the fragment of A or B is that of tiles with 16 rows."""
    return bool(shape.rows) and (letter == "a") != shape.is_transposed


def _inputs(letter: str, shape: _Shape, bits: int) -> Iterator[list[_Place]]:
    """The elements of each register of a fragment of A or B, without repetitions; narrow elements fill words."""
    per, length = max(32 // max(bits, 8), 1), shape.size[2] * bits
    if bits < 8:
        yield [(0, 1, 0)]
    elif _has_rows(letter, shape):
        for tile in range(shape.rows):
            for index in range(length // 64):
                yield [(16 * tile + 8 * (index & 1), per, 4 * per * (index >> 1) + k) for k in range(per)]
    else:
        for tile in range(shape.columns):
            for index in range(max(length // 128, 1) if bits < 64 else 1):
                yield [(8 * tile, per, 4 * per * index + k) for k in range(per)]


def _sums(shape: _Shape, type: str) -> Iterator[list[_Place]]:
    """The elements of each register of an accumulator."""
    for tile in range(max(shape.rows, shape.columns)):
        down, right = (16 * tile, 0) if shape.rows == 2 else (0, 8 * tile)
        for row in (0, 8) if shape.rows else (0,):
            pair = [(down + row, 2, right + k) for k in range(2)]
            yield from [pair] if type == "f16" else [[element] for element in pair]


@dataclass(frozen=True, slots=True)
class _Fragment:
    """A fragment of a load or a store: the elements of each register, the bits that an access moves and how many
    elements that is, the number of registers, whether rows and columns are exchanged, and the elements of a row or
    column where no stride is given.
    """

    places: Sequence[Sequence[_Place]]
    bits: int
    elements: int
    registers: int
    is_swapped: bool
    stride: int


def _fragment(r: Registers, i: Instruction) -> _Fragment:
    letter, type, is_store = i.modifiers[1], i.modifiers[-1], i.modifiers[0] == "store"
    shape = _shape_of(r, i)
    m, n, k = shape.size
    by_rows = "row" in i.modifiers
    if is_store or letter == "c":
        places = list(_sums(shape, type))
        bits = BY_PTX[type].bits
        return _Fragment(places, bits, 1, len(places), shape.is_transposed, n if by_rows else m)
    bits = _bits(r, shape, type)
    places = list(_inputs(letter, shape, bits))
    stride = (k if by_rows else m) if letter == "a" else (n if by_rows else k)
    count = _OF_F16 if type == "f16" else len(places)
    return _Fragment(places, 32 if bits < 8 else bits, 32 // bits if bits < 8 else 1, count, letter == "b", stride)


def _shape_of(r: Registers, i: Instruction) -> _Shape:
    found = next((_SHAPES[word] for word in i.modifiers if word in _SHAPES), None)
    if found is None:
        raise r.refuse("the shape is not supported")
    return found


def _bits(r: Registers, shape: _Shape, type: str) -> int:
    """The bits of an element of A or B. PtxError (E1009) for a type that the shape does not have."""
    bits = BY_PTX[type].bits if type in BY_PTX else 0
    if bits not in _BITS[shape.size[2]]:
        raise r.refuse("the shape or the type is not supported")
    return bits


def _offsets(r: Registers, i: Instruction, fragment: _Fragment, more: Sequence[Operand]) -> list[list[SSAValue]]:
    """The distance of each element from the beginning of the matrix, in bytes."""
    stride = r.read(more[0], i32) if more else r.constant(fragment.stride, i32)
    if fragment.elements > 1:
        stride = r.emit(arith.DivUIOp(stride, r.constant(fragment.elements, i32)))
    lane = r.register("%laneid")
    quotient, rest = r.emit(arith.ShRUIOp(lane, r.constant(2, i32))), r.emit(arith.AndIOp(lane, r.constant(3, i32)))
    by_rows = "row" in i.modifiers

    def offset(r0: int, c: int, d: int) -> SSAValue:
        row = r.emit(arith.AddiOp(quotient, r.constant(r0, i32)))
        column = r.emit(arith.AddiOp(r.emit(arith.MuliOp(rest, r.constant(c, i32))), r.constant(d, i32)))
        major, minor = (row, column) if by_rows != fragment.is_swapped else (column, row)
        place = r.emit(arith.AddiOp(r.emit(arith.MuliOp(major, stride)), minor))
        return r.emit(arith.MuliOp(place, r.constant(fragment.bits // 8, i32)))

    return [[offset(*element) for element in group] for group in fragment.places]


def _items(r: Registers, operand: Operand, count: int) -> tuple[Operand, ...]:
    """The registers of a fragment. PtxError (E1009) for another number of them."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != count:
        raise r.refuse(f"the fragment has {count} registers, not {len(items)}")
    return items


def _load(r: Registers, i: Instruction) -> None:
    target, source, *more = i.operands
    fragment = _fragment(r, i)
    items = _items(r, target, fragment.registers)
    bits, bytes = fragment.bits, fragment.bits // 8
    values: list[SSAValue] = []
    for offsets in _offsets(r, i, fragment, more):
        whole: SSAValue | None = None
        for index, offset in enumerate(offsets):

            def access(pointer: SSAValue, offset: SSAValue = offset) -> SSAValue:
                return r.emit(ptx.LoadOp(r.emit(ptx.PtrAddOp(pointer, offset)), IntegerType(bits), bytes))

            part = accessed(r, i, source, bytes, access)
            assert part is not None
            part = r.resized(part, 32) if bits < 32 else part
            part = r.emit(arith.ShLIOp(part, r.constant(bits * index, i32))) if index else part
            whole = part if whole is None else r.emit(arith.OrIOp(whole, part))
        assert whole is not None
        values.append(whole)
    for index, item in enumerate(items):
        r.write(item, values[index % len(values)])


def _store(r: Registers, i: Instruction) -> None:
    target, source, *more = i.operands
    fragment = _fragment(r, i)
    items = _items(r, source, fragment.registers)
    bits, bytes = fragment.bits, fragment.bits // 8
    for item, offsets in zip(items, _offsets(r, i, fragment, more), strict=True):
        word = r.read(item, IntegerType(max(bits, 32)))
        for index, offset in enumerate(offsets):
            part = r.emit(arith.ShRUIOp(word, r.constant(bits * index, i32))) if index else word
            part = r.resized(part, bits)

            def access(pointer: SSAValue, part: SSAValue = part, offset: SSAValue = offset) -> None:
                r.add(ptx.StoreOp(part, r.emit(ptx.PtrAddOp(pointer, offset)), bytes))

            accessed(r, i, target, bytes, access)


def _multiply(r: Registers, i: Instruction) -> None:
    ignored = ("sync", "aligned", "row", "col", "satfinite", "rn", "xor", "and", "popc")
    _, *types = [word for word in i.modifiers[1:] if word not in ignored]
    shape = _shape_of(r, i)
    if len(types) == 2:  # of f16, the types of D and C
        types = [types[0], "f16", "f16", types[1]]
    if len(types) != 4 or types[1] != types[2]:
        raise r.refuse("the types are not supported")
    of_d, type, _, of_c = types
    bits = _bits(r, shape, type)
    of_sum = "f32" if "f32" in (of_d, of_c) else of_d
    if of_sum not in BY_PTX:
        raise r.refuse("the types are not supported")
    extents = (16 if shape.rows else 8, 8, shape.size[2])
    operation = next((_OPERATIONS[word] for word in i.modifiers if word in _OPERATIONS), MmaOperation.MULTIPLY_ADD)
    sums = (of_sum, type, type, of_sum)
    k_k = (Major.K, Major.K)
    atom = mma_atom_of(MmaFacts(80, MmaSync(), extents, sums, k_k, Named.VALUE, operation))
    target, *operands = i.operands
    a, b = (
        [_word(r, item, bits) for item in _items(r, operand, _OF_F16 if type == "f16" else count)][:count]
        for operand, count in zip(operands, (len(list(_inputs(x, shape, bits))) for x in "ab"), strict=False)
    )
    c = [_word(r, item, 64 if of_c == "f64" else 32) for item in _items(r, operands[2], len(list(_sums(shape, of_c))))]
    a, b = (b, a) if shape.is_transposed else (a, b)
    tiles = max(shape.rows, shape.columns)
    c = _widened(r, c) if of_c != of_sum else c
    results: list[SSAValue] = []
    for tile in range(tiles):
        parts = [
            _part(a, tile, max(shape.rows, 1)), _part(b, tile, shape.columns), _part(c, tile, tiles),
        ]  # fmt: skip
        groups = [
            [r.convert(word, type) for word, type in zip(part, register_types(atom, letter), strict=True)]
            for letter, part in zip("ABC", parts, strict=True)
        ]
        results += r.add(ptx.MmaSyncOp(atom.name, *groups)).d
    results = _narrowed(r, results) if of_d != of_sum else results
    for item, value in zip(_items(r, target, len(results)), results, strict=True):
        r.write(item, value)


def _part(words: Sequence[SSAValue], tile: int, tiles: int) -> Sequence[SSAValue]:
    """The registers of a tile; those of the only one for each of several of the other operand."""
    size = len(words) // tiles
    return words[size * (tile % tiles) : size * (tile % tiles + 1)]


def _widened(r: Registers, pairs: Sequence[SSAValue]) -> list[SSAValue]:
    """Pairs of f16 as f32."""
    vectors = [r.convert(pair, VectorType(f16, [2])) for pair in pairs]
    return [r.emit(arith.ExtFOp(r.extract(each, index), f32)) for each in vectors for index in range(2)]


def _narrowed(r: Registers, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Values of f32 as pairs of f16."""
    short = [r.emit(arith.TruncFOp(value, f16)) for value in values]
    return [r.vector(pair) for pair in zip(short[::2], short[1::2], strict=True)]


def _word(r: Registers, operand: Operand, bits: int) -> SSAValue:
    """A register, in the type that it has."""
    return r.raw(operand, max(bits, 32))


def wmma_rule(r: Registers, i: Instruction) -> None:
    """wmma.load, wmma.store and wmma.mma."""
    {"load": _load, "store": _store, "mma": _multiply}[i.modifiers[0]](r, i)


WMMA: Mapping[str, Rule] = MappingProxyType({"wmma": wmma_rule})
"""The rule by its opcode."""
