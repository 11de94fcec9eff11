# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax, layer norm and root-mean-square norm of the last mode, with gradients."""

from collections.abc import Sequence
from typing import Any

from .arguments import FLOATS, Array, any_rows, check_array, check_shape, like, matrix_of, refuse, vector_for
from .operator import Gradient, GradientContext, Operator
from .replay import Launch, Launches, Scratch
from .rows.norm_kernels import COLUMNS, HIGH, add_rows_kernel, norm_backward_kernel, norm_kernel
from .rows.softmax_kernels import softmax_backward_kernel, softmax_kernel
from .rows.tile import LONGEST, chosen_rows

HELD_AT_MOST = 128
"""The most elements of a row that a thread has: norms take rows in one piece."""
MOST_COLUMNS = LONGEST * HELD_AT_MOST
"""The most elements of a row that norms take."""
HELD_IN_NORM, HELD_IN_GRADIENT = 64, 32
"""A thread's elements of a row of each matrix."""
BLOCKS = 528
"""The most blocks of a norm's gradient: four for each multiprocessor of an H100."""


def softmax(x: Array, *, device: str = "auto") -> Array:
    """exp(x) / sum(exp(x)) along the last mode, in the elements of `x`; sums are in f32.

    `x` has any shape, and elements of f16, bf16 or f32. `device` is where arrays of the host are computed: "cuda",
    "sim" (the simulator) or "auto", the GPU if there is one. LaunchError (E3106) for other elements, and for no modes.
    """
    return SOFTMAX(x, device)


def rms_norm(
    x: Array, weight: Array | None = None, residual: Array | None = None, eps: float = 1e-6, *, device: str = "auto"
) -> Any:
    """x / sqrt(mean(x * x) + eps) * weight along the last mode, in the elements of `x`.

    `x` and `residual` have one shape, `weight` has the last extent of it, at most 65536; elements are f16, bf16 or f32.
    With a `residual`, `x + residual`, rounded to the elements of `x`, takes the place of `x`, and the result is a pair:
    the norm and this sum. LaunchError (E3106) for other shapes and elements.
    """
    result, total, _ = RMS_NORM(x, weight, residual, eps, device)
    return result if residual is None else (result, total)


def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    residual: Array | None = None,
    eps: float = 1e-5,
    *,
    device: str = "auto",
) -> Any:
    """(x - mean(x)) / sqrt(var(x) + eps) * weight + bias along the last mode; the rest is as in `rms_norm`."""
    result, total, _, _ = LAYER_NORM(x, weight, bias, residual, eps, device)
    return result if residual is None else (result, total)


