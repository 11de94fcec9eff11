# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers, and the device's printf."""

import re
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I1, I32, I64, IntegerAttr, StringAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from ...base.target import BARRIERS, MAX_THREADS, WARP
from ..definitions import (
    flag,
    irdl_op_definition,
    number,
    operand,
    optional_operand,
    optional_prop,
    prop,
    row,
    some_number,
)
from .base import PtrType, PtxOp, float_bits, scalar_bits
from .effects import NamedBarrier, Unit, arrives, by_thread, by_warp, changes, waits
from .warp import check_word

_MEETS = by_warp(arrives(NamedBarrier()), waits(NamedBarrier()))
_WHERE = "$id (`plus` $offset^)? (`threads` $threads^)? (`for` $count^)? (`unaligned` $unaligned^)? attr-dict"
"""A barrier's number and threads, as text."""


@row
class BarSyncOp(PtxOp):
    """`ptx.bar.sync 1 threads 64`: all threads of the block, or the given number, wait here for each other, and see
    the earlier writes of the others (PTX ISA, bar.sync).

    `ptx.bar.sync 1 plus %n threads 64` waits at the barrier of a number that is known when the kernel runs, 1 + `%n`;
    `ptx.bar.sync 1 for %n` waits for `%n` threads.

    Preconditions: whole warps reach it: all warps of the block, or, together with those that execute `ptx.bar.arrive`,
    as many as make up the number. All of them give the same number, and a warp one barrier. The lanes of a warp execute
    it together; `unaligned` is for lanes that took different branches: each waits until all others of its warp that
    have not returned are at such a barrier, of the same number, and then the warp arrives as one.
    """

    name = "ptx.bar.sync"
    id: IntegerAttr[I64] = prop(converter=number, default=0)
    threads: IntegerAttr[I64] | None = optional_prop(converter=some_number, default=None)
    offset: SSAValue | None = optional_operand(I32, default=None)
    count: SSAValue | None = optional_operand(I32, default=None)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    unaligned: UnitAttr | None = optional_prop(converter=flag, default=False, kw_only=True)
    traits = traits_def(_MEETS)
    assembly_format = _WHERE

    def mnemonic(self) -> str:
        return f"{_family(self.unaligned)}.sync"

    def verify_(self) -> None:
        _check_barrier(self.id, self.threads, self.count)


@row
class BarArriveOp(PtxOp):
    """`ptx.bar.arrive 1 threads 64`: counts at a barrier without waiting. Threads that wait there with `ptx.bar.sync`
    see the earlier writes of the arriving threads (PTX ISA, bar.arrive). The preconditions are those of `ptx.bar.sync`.
    """

    name = "ptx.bar.arrive"
    id: IntegerAttr[I64] = prop(converter=number)
    threads: IntegerAttr[I64] | None = optional_prop(converter=some_number, default=None)
    offset: SSAValue | None = optional_operand(I32, default=None)
    count: SSAValue | None = optional_operand(I32, default=None)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    unaligned: UnitAttr | None = optional_prop(converter=flag, default=False, kw_only=True)
    traits = traits_def(by_warp(arrives(NamedBarrier())))
    assembly_format = _WHERE

    def mnemonic(self) -> str:
        return f"{_family(self.unaligned)}.arrive"

    def verify_(self) -> None:
        _check_barrier(self.id, self.threads, self.count)
        if self.threads is None and self.count is None:
            raise VerifyException("the number of threads is missing")


