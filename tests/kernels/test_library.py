# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library's functions on the simulator, against NumPy in f64, and without a fault that `check` finds; what they
refuse; and as operators of torch, where it is installed.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn
from tilefold.base.errors import Code, TilefoldError

from tests.kernels.attention_reference import gradients, reference
from tilefold import cute, kernels
from tilefold.cute.kernel import KernelCall
from tilefold.kernels import attentions, losses, norms

SIM: Any = {"device": "sim"}
SHORT = (70, 16), (14, 16), (70, 14), (70, 14)
ROWS, GROUPS = np.zeros(2, np.int32), np.zeros((2, 8, 8), np.float16)
Array = np.ndarray[Any, Any]


def normal(seed: int, *shape: int, dtype: Any = np.float16) -> Array:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def near(given: Array, wanted: Array, error: float = 4e-3) -> None:
    """Fails unless results are near those in f64."""
    np.testing.assert_allclose(given.astype(np.float64), wanted, rtol=error, atol=error)


@contextmanager
def checked() -> Generator[list[str]]:
    """Launches are also checked for faults; the kernels that were."""
    launch, names = KernelCall.launch, list[str]()

    def check(call: KernelCall, grid: Any, block: Any, **options: Any) -> Any:
        report = call.check(grid, block, cluster=options.get("cluster"))
        assert report.passed, str(report)
        names.append(call.kernel.function.__name__)
        return launch(call, grid, block, **options)

    with patch.object(KernelCall, "launch", check):
        yield names


def softmax_of(x: Array) -> Array:
    power = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True).astype(np.float64))
    return power / power.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((3, 100), np.float16),
        ((2, 3, 33), np.float32),
        ((5, 64), bfloat16),
        ((1, 70000), np.float16),
        ((2, 1), bfloat16),
    ],
)
@pytest.mark.sampled(2)
def test_softmax(shape: tuple[int, ...], dtype: Any) -> None:
    x, dy = normal(0, *shape, dtype=dtype), normal(1, *shape, dtype=dtype)
    y = kernels.softmax(x, **SIM)
    near(y, softmax_of(x), 1e-2 if dtype is bfloat16 else 2e-3)
    given, d = y.astype(np.float64), dy.astype(np.float64)
    wanted = given * (d - (given * d).sum(axis=-1, keepdims=True))
    near(norms.SOFTMAX_BACKWARD(y, dy, "sim"), wanted, 1e-2 if dtype is bfloat16 else 2e-3)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("shape", "dtype"), [((3, 100), np.float16), ((20, 33), np.float32), ((2, 2, 520), bfloat16)])
@pytest.mark.sampled(2)
def test_norms(shape: tuple[int, ...], dtype: Any, centred: bool) -> None:
    x, r, dy, dh = (normal(seed, *shape, dtype=dtype) for seed in range(4))
    w, b = (normal(seed, shape[-1], dtype=dtype) for seed in (4, 5))
    error = 4e-2 if dtype is bfloat16 else 4e-3
    total = (x.astype(np.float32) + r.astype(np.float32)).astype(dtype)
    h = total.astype(np.float64)
    c = h - h.mean(axis=-1, keepdims=True) if centred else h
    scale = 1 / np.sqrt((c * c).mean(axis=-1, keepdims=True) + 1e-5)
    normed = c * scale
    if centred:
        y, found = kernels.layer_norm(x, w, b, r, 1e-5, **SIM)
    else:
        y, found = kernels.rms_norm(x, w, r, 1e-5, **SIM)
    near(y, normed * w.astype(np.float64) + (b.astype(np.float64) if centred else 0), error)
    np.testing.assert_array_equal(found, total)

    statistics = h.mean(axis=-1).astype(np.float32) if centred else None, scale[..., 0].astype(np.float32)
    dx, dw, db = norms.NORM_BACKWARD(dy, total, dh, w, b if centred else None, *statistics, "sim")
    d = dy.astype(np.float64)
    g = d * w.astype(np.float64)
    along = (g * normed).mean(axis=-1, keepdims=True)
    wanted = scale * (g - normed * along - (g.mean(axis=-1, keepdims=True) if centred else 0)) + dh.astype(np.float64)
    near(dx, wanted, error)
    rows = tuple(range(len(shape) - 1))
    near(dw, (d * normed).sum(axis=rows), 4 * error)
    if centred:
        near(db, d.sum(axis=rows), 4 * error)


