# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gpu-to-ptx`: the kernels of the `gpu` dialect as those of PTX."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code
from ...dialects.arith.semantics import constant_of
from ...dialects.cute.brackets import parameter
from ...dialects.cute.constructors import SCALARS
from ...dialects.cute.types import CuteType
from ...dialects.cute.values import integers, map_integers
from ...dialects.gpu import ModuleOp as GpuModuleOp
from ...dialects.gpu.launch import BarrierOp, FuncOp, LaunchFuncOp, PrintfOp, ReturnOp
from ...dialects.kernel import LaunchBounds
from ...dialects.ptx import BarSyncOp, EntryOp, RetOp
from ...dialects.ptx import PrintfOp as PtxPrintfOp
from ...dialects.run import LaunchOp
from ...layout.algebra.integers import Unknown
from ..errors import LoweringError
from ..writing.emitter import Emitter
from .cute_expand_ops import gather
from .writing.signed_int import SignedInt

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True)
class GpuToPtxPass(ModulePass):
    """Turns each kernel into a `ptx.entry`, and drops everything that is not for the device.

    A kernel has one block size: `block`, or that of its attribute `known_block_size`, or that of its launches if it is
    constant. An argument of the `cute` dialect becomes its dynamic integers; an argument of type `index` becomes an
    i64.

    Before:

        gpu.func @k(%n: i32, %l: !cute.layout<"(?,8):(1,?)">) kernel { ... gpu.return }

    After:

        ptx.entry @k(%n: i32, %l_0: i32, %l_1: i32) threads(128) { ... ptx.ret }
    """

    name = "gpu-to-ptx"
    block: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        blocks = {kernel: self._block(kernel, op) for kernel in op.walk() if _is_kernel(kernel)}
        for top in reversed(list(op.body.block.ops)):
            if not isinstance(top, GpuModuleOp | LaunchOp):
                Rewriter.erase_op(top, safe_erase=False)
        for inner in list(op.walk()):
            match inner:
                case FuncOp() if inner in blocks:
                    _entry(inner, blocks[inner])
                case FuncOp():  # no operation calls it
                    Rewriter.erase_op(inner, safe_erase=False)
                case PrintfOp():
                    _replace(inner, PtxPrintfOp(inner.format.data, inner.args))
                case BarrierOp():
                    _replace(inner, BarSyncOp(0))
                case _:
                    pass

    def _block(self, kernel: Operation, module: ModuleOp) -> Sequence[int]:
        assert isinstance(kernel, FuncOp)
        known = kernel.attributes.get("known_block_size", kernel.known_block_size)
        if self.block:
            sizes = {self.block}
        elif known is not None:
            sizes = {parameter(known)}
        else:
            sizes = set(_launched_block_sizes(kernel, module))
        if len(sizes) != 1:
            problem = "its block size is unknown" if not sizes else f"its launches differ: {sizes}"
            hint = "give gpu-to-ptx{block=128,1,1}, or the kernel attributes {known_block_size = array<i32: 128, 1, 1>}"
            raise LoweringError(Code.PASS_FAILED, f"kernel @{kernel.name_of()}: {problem}", kernel, hint)
        x, y, z = (*map(int, sizes.pop()), 1, 1, 1)[:3]
        return x, y, z


def _is_kernel(op: Operation) -> bool:
    return isinstance(op, FuncOp) and op.kernel is not None


def _launched_block_sizes(kernel: FuncOp, module: ModuleOp) -> Iterator[tuple[int, ...]]:
    """The constant block sizes with which a kernel is launched."""
    for op in module.walk():
        if isinstance(op, LaunchFuncOp) and op.kernel.string_value().rpartition(".")[2] == kernel.name_of():
            sizes = [constant_of(size) for size in op.block]
            if None not in sizes:
                yield tuple([size for size in sizes if size is not None])


def _entry(kernel: FuncOp, threads: Sequence[int]) -> None:
    if len(kernel.body.blocks) != 1:
        raise LoweringError(
            Code.PASS_FAILED, "the kernel's body has several blocks", kernel, "use scf.if, scf.for and scf.while"
        )
    block = kernel.body.block
    first = block.first_op
    assert first is not None
    emitter = Emitter(first)
    names: list[str] = []
    for number, argument in enumerate(list(block.args)):
        name = _NOT_IN_NAMES.sub("_", argument.name_hint or f"arg{number}")
        parts = _parameters(argument.type)
        made = [block.insert_arg(type, len(block.args)) for type in parts]
        names += [name if parts == [argument.type] else f"{name}_{index}" for index in range(len(parts))]
        argument.replace_all_uses_with(_rebuilt(emitter, argument.type, made))
        block.erase_arg(argument)
    names = [
        name if names.count(name) == 1 and not name[0].isdigit() else f"p{i}_{name}" for i, name in enumerate(names)
    ]
    end = block.last_op
    assert isinstance(end, ReturnOp)
    _replace(end, RetOp())
    body = kernel.detach_region(kernel.body)
    _replace(kernel, EntryOp(kernel.name_of(), names, [0] * len(names), LaunchBounds(threads), body))


def _parameters(type: Attribute) -> list[Attribute]:
    """The types of the parameters that an argument becomes."""
    if isinstance(type, CuteType):
        return [SCALARS[x.width] for x in integers(type.data) if isinstance(x, Unknown)]
    return [i64] if isinstance(type, IndexType) else [type]


def _rebuilt(emitter: Emitter, type: Attribute, parts: Sequence[SSAValue]) -> SSAValue:
    """The argument, made from its parameters again."""
    if isinstance(type, CuteType):
        rest = iter(parts)
        value = map_integers(lambda x: SignedInt(emitter, next(rest)) if isinstance(x, Unknown) else x, type.data)
        return gather(emitter, type, value)
    if isinstance(type, IndexType):
        return emitter.value(arith.IndexCastOp(parts[0], type))
    return parts[0]


def _replace(old: Operation, new: Operation) -> None:
    new.location = old.location
    try:
        new.verify(verify_nested_ops=False)
    except VerifyException as error:
        raise LoweringError(Code.PASS_FAILED, str(error), old) from error
    Rewriter.insert_op(new, InsertPoint.before(old))
    Rewriter.erase_op(old)
