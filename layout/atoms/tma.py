# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies by one thread between global and shared memory (CuTe's copy_sm90_tma.hpp)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from ...base.errors import Code, LayoutError
from ...base.spaces import GMEM, SMEM
from ...base.target import targets
from ..algebra.core import Layout
from .bulk_copy import BULK_TARGETS, counting_mbarrier
from .contract import ANY_BITS, BULK_GROUP, BULK_GROUP_READ, Act, Agent, Named, OnBytes, Proxy, Role, Whose
from .copy_atom import CopyAtom
from .copy_of_thread import Side, copy_of_thread, other_operand
from .instructions import ROWS, TmaInstruction
from .numbers import Copied, Reduced

_OF_ROWS = targets(100, 86, "f")
"""The targets whose TMA copies move rows by their numbers."""
REDUCTIONS = ("add", "min", "max", "and", "or", "xor")
"""How a TMA copy to global memory may combine elements, of the type that the tensor map has."""


@final
@dataclass(frozen=True, slots=True)
class TmaFacts:
    """The facts of a TMA copy that its name tells: whether it `loads` to shared memory, whether it does so in the
    blocks of a mask, and how a store combines elements; whether an mbarrier of either block of a `pair` counts the
    bytes of a load; whether it moves four rows of a matrix `by_rows`, by their numbers (PTX ISA, tile::gather4 and
    tile::scatter4). Raises `LayoutError` (E0301) for other combinations.
    """

    loads: bool
    multicast: bool
    reduction: str
    pair: bool = False
    by_rows: bool = False

    def __post_init__(self) -> None:
        wrong = self.reduction not in ("", *REDUCTIONS) or ((self.multicast or self.pair) and not self.loads)
        if wrong or (self.reduction and (self.loads or self.by_rows)) or (self.pair and self.by_rows):
            raise LayoutError(
                Code.ATOM_INVALID,
                f"PTX has no TMA copy {self}",
                f"loads may multicast, stores may reduce: {', '.join(REDUCTIONS)}",
            )

    @property
    def name(self) -> str:
        """CuTe's name; CuTe names only the add reduction."""
        if self.by_rows:
            verb = "LOAD_MULTICAST" if self.multicast else "LOAD" if self.loads else "STORE"
            return f"SM100_TMA_{verb}_2D_{'GATHER' if self.loads else 'SCATTER'}{ROWS}"
        if self.loads:
            return f"{'SM100_TMA_2SM' if self.pair else 'SM90_TMA'}_LOAD{'_MULTICAST' if self.multicast else ''}"
        return f"SM90_TMA_REDUCE_{self.reduction.upper()}" if self.reduction else "SM90_TMA_STORE"


_ALL = (
    TmaFacts(True, False, ""),
    TmaFacts(True, True, ""),
    TmaFacts(True, False, "", True),
    TmaFacts(True, True, "", True),
    TmaFacts(False, False, ""),
    *[TmaFacts(False, False, reduction) for reduction in REDUCTIONS],
    TmaFacts(True, False, "", by_rows=True),
    TmaFacts(True, True, "", by_rows=True),
    TmaFacts(False, False, "", by_rows=True),
)
TMA_ATOMS: Mapping[str, TmaFacts] = MappingProxyType({facts.name: facts for facts in _ALL})
"""The TMA copies by CuTe's names."""


def tma_copy_atom(facts: TmaFacts, bits: int) -> CopyAtom:
    """The atom of a TMA copy whose box has `bits` bits. Layouts decide the box (see `make_tma_copy`)."""
    whose = Whose.MASK if facts.multicast else Whose.OWN
    if facts.loads:
        source = Side((GMEM,), Named.COORDINATES, Whose.OWN, OnBytes(), 16)
        destination = Side((SMEM,), Named.POINTER, whose, OnBytes(), 128)
        others, until = (counting_mbarrier(whose),), OnBytes()
    else:
        source = Side((SMEM,), Named.POINTER, Whose.OWN, BULK_GROUP_READ, 128)
        destination = Side((GMEM,), Named.COORDINATES, Whose.OWN, BULK_GROUP, 16)
        others, until = (), BULK_GROUP_READ
    read, own = Act.READ, Whose.OWN
    map = other_operand(Role.MAP, ANY_BITS, GMEM, Named.POINTER, read, own, until, Proxy.TENSORMAP, 64)
    contract = copy_of_thread(
        Agent.ELECTED,
        Layout((1, bits), (0, 1)),
        source,
        destination,
        Proxy.ASYNC,
        (map, *others),
        Reduced(facts.reduction) if facts.reduction else Copied(),
        _OF_ROWS if facts.by_rows else BULK_TARGETS,
        TmaInstruction(facts.pair, facts.by_rows),
        "PTX ISA, Data Movement and Conversion Instructions: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor",
    )
    return CopyAtom(facts.name, contract)
