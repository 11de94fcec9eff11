# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of the `llvm` and `nvvm` dialects as LLVM IR text (LLVM Language Reference, Instruction Reference)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import llvm
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...base.errors import Code
from ...dialects.llvm import PoisonOp
from ...passes.errors import LoweringError
from ..emit.types import constant, overload
from ..emit.types import llvm_type as scalar_type

CONSTANTS = (llvm.ConstantOp, llvm.UndefOp, PoisonOp, llvm.ZeroOp, llvm.AddressOfOp)
"""The operations that are no instructions: their results are written where they are used."""

_CASTS = (
    llvm.TruncOp, llvm.ZExtOp, llvm.SExtOp, llvm.PtrToIntOp, llvm.IntToPtrOp,
    llvm.BitcastOp, llvm.SIToFPOp, llvm.FPExtOp, llvm.FPTruncOp,
)  # fmt: skip
_BINARY = (
    llvm.ArithmeticBinOperation, llvm.ArithmeticBinOpOverflow, llvm.ArithmeticBinOpExact,
    llvm.ArithmeticBinOpDisjoint, llvm.AbstractFloatArithOp,
)  # fmt: skip

_NOT_IN_PTX = frozenset(f"llvm.intr.{name}" for name in ("exp", "exp2", "log", "log2", "sin", "cos", "pow"))
"""Functions that are exact enough only in a library, which NVPTX does not have."""


def type_text(type: Attribute, op: Operation) -> str:
    """An LLVM type. LoweringError, placed at `op`, for one that kernels do not have."""
    match type:
        case llvm.LLVMVoidType():
            return "void"
        case llvm.LLVMPointerType():
            space = getattr(type.addr_space, "value", None)
            return "ptr" if space is None or space.data == 0 else f"ptr addrspace({space.data})"
        case llvm.LLVMArrayType():
            return f"[{type.size.data} x {type_text(type.type, op)}]"
        case llvm.LLVMStructType():
            return f"{{ {', '.join(type_text(part, op) for part in type.types)} }}"
        case _:
            return scalar_type(type, op)


def symbol(name: str, op: Operation) -> str:
    """A global name. LoweringError for one that PTX has no spelling for (PTX ISA, Identifiers)."""
    if not name.isascii() or not name.replace("$", "_").isidentifier():
        raise LoweringError(Code.EMIT_NAME, f"'{name}' cannot be a name in PTX", op, "use letters, digits, _ and $")
    return f"@{name}"


def constant_text(op: Operation) -> str:
    """What one of `CONSTANTS` is written as, without its type."""
    match op:
        case llvm.ConstantOp():
            return constant(op.value, op)
        case llvm.AddressOfOp():
            return symbol(op.global_name.string_value(), op)
        case llvm.ZeroOp():
            return "zeroinitializer"
        case _:
            return "poison" if isinstance(op, PoisonOp) else "undef"


class Names:
    """The names of a function's values and blocks, and what its calls of intrinsics declare."""

    def __init__(self, blocks: Sequence[Block], declarations: dict[str, str]) -> None:
        self.declarations = declarations
        self.labels = {block: f"bb{index}" for index, block in enumerate(blocks)}
        self._names: dict[SSAValue, str] = {}
        for block in blocks:
            results = [result for op in block.ops for result in op.results]
            for value in (*block.args, *results):
                self._names[value] = f"%v{len(self._names)}"
            for op in block.ops:
                if isinstance(op, CONSTANTS):
                    self._names[op.results[0]] = constant_text(op)
        entered = {blocks[0], *(after for block in blocks if block.last_op for after in block.last_op.successors)}
        for block in blocks:
            if block not in entered:
                self._names |= dict.fromkeys(block.args, "poison")

    def ref(self, value: SSAValue) -> str:
        """A value without its type."""
        return self._names[value]

    def typed(self, value: SSAValue, op: Operation) -> str:
        """A value with its type."""
        return f"{type_text(value.type, op)} {self._names[value]}"

    def list(self, values: Sequence[SSAValue], op: Operation) -> str:
        """Values with their types, separated by commas."""
        return ", ".join(self.typed(value, op) for value in values)


