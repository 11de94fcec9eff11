# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks each launch of this process that the simulator executes, before it runs."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilefold.cute.debugging import RepeatableLaunch
from tilefold.cute.repeated_checks import check_all
from tilefold.driver.devices import devices_of_process
from tilefold.driver.faults import AS_GIVEN, Report
from tilefold.runtime.options import SimOptions
from tilefold.tools.checking.check import STAGES

if TYPE_CHECKING:
    from tilefold.cute.compiled_kernel import CompiledKernel
    from tilefold.cute.launch import LaunchRequest
    from tilefold.cute.specialise import BoundArguments


@dataclass(frozen=True)
class _BuiltCall:
    """A kernel that is built, and its arguments, as `RepeatableLaunch` takes them."""

    built: "CompiledKernel"
    bound: "BoundArguments"

    def build(self, block: object) -> "CompiledKernel":
        """The kernel."""
        return self.built


@contextmanager
def checking_launches(stages: Sequence[str] = STAGES) -> Generator[list[Report], None, None]:
    """Within it, each launch on the simulator is checked at these stages, on copies of its arguments, before it runs;
    the reports are added to the list. A launch that cannot be repeated raises its error.
    """
    devices, reports = devices_of_process(), list[Report]()

    def check(
        built: "CompiledKernel", bound: "BoundArguments", grid: object, request: "LaunchRequest", options: SimOptions
    ) -> None:
        call = _BuiltCall(built, bound)
        block = built.traced.bounds.threads
        launch = RepeatableLaunch(call, grid, block, request.attributes, options)
        reports.append(check_all([(AS_GIVEN, launch)], None, stages))

    outer, devices.on_launch = devices.on_launch, check
    try:
        yield reports
    finally:
        devices.on_launch = outer
