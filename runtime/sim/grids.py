# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grids of a launch: one, or one on each of several devices that run at the same time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...dialects import ptx
from ...dialects.kernel import KernelOp
from ..arrays.host_tensors import Multicast, Placing
from ..engine import Argument, InstructionCount, TensorArgument
from .launch import PlacedMulticast
from .memory.provenance import pieces
from .preparation import Binding, place
from .translate import Translator


@dataclass(frozen=True, slots=True)
class Grid:
    """A kernel with its arguments, on a device of its own."""

    kernel: KernelOp
    args: Mapping[str, Argument]


def place_shared(kernel: KernelOp, t: Translator) -> None:
    """Gives the kernel the shared memory that its entry declares."""
    if not isinstance(kernel, ptx.EntryOp) or kernel.shared_bytes is None:
        return
    shared = t.spaces.shared
    t.shared_start = t.shared(kernel.shared_bytes.value.data, 1024, "the block's shared memory")
    t.homes.update(pieces(kernel, t.shared_start - shared.base))
    shared.arena.parts.extend(dict.fromkeys(t.homes.values()))


def bind_multicasts(multicasts: Sequence[Multicast], t: Translator, placing: Placing) -> list[Binding]:
    """Gives multicast memory its addresses, and the memory of each device that it stands for."""
    bindings: list[Binding] = []

    def address_of(memory: NDArray[np.uint8], name: str) -> int:
        given = TensorArgument(memory)
        offset = place(memory, given, name, t, placing)
        bindings.append(Binding(offset, given))
        return t.spaces.global_.base + offset

    for multicast in multicasts:
        start = address_of(multicast.memory, "multicast memory")
        parts = tuple(address_of(part, f"symmetric memory of device {n}") for n, part in enumerate(multicast.parts))
        t.launch.multicasts.append(PlacedMulticast(start, multicast.memory.nbytes, parts))
    return bindings


def added(counts: Iterable[Mapping[str, InstructionCount]]) -> dict[str, InstructionCount]:
    """The sums of counts of the same name."""
    total: dict[str, InstructionCount] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total[name] + count if name in total else count
    return total
