# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchange of values between the lanes of a warp (PTX ISA, sections shfl.sync, vote.sync, match.sync, redux.sync)."""

from typing import ClassVar

from xdsl.dialects.builtin import I1, I32, I64, IntegerAttr, StringAttr, f32, i1, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    VarConstraint,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.utils.exceptions import VerifyException

from ...base.target import WARP, TargetFamily, Targets
from ..definitions import irdl_op_definition, operand, optional_operand, optional_prop, prop, row, some_number, text
from .base import PtxOp, value_bytes
from .effects import EXCHANGES, Unit, by_warp, senses


class _LaneOp(PtxOp):
    """An instruction that the lanes of a mask execute together.

    `mask %m` names them, each lane by its bit; without it they are all lanes of the warp. Preconditions: exactly these
    lanes execute the instruction, and they agree about the mask.
    """


def check_word(instruction: str, kind: str, allowed: tuple[str, ...]) -> None:
    """Refuses, as a verifier does, a word that is not one of those that an instruction has."""
    if kind not in allowed:
        raise VerifyException(f'{instruction} has {", ".join(allowed)}; not "{kind}"')


@row
class ShflSyncOp(_LaneOp):
    """`%r = ptx.shfl.sync "bfly" %v, %b width 16 : f32`: another lane's value (PTX ISA, shfl.sync).

    It comes from lane `i ^ b` (`bfly`), `i - b` (`up`), `i + b` (`down`) or `b` (`idx`). The warp is divided into
    segments of `width` lanes, 32 unless a power of two is given. If the source lane would be outside the executing
    lane's segment, the result is the lane's own value. `idx` counts from the segment's first lane.

    A value has 32 bits. Preconditions: those of the mask; the lane that the value comes from is one of the mask.
    """

    name = "ptx.shfl.sync"
    T: ClassVar[VarConstraint] = VarConstraint("T", AnyAttr())
    mode: StringAttr = prop(converter=text)
    value: SSAValue = operand(T)
    lane: SSAValue = operand(I32)
    width: IntegerAttr[I64] | None = optional_prop(converter=some_number, default=None)
    mask: SSAValue | None = optional_operand(I32, default=None)
    result = result_def(T)
    traits = traits_def(EXCHANGES)
    assembly_format = "$mode $value `,` $lane (`width` $width^)? (`mask` $mask^)? attr-dict `:` type($result)"
    MODES: ClassVar[tuple[str, ...]] = ("up", "down", "bfly", "idx")

    @property
    def segment(self) -> int:
        """The lanes of a segment."""
        return WARP if self.width is None else self.width.value.data

    @property
    def control(self) -> int:
        """The instruction's operand c: the segment mask above the clamp value."""
        return (WARP - self.segment) << 8 | (0 if self.mode.data == "up" else WARP - 1)

    def mnemonic(self) -> str:
        return f"shfl.sync.{self.mode.data}.b32"

    def verify_(self) -> None:
        check_word("shfl.sync", self.mode.data, self.MODES)
        if value_bytes(self.value.type) != 4:
            raise VerifyException(f"shfl.sync exchanges a value of 32 bits, not {self.value.type}")
        if not 1 <= self.segment <= WARP or self.segment & (self.segment - 1):
            raise VerifyException(f"a segment has 1, 2, 4, 8, 16 or 32 lanes, not {self.segment}")


@row
class ShflSyncValidOp(_LaneOp):
    """`%r, %p = ptx.shfl.sync.valid "up" %v, %b, %c mask %m : i32`: as `ptx.shfl.sync`, with the instruction's
    operand c, and whether the source lane lies in the segment of the executing one (PTX ISA, shfl.sync).

    Bits 8 to 12 of `c` are the bits of a lane's number that name its segment; bits 0 to 4 are, within the segment, the
    last lane that a value comes from, of `up` the first. Without that lane the result is the lane's own value.
    """

    name = "ptx.shfl.sync.valid"
    T: ClassVar[VarConstraint] = VarConstraint("T", AnyAttr())
    mode: StringAttr = prop(converter=text)
    value: SSAValue = operand(T)
    lane: SSAValue = operand(I32)
    control: SSAValue = operand(I32)
    mask: SSAValue | None = optional_operand(I32, default=None)
    result = result_def(T)
    valid = result_def(I1)
    traits = traits_def(EXCHANGES)
    assembly_format = "$mode $value `,` $lane `,` $control (`mask` $mask^)? attr-dict `:` type($result)"

    def mnemonic(self) -> str:
        return f"shfl.sync.{self.mode.data}.b32"

    def verify_(self) -> None:
        check_word("shfl.sync", self.mode.data, ShflSyncOp.MODES)
        if value_bytes(self.value.type) != 4:
            raise VerifyException(f"shfl.sync exchanges a value of 32 bits, not {self.value.type}")


