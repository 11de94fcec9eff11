# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: tensor copies, as inline assembly."""

from xdsl.ir import Operation, SSAValue

from ...dialects import ptx
from ...dialects.ptx.types import make_constraint
from .inline_assembly import call_ordered, ordered
from .writer import FunctionWriter, Rule, rule


def _load(w: FunctionWriter, op: ptx.TensorLoadOp) -> None:
    _write(w, op, f"[$0], [$2, {{{_places(op, 3)}}}], [$1]", [op.dst, op.bar, op.map, *op.coords], op.multicast)


def _from_shared(w: FunctionWriter, op: ptx.TensorStoreOp | ptx.TensorReduceOp) -> None:
    _write(w, op, f"[$1, {{{_places(op, 2)}}}], [$0]", [op.src, op.map, *op.coords])


def _prefetch(w: FunctionWriter, op: ptx.TensorPrefetchOp) -> None:
    _write(w, op, f"[$0, {{{_places(op, 1)}}}]", [op.map, *op.coords])


def _places(op: ptx.TensorCopyOp, first: int) -> str:
    return ", ".join(f"${first + number}" for number in range(len(op.coords)))


def _write(
    w: FunctionWriter, op: ptx.TensorCopyOp, text: str, operands: list[SSAValue], mask: SSAValue | None = None
) -> None:
    """Writes an instruction with its operands, after which stand the mask of the blocks and the cache policy."""
    for optional in (mask, op.policy):
        if optional is not None:
            text += f", ${len(operands)}"
            operands.append(optional)
    letters = ",".join(make_constraint(operand.type) or "" for operand in operands)
    w.emit(call_ordered(w, f"{op.mnemonic()} {text};", letters, operands))


PTX_TENSOR_COPY: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.TensorLoadOp, _load),
    rule(ptx.TensorStoreOp, _from_shared),
    rule(ptx.TensorReduceOp, _from_shared),
    rule(ptx.TensorPrefetchOp, _prefetch),
    (ptx.PrefetchTensorMapOp, ordered("[$0]")),
)
