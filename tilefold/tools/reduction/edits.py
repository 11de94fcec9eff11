# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes that make a program smaller: operations, regions and parameters go, numbers become smaller.

No change asks whether the result is a program: that is tried.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tilefold.dialects.kernel import KernelOp
from tilefold.dialects.ptx import EntryOp
from tilefold.dialects.run import ArgOp, LaunchOp

T = TypeVar("T")

_NUMBER = re.compile(r"(?<![\w.%#@<$-])\d+(?![\w.])")
NUMBERED = re.compile(r'"[^"\n]*"|\b(?:grid|threads)\([^)]*\)|arith\.constant \d+')
"""The parts of a program's text where a number is a size, a stride or an index."""
GRIDS = re.compile(r"\bgrid\([^)]*\)")
"""The parts where it is a number of blocks."""


class IrreducibleError(Exception):
    """An operation cannot be removed, since another operation that stays needs it."""


def removable(module: ModuleOp) -> list[Operation]:
    """The operations that may go, in their order: all but terminators, and arguments of launches."""
    return [op for op in module.walk() if op is not module and not isinstance(op, ArgOp) and not _ends(op)]


def remove(ops: Sequence[Operation]) -> None:
    """Takes operations out of a module, the last ones first, so that nothing uses their results any more."""
    for op in reversed(ops):
        if op.parent is not None and op.parent_op() is not None:
            _erase(op)


def _erase(op: Operation) -> None:
    """Takes an operation out. Users of a result take a value of its type instead, or go too."""
    for result in op.results:
        if result.first_use is None:
            continue
        value = _instead(op, result)
        if value is not None:
            result.replace_all_uses_with(value)
            continue
        for user in {use.operation for use in result.uses}:
            if _ends(user):
                raise IrreducibleError
            if user.parent is not None:
                _erase(user)
    op.detach()
    op.erase(safe_erase=False)


def _instead(op: Operation, result: SSAValue) -> SSAValue | None:
    """A value of the same type that is defined before an operation: an operand, a zero, or one of its block."""
    for operand in op.operands:
        if operand.type == result.type:
            return operand
    zero = None if isinstance(op, arith.ConstantOp) else _zero(result.type)
    if zero is not None:
        Rewriter.insert_op(zero, InsertPoint.before(op))
        return zero.results[0]
    earlier = op.prev_op
    while earlier is not None:
        for value in earlier.results:
            if value.type == result.type:
                return value
        earlier = earlier.prev_op
    return None


def _zero(type: Attribute) -> Operation | None:
    if isinstance(type, IndexType | IntegerType):
        return arith.ConstantOp(IntegerAttr(0, cast("IndexType | IntegerType", type)))
    if isinstance(type, AnyFloat):
        return arith.ConstantOp(FloatAttr(0.0, type))
    return None


def _ends(op: Operation) -> bool:
    return op.has_trait(IsTerminator)


def bodies(module: ModuleOp) -> list[tuple[Operation, int]]:
    """The loops and branches, each with the number of a region whose operations may stand in its place."""
    return [
        (op, index)
        for op in module.walk()
        if isinstance(op, scf.ForOp | scf.IfOp)
        for index, region in enumerate(op.regions)
        if region.blocks
    ]


def unwrap(op: Operation, index: int) -> None:
    """Replaces a loop or a branch by the operations of its region, which then run once."""
    block = op.regions[index].block
    last = block.last_op
    assert last is not None
    results = list(last.operands)
    values = [op.lb, *op.iter_args] if isinstance(op, scf.ForOp) else []
    last.detach()
    last.erase()
    Rewriter.inline_block(block, InsertPoint.before(op), values)
    for result, value in zip(op.results, results, strict=True):
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def unused_parameters(module: ModuleOp) -> list[tuple[KernelOp, int]]:
    """The parameters of kernels that nothing uses, the last ones first."""
    return [
        (op, index)
        for op in module.walk()
        if isinstance(op, KernelOp) and not op.properties.keys() & {"arg_layouts", "arg_maps"}
        for index in reversed(range(len(op.arg_names)))
        if op.body.block.args[index].first_use is None
    ]


def drop_parameter(module: ModuleOp, kernel: KernelOp, index: int) -> None:
    """Takes a parameter from a kernel, and its argument from the launches of the kernel."""
    name, block = kernel.arg_names.data[index].data, kernel.body.block
    block.erase_arg(block.args[index])
    kernel.arg_names = ArrayAttr(_without(kernel.arg_names.data, index))
    kernel.function_type = FunctionType.from_lists(block.arg_types, ())
    if isinstance(kernel, EntryOp):
        aligns = _without(kernel.arg_aligns.get_values(), index)
        kernel.arg_aligns = DenseArrayBase.from_list(kernel.arg_aligns.elt_type, aligns)  # pyright: ignore[reportArgumentType]
    for launch in [op for op in module.walk() if isinstance(op, LaunchOp)]:
        if launch.kernel_text.rpartition("@")[2] == kernel.sym_name.data:
            for arg in [arg for arg in launch.arguments if arg.arg_name.data == name]:
                arg.detach()
                arg.erase()


def _without(items: Sequence[T], index: int) -> list[T]:
    return [item for at, item in enumerate(items) if at != index]


def smaller_numbers(text: str, parts: re.Pattern[str] = NUMBERED) -> Iterator[str]:
    """The text with all numbers of one value, and then with a single number, made smaller, in some parts of it: extents
    and strides of layouts, grids, blocks, constants.
    """
    places = [
        (part.start() + match.start(), part.start() + match.end())
        for part in parts.finditer(text)
        for match in _NUMBER.finditer(part[0])
    ]
    values = sorted({int(text[start:end]) for start, end in places}, reverse=True)
    for value in values:
        same = [place for place in places if int(text[slice(*place)]) == value]
        for smaller in sorted({1, 2, value // 2} - {0}):
            if smaller < value:
                yield _replace(text, same, smaller)
    for start, end in places:
        if int(text[start:end]) > 1:
            yield _replace(text, [(start, end)], 1)


def _replace(text: str, places: Sequence[tuple[int, int]], value: int) -> str:
    for start, end in reversed(places):
        text = f"{text[:start]}{value}{text[end:]}"
    return text
