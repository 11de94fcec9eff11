# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the `llvm` and `nvvm` dialects, whose operations are instructions (LLVM Language Reference, Instruction
Reference). The text of most is that of the same operation of `arith`.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from xdsl.dialects import llvm
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.ir import Attribute, Operation

from ...base.errors import Code
from ...dialects.llvm import PoisonOp
from ...dialects.nvvm import NVVM
from ...passes.errors import LoweringError
from ..emit.arith import compare, flags, instruction, select
from ..emit.control import nothing
from ..emit.convert import cast, extend, from_integer, round_to_even
from ..emit.structs import STRUCTS
from ..emit.types import constant, llvm_type
from ..emit.writer import FunctionWriter, Rule, rule

_CASTS = (llvm.TruncOp, llvm.ZExtOp, llvm.SExtOp, llvm.PtrToIntOp, llvm.IntToPtrOp, llvm.BitcastOp)
_SAME = (
    llvm.ArithmeticBinOperation, llvm.ArithmeticBinOpOverflow, llvm.ArithmeticBinOpExact,
    llvm.ArithmeticBinOpDisjoint, llvm.AbstractFloatArithOp, llvm.FNegOp,
)  # fmt: skip
"""Instructions on operands of the result's type."""
_NOT_IN_PTX = (llvm.FExpOp, llvm.FExp2Op, llvm.FLogOp, llvm.FLog2Op, llvm.FSinOp, llvm.FCosOp, llvm.FPowOp)
"""Functions that are exact enough only in a library, which NVPTX does not have."""
_NOT_IN_NAMES = re.compile(r"\W")
_NAME_OF_INTRINSIC = re.compile(r"llvm\.[\w.]+", re.ASCII)


def symbol(name: str, op: Operation) -> str:
    """A global name. LoweringError for one that PTX has no spelling for (PTX ISA, Identifiers)."""
    if not name.isascii() or not name.replace("$", "_").isidentifier():
        raise LoweringError(Code.EMIT_NAME, f"'{name}' cannot be a name in PTX", op, "use letters, digits, _ and $")
    return f"@{name}"


def memory_type(type: Attribute, op: Operation) -> str:
    """The LLVM type of something in memory, where arrays may have any length."""
    if isinstance(type, llvm.LLVMArrayType):
        return f"[{type.size.data} x {memory_type(type.type, op)}]"
    return llvm_type(type, op)


def write_constant(op: Operation) -> str | None:
    """The text of a constant, which is written where it is used; None for an operation that is an instruction."""
    match op:
        case llvm.ConstantOp():
            return constant(op.value, op)
        case llvm.AddressOfOp():
            return symbol(op.global_name.string_value(), op)
        case llvm.ZeroOp():
            return "zeroinitializer"
        case llvm.UndefOp():
            return "undef"
        case PoisonOp():
            return "poison"
        case _:
            return None


def _not_in_ptx(w: FunctionWriter, op: Operation) -> None:
    hint = "call a function that computes it"
    raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' has no instruction in PTX", op, hint)


def _alignment_suffix(op: llvm.AllocaOp | llvm.LoadOp | llvm.StoreOp) -> str:
    return f", align {op.alignment.value.data}" if op.alignment is not None else ""


def _alloca(w: FunctionWriter, op: llvm.AllocaOp) -> None:
    w.define(op.res, f"alloca {memory_type(op.elem_type, op)}, {w.typed(op.size)}{_alignment_suffix(op)}")


def _not_atomic(op: llvm.LoadOp | llvm.StoreOp) -> None:
    if op.ordering is not None and op.ordering.value.data:
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"an atomic '{op.name}' has no translation to PTX", op)


def _load(w: FunctionWriter, op: llvm.LoadOp) -> None:
    _not_atomic(op)
    (result,) = op.results
    w.define(result, f"load {w.type(result)}, {w.typed(op.ptr)}{_alignment_suffix(op)}")


def _store(w: FunctionWriter, op: llvm.StoreOp) -> None:
    _not_atomic(op)
    volatile = "volatile " if op.volatile_ is not None else ""
    w.emit(f"store {volatile}{w.typed(op.value)}, {w.typed(op.ptr)}{_alignment_suffix(op)}")


