# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.programs.libraries DIR`: runs tests of public libraries on the simulator, at reduced sizes.

DIR has a checkout of each repository at its commit, `DIR/NAME-COMMIT`; those that are missing are reported. Each case
calls one function of the library's own tests, which compares the kernels with torch, in a process of its own. The
libraries need torch, einops and apache-tvm-ffi. FlashAttention's folder has only `flash_attn/cute`, as its package
does, and quack's package beside it. Some cases tell functions of packages by the folder of their file, so tilefold must
be installed, not a checkout. Prints a line for each case, with `--json FILE` writes them, and exits with 1 if one
stops.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from os import environ
from pathlib import Path

from .__main__ import reason_of
from .command_line import finish, parser_of


@dataclass(frozen=True, slots=True)
class Case:
    """A test of a library with its arguments on the simulator, or an expression in the names of its file in place of
    `function`. `target` is that of the simulated GPU, by default Hopper's.

    `ends` is a text of its message where it cannot end well, for the `reason`. `races` is False for a kernel that has a
    data race by the memory model, and `fences` for one without fences of tcgen05, which `reason` names.
    """

    library: str
    file: str
    function: str
    arguments: str = ""
    ends: str = ""
    reason: str = ""
    races: bool = True
    target: str = ""
    fences: bool = True


COMMITS: Mapping[str, tuple[str, str]] = {
    "quack": ("Dao-AILab/quack", "c8ec317"),
    "quack-0.2.2": ("Dao-AILab/quack", "f91b15d"),
    "flash-attention": ("Dao-AILab/flash-attention", "0251105a"),
}
"""The repository and the commit, or tag, of each library."""

_BF16, _ONE = "input_dtype=torch.bfloat16", "use_compile=False"
_FENCES = (
    "softmax_step loads S from tensor memory and stores P over its columns, with no tcgen05.wait::ld in between: the "
    "register dependency orders no accesses to memory (PTX ISA, Register dependencies, same thread)"
)
_CPU = "on the simulator tensors of the CPU stand for those of the GPU, which the test wants to be refused"
_WARP = "the lanes of a warp read a row, shuffle, and write it: PTX orders no memory by shfl.sync"
_SLOT = "a consumer releases a slot that peers fill by st.async without a proxy fence, which quack@77ed2cc adds"

_ATTENTION = (
    "(x := [torch.randn(1, {length}, h, 128, dtype=torch.bfloat16) for h in (2, {heads}, {heads})], "
    "o := flash_attn_func(*x, {mask}), o := o[0] if isinstance(o, tuple) else o, "
    "torch.allclose(o.float(), attention_ref(*x, {mask})[0].float(), atol=0.03))[-1]"
)
"""FlashAttention of a number of queries and keys, of which no test has so few."""
_GRADIENTS = (
    "(x := [torch.randn(1, {length}, h, {depth}, dtype=torch.bfloat16, requires_grad=True) for h in ({heads}, 1, 1)], "
    "o := flash_attn_func(*x, {mask}), o := o[0] if isinstance(o, tuple) else o, g := torch.randn_like(o), "
    "found := torch.autograd.grad(o, x, g), "
    "wanted := torch.autograd.grad(attention_ref(*x, {mask})[0], x, g), "
    "all(torch.allclose(a.float(), b.float(), atol=0.08) for a, b in zip(found, wanted)))[-1]"
)
"""Its gradients for heads of queries that share one of keys."""
_SHARED_HEADS = _GRADIENTS.format(length=64, depth=128, heads=2, mask="causal=True")

