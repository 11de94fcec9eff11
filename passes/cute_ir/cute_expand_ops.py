# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute-expand-ops`: the layout algebra as integer arithmetic."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...base.errors import Code, LayoutError
from ...dialects.cute.accessors import GetScalarsOp
from ...dialects.cute.arithmetic import CompareOp, EqualOp
from ...dialects.cute.brackets import parameter
from ...dialects.cute.constructors import (
    SCALARS,
    GatherOp,
    MakeComposedLayoutOp,
    MakeCoordOp,
    MakeIntTupleOp,
    MakeLayoutOp,
    MakeShapeOp,
    MakeStrideOp,
    MakeTileOp,
    StaticOp,
)
from ...dialects.cute.op import AlgebraOp
from ...dialects.cute.types import (
    ComposedLayoutType,
    CoordType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    SwizzleType,
    TileType,
)
from ...dialects.cute.values import integers, map_integers
from ...layout.algebra.core import ComposedLayout, Layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.swizzle import Swizzle
from ..errors import LoweringError
from ..writing.emitter import Emitter
from .writing.signed_int import SignedInt

_KEPT = (MakeLayoutOp, MakeComposedLayoutOp, GetScalarsOp)  # beside `static`, `print` and those that gather integers
_GATHERS: Mapping[type[CuteType], type[GatherOp]] = MappingProxyType({
    IntTupleType: MakeIntTupleOp,
    CoordType: MakeCoordOp,
    ShapeType: MakeShapeOp,
    StrideType: MakeStrideOp,
    TileType: MakeTileOp,
})  # fmt: skip


@dataclass(frozen=True)
class CuteExpandOpsPass(ModulePass):
    """Expands operations of the algebra: dynamic integers are taken out of the operands, the result is computed from
    them and put together again. Constants, constructors, `cute.get_scalars` and `cute.print` are left.

    Before:

        %n = cute.size(%l) : (!cute.layout<"(?,8):(1,?)">) -> !cute.int_tuple<"?">

    After:

        %0:2 = cute.get_scalars<{only_dynamic}> (%l) : !cute.layout<"(?,8):(1,?)">
        %1 = arith.constant 8 : i32
        %2 = arith.muli %0#0, %1 overflow<nsw> : i32
        %n = cute.make_int_tuple(%2) : (i32) -> !cute.int_tuple<"?">
    """

    name = "cute-expand-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, CompareOp):
                expand_comparison(inner)
            elif isinstance(inner, AlgebraOp) and not isinstance(inner, _KEPT):
                expand(inner)


def expand(op: AlgebraOp) -> None:
    """Replaces an operation by the arithmetic that computes its results. Raises LoweringError for other operations."""
    emitter = Emitter(op)
    types = [type for type in op.result_types if isinstance(type, CuteType)]
    if all(type.is_static for type in types):
        emitter.replace([_static(emitter, type) for type in types])
        return
    values = [_value(emitter, operand) for operand in op.operands]
    try:
        result = op.evaluate(*values, **{name: parameter(value) for name, value in op.properties.items()})
    except LayoutError as error:
        raise LoweringError(Code.PASS_FAILED, error.message, op, error.hint) from error
    results = cast(list[Any], result) if isinstance(result, list) else [result]
    emitter.replace([gather(emitter, type, value) for type, value in zip(types, results, strict=True)])


def expand_comparison(op: CompareOp) -> None:
    """Replaces a comparison by one of each integer."""
    emitter = Emitter(op)
    lhs, rhs = op.operand_types
    assert isinstance(lhs, CuteType)
    assert isinstance(rhs, CuteType)
    result: SSAValue | None = None
    if (known := op.static_result) is None and _structure(lhs.data) == _structure(rhs.data):
        pairs = zip(_scalars(emitter, op.operands[0]), _scalars(emitter, op.operands[1]), strict=True)
        predicate = "eq" if isinstance(op, EqualOp) else "slt"
        for a, b in pairs:
            holds = a.compare(predicate, a, b)
            result = holds if result is None else emitter.value(arith.AndIOp(result, holds))
    if result is None:  # of different profiles, or without integers
        result = emitter.value(arith.ConstantOp(BoolAttr.from_bool(bool(known) if known is not None else lhs == rhs)))
    emitter.replace([result])


def _structure(value: Any) -> Any:
    """A value but for its integers: profile, underscores and the paths of bases."""
    return map_integers(lambda _: 0, value)


def _scalars(emitter: Emitter, operand: SSAValue) -> list[SignedInt]:
    """All integers of a value."""
    scalars = GetScalarsOp.create(operands=[operand], result_types=GetScalarsOp.infer([operand.type], {}))
    return [SignedInt(emitter, result) for result in emitter.insert(scalars).results]


def _value(emitter: Emitter, operand: SSAValue) -> Any:
    """The value of an operand for the algebra: its dynamic integers are those of the program."""
    assert isinstance(operand.type, CuteType)
    if operand.type.is_static:
        return operand.type.data
    properties = {"only_dynamic": UnitAttr()}
    types = GetScalarsOp.infer([operand.type], properties)
    op = emitter.insert(GetScalarsOp.create(operands=[operand], result_types=types, properties=properties))
    scalars: Iterator[SSAValue] = iter(op.results)
    return map_integers(lambda x: SignedInt(emitter, next(scalars)) if type(x) is Unknown else x, operand.type.data)


def _static(emitter: Emitter, type: CuteType) -> SSAValue:
    return emitter.value(StaticOp.create(result_types=[type]))


def gather(emitter: Emitter, kind: CuteType, value: object) -> SSAValue:
    """The value as an operand of the program again, with the type of the operation's result."""
    return _static(emitter, kind) if kind.is_static else _part(emitter, kind, value)


def _part(emitter: Emitter, kind: CuteType, value: Any) -> SSAValue:
    """The value, put together from integers and parts even where it is static."""
    match kind:
        case SwizzleType():
            return _static(emitter, kind)
        case LayoutType():
            assert isinstance(value, Layout)
            shape = _part(emitter, ShapeType(kind.data.shape), value.shape)
            stride = _part(emitter, StrideType(kind.data.stride), value.stride)
            return _make_value(emitter, MakeLayoutOp, kind, [shape, stride])
        case ComposedLayoutType():
            assert isinstance(value, ComposedLayout)
            inner = SwizzleType if isinstance(value.inner, Swizzle) else LayoutType
            outer = gather(emitter, LayoutType(kind.data.outer), value.outer)
            offset = _part(emitter, IntTupleType(kind.data.offset), value.offset)
            last = gather(emitter, inner(kind.data.inner), value.inner)
            return _make_value(emitter, MakeComposedLayoutOp, kind, [last, offset, outer])
        case _:
            pairs = zip(integers(kind.data), integers(value), strict=True)
            elements = [_element(emitter, leaf.width, x) for leaf, x in pairs if isinstance(leaf, Unknown)]
            return _make_value(emitter, _GATHERS[type(kind)], kind, elements)


def _element(emitter: Emitter, width: int, integer: int | SignedInt) -> SSAValue:
    if isinstance(integer, SignedInt):
        return integer.to(width)
    return emitter.constant(integer, SCALARS[width])


def _make_value(emitter: Emitter, op: type[Operation], kind: CuteType, operands: list[SSAValue]) -> SSAValue:
    return emitter.value(op.create(operands=operands, result_types=[kind]))
