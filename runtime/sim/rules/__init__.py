# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator's rules, one file for each family of operations, and the table of them all."""

from types import MappingProxyType

from ..translate import Rules
from .calls import CALLS
from .casts import CASTS
from .cute import CUTE
from .floats import FLOATS
from .gpu import GPU
from .integers import INTEGERS
from .mma import MMA
from .ptx_atomic import PTX_ATOMIC
from .ptx_compute import PTX_COMPUTE
from .ptx_inline import PTX_INLINE
from .ptx_lanes import PTX_LANES
from .ptx_matrix import PTX_MATRIX
from .ptx_mbarrier import PTX_MBARRIER
from .ptx_memory import PTX_MEMORY
from .ptx_sync import PTX_SYNC
from .scf import SCF
from .structs import STRUCTS
from .tile_coordinates import TILE_COORDINATES
from .tile_copies import TILE_COPIES
from .tile_maps import TILE_MAPS
from .tile_memory import TILE_MEMORY
from .tile_views import TILE_VIEWS
from .vector import VECTOR

COMMON: Rules = MappingProxyType({**INTEGERS, **FLOATS, **CASTS, **SCF, **VECTOR, **CALLS, **CUTE, **STRUCTS})
"""The rules of operations that can run anywhere, on the host too."""

RULES: Rules = MappingProxyType({
    **COMMON, **GPU, **PTX_MEMORY, **PTX_MATRIX, **PTX_SYNC, **PTX_LANES, **PTX_COMPUTE, **PTX_ATOMIC, **PTX_MBARRIER,
    **PTX_INLINE, **TILE_VIEWS, **TILE_COORDINATES, **TILE_MEMORY, **TILE_MAPS, **TILE_COPIES, **MMA,
})  # fmt: skip
"""The rule of every operation that can run inside a kernel."""
