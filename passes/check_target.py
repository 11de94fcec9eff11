# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`check-target`: refuses operations that the target cannot execute, before LLVM sees them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..base.errors import Code
from ..base.target import DEFAULT_ARCH, Target, TargetFamily, Targets
from ..dialects.kernel import KernelOp
from ..dialects.ptx import EntryOp, PtxOp
from ..dialects.ptx.base import split_vector
from ..dialects.tile import AtomCallOp, CopyOp, GemmOp, MmaCallOp, TensorMapOp, TiledCopyOp, TiledMmaOp, TmaType
from .errors import LoweringError

_FMA = ("math.fma", "vector.fma")  # by name: the dialect vector takes long to import, and few programs have it


@dataclass(frozen=True)
class CheckTargetPass(ModulePass):
    """Checks atoms, instructions and the shared memory of kernels against the target. Changes nothing."""

    name = "check-target"
    target: str = DEFAULT_ARCH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_target(op, Target(self.target))


def check_target(root: Operation, target: Target) -> None:
    """Raises LoweringError or TargetError for the first operation at or under `root` that the target cannot execute."""
    for op in root.walk():
        for subject, targets in _demands(op):
            if (refusal := targets.refusal(subject, target)) is not None:
                text, hint = refusal
                raise LoweringError(Code.TARGET_TOO_OLD, text, op, hint)
        if isinstance(op, EntryOp) and op.shared_bytes is not None:
            target.check_shared_bytes(op.shared_bytes.value.data, op.sym_name.data)


def capable_targets(root: Operation, names: Sequence[str]) -> Sequence[str]:
    """The targets that have every operation at or under `root`, of those with these names; all where none has, so that
    compiling for the first says why. How much memory a target has does not matter.
    """
    demanded = {targets: subject for op in root.walk() for subject, targets in _demands(op)}
    return [name for name in names if not _refuses_any(Target(name), demanded)] or names


def _refuses_any(target: Target, demanded: "Mapping[TargetFamily | Targets, str]") -> bool:
    return any(targets.refusal(subject, target) is not None for targets, subject in demanded.items())


def _demands(op: Operation) -> "Iterator[tuple[str, TargetFamily | Targets]]":
    """The instructions, or features, that an operation needs, and the targets that have them."""
    match op:
        case PtxOp():
            yield op.mnemonic() or op.name, op.targets
        case TiledCopyOp() | AtomCallOp() | TiledMmaOp() | MmaCallOp():
            yield op.atom.atom.name, op.atom.atom.targets
        case CopyOp() if op.atom is not None:
            yield op.atom.atom.name, op.atom.atom.targets
        case TensorMapOp():
            assert isinstance(op.result.type, TmaType)
            atom = op.result.type.tma_copy.tiled_copy.atom
            yield atom.name, atom.targets
        case GemmOp() if op.tiled_mma is None:
            atom = op.mma_atom.atom
            yield atom.name, atom.targets
        case KernelOp() if op.cluster is not None:
            yield "a cluster of blocks", TargetFamily(90, 78)
        case _ if op.name in _FMA and isinstance(split_vector(op.results[0].type)[0], BFloat16Type):
            yield "fma of bf16", TargetFamily(80, 70)
        case _:
            pass
