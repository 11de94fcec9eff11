# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute-to-base`: values of the `cute` dialect as LLVM structures of their dynamic integers.

`cute.print` becomes C's printf on the host or `gpu.printf` in a kernel, with the values.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import gpu, llvm, ub
from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IntAttr, ModuleOp, StringAttr, UnitAttr, i8, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...base.errors import Code
from ...dialects.cute.accessors import GetScalarsOp
from ...dialects.cute.brackets import parameter
from ...dialects.cute.constructors import SCALARS, GatherOp, MakeComposedLayoutOp, MakeLayoutOp, PrintOp, StaticOp
from ...dialects.cute.op import CuteOp
from ...dialects.cute.types import ComposedLayoutType, CuteType, IntTupleType
from ...dialects.cute.values import integers
from ...dialects.gpu.launch import PrintfOp
from ...layout.algebra.core import ComposedLayout, Layout
from ...layout.algebra.integers import Tree, Unknown
from ...layout.algebra.inttuple import leaves
from ..errors import LoweringError
from ..writing.emitter import Emitter

_DYNAMIC = re.compile(r"\?(\{i64\})?")
_PRINTF = "printf"
_FORMAT = "printfFormat_{}"


def format_of(kind: CuteType) -> str:
    """The printf format of a type's values: their text, with a conversion for each dynamic integer, and a newline."""
    return _DYNAMIC.sub(lambda match: "%lld" if match[1] else "%d", kind.text) + "\n"


def print_value(emitter: Emitter, text: str, integers: Sequence[SSAValue]) -> None:
    """Prints by a printf format: on the device inside a kernel, on the host elsewhere."""
    if _on_device(emitter.op):
        emitter.insert(PrintfOp(text, integers))
    else:
        _print_on_host(emitter, text, integers)


def _on_device(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, gpu.ModuleOp | gpu.LaunchOp):
            return True
        parent = parent.parent_op()
    return False


def _print_on_host(emitter: Emitter, text: str, integers: Sequence[SSAValue]) -> None:
    module = _module(emitter.op)
    pointer = llvm.LLVMPointerType()
    symbols = {name.data for op in module.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)}
    if _PRINTF not in symbols:
        kind = llvm.LLVMFunctionType([pointer], i32, is_variadic=True)
        _at_start(emitter, module, llvm.FuncOp(_PRINTF, kind, linkage=llvm.LinkageAttr("external")))
    count = 0
    while (name := _FORMAT.format(count)) in symbols:
        count += 1
    characters = llvm.LLVMArrayType(IntAttr(len(text) + 1), i8)
    value = StringAttr(text + "\0")
    internal = llvm.LinkageAttr("internal")
    _at_start(emitter, module, llvm.GlobalOp(characters, name, internal, constant=True, value=value, addr_space=0))
    address = emitter.value(llvm.AddressOfOp(name, pointer))
    start = emitter.value(llvm.GEPOp(address, [0, 0], result_type=pointer, pointee_type=characters))
    emitter.insert(llvm.CallOp(_PRINTF, start, *integers, return_type=i32, variadic_args=1 + len(integers)))


def _at_start(emitter: Emitter, module: ModuleOp, op: Operation) -> None:
    """Inserts a symbol at the start of a module, after `printf`."""
    op.location = emitter.op.location
    first = module.body.block.first_op
    if isinstance(first, llvm.FuncOp) and first.sym_name.data == _PRINTF:
        Rewriter.insert_op(op, InsertPoint.after(first))
    else:
        Rewriter.insert_op(op, InsertPoint.at_start(module.body.block))


def _module(op: Operation) -> ModuleOp:
    parent = op.parent_op()
    while not isinstance(parent, ModuleOp):
        assert parent is not None, "an operation of a program stands in a module"
        parent = parent.parent_op()
    return parent


Path = tuple[int, ...]
"""Where a value stands in nested structures: the field's number, outermost first."""


