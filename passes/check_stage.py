# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`check-stage`: the contract of each stage, as data, and the pass that holds a program to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ..base.errors import Code, TilefoldError
from ..dialects.gpu import COORDINATES
from ..dialects.ptx.base import float_bits, split_vector
from .analysis.loop_hints import MAX_COPIES, UNROLL, body_copies, find_malformed_hint
from .errors import LoweringError

COMMON = ("builtin", "gpu", "run", "arith", "scf", "math", "vector", "ptx")
"""The dialects that are legal at every stage."""

_TENSOR_OPS = (
    "kernel", "return", "alloc", "alias", "choose", "peer", "tensor_at", "load", "store", "ptr", "print",
    "print_tensor", "view",
    "crd2idx", "get_scalars", "mma_call", "atom_call", "tensor_map", "tma_call", "prefetch",
    "copy_tensor_map", "tensor_map_ptr", "update_tensor_map", "instruction", "tmem_alloc", "tmem_dealloc",
)  # fmt: skip
_EXPANDED = ("gemm", "copy", "prefetch_tensor", "fill", "map", "yield", "coord_tensor")
LEGAL_TILE_OPS: Mapping[str, frozenset[str] | None] = MappingProxyType({
    "cute": None,
    "folded": frozenset(f"tile.{op}" for op in (*_TENSOR_OPS, *_EXPANDED)),
    "atoms": frozenset(f"tile.{op}" for op in _TENSOR_OPS),
    "index": frozenset({"tile.atom_call"}),
    "instr": frozenset[str](),
})  # fmt: skip
"""The operations of the `tile` dialect that are legal at each stage, beside the common dialects; None means all.

`folded` also allows those that passes write on the way to `atoms`: a program between two passes is one
of the stage before.
"""

_OTHERS = frozenset({"cf.assert", "llvm.insertvalue", "llvm.extractvalue", "ub.poison"})
_NOT_AT_INSTR = frozenset({"ptx.smem.alloc", "arith.index_cast", "arith.index_castui"})
_ONLY_BEFORE_INSTR = frozenset(op.name for op in COORDINATES)


@dataclass(frozen=True)
class CheckStagePass(ModulePass):
    """Refuses operations that a stage does not allow. Changes nothing.

    Every stage allows builtin, gpu, run, arith, scf, math, vector and ptx, assertions of cf, structures of llvm, and
    part of tile. Stage
    `instr` allows no type `index`, no `gpu` coordinates (they are special registers) and no shared memory without an
    address. A loop's hint, `{unroll}` or `{unroll = 4 : i64}`, must be well formed. At `instr` it must not produce more
    code than LLVM can handle.
    """

    name = "check-stage"
    stage: str = "instr"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.stage not in LEGAL_TILE_OPS:
            raise TilefoldError(
                Code.PASS_PIPELINE, f"unknown stage '{self.stage[:40]}'", f"stages: {', '.join(LEGAL_TILE_OPS)}"
            )
        if (refusal := _refusal(op, self.stage)) is not None:
            raise LoweringError(*refusal)


def fulfils(module: ModuleOp, stage: str) -> bool:
    """Whether a module fulfils the contract of a stage."""
    return _refusal(module, stage) is None


def _refusal(module: ModuleOp, stage: str) -> tuple[Code, str, Operation, str] | None:
    """The arguments of the error for the first operation that a stage does not allow; None without one."""
    legal = LEGAL_TILE_OPS[stage]
    for op in module.walk():
        if (reason := _reason(op, stage, legal)) is not None:
            return Code.STAGE_CONTRACT, f"{op.name} is not legal at stage '{stage}': {reason}", op, ""
        if UNROLL in op.attributes and (reason := find_malformed_hint(op)) is not None:
            return Code.LOOP_HINT, f"the attribute 'unroll' of {op.name}: {reason}", op, ""
        if stage == "instr" and _computes(op) and any(map(_is_narrow, (*op.operands, *op.results))):
            hint = "8-bit floats can only be converted: extend them with arith.extf and compute in f32 or f16"
            return Code.EMIT_UNSUPPORTED, f"'{op.name}' of 8-bit floats", op, hint
        if stage == "instr" and isinstance(op, scf.ForOp) and (copies := body_copies(op)) > MAX_COPIES:
            message = f"unrolling would make {copies} copies of the loop's body; at most {MAX_COPIES} are possible"
            hint = "unroll it in part, {unroll = 4 : i64}, or move work to an outer loop or to other threads"
            return Code.LOOP_HINT, message, op, hint
    return None


def _reason(op: Operation, stage: str, legal: frozenset[str] | None) -> str | None:
    """Why an operation is not legal; None if it is."""
    dialect = op.name.split(".", 1)[0]
    if dialect == "tile":
        return None if legal is None or op.name in legal else "an earlier pass should have replaced it"
    if dialect not in COMMON and op.name not in _OTHERS:
        return f"no stage allows the dialect '{dialect}'"
    if stage == "instr":
        if op.name in _NOT_AT_INSTR or op.name in _ONLY_BEFORE_INSTR:
            return "an earlier pass should have replaced it"
        if any(isinstance(value.type, IndexType) for value in (*op.operands, *op.results)):
            return "it uses the type index, which has no width in registers; use i32 or i64"
    return None


def _computes(op: Operation) -> bool:
    """Whether an operation does more with a value than move it."""
    moves = (arith.ConstantOp, arith.SelectOp, arith.BitcastOp)
    return op.name.startswith(("arith.", "math.")) and not isinstance(op, moves)


def _is_narrow(value: SSAValue) -> bool:
    return float_bits(split_vector(value.type)[0]) == 8
