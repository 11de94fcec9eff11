# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of Triton's tutorials at small sizes, compiled without a GPU, against references of our own in NumPy.

Of a file of the checkout, its imports of Triton and its functions under `triton.jit` are executed; blocks and warps are
those of the table here instead of those that autotuning tries.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilefold.triton

from .case import Case, Checked

FOLDER = "python/tutorials"
f16, f32 = np.float16, np.float32


@dataclass(frozen=True)
class Tutorial:
    """A kernel of a tutorial: its arguments, its options, and the arrays that it writes, by their places."""

    file: str
    name: str
    grid: tuple[int, ...]
    given: Callable[[np.random.Generator], Sequence[Any]]
    wanted: Callable[[Sequence[Any]], Mapping[int, Any]]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    targets: tuple[str, ...] = ("sm_80", "sm_90a")
    tolerance: float = 1e-3
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    """The code of a fault that the kernel has on a target."""


def _f(rng: np.random.Generator, *shape: int, dtype: Any = f32) -> NDArray[Any]:
    return rng.standard_normal(shape).astype(dtype)


def _product(rng: np.random.Generator, m: int, n: int, k: int) -> list[Any]:
    a, b, c = _f(rng, m, k, dtype=f16), _f(rng, k, n, dtype=f16), np.zeros((m, n), f16)
    return [a, b, c, m, n, k, k, 1, n, 1, n, 1]


def _norm(a: Any) -> tuple[Any, Any, Any]:
    """Normalised rows, their means and the inverses of their deviations."""
    mean, deviation = a.mean(1, keepdims=True), 1 / np.sqrt(a.var(1, keepdims=True) + 1e-5)
    return (a - mean) * deviation, mean[:, 0], deviation[:, 0]


def _norm_given(rng: np.random.Generator) -> list[Any]:
    x = _f(rng, 4, 200)
    _, mean, deviation = _norm(x)
    partial_sums = [np.zeros((2, 200), f32) for _ in range(2)]
    outputs = [np.zeros_like(x), _f(rng, 4, 200), *partial_sums, x, _f(rng, 200), mean, deviation]
    return [*outputs, np.zeros(4, np.int32), 200, 200]


def _norm_wanted(a: Sequence[Any]) -> Mapping[int, Any]:
    hat, weighted = (a[4] - a[6][:, None]) * a[7][:, None], a[1] * a[5]
    c1, c2 = (hat * weighted).mean(1, keepdims=True), weighted.mean(1, keepdims=True)
    weights = a[1] * hat
    return {
        0: (weighted - hat * c1 - c2) * a[7][:, None],
        2: np.stack([weights[0::2].sum(0), weights[1::2].sum(0)]),
        3: np.stack([a[1][0::2].sum(0), a[1][1::2].sum(0)]),
    }


def _scores(q: Any, k: Any, scale: float, causal: bool) -> Any:
    made = q.astype(f32) @ k.astype(f32).swapaxes(-1, -2) * scale
    return np.where(np.tril(np.ones(made.shape[-2:], bool)), made, -np.inf) if causal else made


def _attention_given(rng: np.random.Generator) -> list[Any]:
    q, k, v = (_f(rng, 1, 2, 64, 32, dtype=f16) for _ in range(3))
    return [0.25, np.zeros((1, 2, 64), f32), 1, 2, q, k, v, np.zeros_like(q), 64]


def _attention(a: Sequence[Any], causal: bool) -> Mapping[int, Any]:
    scores = _scores(a[4], a[5], a[0], causal)
    e = np.exp(scores)
    logarithm = np.log2(e.sum(-1))
    return {7: (e / e.sum(-1, keepdims=True)) @ a[6].astype(f32), 1: logarithm}


def _attention_options(causal: bool) -> Mapping[str, Any]:
    stage = {"STAGE": 3 if causal else 1, "warp_specialize": False, "IS_HOPPER": False, "FP8_OUTPUT": False}
    return {"HEAD_DIM": 32, "BLOCK_M": 64, "BLOCK_N": 32, **stage, "num_warps": 4, "num_stages": 2}


def _backward_given(rng: np.random.Generator) -> list[Any]:
    q, k, v, do = (_f(rng, 1, 1, 64, 32, dtype=f16) for _ in range(4))
    scores = _scores(q, k, 0.25, True)
    e = np.exp(scores)
    p = e / e.sum(-1, keepdims=True)
    delta = ((p @ v.astype(f32)) * do.astype(f32)).sum(-1)
    scaled = (k.astype(f32) * 0.25 * np.log2(np.e)).astype(f16)
    zeros = [np.zeros_like(q) for _ in range(3)]
    sums = np.log2(e.sum(-1)).astype(f32)
    return [q, scaled, v, 0.25, do, *zeros, sums, delta.astype(f32), 2048, 2048, 32, 1, 1, 64]


