# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of PTX by their names in a text, `add.s32`, as functions of NumPy's arrays (PTX ISA, Integer Arithmetic,
Logic and Shift, Floating Point, Comparison and Selection Instructions, vote.sync).
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from types import MappingProxyType

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from ....dialects.ptx import CVT_FORMS
from ....dialects.ptx.convert import CvtForm
from ...engine import NumPyType
from ..faults import Site
from ..values import Value, ValueKind, fused_multiply_add, kind_of, round_to_tf32
from ..values.approximations import approximate
from ..values.function_unit import FUNCTIONS
from ..warp import Warp
from .arithmetic import FLOAT_COMPARISONS, MAXIMUM_NUMBER, MINIMUM_NUMBER
from .conversions import conversion
from .inline_narrow import halves_comparison, narrow_instruction, to_integer
from .ptx_compute import cvt_of, on_words, permute
from .ptx_lanes import groups_of, vote
from .roundings import rounded_instruction

_PRED, _WORD = np.dtype(bool), np.dtype(np.uint32)
TYPES: Mapping[str, NumPyType] = MappingProxyType({
    "pred": _PRED,
    **{
        f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}")
        for letter, kind in (("s", "i"), ("u", "u"), ("b", "u"), ("f", "f"))
        for bits in (32, 64)
    },
    **{f"{letter}16": np.dtype(f"{kind}2") for letter, kind in (("s", "i"), ("u", "u"), ("b", "u"))},
})  # fmt: skip
"""NumPy's types by the ends of instructions."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: `run` takes the warp and the operands, arrays of these types, and returns the result."""

    run: Callable[..., Value]
    operands: tuple[NumPyType, ...]


def instruction_of(word: str, site: Site) -> Instruction | None:
    """The instruction of a name; None for one that texts cannot have here."""
    name, _, type = word.rpartition(".")
    head, _, mode = name.rpartition(".")
    opcode, _, form = word.partition(".")
    if opcode == "cvt" and form in CVT_FORMS:
        return _several(form, CVT_FORMS[form])
    if (converted := conversion(word)) is not None:
        return _plain(*converted)
    if (known := narrow_instruction(word) or to_integer(word)) is not None:
        return _plain(known[0], *known[1])
    if head == "setp":
        compared = _comparisons(mode, type)
        return compared[0] if len(compared) == 1 else None
    if type not in TYPES:
        return None
    dtype = TYPES[type]
    if name == "selp":
        return _plain(_select, dtype, dtype, _PRED)
    if head == "vote.sync" and type == _VOTES.get(mode):
        return Instruction(partial(_vote, mode, site), (_PRED, _WORD))
    if name in _APPROXIMATE and type == "f32":
        return _plain(partial(approximate, head.partition(".")[0], dtype=dtype, ftz=mode == "ftz"), dtype)
    return _arithmetic(name, type, dtype) or _rounded(word, dtype)


def predicates_of(word: str) -> tuple[Instruction, Instruction] | None:
    """The instructions that write the predicates p and q of `setp.eq.s32 p|q`: the comparison and its negation; of
    pairs the comparison of the lower halves and that of the upper ones (PTX ISA, setp). None for another instruction.
    """
    name, _, type = word.rpartition(".")
    head, _, mode = name.rpartition(".")
    if head != "setp" or not (compared := _comparisons(mode, type)):
        return None
    first = compared[0]

    def negated(warp: Warp, *given: object) -> Value:
        return ~np.asarray(first.run(warp, *given), bool)

    return first, compared[1] if len(compared) == 2 else Instruction(negated, first.operands)


def _comparisons(mode: str, type: str) -> tuple[Instruction, ...]:
    """The comparison of a type, those of the halves of a pair; none for what texts cannot have."""
    compare = (_FLOATS_BY if "f" in type else _INTEGERS_BY).get(mode)
    if compare is None:
        return ()
    if type in TYPES:
        return (_plain(compare, TYPES[type], TYPES[type]),)
    halves = halves_comparison(type, compare)
    return () if halves is None else tuple(_plain(each, halves[1], halves[1]) for each in halves[0])


def _rounded(word: str, dtype: NumPyType) -> Instruction | None:
    """An instruction on f32 or f64 with a rounding, .ftz or .sat."""
    opcode, *modifiers, type = word.removesuffix(".f32" if word.startswith("cvt.") else "").split(".")
    if type not in ("f32", "f64"):
        return None
    known = rounded_instruction(opcode, tuple(modifiers), dtype)
    return None if known is None else _plain(known[0], *[dtype] * known[1])


