# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copy atoms of programs that make them by an operation of the dialect `cute_nvgpu`: `CopyAtom(op, trait)`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilefold.builder.tensors import copy_atoms
from tilefold.builder.tensors.nvgpu import CopyOp
from tilefold.builder.tensors.tma import TmaAtom


@dataclass(frozen=True)
class CopyBulkTensorTileG2SNonExecTrait:
    """An atom that an operation of `cute_nvgpu` has made."""

    atom: TmaAtom


class _OfTraits(type):
    """The class of copy atoms as such programs know it: a call with a trait gives the trait's atom."""

    def __call__(cls, op: CopyOp, trait: CopyBulkTensorTileG2SNonExecTrait) -> TmaAtom:  # pyright: ignore[reportIncompatibleMethodOverride]
        return trait.atom

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, copy_atoms.CopyAtom)


if TYPE_CHECKING:
    CopyAtom = copy_atoms.CopyAtom
else:

    class CopyAtom(copy_atoms.CopyAtom, metaclass=_OfTraits):
        """A copy instruction, and the elements that it moves; `CopyAtom(op, trait)` is the atom in a trait."""
