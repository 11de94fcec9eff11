# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of fp8 with scales."""

from typing import Any

from .arguments import Array, check_array, check_shape, like
from .attention_arguments import check_batches, check_depth, check_heads, readable
from .operator import Operator
from .replay import Launches
from .targets import at_hand, kernel_for

DEPTHS = 64, 128
"""The elements of a head that the kernel takes."""


def _places(q: Array, k: Array, v: Array, scale_q: Any, scale_k: Any, scale_v: Any, *_: Any) -> tuple[Array, ...]:
    check_heads("attention", q, k, v, ("float8_e4m3fn",))
    check_batches(q, k)
    check_depth(q.shape[3], DEPTHS)
    for name, scales in (("scale_q", scale_q), ("scale_k", scale_k), ("scale_v", scale_v)):
        if scales is not None:
            check_array("attention", name, scales, ("float32",))
            check_shape("attention", name, scales, (k.shape[0], k.shape[2]))
    return (like(q, q.shape, "bfloat16"),)


def _launch(
    places: tuple[Array, ...], q: Array, k: Array, v: Array, scale_q: Any, scale_k: Any, scale_v: Any, causal: bool,
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
    _places, _launch,
)  # fmt: skip
