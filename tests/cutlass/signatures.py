# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public names of CuTe's Python interface and the parameters by which programs call them, as its published API
reference has them (docs.nvidia.com/cutlass, pythonDSL/cute_dsl_api); those behind `*` are given by keyword, and `_` by
its place alone.

Names for sm_100 alone, and those that docs/from-cute-dsl.md lists as missing, are not here.
"""

SIGNATURES = """
cute.E mode
cute.ScaledBasis value mode
cute.TensorSSA.apply_op self op other flip
cute.TensorSSA.broadcast_to self target_shape
cute.TensorSSA.reduce self op init_val reduction_profile
cute.TensorSSA.reshape self shape
cute.TensorSSA.to self dtype
cute.ThrCopy.partition_D self dst
cute.ThrCopy.partition_S self src
cute.ThrMma.partition_A self input_mk
cute.ThrMma.partition_B self input_nk
cute.ThrMma.partition_C self input_mn
cute.TiledCopy.get_slice self thr_idx
cute.TiledCopy.retile self src
cute.TiledMma.get_slice self thr_idx
cute.TiledMma.get_tile_size self mode_idx
cute.TiledMma.make_fragment_A self input
cute.TiledMma.make_fragment_B self input
cute.TiledMma.make_fragment_C self input
cute.TiledMma.partition_shape_A self shape_mk
cute.TiledMma.partition_shape_B self shape_nk
cute.TiledMma.partition_shape_C self shape_mn
cute.all_ x
cute.any_ x
cute.append input elem up_to_rank
cute.append_ones t up_to_rank
cute.arch.activemask
cute.arch.add_sat_int a b
cute.arch.alloc_smem element_type size_in_elems alignment
cute.arch.atomic_add ptr val * sem scope
cute.arch.atomic_and ptr val * sem scope
cute.arch.atomic_cas ptr * cmp val sem scope
cute.arch.atomic_exch ptr val * sem scope
cute.arch.atomic_fmax ptr val * sign_bit sem scope
cute.arch.atomic_fmin ptr val * sign_bit sem scope
cute.arch.atomic_max ptr val * sem scope
cute.arch.atomic_max_float32 ptr value * positive_only
cute.arch.atomic_min ptr val * sem scope
cute.arch.atomic_or ptr val * sem scope
cute.arch.atomic_xor ptr val * sem scope
cute.arch.barrier * barrier_id number_of_threads
cute.arch.barrier_arrive * barrier_id number_of_threads aligned
cute.arch.bfe value start length
cute.arch.bfi replacement value start length
cute.arch.bfind value
cute.arch.block_dim
cute.arch.block_idx
cute.arch.block_idx_in_cluster
cute.arch.block_in_cluster_dim
cute.arch.block_in_cluster_idx
cute.arch.brev value
cute.arch.clock
cute.arch.clock64
cute.arch.cluster_arrive * aligned
cute.arch.cluster_arrive_relaxed * aligned
cute.arch.cluster_dim
cute.arch.cluster_idx
cute.arch.cluster_size
cute.arch.cluster_wait
cute.arch.clz value
cute.arch.cp_async_bulk_commit_group
cute.arch.cp_async_bulk_wait_group group * read
cute.arch.cp_async_commit_group
cute.arch.cp_async_wait_group n
cute.arch.dynamic_smem_size
cute.arch.elect_one
cute.arch.exp2 _
cute.arch.fence_acq_rel_cluster
cute.arch.fence_acq_rel_cta
cute.arch.fence_acq_rel_gpu
cute.arch.fence_acq_rel_sys
cute.arch.fence_proxy kind * space use_intrinsic
cute.arch.fmax a b * abs nan ftz
cute.arch.fmin a b * abs nan ftz
cute.arch.get_dyn_smem element_type alignment
cute.arch.get_dyn_smem_size
cute.arch.globaltimer
cute.arch.globaltimer_lo
cute.arch.grid_dim
cute.arch.lane_idx
cute.arch.lanemask_eq
cute.arch.lanemask_ge
cute.arch.lanemask_gt
cute.arch.lanemask_le
cute.arch.lanemask_lt
cute.arch.load ptr dtype * sem scope level1_eviction_priority cop ss level_prefetch_size
cute.arch.lop3 a b c lut
cute.arch.mad24 a b c hi
cute.arch.make_warp_uniform value
cute.arch.match_sync mask value kind
cute.arch.mbarrier_arrive mbar_ptr peer_cta_rank_in_cluster arrive_count
cute.arch.mbarrier_arrive_and_expect_tx mbar_ptr bytes peer_cta_rank_in_cluster
cute.arch.mbarrier_conditional_try_wait cond mbar_ptr phase
cute.arch.mbarrier_expect_tx mbar_ptr bytes peer_cta_rank_in_cluster
cute.arch.mbarrier_init mbar_ptr cnt
cute.arch.mbarrier_init_arrive_cnt mbar_ptr cnt
cute.arch.mbarrier_init_fence
cute.arch.mbarrier_init_tx_bytes mbar_ptr bytes peer_cta_rank_in_cluster
cute.arch.mbarrier_test_wait mbar_ptr phase
cute.arch.mbarrier_try_wait mbar_ptr phase
cute.arch.mbarrier_wait mbar_ptr phase
cute.arch.mul24 a b hi
cute.arch.mul_hi a b
cute.arch.mul_wide a b
cute.arch.nsmid
cute.arch.nwarpid
cute.arch.physical_warp_id
cute.arch.popc value
cute.arch.prmt src src_reg_shifted prmt_indices
cute.arch.rcp_approx a
cute.arch.red ptr val * op dtype sem scope
cute.arch.setmaxregister_decrease reg_count
cute.arch.setmaxregister_increase reg_count
cute.arch.shf a b shift kind
cute.arch.smid
cute.arch.store ptr val * level1_eviction_priority cop ss sem scope
cute.arch.store_async_dsmem smem_ptr value mbar_ptr peer_cta_rank
cute.arch.sub_sat_int a b
cute.arch.sync_threads
cute.arch.sync_warp mask
cute.arch.thread_idx
cute.arch.vote_all_sync pred mask
cute.arch.vote_any_sync pred mask
cute.arch.vote_ballot_sync pred mask
cute.arch.vote_uni_sync pred mask
cute.arch.warp_idx
cute.arch.warp_redux_sync value kind mask_and_clamp * abs nan
cute.arch.warpgroup_reg_alloc reg_count
cute.arch.warpgroup_reg_dealloc reg_count
cute.assume src divby
cute.autovec_copy src dst * l1c_evict_priority
cute.basic_copy src dst
cute.basic_copy_if pred src dst
cute.basis_get basis t
cute.basis_value e
cute.blocked_product block tiler
cute.ceil_div input tiler
cute.coalesce input * target_profile
cute.complement _ cotarget
cute.composition lhs rhs
cute.copy atom src dst * pred unroll_factor
cute.copy_atom_call atom src dst * pred
cute.crd2idx coord layout
cute.depth a
cute.domain_offset coord tensor
cute.elem_less lhs rhs
cute.empty_like a dtype
cute.fast_divmod_create_divisor divisor
cute.fast_divmod_create_divisor_v2 divisor
cute.filter input
cute.filter_zeros input * target_profile
cute.find t x hierarchical
cute.find_if t pred_fn hierarchical
cute.flat_divide target tiler
cute.flat_product block tiler
cute.flatten a
cute.flatten_to_tuple a
cute.front input
cute.full shape fill_value dtype
cute.full_like a fill_value dtype
cute.gemm atom d a b c
cute.get_divisibility x
cute.get_nonswizzle_portion layout
cute.get_swizzle_portion layout
cute.group_modes input begin end
cute.has_underscore a
cute.idx2crd idx shape
cute.increment_coord coord shape
cute.is_congruent a b
cute.is_major mode stride
cute.is_static x
cute.is_weakly_congruent a b
cute.leading_dim shape stride
cute.left_inverse _
cute.local_partition target tiler index proj
cute.local_tile input tiler coord proj
cute.logical_divide target tiler
cute.logical_product block tiler
cute.make_composed_layout inner offset outer
cute.make_copy_atom op copy_internal_type * num_bits_per_copy
cute.make_cotiled_copy atom atom_layout_tv data_layout
cute.make_fragment_like src dtype
cute.make_identity_layout shape
cute.make_identity_tensor shape
cute.make_layout shape * stride
cute.make_layout_image_mask lay coord mode
cute.make_layout_like _
cute.make_layout_tv thr_layout val_layout
cute.make_mma_atom op
cute.make_ordered_layout shape order
cute.make_ptr dtype value mem_space * assumed_align swizzle_
cute.make_rmem_tensor layout_or_shape dtype
cute.make_rmem_tensor_like src dtype
cute.make_swizzle b m s
cute.make_tensor iterator layout
cute.make_tiled_copy atom layout_tv tiler_mn
cute.make_tiled_copy_A atom tiled_mma
cute.make_tiled_copy_B atom tiled_mma
cute.make_tiled_copy_C atom tiled_mma
cute.make_tiled_copy_C_atom atom mma
cute.make_tiled_copy_D atom tiled_copy
cute.make_tiled_copy_S atom tiled_copy
cute.make_tiled_copy_tv atom thr_layout val_layout
cute.make_tiled_mma op_or_atom atom_layout_mnk permutation_mnk
cute.max_common_layout a b
cute.max_common_vector a b
cute.mma_atom_call _ d a b c
cute.nullspace layout
cute.nvgpu.CopyG2ROp
cute.nvgpu.CopyR2GOp
cute.nvgpu.CopyR2SOp
cute.nvgpu.CopyS2ROp
cute.nvgpu.CopyUniversalOp
cute.nvgpu.MmaUniversalOp abacc_dtype
cute.nvgpu.cpasync.CopyBulkG2SOp
cute.nvgpu.cpasync.CopyBulkS2GOp
cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp
cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp
cute.nvgpu.cpasync.CopyBulkTensorTileS2GOp
cute.nvgpu.cpasync.CopyG2SOp cache_mode
cute.nvgpu.cpasync.CopyReduceBulkTensorTileS2GOp reduction_kind
cute.nvgpu.cpasync.TmaInfo _ tma_tensor smem_layout
cute.nvgpu.cpasync.make_tiled_tma_atom op gmem_tensor smem_layout cta_tiler num_multicast * internal_type
cute.nvgpu.cpasync.tma_partition atom cta_coord cta_layout smem_tensor gmem_tensor
cute.ones_like a dtype
cute.prefetch atom src
cute.prepend input elem up_to_rank
cute.prepend_ones t up_to_rank
cute.print_tensor tensor * verbose
cute.printf _ * end
cute.product a
cute.product_each a
cute.product_like a target_profile
cute.raked_product block tiler
cute.recast_layout new_type_bits old_type_bits src_layout
cute.recast_ptr ptr swizzle_ dtype
cute.recast_tensor src dtype swizzle_
cute.repeat x n
cute.repeat_as_tuple x n
cute.repeat_like x target
cute.right_inverse _
cute.round_up a b
cute.shape_div lhs rhs
cute.size_in_bytes dtype layout
cute.slice_ src coord
cute.slice_and_offset coord src
cute.struct decorated
cute.tile_to_shape atom trg_shape order
cute.tiled_divide target tiler
cute.tiled_product block tiler
cute.unflatten sequence profile
cute.union decorated
cute.unwrap x
cute.where cond x y
cute.wrap x
cute.zeros_like a dtype
cute.zipped_divide target tiler
cute.zipped_product block tiler
pipeline.CooperativeGroup agent size alignment
pipeline.MbarrierArray barrier_storage num_stages agent tx_count
pipeline.MbarrierArray.arrive self index dst
pipeline.MbarrierArray.arrive_and_expect_tx self index tx_count
pipeline.MbarrierArray.arrive_cp_async_mbarrier self index
pipeline.MbarrierArray.arrive_mbarrier self index dst_rank
pipeline.MbarrierArray.get_barrier self index
pipeline.MbarrierArray.mbarrier_init self
pipeline.MbarrierArray.test_wait self index phase
pipeline.MbarrierArray.try_wait self index phase
pipeline.MbarrierArray.wait self index phase
pipeline.NamedBarrier barrier_id num_threads
pipeline.NamedBarrier.arrive self
pipeline.NamedBarrier.arrive_and_wait self
pipeline.NamedBarrier.get_barrier self
pipeline.NamedBarrier.sync self
pipeline.NamedBarrier.wait self
pipeline.PipelineAsync.consumer_get_barrier self state
pipeline.PipelineAsync.consumer_release self state
pipeline.PipelineAsync.consumer_try_wait self state
pipeline.PipelineAsync.consumer_wait self state try_wait_token
pipeline.PipelineAsync.create * num_stages producer_group consumer_group barrier_storage producer_mask consumer_mask \
defer_sync name
pipeline.PipelineAsync.make_consumer self
pipeline.PipelineAsync.make_participants self
pipeline.PipelineAsync.make_producer self
pipeline.PipelineAsync.producer_acquire self state try_acquire_token
pipeline.PipelineAsync.producer_commit self state
pipeline.PipelineAsync.producer_get_barrier self state
pipeline.PipelineAsync.producer_tail self state
pipeline.PipelineAsync.producer_try_acquire self state
pipeline.PipelineOrder.arrive self
pipeline.PipelineOrder.create * depth length group_id producer_group barrier_storage defer_sync name
pipeline.PipelineOrder.wait self
pipeline.PipelineState stages count index phase
pipeline.TmaStoreFence num_stages
pipeline.TmaStoreFence.arrive self
pipeline.TmaStoreFence.arrive_and_wait self
pipeline.TmaStoreFence.tail self
pipeline.TmaStoreFence.wait self
utils.sm90.compute_tile_shape_or_override tile_shape_mnk element_type is_cooperative epi_tile_override
utils.sm90.get_smem_store_op layout_d elem_ty_d elem_ty_acc
utils.sm90.make_smem_layout_a a_layout mma_tiler_mnk a_dtype num_stages
utils.sm90.make_smem_layout_b b_layout mma_tiler_mnk b_dtype num_stages
utils.sm90.make_smem_layout_epi epi_dtype epi_layout epi_tile epi_stage smem_trg_shape smem_order
"""
