# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cross entropy of logits, with its gradient."""

from collections.abc import Sequence

from .arguments import FLOATS, Array, any_rows, check_array, check_shape, like, matrix_of, refuse, vector_for
from .operator import Gradient, GradientContext, Operator
from .replay import Launch, Launches
from .rows.cross_entropy_kernels import cross_entropy_backward_kernel, cross_entropy_kernel
from .rows.tile import chosen_rows

HELD_AT_ONCE, LONGEST = 32, 256
"""Logits of a row that a thread has at a time, and the most threads of a row: several blocks share a multiprocessor."""
HELD = 64
"""The same for the gradient, which waits for no sum of the row."""


def cross_entropy(logits: Array, target: Array, ignore_index: int = -100, *, device: str = "auto") -> Array:
    """log(sum(exp(logits))) - logits[target] for each row, in f32: the loss of each row, without a reduction.

    `logits` is (..., classes) of f16, bf16 or f32, `target` (...) of i32 or i64. A row whose target is `ignore_index`
    has the loss 0 and no gradient; all other targets must be classes, which is not checked, as they are read on the
    GPU. LaunchError (E3106) for other shapes and elements.
    """
    return CROSS_ENTROPY(logits, target, ignore_index, device)[0]


def _places(logits: Array, target: Array, ignored: int, device: str) -> tuple[Array, ...]:
    check_array("cross_entropy", "logits", logits, FLOATS)
    if not len(logits.shape) or not logits.shape[-1]:
        refuse("cross_entropy", f"logits has the shape {tuple(logits.shape)}", "give it a last mode with elements")
    check_array("cross_entropy", "target", target, ("int32", "int64"))
    check_shape("cross_entropy", "target", target, logits.shape[:-1])
    return like(logits, target.shape, "float32"), like(logits, target.shape, "float32")


def _launch(places: tuple[Array, ...], logits: Array, target: Array, ignored: int, device: str) -> Launches:
    if 0 in logits.shape:
        return
    x = matrix_of(logits)
    target, loss, lse = (None if place is None else place.reshape(-1) for place in (target, *places))
    config = chosen_rows(x.shape[1], vector_for(x), HELD_AT_ONCE, HELD_AT_ONCE, LONGEST)
    given = any_rows(x), any_rows(target), any_rows(loss), any_rows(lse), ignored, config
    yield Launch(cross_entropy_kernel, given, -(-x.shape[0] // config.rows), config.threads)


def _backward_places(logits: Array, target: Array, lse: Array, grad: Array, *_: object) -> tuple[Array, ...]:
    return (like(logits, logits.shape),)


def _backward(
    places: tuple[Array, ...], logits: Array, target: Array, lse: Array, grad: Array, ignored: int, device: str
) -> Launches:
    if 0 in logits.shape:
        return
    x, dx = matrix_of(logits), matrix_of(places[0])
    columns = [any_rows(column.reshape(-1)) for column in (target, lse, grad)]
    config = chosen_rows(x.shape[1], vector_for(x), HELD)
    given = any_rows(x), *columns, any_rows(dx), ignored, config
    yield Launch(cross_entropy_backward_kernel, given, (-(-x.shape[0] // config.rows), config.chunks), config.threads)


def _keep(ctx: GradientContext, inputs: Sequence[object], output: Sequence[object]) -> None:
    logits, target, ctx.ignored, ctx.device = inputs
    ctx.save_for_backward(logits, target, output[1])
    ctx.mark_non_differentiable(output[1])


def _gradient(ctx: GradientContext, grad: Array, _: object) -> tuple[Array | None, ...]:
    logits, target, lse = ctx.saved_tensors
    return CROSS_ENTROPY_BACKWARD(logits, target, lse, grad, ctx.ignored, ctx.device), None, None, None


CROSS_ENTROPY = Operator(
    "cross_entropy",
    '(Tensor logits, Tensor target, int ignore_index, str device) -> (Tensor, Tensor)',
    _places, _launch, Gradient(_keep, _gradient), gradient_only=lambda *_: (1,),
)  # fmt: skip
CROSS_ENTROPY_BACKWARD = Operator(
    "cross_entropy_backward",
    "(Tensor logits, Tensor target, Tensor lse, Tensor grad, int ignore_index, str device) -> Tensor",
    _backward_places, _backward,
)  # fmt: skip
