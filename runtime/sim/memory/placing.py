# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the tensors of a launch go, of all of its devices; and multicast memory, which stands for some of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ...arrays.host_tensors import Stretch, stretches
from ...engine import Argument, TensorArgument


@dataclass(frozen=True, slots=True)
class Multicast:
    """Multicast memory: the range of the host's addresses that names it, and the memory of each device, in bytes."""

    memory: NDArray[Any]
    parts: tuple[NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class Placing:
    """The stretch of memory of each array, by its identity, and the offsets of those that are `placed` in the arena:
    arrays that share memory do so there, too.
    """

    where: Mapping[int, Stretch]
    placed: dict[Stretch, int]

    @classmethod
    def of(cls, arguments: Iterable[Mapping[str, Argument]], multicasts: Sequence[Multicast] = ()) -> "Placing":
        """That of these arguments, of which nothing is placed yet."""
        given = [value.storage for args in arguments for value in args.values() if isinstance(value, TensorArgument)]
        kept = [memory for multicast in multicasts for memory in (multicast.memory, *multicast.parts)]
        return cls(stretches([*given, *kept]), {})
