# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contracts of copies that a single thread issues."""

from dataclasses import dataclass
from typing import final

from ...base.spaces import Space
from ...base.target import Targets
from ..algebra.core import Layout
from .contract import (
    ANY_BITS,
    Act,
    Agent,
    Completion,
    Contract,
    Counted,
    Major,
    Named,
    Operand,
    Proxy,
    Role,
    Whose,
)
from .instructions import Instruction
from .numbers import Numbers, Reduced


@final
@dataclass(frozen=True, slots=True)
class Side:
    """A side of a copy: the memories that it can be in, how it is named, when the instruction is done with it, and the
    alignment of its address in bytes.
    """

    spaces: tuple[Space, ...]
    named: Named
    whose: Whose
    completion: Completion
    align: int


def copy_of_thread(
    agent: Agent,
    layout: Layout,
    source: Side,
    destination: Side,
    proxy: Proxy,
    others: tuple[Operand, ...],
    numbers: Numbers,
    targets: Targets,
    instruction: Instruction,
    section: str,
) -> Contract:
    """The contract of a copy whose thread reads and writes the same bits; `others` are its other operands."""

    def operand(role: Role, side: Side, act: Act) -> Operand:
        return Operand(
            role, ANY_BITS, side.spaces, side.named, Major.FIXED, act, side.whose, side.completion, proxy, side.align,
            layout,
        )  # fmt: skip

    written = Act.UPDATE if isinstance(numbers, Reduced) else Act.WRITE
    return Contract(
        agent=agent,
        counts=Counted.THREADS,
        ids=Layout(1, 0),
        operands=(operand(Role.SOURCE, source, Act.READ), operand(Role.DESTINATION, destination, written), *others),
        numbers=numbers,
        targets=targets,
        instruction=instruction,
        section=section,
    )


def other_operand(role: Role, element: str, space: Space, named: Named, act: Act, whose: Whose,
                  completion: Completion, proxy: Proxy, align: int) -> Operand:  # fmt: skip
    """An operand that is neither the source nor the destination: an mbarrier, a tensor map, a number of values."""
    layout = Layout(1, 0)
    return Operand(role, element, (space,), named, Major.FIXED, act, whose, completion, proxy, align, layout)
