# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The thread of a host function, which executes by the rules of a kernel's threads."""

from typing import NoReturn

from ...base.errors import Code
from .faults import SimulationError, Site
from .warp import Warp


class HostWarp(Warp):
    """The host's only thread, which has no place in a grid: its faults name only the operation."""

    def fault(
        self, code: Code, site: Site, lane: int | None, message: str, hint: str = "", *_: object, **__: object
    ) -> NoReturn:
        raise SimulationError(code, message, hint, site=site)
