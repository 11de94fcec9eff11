# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers of the dialect `cute` of another compiler: their memories, and pointers as those to other elements."""

from typing import Any

from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.cute.jit_arguments import PtrType

__all__ = ["AddressSpace", "PtrType", "recast_iter"]


def recast_iter(result: PtrType, source: object) -> Any:
    """A pointer as one to a tensor map in the same place, which `cute.copy` takes as it is."""
    return source
