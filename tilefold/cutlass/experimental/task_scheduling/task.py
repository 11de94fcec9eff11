# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks: warps of a block that follow one schedule."""

from collections.abc import Sequence
from typing import Any

from tilefold.base.target import WARP
from tilefold.builder.instructions import arch, cluster
from tilefold.builder.pipelines.groups import pipeline_error

from .resources import MemoryResource
from .schedule_builder import Schedule


class Task:
    """The warps `warp_idx` to `warp_idx + num_warps` - 1 of a block, which read `src_resources` and fill
    `dst_resources` in the order of a schedule.

    `num_registers` is the number that the program plans for a thread; it must be the same in the tasks of four warps
    that are one warp group, and is left to the assembler otherwise. `debug_print` has no effect. A program derives
    classes from it for loops whose end a tile determines.
    """

    def __init__(
        self,
        *,
        name: str,
        src_resources: Sequence[MemoryResource],
        dst_resources: Sequence[MemoryResource],
        warp_idx: int,
        num_warps: int,
        schedule: Schedule,
        num_registers: int | None = None,
        debug_print: bool = False,
    ) -> None:
        if not isinstance(schedule, Schedule):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "call the @schedule function with its resources, such as load(gmem, smem)"
            raise pipeline_error(f"the schedule of '{name}' is a {type(schedule).__name__}", hint)
        self.name = name
        self.src_resources = tuple(src_resources)
        self.dst_resources = tuple(dst_resources)
        self.warp_idx = warp_idx
        self.num_warps = num_warps
        self.schedule = schedule
        self.num_registers = num_registers

    @property
    def warps(self) -> range:
        """Its warps."""
        return range(self.warp_idx, self.warp_idx + self.num_warps)

    @property
    def threads(self) -> int:
        """The number of its threads."""
        return self.num_warps * WARP

    def is_selected(self) -> Any:
        """Whether the calling warp is one of its warps."""
        warp = cluster.make_warp_uniform(arch.warp_idx())
        if self.num_warps == 1:
            return warp == self.warp_idx
        return (warp >= self.warp_idx) & (warp < self.warp_idx + self.num_warps)
