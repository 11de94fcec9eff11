# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Python, in the vocabulary of CuTe: `from tilefold import cute`.

These names build kernels (docs/python.md); `cute.arch` has the instructions of a thread, `cute.nvgpu` the instructions
of atoms, `cute.pipeline` stages between producers and consumers, `cute.utils` the order of tiles.
"""

from typing import TYPE_CHECKING

from tilefold.base.on_demand import on_demand
from tilefold.builder.scalars.dtypes import DTYPES

from .jit import JitFunction, jit
from .kernel import Kernel, KernelCall, kernel
from .names import HOMES
from .public import publish

if TYPE_CHECKING:
    from tilefold.builder.control.conditions import const_expr
    from tilefold.builder.control.control_functions import for_, if_, while_
    from tilefold.builder.control.loop_range import Range, range_constexpr
    from tilefold.builder.control.loop_range import make_range as range
    from tilefold.builder.instructions.extremes import maximum as max  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from tilefold.builder.instructions.extremes import minimum as min  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from tilefold.builder.instructions.integers import (
        FastDivmodDivisor,
        FastDivmodDivisorV2,
        fast_divmod_create_divisor,
        fast_divmod_create_divisor_v2,
        increment_coord,
    )
    from tilefold.builder.instructions.math import (
        absolute,
        all_,
        any_,
        argmax,
        argmin,
        ceil,
        cos,
        erf,
        exp,
        exp2,
        floor,
        fma,
        log,
        log1p,
        log2,
        log10,
        ones_like,
        rcp,
        round_even,
        rsqrt,
        sin,
        sqrt,
        tanh,
        trunc,
        where,
        zeros_like,
    )
    from tilefold.builder.instructions.math import absolute as abs
    from tilefold.builder.instructions.math import absolute as absf
    from tilefold.builder.instructions.printing import pretty_str, print_layout, print_tensor, printf
    from tilefold.builder.scalars.dtypes import DType
    from tilefold.builder.scalars.values import Bool, Float, Int, Value
    from tilefold.builder.tensors.address_space import AddressSpace
    from tilefold.builder.tensors.allocation import (
        basic_copy_if,
        clear,
        fill,
        make_fragment_like,
        make_rmem_tensor,
        make_rmem_tensor_like,
        make_smem_tensor,
    )
    from tilefold.builder.tensors.allocation import make_rmem_tensor as make_fragment
    from tilefold.builder.tensors.copies import (
        ThrCopy,
        TiledCopy,
        autovec_copy,
        basic_copy,
        copy,
        make_cotiled_copy,
        make_tiled_copy,
        make_tiled_copy_A,
        make_tiled_copy_B,
        make_tiled_copy_C,
        make_tiled_copy_C_atom,
        make_tiled_copy_D,
        make_tiled_copy_S,
        make_tiled_copy_tv,
        prefetch,
    )
    from tilefold.builder.tensors.copies import copy as copy_atom_call
    from tilefold.builder.tensors.copy_atoms import make_copy_atom
    from tilefold.builder.tensors.fragments import ReductionOp, empty_like, full, full_like
    from tilefold.builder.tensors.fragments import ReductionOp as ReductionKind
    from tilefold.builder.tensors.fragments import Vec as TensorSSA
    from tilefold.builder.tensors.gemm import gemm
    from tilefold.builder.tensors.gemm import gemm as mma_atom_call
    from tilefold.builder.tensors.layouts import (
        assume,
        blocked_product,
        ceil_div,
        compatible,
        complement,
        congruent,
        coshape,
        cosize,
        crd2crd,
        crd2idx,
        depth,
        downcast,
        flat_product,
        get_divisibility,
        idx2crd,
        is_static,
        left_inverse,
        logical_product,
        make_composed_layout,
        make_identity_layout,
        make_layout,
        make_layout_like,
        make_layout_tv,
        make_ordered_layout,
        make_swizzle,
        max_alignment,
        max_common_layout,
        max_common_vector,
        nullspace,
        product,
        product_each,
        product_like,
        raked_product,
        rank,
        recast_layout,
        repeat,
        repeat_as_tuple,
        repeat_like,
        replace,
        right_inverse,
        round_up,
        shape,
        shape_div,
        size,
        size_in_bytes,
        slice_and_offset,
        stride,
        tile_to_shape,
        tiled_product,
        unflatten,
        upcast,
        weakly_congruent,
        with_shape,
        zip_layout,
        zip_layouts,
        zipped_product,
    )
    from tilefold.builder.tensors.layouts import congruent as is_congruent
    from tilefold.builder.tensors.layouts import weakly_congruent as is_weakly_congruent
    from tilefold.builder.tensors.modes import (
        append,
        coalesce,
        dice,
        domain_offset,
        filter,
        filter_zeros,
        flatten,
        get,
        group_modes,
        prepend,
        select,
        slice_,
        take,
    )
    from tilefold.builder.tensors.nvgpu import Trait, make_atom
    from tilefold.builder.tensors.pointers import alias, make_tensor, recast_ptr, recast_tensor
    from tilefold.builder.tensors.raw_pointers import Address
    from tilefold.builder.tensors.structs import native_struct, struct, union
    from tilefold.builder.tensors.tensors import CoordTensor, Pointer, Tensor
    from tilefold.builder.tensors.tiled_mma import ThrMma, TiledMma, make_mma_atom, make_tiled_mma
    from tilefold.builder.tensors.tiled_mma import TiledMma as MmaAtom
    from tilefold.builder.tensors.tma import TmaAtom, make_layout_image_mask
    from tilefold.builder.tensors.tuples import (
        E,
        ScaledBasis,
        append_ones,
        basis_get,
        basis_value,
        filter_tuple,
        find,
        find_if,
        flatten_to_tuple,
        front,
        get_nonswizzle_portion,
        get_swizzle_portion,
        has_underscore,
        is_major,
        leading_dim,
        prepend_ones,
        transform_apply,
        transform_leaf,
        tuple_cat,
        unwrap,
        wrap,
    )
    from tilefold.builder.tensors.views import (
        bounds,
        composition,
        elem_less,
        flat_divide,
        inner_partition,
        local_partition,
        local_tile,
        logical_divide,
        make_identity_tensor,
        outer_partition,
        rasterize,
        tiled_divide,
        zipped_divide,
    )
    from tilefold.layout.algebra.core import ComposedLayout, Layout
    from tilefold.layout.algebra.swizzle import Swizzle
    from tilefold.runtime.arrays.signature import Constexpr, Dynamic, dynamic

    from . import arch, experimental, math, nvgpu, pipeline, runtime, testing, typing, utils
    from .autotuned_kernel import Tuned, TunedCall, autotune
    from .compiled_kernel import CompiledKernel
    from .drawing import save_picture
    from .dtypes import (
        BFloat16,
        Boolean,
        Float8E4M3FN,
        Float8E5M2,
        Float16,
        Float32,
        Float64,
        Int8,
        Int16,
        Int32,
        Int64,
        TFloat32,
        Uint8,
        Uint16,
        Uint32,
        Uint64,
    )
    from .host.compiler import Compiler, compile
    from .host.options import (
        DumpDir,
        EnableAssertions,
        EnableTVMFFI,
        FrontendNext,
        GenerateLineInfo,
        GPUArch,
        KeepCUBIN,
        KeepPTX,
        KeepSASS,
        LinkLibraries,
        NvdisasmOptions,
        OptLevel,
        PtxasOptions,
    )
    from .nvgpu.cpasync import CopyAtom, CopyOp
    from .runtime import SymInt, from_dlpack, make_ptr, sym_int, sym_int32, sym_int64
    from .tensor_spec import TensorSpec
    from .torch_operators import torch_op
    from .tuning import Candidate, Tuning
    from .typing import Coord, Integer, IntTuple, Numeric, Shape, Stride, Tile, Tiler
else:
    __getattr__ = on_demand(__name__, HOMES)

Int4, Uint4, Uint1 = DTYPES["Int4"], DTYPES["Uint4"], DTYPES["Uint1"]
Float4E2M1FN, Float6E2M3FN, Float6E3M2FN, Float8E8M0FNU = [
    DTYPES[name] for name in ("Float4E2M1FN", "Float6E2M3FN", "Float6E3M2FN", "Float8E8M0FNU")
]


__all__ = [
    "Address", "AddressSpace", "BFloat16", "Bool", "Boolean", "Candidate", "CompiledKernel", "Compiler",
    "ComposedLayout", "Constexpr", "Coord", "CoordTensor", "CopyAtom", "CopyOp", "DType", "DumpDir", "Dynamic", "E",
    "EnableAssertions", "EnableTVMFFI", "FastDivmodDivisor", "FastDivmodDivisorV2", "Float", "Float16", "Float32",
    "Float4E2M1FN", "Float64", "Float6E2M3FN", "Float6E3M2FN", "Float8E4M3FN", "Float8E5M2", "Float8E8M0FNU",
    "FrontendNext", "GPUArch", "GenerateLineInfo", "Int", "Int16", "Int32", "Int4", "Int64", "Int8", "IntTuple",
    "Integer", "JitFunction", "KeepCUBIN", "KeepPTX", "KeepSASS", "Kernel", "KernelCall", "Layout", "LinkLibraries",
    "MmaAtom", "Numeric", "NvdisasmOptions", "OptLevel", "Pointer", "PtxasOptions", "Range", "ReductionKind",
    "ReductionOp", "ScaledBasis", "Shape", "Stride", "Swizzle", "SymInt", "TFloat32", "Tensor", "TensorSSA",
    "TensorSpec", "ThrCopy", "ThrMma", "Tile", "TiledCopy", "TiledMma", "Tiler", "TmaAtom", "Trait", "Tuned",
    "TunedCall", "Tuning", "Uint1", "Uint16", "Uint32", "Uint4", "Uint64", "Uint8", "Value", "abs", "absf", "absolute",
    "alias", "all_", "any_", "append", "append_ones", "arch", "argmax", "argmin", "assume", "autotune", "autovec_copy",
    "basic_copy", "basic_copy_if", "basis_get", "basis_value", "blocked_product", "bounds", "ceil", "ceil_div", "clear",
    "coalesce", "compatible", "compile", "complement", "composition", "congruent", "const_expr", "copy",
    "copy_atom_call", "cos", "coshape", "cosize", "crd2crd", "crd2idx", "depth", "dice", "domain_offset", "downcast",
    "dynamic", "elem_less", "empty_like", "erf", "exp", "exp2", "experimental", "fast_divmod_create_divisor",
    "fast_divmod_create_divisor_v2", "fill", "filter", "filter_tuple", "filter_zeros", "find", "find_if", "flat_divide",
    "flat_product", "flatten", "flatten_to_tuple", "floor", "fma", "for_", "from_dlpack", "front", "full", "full_like",
    "gemm", "get", "get_divisibility", "get_nonswizzle_portion", "get_swizzle_portion", "group_modes", "has_underscore",
    "idx2crd", "if_", "increment_coord", "inner_partition", "is_congruent", "is_major", "is_static",
    "is_weakly_congruent", "jit", "kernel", "leading_dim", "left_inverse", "local_partition", "local_tile", "log",
    "log10", "log1p", "log2", "logical_divide", "logical_product", "make_atom", "make_composed_layout",
    "make_copy_atom", "make_cotiled_copy", "make_fragment", "make_fragment_like", "make_identity_layout",
    "make_identity_tensor", "make_layout", "make_layout_image_mask", "make_layout_like", "make_layout_tv",
    "make_mma_atom", "make_ordered_layout", "make_ptr", "make_rmem_tensor", "make_rmem_tensor_like", "make_smem_tensor",
    "make_swizzle", "make_tensor", "make_tiled_copy", "make_tiled_copy_A", "make_tiled_copy_B", "make_tiled_copy_C",
    "make_tiled_copy_C_atom", "make_tiled_copy_D", "make_tiled_copy_S", "make_tiled_copy_tv", "make_tiled_mma", "math",
    "max_alignment", "max_common_layout", "max_common_vector", "mma_atom_call", "native_struct", "nullspace", "nvgpu",
    "ones_like", "outer_partition", "pipeline", "prefetch", "prepend", "prepend_ones", "pretty_str", "print_layout",
    "print_tensor", "printf", "product", "product_each", "product_like", "raked_product", "range", "range_constexpr",
    "rank", "rasterize", "rcp", "recast_layout", "recast_ptr", "recast_tensor", "repeat", "repeat_as_tuple",
    "repeat_like", "replace", "right_inverse", "round_even", "round_up", "rsqrt", "runtime", "save_picture", "select",
    "shape", "shape_div", "sin", "size", "size_in_bytes", "slice_", "slice_and_offset", "sqrt", "stride", "struct",
    "sym_int", "sym_int32", "sym_int64", "take", "tanh", "testing", "tile_to_shape", "tiled_divide", "tiled_product",
    "torch_op", "transform_apply", "transform_leaf", "trunc", "tuple_cat", "typing", "unflatten", "union", "unwrap",
    "upcast", "utils", "weakly_congruent", "where", "while_", "with_shape", "wrap", "zeros_like", "zip_layout",
    "zip_layouts", "zipped_divide", "zipped_product",
]  # fmt: skip

publish(__name__)
