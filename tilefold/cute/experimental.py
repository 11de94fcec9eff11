# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies that know the extents of tensors by themselves (`cutlass.cute.experimental`)."""

from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.pipelines.allocator import SmemAllocator
from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.tensors import copies
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.allocation import make_rmem_tensor
from tilefold.builder.tensors.coordinates_of_view import inside
from tilefold.builder.tensors.tensors import Tensor
from tilefold.builder.tensors.views import composition, zipped_divide

from .jit import jit
from .kernel import kernel
from .public import publish

__all__ = ["allocate", "copy", "jit", "kernel", "partition"]


def allocate(element_type: DType, space: AddressSpace, layout: object, alignment: int = 16) -> Tensor:
    """A new tensor in registers or shared memory. TilefoldError (E5002) for another memory."""
    if space is AddressSpace.rmem:
        return make_rmem_tensor(layout, element_type)
    if space is AddressSpace.smem:
        return SmemAllocator().allocate_tensor(element_type, layout, alignment)
    raise TilefoldError(Code.BUILD_VALUE, f"a kernel allocates no memory in {space}", "rmem or smem")


def partition(tensor: Tensor, index: object, *, layout_tv: object, tiler: object) -> Tensor:
    """The part of thread `index` in a tensor: its values in each tile of the shape `tiler`, by a layout of threads and
    values, and the tiles: (V,(RestM,RestN,...)).
    """
    parts = composition(zipped_divide(tensor, tiler), (layout_tv, None))
    return parts[((index, None), None)]


def copy(src: Tensor, dst: Tensor, *, copy_atom: Any) -> None:
    """Copies by an atom, as `cute.copy` does, but only elements that the tensors have from which the views were made:
    a tile may reach beyond them. One execution of the atom moves all of its values or none, so these are all inside or
    all outside: a GPU asks for the first, the simulator at stage `cute` for all (E3214).
    """
    predicates: Any = None
    for view in (src, dst):
        if (part := inside(view)) is not None:
            predicates = part.load() if predicates is None else predicates & part.load()
    copies.copy(copy_atom, src, dst, predicates)


publish(__name__)
