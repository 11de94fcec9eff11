# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The module tree of CuTe programs: `import tilefold.cutlass as cutlass`, `import tilefold.cutlass.cute as cute`.

`install()` makes the tree importable as `cutlass` itself; `python -m tilefold.cutlass FILE.py` runs a program so. The
modules are those of `tilefold.cute`: one interface by two names.
"""

import sys
from typing import Any

from xdsl.dialects.builtin import IntegerType

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.control.loop_range import make_range as range
from tilefold.builder.control.loops import yield_out
from tilefold.builder.instructions.math import maximum as max
from tilefold.builder.instructions.math import minimum as min
from tilefold.builder.instructions.math import where as select_
from tilefold.builder.instructions.printing import print_tensor as print_nd_vector
from tilefold.builder.primitives.arrays import Array, make_array_view
from tilefold.builder.primitives.barriers import raw_pointer
from tilefold.builder.primitives.tensor_maps import GridConstant, MapPointer
from tilefold.builder.primitives.tmem_addresses import TmemPointer
from tilefold.builder.scalars.dtypes import DTYPES, DType
from tilefold.builder.scalars.values import Value
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.fragments import full_like
from tilefold.builder.tensors.pointers import make_ptr
from tilefold.builder.tensors.raw_pointers import RawPointer
from tilefold.builder.tensors.vectors import Vector
from tilefold.cute import (
    BFloat16,
    Boolean,
    Constexpr,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Layout,
    TFloat32,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    const_expr,
    range_constexpr,
)
from tilefold.cute.jit import dsl_user_op
from tilefold.cute.jit_arguments import DynamicExpression, JitArgument
from tilefold.cute.missing import MissingFinder
from tilefold.cute.public import MissingModules
from tilefold.cute.specialise import register_jit_arg_adapter
from tilefold.cute.typing import Float, Integer, Numeric, Shape
from tilefold.layout.algebra.swizzle import Swizzle

from .architectures import CUDA_VERSION, target_version
from .cutlass_dsl import T
from .modules import add_modules
from .programs import ProgramFinder
from .tensor import full
from .value_trees import extract_mlir_values, new_from_mlir_values


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


Float4E2M1FN = DTYPES["Float4E2M1FN"]
"""A float of 4 bits; two share a byte."""

Float4E2M1FNx2 = DType("Float4E2M1FNx2", IntegerType(8), "packed", 8, unsigned=True)
"""A byte of two floats of 4 bits."""

Float6E2M3FNx4, Float6E3M2FNx4 = (
    DType(f"Float6{name}FNx4", IntegerType(24), "packed", 24, unsigned=True) for name in ("E2M3", "E3M2")
)
"""Three bytes of four floats of 6 bits; no tensor has such elements, but programs ask for the width."""

Float6E2M3FN, Float6E3M2FN = DTYPES["Float6E2M3FN"], DTYPES["Float6E3M2FN"]
"""Floats of 6 bits; each takes a byte."""

Float8E8M0FNU = DTYPES["Float8E8M0FNU"]
"""Scale factors, which are powers of 2."""

Float8E4M3B11FNUZ, Float8E4M3 = (
    DType(name, IntegerType(8), "packed", 8, unsigned=True) for name in ("Float8E4M3B11FNUZ", "Float8E4M3")
)
"""Floats of 8 bits that no instruction takes."""

Int128, Uint128 = (
    DType(name, IntegerType(128), "packed", 128, unsigned=name != "Int128") for name in ("Int128", "Uint128")
)
"""Integers of 16 bytes, by which programs count the bytes of their memory."""


__version__ = "4.4.0"
"""The newest version in the public changelog of the interface whose names these are."""

range_dynamic = for_generate = range

__all__ = [
    "AddressSpace", "Array", "BFloat16", "Boolean", "CUDA_VERSION", "Constexpr", "DynamicExpression", "Float",
    "Float16", "Float32", "Float4E2M1FN", "Float4E2M1FNx2", "Float64", "Float6E2M3FN", "Float6E2M3FNx4", "Float6E3M2FN",
    "Float6E3M2FNx4", "Float8E4M3", "Float8E4M3B11FNUZ", "Float8E4M3FN", "Float8E5M2", "Float8E8M0FNU", "GridConstant",
    "Int128", "Int16", "Int32", "Int4", "Int64", "Int8", "Integer", "JitArgument", "Layout", "Numeric", "Pointer",
    "Shape", "Swizzle", "T", "TFloat32", "Uint128", "Uint16", "Uint32", "Uint64", "Uint8", "Value", "Vector",
    "const_expr", "dsl_user_op", "dtype", "dynamic_expr", "extract_mlir_values", "for_generate", "full", "full_like",
    "install", "inttoptr", "make_array_view", "max", "min", "new_from_mlir_values", "print_nd_vector", "range",
    "range_constexpr", "range_dynamic", "register_jit_arg_adapter", "select_", "target_version", "yield_out",
]  # fmt: skip


def dynamic_expr(x: object) -> Any:
    """A condition that the kernel decides where it is a value of the kernel, as it is."""
    return x


def dtype(name: Any) -> DType:
    """The element type of a name, such as "Float16". TilefoldError (E0213) for an unknown one."""
    if isinstance(name, DType):
        return name
    if name not in DTYPES:
        hint = f"one of {', '.join(DTYPES)}"
        raise TilefoldError(Code.BAD_ARGUMENT, f"unknown element type {name!r}", hint)
    return DTYPES[name]


def install() -> None:
    """Makes `import cutlass` and imports of its parts give tilefold's modules, by finders in `sys.meta_path`.

    TilefoldError (E0213) where another package of this name has been imported already.
    """
    known = sys.modules.get("cutlass")
    if known is not None and known is not sys.modules[__name__]:
        message = f"a package named cutlass has been imported from {getattr(known, '__file__', None)}"
        raise TilefoldError(Code.BAD_ARGUMENT, message, "install tilefold's modules before it is imported")
    if known is None:
        sys.meta_path.insert(0, ProgramFinder())
        sys.meta_path += [MissingFinder(), MissingModules()]
    add_modules("cutlass")


add_modules(__name__)