def _backward_wanted(a: Sequence[Any]) -> Mapping[int, Any]:
    q, k, v, do = (x.astype(f32) for x in (a[0], a[1], a[2], a[4]))
    k = k / (0.25 * np.log2(np.e))
    scores = _scores(q, k, 0.25, True)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - a[9][..., None]) * 0.25
    return {5: ds @ k, 6: ds.swapaxes(-1, -2) @ q, 7: p.swapaxes(-1, -2) @ do}


_TILE = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 2, "num_warps": 4}
_FEW = {"num_warps": 2}


def _softmax(a: Any) -> Any:
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


TUTORIALS = (
    Tutorial(
        "01-vector-add.py", "add_kernel", (4,), lambda r: [_f(r, 1000), _f(r, 1000), _f(r, 1000), 1000],
        lambda a: {2: a[0] + a[1]}, {"BLOCK_SIZE": 256},
    ),
    Tutorial(
        "02-fused-softmax.py", "softmax_kernel", (2,), lambda r: [_f(r, 5, 100), _f(r, 5, 100), 100, 100, 5, 100],
        lambda a: {0: _softmax(a[1])}, {"BLOCK_SIZE": 128, "num_stages": 2, **_FEW},
    ),
    Tutorial(
        "03-matrix-multiplication.py", "matmul_kernel", (4,), lambda r: _product(r, 128, 128, 64),
        lambda a: {2: a[0].astype(f32) @ a[1]}, {**_TILE, "ACTIVATION": "", "num_stages": 3}, tolerance=1e-2,
    ),
    Tutorial(
        "03-matrix-multiplication.py", "matmul_kernel", (4,), lambda r: _product(r, 100, 72, 48),
        lambda a: {2: np.maximum(x := a[0].astype(f32) @ a[1], 0.01 * x)},
        {**_TILE, "ACTIVATION": "leaky_relu", "num_stages": 2}, tolerance=1e-2,
    ),
    Tutorial(
        "04-low-memory-dropout.py", "_dropout", (2,),
        lambda r: [_f(r, 200), r.integers(0, 2, 200, np.int32), _f(r, 200), 200, 0.5],
        lambda a: {2: np.where(a[1], a[0] / 0.5, 0)}, {"BLOCK_SIZE": 128},
    ),
    Tutorial(
        "04-low-memory-dropout.py", "_seeded_dropout", (2,), lambda r: [_f(r, 200), _f(r, 200), 200, 0.0, 123],
        lambda a: {1: a[0]}, {"BLOCK_SIZE": 128},
    ),
    Tutorial(
        "05-layer-norm.py", "_layer_norm_fwd_fused", (3,),
        lambda r: [_f(r, 3, 200), _f(r, 3, 200), _f(r, 200), _f(r, 200), _f(r, 3), _f(r, 3), 200, 200, 1e-5],
        lambda a: dict(zip((1, 4, 5), (_norm(a[0])[0] * a[2] + a[3], *_norm(a[0])[1:]), strict=True)),
        {"BLOCK_SIZE": 256, **_FEW},
    ),
    Tutorial(
        "05-layer-norm.py", "_layer_norm_bwd_dx_fused", (4,), _norm_given, _norm_wanted,
        {"GROUP_SIZE_M": 2, "BLOCK_SIZE_N": 256, **_FEW}, faults={"sm_80": "E3205", "sm_90a": "E3205"},
    ),
    Tutorial(
        "05-layer-norm.py", "_layer_norm_bwd_dwdb", (2,),
        lambda r: [_f(r, 20, 200), _f(r, 20, 200), _f(r, 200), _f(r, 200), 20, 200],
        lambda a: {2: a[0].sum(0), 3: a[1].sum(0)}, {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 128},
    ),
    *(
        Tutorial(
            "06-fused-attention.py", "_attn_fwd", (1, 2), _attention_given, partial(_attention, causal=causal),
            _attention_options(causal), tolerance=1e-2, faults={"sm_90a": "E3205"},
        )
        for causal in (False, True)
    ),
    Tutorial(
        "06-fused-attention.py", "_attn_bwd_preprocess", (2, 2),
        lambda r: [_f(r, 1, 2, 64, 32, dtype=f16), _f(r, 1, 2, 64, 32, dtype=f16), np.zeros((1, 2, 64), f32), 1, 2, 64],
        lambda a: {2: (a[0].astype(f32) * a[1]).sum(-1)}, {"BLOCK_M": 32, "HEAD_DIM": 32}, tolerance=1e-2,
    ),
    Tutorial(
        "06-fused-attention.py", "_attn_bwd", (1, 1, 1), _backward_given, _backward_wanted,
        {"BLOCK_M1": 32, "BLOCK_N1": 64, "BLOCK_M2": 64, "BLOCK_N2": 32, "BLK_SLICE_FACTOR": 2, "HEAD_DIM": 32,
         "CAUSAL": True, "num_warps": 4, "num_stages": 2},
        tolerance=3e-2,
    ),
    Tutorial(
        "07-extern-functions.py", "asin_kernel", (2,), lambda r: [r.uniform(-1, 1, 200).astype(f32), _f(r, 200), 200],
        lambda a: {1: np.arcsin(a[0])}, {"BLOCK_SIZE": 128},
    ),
    Tutorial(
        "09-persistent-matmul.py", "matmul_kernel", (4,), lambda r: _product(r, 128, 128, 64),
        lambda a: {2: a[0].astype(f32) @ a[1]}, {**_TILE, "num_stages": 2}, tolerance=1e-2,
    ),
    Tutorial(
        "09-persistent-matmul.py", "matmul_kernel_persistent", (2,), lambda r: _product(r, 128, 128, 64),
        lambda a: {2: a[0].astype(f32) @ a[1]}, {**_TILE, "NUM_SMS": 2, "num_stages": 2}, tolerance=1e-2,
    ),
    Tutorial(
        "09-persistent-matmul.py", "matmul_kernel_descriptor_persistent", (2,),
        lambda r: [_f(r, 128, 64, dtype=f16), _f(r, 128, 64, dtype=f16), np.zeros((128, 128), f16), 128, 128, 64],
        lambda a: {2: a[0].astype(f32) @ a[1].T},
        {**_TILE, "EPILOGUE_SUBTILE": 1, "NUM_SMS": 2, "WARP_SPECIALIZE": False, "FLATTEN": False, "num_stages": 2},
        tolerance=1e-2, faults={"sm_90a": "E3205"},
    ),
    Tutorial(
        "11-programmatic-dependent-launch.py", "add_kernel", (4,),
        lambda r: [_f(r, 1000), _f(r, 1000), _f(r, 1000), 1000], lambda a: {2: a[0] + a[1]},
        {"BLOCK_SIZE": 256, "USE_GDC": True}, ("sm_90a",),
    ),
)  # fmt: skip


