# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of operands in tensor memory, and of descriptors for its tensor core: where multiplications by tcgen05.mma
and copies to and from tensor memory find their values."""

from ...base.errors import Code, LayoutError
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.core import LayoutLike, plain_layout
from ...layout.algebra.recast import upcast
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.atoms.instructions import TmemCp, TmemLoad, TmemStore
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.tmem_copy import cells_of
from ...layout.atoms.umma_descriptors import SmemDescriptor
from ...layout.atoms.umma_smem import operand_alignment, swizzling_of, umma_descriptor
from ...layout.tmem.fragments import place_factors, place_operand, stored_bits
from .types import TensorType


def umma_descriptor_of(atom: MmaAtom, operand: str, layout: LayoutLike) -> SmemDescriptor:
    """The descriptor of operand "A" or "B" in shared memory at address 0, of one execution: `layout` is (MN,K).

    Raises `LayoutError` (E0315) if no descriptor describes the layout.
    """
    while len(layout) == 1 and isinstance(plain_layout(layout).shape, tuple):
        layout = layout[0]  # the only mode
    return umma_descriptor(layout, stored_bits(atom, operand), atom.operand(operand).major.value)


def umma_alignment(atom: MmaAtom, operand: str, layout: LayoutLike) -> int:
    """The alignment in bytes of the memory of an operand in shared memory, (V,...) by `layout`."""
    return operand_alignment(swizzling_of(layout, stored_bits(atom, operand)))


def check_cells(atom: MmaAtom, operand: str, values: LayoutLike) -> None:
    """Checks that the values of one execution, by their layout, are in the cells in which the instruction has them.
    Raises `LayoutError` (E0310).
    """
    rows, columns = atom.shape[0] // atom.threads, atom.shape[2 if operand == "A" else 1]
    expected = place_operand(atom, "A" if operand == "A" else "C", ((rows, columns), 1, 1))[0]
    _check_places(f"operand {operand} of {atom.name}", values, expected)


def check_factors(atom: MmaAtom, operand: str, values: LayoutLike) -> None:
    """The same for the scale factors of operand "A" or "B"."""
    *others, last = place_factors(atom, operand)
    if coalesce(plain_layout(values)) not in [coalesce(other) for other in others]:
        _check_places(f"the scales of {operand} of {atom.name}", values, last)


def reaches_cells(atom: CopyAtom) -> bool:
    """Whether a copy reads or writes tensor memory."""
    return isinstance(atom.instruction, TmemLoad | TmemStore | TmemCp)


def check_copied_cells(atom: CopyAtom, tensor: TensorType, values: LayoutLike) -> None:
    """The same for the values of one execution of a copy."""
    _check_places(f"atom {atom.name}", values, upcast(cells_of(atom), tensor.element_bits))


def _check_places(subject: str, values: LayoutLike, expected: LayoutLike) -> None:
    found, wanted = coalesce(plain_layout(values)), coalesce(plain_layout(expected))
    if found != wanted:
        raise LayoutError(
            Code.ATOM_VALUES,
            f"the values of {subject} are in tensor memory at {wanted}, but mode 0 is {found}",
            "make the tensor by tile.make_fragment_C of the tiled MMA, and the copy by tile.tiled_copy ... tmem",
        )
