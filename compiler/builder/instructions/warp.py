# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchange between the lanes of a warp: other lanes' values, votes, reductions.

`mask` names the lanes that take part, each by its bit; they execute the call together. A fragment is exchanged element
by element.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i16, i32, i64
from xdsl.ir import SSAValue

from ....base.errors import Code, TilefoldError
from ....base.target import WARP
from ....dialects import ptx
from ....dialects.arith.integer_range import contains
from ..scalars.casts import integer_attribute
from ..scalars.dtypes import Boolean, Int32, Int64, Uint32, of_sign
from ..scalars.values import Bool, Int, Value, as_value, convert, wrap
from ..tensors.fragments import Reduction, Vec, check_reduction, elementwise
from ..tracing.state import current, emit, insert_value

FULL_MASK = 0xFFFFFFFF
"""All lanes of the warp."""


def shuffle_sync(value: Any, lane: Any, width: int = WARP, mask: Any = FULL_MASK) -> Any:
    """The value of lane `lane`, counted from the first of the segment of `width` lanes."""
    return _shuffled("idx", value, lane, width, mask)


def shuffle_sync_bfly(value: Any, offset: Any, width: int = WARP, mask: Any = FULL_MASK) -> Any:
    """The value of the lane whose number differs in the bits of `offset`."""
    return _shuffled("bfly", value, offset, width, mask)


def shuffle_sync_up(value: Any, offset: Any, width: int = WARP, mask: Any = FULL_MASK) -> Any:
    """The value of the lane `offset` before; its own where that is before the segment of `width` lanes."""
    return _shuffled("up", value, offset, width, mask)


def shuffle_sync_down(value: Any, offset: Any, width: int = WARP, mask: Any = FULL_MASK) -> Any:
    """The value of the lane `offset` after; its own where that is after the segment of `width` lanes."""
    return _shuffled("down", value, offset, width, mask)


def warp_reduce(value: Any, op: Reduction, width: int = WARP, mask: Any = FULL_MASK) -> Any:
    """The values of `width` lanes that follow each other, a power of two, combined in each of them, by a butterfly."""
    if width not in (1, 2, 4, 8, 16, 32):
        raise TilefoldError(Code.BUILD_VALUE, f"a segment has 1, 2, 4, 8, 16 or 32 lanes, not {width}")
    check_reduction(op)
    offset = width // 2
    while offset:
        value = op.function(value, shuffle_sync_bfly(value, offset, mask=mask))
        offset //= 2
    return value


def vote_all(predicate: Any, mask: Any = FULL_MASK) -> Bool:
    """Whether a predicate holds in all lanes."""
    return _vote("all", predicate, mask)


def vote_any(predicate: Any, mask: Any = FULL_MASK) -> Bool:
    """Whether a predicate holds in one of the lanes."""
    return _vote("any", predicate, mask)


def vote_uni(predicate: Any, mask: Any = FULL_MASK) -> Bool:
    """Whether a predicate is the same in all lanes."""
    return _vote("uni", predicate, mask)


def vote_ballot(predicate: Any, mask: Any = FULL_MASK) -> Int:
    """An Int32 with a bit for each lane in which a predicate holds."""
    return _vote("ballot", predicate, mask)


def match_any(value: Any, mask: Any = FULL_MASK) -> Int:
    """An Int32 with a bit for each lane that has the same Int32."""
    return wrap(emit(ptx.MatchAnySyncOp(convert(value, Int32).ssa, _mask(mask))).results[0])


def redux_sync(value: Any, kind: str, mask: Any = FULL_MASK) -> Any:
    """The Int32 or Uint32 of all lanes combined: `add`, `min`, `max`, `umin`, `umax`, `and`, `or` or `xor` (sm_80)."""
    operand = as_value(value)
    if operand.dtype.kind != "float":
        operand = convert(operand, Uint32 if operand.dtype.unsigned and operand.dtype.bits == 32 else Int32)
    kind = of_sign(kind, operand.dtype)
    return wrap(emit(ptx.ReduxSyncOp(kind, operand.ssa, _mask(mask))).results[0], operand.dtype)


class Elected(Bool):
    """The result of `elect_one`. In rewritten functions, `with` on it is a branch of the kernel."""

    __slots__ = ()

    def __enter__(self) -> None:
        hint = "write cute.if_(cute.arch.elect_one(), ...), or leave out rewrite=False"
        raise TilefoldError(Code.BUILD_FORM, "'with elect_one()' is in a function that is not rewritten", hint)

    def __exit__(self, *error: object) -> None: ...


def elect_one(mask: Any = FULL_MASK) -> Elected:
    """Whether this is the one lane of the mask that is chosen (sm_90): `if elect_one():`, or `with elect_one():`."""
    return Elected(emit(ptx.ElectSyncOp(_mask(mask))).results[0])


def activemask() -> Int:
    """An Int32 with a bit for each lane that executes this."""
    return wrap(emit(ptx.ActivemaskOp()).results[0])


def _vote(mode: str, predicate: Any, mask: Any) -> Any:
    return wrap(emit(ptx.VoteSyncOp(mode, convert(predicate, Boolean).ssa, _mask(mask))).results[0])


def _mask(mask: Any) -> SSAValue | None:
    return None if type(mask) is int and mask in (-1, FULL_MASK) else convert(mask, Int32).ssa


def _shuffled(mode: str, value: Any, lane: Any, width: int, mask: Any) -> Any:
    where, lanes = convert(lane, Int32).ssa, _mask(mask)

    def word(ssa: SSAValue) -> SSAValue:
        return emit(ptx.ShflSyncOp(mode, ssa, where, None if width == WARP else width, lanes)).results[0]

    if isinstance(value, Vec):
        moved = elementwise(partial(by_words, word), value.dtype, value)
        moved.settle()  # lanes meet here, not where the result is used
        return moved
    return by_words(word, as_value(value))


def by_words(word: Callable[[SSAValue], SSAValue], value: Value) -> Any:
    """Applies a function of 32 bits to a value of another width: to its halves, or to the value in the low bits."""
    dtype, ssa = value.dtype, value.ssa
    if dtype.kind == "bool":
        return convert(wrap(word(convert(value, Int32).ssa)), dtype)
    if isinstance(value, Int) and dtype.name == "Index":
        narrow = Int32 if contains(Int32.limits, value.range) else Int64
        return convert(by_words(word, convert(value, narrow)), dtype)
    if dtype.bits == 32:
        return wrap(word(ssa), dtype)
    is_float = dtype.kind == "float"
    if dtype.bits == 64:
        bits = insert_value(arith.BitcastOp(ssa, i64)) if is_float else ssa
        half = current().constant(integer_attribute(32, i64))
        low = word(insert_value(arith.TruncIOp(bits, i32)))
        high = word(insert_value(arith.TruncIOp(insert_value(arith.ShRUIOp(bits, half)), i32)))
        wide = insert_value(arith.ShLIOp(insert_value(arith.ExtUIOp(high, i64)), half))
        joined = insert_value(arith.OrIOp(wide, insert_value(arith.ExtUIOp(low, i64))))
        return wrap(insert_value(arith.BitcastOp(joined, dtype.ir)) if is_float else joined, dtype)
    own = {8: i8, 16: i16}[dtype.bits]
    bits = insert_value(arith.BitcastOp(ssa, own)) if is_float else ssa
    moved = insert_value(arith.TruncIOp(word(insert_value(arith.ExtUIOp(bits, i32))), own))
    return wrap(insert_value(arith.BitcastOp(moved, dtype.ir)) if is_float else moved, dtype)