def cases(checkout: Path) -> Iterator[Case]:
    """The kernels of the table, for each of their targets."""
    for number, tutorial in enumerate(TUTORIALS):
        for target in tutorial.targets:
            file = checkout / FOLDER / tutorial.file
            name = f"{tutorial.file.removesuffix('.py')}: {tutorial.name}, {number}, {target}"
            launches = partial(launched, number, target)
            codes = tuple([tutorial.faults[target]] if target in tutorial.faults else [])
            expected = "faults" if codes else "clean"
            yield Case(name, "", file, expected, tutorial.grid, (), (), codes=codes, launches=launches)


def launched(number: int, target: str, case: Case) -> Iterator[Checked]:
    """A launch of a kernel, whose results are compared, and its check."""
    tutorial = TUTORIALS[number]
    kernel = functions(case.file)[tutorial.name][tutorial.grid]
    given, before = (list(tutorial.given(np.random.default_rng(0))) for _ in range(2))
    if not case.codes:
        tilefold.triton.launch(kernel, *given, target=target, **tutorial.options)
    for place, wanted in () if case.codes else tutorial.wanted(before).items():
        have = given[place].astype(f32)
        wrong = ~np.isclose(have, wanted, rtol=tutorial.tolerance, atol=tutorial.tolerance)
        if wrong.any():
            first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            yield f"argument {place}: {wrong.sum()} of {wrong.size} differ, first {have[first]}", None
            return
    yield "", tilefold.triton.check(kernel, *before, target=target, **tutorial.options)


def functions(file: Path) -> Mapping[str, Any]:
    """The functions under `triton.jit` of a file, without autotuning."""
    tree, kept = ast.parse(file.read_text()), list[ast.stmt]()
    for statement in tree.body:
        names = [ast.unparse(node) for node in getattr(statement, "decorator_list", [])]
        if isinstance(statement, ast.FunctionDef) and any(name.startswith("triton.jit") for name in names):
            jit = ast.copy_location(ast.parse("triton.jit", mode="eval").body, statement.decorator_list[-1])
            statement.decorator_list = [jit]
            kept.append(statement)
        elif isinstance(statement, ast.Import | ast.ImportFrom) and "triton" in ast.unparse(statement):
            kept.append(statement)
    made: dict[str, Any] = {"__name__": file.stem.replace("-", "_")}
    exec(compile(ast.fix_missing_locations(ast.Module(kept, [])), str(file), "exec"), made)
    return made
