# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special registers: where a thread is in its block, its block in the cluster and the grid, and the cluster in the grid
(PTX ISA, Special Registers).
"""

from xdsl.dialects.builtin import I32, StringAttr, i32
from xdsl.irdl import prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..definitions import irdl_op_definition
from .base import PtxOp

CLUSTER_REGISTERS = (
    *(f"{n}.{axis}" for n in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for axis in "xyz"),
    "cluster_ctarank", "cluster_nctarank",
)  # fmt: skip
"""Those of clusters, from sm_90 on."""
REGISTERS = (*(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"), *CLUSTER_REGISTERS)
"""The special registers that hold coordinates and sizes."""


@irdl_op_definition
class SregOp(PtxOp):
    """`%t = ptx.sreg "tid.x"`: a special register: tid, ntid (block size), ctaid (block) or nctaid (grid size), by
    axis. From sm_90 on also cluster_ctaid and cluster_nctaid (block in the cluster, and blocks of a cluster), clusterid
    and nclusterid (cluster in the grid, and clusters of the grid), by axis, and cluster_ctarank and cluster_nctarank
    (the number of the block in the cluster, x the fastest, and how many a cluster has).

    LLVM may read it several times or not at all, so it is not counted as an instruction.
    """

    name = "ptx.sreg"
    register = prop_def(StringAttr)
    result = result_def(I32)
    traits = traits_def(Pure())
    assembly_format = "$register attr-dict"

    def __init__(self, register: str):
        super().__init__(properties={"register": StringAttr(register)}, result_types=[i32])

    def requires(self) -> tuple[int, int]:
        return (90, 78) if self.register.data in CLUSTER_REGISTERS else super().requires()

    def verify_(self) -> None:
        if self.register.data not in REGISTERS:
            raise VerifyException(f"unknown special register '{self.register.data}'; known: {', '.join(REGISTERS)}")
