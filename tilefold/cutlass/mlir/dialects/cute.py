# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers of the dialect `cute` of another compiler: their memories, and pointers as those to other elements."""

from dataclasses import dataclass
from typing import Any

from tilefold.builder.tensors.address_space import AddressSpace

__all__ = ["AddressSpace", "PtrType", "recast_iter"]


@dataclass(frozen=True)
class PtrType:
    """The type of a pointer to elements of a type in a memory, at a multiple of some bytes."""

    pointee: Any
    memspace: AddressSpace
    alignment: int

    @staticmethod
    def get(pointee: object, address_space: AddressSpace, alignment: int = 1) -> "PtrType":
        """The type of a pointer."""
        return PtrType(pointee, address_space, alignment)


def recast_iter(result: PtrType, source: object) -> Any:
    """A pointer as one to a tensor map in the same place, which `cute.copy` takes as it is."""
    return source
