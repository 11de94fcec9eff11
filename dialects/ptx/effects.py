# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The effects of instructions: the resource that each reads, writes, waits for, arrives at, issues work to, ends or
fences, by which proxy, and the event that completes it.

An operation carries them as the trait `Effects`; one without effects is `Pure`. Passes, emission, the simulator and the
tools decide by effects and not by lists of operations. xDSL's passes see the effects on memory that follow from them.
"""

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import DefaultResource, EffectInstance, MemoryEffect, MemoryEffectKind
from xdsl.traits import Resource as XdslResource

from ...base.spaces import GMEM, SMEM, Space
from ...layout.atoms.contract import Agent, Proxy
from .base import MAP, PtrType, value_bytes


class Act(Enum):
    """The deeds of an instruction."""

    READS = "reads"
    WRITES = "writes"
    UPDATES = "updates"
    """Reads and writes as one."""
    WAITS = "waits for"
    ARRIVES = "arrives at"
    ISSUES = "issues work to"
    """Starts asynchronous work, which goes on after the instruction; the resource tells when it is complete."""
    ENDS = "ends"
    FENCES = "fences"
    ALLOCATES = "allocates"


class Group(Enum):
    """Asynchronous work of a thread, or of a warpgroup, that is committed and waited for in groups."""

    CP_ASYNC = "a cp.async group"
    BULK = "a bulk group"
    BULK_READS = "the reads of bulk groups"
    WGMMA = "a wgmma group"
    TENSOR_CORE = "a tcgen05.commit"
    TENSOR_ACCESSES = "a tcgen05.wait"


class Unit(Enum):
    """Resources that each thread, warp, block or cluster has once."""

    LANES = "the lanes of the warp"
    TENSOR_CORE = "the tensor core"
    TENSOR_COLUMNS = "the columns of tensor memory"
    REGISTERS = "the registers of the block"
    WARP_BARRIER = "the barrier of the warp"
    CLUSTER_BARRIER = "the barrier of the cluster"
    GRIDS = "dependent grids"
    CACHE = "the cache"
    CLOCK = "time"
    OUTPUT = "the output of the device"
    THREAD = "the thread"
    ANYTHING = "anything"


class Via(Enum):
    """The form in which an operand names memory."""

    POINTER = "pointer"
    DESCRIPTOR = "descriptor"
    BOX = "box of a tensor map"


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that an operand names. `bytes` are those that one agent accesses: a number, or the name of the property of
    the operation that has it, or of a value that has this size; behind `%` that of an operand that is the number.
    """

    operand: str
    bytes: int | str
    via: Via = Via.POINTER

    def __str__(self) -> str:
        return f"{'the tensor of' if self.via is Via.BOX else 'memory at'} `{self.operand}`"


@dataclass(frozen=True, slots=True)
class Mbarrier:
    """The mbarrier of 8 bytes at an operand."""

    operand: str

    def __str__(self) -> str:
        return f"the mbarrier at `{self.operand}`"


@dataclass(frozen=True, slots=True)
class NamedBarrier:
    """A barrier of the block by its number: the property `id`, and the operand `offset` where there is one."""

    def __str__(self) -> str:
        return "the barrier of the block"


@dataclass(frozen=True, slots=True)
class Accesses:
    """Accesses of the thread to state spaces, which a fence orders; `tensor maps` and `mbarriers` count as such, and
    `%space` stands for the one that the property `space` names.
    """

    spaces: tuple[str, ...]

    def __str__(self) -> str:
        return f"accesses to {' and '.join(f'`{x[1:]}`' if x[0] == '%' else x for x in self.spaces)}"


class Moment(Enum):
    """Times of completion that no resource tells."""

    NOW = "now"


Resource: TypeAlias = Memory | Mbarrier | NamedBarrier | Accesses | Group | Unit
Done: TypeAlias = Moment | Mbarrier | Group