@irdl_op_definition
class VoteSyncOp(_LaneOp):
    """`%r = ptx.vote.sync "ballot" %p : i32`: a vote of the lanes on a predicate (PTX ISA, vote.sync).

    `all` and `any`: whether it holds in all, or in one, of the lanes; `uni`: whether it is the same in all. `ballot`:
    an i32 with a bit for each lane where it holds.
    """

    name = "ptx.vote.sync"
    mode = prop_def(StringAttr)
    predicate = operand_def(I1)
    mask = opt_operand_def(I32)
    result = result_def(I1 | I32)
    traits = traits_def(EXCHANGES)
    assembly_format = "$mode $predicate (`mask` $mask^)? attr-dict `:` type($result)"
    MODES: ClassVar[tuple[str, ...]] = ("all", "any", "uni", "ballot")

    def __init__(self, mode: str, predicate: SSAValue | Operation, mask: SSAValue | None = None):
        super().__init__(
            operands=[predicate, mask],
            properties={"mode": StringAttr(mode)},
            result_types=[i32 if mode == "ballot" else i1],
        )

    def mnemonic(self) -> str:
        return "vote.sync.ballot.b32" if self.mode.data == "ballot" else f"vote.sync.{self.mode.data}.pred"

    def verify_(self) -> None:
        check_word("vote.sync", self.mode.data, self.MODES)
        wanted = i32 if self.mode.data == "ballot" else i1
        if self.result.type != wanted:
            raise VerifyException(f"the result of vote.sync.{self.mode.data} is {wanted}, not {self.result.type}")


@row
class MatchAnySyncOp(_LaneOp):
    """`%r = ptx.match.any.sync %v`: a bit for each lane of the mask whose value is the same (PTX ISA, match.sync)."""

    name = "ptx.match.any.sync"
    MNEMONIC: ClassVar[str | None] = "match.any.sync.b32"
    value: SSAValue = operand(I32)
    mask: SSAValue | None = optional_operand(I32, default=None)
    result = result_def(I32)
    traits = traits_def(EXCHANGES)
    assembly_format = "$value (`mask` $mask^)? attr-dict"


@row
class ReduxSyncOp(_LaneOp):
    """`%r = ptx.redux.sync "add" %v : i32`: the reduction of a number over the lanes, in each of them (PTX ISA,
    redux.sync).

    Of i32 `add`, `min`, `max` of signed numbers, `umin`, `umax` of unsigned ones, `and`, `or`, `xor` of bits; of f32
    `min` and `max`, also `min.abs` of the magnitudes, which only GPUs of compute capability 10.x have. In f32, the
    result is NaN only if all numbers are NaN, with `min.NaN` or `max.abs.NaN` if any is.
    """

    name = "ptx.redux.sync"
    SINCE: ClassVar = 80, 70
    T: ClassVar[VarConstraint] = VarConstraint("T", AnyAttr())
    kind: StringAttr = prop(converter=text)
    value: SSAValue = operand(T)
    mask: SSAValue | None = optional_operand(I32, default=None)
    result = result_def(T)
    traits = traits_def(EXCHANGES)
    assembly_format = "$kind $value (`mask` $mask^)? attr-dict `:` type($value)"
    FLOAT_KINDS: ClassVar[tuple[str, ...]] = tuple(
        f"{extreme}{magnitude}{nan}" for extreme in ("min", "max") for magnitude in ("", ".abs") for nan in ("", ".NaN")
    )
    KINDS: ClassVar[tuple[str, ...]] = ("add", "min", "max", "umin", "umax", "and", "or", "xor")

    @property
    def is_float(self) -> bool:
        """Whether numbers of f32 are reduced."""
        return self.value.type == f32

    @property
    def targets(self) -> TargetFamily | Targets:
        return TargetFamily(100, 86, "f", generation=10) if self.is_float else super().targets

    def mnemonic(self) -> str:
        return f"redux.sync.{f'{self.kind.data}.f32' if self.is_float else suffix_of(self.kind.data, i32)}"

    def verify_(self) -> None:
        if self.value.type not in (i32, f32):
            raise VerifyException(f"redux.sync reduces i32 or f32, not {self.value.type}")
        check_word("redux.sync", self.kind.data, self.FLOAT_KINDS if self.is_float else self.KINDS)


@row
class ElectSyncOp(_LaneOp):
    """`%p = ptx.elect.sync`: whether this lane is the one that is elected of the mask's lanes (PTX ISA, elect.sync).

    The PTX ISA does not specify which lane is elected; the simulator elects the first.
    """

    name = "ptx.elect.sync"
    MNEMONIC: ClassVar[str | None] = "elect.sync"
    SINCE: ClassVar = 90, 80
    mask: SSAValue | None = optional_operand(I32, default=None)
    result = result_def(I1)
    traits = traits_def(EXCHANGES)
    assembly_format = "(`mask` $mask^)? attr-dict"


@row
class ActivemaskOp(PtxOp):
    """`%m = ptx.activemask`: a bit for each lane that executes the instruction (PTX ISA, activemask).

    The lanes that a GPU executes together are at most those of the branch that the text is in, and may be fewer.
    """

    name = "ptx.activemask"
    MNEMONIC: ClassVar[str | None] = "activemask.b32"
    SINCE: ClassVar = 70, 62
    result = result_def(I32)
    traits = traits_def(by_warp(senses(Unit.LANES)))
    assembly_format = "attr-dict"


def suffix_of(kind: str, type: Attribute) -> str:
    """A reduction with its type as PTX spells it: `umin` of i32 is `min.u32`, `add` is `add.s32`, `or` is `or.b32`."""
    bits = str(type).removeprefix("i")
    if kind.startswith("u"):
        return f"{kind[1:]}.u{bits}"
    return f"{kind}.{'s' if kind in ('add', 'min', 'max') else 'b'}{bits}"
