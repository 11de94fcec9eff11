# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions without operands as text, `fence.proxy.async;`, as the operations that they are (PTX ISA, fence, membar,
cp.async, griddepcontrol, barrier.cluster, tcgen05.fence, tcgen05.wait).
"""

from collections.abc import Callable, Mapping
from functools import partial

from xdsl.ir import Operation

from ...base.spaces import GMEM, SMEM
from ...dialects import ptx

_SCOPES = ("cta", "cluster", "gpu", "sys")
_OPERATIONS: Mapping[str, Callable[[], Operation]] = {
    **{f"fence.{order}.{scope}": partial(ptx.FenceOp, order, scope=scope)
       for order in ("acq_rel", "sc") for scope in _SCOPES},
    **{f"membar.{level}": partial(ptx.FenceOp, "sc", scope=scope)
       for level, scope in (("cta", "cta"), ("gl", "gpu"), ("sys", "sys"))},
    **{f"fence.proxy.async{suffix}": partial(ptx.FenceProxyAsyncOp, space)
       for suffix, space in (("", None), (".global", GMEM.ptx), (".shared::cta", SMEM.ptx))},
    "fence.mbarrier_init.release.cluster": ptx.FenceMbarrierInitOp,
    "cp.async.commit_group": ptx.CpAsyncCommitGroupOp,
    "cp.async.wait_all": ptx.CpAsyncWaitAllOp,
    "cp.async.bulk.commit_group": ptx.BulkCommitGroupOp,
    "griddepcontrol.wait": ptx.GridDependencyWaitOp,
    "griddepcontrol.launch_dependents": ptx.LaunchDependentsOp,
    **{f"barrier.cluster.arrive{order}{aligned}":
       partial(ptx.ClusterArriveOp, relaxed=order == ".relaxed", aligned=bool(aligned))
       for order in ("", ".release", ".relaxed") for aligned in ("", ".aligned")},
    **{f"barrier.cluster.wait{order}{aligned}": partial(ptx.ClusterWaitOp, aligned=bool(aligned))
       for order in ("", ".acquire") for aligned in ("", ".aligned")},
    **{f"tcgen05.fence::{when}": partial(ptx.TensorFenceOp, when)
       for when in ("before_thread_sync", "after_thread_sync")},
    **{f"tcgen05.wait::{kind}.sync.aligned": partial(ptx.TensorWaitOp, kind) for kind in ("ld", "st")},
}  # fmt: skip


def plain_operation(text: str) -> Operation | None:
    """The operation that a text without operands is; None for any other text."""
    make = _OPERATIONS.get("".join(text.split()).removesuffix(";"))
    return None if make is None else make()
