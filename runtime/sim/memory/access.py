# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The accesses of a program with their costs, and the effects of atomic writes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...engine import AccessCount
from ..faults import Site
from .arena import Allocation

Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class Access:
    """A memory operation of the program with the costs of its executions so far."""

    site: Site
    space: str
    kind: str
    width: int
    requests: int = 0
    threads: int = 0
    transactions: int = 0
    minimum: int = 0
    home: Allocation | None = None
    """The allocation from which the address was computed, where that is known."""
    scope: str = "gpu"
    """The threads among which it is atomic, if it is."""
    constant: bool = False
    """Whether it is a load that promises that nothing writes its data."""

    def count(self) -> AccessCount:
        """The counts so far, for the report."""
        return AccessCount(
            self.site.op, self.site.location, self.space, self.kind, self.width,
            self.requests, self.threads, self.transactions, self.minimum,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Atomic:
    """The effect of an atomic write, and its order: `change` returns the bytes to write, from the number of the access
    and the bytes from before.
    """

    change: Callable[[int, Bytes], Bytes]
    acquires: bool
    releases: bool
    is_seen: bool = True
    """Whether the kernel uses the old value, so that its next operations may depend on earlier writes."""
    reads: bool = True
    """Whether it reads the old value; a store does not."""
    operands: Callable[[int], bytes] | None = None
    """The operands of the access of a number: equal ones change equal bytes alike; None if they are not known."""
