# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: bulk copies, their groups and the fence of their proxy, as inline assembly."""

from xdsl.ir import Operation

from ...dialects import ptx
from .inline_assembly import call_ordered, ordered
from .writer import FunctionWriter, Rule, rule


def _wait_group(w: FunctionWriter, op: ptx.BulkWaitGroupOp) -> None:
    w.emit(call_ordered(w, f"{op.mnemonic()} {op.n.value.data};", "", ()))


PTX_BULK: tuple[tuple[type[Operation], Rule], ...] = (
    (ptx.BulkLoadOp, ordered("[$0], [$1], $2, [$3]")),
    (ptx.BulkSendOp, ordered("[$0], [$1], $2, [$3]")),
    (ptx.BulkStoreOp, ordered("[$0], [$1], $2")),
    (ptx.BulkReduceOp, ordered("[$0], [$1], $2")),
    (ptx.BulkPrefetchOp, ordered("[$0], $1")),
    (ptx.BulkCommitGroupOp, ordered()),
    rule(ptx.BulkWaitGroupOp, _wait_group),
    (ptx.FenceProxyAsyncOp, ordered()),
)
