# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`inline-calls`: kernels that call no functions."""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable

from ...base.errors import Code
from ...dialects.gpu import ModuleOp as GpuModuleOp
from ...dialects.ptx import EntryOp
from ..errors import LoweringError

MAX_INLINED = 100_000
"""The most operations by which calls may make a kernel longer."""


@dataclass(frozen=True)
class InlineCallsPass(ModulePass):
    """Inlines calls in kernels; functions of a device program are then erased.

    A function must be one block, and must not call itself directly or indirectly.

    Before:

        func.func private @twice(%x: i32) -> i32 {
          %r = arith.addi %x, %x : i32
          func.return %r : i32
        }
        ptx.entry @k(%n: i32) threads(32) { %m = func.call @twice(%n) : (i32) -> i32 ... }

    After:

        ptx.entry @k(%n: i32) threads(32) { %m = arith.addi %n, %n : i32 ... }
    """

    name = "inline-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for entry in [entry for entry in op.walk() if isinstance(entry, EntryOp)]:
            room = MAX_INLINED
            calls = _calls([entry], ())
            while calls:
                call, within = calls.pop()
                callee = _callee(call)
                if callee in within:
                    name = callee.sym_name.data
                    raise LoweringError(Code.PASS_FAILED, f"@{name} calls itself", call, "use scf.for and scf.while")
                moved = _inline(call, callee)
                calls += _calls(moved, (*within, callee))
                room -= 1 + sum(1 for inlined in moved for _ in inlined.walk())
                if room < 0:
                    hint = "call fewer functions, or put the calls in a loop"
                    raise LoweringError(Code.PASS_FAILED, f"calls make @{entry.sym_name.data} too large", entry, hint)
        for device in [device for device in op.walk() if isinstance(device, GpuModuleOp)]:
            for function in list(device.body.block.ops):
                if isinstance(function, func.FuncOp):
                    Rewriter.erase_op(function, safe_erase=False)


def _calls(
    ops: Iterable[Operation], within: tuple[func.FuncOp, ...]
) -> list[tuple[func.CallOp, tuple[func.FuncOp, ...]]]:
    """The calls in operations, with the functions in whose bodies they stood."""
    return [(call, within) for op in ops for call in op.walk() if isinstance(call, func.CallOp)]


def _callee(call: func.CallOp) -> func.FuncOp:
    """The called function, of one block; LoweringError for any other."""
    callee = SymbolTable.lookup_symbol(call, call.callee.string_value())
    if not isinstance(callee, func.FuncOp) or len(callee.body.blocks) != 1:
        name = call.callee.string_value()
        problem = "has several blocks" if isinstance(callee, func.FuncOp) and callee.body.blocks else "has no body"
        raise LoweringError(Code.PASS_FAILED, f"@{name} {problem}", call, "use scf.if, scf.for and scf.while")
    return callee


def _inline(call: func.CallOp, callee: func.FuncOp) -> list[Operation]:
    """Puts the body of the called function before the call, which is erased; the body's operations."""
    body = callee.body.clone()
    block = body.block
    for argument, value in zip(block.args, call.arguments, strict=True):
        argument.replace_all_uses_with(value)
    end = block.last_op
    assert isinstance(end, func.ReturnOp)
    for result, value in zip(call.results, end.arguments, strict=True):
        result.replace_all_uses_with(value)
    moved: list[Operation] = [op for op in block.ops if op is not end]
    for op in moved:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(call))
    Rewriter.erase_op(call)
    return moved