@irdl_op_definition
class BarRedOp(PtxOp):
    """`%r = ptx.bar.red "or" %p, 1 threads 64 : i1`: as `ptx.bar.sync`, and a reduction of a predicate over the threads
    that meet: whether it holds in all of them (`and`), in one of them (`or`), or in how many (`popc`, an i32) (PTX ISA,
    bar.red). The preconditions, `plus` and `for` are those of `ptx.bar.sync`.
    """

    name = "ptx.bar.red"
    kind = prop_def(StringAttr)
    predicate = operand_def(I1)
    id = prop_def(IntegerAttr[I64])
    threads = opt_prop_def(IntegerAttr[I64])
    offset = opt_operand_def(I32)
    count = opt_operand_def(I32)
    unaligned = opt_prop_def(UnitAttr)
    result = result_def(I1 | I32)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(_MEETS)
    assembly_format = f"$kind $predicate `,` {_WHERE} `:` type($result)"
    KINDS: ClassVar[tuple[str, ...]] = ("and", "or", "popc")

    def __init__(
        self,
        kind: str,
        predicate: SSAValue | Operation,
        id: int = 0,
        threads: int | None = None,
        offset: SSAValue | None = None,
        count: SSAValue | None = None,
        *,
        unaligned: bool = False,
    ):
        super().__init__(
            operands=[predicate, offset, count],
            properties={
                "kind": StringAttr(kind),
                "id": IntegerAttr(id, i64),
                "threads": some_number(threads),
                "unaligned": flag(unaligned),
            },
            result_types=[i32 if kind == "popc" else i1],
        )

    def mnemonic(self) -> str:
        return f"{_family(self.unaligned)}.red.{self.kind.data}.{'u32' if self.kind.data == 'popc' else 'pred'}"

    def verify_(self) -> None:
        check_word("bar.red", self.kind.data, self.KINDS)
        _check_barrier(self.id, self.threads, self.count)
        wanted = i32 if self.kind.data == "popc" else i1
        if self.result.type != wanted:
            raise VerifyException(f"the result of bar.red.{self.kind.data} is {wanted}, not {self.result.type}")


def _family(unaligned: UnitAttr | None) -> str:
    """The name of the instructions: `bar` is that of `barrier.aligned`."""
    return "bar" if unaligned is None else "barrier"


def _check_barrier(first: IntegerAttr[I64], threads: IntegerAttr[I64] | None, count: SSAValue | None) -> None:
    if not 0 <= (id := first.value.data) < BARRIERS:
        raise VerifyException(f"the barrier is {id}; a block has barriers 0 to {BARRIERS - 1}")
    if threads is not None and (problem := wrong_count(threads.value.data)):
        raise VerifyException(problem)
    if threads is not None and count is not None:
        raise VerifyException("the number of threads is given twice")


def wrong_count(threads: int) -> str:
    """Why this many threads cannot meet at a barrier, in words; empty if they can."""
    if WARP <= threads <= MAX_THREADS and threads % WARP == 0:
        return ""
    return f"{threads} threads meet at the barrier; it is a multiple of {WARP}, up to {MAX_THREADS}"


@row
class NanosleepOp(PtxOp):
    """`ptx.nanosleep %ns`: pauses the thread for about `ns` nanoseconds, at most a million (PTX ISA, nanosleep)."""

    name = "ptx.nanosleep"
    MNEMONIC: ClassVar[str | None] = "nanosleep.u32"
    SINCE: ClassVar = 70, 63
    duration: SSAValue = operand(I32)
    traits = traits_def(by_thread(waits(Unit.CLOCK)))
    assembly_format = "$duration attr-dict"


@irdl_op_definition
class GridDependencyWaitOp(PtxOp):
    """`ptx.griddepcontrol.wait`: waits until the grids that this one may overlap have ended and their writes are
    visible; returns at once in a launch without overlap (PTX ISA, griddepcontrol). A simulated launch begins when the
    one before has ended, so it never waits; but reads of what that one has written are races unless they come after a
    wait, if that one executes `ptx.griddepcontrol.launch_dependents` and this launch may overlap with it.
    """

    name = "ptx.griddepcontrol.wait"
    MNEMONIC: ClassVar[str | None] = "griddepcontrol.wait"
    SINCE: ClassVar = 90, 78
    traits = traits_def(by_thread(waits(Unit.GRIDS)))
    assembly_format = "attr-dict"


@irdl_op_definition
class LaunchDependentsOp(PtxOp):
    """`ptx.griddepcontrol.launch_dependents`: once every block has executed it or ended, grids that were launched to
    overlap with this one may begin (PTX ISA, griddepcontrol). They must wait before they read results of this grid.
    """

    name = "ptx.griddepcontrol.launch_dependents"
    MNEMONIC: ClassVar[str | None] = "griddepcontrol.launch_dependents"
    SINCE: ClassVar = 90, 78
    traits = traits_def(by_thread(arrives(Unit.GRIDS)))
    assembly_format = "attr-dict"


