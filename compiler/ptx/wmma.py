# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions of `wmma` as loads, stores and pairs of `mma.sync` (PTX ISA, Warp-level Matrix Load, Store and
Multiply-and-Accumulate Instructions).

PTX does not say which lane has which element of a fragment. Here a fragment of A is that of the `mma.sync` with 16 rows
and 8 columns, and fragments of B and of accumulators are those of two such instructions, one behind the other. Where
`wmma` has more registers, they hold the same again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue

from ...dialects import ptx
from ...dialects.ptx.mma import register_types
from ...layout.atoms.mma_table import mma_atom
from .accesses import accessed
from .moves import Rule
from .registers import Registers
from .syntax import Instruction, Operand, Vector

_HALVES = 2


@dataclass(frozen=True, slots=True)
class _Kind:
    """Operands of one element type: the bits of an element, the columns of A, and the registers of a fragment."""

    bits: int
    depth: int
    a: int
    b: int


_KINDS: Mapping[tuple[str, str], _Kind] = MappingProxyType({
    ("m16n16k16", "f16"): _Kind(16, 16, 8, 8), ("m16n16k16", "bf16"): _Kind(16, 16, 4, 4),
    ("m16n16k16", "s8"): _Kind(8, 16, 2, 2), ("m16n16k16", "u8"): _Kind(8, 16, 2, 2),
    ("m16n16k8", "tf32"): _Kind(32, 8, 4, 4),
})  # fmt: skip
_SHAPES = tuple({shape for shape, _ in _KINDS})


