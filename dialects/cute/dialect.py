# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `cute` dialect with all its operations."""

from xdsl.ir import Dialect

from .accessors import ACCESSORS
from .algebra import LAYOUT_ALGEBRA
from .arithmetic import ARITHMETIC
from .attributes import (
    ComposedLayoutAttr,
    CoordAttr,
    IntTupleAttr,
    LayoutAttr,
    ShapeAttr,
    StrideAttr,
    SwizzleAttr,
    TilerAttr,
)
from .constructors import CONSTRUCTORS
from .indexing import INDEXING
from .tiling import TILING
from .types import CUTE_TYPES

CUTE = Dialect(
    "cute",
    [*CONSTRUCTORS, *ACCESSORS, *LAYOUT_ALGEBRA, *INDEXING, *ARITHMETIC, *TILING],
    [
        *CUTE_TYPES,
        IntTupleAttr, CoordAttr, ShapeAttr, StrideAttr, LayoutAttr, TilerAttr, ComposedLayoutAttr, SwizzleAttr,
    ],
)  # fmt: skip
