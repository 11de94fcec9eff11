# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps as programs make them by the dialect `cute_nvgpu` of another compiler, and conversions by `builtin`."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import VectorType, f32
from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DTYPES, dtype_of
from tilefold.builder.tensors.fragments import Vec
from tilefold.builder.tensors.nvgpu import MmaOp
from tilefold.builder.tensors.operand_copies import make_tma_atom_of_values
from tilefold.builder.tensors.tma import TmaDescriptor, TmaTrait

__all__ = [
    "MmaAtomSM80Type", "TmaDescriptorTiledType", "atom_get_value", "atom_make_non_exec_tiled_tma_load",
    "unrealized_conversion_cast",
]  # fmt: skip


class TmaDescriptorTiledType:
    """The type of a tensor map of tiles."""

    @staticmethod
    def get() -> "TmaDescriptorTiledType":
        """The type."""
        return TmaDescriptorTiledType()


class MmaAtomSM80Type:
    """The type of atoms of mma.sync."""

    @staticmethod
    def get(shape: tuple[int, int, int], a: Attribute, b: Attribute, c: Attribute) -> MmaOp:
        """The instruction that multiplies an A and a B of these types and adds a C of the type of D. A and B of f32 are
        TFloat32, whose type in the IR that is: mma.sync multiplies no others (PTX ISA, mma).
        """
        a_type, b_type = (DTYPES["TFloat32"] if type == f32 else dtype_of(type) for type in (a, b))
        return MmaOp(a_type, dtype_of(c), shape, b_type)


def atom_make_non_exec_tiled_tma_load(
    gmem: Any, smem_layout: object, cta_v_map: object, op: Any, *, num_multicast: int = 1
) -> tuple[Any, Any]:
    """A tensor map for loads of a tile that is given by the coordinates of its values, and the tensor of coordinates:
    see `make_tma_atom_of_values`.
    """
    info = make_tma_atom_of_values(op, gmem, smem_layout, cta_v_map, num_multicast)
    return info.atom, info.tma_tensor


def atom_get_value(result: object, atom: TmaTrait, field: object) -> TmaDescriptor:
    """The tensor map of a TMA copy's atom, its field `tma_desc`. Raises TilefoldError (E5002) for another field."""
    if "tma_desc" not in str(field):
        message = f"only the tensor map of an atom can be read, not {field}"
        raise TilefoldError(Code.BUILD_VALUE, message, "name the field tma_desc")
    return TmaDescriptor(atom.atom)


def unrealized_conversion_cast(outputs: Sequence[object], inputs: Sequence[object]) -> TmaDescriptor | Vec:
    """A tensor map as a structure of words, which `llvm.store` writes; or a vector, element by element as another type
    of the same width. Raises TilefoldError (E5002) for another value.
    """
    if len(outputs) == len(inputs) == 1:
        (kind,), (given,) = outputs, inputs
        if isinstance(given, TmaDescriptor):
            return given
        if isinstance(given, Vec) and isinstance(kind, VectorType):
            made = given.bitcast(cast("VectorType[Attribute]", kind).element_type)
            if made.size == given.size == kind.get_shape()[0]:
                return made
    message = "an unrealized conversion supports only tensor maps, and vectors of as many elements that are as wide"
    raise TilefoldError(Code.BUILD_VALUE, message, "cute.arch.bitcast converts numbers, t.load().bitcast vectors")