def _places(letter: str, kind: _Kind) -> Iterator[list[tuple[int, int, int, int]]]:
    """For each register of a fragment, without repetitions, its elements: row and column as multiples of the lane's
    quotient and remainder by 4, with constants: row = lane / 4 + r, column = c * (lane % 4) + d; of B exchanged.
    """
    per = 32 // kind.bits
    if letter == "a":
        for index in range(kind.depth * kind.bits // 64):
            yield [(8 * (index & 1), per, 4 * per * (index >> 1) + k, 0) for k in range(per)]
    elif letter == "b":
        for half in range(_HALVES):
            for index in range(kind.depth * kind.bits // 128):
                yield [(8 * half, per, 4 * per * index + k, 1) for k in range(per)]


def _accumulator_places(type: str) -> Iterator[list[tuple[int, int, int, int]]]:
    for half in range(_HALVES):
        for row in (0, 8):
            pair = [(row, 2, 8 * half + k, 0) for k in range(2)]
            yield from [pair] if type == "f16" else [[element] for element in pair]


def _offsets(
    r: Registers, i: Instruction, groups: list[list[tuple[int, int, int, int]]], bytes: int, stride: SSAValue
) -> list[list[SSAValue]]:
    """The distance of each element from the beginning of the matrix, in bytes."""
    lane = r.register("%laneid")
    quotient, rest = r.emit(arith.ShRUIOp(lane, r.constant(2, i32))), r.emit(arith.AndIOp(lane, r.constant(3, i32)))
    by_rows = "row" in i.modifiers

    def offset(r0: int, c: int, d: int, swapped: int) -> SSAValue:
        row = r.emit(arith.AddiOp(quotient, r.constant(r0, i32)))
        column = r.emit(arith.AddiOp(r.emit(arith.MuliOp(rest, r.constant(c, i32))), r.constant(d, i32)))
        major, minor = (row, column) if by_rows != bool(swapped) else (column, row)
        place = r.emit(arith.AddiOp(r.emit(arith.MuliOp(major, stride)), minor))
        return r.emit(arith.MuliOp(place, r.constant(bytes, i32)))

    return [[offset(*element) for element in group] for group in groups]


def _matrix(r: Registers, i: Instruction) -> tuple[list[list[tuple[int, int, int, int]]], int, int]:
    """The elements of each register of a load's or a store's fragment, their bits, and the registers."""
    letter, shape, type = i.modifiers[1], next((w for w in i.modifiers if w in _SHAPES), ""), i.modifiers[-1]
    if i.modifiers[0] == "store" or letter == "c":
        if not shape:
            raise r.refuse("the shape is not supported")
        return list(_accumulator_places(type)), 16 if type == "f16" else 32, 4 if type == "f16" else 8
    kind = _KINDS.get((shape, type))
    if kind is None:
        raise r.refuse("the shape or the type is not supported")
    return list(_places(letter, kind)), kind.bits, kind.a if letter == "a" else kind.b


def _stride(r: Registers, operands: list[Operand]) -> SSAValue:
    return r.read(operands[0], i32) if operands else r.constant(16, i32)


def _load(r: Registers, i: Instruction) -> None:
    target, source, *more = i.operands
    groups, bits, count = _matrix(r, i)
    items = target.items if isinstance(target, Vector) else (target,)
    if len(items) != count:
        raise r.refuse(f"the fragment has {count} registers, not {len(items)}")
    element, bytes = IntegerType(bits), bits // 8
    values: list[SSAValue] = []
    for offsets in _offsets(r, i, groups, bytes, _stride(r, more)):
        whole: SSAValue | None = None
        for index, offset in enumerate(offsets):

            def access(pointer: SSAValue, offset: SSAValue = offset) -> SSAValue:
                return r.emit(ptx.LoadOp(r.emit(ptx.PtrAddOp(pointer, offset)), element, bytes))

            loaded = accessed(r, i, source, bytes, access)
            assert loaded is not None
            part = r.resized(loaded, 32)
            part = r.emit(arith.ShLIOp(part, r.constant(bits * index, i32))) if index else part
            whole = part if whole is None else r.emit(arith.OrIOp(whole, part))
        assert whole is not None
        values.append(whole)
    for index, item in enumerate(items):
        r.write(item, values[index % len(values)])


def _store(r: Registers, i: Instruction) -> None:
    target, source, *more = i.operands
    groups, bits, count = _matrix(r, i)
    items = source.items if isinstance(source, Vector) else (source,)
    if len(items) != count:
        raise r.refuse(f"the fragment has {count} registers, not {len(items)}")
    bytes = bits // 8
    for item, offsets in zip(items, _offsets(r, i, groups, bytes, _stride(r, more)), strict=True):
        word = r.read(item, i32)
        for index, offset in enumerate(offsets):
            part = r.emit(arith.ShRUIOp(word, r.constant(bits * index, i32))) if index else word
            part = r.resized(part, bits)

            def access(pointer: SSAValue, part: SSAValue = part, offset: SSAValue = offset) -> None:
                r.add(ptx.StoreOp(part, r.emit(ptx.PtrAddOp(pointer, offset)), bytes))

            accessed(r, i, target, bytes, access)


def _multiply(r: Registers, i: Instruction) -> None:
    words = [word for word in i.modifiers[1:] if word not in ("sync", "aligned", "row", "col", "satfinite")]
    shape, *types = words
    if len(types) == 2:  # of f16, the types of D and C
        types = [types[0], "f16", "f16", types[1]]
    kind = _KINDS.get((shape, types[1])) if len(types) == 4 and types[0] == types[3] else None
    if kind is None:
        raise r.refuse("the shape or the types are not supported")
    name = f"SM80_16x8x{kind.depth}_{''.join(t.upper() for t in types)}_TN"
    atom = mma_atom(name + ("_SATURATE" if "satfinite" in i.modifiers else ""))
    target, *operands = (operand.items for operand in i.operands if isinstance(operand, Vector))
    a, b, c = ([_word(r, item) for item in items] for items in operands)
    a = a[: len(a) // 2] if kind.a == 8 else a
    b = b[: len(b) // 2] if kind.b == 8 else b
    results: list[SSAValue] = []
    for half in range(_HALVES):
        parts = [a, *(x[len(x) // 2 * half : len(x) // 2 * (half + 1)] for x in (b, c))]
        groups = [
            [r.convert(word, type) for word, type in zip(part, register_types(atom, letter), strict=True)]
            for letter, part in zip("ABC", parts, strict=True)
        ]
        results += r.add(ptx.MmaSyncOp(atom.name, *groups)).d
    for item, value in zip(target, results, strict=True):
        r.write(item, value)


def _word(r: Registers, operand: Operand) -> SSAValue:
    """A register of 32 bits, in the type that it has."""
    return r.raw(operand, 32)


def wmma_rule(r: Registers, i: Instruction) -> None:
    """wmma.load, wmma.store and wmma.mma."""
    {"load": _load, "store": _store, "mma": _multiply}[i.modifiers[0]](r, i)


WMMA: Mapping[str, Rule] = MappingProxyType({"wmma": wmma_rule})
"""The rule by its opcode."""
