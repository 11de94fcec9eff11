# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the simulator runs: which checks it makes, and when it ends a run."""

from dataclasses import dataclass, field, replace

from tilefold.base.errors import Code
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.sim.sim_engine import SimEngine
from tilefold.runtime.sim.warp import Budget


@dataclass(frozen=True)
class Simulation:
    """The options of a simulation.

    `races` looks for accesses that nothing orders. `budget` is when a run ends with an error. `seed` chooses the order
    of warps; 0 is their own order.
    """

    races: bool = True
    budget: Budget = field(default_factory=Budget)
    seed: int = 0

    @property
    def engine(self) -> SimEngine:
        """The simulator with these options."""
        return SimEngine(self.budget, self.seed or None, races=self.races)


def simulation_of(races: bool, max_steps: int | None, max_memory: int | None, seed: int = 0) -> Simulation:
    """The options that a launch in Python is given. LaunchError (E3105) for values that they cannot have."""
    if type(races) is not bool:
        raise LaunchError(Code.RUN_LAUNCH, f"races is {races!r}", "True or False")
    return Simulation(races, limited(max_steps, max_memory), seed)


def limited(max_steps: int | None, max_memory: int | None) -> Budget:
    """The budget of a run that ends after `max_steps` operations of warps, and may use `max_memory` MiB.

    None is the simulator's own limit. LaunchError (E3105) for a limit that is not a positive integer.
    """
    for name, limit in (("max_steps", max_steps), ("max_memory", max_memory)):
        if limit is not None and (type(limit) is not int or limit < 1):
            raise LaunchError(Code.RUN_LAUNCH, f"{name} is {limit!r}", "an integer that is at least 1")
    own = Budget()
    return replace(own, steps=max_steps or own.steps, bytes=own.bytes if max_memory is None else max_memory << 20)
