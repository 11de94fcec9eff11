# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The outputs of a kernel, as far as its text tells: arguments that it writes and never reads."""

from collections.abc import Iterable, Iterator

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilefold.dialects import ptx
from tilefold.dialects.ptx import EntryOp
from tilefold.passes.analysis.effects import is_side_effect_free
from tilefold.runtime.sim.memory.provenance import root

_STORES = (ptx.StoreOp, ptx.BulkStoreOp)


def outputs_of(kernel: EntryOp) -> frozenset[str]:
    """The names of the tensors that a kernel at stage `instr` writes at places and under conditions that depend on no
    memory, and that nothing in it reads: each of their elements is to be written. A scatter, or what is written where
    data say so, may leave elements as they were.
    """
    names = {parameter.arguments[0]: parameter.name for parameter in kernel.parameters()}
    written: set[SSAValue] = set()
    others = {names.get(argument) for argument in _of_maps(kernel)}
    for op in kernel.walk():
        pointers = [value for value in op.operands if value.type == ptx.GLOBAL]
        if not pointers or isinstance(op, ptx.PtrAddOp | scf.YieldOp | scf.ForOp | scf.IfOp):
            continue
        origin = root(op, "global")
        if origin is None or origin not in names:
            return frozenset()
        if isinstance(op, _STORES) and not _depends_on_memory(_deciding(op)):
            written.add(origin)
        else:
            others.add(names[origin])
    return frozenset(names[origin] for origin in written) - others


def _of_maps(kernel: EntryOp) -> Iterator[SSAValue]:
    """The tensors that tensor maps are made of."""
    by_name = {parameter.name: parameter.arguments[0] for parameter in kernel.parameters()}
    return (by_name[recipe.tensor] for recipe in kernel.maps.values() if recipe.tensor in by_name)


def _deciding(op: Operation) -> Iterator[SSAValue]:
    """The pointer of a store, and the conditions and bounds of the loops and branches around it."""
    yield from (value for value in op.operands if value.type == ptx.GLOBAL)
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, EntryOp):
        if isinstance(parent, scf.WhileOp):
            condition = parent.before_region.block.last_op
            assert isinstance(condition, scf.ConditionOp)
            yield condition.operands[0]
        yield from parent.operands
        parent = parent.parent_op()


def _depends_on_memory(values: Iterable[SSAValue]) -> bool:
    """Whether one of the values is computed from what memory holds."""
    open, seen = list(values), set[SSAValue]()
    while open:
        value = open.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            if parent is None or isinstance(parent, EntryOp):
                continue
            open += [*parent.operands, *_handed_on(parent)]
        elif owner.regions:
            open += [*owner.operands, *_handed_on(owner)]
        elif not is_side_effect_free(owner):
            return True
        else:
            open += owner.operands
    return False


def _handed_on(op: Operation) -> Iterator[SSAValue]:
    """The values that the regions of a loop or a branch hand on."""
    for region in op.regions:
        for block in region.blocks:
            if block.last_op is not None:
                yield from block.last_op.operands
