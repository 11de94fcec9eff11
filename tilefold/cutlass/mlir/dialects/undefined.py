# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors and structures that get their members one after the other (`llvm.mlir_undef`)."""

from dataclasses import dataclass, replace
from typing import Any

from tilefold.base.errors import Code, TilefoldError

__all__ = ["Undefined"]


@dataclass(frozen=True, slots=True)
class Undefined:
    """A value of a type whose members are not all known yet; an unknown one is None."""

    type: Any
    members: tuple[Any, ...]

    @property
    def is_complete(self) -> bool:
        """Whether all members are known."""
        return all(member is not None for member in self.members)

    def with_member(self, place: int, member: object) -> "Undefined":
        """The same with a member in a place. Raises TilefoldError (E5002) for a place that it does not have."""
        if not 0 <= place < len(self.members):
            problem = f"a value with {len(self.members)} members has no member {place}"
            raise TilefoldError(Code.BUILD_VALUE, problem, "count the members from 0")
        return replace(self, members=(*self.members[:place], member, *self.members[place + 1 :]))