@dataclass(frozen=True)
class CuteToBasePass(ModulePass):
    """Turns values into structures of their dynamic integers; static integers take no space.

    A tuple becomes the structure of its dynamic integers, or the integer if there is only one; a layout becomes the
    structure of shape and stride; a composed layout that of outer layout, offset and inner function; a tile that of its
    layouts, or the layout if there is only one. Runs after `cute-expand-ops`. `cute.print` becomes a call of C's
    printf, or `gpu.printf` in a kernel.

    Before:

        %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,4)">, !cute.stride<"(?,1)">) -> !cute.layout<"(?,4):(?,1)">
        %n = cute.get_scalars<{only_dynamic}> (%s) : !cute.shape<"(?,4)">

    After:

        %0 = ub.poison : !llvm.struct<(i32, i32)>
        %1 = llvm.insertvalue %s, %0[0] : !llvm.struct<(i32, i32)>
        %l = llvm.insertvalue %d, %1[1] : !llvm.struct<(i32, i32)>
    """

    name = "cute-to-base"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        planned = [
            (inner, tuple(inner.operand_types), tuple(inner.result_types))
            for inner in op.walk()
            if isinstance(inner, CuteOp)
        ]
        for inner in list(op.walk()):
            if not isinstance(inner, CuteOp):
                convert_types(inner)
        for cute_op, operand_types, result_types in planned:
            lower(cute_op, operand_types, result_types)


def lower_type(type: Attribute) -> Attribute:
    """The type of the same value in the base dialects; other types unchanged."""
    return _struct(type.data) if isinstance(type, CuteType) else type


def _struct(value: Any) -> Attribute:
    match value:
        case Layout():
            return llvm.LLVMStructType.from_type_list([_struct(value.shape), _struct(value.stride)])
        case ComposedLayout():
            parts = (value.outer, value.offset, value.inner)
            return llvm.LLVMStructType.from_type_list([_struct(part) for part in parts])
        case _ if layouts := _layouts(value):
            return _one_or_struct([_struct(layout) for layout in layouts])
        case _:
            return _one_or_struct([SCALARS[x.width] for x in integers(value) if isinstance(x, Unknown)])


def _one_or_struct(types: Sequence[Attribute]) -> Attribute:
    return types[0] if len(types) == 1 else llvm.LLVMStructType.from_type_list(types)


