# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of llm.c's folder dev/cuda that are run, with arguments and references."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .tabled_kernel import Draw, Kernel

bf16, f32, f64 = ml_dtypes.bfloat16, np.float32, np.float64
ROUNDED = 2e-2
"""The tolerance of results in bfloat16, which most of the files take for their tensors."""
B, T, NH, HS, C, V = 2, 16, 2, 16, 32, 96
"""Batches, tokens, heads, elements of a head, channels of attention, and words."""
N, WIDE = 6, 256
"""Rows and channels of the kernels on rows."""
SCALE = 0.25
BACKWARD, FORWARD, ROWS = "attention_backward.cu", "attention_forward.cu", "layernorm_backward.cu"


def _z(*shape: int) -> NDArray[f32]:
    return np.zeros(shape, f32)


def _h(*arrays: Any) -> list[Any]:
    """Arrays in bfloat16."""
    return [array.astype(bf16) for array in arrays]


def _w(*arrays: Any) -> list[Any]:
    """Arrays in double precision."""
    return [array.astype(f64) for array in arrays]


def _softmax(x: Any) -> Any:
    e = np.exp(x.astype(f64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _causal(x: Any, scale: float) -> Any:
    """The softmax of the elements up to the diagonal, and zeros behind it."""
    below = np.tril(np.ones(x.shape[-2:], bool))
    return np.where(below, _softmax(np.where(below, x.astype(f64) * scale, -np.inf)), 0)


def _heads(x: Any) -> Any:
    """(B, T, NH, HS) as (B, NH, T, HS), and back."""
    return x.swapaxes(1, 2)


def _attention(qkv: Any) -> tuple[Any, Any, Any]:
    """Products of queries and keys, their softmax, and the output of heads."""
    q, k, v = (_heads(x) for x in np.moveaxis(qkv.reshape(B, T, 3, NH, HS).astype(f64), 2, 0))
    products = q @ k.swapaxes(2, 3)
    att = _causal(products, 1 / np.sqrt(HS))
    return products, att, _heads(att @ v)


def _weights(r: Draw, tokens: int = T) -> Any:
    return _causal(r.f(B * NH, tokens, tokens), 1.0).astype(f32)


def _softmax_backward(a: Sequence[Any], scale: float) -> dict[int, Any]:
    """The gradient of a causal softmax; elements behind the diagonal are not compared."""
    d, att = a[1].astype(f64), a[2].astype(f64)
    return {0: np.tril(att * (d - (np.tril(att * d)).sum(-1, keepdims=True))) * scale}


def _backward(
    number: int, grid: Any, block: int, last: float = NH, instance: str = "", tokens: int = T, fault: str = ""
) -> Kernel:
    """A kernel for the gradient of a causal softmax, with the number of heads, or the scale, as the last argument."""
    scale = 1 / np.sqrt(HS) if last == NH else last
    return Kernel(
        BACKWARD, f"softmax_autoregressive_backward_kernel{number}", grid, block,
        lambda r: [_z(B * NH, tokens, tokens), r.f(B * NH, tokens, tokens), _weights(r, tokens), B, tokens, C, last],
        lambda a: _softmax_backward(a, scale), instance, tolerance=1e-4, fault=fault,
    )  # fmt: skip


def _norm(x: Any) -> tuple[Any, Any, Any]:
    x = x.astype(f64)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    return (x - mean[:, None]) * rstd[:, None], mean, rstd


def _layernorm(name: str, grid: Any, block: Any, shared: int = 0) -> Kernel:
    return Kernel(
        "layernorm_forward.cu", name, grid, block,
        lambda r: [_z(N, WIDE), _z(N), _z(N), r.f(N, WIDE), r.f(WIDE), r.f(WIDE), N, WIDE],
        lambda a: dict(zip((0, 1, 2), (_norm(a[3])[0] * a[4] + a[5], *_norm(a[3])[1:]), strict=True)),
        tolerance=1e-4, shared=shared,
    )  # fmt: skip


def _residual(name: str, grid: Any, block: Any, shared: int = 0, fault: str = "") -> Kernel:
    def wanted(a: Sequence[Any]) -> dict[int, Any]:
        x, y, weight, bias = _w(*a[4:8])
        total = (x + y).astype(bf16)
        normed, mean, rstd = _norm(total)
        return {0: total, 1: normed * weight + bias, 2: mean, 3: rstd}

    return Kernel(
        "fused_residual_forward.cu", name, grid, block,
        lambda r: [
            *_h(_z(N, WIDE), _z(N, WIDE), _z(N), _z(N), r.f(N, WIDE), r.f(N, WIDE), r.f(WIDE), r.f(WIDE)), N, WIDE,
        ],
        wanted, tolerance=ROUNDED, shared=shared, fault=fault,
    )  # fmt: skip


def _layernorm_backward(
    number: int,
    grid: int,
    block: int,
    floats: int,
    *,
    scratch: int = 0,
    template: str = "",
    extra: bool = False,
    fault: str = "",
) -> Kernel:
    """A kernel for the gradients of a layer normalisation; `scratch` floats follow those of weight and bias. The
    fourth takes these and the weight in bfloat16, and from the seventh on all tensors are.
    """

    def given(r: Draw) -> list[Any]:
        x = r.f(N, WIDE)
        _, mean, rstd = _norm(x)
        own = [_z(scratch)] if scratch else []
        sums = [_z(WIDE), _z(WIDE)] if extra else []
        tensor, weight = (bf16 if number > least else f32 for least in (6, 6 if number != 4 else 3))
        gradients = [_z(N, WIDE).astype(tensor), _z(WIDE).astype(weight), _z(WIDE).astype(weight)]
        rows = [r.f(N, WIDE).astype(tensor), x.astype(tensor), r.f(WIDE).astype(weight)]
        return [*gradients, *own, *rows, mean.astype(tensor), rstd.astype(tensor), 1, N, WIDE, *sums]

    def wanted(a: Sequence[Any]) -> dict[int, Any]:
        dout, x, weight, mean, rstd = _w(*a[3 + bool(scratch) :][:5])
        normed = (x - mean[:, None]) * rstd[:, None]
        d = dout.astype(f64) * weight
        dinp = (d - d.mean(1, keepdims=True) - normed * (d * normed).mean(1, keepdims=True)) * rstd[:, None]
        places = (len(a) - 2, len(a) - 1) if extra else (1, 2)
        return {0: dinp, places[0]: (dout * normed).sum(0), places[1]: dout.astype(f64).sum(0)}

    name = f"layernorm_backward_kernel{number}"
    tolerance = ROUNDED if number == 4 or number > 6 else 2e-4
    return Kernel(ROWS, name, grid, block, given, wanted, template, tolerance, fault, 4 * floats)


def _typed(number: int, weight: str = "float", more: str = "") -> str:
    """An instantiation for a type of the weight and its gradients, the rest in floats; `more` are pointers to floats
    among the arguments: a scratchpad, or two at the end.
    """
    scratch, last = (",float*", "") if more == "scratch" else ("", more)
    return (
        f"template __global__ void layernorm_backward_kernel{number}<float,{weight},float,float>(float*,{weight}*,"
        f"{weight}*{scratch},const float*,const float*,const {weight}*,const float*,const float*,int,int,int{last});"
    )


LAST = 2 * N * WIDE + 64


def _rows(file: str, name: str, grid: Any, block: Any, shared: int = 0, fault: str = "") -> Kernel:
    """A softmax of rows."""
    return Kernel(
        file, name, grid, block, lambda r: [_z(N, WIDE), 3 * r.f(N, WIDE), N, WIDE], lambda a: {0: _softmax(a[1])},
        tolerance=1e-4, shared=shared, fault=fault,
    )  # fmt: skip


def _classified(a: Sequence[Any], at: int, width: int = V) -> dict[int, Any]:
    """The gradients and losses of a classifier; `at` is the place of the logits."""
    logits, dlosses, targets = a[at : at + 3]
    probs = _softmax(logits[:, :width])
    one = np.eye(width)[targets]
    padded = _z(*logits.shape)
    padded[:, :width] = (probs - one) * dlosses[:, None]
    return {0: padded, 1: -np.log(probs[np.arange(len(targets)), targets])}


def _classifier(number: int, grid: int, block: int, instance: str = "") -> Kernel:
    """A fused classifier; all but the first can write probabilities, which nobody asks for."""
    probs: list[Any] = [] if number == 1 else [0]
    return Kernel(
        "classifier_fused.cu", f"fused_classifier_kernel{number}", grid, block,
        lambda r: [_z(N, V), _z(N), *probs, 2 * r.f(N, V), r.f(N), r.i(V, N), 1, N, V, V],
        lambda a: _classified(a, 2 + len(probs)), instance, tolerance=1e-4,
    )  # fmt: skip


def _adamw(name: str) -> Kernel:
    def wanted(a: Sequence[Any]) -> dict[int, Any]:
        p, g, m, v = (x.astype(f64) for x in a[:4])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return {0: p - 1e-3 * (m / 0.1 / (np.sqrt(v / 0.001) + 1e-8) + 0.01 * p), 2: m, 3: v}

    return Kernel(
        "adamw.cu", name, 3, 128,
        lambda r: [r.f(300), r.f(300), r.f(300), abs(r.f(300)), 300, 1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01],
        wanted,
    )  # fmt: skip


def _gelu(x: Any) -> Any:
    x = x.astype(f64)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _gelu_slope(x: Any) -> Any:
    x = x.astype(f64)
    u = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    inner = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x * x)
    return 0.5 * (1 + np.tanh(u)) + 0.5 * x * (1 - np.tanh(u) ** 2) * inner


def _bias(
    number: int, grid: Any, block: Any, *, instance: str = "", shared: int = 0, wide: bool = False, more: Any = ()
) -> Kernel:
    """Sums of the columns of a matrix, added to a vector, which is `wide` if it is of floats."""
    return Kernel(
        "matmul_backward_bias.cu", f"matmul_backward_bias_kernel{number}", grid, block,
        lambda r: [*([_z(128)] if wide else _h(_z(128))), *_h(r.f(N * 8, 128)), 1, N * 8, 128, *more],
        lambda a: {0: a[1].astype(f64).sum(0)}, instance, tolerance=1e-4 if wide else ROUNDED, shared=shared,
    )  # fmt: skip


def _encoder(name: str, grid: int, block: int) -> Kernel:
    return Kernel(
        "encoder_forward.cu", name, grid, block,
        lambda r: [*_h(_z(B * T, C)), r.i(V, B * T), *_h(r.f(V, C), r.f(T, C)), B, T, C],
        lambda a: {0: a[2].astype(f64)[a[1]] + np.tile(a[3].astype(f64), (B, 1))}, tolerance=ROUNDED,
    )  # fmt: skip


def _encoder_backward(name: str, grid: int, block: int) -> Kernel:
    def wanted(a: Sequence[Any]) -> dict[int, Any]:
        words = np.zeros((V, C))
        np.add.at(words, a[3], a[2])
        return {0: words, 1: a[2].reshape(B, T, C).astype(f64).sum(0)}

    return Kernel(
        "encoder_backward.cu", name, grid, block,
        lambda r: [_z(V, C), _z(T, C), r.f(B * T, C), r.i(V, B * T), B, T, C], wanted,
    )  # fmt: skip


def _norm_square(number: int, grid: int, block: int) -> Kernel:
    """The sum of the squares of a vector; the last one leaves the sums of blocks."""

    def wanted(a: Sequence[Any]) -> dict[int, Any]:
        squares = a[1].astype(f64) ** 2
        return {0: [squares.reshape(-1, grid, block).sum((0, 2)) if number == 4 else [squares.sum()]]}

    return Kernel(
        "global_norm.cu", f"norm_kernel{number}", grid, block,
        lambda r: [_z(1, grid if number == 4 else 1), r.f(1024), 1024],
        wanted,
        f"template __global__ void norm_kernel{number}<float>(float*,const float*,size_t);", tolerance=1e-3,
    )  # fmt: skip


_FLAG = (
    "template __global__ void matmul_backward_bias_kernel{}<{},{}>({}*,const __nv_bfloat16*,int,int,int,"
    "std::bool_constant<{}>);"
)
_NARROW = ("__nv_bfloat16", "false", "__nv_bfloat16", "false")
_INT3 = "(float*,const float*,const float*,int,int,int,{});"
_SIZED = "template __global__ void softmax_autoregressive_backward_kernel{}<{}>" + _INT3
SHAPE = (B, T, NH, HS)
KERNELS = (
    _adamw("adamw_kernel1"),
    _adamw("adamw_kernel2"),
    Kernel(
        BACKWARD, "permute_kernel", 8, 128,
        lambda r: [*(_z(B, NH, T, HS) for _ in range(3)), r.f(B, T, 3, NH, HS), *SHAPE],
        lambda a: {at: _heads(a[3][:, :, at]) for at in range(3)},
    ),
    Kernel(
        BACKWARD, "permute_kernel_backward", 8, 128,
        lambda r: [_z(B, T, 3, NH, HS), *(r.f(B, NH, T, HS) for _ in range(3)), *SHAPE],
        lambda a: {0: np.stack([_heads(x) for x in a[1:4]], 2)},
    ),
    Kernel(
        BACKWARD, "unpermute_kernel", 8, 128, lambda r: [r.f(B, NH, T, HS), _z(B, T, NH, HS), *SHAPE],
        lambda a: {1: _heads(a[0])},
    ),
    Kernel(
        BACKWARD, "unpermute_kernel_backward", 8, 128, lambda r: [_z(B, NH, T, HS), r.f(B, T, NH, HS), *SHAPE],
        lambda a: {0: _heads(a[1])},
    ),
    Kernel(
        BACKWARD, "softmax_forward_kernel5", 8, 256, lambda r: [_z(B * NH, T, T), SCALE, r.f(B * NH, T, T), B * NH, T],
        lambda a: {0: _causal(a[2], SCALE)}, tolerance=1e-4,
    ),
    _backward(1, (1, B * NH), 32, fault="E3205"),
    _backward(2, (1, B * NH), 32),
    _backward(3, (4, B * NH), 128),
    _backward(4, (2, B * NH), 32),
    _backward(5, (2, B * NH), 32),
    _backward(6, (32, B * NH), 32, NH, _SIZED.format(6, 32, "int"), tokens=32),
    _backward(7, (T, B * NH), 64, SCALE, _SIZED.format(7, 64, "float"), fault="E3205"),
    _backward(8, (T // 4, B * NH), 64, SCALE, _SIZED.format(8, 64, "float"), fault="E3205"),
    Kernel(
        FORWARD, "attention_query_key_kernel1", 8, 128,
        lambda r: [_z(B, NH, T, T), r.f(B, T, 3 * C), B, T, C, NH],
        lambda a: {0: np.where(np.tril(np.ones((T, T), bool)), _attention(a[1])[0] / np.sqrt(HS), -np.inf)},
        tolerance=1e-4,
    ),
    Kernel(
        FORWARD, "attention_softmax_kernel1", 1, 64,
        lambda r: [_z(B, NH, T, T), r.f(B, NH, T, T), B, T, NH], lambda a: {0: _causal(a[1], 1)},
    ),
    Kernel(
        FORWARD, "attention_value_kernel1", 1, 64,
        lambda r: [_z(B, T, NH, HS), _weights(r), r.f(B, T, 3, NH, HS), B, T, C, NH],
        lambda a: {0: _heads(a[1].reshape(B, NH, T, T).astype(f64) @ _heads(a[2][:, :, 2]))}, tolerance=1e-4,
    ),
    Kernel(
        FORWARD, "attention_forward_kernel2", (B, NH), 16,
        lambda r: [
            *(r.f(B, NH, T, HS) for _ in range(3)), T, HS, 1, 1, 16, 16, SCALE, _z(B, NH, T),
            np.full((B, NH, T), -np.inf, f32), _z(B, NH, T, HS),
        ],
        lambda a: {12: _causal(a[0].astype(f64) @ a[1].swapaxes(2, 3), SCALE) @ a[2]},
        tolerance=1e-4, shared=4 * (3 * 16 * HS + 256),
    ),
    Kernel(
        FORWARD, "scale_kernel", 8, 128, lambda r: [r.f(B, NH, T, T), SCALE, B, NH, T],
        lambda a: {0: np.where(np.tril(np.ones((T, T), bool)), a[0] * f32(SCALE), -np.inf)},
    ),
    Kernel(
        FORWARD, "attention_forward_fused1", (4, NH, B), 128,
        lambda r: [_z(B, T, NH, HS), _z(B, NH, T, T), _z(B, NH, T, T), r.f(B, T, 3 * C), B, T, C, NH],
        lambda a: dict(zip((2, 0), _attention(a[3])[1:], strict=True)), fault="E3205",
    ),
    _rows(FORWARD, "softmax_forward_kernel4", N, 64, 16),
    _classifier(1, N, 32),
    _classifier(2, N, 32),
    _classifier(3, N, 32),
    _classifier(4, N, 64),
    _classifier(
        5, N, 64, "template __global__ void fused_classifier_kernel5<true,false>"
        "(float*,float*,float*,const float*,const float*,const int*,int,int,int,int);"
    ),
    Kernel(
        "crossentropy_forward.cu", "crossentropy_forward_kernel1", 1, 32,
        lambda r: [_z(N), _softmax(r.f(N, V)).astype(f32), r.i(V, N), 1, N, V],
        lambda a: {0: -np.log(a[1][np.arange(N), a[2]].astype(f64))},
    ),
    Kernel(
        "crossentropy_softmax_backward.cu", "crossentropy_softmax_backward_kernel1", 5, 128,
        lambda r: [_z(N, V), r.f(N), _softmax(r.f(N, V)).astype(f32), r.i(V, N), 1, N, V],
        lambda a: {0: (a[2] - np.eye(V)[a[3]]) * a[1][:, None]},
    ),
    _encoder("encoder_forward_kernel1", 1, 32),
    _encoder("encoder_forward_kernel2", 8, 128),
    _encoder("encoder_forward_kernel3", 4, 32),
    _encoder_backward("encoder_backward_kernel1", 8, 128),
    _encoder_backward("encoder_backward_kernel2", 1, 32),
    *(
        Kernel(
            file, f"residual_forward_kernel{n}", grid, block, lambda r: [*_h(_z(200), r.f(200), r.f(200)), 200],
            lambda a: {0: np.add(*_w(*a[1:3]))}, tolerance=ROUNDED,
        )
        for file, n, grid, block in (
            ("fused_residual_forward.cu", 1, 2, 128), ("residual_forward.cu", 1, 2, 128),
            ("residual_forward.cu", 2, 1, 32),
        )
    ),
    _residual("fused_residual_forward2", 1, 32, fault="E3202"),
    _residual("fused_residual_forward3", 3, (32, 2)),
    _residual("fused_residual_forward_kernel4", 3, (32, 2)),
    _residual("fused_residual_forward_kernel5", 3, (32, 2), 4 * WIDE * 4),
    _residual("fused_residual_forward_kernel6", 3, (32, 2), 4 * WIDE * 5),
    *(
        Kernel(
            "gelu_forward.cu", f"gelu_forward_kernel{n}", 2, block, lambda r: [*_h(_z(200), r.f(200)), 200],
            lambda a: {0: _gelu(a[1])}, tolerance=ROUNDED,
        )
        for n, block in ((1, 128), (2, 32))
    ),
    *(
        Kernel(
            "gelu_backward.cu", f"gelu_backward{n}", 2, block, lambda r: [*_h(_z(200), r.f(200), r.f(200)), 200],
            lambda a: {0: _gelu_slope(a[1]) * a[2].astype(f64)}, tolerance=ROUNDED,
        )
        for n, block in ((1, 128), (2, 32))
    ),
    _norm_square(1, 2, 64),
    _norm_square(2, 2, 64),
    _norm_square(3, 2, 64),
    _norm_square(4, 2, 64),
    Kernel(
        "global_norm.cu", "global_norm_aggregate_kernel", 1, 64, lambda r: [r.f(50), 50],
        lambda a: {0: np.concatenate([[a[0].astype(f64).sum()], a[0][1:]])}, tolerance=1e-4,
    ),
    _layernorm_backward(1, 1, 32, 0),
    _layernorm_backward(2, 3, 64, 2 * WIDE, template=_typed(2, more=",float*,float*"), extra=True),
    _layernorm_backward(3, 2, 64, 2 * WIDE, template=_typed(3)),
    _layernorm_backward(4, 2, 64, 2 * WIDE, template=_typed(4, "__nv_bfloat16"), fault="E3205"),
    *(
        _layernorm_backward(n, 2, 64, 2 * WIDE + 1, template=_typed(n, more="scratch"), scratch=LAST, fault="E3205")
        for n in (5, 6)
    ),
    *(
        _layernorm_backward(n, 2, 64, floats, scratch=LAST, fault="E3205")
        for n, floats in ((7, 2 * WIDE + 1), (8, 2 * WIDE + 1), (9, 2 * WIDE + 129), (10, 2 * WIDE + 256))
    ),
    _layernorm("layernorm_forward_kernel1", 1, 32),
    _layernorm("layernorm_forward_kernel3", 3, 64),
    _layernorm("layernorm_forward_kernel4", 3, 64),
    _layernorm("layernorm_forward_kernel5", N, 64),
    _layernorm("layernorm_forward_kernel6", 3, (32, 2), 4 * WIDE * 4),
    Kernel(
        "layernorm_forward.cu", "mean_kernel", N, 64, lambda r: [_z(N), r.f(N, WIDE), N, WIDE, 64],
        lambda a: {0: _norm(a[1])[1]}, shared=256,
    ),
    Kernel(
        "layernorm_forward.cu", "rstd_kernel", N, 64,
        lambda r: [_z(N), (x := r.f(N, WIDE)), _norm(x)[1].astype(f32), N, WIDE, 64],
        lambda a: {0: _norm(a[1])[2]}, shared=256,
    ),
    Kernel(
        "layernorm_forward.cu", "normalization_kernel", 12, 128,
        lambda r: [
            _z(N, WIDE), (x := r.f(N, WIDE)), *(y.astype(f32) for y in _norm(x)[1:]), r.f(WIDE), r.f(WIDE), 1, N, WIDE,
        ],
        lambda a: {0: _norm(a[1])[0] * a[4] + a[5]},
    ),
    Kernel(
        "matmul_backward.cu", "matmul_backward_bias_kernel_naive", 1, 128,
        lambda r: [_z(128), r.f(N * 8, 128), 1, N * 8, 128],
        lambda a: {0: a[1].sum(0)}, tolerance=1e-4,
    ),
    Kernel(
        "matmul_backward.cu", "matmul_backward_bias_kernel_faster", 128, 32,
        lambda r: [_z(128), r.f(N * 8, 128), 1, N * 8, 128],
        lambda a: {0: a[1].sum(0)}, tolerance=1e-4, shared=128,
    ),
    _bias(1, 128, 32, shared=128),
    _bias(2, 32, 128),
    _bias(3, 128, 64),
    _bias(4, 4, 128, shared=512),
    _bias(7, (1, 2), (32, 8), shared=1024, wide=True, more=(256,)),
    _bias(8, (2, 2), (4, 8, 4), instance=_FLAG.format(8, "float", "true", "float", "true"), wide=True, more=(b"\0",)),
    _bias(8, (2, 1), (4, 8, 4), instance=_FLAG.format(8, *_NARROW), more=(b"\0",)),
    _bias(9, (2, 1), (4, 8, 4), instance=_FLAG.format(9, *_NARROW), more=(b"\0",)),
    Kernel(
        "matmul_backward_bias.cu", "cast_and_add_kernel", 2, 64, lambda r: [*_h(r.f(100)), r.f(100), 100],
        lambda a: {0: a[0].astype(f64) + a[1]}, tolerance=ROUNDED,
    ),
    Kernel(
        "matmul_backward_bias.cu", "reduce_add_sum_kernel", 1, 32, lambda r: [*_h(r.f(128)), r.f(5, 128), 128, 5],
        lambda a: {0: a[0].astype(f64) + a[1].sum(0)}, tolerance=ROUNDED,
    ),
    Kernel(
        "matmul_forward.cu", "matmul_forward_kernel1", (3, 3), (8, 8),
        lambda r: [_z(20, 24), r.f(20, 32), r.f(24, 32), r.f(24), 20, 32, 24],
        lambda a: {0: a[1] @ a[2].T + a[3]}, tolerance=1e-4,
    ),
    Kernel(
        "matmul_forward.cu", "matmul_forward_kernel4", (1, 1), (16, 16),
        lambda r: [_z(128, 128), r.f(128, 32), r.f(128, 32), r.f(128), 32, 128],
        lambda a: {0: a[1] @ a[2].T + a[3]}, tolerance=1e-4,
    ),
    Kernel(
        "matmul_forward.cu", "add_bias", 2, 64, lambda r: [r.f(5, 20), r.f(20), 1, 5, 20], lambda a: {0: a[0] + a[1]}
    ),
    Kernel(
        "permute.cu", "permute_kernel", 4, 64, lambda r: [r.f(3, 4, 5, 4), _z(4, 5, 3, 4), 3, 4, 5, 4],
        lambda a: {1: a[0].transpose(3, 2, 0, 1)},
    ),
    *(
        _rows("softmax_forward.cu", f"softmax_forward_{name}", grid, block, shared, fault)
        for name, grid, block, shared, fault in (
            ("kernel1", 1, 32, 0, ""), ("kernel2", N, 64, 256, ""), ("kernel3", N, 32, 0, ""),
            ("kernel4", N, 64, 16, "E3205"), ("online_kernel1", 1, 32, 0, ""), ("online_kernel2", 3, 64, 0, ""),
            ("kernel7", N, 64, 16, "E3205"), ("online_kernel8", 3, 64, 0, ""),
        )
    ),
)  # fmt: skip