def _flags(op: Operation) -> str:
    """The flags of an operation, each before a space, as LLVM writes them."""
    found: list[str] = []
    overflow, fast = op.properties.get("overflowFlags"), op.properties.get("fastmathFlags")
    if overflow is not None:
        bits = cast(Any, overflow).value.data
        found += sorted(flag.value for flag in llvm.OverflowAttr.from_int(bits).data)
    if isinstance(fast, llvm.FastMathAttr):
        found += sorted(flag.value for flag in fast.data)
    found += [flag for flag, key in (("exact", "isExact"), ("disjoint", "isDisjoint")) if key in op.properties]
    return "".join(f"{flag} " for flag in found)


def _mnemonic(op: Operation) -> str:
    return op.name.removeprefix("llvm.")


def _binary(names: Names, op: Operation) -> str:
    lhs, rhs = op.operands
    return f"{_mnemonic(op)} {_flags(op)}{names.typed(lhs, op)}, {names.ref(rhs)}"


def _cast(names: Names, op: Operation) -> str:
    return f"{_mnemonic(op)} {names.typed(op.operands[0], op)} to {type_text(op.results[0].type, op)}"


def _icmp(names: Names, op: llvm.ICmpOp) -> str:
    predicate = llvm.ICmpPredicateFlag.from_int(op.predicate.value.data)
    return f"icmp {predicate} {names.typed(op.lhs, op)}, {names.ref(op.rhs)}"


def _fcmp(names: Names, op: llvm.FCmpOp) -> str:
    predicate = llvm.FCmpPredicateFlag.from_int(op.predicate.value.data).removeprefix("_")
    return f"fcmp {_flags(op)}{predicate} {names.typed(op.lhs, op)}, {names.ref(op.rhs)}"


def _select(names: Names, op: llvm.SelectOp) -> str:
    return f"select {_flags(op)}{names.list((op.cond, op.lhs, op.rhs), op)}"


def _aligned(op: llvm.AllocaOp | llvm.LoadOp | llvm.StoreOp) -> str:
    return f", align {op.alignment.value.data}" if op.alignment is not None else ""


def _alloca(names: Names, op: llvm.AllocaOp) -> str:
    return f"alloca {type_text(op.elem_type, op)}, {names.typed(op.size, op)}{_aligned(op)}"


def _not_atomic(op: llvm.LoadOp | llvm.StoreOp) -> None:
    if op.ordering is not None and op.ordering.value.data:
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"an atomic '{op.name}' has no translation to PTX", op)


def _load(names: Names, op: llvm.LoadOp) -> str:
    _not_atomic(op)
    return f"load {type_text(op.results[0].type, op)}, {names.typed(op.ptr, op)}{_aligned(op)}"


def _store(names: Names, op: llvm.StoreOp) -> str:
    _not_atomic(op)
    volatile = "volatile " if op.volatile_ is not None else ""
    return f"store {volatile}{names.typed(op.value, op)}, {names.typed(op.ptr, op)}{_aligned(op)}"


def _gep(names: Names, op: llvm.GEPOp) -> str:
    dynamic = iter(op.ssa_indices)
    indices = [
        names.typed(next(dynamic), op) if index == llvm.GEP_USE_SSA_VAL else f"i32 {index}"
        for index in op.rawConstantIndices.iter_values()
    ]
    inbounds = "inbounds " if op.inbounds is not None else ""
    return f"getelementptr {inbounds}{type_text(op.elem_type, op)}, {', '.join((names.typed(op.ptr, op), *indices))}"


def _position(op: llvm.InsertValueOp | llvm.ExtractValueOp) -> str:
    return ", ".join(str(int(index)) for index in op.position.get_values())


def _extract(names: Names, op: llvm.ExtractValueOp) -> str:
    return f"extractvalue {names.typed(op.container, op)}, {_position(op)}"


def _insert(names: Names, op: llvm.InsertValueOp) -> str:
    return f"insertvalue {names.list((op.container, op.value), op)}, {_position(op)}"