_QUACK: Mapping[str, tuple[str, ...]] = {
    "quack": (
        f"test_softmax test_softmax M=3 N=256 input_dtype=torch.float32 {_ONE}",
        f"test_softmax test_softmax_extreme_values input_dtype=torch.float16 {_ONE}",
        f"test_rmsnorm test_rmsnorm_forward_backward M=3 N=192 {_BF16} weight_dtype=torch.float32 eps=1e-6 {_ONE}",
        f"test_rmsnorm test_rmsnorm_qk B=1 S=1 H=4 D=128 {_ONE} {_BF16} use_bias=True use_residual=True",
        "test_rmsnorm test_rmsnorm_fwd_tuned_config num_threads=128 threads_per_row=32 cluster_n=2 reload_from='smem'",
        f"test_layernorm test_layernorm_forward_backward M=3 N=256 {_BF16} eps=1e-6 has_bias=True",
        f"test_cross_entropy test_cross_entropy M=3 N=192 {_BF16} has_weight=True {_ONE}",
        f"test_cross_entropy test_cross_entropy_edge_targets {_ONE}",
        f"test_topk test_topk M=5 N=64 k=16 {_BF16} softmax=True {_ONE}",
        f"test_linear test_rms_final_reduce M=5 N=16 {_BF16}",
        f"test_linear test_gemm m=160 k=96 n=192 {_BF16} A_major='k' B_major='k' out_major='n' swap_ab=False",
        "test_gemm_symmetric test_symmetric_gemm dtype=torch.bfloat16 L=1 M=128 K=64 has_C=True alpha=1.0 beta=0.5 "
        "scalar_kind='float'",
        f"test_linear test_linear in_features=64 out_features=128 has_bias=True {_BF16}",
        f"test_linear test_linear_act in_features=64 out_features=128 has_bias=False {_BF16} activation='relu' "
        "store_preact=True",
        f"test_linear test_gemm_dact n=128 k=64 has_colvec_scale=False colvec_reduce=False {_BF16} activation='relu'",
        f"test_linear test_gemm_add_inplace m=128 k=64 n=128 {_BF16} is_concat_layout_out=False",
        f"test_linear test_gemm_add_inplace_alpha_beta m=128 k=64 n=128 {_BF16} beta=0.5 alpha=2.0 "
        "alpha_beta_type='float' is_concat_layout_out=False",
        f"test_linear test_gemm_gated in_features=64 out_features=128 bias_dtype=None {_BF16} activation='swiglu' "
        "store_preact=True is_concat_layout_B=False",
        f"test_linear test_gemm_dgated n=128 k=64 has_colvec_scale=True colvec_reduce=True {_BF16} activation='swiglu'",
        "test_rotary test_rotary_emb_func inplace=False interleaved=False rotary_fraction=1.0 "
        "seqlen_offsets_type=None dtype=torch.bfloat16",
        "test_epilogue_iface test_reduce_finalized",
        "test_rounding test_e2m1_rs_sw_specials variant='sw'",
        "test_rounding test_e2m1_rs_sw_unbiased_exhaustive variant='sw'",
        "test_rounding test_e2m1_frag_sr_philox_wiring seed=0",
        f"test_softmax test_softmax_numerical_stability {_ONE}",
        "test_topk test_topk M=3 N=64 k=16 input_dtype=torch.float16 softmax=True use_compile=True",
        f"test_topk test_topk M=1 N=128 k=32 input_dtype=torch.float32 softmax=False {_ONE}",
        f"test_rmsnorm test_rmsnorm_weight_offset M=3 N=1024 {_BF16} weight_dtype=torch.float32 {_ONE}",
        f"test_rmsnorm test_rmsnorm_noncontiguous_grad {_BF16} {_ONE}",
        "test_rmsnorm test_rmsnorm_compile_cache",
        f"test_rmsnorm test_rmsnorm_with_bias {_ONE}",
        f"test_rmsnorm test_rmsnorm_with_residual backward_type='both' {_ONE}",
        f"test_rmsnorm test_rmsnorm_prenorm_false {_ONE}",
        f"test_rmsnorm test_rmsnorm_residual_dtype_override {_ONE}",
        "test_rmsnorm test_rmsnorm_degenerate_cluster_config_is_clamped threads_per_row=32",
        "test_rmsnorm test_rmsnorm_bwd_tuned_dispatch",
        f"test_cross_entropy test_cross_entropy_lse_partial M=4 N=1024 {_BF16} {_ONE}",
        f"test_cross_entropy test_cross_entropy_extreme_values input_dtype=torch.float16 {_ONE}",
        f"test_cross_entropy test_cross_entropy_numerical_stability {_ONE}",
        f"test_cross_entropy test_cross_entropy_ignore_index_edge_cases {_ONE}",
        "test_cross_entropy test_cross_entropy_weight_reduction M=7 N=1024 input_dtype=torch.float32 "
        f"reduction='mean' {_ONE}",
        "test_cross_entropy test_cross_entropy_bwd_stride0_dloss",
        "test_cross_entropy test_cross_entropy M=1 N=668 input_dtype=torch.float16 has_weight=False use_compile=True",
        "test_rotary test_rotary_emb_func inplace=True interleaved=True rotary_fraction=0.5 "
        "seqlen_offsets_type=torch.Tensor dtype=torch.float32",
        "test_rotary test_rotary_emb_qkv interleaved=False rotary_fraction=1.0 seqlen_offsets_type=None gqa=True "
        f"{_ONE} dtype=torch.bfloat16",
        f"test_linear_varlen_k test_gemm_varlen_k num_groups=2 m=128 n=128 {_BF16} alpha=1.0 alpha_is_tensor=False "
        "dynamic_scheduler=False gather_A=False permute_batch=False",
        "test_mlp test_mlp in_features=64 hidden_features=64 dtype=torch.bfloat16 activation='gelu_tanh_approx' "
        f"{_ONE}",
        "test_mlp test_mlp in_features=64 hidden_features=64 dtype=torch.bfloat16 activation='gelu_tanh_approx' "
        "use_compile=True",
        f"test_mlp test_mlp in_features=64 hidden_features=64 dtype=torch.bfloat16 activation='swiglu' {_ONE}",
        "test_rotary test_rotary_emb_kv interleaved=False rotary_fraction=1.0 seqlen_offsets_type=None "
        "dtype=torch.bfloat16",
        "test_rotary test_rotary_emb_varlen_func inplace=False interleaved=False rotary_fraction=1.0 "
        "seqlen_offsets_type=None dtype=torch.bfloat16",
        "test_rotary test_rotary_emb_dim_dtype_grid headdim=32 rotary_dim=16 conjugate=True interleaved=True "
        "x_dtype=torch.bfloat16 cossin_dtype=torch.float32",
        "test_rotary test_rotary_emb_vector_width_selection headdim=64 rotary_dim=32 x_offset=0 dtype=torch.bfloat16",
        "test_rotary test_rotary_emb_strided_x_qkv_view interleaved=False inplace=False dtype=torch.bfloat16",
        "test_rotary test_rotary_emb_strided_cos_sin interleaved=False dtype=torch.bfloat16",
        "test_rotary test_rotary_emb_odd_nheads_block_h dtype=torch.bfloat16",
        "test_rotary test_rotary_emb_compile",
        f"test_linear_varlen_m test_gemm_varlen_m num_groups=2 k=64 n=128 {_BF16} B_major='k' alpha=1.0 "
        "alpha_is_tensor=False dynamic_scheduler=False gather_A=False has_bias=False pre_allocate_out=False",
        "test_rmsnorm test_rmsnorm_bwd_tuned_config num_threads=128 threads_per_row=32 cluster_n=1 reload_wdy=None "
        "reload_x=None",
        "test_rmsnorm test_rmsnorm_fwd_tuned_dispatch",
        "test_rmsnorm test_rmsnorm_compile_2d_then_4d",
        f"test_rmsnorm test_rmsnorm_forward_backward M=1 N=192 {_BF16} weight_dtype=None eps=1e-6 use_compile=True",
        f"test_topk test_topk M=1 N=64 k=16 {_BF16} softmax=False {_ONE}",
    ),
    "quack-0.2.2": (
        "test_softmax test_softmax M=3 N=256 input_dtype=torch.float32 function=softmax",
        f"test_layernorm test_layernorm_forward M=3 N=256 {_BF16} eps=1e-5",
        f"test_topk test_topk M=5 N=64 k=4 {_BF16} function=topk",
        f"test_rmsnorm test_rmsnorm_forward_backward M=3 N=192 {_BF16} weight_dtype=torch.float32 eps=1e-6 {_ONE}",
        "test_softmax test_softmax_extreme_values function=softmax input_dtype=torch.float16",
        "test_softmax test_softmax_numerical_stability function=softmax",
        "test_layernorm test_layernormnorm_return_rstd_option return_mean=True return_rstd=True",
        "test_rmsnorm test_rmsnorm_compile_cache",
        f"test_rmsnorm test_rmsnorm_with_bias {_ONE}",
        f"test_rmsnorm test_rmsnorm_with_residual {_ONE}",
        f"test_cross_entropy test_cross_entropy M=3 N=192 {_BF16} {_ONE}",
        f"test_linear test_linear_act in_features=64 out_features=128 {_BF16} activation='relu' store_preact=True",
        f"test_linear test_gemm_add_inplace m=128 k=64 n=128 {_BF16}",
        f"test_topk test_topk M=1 N=64 k=16 {_BF16} function=topk",
        f"test_linear_varlen_m test_gemm_varlen_m num_groups=2 k=64 n=128 {_BF16} B_major='k' alpha=1.0 "
        "alpha_is_tensor=False dynamic_scheduler=False gather_A=False",
        f"test_cross_entropy test_cross_entropy_fwd_with_grad M=3 N=192 {_BF16} inplace_backward=False {_ONE}",
    ),
}
"""The cases of quack that run: the name of a file of `tests`, of its function, and the arguments."""

