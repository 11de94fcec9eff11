# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads of fragments, at stage `instr`, that LLVM must not join where paths meet.

A variable has a value from each of two paths, and both come from fragments, such as `v` after `v = x; if c: v = y`.
LLVM's InstCombine makes one load of the two, by a pointer that is the one fragment or the other; its SROA, which
promotes fragments to registers after it has unrolled their loops, then leaves both of them in local memory. It cannot
join two frozen values.
"""

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from ...dialects.arith.semantics import constant_of
from ...dialects.ptx import LOCAL, EntryOp, LoadOp, PtrAddOp, StoreOp
from .loop_hints import unroll_count
from .ranges import Memoised


def find_joined_loads(entry: EntryOp) -> frozenset[Operation]:
    """The loads of fragments whose values meet others that are loaded, too: as they are, or after arithmetic."""
    loaded, loads, seen = _Loaded(), set[Operation](), set[SSAValue]()
    waiting = [value for values in _handed_on(entry) if all(map(loaded.of, values)) for value in values]
    for stores in _stores(entry):
        of_loaded = [op for op in stores if loaded.of(op.value)]
        if len({_path(op) for op in of_loaded}) > 1:
            waiting += [op.value for op in of_loaded]
    while waiting:
        value = waiting.pop()
        if value in seen or not loaded.of(value):
            continue
        seen.add(value)
        assert isinstance(value, OpResult)
        if isinstance(value.op, LoadOp):
            loads.add(value.op)
        else:
            waiting.extend(value.op.operands)
    return frozenset(loads)


class _Loaded(Memoised[bool]):
    """Which values are loaded from fragments, or computed from such values by operations that LLVM joins."""

    def _compute(self, value: SSAValue) -> bool:
        match value.owner:
            case LoadOp() as load:
                return load.ptr.type == LOCAL
            case Operation() as op:
                return op.dialect_name() in ("arith", "vector") and any(map(self.of, op.operands))
            case Block():
                return False


def _handed_on(entry: EntryOp) -> Iterator[Sequence[SSAValue]]:
    """The values that paths pass on to each result of a branch, and to each value that a loop carries."""
    for op in entry.walk():
        match op:
            case scf.IfOp() if op.output:
                yield from zip(*map(_yielded, (op.true_region, op.false_region)), strict=False)
            case scf.ForOp():
                yield from zip(op.iter_args, _yielded(op.body), strict=False)
            case scf.WhileOp():
                yield from zip(op.arguments, _yielded(op.after_region), strict=False)
            case _:
                pass


def _yielded(region: Region) -> Sequence[SSAValue]:
    """The values that a region ends with; none of one that the emission will refuse."""
    last = region.block.last_op if len(region.blocks) == 1 else None
    return () if last is None else last.operands


def _stores(entry: EntryOp) -> Iterable[Sequence[StoreOp]]:
    """The stores to each fragment that meet others before loops are unrolled: those at constant offsets, which SROA
    promotes at once, and those of a branch, which InstCombine moves behind it.
    """
    stores: dict[SSAValue, list[StoreOp]] = {}
    for op in entry.walk():
        if isinstance(op, StoreOp) and op.ptr.type == LOCAL:
            fragment, is_constant = _fragment(op.ptr)
            if is_constant or isinstance(op.parent_op(), scf.IfOp):
                stores.setdefault(fragment, []).append(op)
    return stores.values()


def _fragment(pointer: SSAValue) -> tuple[SSAValue, bool]:
    """The fragment that a pointer leads into, and whether its offset is constant."""
    is_constant = True
    while isinstance(add := pointer.owner, PtrAddOp):
        pointer, is_constant = add.ptr, is_constant and constant_of(add.offset) is not None
    return pointer, is_constant


def _path(op: Operation) -> Block | None:
    """The block of an operation once the loops around it are unrolled."""
    block = op.parent
    while block is not None and isinstance(loop := block.parent_op(), scf.ForOp) and unroll_count(loop) == 0:
        block = loop.parent
    return block