def _blocks(rows: int, config: Any) -> int:
    return -(-rows // config.rows)


def _softmax_places(x: Array, device: str) -> tuple[Array, ...]:
    check_array("softmax", "x", x, FLOATS)
    if not len(x.shape) or not x.shape[-1]:
        refuse("softmax", f"x has the shape {tuple(x.shape)}", "give it a last mode with elements")
    return (like(x, x.shape),)


def _softmax(places: tuple[Array, ...], x: Array, device: str) -> Launches:
    if 0 in x.shape:
        return
    x, y = matrix_of(x), matrix_of(places[0])
    config = chosen_rows(x.shape[1], vector_for(x))
    yield Launch(softmax_kernel, (any_rows(x), any_rows(y), config), _blocks(x.shape[0], config), config.threads)


def _softmax_backward_places(y: Array, dy: Array, device: str) -> tuple[Array, ...]:
    return (like(y, y.shape),)


def _softmax_backward(places: tuple[Array, ...], y: Array, dy: Array, device: str) -> Launches:
    if 0 in y.shape:
        return
    y, dy, dx = matrix_of(y), matrix_of(dy), matrix_of(places[0])
    config = chosen_rows(y.shape[1], vector_for(y, dy), 32)
    given = any_rows(y), any_rows(dy), any_rows(dx), config
    yield Launch(softmax_backward_kernel, given, _blocks(y.shape[0], config), config.threads)


def _keep_softmax(ctx: GradientContext, inputs: Sequence[object], output: Sequence[object]) -> None:
    ctx.save_for_backward(output)
    ctx.device = inputs[1]


def _softmax_gradient(ctx: GradientContext, dy: Array) -> tuple[Array | None, ...]:
    return SOFTMAX_BACKWARD(ctx.saved_tensors[0], dy, ctx.device), None


SOFTMAX = Operator(
    "softmax", '(Tensor x, str device) -> Tensor', _softmax_places, _softmax,
    Gradient(_keep_softmax, _softmax_gradient),
)  # fmt: skip
SOFTMAX_BACKWARD = Operator(
    "softmax_backward", '(Tensor y, Tensor dy, str device) -> Tensor', _softmax_backward_places,
    _softmax_backward,
)  # fmt: skip


def _check_norm(function: str, x: Array, residual: Array | None, **rows: Array | None) -> None:
    check_array(function, "x", x, FLOATS)
    if not len(x.shape) or not 0 < x.shape[-1] <= MOST_COLUMNS:
        refuse(function, f"x has the shape {tuple(x.shape)}", f"the last mode has 1 to {MOST_COLUMNS} elements")
    if residual is not None:
        check_array(function, "residual", residual, FLOATS)
        check_shape(function, "residual", residual, x.shape)
    for name, row in rows.items():
        if row is not None:
            check_array(function, name, row, FLOATS)
            check_shape(function, name, row, x.shape[-1:])


def _rms_places(x: Array, weight: Array | None, residual: Array | None, eps: float, device: str) -> tuple[Array, ...]:
    _check_norm("rms_norm", x, residual, weight=weight)
    total = like(x, (0,) if residual is None else x.shape)
    return like(x, x.shape), total, like(x, x.shape[:-1], "float32")


def _rms(
    places: tuple[Array, ...], x: Array, weight: Array | None, residual: Array | None, eps: float, device: str
) -> Launches:
    y, total, scale = places
    return _norm(x, residual, weight, None, y, total, None, scale, eps, False)


def _rms_results(x: Array, weight: Array | None, residual: Array | None, *_: Any) -> tuple[int, ...]:
    return (1, 2) if residual is None else (2,)


def _layer_results(
    x: Array, weight: Array | None, bias: Array | None, residual: Array | None, *_: Any
) -> tuple[int, ...]:
    return (1, 2, 3) if residual is None else (2, 3)


def _layer_places(
    x: Array, weight: Array | None, bias: Array | None, residual: Array | None, eps: float, device: str
) -> tuple[Array, ...]:
    _check_norm("layer_norm", x, residual, weight=weight, bias=bias)
    total = like(x, (0,) if residual is None else x.shape)
    return like(x, x.shape), total, like(x, x.shape[:-1], "float32"), like(x, x.shape[:-1], "float32")


def _layer(
    places: tuple[Array, ...],
    x: Array,
    weight: Array | None,
    bias: Array | None,
    residual: Array | None,
    eps: float,
    device: str,
) -> Launches:
    y, total, mean, scale = places
    return _norm(x, residual, weight, bias, y, total, mean, scale, eps, True)


def _norm(
    x: Array, residual: Array | None, weight: Array | None, bias: Array | None, y: Array, total: Array,
    mean: Array | None, scale: Array | None, eps: float,
    centred: bool,
) -> Launches:  # fmt: skip
    if 0 in x.shape:
        return
    x, y = matrix_of(x), matrix_of(y)
    residual = None if residual is None else matrix_of(residual)
    total = None if residual is None else matrix_of(total)
    config = chosen_rows(x.shape[1], vector_for(x, residual, weight, bias), HELD_IN_NORM, HELD_AT_MOST)
    given = (
        any_rows(x), any_rows(residual), weight, bias, any_rows(y), any_rows(total), any_rows(_column(mean)),
        any_rows(_column(scale)), eps, centred, config,
    )  # fmt: skip
    yield Launch(norm_kernel, given, _blocks(x.shape[0], config), config.threads)


def _column(x: Array | None) -> Array | None:
    return x if x is None or len(x.shape) == 1 else x.reshape(-1)


def _norm_backward_places(
    dy: Array,
    h: Array,
    dh: Array | None,
    weight: Array | None,
    bias: Array | None,
    mean: Array | None,
    scale: Array,
    device: str,
) -> tuple[Array, ...]:
    of_rows = [like(h, (0,)) if row is None else like(row, row.shape) for row in (weight, bias)]
    return like(h, h.shape), *of_rows


def _norm_backward(
    places: tuple[Array, ...], dy: Array, h: Array, dh: Array | None, weight: Array | None, bias: Array | None,
    mean: Array | None, scale: Array,
    device: str,
) -> Launches:  # fmt: skip
    dx, dw, db = places
    if 0 in h.shape:
        for place in (dw, db):
            place[...] = 0
        yield None
        return
    dy, h, dx = matrix_of(dy), matrix_of(h), matrix_of(dx)
    dh = None if dh is None else matrix_of(dh)
    config = chosen_rows(h.shape[1], vector_for(h, dy, dh, weight), HELD_IN_GRADIENT, HELD_AT_MOST)
    blocks = min(_blocks(h.shape[0], config), BLOCKS)
    shape = blocks * config.rows, h.shape[1]
    parts = [None if row is None else like(h, shape, "float32") for row in (weight, bias)]
    yield from (Scratch(part) for part in parts if part is not None)
    given = (
        any_rows(dy), any_rows(h), any_rows(dh), weight, any_rows(_column(mean)), any_rows(_column(scale)),
        any_rows(dx), any_rows(parts[0]), any_rows(parts[1]), config,
    )  # fmt: skip
    yield Launch(norm_backward_kernel, given, blocks, config.threads)
    for part, total in zip(parts, (dw, db), strict=True):
        if part is not None:
            yield Launch(add_rows_kernel, (any_rows(part), total), -(-shape[1] // COLUMNS), COLUMNS * HIGH)


def _keep_norm(ctx: GradientContext, inputs: Sequence[object], output: Sequence[object]) -> None:
    """Of x or the sum with the residual, the weights and the statistics; `inputs` end with residual, eps, device."""
    x, *rows, residual, _, device = inputs
    _, total, *statistics = output
    ctx.has_residual, ctx.device, ctx.has_bias = residual is not None, device, len(rows) == 2
    ctx.save_for_backward(x if residual is None else total, *rows, *statistics)


def _norm_gradient(ctx: GradientContext, dy: Array, dh: Array | None, *_: Any) -> tuple[Array | None, ...]:
    h, weight, *rest = ctx.saved_tensors
    bias, mean, scale = rest if ctx.has_bias else (None, None, rest[0])
    dh = dh if ctx.has_residual else None
    dx, dw, db = NORM_BACKWARD(dy, h, dh, weight, bias, mean, scale, ctx.device)
    of_rows = [dw if weight is not None else None] + ([db if bias is not None else None] if ctx.has_bias else [])
    return dx, *of_rows, dx if ctx.has_residual else None, None, None


RMS_NORM = Operator(
    "rms_norm",
    '(Tensor x, Tensor? weight, Tensor? residual, float eps, str device) -> (Tensor, Tensor, Tensor)',
    _rms_places, _rms, Gradient(_keep_norm, _norm_gradient), gradient_only=_rms_results,
)  # fmt: skip
LAYER_NORM = Operator(
    "layer_norm",
    "(Tensor x, Tensor? weight, Tensor? bias, Tensor? residual, float eps, str device)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
    _layer_places, _layer, Gradient(_keep_norm, _norm_gradient), gradient_only=_layer_results,
)  # fmt: skip
NORM_BACKWARD = Operator(
    "norm_backward",
    "(Tensor dy, Tensor h, Tensor? dh, Tensor? weight, Tensor? bias, Tensor? mean, Tensor scale,"
    ' str device) -> (Tensor, Tensor, Tensor)',
    _norm_backward_places, _norm_backward,
)  # fmt: skip