_VARIABLE = (
    "(c := torch.tensor([0, 40, 64], dtype=torch.int32), "
    "x := [torch.randn(64, h, 64, dtype=torch.bfloat16) for h in (2, 1, 1)], "
    "o := flash_attn_varlen_func(*x, cu_seqlens_q=c, cu_seqlens_k=c, max_seqlen_q=40, max_seqlen_k=40, causal=True), "
    "o := o[0] if isinstance(o, tuple) else o, "
    "r := torch.cat([attention_ref(*[y[None, a:b] for y in x], causal=True)[0][0] for a, b in ((0, 40), (40, 64))]), "
    "torch.allclose(o.float(), r.float(), atol=0.03))[-1]"
)
"""Attention of two sequences of other lengths."""
_CACHE = (
    "has_batch_idx=False has_leftpad=False rotary_fraction=0.0 rotary_interleaved=True has_rotary_seqlens=False "
    "seqlen_new_eq_seqlen_q=True new_kv=False mha_type='mqa' dtype=torch.bfloat16"
)
_RUNS = "", ""
_ROWS = "flash_fwd.py counts the rows of LSE by the columns (taccOgLSE.shape[1]): it reads lse beyond its end"

CASES: tuple[Case, ...] = (
    *(
        Case(library, f"tests/{file}.py", function, " ".join(arguments))
        for library, cases in _QUACK.items()
        for file, function, *arguments in map(str.split, cases)
    ),
    Case(
        "quack",
        "tests/test_layernorm.py",
        "test_layernorm_forward_masks_oob_variance_lanes",
        ends="Tensor-likes are not close",
        reason="the layer_norm of torch for the CPU is 1.3e-4 from the exact result there, where the kernel is 7.5e-5",
    ),
    Case(
        "quack",
        "tests/test_layernorm.py",
        "test_layernorm_input_validation",
        ends="E3106",
        reason="it matches the text of a check of TVM FFI; ours names the argument and both shapes",
    ),
    *(
        Case("quack-0.2.2", f"tests/{file}.py", f"{file}_input_validation", ends="DID NOT RAISE", reason=_CPU)
        for file in ("test_layernorm", "test_rmsnorm")
    ),
    Case(
        "quack-0.2.2",
        "tests/test_rmsnorm.py",
        "test_rmsnorm_large_tensor",
        f"M=5 N=131072 {_BF16} eps=1e-5 {_ONE}",
        ends="E5002",
        reason="a user op looks a value's type up by type(x), which is one class for all floats there",
    ),
    Case(
        "quack",
        "tests/test_rmsnorm.py",
        "test_rmsnorm_input_validation",
        ends="E3106",
        reason="it matches the text of a check of TVM FFI; ours names the argument and both shapes",
    ),
    Case(
        "quack",
        "tests/test_rmsnorm.py",
        "test_amp_bf16_training",
        ends="E3211",
        reason="its arguments, whose sizes are its own, need 6 GB on the host, more than the simulator's budget",
    ),
    *(
        Case("quack-0.2.2", "tests/test_linear.py", name, arguments, ends="E3216", reason=_SLOT)
        for name, arguments in (
            ("test_linear", f"in_features=64 out_features=128 {_BF16}"),
            ("test_gemm_dact", f"n=128 k=64 {_BF16} activation='relu'"),
        )
    ),
    Case(
        "quack-0.2.2",
        "tests/test_linear_cross_entropy.py",
        "test_chunked_linear_cross_entropy",
        f"B_L=8 d=64 V=192 chunk_size=8 reduction='mean' {_BF16}",
        ends="E3205",
        reason=_WARP,
    ),
    Case(
        "flash-attention",
        "tests/cute/test_flash_attn_combine.py",
        "test_flash_attn_combine",
        "dtype=torch.float32 d=64 seqlen=16 num_splits=3",
    ),
    *(
        Case("flash-attention", f"tests/cute/test_{file}.py", function, arguments, ends, reason)
        for file, function, arguments, ends, reason in (
            (
                "flash_attn_combine",
                "test_flash_attn_combine_varlen",
                "varlen_mode='cu_seqlens' num_splits=2 seqlen=8 d=64 dtype=torch.float32",
                *_RUNS,
            ),
            (
                "flash_attn_combine",
                "test_flash_attn_combine_virtual_batch_idx",
                "num_splits=2 seqlen=8 d=64 dtype=torch.bfloat16",
                *_RUNS,
            ),
            ("flash_attn_fast", _VARIABLE, "", *_RUNS),
            (
                "flash_attn",
                "test_flash_attn_kvcache",
                f"seqlen_q=3 seqlen_k=32 d=64 varlen_q=True page_size=None causal=False local=True {_CACHE} "
                "has_learnable_sink=True",
                *_RUNS,
            ),
            (
                "flash_attn",
                "test_flash_attn_kvcache",
                f"seqlen_q=1 seqlen_k=32 d=64 varlen_q=False page_size=4 causal=True local=False {_CACHE} "
                "has_learnable_sink=False",
                "E3216",
                "no proxy fence stands between cp.async of pages and the warpgroup that multiplies them",
            ),
            (
                "block_sparsity",
                "test_fixed_length_masks",
                "seqlen_q=40 seqlen_k=40 tile_m=64 tile_n=64 batch_size=1 nheads=1 mask_name='mini_causal'",
                *_RUNS,
            ),
            ("block_sparsity", "test_edge_cases", "seqlen_q=1 seqlen_k=40 tile_m=64 tile_n=64", *_RUNS),
            (
                "block_sparsity",
                "test_fast_sampling",
                "seqlen_q=64 seqlen_k=64 tile_m=64 tile_n=64 nheads=1 mask_name='block_diagonal'",
                *_RUNS,
            ),
            ("mask_mod", "test_mask_mod_ima_partial_block", "", "E3202", _ROWS),
            (
                "flash_attn",
                "test_flash_attn_small_head_dim",
                "seqlen_q=64 seqlen_k=64 d=32 causal=True dtype=torch.bfloat16",
                "E3202",
                _ROWS,
            ),
        )
    ),
    *(
        Case(
            "flash-attention",
            "tests/cute/test_flash_attn_fast.py",
            _ATTENTION.format(length=length, heads=heads, mask=mask),
            target=target,
            fences=target != "sm_100a",
            reason=_FENCES if target == "sm_100a" else "",
        )
        for target, length, heads, mask in (
            ("sm_80", 64, 2, "causal=False"),
            ("sm_80", 64, 1, "causal=True"),
            ("sm_90a", 64, 1, "window_size=(16, 0)"),
            ("sm_100a", 128, 2, "causal=False"),
            ("sm_100a", 128, 1, "causal=True"),
        )
    ),
    Case("flash-attention", "tests/cute/test_flash_attn_fast.py", _SHARED_HEADS),
    Case(
        "flash-attention",
        "tests/cute/test_flash_attn_fast.py",
        _GRADIENTS.format(length=128, depth=64, heads=1, mask="causal=False"),
        ends="E3227",
        reason="two warps of a warpgroup ask for 24 registers, and two for 88: PTX wants one setmaxnreg of all four",
        target="sm_100a",
        fences=False,
    ),
    Case(
        "flash-attention",
        "tests/cute/test_flash_attn_fast.py",
        _SHARED_HEADS,
        ends="Unsupported compute capability",
        reason="its function for gradients takes sm_90 and later targets",
        target="sm_80",
    ),
    Case(
        "quack",
        "tests/test_linear_cross_entropy.py",
        "test_chunked_linear_cross_entropy",
        f"B_L=8 d=64 V=192 chunk_size=8 reduction='mean' {_BF16}",
        ends="E3205",
        reason=_WARP,
    ),
    Case(
        "flash-attention",
        "tests/cute/test_flash_attn_fast.py",
        "test_flash_attn_output",
        "seqlen_q=64 seqlen_k=64 d=64 causal=True num_splits=1 mha_type='mha' dtype=torch.bfloat16",
        ends="E3202",
        reason=_ROWS,
    ),
    Case(
        "flash-attention",
        "tests/cute/test_flash_attn_fast.py",
        "test_flash_attn_output",
        "seqlen_q=64 seqlen_k=64 d=64 causal=True num_splits=1 mha_type='mqa' dtype=torch.bfloat16",
    ),
)


