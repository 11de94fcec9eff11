# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rule of every operation that stage `instr` may contain."""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.ir import Operation

from .arith import ARITH
from .assertions import ASSERTIONS
from .control import CONTROL
from .convert import CONVERT
from .math import MATH
from .printf import PRINTF
from .ptx_atomic import PTX_ATOMIC
from .ptx_bulk import PTX_BULK
from .ptx_cluster import PTX_CLUSTER
from .ptx_compute import PTX_COMPUTE
from .ptx_inline import PTX_INLINE
from .ptx_lanes import PTX_LANES
from .ptx_matrix import PTX_MATRIX
from .ptx_mbarrier import PTX_MBARRIER
from .ptx_memory import PTX_MEMORY
from .ptx_mma import PTX_MMA
from .ptx_sreg import PTX_SREG
from .ptx_tensor_copy import PTX_TENSOR_COPY
from .ptx_tensor_map import PTX_TENSOR_MAP
from .ptx_warp import PTX_WARP
from .ptx_wgmma import PTX_WGMMA
from .vector import VECTOR
from .writer import Rule

RULES: Mapping[type[Operation], Rule] = MappingProxyType(dict((
    *ARITH, *CONVERT, *MATH, *VECTOR, *CONTROL, *PRINTF, *ASSERTIONS,
    *PTX_SREG, *PTX_MEMORY, *PTX_MATRIX, *PTX_MMA, *PTX_WARP, *PTX_LANES, *PTX_COMPUTE, *PTX_ATOMIC,
    *PTX_MBARRIER, *PTX_BULK, *PTX_TENSOR_COPY, *PTX_TENSOR_MAP, *PTX_CLUSTER, *PTX_INLINE, *PTX_WGMMA,
)))  # fmt: skip


def rule_of(kind: type[Operation]) -> Rule | None:
    """The rule of an operation. Those of structs are loaded when a kernel has one: `llvm` takes long to import."""
    if kind.dialect_name() in ("llvm", "ub"):
        from .structs import STRUCTS

        return dict(STRUCTS).get(kind)
    return RULES.get(kind)
