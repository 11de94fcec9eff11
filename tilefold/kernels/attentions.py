# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention, its gradient, and attention for few rows."""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .arguments import Array, check_array, check_shape, contiguous, dtype_of, is_torch, like, refuse, step_of
from .operator import Gradient, GradientContext, Operator, needs_of
from .replay import Launch, Launches
from .targets import BLACKWELL, HOPPER, at_hand, kernel_for

WGMMA_DEPTHS = 64, 96, 128, 256
"""The elements of a head that the kernel for Hopper takes."""
MMA_DEPTHS = 64, 128
"""Those of the kernels by mma.sync."""


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int = 0,
    softcap: float = 0.0,
    bias: Callable[[Any, Any, Any, Any], object] | None = None,
    starts: Array | None = None,
    starts_k: Array | None = None,
    scale_q: Array | None = None,
    scale_k: Array | None = None,
    scale_v: Array | None = None,
    deterministic: bool = False,
    device: str = "auto",
    target: str | None = None,
) -> Array:
    """softmax(scale * q k^T) v for each head, with `scale` 1 / sqrt(D) by default.

    `q` is (batch, rows, heads, D), `k` and `v` are (batch, keys, heads of k, D) of f16 or bf16; the heads of k divide
    those of q; neighbours share one. D is 64, 96, 128 or 256 on sm_90a without `window`, `softcap` and `bias`,
    else 64 or 128. Where `causal`, row i of n sees the keys up to i + keys - n; with a `window`, which needs `causal`,
    only the last of these. `softcap` replaces a score s by softcap * tanh(s / softcap). `bias` is a function of
    batch, head, row and key, values of the kernel, that gives a number to be added to a score; it has no gradient.
    Packed sequences are one batch, with the first token of each and the number of tokens in `starts` and `starts_k`
    (i32). A row that sees no key is 0. There are gradients for D of 64 and 128, without softcap. Where `deterministic`,
    or where torch.use_deterministic_algorithms says so, each launch gives the same bits of them; on sm_90a blocks add
    parts of that of q in any order else, which is faster. LaunchError (E3106) for other shapes and elements.

    On sm_90a, q, k and v may also be float8_e4m3fn, each times a scale, by default 1, for each batch and head of k:
    `scale_q`, `scale_k` and `scale_v` (batch, heads of k) of f32. The result is bf16 then, exponentials are rounded to
    fp8, too, D is 64 or 128, and there is neither a gradient nor a window, softcap, bias or packed sequence.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if scale_q is not None or scale_k is not None or scale_v is not None or q.itemsize == 1:
        if window or softcap or bias is not None or starts is not None or starts_k is not None:
            refuse("attention", "fp8 has no window, softcap, bias or packed sequences", "give f16 or bf16")
        return ATTENTION_FP8(q, k, v, scale_q, scale_k, scale_v, causal, scale, device, target)
    if bias is not None:
        return _with_bias(q, k, v, causal, scale, window, softcap, bias, starts, starts_k, device)
    return ATTENTION(q, k, v, causal, scale, window, softcap, starts, starts_k, device, target, deterministic)[0]


def decode_attention(
    q: Array,
    k: Array,
    v: Array,
    lengths: Array | None = None,
    table: Array | None = None,
    *,
    causal: bool = False,
    window: int = 0,
    softcap: float = 0.0,
    bias: Callable[[Any, Any, Any, Any], object] | None = None,
    device: str = "auto",
    target: str | None = None,
) -> Array:
    """Attention for few rows, as in the decoding of a language model: blocks share the keys. Without gradients.

    Arrays are those of `attention`, with D of 64, 128 or 256. `lengths` (batch) of i32 has the keys of each sequence,
    by default all. With a `table` (batch, pages) of i32, k and v are (pages, keys of a page, heads of k, D), and a
    sequence has its pages. There is a kernel for sm_90a alone. Errors are those of `attention`.
    """
    if window and not causal:
        refuse("decode_attention", "a window requires causal=True", "say causal=True")
    args = q, k, v, lengths, table, causal, window, softcap
    if bias is None:
        return DECODE_ATTENTION(*args, device, target)
    places = _decode_places(*args)
    for launch in _decode(places, *args, device, target, bias):
        assert isinstance(launch, Launch)
        launch.run(q, device)
    return places[0]


def _places(
    q: Array, k: Array, v: Array, causal: bool, scale: float, window: int, softcap: float, starts: Array | None,
    starts_k: Array | None, device: str, target: str | None, *_: object,
) -> tuple[Array, ...]:  # fmt: skip
    check_heads("attention", q, k, v)
    if starts is None:
        check_batches(q, k)
    if (starts is None) != (starts_k is None) or (starts is not None and (q.shape[0] != 1 or k.shape[0] != 1)):
        refuse("attention", "packed sequences need starts and starts_k, and one batch", "give both")
    if window and not causal:
        refuse("attention", "a window requires causal=True", "say causal=True")
    return like(q, q.shape), like(q, (q.shape[0], q.shape[2], q.shape[1]), "float32")


def _launch(
    places: tuple[Array, ...], q: Array, k: Array, v: Array, causal: bool, scale: float, window: int, softcap: float,
    starts: Array | None, starts_k: Array | None, device: str, target: str | None, *_: object,
) -> Launches:  # fmt: skip
    if 0 in q.shape or 0 in k.shape:
        for place in places:
            if place is not None:
                place[...] = 0
        yield None
        return
    out, lse = places
    q, k, v = readable(q), readable(k), readable(v)
    arch, blocks = at_hand(device, target)
    if arch == HOPPER and not window and not softcap:
        check_depth(q.shape[3], WGMMA_DEPTHS)
        launch = kernel_for("attention", arch)
        yield from launch(out, lse, q, k, v, causal, scale, starts, starts_k, blocks)
        return
    if arch == BLACKWELL and lse is None and starts is None and not (causal or window or softcap):
        from .sm100.attention import is_whole

        if is_whole(q, k):
            yield from kernel_for("attention", arch)(out, q, k, v, scale)
            return
    from .sm80.parts import Mask

    check_depth(q.shape[3], MMA_DEPTHS)

    launch = kernel_for("attention", "sm_80")
    yield from launch(out, lse, q, k, v, Mask(causal, window), softcap, None, scale, starts, starts_k)


def _with_bias(
    q: Array, k: Array, v: Array, causal: bool, scale: float, window: int, softcap: float, bias: Any,
    starts: Array | None, starts_k: Array | None, device: str,
) -> Array:  # fmt: skip
    from .sm80.attention import forward
    from .sm80.parts import Mask

    out, _ = _places(q, k, v, causal, scale, window, softcap, starts, starts_k, device, None)
    check_depth(q.shape[3], MMA_DEPTHS)
    if is_torch(q) and needs_of(sys.modules["torch"], (q, k, v)):
        refuse("attention", "the gradient does not support a bias", "call it under torch.no_grad()")
    q, k, v = readable(q), readable(k), readable(v)
    for launch in forward(out, None, q, k, v, Mask(causal, window), softcap, bias, scale, starts, starts_k):
        assert isinstance(launch, Launch)
        launch.run(q, device)
    return out


def _keep(ctx: GradientContext, inputs: Sequence[object], output: Sequence[object]) -> None:
    q, k, v, ctx.causal, ctx.scale, ctx.window, ctx.softcap, starts, starts_k, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, output[0], output[1], starts, starts_k)
    ctx.mark_non_differentiable(output[1])


def _gradient(ctx: GradientContext, do: Array, _: object) -> tuple[Array | None, ...]:
    q, k, v, out, lse, starts, starts_k = ctx.saved_tensors
    if ctx.softcap:
        refuse("attention", "the gradient does not support a softcap", "call it under torch.no_grad()")
    device, target, deterministic = ctx.options
    deterministic |= sys.modules["torch"].are_deterministic_algorithms_enabled()
    given = do, q, k, v, out, lse, ctx.causal, ctx.scale, ctx.window, starts, starts_k
    return *ATTENTION_BACKWARD(*given, device, target, deterministic), *[None] * 9


ATTENTION = Operator(
    "attention",
    "(Tensor q, Tensor k, Tensor v, bool causal, float scale, int window, float softcap, Tensor? starts,"
    " Tensor? starts_k, str device, str? target, bool deterministic) -> (Tensor, Tensor)",
    _places, _launch, Gradient(_keep, _gradient), gradient_only=lambda *_: (1,),
)  # fmt: skip


def _backward_places(do: Array, q: Array, k: Array, v: Array, *_: object) -> tuple[Array, ...]:
    return like(q, q.shape), like(k, k.shape), like(v, v.shape)


def _backward(
    places: tuple[Array, ...], do: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, causal: bool,
    scale: float, window: int, starts: Array | None, starts_k: Array | None, device: str, target: str | None,
    deterministic: bool,
) -> Launches:  # fmt: skip
    check_depth(q.shape[3], MMA_DEPTHS)
    if 0 in q.shape or 0 in k.shape:
        for place in places:
            place[...] = 0
        yield None
        return
    do, q, k, v = (readable(x) for x in (do, q, k, v))
    arch, given = at_hand(device, target)[0], (places, do, q, k, v, out, lse)
    if arch == HOPPER and not window and not deterministic:
        yield from kernel_for("attention_backward", arch)(*given, causal, scale, starts, starts_k)
        return
    from .sm80.parts import Mask

    launch = kernel_for("attention_backward", "sm_80")
    yield from launch(*given, Mask(causal, window), scale, starts, starts_k)


ATTENTION_BACKWARD = Operator(
    "attention_backward",
    "(Tensor do, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, bool causal, float scale, int window,"
    " Tensor? starts, Tensor? starts_k, str device, str? target, bool deterministic) -> (Tensor, Tensor, Tensor)",
    _backward_places, _backward,
)  # fmt: skip


def _decode_places(q: Array, k: Array, v: Array, *_: object) -> tuple[Array, ...]:
    check_heads("decode_attention", q, k, v)
    return (like(q, q.shape),)


def _decode(
    places: tuple[Array, ...], q: Array, k: Array, v: Array, lengths: Array | None, table: Array | None, causal: bool,
    window: int,
    softcap: float, device: str, target: str | None, bias: Array | None = None,
) -> Launches:  # fmt: skip
    arch, blocks = at_hand(device, target)
    launch, given = kernel_for("decode_attention", arch), (readable(q), readable(k), readable(v))
    yield from launch(places[0], *given, lengths, table, causal, blocks, window, softcap, bias)


DECODE_ATTENTION = Operator(
    "decode_attention",
    "(Tensor q, Tensor k, Tensor v, Tensor? lengths, Tensor? table, bool causal, int window, float softcap, str device,"
    " str? target) -> Tensor",
    _decode_places, _decode,
)  # fmt: skip


HALVES = ("float16", "bfloat16")


def check_heads(function: str, q: Array, k: Array, v: Array, dtypes: Sequence[str] = HALVES) -> None:
    """LaunchError (E3106) for heads of other elements or shapes."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_array(function, name, x, dtypes, 4)
        if dtype_of(x) != dtype_of(q):
            refuse(function, f"q has elements of {dtype_of(q)}, {name} of {dtype_of(x)}", "convert one of them")
    check_shape(function, "v", v, k.shape)
    if q.shape[3] != k.shape[3] or not k.shape[2] or q.shape[2] % k.shape[2]:
        problem = f"q has the shape {tuple(q.shape)}, k {tuple(k.shape)}"
        refuse(function, problem, "D is the same, and the heads of k divide those of q")