def run(case: Case, folder: Path, seconds: int) -> tuple[str, str]:
    """Runs a case; how it went (`runs`, `known`, `stops`, `missing`), and the reason."""
    _, commit = COMMITS[case.library]
    file = folder / f"{case.library}-{commit}" / case.file
    if not file.is_file():
        return "missing", f"there is no {file}"
    call = Path(__file__).with_name("call.py")
    command = [sys.executable, "-m", "tilefold.cutlass", str(call), "--", str(file), case.function]
    env = {**environ, "TILEFOLD_SIM_RACES": "1" if case.races else "0", "QUACK_CACHE_ENABLED": "0"}
    env |= {"CUTE_DSL_ARCH": case.target} if case.target else {}
    env |= {} if case.fences else {"TILEFOLD_SIM_TCGEN05_FENCES": "0"}
    try:
        done = subprocess.run(
            [*command, *case.arguments.split()], capture_output=True, text=True, env=env, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return "stops", f"it did not end within {seconds} s"
    if done.returncode and case.ends and case.ends in done.stderr:
        return "known", case.reason
    return ("runs", case.reason) if done.returncode == 0 else ("stops", reason_of(done.stderr or done.stdout))


def main(argv: list[str]) -> int:
    """Runs the cases and prints them; returns the exit status."""
    options = parser_of("tests.programs.libraries", "the folder of the checkouts", "case", 900).parse_args(argv)
    results: list[dict[str, str]] = []
    for case in CASES:
        repository, commit = COMMITS[case.library]
        text = f"{repository}@{commit} {case.file}::{case.function} {case.arguments}".rstrip()
        if options.only in text:
            state, reason = run(case, options.folder, options.seconds)
            results.append({"case": text, "state": state, "reason": reason})
            print(f"{state:8}{text}" + (f"\n          {reason}" if reason else ""), flush=True)
    return finish(results, Counter(result["state"] for result in results), options.json, {"runs", "known"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
