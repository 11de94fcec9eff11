# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of `cute.arch`: a kernel that simulates also simulates from its text, with the same results."""

import ast
import inspect
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from tilefold.builder.scalars.values import Value

import tilefold
from tilefold import cute

CALLS = {
    "add_packed_f32x2": "(f, f), (1.0, 2.0)", "add_sat_int": "i, 2**31 - 5", "alloc_smem": "cute.Int32, 32",
    "approx": "'rcp', f", "atomic": "'add', changed.ptr(t), 3", "bfe": "i, 3, 7",
    "bfi": "i, u.to(cute.Int32), 4, 9", "bfind": "i", "bitcast": "f, cute.Int32", "brev": "w", "clz": "i",
    "cvt_f32_tf32": "f", "log2_of_pow2_int": "i & 64 | 1",
    "dp4a": "i, u, 7", "exp": "f", "exp2": "f", "exp_packed_f32x2": "(f, f)", "fma": "f, 2.0, 1.0",
    "calc_packed_f32x2_op": "(f, f), (1.0, 2.0), None, cute.arch.mul_packed_f32x2",
    "fma_packed_f32x2": "(f, f), (1.0, 2.0), (3.0, 4.0)", "fmax": "f, -2.0, abs=True, nan=True, ftz=True",
    "fmin": "f, -2.0, abs=True", "get_dyn_smem_size": "",
    "inline_ptx": "'add.s32 $0, $1, $2;', '=r,r,r', i, 5, results=cute.Int32",
    "isfinite": "f", "isinf": "f", "isnan": "f", "load": "words.iterator + t, cute.Int32",
    "load_acquire": "words.ptr(t)", "log": "f", "log2": "f", "lop3": "i, u.to(cute.Int32), 77, 0xCA",
    "mad24": "i, 5, 3", "make_warp_uniform": "i", "match_any": "i & 3", "match_sync": "arch.FULL_MASK, i & 3",
    "mul24": "i, 5, hi=True", "mul_hi": "i, 5", "mul_packed_f32x2": "(f, f), (1.0, 2.0)", "mul_wide": "i, 5",
    "mulhi": "i, 5", "nanosleep": "10", "normal": "1, i", "pack_float8": "f, 2.0, f, -1.0, cute.Float8E4M3FN",
    "philox": "1, i", "popc": "i", "prmt": "i, u, 0x6034",
    "rcp_approx": "f", "redux_sync": "i, 'add'", "shf": "i, u.to(cute.Int32), 5, 'r'", "shuffle_sync": "i, 3",
    "sext_unpacked_i4_i8_intrinsic": "cute.full(2, i.to(cute.Int8), cute.Int8), 2",
    "shuffle_sync_bfly": "i, 3", "shuffle_sync_down": "i, 3", "shuffle_sync_up": "i, 3",
    "sub_packed_f32x2": "(f, f), (1.0, 2.0)", "sub_sat_int": "i, 2**31 - 5", "uniform": "1, i",
    "vote_all_sync": "i > 0", "vote_any_sync": "i > 0", "vote_ballot_sync": "i > 0", "vote_uni_sync": "i > 0",
    "warp_reduction": "f, cute.ReductionOp.MAX", "warp_reduction_max": "f", "warp_reduction_sum": "f",
    "warp_redux_sync": "i, 'add'",
}  # fmt: skip
"""Arguments: `i`, `u`, `w` and `f` are elements of the thread `t`, of Int32, Uint32, Int64 and Float32."""
EXTRA = {
    "an element": "arch.sext_unpacked_i4_i8_intrinsic(cute.full(2, i.to(cute.Int8), cute.Int8), 2)[1]",
    "brev of 32 bits": "arch.brev(i)", "bfe of 64 bits": "arch.bfe(w, 30, 20)",
    "bfe of unsigned words": "arch.bfe(u, t, 40)",
    "bfe of a start": "arch.bfe(i, t * 9, t)", "bfi of 64 bits": "arch.bfi(w, w + 1, t, 40)",
    "bfi beyond": "arch.bfi(i, i, 40, 3)", "lop3 of all": "arch.lop3(i, i + 1, i + 2, 0x17)",
    "register": "arch.inline_ptx('mov.u32 $0, %tid.x;', '=r', results=cute.Int32)",
    "registers": "arch.inline_ptx('{ .reg .u32 a; mov.u32 a, %lanemask_lt; popc.b32 $0, a; }', "
    "'=r', results=cute.Int32)",
}  # fmt: skip
PROTOCOLS = {
    name
    for name in cute.arch.__all__
    if name.startswith(("mbarrier_", "cp_async_", "cluster_", "atomic_", "store", "red", "fence", "warpgroup_"))
    or name.startswith(
        (
            "setmaxregister_",
            "griddepcontrol_",
            "map",
            "prefetch",
            "barrier",
            "elect_one",
            "sync_",
            "shuffle_sync_op",
            "alloc_tmem",
            "dealloc_tmem",
            "retrieve_tmem_ptr",
            "relinquish_tmem_",
            "clc_",
            "issue_clc_",
            "get_dyn_smem",
        )
    )
} - CALLS.keys()
"""Functions that change memory or order threads: operations, which have no texts of PTX."""
NAMES = [name for name in cute.arch.__all__ if isinstance(getattr(cute.arch, name), FunctionType)]


