# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that only compute values: a branch of such ones chooses among values, as `arith.select` does.

Nothing in it reaches memory or other threads, so an undefined condition makes undefined results, which matter where
they are used.
"""

from xdsl.ir import Operation
from xdsl.traits import is_side_effect_free

from ...base.spaces import RMEM
from ...dialects import ptx, tile


def only_computes(op: Operation) -> bool:
    """Whether an operation makes its results of its operands, or reads registers."""
    if isinstance(op, ptx.LoadOp):
        return op.ptr.type == ptx.LOCAL
    if isinstance(op, tile.LoadOp):
        return isinstance(type := op.operands[0].type, tile.TensorType) and type.space.data is RMEM
    return is_side_effect_free(op)
