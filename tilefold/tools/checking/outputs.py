# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The outputs of a kernel, as far as its text tells: arguments that it writes and never reads."""

from collections.abc import Iterable, Iterator, Mapping

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilefold.base.spaces import GMEM
from tilefold.dialects import ptx
from tilefold.dialects.arith.semantics import is_side_effect_free
from tilefold.dialects.ptx import EntryOp
from tilefold.dialects.ptx.effects import Accesses, Act, Memory, Unit, does, effects_of, space_of
from tilefold.runtime.sim.memory.provenance import root

_HANDING_ON = (ptx.PtrAddOp, scf.YieldOp, scf.ForOp, scf.IfOp)
"""Operations on pointers and tensor maps that access no tensor."""


def outputs_of(kernel: EntryOp) -> frozenset[str]:
    """The names of the tensors that a kernel at stage `instr` writes at places and under conditions that depend on no
    memory, and that nothing in it reads: each of their elements is to be written. A scatter, or a write that
    data decide, may leave elements as they were; atomic operations and reductions read the elements they change.
    """
    names = {parameter.arguments[0]: parameter.name for parameter in kernel.parameters()}
    tensors = {name: argument for argument, name in names.items()}
    maps: dict[SSAValue, SSAValue] = {
        kernel.body.block.args[index]: tensors[recipe.tensor] for index, recipe in kernel.maps.items()
    }
    written: set[SSAValue] = set()
    others: set[str] = set()
    for op in kernel.walk():
        if isinstance(op, _HANDING_ON) or does(op, Act.ISSUES, Unit.CACHE):
            continue
        for origin in _accessed(op, maps):
            if origin is None or origin not in names:
                return frozenset()
            if _only_writes(op) and not _depends_on_memory(_deciding_values(op)):
                written.add(origin)
            else:
                others.add(names[origin])
    return frozenset(names[origin] for origin in written) - others


def _accessed(op: Operation, maps: Mapping[SSAValue, SSAValue]) -> Iterator[SSAValue | None]:
    """The tensors that an operation accesses by a pointer or by one of the kernel's tensor maps; None for unknown
    ones.
    """
    if any(value.type == ptx.GLOBAL for value in op.operands):
        yield root(op, GMEM)
    yield from (maps.get(value) for value in op.operands if value.type == ptx.MAP)


def _only_writes(op: Operation) -> bool:
    """Whether an operation writes global memory, and neither reads it nor orders other accesses."""
    acts = {
        effect.act
        for effect in effects_of(op)
        if isinstance(effect.resource, Memory) and space_of(op, effect.resource) is GMEM
    }
    return acts == {Act.WRITES} and not does(op, Act.FENCES, Accesses)


def _is_of_lanes(op: Operation) -> bool:
    """Whether the results of an operation depend only on values of the lanes of a warp."""
    effects = list(effects_of(op))
    return bool(effects) and all(effect.resource in (Unit.LANES, Unit.TENSOR_CORE) for effect in effects)


def _deciding_values(op: Operation) -> Iterator[SSAValue]:
    """The pointer or coordinates of a store, and the conditions and bounds of the loops and branches around it."""
    yield from op.coords if isinstance(op, ptx.TensorStoreOp) else ()
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
    """Whether one of the values is computed from memory."""
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
        elif not (is_side_effect_free(owner) or _is_of_lanes(owner)):
            return True
        else:
            open += owner.operands
    return False


def _handed_on(op: Operation) -> Iterator[SSAValue]:
    """The values that the regions of a loop or a branch pass on."""
    for region in op.regions:
        for block in region.blocks:
            if block.last_op is not None:
                yield from block.last_op.operands