def _gep(w: FunctionWriter, op: llvm.GEPOp) -> None:
    dynamic = iter(op.ssa_indices)
    indices = [
        w.typed(next(dynamic)) if index == llvm.GEP_USE_SSA_VAL else f"i32 {index}"
        for index in op.rawConstantIndices.iter_values()
    ]
    inbounds = "inbounds " if op.inbounds is not None else ""
    place = ", ".join((w.typed(op.ptr), *indices))
    w.define(op.result, f"getelementptr {inbounds}{memory_type(op.elem_type, op)}, {place}")


def _call(w: FunctionWriter, op: llvm.CallOp) -> None:
    if op.callee is None or op.var_callee_type is not None or op.op_bundle_operands:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED, "only direct calls of functions that are not variadic have a form in PTX", op
        )
    w.call(op, symbol(op.callee.string_value(), op))


def _call_declared(w: FunctionWriter, op: Operation, name: str) -> None:
    """A call of an intrinsic with a declaration: LLVM renames those of older versions by it."""
    result = w.type(op.results[0]) if op.results else "void"
    w.module.declarations[name] = f"declare {result} @{name}({', '.join(w.type(value) for value in op.operands)})"
    w.call(op, f"@{name}", flags(op))


def _call_intrinsic(w: FunctionWriter, op: llvm.CallIntrinsicOp) -> None:
    name = op.intrin.data
    if _NAME_OF_INTRINSIC.fullmatch(name) is None or op.op_bundle_operands:
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"this call of '{name[:80]}' has no translation to PTX", op)
    _call_declared(w, op, name)


def _call_overloaded(w: FunctionWriter, op: Operation) -> None:
    """A call of an intrinsic with any suffix of the types: LLVM puts the right one in its place."""
    types = "_".join(w.type(value) for value in (*op.results, *op.operands))
    _call_declared(w, op, f"llvm.{op.name.removeprefix('llvm.intr.')}.{_NOT_IN_NAMES.sub('_', types)}")


def _nvvm(w: FunctionWriter, op: Operation) -> None:
    _call_declared(w, op, f"llvm.{op.name}")


def _return(w: FunctionWriter, op: llvm.ReturnOp) -> None:
    w.emit(f"ret {w.typed(op.arg)}" if op.arg is not None else "ret void")


def _br(w: FunctionWriter, op: llvm.BrOp) -> None:
    w.emit(f"br label %{w.labels[op.successor]}")


def _cond_br(w: FunctionWriter, op: llvm.CondBrOp) -> None:
    then, other = w.labels[op.then_block], w.labels[op.else_block]
    w.emit(f"br {w.typed(op.cond)}, label %{then}, label %{other}")


def _unreachable(w: FunctionWriter, op: llvm.UnreachableOp) -> None:
    w.emit("unreachable")


def _rules() -> Iterator[tuple[type[Operation], Rule]]:
    for kind in llvm.LLVM.operations:
        name = kind.name.removeprefix("llvm.")
        if issubclass(kind, _SAME):
            yield kind, instruction(name)
        elif kind in _CASTS:
            yield kind, cast(name)
        elif name.startswith("intr."):
            yield kind, _not_in_ptx if kind in _NOT_IN_PTX else _call_overloaded
    for kind in (llvm.ConstantOp, llvm.AddressOfOp, llvm.ZeroOp, llvm.UndefOp, PoisonOp):
        yield kind, nothing
    for kind in NVVM.operations:
        yield kind, _nvvm


LLVM_RULES: Mapping[type[Operation], Rule] = MappingProxyType(dict((
    *_rules(), *STRUCTS,
    (llvm.ICmpOp, compare("icmp", CMPI_COMPARISON_OPERATIONS)), (llvm.SelectOp, select),
    (llvm.FCmpOp, compare("fcmp", CMPF_COMPARISON_OPERATIONS)),
    (llvm.SIToFPOp, from_integer(signed=True)), (llvm.FPExtOp, extend), (llvm.FPTruncOp, round_to_even),
    rule(llvm.AllocaOp, _alloca), rule(llvm.LoadOp, _load), rule(llvm.StoreOp, _store), rule(llvm.GEPOp, _gep),
    rule(llvm.CallOp, _call), rule(llvm.CallIntrinsicOp, _call_intrinsic), rule(llvm.ReturnOp, _return),
    rule(llvm.BrOp, _br), rule(llvm.CondBrOp, _cond_br), rule(llvm.UnreachableOp, _unreachable),
)))  # fmt: skip
"""The rule of every operation that a function of a device program may contain."""
