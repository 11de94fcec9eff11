# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shared memory of targets, by which older programs choose sizes (`cutlass.utils.ampere_helpers`)."""

from collections.abc import Mapping
from types import MappingProxyType

from tilefold.base.target import Target
from tilefold.cute.public import publish

SMEM_CAPACITY: Mapping[str, int] = MappingProxyType(
    {name: Target(f"sm_{name[2:]}").max_shared_bytes for name in ("sm80", "sm86", "sm89", "sm90")}
)
"""The bytes of shared memory that a block can have."""

__all__ = ["SMEM_CAPACITY"]

publish(__name__)