@dataclass(frozen=True, slots=True)
class Effect:
    """A deed of an instruction: on which resource, by which proxy, and the event that completes it. It happens `when`
    the operation has this property or operand, or always.
    """

    act: Act
    resource: Resource
    proxy: Proxy
    done: Done
    when: str = ""

    def given(self, name: str) -> "Effect":
        """The effect where the operation has a property or operand; behind `not `, where it lacks it."""
        return replace(self, when=name)

    def __str__(self) -> str:
        resource = self.resource.value if isinstance(self.resource, Enum) else str(self.resource)
        proxy = "" if self.proxy is Proxy.GENERIC else f" by the {self.proxy.value} proxy"
        done = self.done.value if isinstance(self.done, Enum) else str(self.done)
        behind = "" if self.done is Moment.NOW else f", complete with {done}"
        when = self.when.replace("not ", "without ") if self.when.startswith("not ") else f"with {self.when}"
        return f"{self.act.value} {resource}{proxy}{behind}{f' ({when})' if self.when else ''}"


def _now(act: Act, resource: Resource) -> Effect:
    return Effect(act, resource, Proxy.GENERIC, Moment.NOW)


def reads(operand: str, bytes: int | str, via: Via = Via.POINTER) -> Effect:
    """A read of memory, complete at once by the generic proxy."""
    return _now(Act.READS, Memory(operand, bytes, via))


def writes(operand: str, bytes: int | str, via: Via = Via.POINTER) -> Effect:
    """A write of memory, complete at once by the generic proxy."""
    return _now(Act.WRITES, Memory(operand, bytes, via))


def updates(operand: str, bytes: int | str, via: Via = Via.POINTER) -> Effect:
    """An atomic change of memory, complete at once by the generic proxy."""
    return _now(Act.UPDATES, Memory(operand, bytes, via))


def copies(bytes: int | str) -> tuple[Effect, Effect]:
    """A read of memory at the operand `src`, and a write at `dst`."""
    return reads("src", bytes), writes("dst", bytes)


def changes(resource: Mbarrier | Unit) -> Effect:
    """A write of something other than memory."""
    return _now(Act.WRITES, resource)


def senses(resource: Unit) -> Effect:
    """A read of something other than memory."""
    return _now(Act.READS, resource)


def waits(resource: Resource) -> Effect:
    """A wait."""
    return _now(Act.WAITS, resource)


def arrives(resource: Resource) -> Effect:
    """An arrival, for those who wait for the resource."""
    return _now(Act.ARRIVES, resource)


def issues(resource: Done | Unit) -> Effect:
    """The start of asynchronous work, which goes on after the instruction."""
    assert not isinstance(resource, Moment)
    return _now(Act.ISSUES, resource)


def ends(resource: Resource) -> Effect:
    """The end of a resource, or of a group that is open."""
    return _now(Act.ENDS, resource)


def fences(proxy: Proxy, *spaces: str) -> Effect:
    """A fence: accesses to the spaces before it come before accesses by a proxy after it."""
    return Effect(Act.FENCES, Accesses(spaces), proxy, Moment.NOW)


def allocates(operand: str, bytes: int | str) -> Effect:
    """Memory of its own."""
    return _now(Act.ALLOCATES, Memory(operand, bytes))


def issued(by: Done, proxy: Proxy, *effects: Effect) -> tuple[Effect, ...]:
    """Effects of work that an instruction starts, by a proxy and complete with `by`; and that it starts this work."""
    return (*[replace(effect, proxy=proxy, done=by) for effect in effects], replace(issues(by), proxy=proxy))


@dataclass(frozen=True)
class Effects(MemoryEffect):
    """The trait of an operation that has effects: who executes it as one, and the effects."""

    agent: Agent
    declared: tuple[Effect, ...]

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        trait = declared_by(type(op))
        return frozenset() if trait is None else _on_memory(trait.declared)


def by_thread(*effects: Effect) -> Effects:
    """The effects of an instruction of a thread."""
    return Effects(Agent.THREAD, effects)


def by_warp(*effects: Effect) -> Effects:
    """The effects of an instruction that the lanes of a warp execute together."""
    return Effects(Agent.WARP, effects)


def by_warpgroup(*effects: Effect) -> Effects:
    """The effects of an instruction that the warps of a warpgroup execute together."""
    return Effects(Agent.WARPGROUP, effects)


EXCHANGES = by_warp(arrives(Unit.LANES), waits(Unit.LANES))
"""Each lane of a mask gives a value, and gets one that depends on those of the others."""