def _arithmetic(name: str, type: str, dtype: NumPyType) -> Instruction | None:
    if name == "fma.rn" and type[0] == "f":
        return _plain(partial(fused_multiply_add, dtype=dtype), dtype, dtype, dtype)
    if name in _FIELDS and type in _FIELDS[name][1]:
        function, _, words = _FIELDS[name]
        return _plain(function, *[dtype] * words, *[_WORD] * (len(signature(function).parameters) - words))
    if name == "lop3" and type == "b32":
        return _plain(_lop3, dtype, dtype, dtype, _WORD)
    if name == "prmt" and type == "b32":
        return _plain(partial(on_words, permute), dtype, dtype, dtype)
    table = _LOGIC if type == "pred" else _FLOATS if type[0] == "f" else _INTEGERS
    function = table.get(name)
    if function is None:
        return None
    if name in ("shl", "shr"):
        return _plain(function, dtype, _WORD)
    count: int = function.nin if isinstance(function, np.ufunc) else len(signature(function).parameters)
    return _plain(function, *[dtype] * count)


def _plain(function: Callable[..., object], *operands: NumPyType) -> Instruction:
    """An instruction whose lanes know nothing of each other."""

    def run(_: Warp, *given: object) -> Value:
        return function(*given)

    return Instruction(run, operands)


def _several(name: str, form: CvtForm) -> Instruction:
    """A conversion to several floats, or to tf32. A pair of 16 bits each is a word, narrower ones are an integer."""
    if form.result == f32:
        return _plain(round_to_tf32, TYPES["f32"])
    convert, result = cvt_of(name), _kind(form.result)
    kinds = [_kind(operand) for operand in form.operands]

    def run(*given: object) -> Value:
        values = [x if kind.count is None else _halves(x, kind) for x, kind in zip(given, kinds, strict=True)]
        made: Value = np.ascontiguousarray(np.asarray(convert(*values), result.dtype))
        bits = made.view(f"u{result.bytes}")
        return bits if result.count is None else bits[..., 0]

    return _plain(run, *[kind.dtype if kind.count is None else _WORD for kind in kinds])


def _kind(type: Attribute) -> ValueKind:
    kind = kind_of(type)
    assert kind is not None
    return kind


def _halves(words: Value, kind: ValueKind) -> Value:
    return np.ascontiguousarray(np.atleast_1d(words)).view(kind.dtype).reshape(-1, 2)


def _select(a: object, b: object, holds: object) -> Value:
    return np.where(np.asarray(holds), np.asarray(a), np.asarray(b))


def _vote(mode: str, site: Site, warp: Warp, holds: Value, mask: object) -> Value:
    lanes = np.broadcast_to(np.asarray(mask, np.int64), (warp.lanes,))
    given = int(lanes[0]) if (lanes == lanes[0]).all() else lanes
    return vote(mode, np.broadcast_to(holds, (warp.lanes,)), warp, groups_of(warp, given, "vote.sync", site))


def _shifted(shift: Value) -> Callable[[Value, Value], Value]:
    """A shift by an unsigned number of 32 bits; by the width or more, it shifts everything out."""

    def function(x: Value, count: Value) -> Value:
        bits: int = 8 * x.dtype.itemsize
        kept: Value = np.minimum(count, bits - 1)
        out: Value = shift(x, kept.astype(x.dtype))
        if shift is np.right_shift and x.dtype.kind == "i":
            return out
        return out * (count < bits)

    return function


def _mad(a: Value, b: Value, c: Value) -> Value:
    return a * b + c


def _mul_hi(a: Value, b: Value) -> Value:
    bits = 8 * a.dtype.itemsize
    product: Value = np.asarray(a, object) * np.asarray(b, object) >> bits  # Python's integers
    return product.astype(a.dtype)


def _lop3(a: Value, b: Value, c: Value, table: Value) -> Value:
    """The logical function of three operands whose table of truth is given (PTX ISA, lop3)."""
    out: Value = np.zeros_like(a | b | c)
    for row in range(8):
        terms = [x if row >> place & 1 else ~x for place, x in ((2, a), (1, b), (0, c))]
        out |= np.where(table >> row & 1, terms[0] & terms[1] & terms[2], 0).astype(out.dtype)
    return out


def _unsigned(x: Value) -> Value:
    return x.view(f"u{x.dtype.itemsize}")


def _lowest(count: Value, dtype: NumPyType) -> Value:
    """Words whose lowest `count` bits are ones, all for the width or more."""
    return ~_SHIFT_LEFT(np.full_like(count, np.iinfo(dtype).max, dtype), count)


