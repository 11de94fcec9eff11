# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public programs and their arguments: on a GPU their own defaults, on the simulator sizes that fit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program by its path below the folder of examples.

    `arguments` are those on the simulator, `reason` says why they are not the program's defaults; `on_gpu` are
    those on a GPU. `sizes` are texts of the program with those that stand for them on the simulator, where a
    program has its sizes in its text. `races` is False for a program that has a data race by the memory model,
    which the simulator would report: `reason` names it. `fences` is False for one that takes waits for fences of
    tcgen05. `target` is that of the simulated GPU, by default Hopper's. `ends` is what the program says at its end
    on the simulator where it cannot end well there, for the `reason`, and on a GPU if it is the same `anywhere`.
    The program `after` which it reads files is run first, in the same folder. A program that is a module of a
    package (`is_module`) is run by its name below the folder of packages, `root`, and one that writes into folders
    (`writes_to`) has them. Of a file that runs nothing by itself, `call` says what `call.py` calls. A program for
    several GPUs runs on simulated `devices`. Of a program whose blocks wait for each other, so many `resident` blocks
    run at the same time.
    """

    path: str
    arguments: str = ""
    reason: str = ""
    on_gpu: str = ""
    sizes: tuple[tuple[str, str], ...] = ()
    races: bool = True
    fences: bool = True
    target: str = ""
    ends: str = ""
    anywhere: bool = False
    after: str = ""
    is_module: bool = False
    root: str = ""
    writes_to: tuple[str, ...] = ()
    call: str = ""
    devices: int = 1
    resident: int = 1


_LARGE = "the simulator executes about a million operations of threads a second"
_ONCE = "--warmup_iterations 0 --iterations 1"
_AMPERE, _HOPPER, _NOTEBOOKS = "cute/ampere/kernel", "cute/hopper/kernel", "cute/notebooks"
_DISTRIBUTED = "cute/blackwell/kernel/distributed"
_GEFORCE = "cute/blackwell_geforce/kernel"
_TO_MULTICAST = (
    "it stores by a TMA copy to multicast memory, which only multimem instructions may access (PTX ISA, Multimem "
    "Addresses): GPUs do it, PTX does not say what"
)
_PRIMITIVES, _TUTORIALS = "experimental/primitives", "dsl_tutorials"
_TASKS = "experimental/task_scheduling/blackwell/tutorial"
_SM_100 = "sm_100a"
_SM_103 = "blockscaled_gemm/sm103_dense_blockscaled_gemm_persistent"
_GEMMS = "cute/blackwell/tutorial/tutorial_gemm"
_FP16_TILE = (
    "--mnkl 128,128,128,1 --mma_tiler_mn 128,128 --cluster_shape_mn 1,1 --ab_dtype Float16 --c_dtype Float16 "
    "--acc_dtype Float32"
)
_FP16_LARGE = "--mnkl 256,128,64,1 --ab_dtype Float16 --c_dtype Float16 --acc_dtype Float32"
_WAITS = f"{_LARGE}; no fences of tcgen05 stand beside its waits"

PROGRAMS: tuple[Program, ...] = (
    Program(f"{_AMPERE}/elementwise/elementwise_add.py", "--M 32 --N 256", _LARGE),
    Program(
        f"{_AMPERE}/elementwise/elementwise_apply.py",
        f"--M 128 --N 512 {_ONCE}",
        f"{_LARGE}; a tile is 64 x 256, and its stores are not predicated: beyond a row they write the next one, which "
        "other threads write. The program compares the result in the default stream, which does not wait for the one "
        "that the kernel runs in: a race",
        races=False,
    ),
    Program(f"{_AMPERE}/dense_gemm/sgemm.py", f"--mnk 128,128,32 {_ONCE}", _LARGE),
    Program(f"{_AMPERE}/dense_gemm/tensorop_gemm.py", f"--mnkl 128,128,64,1 {_ONCE}", _LARGE),
    Program(
        f"{_AMPERE}/attention/flash_attention_v2.py",
        "--batch_size 1 --seqlen_q 64 --seqlen_k 64 --num_head 1 --head_dim 64 --m_block_size 64 --n_block_size 64 "
        + _ONCE,
        _LARGE,
    ),
    Program(
        f"{_AMPERE}/attention/hstu_attention.py",
        "--batch_size 1 --seqlen_q 64 --seqlen_kv 64 --num_head 1 --head_dim 64 --m_block_size 64 --n_block_size 64",
        _LARGE,
    ),
    Program("cute_ext/ampere/memcpy_simt_universal_copy.py"),
    Program("cute/ampere/tutorial/elementwise_add_autotune.py", f"--M 16 --N 128 {_ONCE}", _LARGE),
    Program(
        f"{_HOPPER}/cta_norm/cta_norm.py",
        "--M 4 --N 1024",
        f"{_LARGE}; all threads of a warp write the same number to one place",
        races=False,
    ),
    Program(
        f"{_HOPPER}/dense_gemm/dense_gemm.py",
        f"--mnkl 512,64,64,1 --tile_shape_mn 64,64 {_ONCE}",
        f"{_LARGE}; with fewer than 8 clusters along M the kernel divides by 0",
    ),
    Program(
        f"{_HOPPER}/dense_gemm/dense_gemm_persistent.py",
        f"--mnkl 128,128,64,1 --tile_shape_mn 128,128 {_ONCE}",
        _LARGE,
    ),
    Program(f"{_HOPPER}/dense_gemm/dense_gemm_fp8_2xacc.py", f"--mnkl 128,128,128,1 {_ONCE}", _LARGE),
    Program(f"{_HOPPER}/dense_gemm/dense_gemm_fp8_gelu_persistent.py", f"--mnkl 128,128,128,1 {_ONCE}", _LARGE),
    Program(
        f"{_HOPPER}/grouped_gemm/grouped_gemm.py",
        "--num_groups 2 --problem_sizes_mnkl (64,64,64,1),(128,64,128,1) --tile_shape_mn 64,64 --iterations 0",
        f"{_LARGE}; what it measures the time with are addresses of tensors that it has freed",
    ),
    Program(
        f"{_HOPPER}/attention/fmha.py",
        f"--q_shape 1,64,1,64 --k_shape 1,128,1,64 {_ONCE}",
        f"{_LARGE}; a thread ends while its last TMA copy may still read shared memory",
        races=False,
    ),
    Program(
        f"{_HOPPER}/attention/fmha.py",
        "--q_shape 1,64,1,64 --k_shape 1,128,1,64 --in_dtype Float8E4M3FN --out_dtype Float8E4M3FN --is_persistent "
        f"--tolerance 0.13 {_ONCE}",
        f"{_LARGE}; the kernel rounds probabilities to fp8, its reference does not, and a step of fp8 is 0.125; "
        "a thread ends while its last TMA copy may still read shared memory",
        races=False,
    ),
    Program(f"{_DISTRIBUTED}/all_reduce_simple.py", "--M 16 --N 512", _LARGE, devices=2),
    Program(f"{_DISTRIBUTED}/all_reduce_two_shot_multimem.py", "--M 128 --N 256", _LARGE, devices=2),
    Program(f"{_DISTRIBUTED}/all_reduce_one_shot_lamport.py", "--M 8 --N 128", _LARGE, devices=2),
    Program(f"{_DISTRIBUTED}/all_reduce_tma.py", "--shape 64,64", _TO_MULTICAST, devices=2, ends="error[E3202]"),
    *(
        Program(
            f"{_DISTRIBUTED}/distributed_gemm_{name}_blackwell.py",
            _FP16_LARGE,
            f"{_WAITS}; flags that two devices change have the scope of one (E3205), which `sys` replaces{more}",
            sizes=(('scope="gpu"', 'scope="sys"'), *texts),
            fences=False,
            target=_SM_100,
            devices=2,
        )
        for name, more, texts in (
            ("all_reduce", "", ()),
            ("all_reduce_ldxstmc", "", ()),
            (
                "reduce_scatter",
                "; the loads that wait for flags are relaxed, so that a fence follows them",
                (("comm_sync_barrier.arrive", "cute.arch.fence_acq_rel_sys(); comm_sync_barrier.arrive"),),
            ),
        )
    ),
    Program(
        f"{_DISTRIBUTED}/distributed_gemm_blockscaled_all_reduce_ldmcxstmc_blackwell.py",
        "--mnkl 256,128,256,1",
        f"{_WAITS}; flags that two devices change have the scope of one (E3205), which `sys` replaces; before they are "
        "set, the kernel waits until TMA stores have read their source, not until they have written (E3206)",
        sizes=(
            ('scope="gpu"', 'scope="sys"'),
            ("c_pipeline.producer_tail()", "cute.arch.cp_async_bulk_wait_group(0, read=False)"),
        ),
        fences=False,
        target=_SM_100,
        devices=2,
    ),
    Program(
        f"{_DISTRIBUTED}/distributed_all_gather_gemm_blackwell.py",
        _FP16_LARGE,
        _WAITS,
        fences=False,
        target=_SM_100,
        devices=2,
    ),
    Program(
        f"{_DISTRIBUTED}/distributed_gemm_all_reduce_lamport_blackwell.py",
        f"{_FP16_LARGE} --use_tma_store",
        _TO_MULTICAST,
        races=False,
        fences=False,
        target=_SM_100,
        devices=2,
        ends="error[E3202]",
    ),
    Program("cute/blackwell/kernel/rmsnorm/rmsnorm.py", "--M 4 --N 1024", _LARGE),
    Program(f"{_GEFORCE}/dense_gemm/dense_gemm.py", f"--mnkl 128,128,128,1 {_ONCE}", _LARGE),
    *(
        Program(f"{_GEFORCE}/blockscaled_gemm/dense_blockscaled_gemm_persistent_{schedule}.py", arguments, _LARGE)
        for schedule, arguments in (
            ("cooperative", f"--mnkl 128,128,256,1 {_ONCE}"),
            ("cooperative", f"--mnkl 128,128,128,1 --sf_dtype Float8E8M0FNU --sf_vec_size 32 {_ONCE}"),
            (
                "cooperative",
                "--mnkl 128,128,128,1 --a_dtype Float8E4M3FN --b_dtype Float8E4M3FN --sf_dtype Float8E8M0FNU "
                f"--sf_vec_size 32 {_ONCE}",
            ),
            ("pingpong", f"--mnkl 128,128,256,1 {_ONCE}"),
        )
    ),
    *(
        Program(f"{_GEMMS}/{name}.py", f"--mnk {size}", _LARGE, target=_SM_100)
        for name, size in (
            ("fp16_gemm_0", "128,256,128"), ("fp16_gemm_3", "512,512,128"), ("fp16_gemm_4", "512,512,128"),
        )
    ),
    Program(f"{_GEMMS}/nvfp4_gemm_0.py", "--mnkl 128,256,256,1", _LARGE, target=_SM_100),
    Program(
        f"{_GEMMS}/nvfp4_gemm_1.py",
        "--mnkl 256,256,256,1",
        f"{_LARGE}; nothing orders the initialisation of the mbarrier at which a pair frees tensor memory before its "
        "peer arrives there",
        races=False,
        target=_SM_100,
    ),
    Program(f"{_TUTORIALS}/fp16_gemm_4_iket.py", "--mnk 512,512,128", _WAITS, fences=False, target=_SM_100),
    *(
        Program(
            f"{_GEMMS}/{name}.py",
            "--mnk 256,256,128",
            f"{_LARGE}; where a cluster has more tiles, the simulator reports the reuse of an accumulator (E3262)",
            target=_SM_100,
        )
        for name in ("fp16_gemm_3_1", "fp16_gemm_5", "fp16_gemm_6")
    ),
    *(
        Program(
            f"cute/blackwell/kernel/dense_gemm/{name}.py",
            f"{_FP16_TILE} {_ONCE}",
            _LARGE,
            target=_SM_100,
        )
        for name in (
            "dense_gemm", "dense_gemm_alpha_beta_persistent", "dense_gemm_persistent_prefetch",
            "dense_gemm_software_pipeline",
        )
    ),
    *(
        Program(
            f"cute/blackwell/kernel/{path}.py",
            f"{arguments} --mma_tiler_mn 128,128 --cluster_shape_mn 1,1 {_ONCE}",
            f"{_WAITS}; copies of scale factors follow each other in the same columns",
            fences=False,
            target="sm_103a",
        )
        for path, arguments in (
            (_SM_103, "--mnkl 128,128,768,1"),
            (_SM_103, "--mnkl 128,128,1536,1 --sf_vec_size 32"),
            (
                "blockscaled_grouped_gemm/sm103_grouped_blockscaled_gemm",
                "--num_groups 2 --problem_sizes_mnkl (128,128,768,1),(128,256,768,1)",
            ),
        )
    ),
    *(
        Program(f"cute/blackwell/kernel/dense_gemm/{name}.py", f"{sizes} {_ONCE}", _LARGE, target=_SM_100)
        for name, sizes in (
            ("dense_gemm_persistent", _FP16_TILE),
            ("dense_gemm_persistent_dynamic", "--mnkl 128,128,64,1 --ab_dtype Float16 --c_dtype Float16"),
            (
                "dense_gemm_persistent_dynamic",
                "--mnkl 256,128,64,1 --ab_dtype Float16 --c_dtype Float16 --mma_tiler_mn 256,128 --cluster_shape_mn "
                "2,1 --use_2cta_instrs --use_tma_store",
            ),
        )
    ),
    *(
        Program(f"cute/blackwell/kernel/{path}.py", f"{sizes} {_ONCE}", _LARGE, target=_SM_100)
        for path, sizes in (
            ("dense_gemm/dense_gemm_persistent", f"{_FP16_TILE} --use_tma_store"),
            ("blockscaled_gemm/dense_blockscaled_gemm_persistent", "--mnkl 128,128,256,1"),
            ("blockscaled_gemm/dense_blockscaled_gemm_persistent_amax", "--mnkl 128,128,256,1"),
            ("blockscaled_gemm/dense_blockscaled_gemm_persistent_prefetch", "--mnkl 128,128,256,1"),
            (
                "blockscaled_grouped_gemm/grouped_blockscaled_gemm",
                "--num_groups 2 --problem_sizes_mnkl (128,128,256,1),(128,128,256,1)",
            ),
            ("grouped_gemm/grouped_gemm", "--num_groups 2 --problem_sizes_mnkl (128,128,128,1),(128,128,128,1)"),
        )
    ),
    *(
        Program(
            f"cute/blackwell/kernel/blockwise_gemm/{name}.py",
            f"--mnkl 128,128,128,1 {_ONCE}",
            f"{_LARGE}; the threads of a warp copy the same scale to one place",
            races=False,
            target=_SM_100,
        )
        for name in ("blockwise_gemm", "contiguous_grouped_gemm", "masked_grouped_gemm")
    ),
    Program(
        "cute/blackwell/kernel/attention/fmha/fmha.py",
        f"--q_shape 1,256,1,128 --k_shape 1,128,1,128 {_ONCE}",
        f"{_LARGE}; it stores over cells of tensor memory whose load it has not waited for",
        fences=False,
        target=_SM_100,
    ),
    Program(
        "cute/blackwell/kernel/attention/fmha/fmha_bwd.py",
        f"--s_q 128 --s_k 128 --h_q 1 --h_k 1 {_ONCE}",
        f"{_LARGE}; nothing orders the store of the address of tensor memory before all of its loads",
        races=False,
        target=_SM_100,
    ),
    Program(
        "cute/blackwell/kernel/attention/mamba2_ssd/mamba2_ssd.py",
        "--gbehcdln 1,1,1,1,2,64,128,128",
        _LARGE,
        target=_SM_100,
    ),
    Program(
        "cute/blackwell/kernel/attention/mixed_input_fmha/mixed_input_fmha_prefill_d256.py",
        f"--q_shape 1,8,256,256 --k_shape 1,8,128,256 {_ONCE}",
        f"{_LARGE}; a warp frees tensor memory while others may still load from it",
        fences=False,
        target=_SM_100,
    ),
    Program(
        "cute/blackwell/kernel/mixed_input_gemm/mixed_input_gemm.py",
        "--mnkl 128,128,128,1",
        f"{_LARGE}; the warps of one warpgroup ask for different numbers of registers (E3227)",
        sizes=(("self.num_regs_idle_warp = 24", "self.num_regs_idle_warp = 96"),),
        target=_SM_100,
    ),
    *(
        Program(
            f"cute/blackwell/kernel/mixed_input_gemm/{name}.py",
            "--mnkl 128,64,128,3 --iterations 0",
            f"{_LARGE}; the warps of one warpgroup ask for different numbers of registers (E3227)",
            sizes=(
                (f"self.num_regs_tma_warps = {loads}", f"self.num_regs_tma_warps = {mma}"),
                ("self.num_regs_schedule_warp = 64", f"self.num_regs_schedule_warp = {mma}"),
            ),
            target=_SM_100,
        )
        for name, loads, mma in (
            ("grouped_mixed_input_gemm", 80, 96), ("grouped_mixed_input_gemm_acc_scale", 72, 80),
        )
    ),
    *(
        Program(
            f"cute/blackwell/kernel/attention/mla/mla_decode_{dtype}.py",
            f"--batch_size 1 --seq_len_q 1 --seq_len_k 128 --page_size 128 {_ONCE}",
            f"{_WAITS}; half of the threads that store a logarithm of a sum do so beyond their view of 64 (E3202)",
            sizes=(("gLSE[tidx] = lse", "if tidx < 64: gLSE[tidx] = lse"),),
            fences=False,
            target=_SM_100,
        )
        for dtype in ("fp16", "fp8")
    ),
    Program(
        "cute/blackwell/kernel/attention/mixed_input_fmha/mixed_input_fmha_decode.py",
        "--b 1 --seqlen_k 128 --h_q 16 --h_k 1 --d 128 --bs 128 --kv_splits 1",
        f"{_LARGE}; nothing waits for the stores that set the result to 0 before multiplications add to it",
        races=False,
        target=_SM_100,
    ),
    Program(
        "cute/blackwell/kernel/attention/mixed_input_fmha/mixed_input_fmha_prefill_d512.py",
        f"--q_shape 1,8,256,512 --k_shape 1,8,128,512 {_ONCE}",
        "it stores to tensor memory by the parts of a load, whose addresses differ from thread to thread of a warp",
        target=_SM_100,
        ends="error[E0310]",
    ),
    *(
        Program(
            f"{_TASKS}/{path}.py",
            size,
            f"{_LARGE}; the arrival before a pair frees tensor memory has the scope of a block",
            races=False,
            target=_SM_100,
        )
        for path, size in (
            ("04_gemm_bf16_advanced_ts/01_fp16_bf16_gemm_3_cluster", "--mnk 256,256,128"),
            ("04_gemm_bf16_advanced_ts/02_fp16_bf16_gemm_3_cute_cluster", "--mnk 256,256,128"),
            ("05_gemm_nvfp4_ts/01_gemm_nvfp4", "--mnkl 256,256,256,1"),
        )
    ),
    Program(
        f"{_TASKS}/06_gemm_split_k_fp16_ts/01_gemm_split_k_fp16.py",
        "--mnk 128,128,256",
        "each of four warps copies the same bytes to the same place of another block, and no phase is between",
        target=_SM_100,
        ends="error[E3206]",
    ),
    Program(
        f"{_TASKS}/01_copy_basics_ts/01_copy_grid_stride.py",
        reason=_LARGE,
        sizes=(("1 << 24", "1 << 13"), ("num_blocks: int = 256", "num_blocks: int = 4")),
        target=_SM_100,
    ),
    *(
        Program(f"{_TASKS}/{path}.py", arguments, _LARGE, target=_SM_100)
        for path, arguments in (
            ("01_copy_basics_ts/02_copy_tma", "--rows_cols 8,128"),
            ("02_gemm_simple_ts/01_fp16_bf16_gemm_3", "--mnk 128,256,128"),
            (
                "03_persistent_scheduling_dynamic_domain_ts/01_copy_persistent_skip_tile",
                "--rows_cols 2,256",
            ),
            ("03_persistent_scheduling_dynamic_domain_ts/02_copy_varlen_dynamic_domain", "--N 4"),
            ("07_group_pipeline_ts/01_merge_copy", ""),
            ("07_group_pipeline_ts/01_merge_copy", "--no-tma"),
            ("07_group_pipeline_ts/02_merge_gemm", "--mnk 128,16,128"),
            ("07_group_pipeline_ts/03_merge_gemm_resadd", "--mnk 128,16,128"),
            ("07_group_pipeline_ts/03_merge_gemm_resadd", "--mnk 128,16,128 --mode tma"),
        )
    ),
    *(
        Program(
            f"{_TASKS}/07_group_pipeline_ts/04_fork_load_gemm_act.py",
            f"--mnk 128,16,128 --mode {mode}",
            f"{_LARGE}; blocks along N write the same numbers to one place",
            target=_SM_100,
        )
        for mode in ("tma", "gmem")
    ),
    *(
        Program(f"cute_ext/blackwell/{name}.py", arguments, _LARGE, target=_SM_100)
        for name, arguments in (
            ("dense_gemm", "--mnkl 128,256,128,1"),
            ("dense_gemm_2sm", ""),
            ("dense_gemm_ptr_array", "--mnkl 256,128,96,4"),
        )
    ),
    Program(
        "cute_ext/blackwell/dense_block_scaled_gemm.py",
        "--mnkl 128,128,256,1",
        f"{_LARGE}; it copies scales over those of earlier multiplications, whose order PTX does not promise",
        fences=False,
        target=_SM_100,
    ),
    Program(
        "cute_ext/blackwell/dense_gemm_cute_pipeline.py",
        f"{_FP16_TILE} {_ONCE}",
        _LARGE,
        target=_SM_100,
    ),
    *(
        Program(
            f"cute/blackwell/efc/{name}custom_epilogue_dense_gemm.py",
            "--mnkl 128,128,64,1 --ab_dtype Float16",
            _LARGE,
            target=_SM_100,
        )
        for name in ("", "activation_", "synthetic_")
    ),
    *(
        Program(
            f"cute/blackwell/kernel/moe/torch_{name}.py",
            "--tokens 64 --experts 2 --top_k_select 1 --hidden 128 --intermediate 128",
            _LARGE,
            target=_SM_100,
        )
        for name in ("grouped_mm", "scaled_grouped_mm")
    ),
    *(
        Program(
            f"{_GEMMS}/{name}.py",
            "--mnk 256,512,128",
            f"{_LARGE}; nothing orders the initialisation of the mbarrier at which a pair frees tensor memory before "
            "its peer arrives there",
            races=False,
            target=_SM_100,
        )
        for name in ("fp16_gemm_1", "fp16_gemm_2")
    ),
    *(
        Program(f"{_PRIMITIVES}/tcgen05/{name}.py", reason=_WAITS, fences=False, target=_SM_100)
        for name in (
            "1cta_mma_a_from_tmem", "1cta_mma_basic", "1cta_mma_mn_major", "1cta_mma_pipeline", "2cta_mma_basic",
            "2cta_mma_tma_store", "clusterMxN_2cta_mma", "mcast_clusterMxN_1cta_mma", "mcast_clusterMxN_2cta_mma",
            "tmem_ld_st", "tmem_ld_to_stmatrix_transpose",
        )
    ),
    *(
        Program(
            f"{_PRIMITIVES}/tcgen05/cp_narrow_a_to_tmem_mma.py",
            arguments,
            _WAITS,
            arguments,
            fences=False,
            target=_SM_100,
        )
        for arguments in ("", "--a-dtype fp6")
    ),
    Program(
        f"{_PRIMITIVES}/reduction/cluster_tmem_reduce.py",
        reason="a load from tensor memory does not wait for the tcgen05.cp before it",
        races=False,
        target=_SM_100,
    ),
    Program(
        f"{_PRIMITIVES}/tcgen05/2cta_mma_blockscale_m128.py",
        reason="a tcgen05.cp of the pair reads the peer's scales, and only the peer can wait for the copy to them",
        races=False,
        fences=False,
        target=_SM_100,
        ends="error[E3206]",
    ),
    Program(
        f"{_PRIMITIVES}/tcgen05/slicek_m32n8k128.py",
        reason="no fence of the async proxy stands before its tcgen05.mma",
        races=False,
        target=_SM_100,
    ),
    Program(
        f"{_PRIMITIVES}/tma/tma_multicast.py",
        reason="only one warp waits for the copies, and a relaxed cluster barrier passes them on to the others",
        races=False,
        target=_SM_100,
    ),
    *(
        Program(
            f"cute/blackwell/tutorial/tutorial_tma/{name}.py",
            "--M 128 --N 128 --num_warmup 0 --num_iters 1",
            f"{_LARGE}; a thread ends while its last TMA copy may still read shared memory",
            races=False,
        )
        for name in ("tma_v0", "tma_v1")
    ),
    Program(
        "cute/blackwell/tutorial/tutorial_tma/tma_v2.py", "--M 128 --N 128 --num_warmup 0 --num_iters 1", _LARGE
    ),
    *(
        Program(
            f"{_PRIMITIVES}/tutorial/{name}.py",
            reason="each of its warps initialises the mbarriers, and one warp of a warpgroup changes its registers",
            fences=False,
            target=_SM_100,
            ends="error[E3215]",
        )
        for name in (
            "05_minimal_tensor_mma", "10_minimal_tensor_mma_fp8", "gemm_M128_N128_Kany_TN_warpspec_multistage",
        )
    ),
    *(
        Program(f"{_NOTEBOOKS}/{name}.ipynb")
        for name in (
            "async_pipeline", "composed_layout", "cuda_graphs", "cute_layout_algebra", "data_types", "hello_world",
            "print", "tensor", "tensorssa",
        )
    ),
    Program(f"{_NOTEBOOKS}/benchmark_autotune.ipynb", reason=_LARGE, sizes=(("M, N = 1024, 1024", "M, N = 64, 256"),)),
    Program(
        f"{_NOTEBOOKS}/tour_to_sol_gemm.ipynb",
        reason=_LARGE,
        sizes=(("m, n, k = 8192, 8192, 8192", "m, n, k = 128, 256, 256"),),
        target=_SM_100,
    ),
    Program(f"{_NOTEBOOKS}/elementwise_add.ipynb", reason=_LARGE, sizes=(("M, N = 16384, 8192", "M, N = 64, 1024"),)),
    Program(
        f"{_PRIMITIVES}/tutorial/02_naive_gemm.py",
        reason=_LARGE,
        sizes=tuple((f"{x} = torch.randn(1024, 1024)", f"{x} = torch.randn(64, 64)") for x in "abc"),
    ),
    Program(f"{_PRIMITIVES}/tutorial/03_gemm_tiled_smem.py", reason=_LARGE, sizes=(("sz = 1024", "sz = 64"),)),
    *(
        Program(f"{_PRIMITIVES}/{name}.py")
        for name in (
            "async_pipeline", "bar_warp_sync", "barrier_cta_red", "barrier_cta_sync", "basic_types", "cp_async_bulk",
            "cp_async_bulk_prefetch", "cp_async_mbarrier_arrive_cta",
            "cp_async_shared_global", "cp_async_shared_global_swizzled", "elect_sync", "ldmatrix_stmatrix", "mbarrier",
            "mbarrier_lifecycle", "red", "reduction/block_smem_reduce", "reduction/cluster_smem_reduce",
            "reduction/thread_vector_reduce", "reduction/warp_vector_reduce", "redux_sync", "shfl_sync",
            "tma/tma_1cta_mbarrier", "tma/tma_load_to_ldmatrix", "tma/tma_swizzle_modes",
            "tma/tma_tensormap_replace", "tutorial/01_hello_world", "tutorial/04_tma_load",
            "tutorial/07_vectorized_array", "tutorial/08_mlir_value_tree_debug", "tutorial/09_tma_4d_to_2d",
            "vote_sync",
        )
    ),
    *(
        Program(f"{_PRIMITIVES}/{name}.py", reason=reason, races=False)
        for name, reason in (
            ("cp_async_mbarrier_arrive_cluster", "a wait for a peer's arrival does not acquire at scope cluster"),
            ("pipeline_software_fill", "one thread arrives for its warp, and nothing orders the others before it"),
            ("warp_named_barrier", "one thread arrives for its warp, and nothing orders the others before it"),
            ("tma/tma_pipeline_count2", "one thread arrives for its warp, and nothing orders the others before it"),
            ("tma/tma_pipeline_pingpong", "one thread arrives for its warp, and nothing orders the others before it"),
            ("tma/tma_pipeline_warpspec", "one thread arrives for its warp, and nothing orders the others before it"),
            ("tma/tma_load_store", "each warp stores the whole tile, to the same place"),
            ("tma/tma_store", "each warp stores the whole tile, to the same place"),
            ("tutorial/06_softmax", "a warp writes its sum where others may still read the maximum"),
        )
    ),
    Program(
        f"{_PRIMITIVES}/mapa.py",
        reason="a block ends while a peer may still read its shared memory",
        races=False,
        ends="error[E3220]",
    ),
    Program(
        f"{_PRIMITIVES}/tma/tma_pipeline_single_warp.py",
        reason="a copy into a stage begins while slow warps may still read it",
        races=False,
        ends="error[E3206]",
    ),
    Program(
        f"{_TUTORIALS}/ffi/jit_argument.py",
        reason="it builds a module in C++ by CMake, which needs nanobind",
        ends='package configuration file provided by "nanobind"',
        anywhere=True,
    ),
    Program(
        f"{_TUTORIALS}/smem_allocator.py",
        reason="it prints shared memory that nothing has written",
        ends="error[E3204]",
    ),
    *(
        Program(
            f"{_TUTORIALS}/{name}.py",
            reason="it compares sums in f16 to 1e-5, which needs the order in which a GPU's library adds: where the "
            "exact sum is within 3e-6 of the middle of two numbers, a CPU rounds to the other one",
            ends=f"/ {differing}",
        )
        for name, differing in (
            ("call_bypass_dlpack", "2097152 (0.1%)"), ("call_from_jit", "2097152 (0.1%)"),
            ("tvm_ffi/ampere_gemm_with_fake_tensor", "524288 (0.2%)"),
        )
    ),
    *(
        Program(f"{_TUTORIALS}/{name}.py")
        for name in (
            "cooperative_launch", "dataclass_immutable", "dynamic_smem_size", "inline_ptx",
            "launch_completion_and_programmatic_events", "print_latex", "torch_fake_tensor",
            "tvm_ffi/compile_with_fake_tensor", "tvm_ffi/jit_and_use_in_torch",
        )
    ),
    Program(
        f"{_TUTORIALS}/programmatic_dependent_launch.py",
        reason="a race: it reads the result in the default stream, which does not wait for the one of the kernels",
        races=False,
    ),
    *(
        Program(f"{_TUTORIALS}/jax/{name}.py")
        for name in ("cutlass_call_basic", "cutlass_call_sharding", "cute_dsl_jax_kernels")
    ),
    Program(f"{_TUTORIALS}/jax/cutlass_call_export.py", "--M 32 --N 64", _LARGE),
    Program(f"{_TUTORIALS}/jax/elementwise_apply_example.py", "--M 128 --N 512", _LARGE),
    Program(f"{_TUTORIALS}/export/export_to_c.py"),
    Program(f"{_TUTORIALS}/tvm_ffi/aot_export.py", writes_to=("build",)),
    Program(f"{_TUTORIALS}/tvm_ffi/aot_use_in_torch.py", after=f"{_TUTORIALS}/tvm_ffi/aot_export.py"),
    *(
        Program(
            f"{_TUTORIALS}/tvm_ffi/{name}_in_jax.py",
            reason="its function is for JAX's platform gpu, and JAX on the CPU has another one, where a function in "
            "Python needs tensors that own their memory",
            sizes=(('platform="gpu"', 'platform="cpu", pass_owned_tensor=True'),),
            after=after,
        )
        for name, after in (("jit_and_use", ""), ("aot_use", f"{_TUTORIALS}/tvm_ffi/aot_export.py"))
    ),
    Program(f"{_TUTORIALS}/export/load_in_python.py", after=f"{_TUTORIALS}/export/export_to_c.py"),
    Program(
        f"{_TUTORIALS}/tvm_ffi/error_reporting.py",
        reason="it shows the error for an argument of another shape",
        ends="E3106: argument 'a' is (5):(1)",
        anywhere=True,
    ),
)  # fmt: skip
"""The programs that need neither C++ nor other tools nor a second GPU; `LEFT_OUT` has all others."""
