# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`vector`: building and taking apart the 1-D vectors that loads and stores move."""

from collections.abc import Callable

from xdsl.dialects import vector
from xdsl.ir import Operation, SSAValue

from ...base.errors import Code
from ...dialects.ptx.base import split_vector
from ...passes.errors import LoweringError
from .arith import intrinsic
from .writer import FunctionWriter, Rule, rule


def write_by_elements(
    w: FunctionWriter, operand: SSAValue, result: SSAValue, write_element: Callable[[str], str]
) -> None:
    """Defines a vector: `write_element` writes the computation of one element, and returns the name of its result."""
    type = w.type(result)  # `<4 x float>`
    count, _, element = type[1:-1].split(" ", 2)
    whole = "poison"
    for index in range(int(count)):
        value = write_element(w.temp(f"extractelement {w.typed(operand)}, i32 {index}"))
        text = f"insertelement {type} {whole}, {element} {value}, i32 {index}"
        if index == int(count) - 1:
            w.define(result, text)
        else:
            whole = w.temp(text)


def _position(w: FunctionWriter, op: vector.ExtractOp | vector.InsertOp, whole: SSAValue) -> str:
    """The index operand of an access to one element, checked against the vector's length where it is static."""
    position = op.get_mixed_position()
    _, count = split_vector(whole.type)
    if len(position) != 1 or not count:
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' needs one index into a 1-D vector", op)
    (index,) = position
    if isinstance(index, int):
        if not 0 <= index < count:
            raise LoweringError(Code.EMIT_UNSUPPORTED, f"index {index} is outside {whole.type}", op)
        return f"i32 {index}"
    return w.typed(index)


def _extract(w: FunctionWriter, op: vector.ExtractOp) -> None:
    w.define(op.result, f"extractelement {w.typed(op.vector)}, {_position(w, op, op.vector)}")


def _insert(w: FunctionWriter, op: vector.InsertOp) -> None:
    where = _position(w, op, op.dest)
    w.define(op.result, f"insertelement {w.typed(op.dest)}, {w.typed(op.source)}, {where}")


def _broadcast(w: FunctionWriter, op: vector.BroadcastOp) -> None:
    if split_vector(op.source.type)[1]:
        if op.source.type != op.vector.type:
            raise LoweringError(Code.EMIT_UNSUPPORTED, "'vector.broadcast' of a vector has no translation to PTX", op)
        w.bind(op.vector, w.ref(op.source))
        return
    type, (_, count) = w.type(op.vector), split_vector(op.vector.type)
    first = w.temp(f"insertelement {type} poison, {w.typed(op.source)}, i32 0")
    w.define(op.vector, f"shufflevector {type} {first}, {type} poison, <{count} x i32> zeroinitializer")


def _shuffle(w: FunctionWriter, op: vector.ShuffleOp) -> None:
    picks = op.mask.get_values()
    _, left = split_vector(op.v1.type)
    _, right = split_vector(op.v2.type)
    if any(not 0 <= pick < left + right for pick in picks):
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"'vector.shuffle' picks outside its {left + right} elements", op)
    w.type(op.result)
    mask = ", ".join(f"i32 {pick}" for pick in picks)
    w.define(op.result, f"shufflevector {w.typed(op.v1)}, {w.typed(op.v2)}, <{len(picks)} x i32> <{mask}>")


def _bitcast(w: FunctionWriter, op: vector.BitcastOp) -> None:
    w.define(op.result, f"bitcast {w.typed(op.source)} to {w.type(op.result)}")


VECTOR: tuple[tuple[type[Operation], Rule], ...] = (
    rule(vector.ExtractOp, _extract),
    rule(vector.InsertOp, _insert),
    rule(vector.BroadcastOp, _broadcast),
    rule(vector.ShuffleOp, _shuffle),
    rule(vector.BitcastOp, _bitcast),
    (vector.FMAOp, intrinsic("fma")),
)