@dataclass(frozen=True)
class _Resource(XdslResource):
    """A resource other than memory, for xDSL."""

    kind: Unit | Group

    def name(self) -> str:
        return self.kind.value


_MEMORY = DefaultResource()


@cache
def _on_memory(effects: tuple[Effect, ...]) -> frozenset[EffectInstance]:
    """The effects in xDSL's form. Waits, arrivals and fences order the accesses of threads: memory may have changed."""
    found = set[EffectInstance]()
    for effect in effects:
        match effect.act, effect.resource:
            case _, (Unit.LANES | Unit.TENSOR_CORE | Unit.CACHE | Unit.OUTPUT | Unit.THREAD) as unit:
                found.add(EffectInstance(MemoryEffectKind.WRITE, resource=_Resource(unit)))
            case Act.ISSUES | Act.ENDS, Group() as group:
                found.add(EffectInstance(MemoryEffectKind.WRITE, resource=_Resource(group)))
            case Act.READS, _:
                found.add(EffectInstance(MemoryEffectKind.READ))
            case Act.WRITES, _:
                found.add(EffectInstance(MemoryEffectKind.WRITE))
            case Act.ALLOCATES, _:
                found.add(EffectInstance(MemoryEffectKind.ALLOC))
            case _:
                found |= {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}
    return frozenset(found)


def changes_memory(effects: Iterable[EffectInstance]) -> bool:
    """Whether memory may have other contents after an operation with these effects."""
    return any(effect.kind is MemoryEffectKind.WRITE and effect.resource == _MEMORY for effect in effects)


@cache
def declared_by(kind: type[Operation]) -> Effects | None:
    """The trait of a class of operations; None of one without effects, or of another dialect."""
    return next((trait for trait in kind.traits.traits if isinstance(trait, Effects)), None)


def effects_of(op: Operation) -> Iterator[Effect]:
    """The effects of an operation of `ptx`, with its properties and operands."""
    trait = declared_by(type(op))
    for effect in () if trait is None else trait.declared:
        name = effect.when.removeprefix("not ")
        if not name or (getattr(op, name) is None) == (name != effect.when):
            yield effect


def agent_of(op: Operation) -> Agent:
    """Who executes an operation as one."""
    trait = declared_by(type(op))
    return Agent.THREAD if trait is None else trait.agent


def does(op: Operation, act: Act, *resources: Resource | type[Resource]) -> bool:
    """Whether an operation of `ptx` has an effect of a kind, on one of some resources or kinds of resources."""
    kinds = tuple([kind for kind in resources if isinstance(kind, type)])
    return any(e.act is act and (e.resource in resources or isinstance(e.resource, kinds)) for e in effects_of(op))


def proxy_of(op: Operation) -> Proxy:
    """The proxy of the work that an operation issues."""
    return next(effect.proxy for effect in effects_of(op) if effect.act is Act.ISSUES)


def touches(op: Operation, act: Act, value: SSAValue) -> bool:
    """Whether an operation reads or writes the memory that an operand names."""
    return any(
        effect.act is act and isinstance(effect.resource, Memory) and getattr(op, effect.resource.operand) is value
        for effect in effects_of(op)
    )


def space_of(op: Operation, memory: Memory | Mbarrier) -> Space | None:
    """The state space of the memory that an operand names; None of a tensor map's own bytes, which have no pointer."""
    type = _type_of(op, memory.operand)
    if isinstance(type, PtrType):
        return type.space.data
    if type == MAP:
        return GMEM if isinstance(memory, Memory) and memory.via is Via.BOX else None
    return SMEM


def bytes_of(op: Operation, memory: Memory) -> int | None:
    """The bytes of memory that one agent accesses; None where only the run knows."""
    if isinstance(memory.bytes, int):
        return memory.bytes
    if memory.bytes.startswith("%"):
        return None
    given = getattr(op, memory.bytes)
    if isinstance(given, SSAValue):
        return value_bytes(_type_of(op, memory.bytes))
    return given.value.data if isinstance(given, IntegerAttr) else given


def _type_of(op: Operation, name: str) -> Attribute:
    """The type of an operand or a result."""
    return cast("SSAValue[Attribute]", getattr(op, name)).type
