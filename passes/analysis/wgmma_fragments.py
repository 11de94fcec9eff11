# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fragments of a kernel at stage `instr` that the fences and waits of warpgroups protect. A `ptx.wgmma.fence`
protects the accumulators, and registers of A, of the multiplications that follow up to the next fence; a
`ptx.wgmma.wait_group` protects those of the groups that end there. LLVM knows neither, so that it could move accesses
of these registers across.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import arith, math, scf
from xdsl.ir import Block, Operation, SSAValue

from ...base.element_types import BY_PTX, ElementType
from ...base.errors import Code
from ...dialects.ptx import (
    MAX_WGMMA_GROUPS,
    EntryOp,
    InlineOp,
    LocalAllocOp,
    PrintfOp,
    PtrAddOp,
    WgmmaCommitGroupOp,
    WgmmaFenceOp,
    WgmmaMmaAsyncOp,
    WgmmaWaitGroupOp,
)
from ...dialects.ptx.base import float_bits, split_vector
from ...dialects.ptx.effects import Act, Agent, Group, agent_of, does
from ..errors import LoweringError


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment, and the type of the numbers that a multiplication takes from it."""

    alloc: LocalAllocOp
    element: ElementType


Fragments: TypeAlias = frozenset[Fragment]


@dataclass(frozen=True, slots=True)
class _State:
    """The operations that may have been executed: the fences without a later one, the fragments of the open group, and
    those of the groups that run, the latest one first. A group beyond the last that a wait can name is part of that.
    """

    fences: frozenset[WgmmaFenceOp] = frozenset()
    open: Fragments = frozenset()
    groups: tuple[Fragments, ...] = ()

    def joined(self, other: "_State") -> "_State":
        """The operations that may have been executed on one of two paths."""
        length = max(len(self.groups), len(other.groups))
        ours, theirs = (groups + (frozenset(),) * (length - len(groups)) for groups in (self.groups, other.groups))
        groups = tuple([a | b for a, b in zip(ours, theirs, strict=True)])
        return _State(self.fences | other.fences, self.open | other.open, groups)

    def committed(self) -> "_State":
        """The state once the open group is closed."""
        groups = (self.open, *self.groups)
        last = frozenset[Fragment]().union(*groups[MAX_WGMMA_GROUPS:])
        return _State(self.fences, frozenset(), (*groups[:MAX_WGMMA_GROUPS], last))


@dataclass(slots=True)
class _Walk:
    """A walk through a kernel in the order of its execution."""

    tied: dict[Operation, Fragments] = field(default_factory=dict[Operation, Fragments])
    running: dict[WgmmaMmaAsyncOp, Fragments] = field(default_factory=dict[WgmmaMmaAsyncOp, Fragments])

    def block(self, block: Block, state: _State) -> _State:
        """The state after a block."""
        for op in block.ops:
            match op:
                case WgmmaFenceOp():
                    state = _State(frozenset((op,)), state.open, state.groups)
                case WgmmaMmaAsyncOp():
                    used = fragments_of(op)
                    for fence in state.fences:
                        self._tie(fence, used)
                    state = _State(state.fences, state.open | used, state.groups)
                    self.running[op] = self.running.get(op, frozenset()).union(state.open, *state.groups)
                case WgmmaCommitGroupOp():
                    state = state.committed()
                case WgmmaWaitGroupOp():
                    running = op.n.value.data
                    self._tie(op, frozenset[Fragment]().union(*state.groups[running:]))
                    state = _State(state.fences, state.open, state.groups[:running])
                case _ if op.regions:
                    state = self._regions(op, state)
                case _:
                    pass
        return state

    def _regions(self, op: Operation, state: _State) -> _State:
        """The state after an operation with regions: a loop, or one that executes some of its regions."""
        while True:
            ways = [self.block(block, state) for region in op.regions for block in region.blocks]
            after = state
            for way in ways:
                after = after.joined(way)
            if after == state or not isinstance(op, scf.ForOp | scf.WhileOp):
                return after
            state = after

    def _tie(self, op: Operation, fragments: Fragments) -> None:
        self.tied[op] = self.tied.get(op, frozenset()) | fragments


@dataclass(frozen=True, slots=True)
class WarpgroupFragments:
    """For each fence and wait of warpgroups the fragments that it protects, in the order of their allocations, and for
    each multiplication those in use when it has begun.
    """

    tied: Mapping[Operation, Sequence[Fragment]] = field(default_factory=dict[Operation, Sequence[Fragment]])
    running: Mapping[WgmmaMmaAsyncOp, Fragments] = field(default_factory=dict[WgmmaMmaAsyncOp, Fragments])


def find_warpgroup_fragments(entry: EntryOp) -> WarpgroupFragments:
    """The fragments of a kernel that instructions of warpgroups use.

    LoweringError (E2201) for registers of a multiplication that are not in a fragment of the kernel.
    """
    operations = list(entry.walk())
    if not any(agent_of(op) is Agent.WARPGROUP for op in operations):
        return WarpgroupFragments()
    walk = _Walk()
    walk.block(entry.body.block, _State())
    order = {op: index for index, op in enumerate(operations)}
    return WarpgroupFragments({op: _in_order(used, order) for op, used in walk.tied.items()}, walk.running)


def _in_order(fragments: Fragments, order: Mapping[Operation, int]) -> list[Fragment]:
    """Each fragment once. A fragment of several types counts as floats, which LLVM converts in pairs."""
    ordered = sorted(fragments, key=lambda fragment: (fragment.element.kind == "float", fragment.element.ptx))
    element_of = {fragment.alloc: fragment.element for fragment in ordered}
    allocs = sorted(element_of, key=order.__getitem__)
    return [Fragment(alloc, element_of[alloc]) for alloc in allocs]


def fragments_of(op: WgmmaMmaAsyncOp) -> Fragments:
    """The fragments with the registers of a multiplication. LoweringError (E2201) where they are in none."""
    d, a, *_ = op.atom.types
    accumulators = Fragment(_find_alloc(op, op.d), BY_PTX[d])
    if "A" in op.described:
        return frozenset((accumulators,))
    return frozenset((accumulators, Fragment(_find_alloc(op, op.a), BY_PTX[a])))


def _find_alloc(op: WgmmaMmaAsyncOp, pointer: SSAValue) -> LocalAllocOp:
    owner = pointer.owner
    while isinstance(owner, PtrAddOp):
        owner = owner.ptr.owner
    if isinstance(owner, LocalAllocOp):
        return owner
    raise LoweringError(
        Code.EMIT_UNSUPPORTED,
        "the compiler cannot tell which fragment holds the registers of a warpgroup's multiplication",
        op,
        "give an address in a fragment of ptx.local.alloc that does not depend on a branch or a loop",
    )


def multiplies_by_warpgroups(entry: EntryOp) -> bool:
    """Whether a kernel has `wgmma`, as an operation or in a text of its own."""
    return any(
        does(op, Act.ISSUES, Group.WGMMA) or (isinstance(op, InlineOp) and "wgmma" in op.text.data)
        for op in entry.walk()
    )


def find_calls(entry: EntryOp) -> Iterator[Operation]:
    """The operations of a kernel with multiplications by warpgroups that call the device's printf, or the
    assembler's subroutines for f64. The assembler ends each of
    these multiplications before it starts the next. Emission writes other quotients and roots without a call.
    """
    if multiplies_by_warpgroups(entry):
        yield from (op for op in entry.walk() if isinstance(op, PrintfOp) or _is_of_f64(op))


def _is_of_f64(op: Operation) -> bool:
    """Whether an operation is a quotient or root of f64."""
    return isinstance(op, arith.DivfOp | math.SqrtOp) and float_bits(split_vector(op.result.type)[0]) == 64
