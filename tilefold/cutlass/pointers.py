# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cutlass.Pointer`: the class of raw pointers to programs, which makes them of others."""

from typing import Any

from tilefold.builder.primitives.barriers import raw_pointer
from tilefold.builder.primitives.tensor_maps import MapPointer
from tilefold.builder.primitives.tmem_addresses import TmemPointer
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.pointers import make_ptr
from tilefold.builder.tensors.raw_pointers import RawPointer
from tilefold.cute import Int8


class _Pointers(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, RawPointer)

    def __call__(cls, ptr: object, dtype: object = None) -> Any:
        pointer = ptr if isinstance(ptr, MapPointer) else raw_pointer(ptr)
        return pointer if dtype is None else pointer.recast(dtype)


class Pointer(metaclass=_Pointers):
    """The class of raw pointers. `Pointer(p, dtype=Int64)` is the address of a pointer, an array or a tensor as one of
    elements of another type; of a tensor map it has words, which a kernel copies.
    """


def inttoptr(value: Any, mem_space: object = AddressSpace.gmem, dtype: object = Int8) -> RawPointer | TmemPointer:
    """The pointer to elements of a type at an address: a number, or an integer of the kernel. `mem_space` is global,
    shared or tensor memory, or its number. TilefoldError (E5002) for another memory.
    """
    space = AddressSpace(mem_space) if isinstance(mem_space, int) else mem_space
    if space is AddressSpace.tmem:
        return TmemPointer(value, dtype)
    return raw_pointer(make_ptr(dtype, value, space, None))
