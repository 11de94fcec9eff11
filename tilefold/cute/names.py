# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules that define the names of `tilefold.cute`."""

from collections.abc import Mapping
from types import MappingProxyType

HOMES: Mapping[str, str] = MappingProxyType(
    {
        "tilefold.builder.control.conditions": "const_expr",
        "tilefold.builder.control.control_functions": "for_ if_ while_",
        "tilefold.builder.control.loop_range": "Range range_constexpr range=make_range",
        "tilefold.builder.instructions.integers": (
            "FastDivmodDivisor FastDivmodDivisorV2 fast_divmod_create_divisor fast_divmod_create_divisor_v2 "
            "increment_coord"
        ),
        "tilefold.builder.instructions.math": (
            "abs=absolute absolute absf=absolute all_ any_ argmax argmin ceil cos erf exp exp2 floor fma log log1p "
            "log2 log10 ones_like rcp round_even rsqrt sin sqrt tanh trunc where zeros_like"
        ),
        "tilefold.builder.instructions.extremes": "max=maximum min=minimum",
        "tilefold.builder.instructions.printing": "pretty_str print_layout print_tensor printf",
        "tilefold.builder.scalars.dtypes": "DType",
        "tilefold.builder.scalars.values": "Bool Float Int Value",
        "tilefold.builder.tensors.address_space": "AddressSpace",
        "tilefold.builder.tensors.coordinates": "_pack_shape=pack_shape _pack_tile=tuples",
        "tilefold.builder.tensors.copies": (
            "ThrCopy TiledCopy autovec_copy basic_copy copy make_cotiled_copy make_tiled_copy make_tiled_copy_A "
            "make_tiled_copy_B make_tiled_copy_C make_tiled_copy_C_atom make_tiled_copy_D make_tiled_copy_S "
            "make_tiled_copy_tv prefetch copy_atom_call=copy"
        ),
        "tilefold.builder.tensors.copy_atoms": "make_copy_atom",
        "tilefold.builder.tensors.fragments": (
            "ReductionOp empty_like full full_like ReductionKind=ReductionOp TensorSSA=Vec"
        ),
        "tilefold.builder.tensors.layouts": (
            "assume blocked_product ceil_div compatible complement congruent coshape cosize crd2crd crd2idx "
            "depth downcast flat_product get_divisibility idx2crd is_static left_inverse logical_product "
            "make_composed_layout make_identity_layout make_layout make_layout_like make_layout_tv "
            "make_ordered_layout make_swizzle max_alignment max_common_layout max_common_vector nullspace "
            "product product_each product_like raked_product rank recast_layout repeat repeat_as_tuple "
            "repeat_like replace right_inverse round_up shape shape_div size size_in_bytes slice_and_offset "
            "stride tile_to_shape tiled_product unflatten upcast weakly_congruent with_shape zip_layout "
            "zip_layouts zipped_product is_congruent=congruent is_weakly_congruent=weakly_congruent"
        ),
        "tilefold.builder.tensors.gemm": "gemm mma_atom_call=gemm",
        "tilefold.builder.tensors.allocation": (
            "basic_copy_if clear fill make_fragment_like make_rmem_tensor make_rmem_tensor_like "
            "make_smem_tensor make_fragment=make_rmem_tensor"
        ),
        "tilefold.builder.tensors.nvgpu": "Trait make_atom",
        "tilefold.builder.tensors.tiled_mma": "ThrMma TiledMma make_mma_atom make_tiled_mma MmaAtom=TiledMma",
        "tilefold.builder.tensors.modes": (
            "append coalesce dice domain_offset filter filter_zeros flatten get group_modes prepend select slice_ take"
        ),
        "tilefold.builder.tensors.pointers": "alias make_tensor recast_ptr recast_tensor",
        "tilefold.builder.tensors.raw_pointers": "Address",
        "tilefold.builder.tensors.structs": "native_struct struct union",
        "tilefold.builder.tensors.tensors": "CoordTensor Pointer Tensor",
        "tilefold.builder.tensors.tma": "TmaAtom make_layout_image_mask",
        "tilefold.builder.tensors.tuples": (
            "E ScaledBasis append_ones basis_get basis_value filter_tuple find find_if flatten_to_tuple front "
            "get_nonswizzle_portion get_swizzle_portion has_underscore is_major leading_dim prepend_ones "
            "transform_apply transform_leaf tuple_cat unwrap wrap"
        ),
        "tilefold.builder.tensors.views": (
            "bounds composition elem_less flat_divide inner_partition local_partition local_tile logical_divide "
            "make_identity_tensor outer_partition rasterize tiled_divide zipped_divide"
        ),
        "tilefold.layout.algebra.core": "ComposedLayout Layout",
        "tilefold.layout.algebra.swizzle": "Swizzle",
        "tilefold.runtime.arrays.signature": "Constexpr Dynamic dynamic",
        ".": "arch math nvgpu typing experimental pipeline runtime testing utils",
        ".autotuned_kernel": "Tuned TunedCall autotune",
        ".compiled_kernel": "CompiledKernel",
        ".drawing": "save_picture",
        ".dtypes": (
            "BFloat16 Boolean Float8E4M3FN Float8E5M2 Float16 Float32 Float64 Int8 Int16 Int32 Int64 TFloat32 "
            "Uint8 Uint16 Uint32 Uint64"
        ),
        ".host.compiler": "Compiler compile",
        ".host.options": (
            "DumpDir EnableAssertions EnableTVMFFI FrontendNext GenerateLineInfo GPUArch KeepCUBIN KeepPTX KeepSASS "
            "LinkLibraries NvdisasmOptions OptLevel PtxasOptions"
        ),
        ".nvgpu.cpasync": "CopyAtom CopyOp",
        ".runtime": "SymInt from_dlpack make_ptr sym_int sym_int32 sym_int64",
        ".tensor_spec": "TensorSpec",
        ".torch_operators": "torch_op",
        ".tuning": "Candidate Tuning",
        ".typing": "Coord Integer IntTuple Numeric Shape Stride Tile Tiler",
    }
)
"""The names by their module, in the notation of `on_demand`. A program waits for those that it uses: with all of them
`import tilefold.cute` took twice as long. `_pack_shape` and `_pack_tile` are the names by which public programs hand
shapes and tilers to views.
"""