def check_batches(q: Array, k: Array) -> None:
    """LaunchError (E3106) unless q and k have the same number of batches."""
    if k.shape[0] != q.shape[0]:
        refuse("attention", f"q has {q.shape[0]} batches, k {k.shape[0]}", "give q and k equal numbers of batches")


def check_depth(depth: int, depths: tuple[int, ...]) -> None:
    """LaunchError (E3106) for another D."""
    if depth not in depths:
        refuse("attention", f"D is {depth}", f"one of {', '.join(map(str, depths))}")


def readable(x: Array) -> Array:
    """An array whose last mode is contiguous and whose other strides are multiples of 16 bytes, maybe a copy."""
    unit = 16 // x.itemsize
    is_right = step_of(x, 3) == 1 and all(step_of(x, mode) % unit == 0 for mode in range(3) if x.shape[mode] > 1)
    return x if is_right else contiguous(x)


FP8_DEPTHS = 64, 128
"""The elements of a head that the kernel of fp8 takes."""


def _fp8_places(
    q: Array, k: Array, v: Array, scale_q: Array | None, scale_k: Array | None, scale_v: Array | None, *_: object
) -> tuple[Array, ...]:
    check_heads("attention", q, k, v, ("float8_e4m3fn",))
    check_batches(q, k)
    check_depth(q.shape[3], FP8_DEPTHS)
    for name, scales in (("scale_q", scale_q), ("scale_k", scale_k), ("scale_v", scale_v)):
        if scales is not None:
            check_array("attention", name, scales, ("float32",))
            check_shape("attention", name, scales, (k.shape[0], k.shape[2]))
    return (like(q, q.shape, "bfloat16"),)


def _fp8_launch(
    places: tuple[Array, ...], q: Array, k: Array, v: Array, scale_q: Array | None, scale_k: Array | None,
    scale_v: Array | None, causal: bool,
    scale: float, device: str, target: str | None,
) -> Launches:  # fmt: skip
    (out,) = places
    if 0 in q.shape or 0 in k.shape:
        out[...] = 0
        yield None
        return
    arch, blocks = at_hand(device, target)
    launch, given = kernel_for("attention_fp8", arch), (readable(q), readable(k), readable(v))
    yield from launch(out, *given, scale_q, scale_k, scale_v, causal, scale, blocks)


ATTENTION_FP8 = Operator(
    "attention_fp8",
    "(Tensor q, Tensor k, Tensor v, Tensor? scale_q, Tensor? scale_k, Tensor? scale_v, bool causal, float scale,"
    " str device, str? target) -> Tensor",
    _fp8_places, _fp8_launch,
)  # fmt: skip
