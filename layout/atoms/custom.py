# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that other packages define: the entry points of the group `tilefold.instructions`.

Each entry point is a function without arguments that returns `CustomInstruction` records. A program names one by
`tile.instruction` or `ptx.instruction`. Verifiers, lowering, emission and simulator read its contract and nothing else;
the simulator asks the record for the numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias, assert_never, final

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.packages import installed_records
from ...base.spaces import Bytes, Cells, Space
from ..algebra.core import Layout, cosize, size
from .contract import (
    FLAG,
    Agent,
    AsChosen,
    AtOnce,
    AtWait,
    Contract,
    InGroup,
    Named,
    OnArrivals,
    OnBytes,
    Operand,
    Role,
)

GROUP = "tilefold.instructions"
"""The group of the entry points (Python Packaging User Guide, Entry points specification)."""

Arithmetic: TypeAlias = Callable[[Mapping[Role, Any]], Mapping[Role, Any]]
"""A function of the elements of each operand that is read, NumPy arrays in the order of its matrix. It returns those of
each operand that is written. Flags are bools.
"""


@final
@dataclass(frozen=True, slots=True)
class Executes:
    """The instruction writes the numbers that `arithmetic` computes."""

    arithmetic: Arithmetic


@final
@dataclass(frozen=True, slots=True)
class Waits:
    """The executing threads wait for the effects whose completion names this instruction."""


@final
@dataclass(frozen=True, slots=True)
class Commits:
    """An arrival at the mbarrier follows the effects, so far, whose completion names this instruction."""


@final
@dataclass(frozen=True, slots=True)
class Allocates:
    """`units` columns of a space; their address is written to the operand DESTINATION."""

    space: Space
    units: int


@final
@dataclass(frozen=True, slots=True)
class Frees:
    """The `units` columns from the address SOURCE on are free again."""

    units: int


Effect: TypeAlias = Executes | Waits | Commits | Allocates | Frees
"""How an instruction acts beyond its contract."""


class Given(Enum):
    """The layout that an operation gives for an operand."""

    MATRIX = "a tensor"
    """A tensor; its address once tensors are lowered."""
    ADDRESS = "an address"
    FLAG = "an i1"
    COUNT = "an i32"


@final
@dataclass(frozen=True, slots=True, eq=False)
class CustomInstruction:
    """An instruction of a package, whose operands operations have in the order of the contract.

    `places` has, for each matrix in memory, the distance of each of its elements from the operand's address, in units
    of the space. `text` spells the instruction from the names of its registers, those of a fragment in braces. Raises
    `LayoutError` (E0301) for a record that contradicts itself, (E0320) for one that no reader supports.
    """

    name: str
    contract: Contract
    places: Mapping[Role, Layout]
    effect: Effect
    text: Callable[[Mapping[Role, str]], str]

    def __post_init__(self) -> None:
        match self.contract.agent:
            case Agent.THREAD | Agent.ELECTED | Agent.WARP:
                pass
            case Agent.WARPGROUP | Agent.BLOCK | Agent.BLOCK_PAIR as agent:
                self._refuse(f"is executed by {agent.value}", "an instruction of a package is one of threads or warps")
            case _ as other:
                assert_never(other)
        for operand in self.contract.operands:
            self._check(operand)

    def _check(self, operand: Operand) -> None:
        match operand.completion:
            case AtOnce() | AtWait() | OnBytes() | OnArrivals():
                pass
            case InGroup() | AsChosen():
                self._refuse(f"completes {operand.role.value} in a group", "use a wait of its own, or an mbarrier")
            case _ as other:
                assert_never(other)
        place = self.places.get(operand.role)
        if place is None:
            return
        if size(place) != cosize(operand.layout):
            text = f"{operand.role.value} has {cosize(operand.layout)} elements and {size(place)} places"
            raise LayoutError(Code.ATOM_INVALID, f"{self.name}: {text}")
        bits = BY_PTX[operand.element].bits
        for space in operand.spaces:
            match space.form:
                case Bytes():
                    fits = bits % 8 == 0
                case Cells(unit_bits=unit):
                    fits = bits == unit
                case _ as other:
                    assert_never(other)
            if not fits:
                self._refuse(f"has elements of {bits} bits in {space}", "each element has an address of its own")

    def _refuse(self, text: str, hint: str) -> None:
        raise LayoutError(Code.ATOM_PACKAGE, f"{self.name} {text}", hint)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands, in the order in which operations have them."""
        return self.contract.operands

    def describe(self) -> str:
        """Who executes it, and its effects on its operands, in words."""
        parts = [self.contract.agent.value, *[_effect_of(operand) for operand in self.operands]]
        return f"{self.name}: {'; '.join(parts)}"

    def given(self, operand: Operand) -> Given:
        """The layout that an operation gives for an operand."""
        if operand.role is Role.COUNT:
            return Given.COUNT
        if operand.element == FLAG:
            return Given.FLAG
        match operand.named:
            case Named.VALUE:
                return Given.MATRIX
            case Named.POINTER | Named.CELL | Named.DESCRIPTOR | Named.COORDINATES:
                return Given.MATRIX if operand.role in self.places else Given.ADDRESS
            case _ as other:
                assert_never(other)

    def is_in_registers(self, operand: Operand) -> bool:
        """Whether an operand is a matrix in a fragment."""
        return self.given(operand) is Given.MATRIX and operand.role not in self.places


def _effect_of(operand: Operand) -> str:
    text = f"{operand.act.value} {operand.role.value}"
    if operand.element != FLAG:
        text += f" in {' or '.join(map(str, operand.spaces))}"
    match operand.completion:
        case AtOnce():
            return text
        case AtWait(wait):
            return f"{text} until {wait}"
        case OnBytes():
            return f"{text} until its mbarrier has counted the bytes"
        case OnArrivals(commit):
            return f"{text} until the mbarrier of {commit} tells"
        case InGroup() | AsChosen():
            raise AssertionError("the record rejects it")
        case _ as other:
            assert_never(other)


@cache
def installed_instructions() -> Mapping[str, CustomInstruction]:
    """The instructions of installed packages by name. Raises `TilefoldError` (E0320), which names the package."""
    found: dict[str, CustomInstruction] = {}
    for where, record in installed_records(GROUP, CustomInstruction):
        if found.setdefault(record.name, record) is not record:
            raise LayoutError(Code.ATOM_PACKAGE, f"{where}: another package also has an instruction {record.name}")
    return MappingProxyType(found)


def custom_instruction(name: str) -> CustomInstruction:
    """The instruction of a name. Raises `LayoutError` (E0302) if no installed package has it."""
    found = installed_instructions().get(name)
    if found is None:
        known = ", ".join(installed_instructions()) or "no installed package has one"
        raise LayoutError(Code.ATOM_UNKNOWN, f"no package has an instruction {name[:80]!r}", known)
    return found
