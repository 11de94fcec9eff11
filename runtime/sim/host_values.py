# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers that a host function computes from its arguments: the simulator's rules, for a single thread."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...base.errors import Code
from ...base.limits import Limits
from ...dialects.definitions import outer_operands
from ..engine import LaunchConfig
from .events import Suspending
from .faults import SimulationError, Site
from .grids import Grids
from .launch import LaunchState
from .memory.memories import Memories
from .rules import rule_of
from .translate import Translator
from .values import TensorValue
from .warp import Block, Cluster, Warp


class HostWarp(Warp):
    """The host's only thread, which has no place in a grid: its faults name only the operation."""

    def fault(
        self, code: Code, site: Site, lane: int | None, message: str, hint: str = "", *_: object, **__: object
    ) -> NoReturn:
        raise SimulationError(code, message, hint, site=site)


class HostValues:
    """The values of a block of the host for given arguments: numbers, and of a tensor the integers that its type leaves
    open.
    """

    def __init__(self, given: Mapping[SSAValue, object], sink: Callable[[str], None]) -> None:
        launch = LaunchState(Grids.single(LaunchConfig((1, 1, 1), (1, 1, 1))), Limits(), sink)
        spaces = Memories.make()
        self._translator = Translator(rule_of, launch, spaces)
        self._done: set[Operation] = set()
        self._warp = HostWarp(Block(Cluster(launch), (0, 0, 0)), 0, 1, self._translator.initial)
        for value, number in given.items():
            self.give(value, number)

    def give(self, value: SSAValue, given: Any) -> None:
        """Sets an argument: a number, or the integers that the type of a tensor leaves open, as a tuple."""
        is_number = isinstance(given, int | float)
        self._translator.constant(value, given if is_number else TensorValue(0, 0, given))

    def number(self, value: SSAValue) -> Any:
        """A value as a Python number. Raises SimulationError for an undefined value, as after a division by 0."""
        self._run(value.owner)
        register: Any = self._warp.registers[self._translator.slot(value)]
        return register.item() if hasattr(register, "item") else register

    def execute(self, op: Operation) -> None:
        """Executes an operation, and before it all that it needs."""
        self._run(op)

    def _run(self, owner: object) -> None:
        pending = [owner]
        while pending:
            op = pending[-1]
            if not isinstance(op, Operation) or op in self._done:
                pending.pop()
                continue
            owners = [value.owner for value in outer_operands(op)]
            needed = [owner for owner in owners if isinstance(owner, Operation) and owner not in self._done]
            if needed:
                pending += needed
                continue
            pending.pop()
            self._done.add(op)
            rule = rule_of(type(op))
            if rule is None:
                raise SimulationError(Code.SIM_UNSUPPORTED, f"the host does not execute '{op.name}'")
            step = rule(op, self._translator)
            if step is not None:
                with np.errstate(all="ignore"):
                    waits = list(step.run(self._warp)) if isinstance(step, Suspending) else step(self._warp)
                if waits:
                    raise SimulationError(Code.SIM_UNSUPPORTED, f"the host does not execute '{op.name}'")
