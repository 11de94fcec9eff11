# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs that are not run, and why: with the table they are all that the folder has."""

from collections.abc import Mapping

_TUTORIALS = "dsl_tutorials"
_TASKS = "experimental/task_scheduling/blackwell/tutorial"

LEFT_OUT: Mapping[str, str] = {
    **{f"cute/blackwell/efc/common_{name}.py": "a module of other programs" for name in ("dense_gemm_efc", "efc")},
    **{
        f"cute/blackwell/kernel/attention/{name}": reason
        for name, reason in (
            ("mamba2_ssd/mamba2_ssd_reference.py", "a module of other programs"),
            ("mamba2_ssd/mamba2_ssd_tile_scheduler.py", "a module of other programs"),
            ("mixed_input_fmha/prefill_helpers.py", "a module of other programs"),
            ("mla/mla_helpers.py", "a module of other programs"),
        )
    },
    "cute/blackwell/kernel/mixed_input_gemm/mixed_input_host_utils.py": "a module of other programs",
    **{
        f"cute/blackwell/kernel/moe/moe_{name}.py": "a module of other programs"
        for name in ("persistent_scheduler", "sched_extension", "utils")
    },
    "cute/blackwell/kernel/reduce": "modules of other programs",
    "cute/blackwell/tutorial/tutorial_gemm/utils.py": "a module of other programs",
    "cute/blackwell_geforce/kernel/blockscaled_gemm/blockscaled_gemm_dispatch.py": "a module of other programs",
    "cute/tvm_ffi": "TVM FFI",
    f"{_TUTORIALS}/jax/cute_dsl_jax.ipynb": "it asks nvidia-smi; the table has its kernels, cute_dsl_jax_kernels.py",
    **{
        f"{_TASKS}/{name}.py": "it measures a GPU beside torch; the table has its kernel"
        for name in (
            "04_gemm_bf16_advanced_ts/bench_bf16_gemm_ts_vs_pytorch",
            "05_gemm_nvfp4_ts/bench_nvfp4_gemm_ts_vs_pytorch",
            "06_gemm_split_k_fp16_ts/bench_splitk_gemm_ts_vs_pytorch",
        )
    },
    f"{_TASKS}/07_group_pipeline_ts/__init__.py": "a module of other programs",
    "helpers": "modules of other programs",
    "utils": "modules of other programs",
}  # fmt: skip
"""By a program, or a folder of programs, what they need, or what they are."""