@pytest.mark.parametrize("shape", [(3, 100), (2, 40000)])
def test_cross_entropy(shape: tuple[int, int]) -> None:
    x, grad = normal(0, *shape), normal(1, shape[0], dtype=np.float32)
    target = np.random.default_rng(0).integers(0, shape[1], shape[0])
    target[0] = -100
    exact = x.astype(np.float64)
    lse = np.log(np.exp(exact).sum(axis=1))
    there = np.arange(shape[0]), np.maximum(target, 0)
    near(kernels.cross_entropy(x, target, **SIM), np.where(target < 0, 0, lse - exact[there]), 1e-4)
    slope = softmax_of(x)
    slope[there] -= 1
    dx = losses.CROSS_ENTROPY_BACKWARD(x, target, lse.astype(np.float32), grad, -100, "sim")
    near(dx, slope * np.where(target < 0, 0, grad)[:, None], 2e-3)


def test_swiglu_of_halves_of_one_array() -> None:
    both = normal(0, 3, 5, 48)
    gate, up = (x.astype(np.float64) for x in (both[..., :24], both[..., 24:]))
    near(kernels.swiglu(both[..., :24], both[..., 24:], **SIM), gate / (1 + np.exp(-gate)) * up)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_turns_pairs(interleaved: bool) -> None:
    x, angles = normal(0, 2, 3, 2, 16), normal(1, 9, 8, dtype=np.float32)
    positions = np.array([[0, 4, 8], [1, 1, 2]])
    z = x.astype(np.float64)
    a, b = (z[..., 0::2], z[..., 1::2]) if interleaved else (z[..., :8], z[..., 8:])
    turned = (a + 1j * b) * np.exp(1j * angles.astype(np.float64)[positions])[:, :, None]
    parts = [turned.real, turned.imag]
    wanted = np.stack(parts, -1).reshape(x.shape) if interleaved else np.concatenate(parts, -1)
    near(kernels.rope(x, np.cos(angles), np.sin(angles), positions, interleaved=interleaved, **SIM), wanted)


@pytest.mark.parametrize(("dtype", "most", "error"), [("float8_e4m3fn", 448, 2**-4), ("int8", 127, 0.0)])
@pytest.mark.parametrize("block", [None, 32])
@pytest.mark.sampled(2)
def test_quantize(dtype: str, most: float, error: float, block: int | None) -> None:
    x = normal(0, 5, 96, dtype=bfloat16)
    x[2] = 0
    q, scale = kernels.quantize(x, dtype, block, **SIM)
    blocks = x.astype(np.float64).reshape(5, -1, block or 96)
    wanted = np.maximum(abs(blocks).max(axis=-1), 1e-12) / most
    near(scale.reshape(wanted.shape), wanted, 1e-6)
    steps = wanted[..., None] * (0.5 if dtype == "int8" else 2**-9) + abs(blocks) * error
    assert (abs(q.astype(np.float64).reshape(blocks.shape) * wanted[..., None] - blocks) <= 1.01 * steps).all()


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "target"),
    [
        (5, 24, 40, np.float16, None), (3, 17, 5, bfloat16, None), (9, 16, 32, np.int8, None),
        (70, 71, 93, np.float16, "sm_80"), (70, 14, 16, np.float16, None),
    ],
)  # fmt: skip
@pytest.mark.sampled(2)
def test_gemm_of_any_extents(m: int, n: int, k: int, dtype: Any, target: str | None) -> None:
    a, b = (np.rint(3 * normal(seed, rows, k)).astype(dtype) for seed, rows in ((0, m), (1, n)))
    wanted = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.int32 if dtype is np.int8 else dtype)
    np.testing.assert_array_equal(kernels.gemm(a, b, target=target, **SIM), wanted)


