# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a program's host part: `func.func @main` and its callees, in one thread, within a budget."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...base.errors import Code
from ...base.limits import Limits
from ..engine import LaunchConfig
from ..errors import LaunchError
from ..sim.called_functions import function
from ..sim.events import Pause
from ..sim.faults import deep_stack, site_of
from ..sim.grids import Grids
from ..sim.host_values import HostWarp
from ..sim.launch import LaunchState
from ..sim.memory.memories import Memories
from ..sim.rules import COMMON, rule_of
from ..sim.translate import Rule, Translator
from ..sim.warp import Block, Cluster
from .c_functions import World
from .rules import Launcher, host_rules


@dataclass(frozen=True, slots=True)
class HostEngine:
    """Interprets host functions.

    `launcher` runs the kernels that they launch. `environment` has the variables that the program may read (None: it
    may ask, and finds none set). Its output goes to `sink`, standard output if that is None.
    """

    launcher: Launcher
    environment: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    budget: Limits = field(default_factory=Limits)
    sink: Callable[[str], None] | None = None

    def run(self, module: ModuleOp, entry: str = "main") -> int:
        """Runs a function without arguments to its end; returns how many operations were executed, of kernels too.

        LaunchError (E3404) where there is no such function, SimulationError for faults of the program.
        """
        main = entry_point(module, entry)
        if main is None:
            raise LaunchError(Code.HOST_ENTRY, f"the program has no func.func @{entry}", "name another by --entry")
        if main.function_type.inputs.data:
            raise LaunchError(Code.HOST_ENTRY, f"@{entry} takes arguments", "begin with a function without arguments")
        config = LaunchConfig((1, 1, 1), (1, 1, 1))
        launch = LaunchState(Grids.single(config), self.budget, _write if self.sink is None else self.sink)
        own = host_rules(World(self.environment, launch.print), self.launcher)

        def rule(kind: type[Operation]) -> Rule | None:
            on_host = next((own[base] for base in kind.__mro__ if base in own), None)
            return on_host or (rule_of(kind) if kind.dialect_name() in COMMON else None)

        spaces = Memories.make()
        with deep_stack(site_of(main)), np.errstate(all="ignore"):
            called = function(main, Translator(rule, launch, spaces))
            host = HostWarp(Block(Cluster(launch), (0, 0, 0)), 0, 1, [])
            for event in called.run(host, []):
                assert isinstance(event, Pause), "nothing on the host waits for a barrier"
        return launch.steps


def entry_point(module: ModuleOp, name: str = "main") -> func.FuncOp | None:
    """The host function of this name, if it has a body."""
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name and op.body.blocks:
            return op
    return None


def _write(text: str) -> None:
    sys.stdout.write(text)
