# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contract of an instruction: the record from which an atom is made, and the only thing that its readers read.

A contract says which operands the instruction has, where each is and how it is named, who touches which of its bytes,
and when that has happened; who executes the instruction, which agents its layouts count, how its numbers come about,
which targets have it and how PTX spells it. No field has a default, and absence is a member of its own. Enumerations
are closed: a reader matches all members and ends in `assert_never`.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias, assert_never, final, get_args

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import Space
from ...base.target import WARP, WARPGROUP, Targets
from ..algebra.core import Layout, flat_modes
from .instructions import Instruction
from .numbers import Numbers, check_members


class Role(Enum):
    """The role of an operand. The value is its name in messages."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"
    SCALE_A = "the scales of A"
    SCALE_B = "the scales of B"
    METADATA = "metadata"
    SOURCE = "source"
    DESTINATION = "destination"
    BARRIER = "mbarrier"
    MAP = "tensor map"
    ACCUMULATE = "accumulate"
    """A predicate: D is added where it holds, and overwritten where it does not."""
    COUNT = "count"
    """How many of the first values are copied; the others become zero."""


class Named(Enum):
    """How an operand names its place."""

    VALUE = "value"
    """The registers themselves."""
    POINTER = "pointer"
    """An address of bytes."""
    DESCRIPTOR = "descriptor"
    """A word that encodes the address and the layout of a matrix."""
    COORDINATES = "coordinates"
    """Coordinates in the tensor that a tensor map describes."""
    CELL = "cell"
    """A lane and a column."""


class Major(Enum):
    """The mode of a matrix that is contiguous where an instruction takes either."""

    K = "K"
    MN = "MN"
    FIXED = ""
    """The instruction leaves no choice."""


class Act(Enum):
    """The effect on an operand."""

    READ = "reads"
    WRITE = "writes"
    UPDATE = "updates"


class Whose(Enum):
    """The block whose memory an operand is in."""

    OWN = "the own block"
    MASK = "the blocks of a mask"


class Proxy(Enum):
    """The path by which an access reaches memory (PTX ISA, Memory Consistency Model: Proxies)."""

    GENERIC = "generic"
    ASYNC = "async"
    TENSORMAP = "tensormap"
    TENSOR = "tcgen05"


@final
@dataclass(frozen=True, slots=True)
class AtOnce:
    """The effect has happened when the instruction has been executed."""


@final
@dataclass(frozen=True, slots=True)
class InGroup:
    """The effect has happened when the executing threads have waited, by `wait`, for the group that `commit` made."""

    commit: str
    wait: str


@final
@dataclass(frozen=True, slots=True)
class OnBytes:
    """The effect has happened when the phase of the mbarrier operand is complete, which counts its bytes."""


@final
@dataclass(frozen=True, slots=True)
class OnArrivals:
    """The effect has happened when the phase of the mbarrier is complete at which `commit` arrives."""

    commit: str


@final
@dataclass(frozen=True, slots=True)
class AtWait:
    """The effect has happened when the executing threads have executed the instruction `wait`."""

    wait: str


@final
@dataclass(frozen=True, slots=True)
class AsChosen:
    """The operands choose among several instructions, each of which has its own completion."""


Completion: TypeAlias = AtOnce | InGroup | OnBytes | OnArrivals | AtWait | AsChosen
"""When an effect has happened."""

CP_ASYNC_GROUP = InGroup("cp.async.commit_group", "cp.async.wait_group")
BULK_GROUP = InGroup("cp.async.bulk.commit_group", "cp.async.bulk.wait_group")
BULK_GROUP_READ = InGroup("cp.async.bulk.commit_group", "cp.async.bulk.wait_group.read")
WGMMA_GROUP = InGroup("wgmma.commit_group", "wgmma.wait_group")


class Agent(Enum):
    """Who executes an instruction."""

    THREAD = "a thread"
    ELECTED = "an elected thread of a warp"
    WARP = "a warp"
    WARPGROUP = "a warpgroup"
    BLOCK = "a block"
    BLOCK_PAIR = "a pair of blocks"

    @property
    def issuing(self) -> int:
        """The threads of one block that execute the instruction together; 0 for all of them."""
        match self:
            case Agent.THREAD | Agent.ELECTED | Agent.BLOCK_PAIR:  # one thread of one of the blocks speaks for both
                return 1
            case Agent.WARP:
                return WARP
            case Agent.WARPGROUP:
                return WARPGROUP
            case Agent.BLOCK:
                return 0
            case _:
                assert_never(self)


class Counted(Enum):
    """The agents that the first mode of a contract's layouts numbers."""

    THREADS = "threads"
    BLOCKS = "blocks"


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an instruction, and its effect.

    `element` is the PTX name of its element type, `ANY_BITS` if it has none. It is in one of `spaces`. `layout` maps
    (thread or block, value) to a place in the matrix or to a bit of the data. `align` is the alignment in bytes of the
    address that it is named by.
    """

    role: Role
    element: str
    spaces: tuple[Space, ...]
    named: Named
    major: Major
    act: Act
    whose: Whose
    completion: Completion
    proxy: Proxy
    align: int
    layout: Layout

    def __post_init__(self) -> None:
        given = self.role, self.named, self.major, self.act, self.whose, self.proxy, *self.spaces
        check_members(given, (Role, Named, Major, Act, Whose, Proxy, *[Space] * len(self.spaces)))
        check_members((self.completion, self.layout), (get_args(Completion), Layout))

    @property
    def is_shared_by_all(self) -> bool:
        """Whether all threads or blocks that execute the instruction name the same bytes."""
        return all(extent == 1 or stride == 0 for extent, stride in flat_modes(self.layout[0]))

    @property
    def reads(self) -> bool:
        """Whether its bytes are read."""
        return self.act is not Act.WRITE

    @property
    def writes(self) -> bool:
        """Whether its bytes are written."""
        return self.act is not Act.READ


ANY_BITS = "bits"
"""The element of an operand whose bits have no type."""
FLAG = "pred"
"""The element of an operand that is a predicate."""


@final
@dataclass(frozen=True, slots=True)
class Contract:
    """The effects of one execution of an instruction.

    `ids` maps the numbers that layouts count to lanes of the warp, to threads of the warpgroup, or to ranks of blocks
    (CuTe's ThrID). `section` is the source. Raises `LayoutError` (E0301) for a contract that contradicts itself.
    """

    agent: Agent
    counts: Counted
    ids: Layout
    operands: tuple[Operand, ...]
    numbers: Numbers
    targets: Targets
    instruction: Instruction
    section: str

    def __post_init__(self) -> None:
        check_members((self.agent, self.counts, self.targets), (Agent, Counted, Targets))
        check_members((self.numbers, self.instruction), (get_args(Numbers), get_args(Instruction)))
        roles = [operand.role for operand in self.operands]
        if len(set(roles)) != len(roles):
            raise LayoutError(Code.ATOM_INVALID, f"a contract names a role twice: {', '.join(r.value for r in roles)}")
        expected = self.agent.issuing
        alone = expected > 1 and self.ids.size < 2
        if self.counts is Counted.THREADS and (alone or (expected and expected % self.ids.size)):
            raise LayoutError(
                Code.ATOM_INVALID,
                f"{self.ids.size} threads are not {self.agent.value} or an equal part of it",
            )
        if (self.counts is Counted.BLOCKS) != (self.agent is Agent.BLOCK_PAIR):
            raise LayoutError(Code.ATOM_INVALID, f"layouts of {self.agent.value} do not count {self.counts.value}")
        for operand in self.operands:
            if operand.element not in BY_PTX and operand.element not in (ANY_BITS, FLAG):
                raise LayoutError(Code.ATOM_INVALID, f"there is no element type {operand.element!r}")
            layout = operand.layout
            if operand.role not in _WITHOUT_LAYOUT and (len(layout) != 2 or layout[0].size != self.ids.size):
                raise LayoutError(
                    Code.ATOM_INVALID,
                    f"{operand.role.value}: {layout} does not have {self.ids.size} {self.counts.value}",
                )
            by_barrier = isinstance(operand.completion, OnBytes)
            if by_barrier and Role.BARRIER not in roles:
                raise LayoutError(Code.ATOM_INVALID, f"{operand.role.value} completes on an mbarrier that is missing")

    def find(self, role: Role) -> Operand | None:
        """The operand of a role; None if the instruction has none."""
        return next((operand for operand in self.operands if operand.role is role), None)

    def operand(self, role: Role) -> Operand:
        """The operand of a role, which the instruction must have."""
        found = self.find(role)
        assert found is not None, f"{self.instruction} has no operand {role}"
        return found

    def with_operand(self, operand: Operand) -> "Contract":
        """This contract with another operand of a role that it has."""
        return replace(self, operands=tuple([operand if x.role is operand.role else x for x in self.operands]))

    def has(self, role: Role) -> bool:
        """Whether the instruction has an operand of this role."""
        return self.find(role) is not None


_WITHOUT_LAYOUT = frozenset((Role.BARRIER, Role.MAP, Role.ACCUMULATE, Role.COUNT))
"""The operands that an instruction takes once, whoever executes it."""