def _runs(expression: str) -> tuple[np.ndarray, np.ndarray]:
    """What a call gives in each lane, run as it was built, and from its text."""

    @cute.kernel(preprocessor=False)
    def kernel(
        words: cute.Tensor, U: cute.Tensor, W: cute.Tensor, F: cute.Tensor, changed: cute.Tensor, Out: cute.Tensor
    ):
        t, _, _ = cute.arch.thread_idx()
        names = {"cute": cute, "arch": cute.arch, "t": t, "words": words, "changed": changed}
        names |= {"i": words[t], "u": U[t], "w": W[t], "f": F[t]}
        result: Any = eval(expression, names)
        for row, value in enumerate(_parts(result)):
            if isinstance(value, int | float | Value):
                Out[row, t] = cute.Float64(value) if isinstance(value, int | float) else value.to(cute.Float64)

    rng = np.random.default_rng(0)
    numbers = rng.integers(-(2**31), 2**31, 32)
    given = (
        numbers.astype(np.int32), rng.integers(0, 2**32, 32).astype(np.uint32), numbers * 65537,
        rng.standard_normal(32).astype(np.float32),
    )  # fmt: skip
    runs: list[np.ndarray] = []
    changed: list[np.ndarray] = []
    text = None
    for _ in range(2):
        other, out = np.arange(32, dtype=np.int32), np.zeros((4, 32), np.float64)
        arguments = (*(array.copy() for array in given), other, out)
        if text is None:
            call: Any = kernel(*arguments)
            call.launch(grid=1, block=32, device="sim")
            text = kernel.to_cute()
        else:
            call = tilefold.load(text).kernel()(*arguments)
            call.launch(1, device="sim")
        runs.append(out)
        changed.append(other)
    assert (changed[0] == changed[1]).all()
    return runs[0], runs[1]


def _parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)  # pyright: ignore[reportUnknownVariableType]


def _call_of(name: str) -> str | None:
    """A call of a function: of one without arguments as it stands."""
    if name in CALLS or name in PROTOCOLS:
        return f"arch.{name}({CALLS[name]})" if name in CALLS else None
    return f"arch.{name}()"


@pytest.mark.parametrize("expression", [*filter(None, map(_call_of, NAMES)), *EXTRA.values()])
@pytest.mark.sampled(49)
def test_a_kernel_simulates_from_its_text(expression: str) -> None:
    built, loaded = _runs(expression)
    assert built.tobytes() == loaded.tobytes()


def test_every_function_is_called() -> None:
    """Those without an example take no arguments."""
    for name in NAMES:
        if name not in CALLS and name not in PROTOCOLS:
            parameters = inspect.signature(getattr(cute.arch, name)).parameters.values()
            assert all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters), (
                name
            )
    assert CALLS.keys() <= {*NAMES}


def test_no_function_of_ours_has_a_meaning_in_python_alone() -> None:
    """Such a meaning, `sim=`, is for users, and stays behind when a kernel is written."""
    root = Path(__file__).resolve().parents[2]
    given: list[str] = []
    for file in (*(root / "builder").rglob("*.py"), *(root / "tilefold").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and any(
                keyword.arg == "sim" and ast.unparse(keyword.value) != "sim" for keyword in node.keywords
            ):
                given.append(f"{file}:{node.lineno}")
    assert not given