def _call(names: Names, op: llvm.CallOp) -> str:
    if op.callee is None or op.var_callee_type is not None or op.op_bundle_operands:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED, "only direct calls of functions that are not variadic have a form in PTX", op
        )
    result = type_text(op.returned.type, op) if op.returned is not None else "void"
    return f"call {result} {symbol(op.callee.string_value(), op)}({names.list(op.args, op)})"


def _intrinsic(names: Names, op: Operation) -> str:
    """An operation that is a call of an intrinsic: those of `nvvm`, `llvm.call_intrinsic` and `llvm.intr.*`."""
    result = type_text(op.results[0].type, op) if op.results else "void"
    if isinstance(op, llvm.CallIntrinsicOp):
        name = op.intrin.data
    elif op.name.startswith("llvm.intr."):
        name = f"{op.name.replace('llvm.intr.', 'llvm.')}.{overload(result)}"
    else:
        name = f"llvm.{op.name}"
    types = ", ".join(type_text(value.type, op) for value in op.operands)
    names.declarations[name] = f"declare {result} @{name}({types})"
    return f"call {_flags(op)}{result} @{name}({names.list(op.operands, op)})"


def _return(names: Names, op: llvm.ReturnOp) -> str:
    return f"ret {names.typed(op.arg, op)}" if op.arg is not None else "ret void"


def _br(names: Names, op: llvm.BrOp) -> str:
    return f"br label %{names.labels[op.successor]}"


def _cond_br(names: Names, op: llvm.CondBrOp) -> str:
    then, other = names.labels[op.then_block], names.labels[op.else_block]
    return f"br {names.typed(op.cond, op)}, label %{then}, label %{other}"


def _unreachable(names: Names, op: llvm.UnreachableOp) -> str:
    return "unreachable"


_RULES: Mapping[type[Operation], Callable[[Names, Any], str]] = {
    llvm.ICmpOp: _icmp, llvm.FCmpOp: _fcmp, llvm.SelectOp: _select, llvm.AllocaOp: _alloca, llvm.LoadOp: _load,
    llvm.StoreOp: _store, llvm.GEPOp: _gep, llvm.ExtractValueOp: _extract, llvm.InsertValueOp: _insert,
    llvm.CallOp: _call, llvm.CallIntrinsicOp: _intrinsic, llvm.ReturnOp: _return, llvm.BrOp: _br,
    llvm.CondBrOp: _cond_br, llvm.UnreachableOp: _unreachable,
}  # fmt: skip


def instruction(names: Names, op: Operation) -> str:
    """One operation as an instruction, without its result. LoweringError for one that has no translation."""
    if (rule := _RULES.get(type(op))) is not None:
        return rule(names, op)
    if isinstance(op, _BINARY):
        return _binary(names, op)
    if isinstance(op, _CASTS):
        return _cast(names, op)
    if isinstance(op, llvm.FNegOp):
        return f"fneg {_flags(op)}{names.typed(op.arg, op)}"
    if op.name in _NOT_IN_PTX:
        hint = "call a function that computes it"
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' has no instruction in PTX", op, hint)
    if op.dialect_name() == "nvvm" or op.name.startswith("llvm.intr."):
        return _intrinsic(names, op)
    hint = "" if op.dialect_name() == "llvm" else "run one-shot-convert-to-llvm before"
    raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' has no translation to PTX", op, hint)


def incoming(names: Names, block: Block) -> Iterator[tuple[str, list[str]]]:
    """From where a block is entered: the label, and the block's arguments from there."""
    for origin, label in names.labels.items():
        match origin.last_op:
            case llvm.BrOp() as op if op.successor is block:
                yield label, [names.ref(value) for value in op.arguments]
            case llvm.CondBrOp() as op:
                arms = ((op.then_block, op.then_arguments), (op.else_block, op.else_arguments))
                for arguments in [values for successor, values in arms if successor is block]:
                    yield label, [names.ref(value) for value in arguments]
            case _:
                pass
