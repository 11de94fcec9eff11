# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchange between the lanes of a warp: other lanes' values, votes, reductions.

`mask` names the lanes that take part, each by its bit; they execute the call together. A fragment is exchanged element
by element.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i8, i16, i32, i64
from xdsl.ir import Block, Region, SSAValue

from ...base.errors import Code, TilefoldError
from ...base.target import WARP
from ...dialects import ptx
from ...dialects.arith.integer_range import contains
from ..scalars.casts import integer_attribute
from ..scalars.dtypes import Boolean, Int32, Int64, Uint32, of_sign
from ..scalars.operators import Operand
from ..scalars.values import Bool, Int, Value, as_value, constant, convert, wrap
from ..tensors.fragments import ReductionOp, Vec, elementwise, reduction, unary_of
from ..tracing.state import current, emit, insert_value
from .extremes import fmax, fmin
from .math import where

FULL_MASK = 0xFFFFFFFF
"""All lanes of the warp."""


CLAMP = WARP - 1
"""The default of `mask_and_clamp`: the whole warp."""


def shuffle_sync_op(
    value: object, offset: object, mask: object = FULL_MASK, mask_and_clamp: int = CLAMP, kind: str = "idx"
) -> Operand:
    """The value of another lane, chosen by `idx`, `bfly`, `up` or `down` like in the functions below.

    `mask_and_clamp` is the instruction's operand c (PTX ISA, shfl.sync): segments of `width` lanes are
    `32 - width << 8 | 31`, or `| width - 1`, and `32 - width << 8` for `up`.
    """
    width = WARP - (mask_and_clamp >> 8) if type(mask_and_clamp) is int else 0
    clamp = (0, CLAMP) if kind == "up" else (CLAMP,)
    in_both = 0 if kind == "up" else WARP - width  # the bits of the mask count in the clamp too
    if width not in (1, 2, 4, 8, 16, 32) or (mask_and_clamp & 0xFF | in_both) not in clamp:
        hint = f"write 32 - width << 8{'' if kind == 'up' else ' | 31'}, for segments of 1, 2, 4, 8, 16 or 32 lanes"
        raise TilefoldError(Code.BUILD_VALUE, f"{mask_and_clamp!r} is not a mask of segments of lanes", hint)
    return _shuffle(kind, value, offset, width, mask)


def shuffle_sync(value: object, offset: object, mask: object = FULL_MASK, mask_and_clamp: int = CLAMP) -> Operand:
    """The value of lane `offset`, counted from the first of its segment."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp)


def shuffle_sync_bfly(value: object, offset: object, mask: object = FULL_MASK, mask_and_clamp: int = CLAMP) -> Operand:
    """The value of the lane whose number differs in the bits of `offset`."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "bfly")


def shuffle_sync_up(value: object, offset: object, mask: object = FULL_MASK, mask_and_clamp: int = CLAMP) -> Operand:
    """The value of the lane `offset` lanes lower; the lane's own value if that is before its segment."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "up")


def shuffle_sync_down(value: object, offset: object, mask: object = FULL_MASK, mask_and_clamp: int = CLAMP) -> Operand:
    """The value of the lane `offset` lanes higher; the lane's own value if that is beyond its segment."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "down")


def warp_reduction(
    value: object, op: "ReductionOp | Callable[[Any, Any], Any]", *, threads_in_group: int = WARP
) -> Operand:
    """Combines the values of `threads_in_group` consecutive lanes, a power of two, by a butterfly; each lane gets the
    result. `op` is a reduction such as `ReductionOp.ADD`, or a function of two values.
    """
    if threads_in_group not in (1, 2, 4, 8, 16, 32):
        message = f"a segment has 1, 2, 4, 8, 16 or 32 lanes, not {threads_in_group}"
        raise TilefoldError(Code.BUILD_VALUE, message)
    combine = reduction(op).function
    offset = threads_in_group // 2
    while offset:
        value = combine(value, shuffle_sync_bfly(value, offset))
        offset //= 2
    return value


def warp_reduction_sum(value: object, *, threads_in_group: int = WARP) -> Operand:
    """The sum of the values of `threads_in_group` consecutive lanes, in each of them."""
    return warp_reduction(value, ReductionOp.ADD, threads_in_group=threads_in_group)


def warp_reduction_max(value: object, *, threads_in_group: int = WARP) -> Operand:
    """The largest value of `threads_in_group` consecutive lanes, in each of them."""
    return warp_reduction(value, ReductionOp.MAX, threads_in_group=threads_in_group)


def vote_all_sync(pred: object, mask: object = FULL_MASK) -> Bool:
    """Whether a predicate holds in all lanes."""
    return _vote("all", pred, mask)


def vote_any_sync(pred: object, mask: object = FULL_MASK) -> Bool:
    """Whether a predicate holds in one of the lanes."""
    return _vote("any", pred, mask)


def vote_uni_sync(pred: object, mask: object = FULL_MASK) -> Bool:
    """Whether a predicate is the same in all lanes."""
    return _vote("uni", pred, mask)


def vote_ballot_sync(pred: object, mask: object = FULL_MASK) -> Int:
    """An Int32 with a bit for each lane in which a predicate holds."""
    return _vote("ballot", pred, mask)