def test_rows_of_a_result_that_no_tma_copy_ends() -> None:
    """A product of more rows than the kernel for few takes, with 28 bytes in a row of the result."""
    a, b, gate, residual = (np.rint(3 * normal(seed, *shape)).astype(np.float16) for seed, shape in enumerate(SHORT))
    wanted = np.maximum(a.astype(np.float32) @ b.astype(np.float32).T + residual[0], 0) * gate + residual
    found = kernels.linear(a, b, residual[0], "relu", gate, residual, **SIM)
    np.testing.assert_array_equal(found, wanted.astype(np.float16))


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
@pytest.mark.sampled(1)
def test_the_epilogue_of_linear(target: str) -> None:
    x, w, bias = normal(0, 2, 3, 64) / 8, normal(1, 24, 64), normal(2, 24)
    gate, residual = normal(3, 2, 3, 24), normal(4, 2, 3, 24)
    scales = np.full((2, 3), 0.5, np.float32), np.full(24, 2.0, np.float32)
    z = x.astype(np.float64) @ w.astype(np.float64).T + bias
    wanted = z / (1 + np.exp(-z)) * gate + residual
    near(kernels.linear(x, w, bias, "silu", gate, residual, *scales, target=target, **SIM), wanted, 1e-2)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.sampled(1)
def test_attention_and_its_gradients(target: str) -> None:
    """test_attention_backward_sm90.py has the gradients by the kernel for Hopper."""
    q, k, v = normal(0, 1, 20, 2, 64), normal(1, 1, 40, 1, 64), normal(2, 1, 40, 1, 64)
    args = q, k, v, True, 0.125, 0, 0.0, None, None, "sim"
    out, lse = attentions.ATTENTION.run(*args, target, False)
    near(out, reference(q, k, v, True))
    do = normal(3, *q.shape)
    given = do, q, k, v, out, lse, True, 0.125, 0, None, None, "sim", target
    found = attentions.ATTENTION_BACKWARD(*given, True)
    for gradient, wanted in zip(found, gradients(q, k, v, do, True), strict=True):
        near(gradient, wanted)


@pytest.mark.parametrize("function", [kernels.attention, kernels.decode_attention])
@pytest.mark.parametrize("window", [5, 100])
@pytest.mark.sampled(2)
def test_a_window_a_cap_and_a_bias(window: int, function: Any) -> None:
    rows = 24 if function is kernels.attention else 3
    q, k, v = normal(0, 1, rows, 2, 64), normal(1, 1, 90, 1, 64), normal(2, 1, 90, 1, 64)

    def slope(batch: Any, head: Any, row: Any, key: Any) -> Any:
        return cute.Float32(key - row + head) * 0.1

    given = function(q, k, v, causal=True, window=window, softcap=4.0, bias=slope, **SIM)
    row, key = np.indices((rows, 90))
    for head in range(2):
        scores = q[0, :, head].astype(np.float64) @ k[0, :, 0].astype(np.float64).T / 8
        seen = (key <= row + 90 - rows) & (key > row + 90 - rows - window)
        scores = np.where(seen, 4 * np.tanh(scores / 4) + 0.1 * (key - row + head), -np.inf)
        near(given[0, :, head], softmax_of(scores) @ v[0, :, 0].astype(np.float64))


@pytest.mark.parametrize("length", [None, 33])
@pytest.mark.sampled(1)
def test_few_rows_take_the_kernel_for_decoding(length: int | None) -> None:
    q, k, v = normal(0, 1, 1, 4, 64), normal(1, 1, 70, 1, 64), normal(2, 1, 70, 1, 64)
    if length is None:
        near(kernels.attention(q, k, v, **SIM), reference(q, k, v, False))
    else:
        out = kernels.decode_attention(q, k, v, np.array([length], np.int32), **SIM)
        near(out, reference(q, k[:, :length], v[:, :length], False))


@pytest.mark.parametrize("kind", ["groups", "scales"])
@pytest.mark.sampled(1)
def test_products_of_groups_and_with_scales_of_blocks(kind: str) -> None:
    if kind == "groups":
        a, b = normal(0, 2, 16, 64), normal(1, 2, 20, 64)
        d = kernels.grouped_gemm(a, b, np.array([16, 3], np.int32), **SIM)
        wanted = np.einsum("gmk,gnk->gmn", a.astype(np.float64), b.astype(np.float64))
        near(d[0], wanted[0], 1e-2)
        near(d[1, :3], wanted[1, :3], 1e-2)
    else:
        x, w = normal(2, 8, 128, dtype=float8_e4m3fn), normal(3, 20, 128, dtype=float8_e4m3fn)
        scales = np.full((8, 1), 0.5, np.float32), np.full((1, 1), 2.0, np.float32)
        near(kernels.scaled_gemm(x, w, *scales, **SIM), x.astype(np.float64) @ w.astype(np.float64).T, 2e-1)