def _layouts(value: Tree) -> list[Layout]:
    """The layouts of a tile; none for another value."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, Layout)] if isinstance(value, tuple) else []


def paths(value: Any) -> Iterator[Path]:
    """Where the dynamic integers of a value stand in its structure, in the order of `cute.get_scalars`."""
    match value:
        case Layout():
            yield from _within([value.shape, value.stride])
        case ComposedLayout():
            yield from _within([value.outer, value.offset, value.inner])
        case _ if layouts := _layouts(value):
            yield from paths(layouts[0]) if len(layouts) == 1 else _within(layouts)
        case _:
            count = sum(isinstance(x, Unknown) for x in integers(value))
            yield from [()] if count == 1 else [(i,) for i in range(count)]


def _within(parts: Sequence[object]) -> Iterator[Path]:
    for index, part in enumerate(parts):
        for path in paths(part):
            yield (index, *path)


def convert_types(op: Operation) -> None:
    """Gives the results, block arguments and function type of an operation of another dialect their lowered types."""
    for result in op.results:
        _retype(result)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                _retype(argument)
    for attributes in (op.properties, op.attributes):
        for name, attribute in attributes.items():
            if isinstance(attribute, FunctionType):
                attributes[name] = FunctionType.from_lists(
                    [lower_type(type) for type in attribute.inputs], [lower_type(type) for type in attribute.outputs]
                )


def _retype(value: SSAValue) -> None:
    if isinstance(value.type, CuteType):
        Rewriter.replace_value_with_new_type(value, lower_type(value.type))


def lower(op: CuteOp, operand_types: Sequence[Attribute], result_types: Sequence[Attribute]) -> None:
    """Replaces one operation, whose operands are lowered already and had the types given."""
    emitter = Emitter(op)
    match op:
        case StaticOp():
            emitter.replace([_poison(emitter, lower_type(result_types[0]))])
        case GatherOp():
            kind = result_types[0]
            assert isinstance(kind, CuteType)
            wanted = [x.width for x in integers(kind.data) if isinstance(x, Unknown)]
            given = zip(op.operands, operand_types, wanted, strict=True)
            elements = [_element(emitter, value, type, width) for value, type, width in given]
            emitter.replace([_build(emitter, lower_type(kind), list(zip(paths(kind.data), elements, strict=True)))])
        case MakeLayoutOp():
            parts = [((index,), operand) for index, operand in enumerate(op.operands)]
            emitter.replace([_build(emitter, lower_type(result_types[0]), parts)])
        case MakeComposedLayoutOp():
            parts = [((index,), operand) for index, operand in enumerate(reversed(op.operands))]
            emitter.replace([_build(emitter, lower_type(result_types[0]), parts)])
        case GetScalarsOp():
            emitter.replace(_scalars(emitter, op, operand_types[0], result_types))
        case PrintOp():
            kind = operand_types[0]
            assert isinstance(kind, CuteType)
            print_value(emitter, format_of(kind), _printed_integers(emitter, op.value, kind))
            emitter.replace()
        case _:
            raise LoweringError(Code.PASS_FAILED, f"'{op.name}' has no lowering", op, "run cute-expand-ops first")


def _poison(emitter: Emitter, type: Attribute) -> SSAValue:
    """A structure whose fields are still to be set; those of static values never are."""
    return emitter.value(ub.PoisonOp.create(result_types=[type], properties={"value": ub.PoisonAttr()}))


def _build(emitter: Emitter, type: Attribute, parts: Sequence[tuple[Path, SSAValue]]) -> SSAValue:
    if not isinstance(type, llvm.LLVMStructType):
        return parts[0][1]
    value = _poison(emitter, type)
    for path, part in parts:
        value = emitter.value(llvm.InsertValueOp(_position(path), value, part))
    return value


def _position(path: Path) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i64, path)


def _element(emitter: Emitter, value: SSAValue, type: Attribute, width: int) -> SSAValue:
    """An operand of a constructor as an integer: an int_tuple of depth 0 is one, or is static."""
    if isinstance(type, IntTupleType) and type.is_static:
        return emitter.constant(type.data, SCALARS[width])
    return value


def _scalars(emitter: Emitter, op: GetScalarsOp, kind: Attribute, result_types: Sequence[Attribute]) -> list[SSAValue]:
    assert isinstance(kind, CuteType)
    flags = {name: parameter(value) for name, value in op.properties.items() if isinstance(value, UnitAttr)}
    places = paths(kind.data)
    scalars: list[SSAValue] = []
    for integer, type in zip(GetScalarsOp.evaluate(kind.data, **flags), result_types, strict=True):
        scalar = SCALARS[64] if type == i64 else SCALARS[32]
        if not isinstance(integer, Unknown):
            scalars.append(emitter.constant(integer, scalar))
        else:
            scalars.append(_extract(emitter, op.value, next(places), scalar))
    return scalars


def _extract(emitter: Emitter, value: SSAValue, path: Path, type: Attribute) -> SSAValue:
    """The field at a path; the value itself for the empty path."""
    return emitter.value(llvm.ExtractValueOp(_position(path), value, type)) if path else value


def _printed_integers(emitter: Emitter, value: SSAValue, kind: CuteType) -> list[SSAValue]:
    """The dynamic integers of a value in the order of its text; a composed layout begins with the inner function's."""
    if not isinstance(kind, ComposedLayoutType):
        return _fields(emitter, value, kind.data)
    groups: list[list[SSAValue]] = []
    for index, part in enumerate((kind.data.outer, kind.data.offset, kind.data.inner)):
        if any(isinstance(x, Unknown) for x in integers(part)):
            groups.append(_fields(emitter, _extract(emitter, value, (index,), _struct(part)), part))
    return [field for fields in reversed(groups) for field in fields]


def _fields(emitter: Emitter, value: SSAValue, data: Any) -> list[SSAValue]:
    """The dynamic integers of a value that is not a composed layout."""
    dynamic = [x for x in integers(data) if isinstance(x, Unknown)]
    places = zip(paths(data), dynamic, strict=True)
    return [_extract(emitter, value, path, SCALARS[x.width]) for path, x in places]
