# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that have state for other modules, which define it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Holder:
    """What has state that other modules define: an object of each of their classes, made when it is first asked for."""

    _states: dict[Any, Any] = field(init=False, default_factory=dict[Any, Any])

    def state(self, kind: Callable[[Any], T]) -> T:
        """The state of a class, which is made of the holder alone."""
        state: T | None = self._states.get(kind)
        if state is None:
            state = self._states[kind] = kind(self)
        return state
