# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rule of every operation that stage `instr` may contain."""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.ir import Operation

from .arith import ARITH
from .control import CONTROL
from .convert import CONVERT
from .printf import PRINTF
from .ptx_async import PTX_ASYNC
from .ptx_atomic import PTX_ATOMIC
from .ptx_cluster import PTX_CLUSTER, PTX_LAUNCH_CONTROL
from .ptx_compute import PTX_COMPUTE
from .ptx_custom import PTX_CUSTOM
from .ptx_memory import PTX_MEMORY
from .ptx_tcgen05 import PTX_TCGEN05
from .ptx_warp import PTX_LANES, PTX_MATRIX, PTX_WARP
from .ptx_wgmma import PTX_WGMMA
from .vector import VECTOR
from .writer import Rule

RULES: Mapping[type[Operation], Rule] = MappingProxyType(dict((
    *ARITH, *CONVERT, *VECTOR, *CONTROL, *PRINTF, *PTX_COMPUTE, *PTX_MEMORY, *PTX_MATRIX, *PTX_WARP, *PTX_LANES,
    *PTX_ATOMIC, *PTX_ASYNC, *PTX_CLUSTER, *PTX_LAUNCH_CONTROL, *PTX_WGMMA, *PTX_TCGEN05, *PTX_CUSTOM,
)))  # fmt: skip


def rule_of(kind: type[Operation]) -> Rule | None:
    """The rule of an operation. Those of structs are loaded when a kernel has one: `llvm` takes long to import."""
    if kind.dialect_name() in ("llvm", "ub"):
        from .structs import STRUCTS

        return dict(STRUCTS).get(kind)
    return RULES.get(kind)