def test_check_finds_no_fault() -> None:
    x, w = normal(0, 3, 40), normal(1, 40)
    with checked() as names:
        kernels.softmax(x, **SIM)
        kernels.layer_norm(x, w, w, x, **SIM)
        norms.NORM_BACKWARD(x, x, x, w, w, np.zeros(3, np.float32), np.ones(3, np.float32), "sim")
        kernels.cross_entropy(x, np.array([0, 5, 39]), **SIM)
        kernels.swiglu(x, x, **SIM)
        kernels.quantize(x, "int8", **SIM)
    assert set(names) == {
        "softmax_kernel", "norm_kernel", "norm_backward_kernel", "add_rows_kernel", "cross_entropy_kernel",
        "swiglu_kernel", "quantize_kernel",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: kernels.softmax(3), "x is a int"),
        (lambda: kernels.softmax(np.ones((2, 2))), "x has elements of float64"),
        (lambda: kernels.rms_norm(normal(0, 2, 8), normal(0, 4)), r"weight has the shape \(4,\)"),
        (lambda: kernels.layer_norm(normal(0, 1, 70000)), r"x has the shape \(1, 70000\)"),
        (lambda: kernels.cross_entropy(normal(0, 2, 8), np.zeros(3, np.int32)), r"it should have \(2,\)"),
        (lambda: kernels.swiglu(normal(0, 2, 8), normal(0, 2, 4)), r"up has the shape"),
        (lambda: kernels.rope(normal(0, 1, 2, 1, 7), normal(0, 2, 3), normal(0, 2, 3)), "heads of 7 elements"),
        (lambda: kernels.quantize(normal(0, 2, 8), "int4"), "dtype is 'int4'"),
        (lambda: kernels.quantize(normal(0, 2, 8), "int8", 3), "block is 3"),
        (lambda: kernels.gemm(normal(0, 2, 8), normal(0, 2, 4)), "their last extents"),
        (lambda: kernels.gemm(normal(0, 2, 8), normal(0, 2, 8, dtype=np.float32)), "b of float32"),
        (lambda: kernels.linear(normal(0, 2, 8), normal(0, 2, 8), activation="tanh"), "activation is 'tanh'"),
        (lambda: kernels.attention(*(np.zeros((1, 20, 1, 80), np.float16),) * 3, **SIM), "D is 80"),
        (lambda: kernels.attention(*[normal(0, 1, 8, 1, 64)] * 3, window=4), "a window requires causal"),
        (lambda: kernels.grouped_gemm(GROUPS, GROUPS, ROWS, target="sm_80"), "no kernel for sm_80"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, said: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        call()
    assert caught.value.code in (Code.RUN_ARGUMENT, Code.RUN_LAUNCH)
    assert caught.match(said)


def test_nothing_is_computed_of_empty_arrays() -> None:
    assert kernels.softmax(np.empty((0, 8), np.float16), **SIM).shape == (0, 8)
    assert kernels.gemm(np.empty((0, 8), np.float16), normal(0, 4, 8), **SIM).shape == (0, 4)
    assert (kernels.gemm(np.empty((2, 0), np.float16), np.empty((8, 0), np.float16), **SIM) == 0).all()


def test_gradients_and_compilation_by_torch() -> None:
    torch = pytest.importorskip("torch")
    x, w = (torch.from_numpy(normal(seed, *shape)).requires_grad_() for seed, shape in ((0, (3, 40)), (1, (40,))))

    def layer(x: Any, w: Any) -> Any:
        return kernels.softmax(kernels.rms_norm(x, w, **SIM), **SIM)

    def exact(x: Any, w: Any) -> Any:
        return torch.nn.functional.rms_norm(x, x.shape[-1:], w, 1e-6).softmax(-1)

    wide = [y.detach().double().requires_grad_() for y in (x, w)]
    wanted = torch.autograd.grad(exact(*wide).square().sum(), wide)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for run in (layer, compiled):
        found = torch.autograd.grad(run(x, w).float().square().sum(), (x, w))
        for gradient, right in zip(found, wanted, strict=True):
            near(gradient.numpy(), right.numpy())
    assert "torch" in sys.modules
    with torch.device("meta"):
        assert kernels.softmax(torch.empty(2, 8, dtype=torch.float16)).shape == (2, 8)


def test_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    x = normal(0, 3, 40)
    y = kernels.softmax(jax.numpy.asarray(x), **SIM)
    assert isinstance(y, jax.Array)
    near(np.asarray(y), softmax_of(x))
