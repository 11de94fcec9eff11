# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `cute` dialect with all its operations."""

from xdsl.ir import Dialect

from ..definitions import find_operations
from . import accessors, algebra, arithmetic, constructors, indexing, tiling
from .attributes import QUOTED_ATTRIBUTES
from .types import CUTE_TYPES

CUTE = Dialect(
    "cute",
    find_operations(constructors, accessors, algebra, indexing, arithmetic, tiling),
    [*CUTE_TYPES, *QUOTED_ATTRIBUTES],
)
