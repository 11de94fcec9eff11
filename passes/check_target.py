# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`check-target`: refuses what the target cannot execute, before LLVM sees it."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import math, vector
from xdsl.dialects.builtin import BFloat16Type, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..base.errors import Code
from ..base.target import DEFAULT_ARCH, Target
from ..dialects.ptx import EntryOp, PtxOp
from ..dialects.ptx.types import split_vector
from ..dialects.tile import AtomCallOp, CopyOp, GemmOp, MmaCallOp, TiledCopyOp, TiledMmaOp
from ..layout.atoms.copy_atom import CopyAtom
from ..layout.atoms.mma_atom import MmaAtom
from .errors import LoweringError


@dataclass(frozen=True)
class CheckTargetPass(ModulePass):
    """Checks atoms, instructions and the shared memory of kernels against the target. Changes nothing."""

    name = "check-target"
    target: str = DEFAULT_ARCH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_target(op, Target(self.target))


def check_target(root: Operation, target: Target) -> None:
    """Raises LoweringError or TargetError for the first operation at or under `root` that the target cannot execute."""
    for each in root.walk():
        match each:
            case TiledCopyOp() | AtomCallOp() | TiledMmaOp() | MmaCallOp():
                _check_atom(each, target, each.atom.atom)
            case CopyOp() if each.atom is not None:
                _check_atom(each, target, each.atom.atom)
            case GemmOp() if each.tiled_mma is None:
                _check_atom(each, target, each.mma_atom.atom)
            case EntryOp() if each.shared_bytes is not None:
                target.check_shared_bytes(each.shared_bytes.value.data, each.sym_name.data)
            case math.FmaOp() | vector.FMAOp() if isinstance(split_vector(each.results[0].type)[0], BFloat16Type):
                _check(each, target, "fma of bf16", 80, 70, False)
            case PtxOp():
                what = each.mnemonic() or each.name
                _check(each, target, what, *each.requires(), each.arch_specific)
                _check_family(each, target, what)
            case _:
                pass


def _check_atom(op: Operation, target: Target, atom: CopyAtom | MmaAtom) -> None:
    major, minor = atom.min_ptx
    _check(op, target, atom.name, atom.min_sm, 10 * major + minor, atom.arch_specific)


def _check_family(op: PtxOp, target: Target, what: str) -> None:
    if op.family is not None and target.sm // 10 != op.family:
        raise LoweringError(
            Code.TARGET_TOO_OLD,
            f"{what} is an instruction of sm_{op.family}x alone, not of {target}",
            op,
            f"compile for --target sm_{op.family}0f, or use an instruction that {target} has",
        )


def _check(op: Operation, target: Target, what: str, min_sm: int, min_ptx: int, arch_specific: bool) -> None:
    if not target.supports(min_sm, min_ptx):
        raise LoweringError(
            Code.TARGET_TOO_OLD,
            f"{what} needs sm_{min_sm} and PTX {min_ptx // 10}.{min_ptx % 10}; {target} is older",
            op,
            f"compile for --target sm_{min_sm} or newer, or use an instruction that {target} has",
        )
    if arch_specific and not target.suffix:
        raise LoweringError(
            Code.TARGET_TOO_OLD,
            f"{what} is an instruction of single architectures; {target} stands for all later ones too",
            op,
            f"compile for --target {target}a",
        )
