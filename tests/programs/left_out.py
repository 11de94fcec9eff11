# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs that are not run, and why: with the table they are all that the folder has."""

from collections.abc import Mapping

_TENSOR_MEMORY = "tcgen05 and tensor memory, which sm_90 lacks"
_DISTRIBUTED = "cute/blackwell/kernel/distributed"
_PRIMITIVES, _TUTORIALS = "experimental/primitives", "dsl_tutorials"

LEFT_OUT: Mapping[str, str] = {
    "cute/blackwell/efc": _TENSOR_MEMORY,
    **{
        f"cute/blackwell/kernel/{name}": _TENSOR_MEMORY
        for name in (
            "attention", "blockscaled_gemm", "blockscaled_grouped_gemm", "blockwise_gemm", "grouped_gemm",
            "mixed_input_gemm", "moe",
        )
    },
    "cute/blackwell/kernel/dense_gemm/dense_gemm_persistent.py": "utils.gemm.sm100, the epilogues",
    "cute/blackwell/kernel/dense_gemm/dense_gemm_persistent_dynamic.py": "testing.add_tensor_init_args",
    **{
        f"{_DISTRIBUTED}/distributed_{name}_blackwell.py": "utils.gemm.sm100, the epilogues, with tensor memory"
        for name in (
            "all_gather_gemm", "gemm_all_reduce", "gemm_all_reduce_lamport", "gemm_all_reduce_ldxstmc",
            "gemm_blockscaled_all_reduce_ldmcxstmc", "gemm_reduce_scatter",
        )
    },
    "cute/blackwell/kernel/reduce": "modules of other programs",
    "cute/blackwell/tutorial/tutorial_gemm/fp16_gemm_4.py": "tensor maps for two sizes of clusters (E2102)",
    **{
        f"cute/blackwell/tutorial/tutorial_gemm/{name}.py": "scale factors of tcgen05.mma as a field of a tiled MMA"
        for name in ("nvfp4_gemm_0", "nvfp4_gemm_1")
    },
    "cute/blackwell/tutorial/tutorial_gemm/utils.py": "a module of other programs",
    **{
        f"cute/blackwell/tutorial/tutorial_tma/{name}.py": "tiles with a swizzle of 128 bytes at multiples of 128 bytes"
        for name in ("tma_v1", "tma_v2")
    },
    "cute/blackwell_geforce/kernel/blockscaled_gemm/blockscaled_gemm_dispatch.py": "a module of other programs",
    "cute/notebooks/tour_to_sol_gemm.ipynb": _TENSOR_MEMORY,
    "cute/tvm_ffi": "TVM FFI",
    "cute_ext/blackwell": _TENSOR_MEMORY,
    f"{_TUTORIALS}/ffi": "C++: an extension of Python is built",
    f"{_TUTORIALS}/fp16_gemm_4_iket.py": _TENSOR_MEMORY,
    f"{_TUTORIALS}/jax/cute_dsl_jax.ipynb": "it asks nvidia-smi; the table has its kernels, cute_dsl_jax_kernels.py",
    **{
        f"{_TUTORIALS}/tvm_ffi/{name}.py": "the package jax-tvm-ffi, which registers the function for GPUs"
        for name in ("aot_use_in_jax", "jit_and_use_in_jax")
    },
    f"{_PRIMITIVES}/reduction/cluster_tmem_reduce.py": "a load from tensor memory beside a tcgen05.cp (E3262)",
    f"{_PRIMITIVES}/tcgen05/1cta_mma_a_from_tmem.py": "elements of Float32 for tf32 (E5002)",
    f"{_PRIMITIVES}/tcgen05/2cta_mma_blockscale_m128.py": "pointers to elements of 4 bits from pointers to bytes",
    f"{_PRIMITIVES}/tcgen05/cp_narrow_a_to_tmem_mma.py": "tcgen05_wait of a text",
    f"{_PRIMITIVES}/tcgen05/slicek_m32n8k128.py": "no fence of the async proxy stands before its tcgen05.mma (E3216)",
    f"{_PRIMITIVES}/tcgen05/tmem_ld_st.py": "print_nd_vector",
    f"{_PRIMITIVES}/tcgen05/tmem_ld_to_stmatrix_transpose.py": "bitcast of vectors",
    f"{_PRIMITIVES}/tutorial/05_minimal_tensor_mma.py": "the end of single warps, primitives.exit",
    f"{_PRIMITIVES}/tutorial/10_minimal_tensor_mma_fp8.py": "each of its warps initialises the mbarriers (E3215)",
    f"{_PRIMITIVES}/tutorial/gemm_M128_N128_Kany_TN_warpspec_multistage.py": "the end of single warps, primitives.exit",
    "experimental/task_scheduling": "the module experimental.task_scheduling, most with tensor memory",
    "helpers": "modules of other programs",
    "utils": "modules of other programs",
}  # fmt: skip
"""By a program, or a folder of programs, what they need, or what they are."""
