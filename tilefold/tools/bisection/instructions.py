# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions with effects: of a kernel's operations, and of its PTX, which is read as operations too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilefold.base.spaces import CMEM, RMEM
from tilefold.base.target import Target
from tilefold.compiler.ptx.syntax import Instruction as Written
from tilefold.compiler.ptx.translate import WITH_EFFECTS, Body
from tilefold.dialects.arith.semantics import constant_of
from tilefold.dialects.ptx import LOCAL, MAP, InlineOp, MbarrierWaitOp, PtrType, PtxOp, RetOp
from tilefold.dialects.ptx.effects import (
    Act,
    Effect,
    Memory,
    Moment,
    NamedBarrier,
    Unit,
    Via,
    agent_of,
    bytes_of,
    effects_of,
    space_of,
)
from tilefold.layout.atoms.contract import Agent

_OF_LANES = (Unit.LANES, Unit.TENSOR_CORE)
_OWN = frozenset((RMEM.ptx, "param", CMEM.ptx))
"""The memories that LLVM itself accesses: registers that it spills, parameters, and constants."""


@dataclass(frozen=True)
class Instruction:
    """An instruction: its name in PTX; its kind, which LLVM does not change; and the numbers of the operation by the
    names of properties and operands, None where only the run knows one. Instructions that are not ordered may move.
    """

    name: str
    kind: tuple[object, ...]
    numbers: tuple[tuple[str, int | None], ...] = ()
    is_ordered: bool = True
    is_known: bool = True
    """Whether it was read as an operation, so that its numbers are known."""

    def __str__(self) -> str:
        numbers = ["(a number)" if number is None else str(number) for _, number in self.numbers]
        return f"{self.name} {', '.join(numbers)}" if numbers else self.name

    def is_like(self, wanted: "Instruction") -> bool:
        """Whether it is an instruction of the same kind. A name says as much, also of one that could not be read."""
        return self.name == wanted.name or self.kind == wanted.kind

    def may_be(self, wanted: "Instruction") -> bool:
        """Whether an instruction of the text may be that of an operation; LLVM may know more of its numbers."""
        if not self.is_like(wanted) or not self.is_known:
            return self.is_like(wanted)
        have = dict(self.numbers)
        defaults = {"count": 1, "src_size": have.get("bytes")}  # PTX leaves these operands out
        for key, number in wanted.numbers:
            given = have[key] if key in have else defaults.get(key, -1)
            if number is not None and given is not None and (number - given) % 2**32:
                return False
        return True


@dataclass(frozen=True)
class InstructionGroup:
    """An operation that stands for several instructions: those of a text, or loads and stores."""

    text: str | None

    def __str__(self) -> str:
        return "instructions of a text" if self.text is not None else "loads and stores"

    def may_be(self, written: Instruction) -> bool:
        """Whether an instruction of the text may be one of them."""
        if self.text is not None:
            return written.name in self.text
        return not written.is_known or written.kind[0] in (Act.READS, Act.WRITES)


def instruction_of(op: Operation, target: Target) -> Instruction | InstructionGroup | None:
    """The instruction with effects that an operation stands for on a target, with the numbers that the program knows;
    None for an operation without effects, or on memory of the thread's own.
    """
    effects = [effect for effect in effects_of(op) if not is_own(op, effect)]
    if not isinstance(op, PtxOp) or not effects:
        return None
    name = op.test_on(target) if isinstance(op, MbarrierWaitOp) else op.mnemonic()
    if name is None:
        return InstructionGroup(op.text.data if isinstance(op, InlineOp) else None)
    of_lanes = all(effect.resource in _OF_LANES for effect in effects)
    kind = _access(op, effects[0]) if len(effects) == 1 else None
    may_move = agent_of(op) is Agent.WARP and (of_lanes or all(effect.act is Act.READS for effect in effects))
    numbers = () if kind is not None or of_lanes else tuple(_numbers(op).items())
    return Instruction(name, (name,) if kind is None else kind, numbers, not may_move)


def is_own(op: Operation, effect: Effect) -> bool:
    """Whether no other thread, and no other operation of the thread, can notice an effect."""
    if effect.resource is Unit.THREAD or effect.act is Act.ALLOCATES:
        return True
    return isinstance(effect.resource, Memory) and space_of(op, effect.resource) is RMEM