@row
class BarWarpSyncOp(PtxOp):
    """`ptx.bar.warp.sync -1`: the lanes in the mask wait for each other (PTX ISA, bar.warp.sync).

    `ptx.bar.warp.sync -1 lanes %mask` takes a mask that is known when the kernel runs; lanes may have different ones.
    """

    name = "ptx.bar.warp.sync"
    MNEMONIC: ClassVar[str | None] = "bar.warp.sync"
    mask: IntegerAttr[I64] = prop(converter=number, default=-1)
    lanes: SSAValue | None = optional_operand(I32, default=None)
    traits = traits_def(by_warp(arrives(Unit.WARP_BARRIER), waits(Unit.WARP_BARRIER)))
    assembly_format = "$mask (`lanes` $lanes^)? attr-dict"

    def verify_(self) -> None:
        if not -1 <= self.mask.value.data < 2**32 or self.mask.value.data == 0:
            raise VerifyException("the mask has a bit for each of 32 lanes, at least one of them set; -1 sets all")


@irdl_op_definition
class PrintfOp(PtxOp):
    """`ptx.printf "x = %d\\n"(%x) : i32`: prints from the executing thread, as C's printf does.

    Conversions: %d %i %u %x %o %c for integers, with l or ll for those of 64 bits, %f %e %g for floats, %p for
    pointers; %% for a percent sign. Widths of up to three digits; no strings or stars, so that a format cannot read
    memory.
    """

    name = "ptx.printf"
    MNEMONIC: ClassVar[str | None] = "call.vprintf"
    format = prop_def(StringAttr)
    args = var_operand_def()
    traits = traits_def(by_thread(changes(Unit.OUTPUT)))
    assembly_format = "$format `(` $args `)` attr-dict `:` type($args)"

    def __init__(self, format: str, args: Sequence[SSAValue | Operation]):
        super().__init__(operands=[args], properties={"format": StringAttr(format)})

    def verify_(self) -> None:
        conversions = self.conversions()
        if len(conversions) != len(self.args):
            raise VerifyException(
                f"the format has {len(conversions)} conversions, but {len(self.args)} values follow it"
            )
        for index, (conversion, arg) in enumerate(zip(conversions, self.args, strict=True)):
            if isinstance(arg.type, PtrType):
                fits = conversion == "p"
            else:
                bits = scalar_bits(arg.type)
                is_float = float_bits(arg.type) is not None
                wide = conversion.startswith("ll")
                fits = bits is not None and conversion != "p" and (conversion in ("f", "e", "g")) == is_float
                fits = fits and (is_float or wide == (bits == 64))
            if not fits:
                raise VerifyException(f"conversion %{conversion} does not fit value {index} of type {arg.type}")

    def conversions(self) -> list[str]:
        """The conversions of the format in order, without the percent sign (`lld`). VerifyException on a bad one."""
        try:
            return conversions(self.format.data)
        except ValueError as error:
            raise VerifyException(str(error)) from None


CONVERSION = re.compile(r"%(?P<form>[-+ #0]*\d{0,3}(?:\.\d{0,3})?)(?P<size>hh|h|ll|l|z)?(?P<kind>[diuxXocfFeEgGps])|%%")
"""A conversion of printf: flags, width and precision; the size of an integer; its kind."""


def conversions(format: str, *, strings: bool = False) -> list[str]:
    """The conversions of a printf format in order, as `lld` for an integer of 64 bits, or one letter; %s only where
    `strings` says so.

    ValueError for another conversion, and for a NUL character.
    """
    if "\0" in format:
        raise ValueError("the format contains a NUL character")
    found: list[str] = []
    at = format.find("%")
    while at >= 0:
        match = CONVERSION.match(format, at)
        kind = None if match is None else match["kind"]
        if match is None or (kind == "s" and not strings):
            listed = "%d %i %u %x %o %c, with l or ll of 64 bits, %f %e %g %p %%"
            raise ValueError(f"unknown conversion '{format[at : at + 4]}'; known: {listed}, with widths")
        if kind is not None:
            is_long = match["size"] in ("l", "ll", "z") and kind in "diuxXo"
            found.append(f"ll{kind.lower()}" if is_long else kind.lower())
        at = format.find("%", match.end())
    return found