def _bfe(x: Value, start: Value, length: Value) -> Value:
    """A field of bits, with the sign of a signed type; the sign or 0 stands for bits above the highest."""
    word, bits = _unsigned(x), 8 * x.dtype.itemsize
    at, count = start & 255, length & 255
    field = _SHIFT_RIGHT(word, at)
    mask = _lowest(np.minimum(count, bits - np.minimum(at, bits)), word.dtype)
    top = _SHIFT_RIGHT(word, np.minimum(at + np.maximum(count, 1) - 1, bits - 1)) & 1
    fill = (top == 1) & (count > 0) & (x.dtype.kind == "i")
    return ((field & mask) | np.where(fill, ~mask, 0).astype(word.dtype)).view(x.dtype)


def _bfi(new: object, x: Value, start: Value, length: Value) -> Value:
    """`x` with a field of bits replaced by the lowest ones of `new`."""
    at = start & 255
    mask = _SHIFT_LEFT(_lowest(length & 255, x.dtype), at)
    return (x & ~mask) | (_SHIFT_LEFT(new, at) & mask)


def _brev(x: Value) -> Value:
    """The bits in reverse order."""
    bits = 8 * x.dtype.itemsize
    result: Value = np.zeros_like(x)
    for bit in range(bits):
        result |= (x >> bit & 1) << (bits - 1 - bit)
    return result


def _fns(x: Value, base: Value, offset: Value) -> Value:
    """The place of the |offset|-th one from place `base` on, up or down; of 0, that at the place (PTX ISA, fns)."""
    place, count = base.astype(np.int64), offset.view("i4").astype(np.int64)
    step, left = np.where(count < 0, -1, 1), np.maximum(np.abs(count), 1)
    found: Value = np.full(place.shape, 0xFFFFFFFF, np.int64)
    for tries in range(32):
        bit: Value = x >> np.clip(place, 0, 31).astype(x.dtype) & 1
        is_one: Value = (place >= 0) & (place < 32) & (bit == 1)
        left = left - is_one
        np.copyto(found, place, where=is_one & (left == 0) & ((count != 0) | (tries == 0)))
        place = place + step
    return found.astype(x.dtype)


def _same(x: object) -> Value:
    return x


_SHIFT_LEFT, _SHIFT_RIGHT = _shifted(np.left_shift), _shifted(np.right_shift)
_FIELDS: Mapping[str, tuple[Callable[..., Value], tuple[str, ...], int]] = MappingProxyType({
    "bfe": (_bfe, ("s32", "u32", "s64", "u64"), 1), "bfi": (_bfi, ("b32", "b64"), 2),
    "brev": (_brev, ("b32", "b64"), 1), "fns": (_fns, ("b32",), 1),
})  # fmt: skip
"""Functions with the types that they have, and how many of their operands are of the type; the others have 32 bits."""
_VOTES: Mapping[str, str] = MappingProxyType({"all": "pred", "any": "pred", "uni": "pred", "ballot": "b32"})
_APPROXIMATE = frozenset(f"{name}.approx{ftz}" for name in FUNCTIONS for ftz in ("", ".ftz"))
_INTEGERS_BY: Mapping[str, Callable[[Value, Value], Value]] = MappingProxyType({
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
})  # fmt: skip
_FLOATS_BY: Mapping[str, Callable[[Value, Value], Value]] = MappingProxyType(dict(zip(
    ("eq", "gt", "ge", "lt", "le", "ne", "num", "equ", "gtu", "geu", "ltu", "leu", "neu", "nan"),
    FLOAT_COMPARISONS[1:15],
    strict=True,
)))  # fmt: skip
_LOGIC: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "mov": _same}
)
_INTEGERS: Mapping[str, Callable[..., Value]] = MappingProxyType({
    **_LOGIC, "add": np.add, "sub": np.subtract, "mul.lo": np.multiply, "mul.hi": _mul_hi, "mad.lo": _mad,
    "min": np.minimum, "max": np.maximum, "neg": np.negative, "abs": np.abs, "popc": np.bitwise_count,
    "shl": _SHIFT_LEFT, "shr": _SHIFT_RIGHT,
})  # fmt: skip
_FLOATS: Mapping[str, Callable[..., Value]] = MappingProxyType({
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": MINIMUM_NUMBER, "max": MAXIMUM_NUMBER,
    "neg": np.negative, "abs": np.abs, "mov": _same, "add.rn": np.add, "sub.rn": np.subtract, "mul.rn": np.multiply,
    "div.rn": np.divide, "sqrt.rn": np.sqrt,
})  # fmt: skip