def match_sync(mask: Operand, value: object, kind: str = "any") -> Operand:
    """A Uint32 with a bit for each lane that has the same Int32 ("any"); or with all bits of the mask where all lanes
    have the same one, else 0 ("all") (PTX ISA, match.sync). TilefoldError (E5002) for another kind.
    """
    if kind not in ("any", "all"):
        raise TilefoldError(Code.BUILD_VALUE, f"match_sync does not support the kind {kind!r}", "'any' or 'all'")
    same = convert(match_any(value, mask), Uint32)
    lanes = convert(as_value(mask, Uint32), Uint32)
    return same if kind == "any" else where(same == lanes, lanes, convert(0, Uint32))


def match_any(value: Operand, mask: Operand = FULL_MASK) -> Int:
    """An Int32 with a bit for each lane that has the same Int32."""
    return wrap(emit(ptx.MatchAnySyncOp(convert(value, Int32).ssa, lane_mask(mask))).results[0])


def redux_sync(value: Operand, kind: str, mask: object = FULL_MASK) -> Operand:
    """Combines the Int32 or Uint32 of all lanes by `add`, `min`, `max`, `umin`, `umax`, `and`, `or` or `xor`
    (sm_80).
    """
    operand = as_value(value)
    if operand.dtype.kind != "float":
        operand = convert(operand, Uint32 if operand.dtype.unsigned and operand.dtype.bits == 32 else Int32)
    kind = of_sign(kind, operand.dtype)
    return wrap(emit(ptx.ReduxSyncOp(kind, operand.ssa, lane_mask(mask))).results[0], operand.dtype)


def warp_redux_sync(
    value: Operand, kind: str, mask_and_clamp: object = FULL_MASK, *, abs: bool = False, nan: bool = False
) -> Operand:
    """The values of all lanes combined: of integers as `redux_sync`; `fmax` and `fmin` of floats, of their magnitudes
    with `abs`, by a butterfly of the whole warp; NaN stays with `nan`. TilefoldError (E5002) for these of some lanes.
    """
    if kind not in ("fmax", "fmin") and as_value(value).dtype.kind != "float":
        return redux_sync(value, kind, mask_and_clamp)
    if mask_and_clamp not in (FULL_MASK, -1):
        raise TilefoldError(Code.BUILD_VALUE, f"'{kind}' reduces over all lanes of a warp only", "use warp_reduction")
    extremes = {"fmax": fmax, "max": fmax, "fmin": fmin, "min": fmin}
    if kind not in extremes:
        raise TilefoldError(
            Code.BUILD_VALUE, f"warp reductions do not support '{kind}' of floats", "use warp_reduction"
        )
    if not nan:
        reduced = ReductionOp.MAX if extremes[kind] is fmax else ReductionOp.MIN
        return warp_reduction(unary_of("abs", value) if abs else value, reduced)
    return warp_reduction(unary_of("abs", value) if abs else value, partial(extremes[kind], nan=True))


class Elected(Bool):
    """The result of `elect_one`; `with` on it is a branch of the kernel. In functions that are not rewritten the branch
    passes on no variables: a value that is made in it is not used after it.
    """

    __slots__ = ("_branch",)

    def __enter__(self) -> None:
        block = Block()
        current().elected.append(block)
        inside = current().inside(block)
        self._branch: Any = block, inside
        inside.__enter__()

    def __exit__(self, *error: object) -> None:
        block, inside = self._branch
        if error[0] is None:
            current().insert(scf.YieldOp())
        inside.__exit__(*error)
        if error[0] is None:
            current().insert(scf.IfOp(self.ssa, [], Region(block), Region()))


def is_elected() -> bool:
    """Whether one elected thread of each warp executes the operations added now."""
    return not current().open_blocks.isdisjoint(current().elected)


def elect_one(mask: object = FULL_MASK) -> Elected:
    """Whether this is the elected lane of the mask (sm_90): `if elect_one():`, or `with elect_one():`. A thread that is
    elected already is elected again.
    """
    if is_elected():
        return Elected(constant(True, Boolean).ssa)
    return Elected(emit(ptx.ElectSyncOp(lane_mask(mask))).results[0])


def activemask() -> Int:
    """An Int32 with a bit for each active lane."""
    return wrap(emit(ptx.ActivemaskOp()).results[0])


def _vote(mode: str, predicate: Operand, mask: Operand) -> Operand:
    return wrap(emit(ptx.VoteSyncOp(mode, convert(predicate, Boolean).ssa, lane_mask(mask))).results[0])


def lane_mask(mask: Operand) -> SSAValue | None:
    """A mask of lanes as instructions take it; None for the whole warp."""
    return None if type(mask) is int and mask in (-1, FULL_MASK) else convert(mask, Int32).ssa


def _shuffle(mode: str, value: Operand, lane: Operand, width: int, mask: Operand) -> Operand:
    where, lanes = convert(lane, Int32).ssa, lane_mask(mask)

    def word(ssa: SSAValue) -> SSAValue:
        return emit(ptx.ShflSyncOp(mode, ssa, where, None if width == WARP else width, lanes)).results[0]

    if isinstance(value, Vec):
        moved = elementwise(partial(by_words, word), value.dtype, value)
        moved.materialize()  # lanes meet here, not where the result is used
        return moved
    return by_words(word, as_value(value))


def by_words(word: Callable[[SSAValue], SSAValue], value: Value) -> Operand:
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