def _access(op: PtxOp, effect: Effect) -> tuple[object, ...] | None:
    """The kind of a load or store: memory, how many bytes, and hints; LLVM chooses the registers. None for another
    effect.
    """
    memory = effect.resource
    if not isinstance(memory, Memory) or effect.done is not Moment.NOW or agent_of(op) is not Agent.THREAD:
        return None
    space = space_of(op, memory)
    if space is None or memory.via is not Via.POINTER:
        return None
    return effect.act, space, bytes_of(op, memory), op.properties.get("cache"), len(op.operands)


def _numbers(op: PtxOp) -> dict[str, int | None]:
    """The numbers of an operation."""
    found: dict[str, int | None] = {}
    for name, attribute in op.properties.items():
        if isinstance(attribute, IntegerAttr):
            found[name] = attribute.value.data
    for name, _ in op.get_irdl_definition().operands:
        given = cast("SSAValue[Attribute] | Sequence[SSAValue[Attribute]] | None", getattr(op, name))
        values = [given] if isinstance(given, SSAValue) else given or ()
        for index, value in enumerate(values):
            if not isinstance(value.type, PtrType) and value.type not in (LOCAL, MAP):
                found[f"{name}{index or ''}"] = constant_of(value)
    if "offset" in found and any(isinstance(effect.resource, NamedBarrier) for effect in effects_of(op)):
        first, more = found["id"], found.pop("offset")
        found["id"] = None if more is None or first is None else first + more
    return found


@dataclass
class Graph:
    """The instructions of a kernel's PTX: nodes with at most one each, their lines, and the nodes that may follow. Node
    0 is the begin, node 1 the end.
    """

    target: Target
    sources: Mapping[Operation, Written]
    instructions: list[Instruction | None] = field(default_factory=lambda: [None, None])
    lines: list[int] = field(default_factory=lambda: [0, 0])
    following: list[list[int]] = field(default_factory=lambda: [[], []])

    @classmethod
    def of(cls, body: Body, target: Target) -> "Graph":
        """The graph of a function of the text."""
        graph = cls(target, body.sources)
        starts = {block: graph._node(None, 0) for block in body.region.blocks}
        graph.following[0].append(starts[body.region.blocks[0]])
        for block, start in starts.items():
            last = graph._block(block, start)
            end = block.last_op
            if isinstance(end, RetOp):
                source = body.sources.get(end)
                # LLVM writes `exit` where it knows that no execution gets
                if source is None or source.opcode not in ("exit", "trap"):
                    graph.following[last].append(1)
            elif end is not None:
                graph.following[last] += [starts[successor] for successor in end.successors]
        return graph

    def _node(self, instruction: Instruction | None, line: int) -> int:
        self.instructions.append(instruction)
        self.lines.append(line)
        self.following.append([])
        return len(self.instructions) - 1

    def _block(self, block: Block, last: int) -> int:
        """Adds the instructions of a block after a node; returns the last one."""
        for op in block.ops:
            if op.regions:  # a guard
                join = self._node(None, 0)
                for region in op.regions:
                    self.following[self._guarded(region, last)].append(join)
                self.following[last].append(join)
                last = join
            elif (instruction := self._read(op)) is not None:
                node = self._node(instruction, self.sources[op].place.line if op in self.sources else 0)
                self.following[last].append(node)
                last = node
        return last

    def _guarded(self, region: Region, last: int) -> int:
        return self._block(region.block, last) if region.blocks else last

    def _read(self, op: Operation) -> Instruction | None:
        """The instruction that an operation was made of."""
        source = self.sources.get(op)
        if source is None or not _OWN.isdisjoint(source.modifiers):
            return None
        if isinstance(op, InlineOp):
            has_effects = source.opcode in WITH_EFFECTS
            return Instruction(source.name, (source.name,), is_known=False) if has_effects else None
        read = instruction_of(op, self.target)
        if not isinstance(read, Instruction):
            return None
        return Instruction(source.name, read.kind, read.numbers, read.is_ordered)
