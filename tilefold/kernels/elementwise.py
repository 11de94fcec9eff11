# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SwiGLU and rotary positions, with gradients; and quantization of rows."""

from collections.abc import Sequence

from tilefold.runtime.arrays.signature import Dynamic, Marked

from .arguments import (
    FLOATS,
    Array,
    any_rows,
    check_array,
    check_shape,
    contiguous,
    like,
    matrix_of,
    refuse,
    step_of,
    vector_for,
    vector_of_heads,
)  # fmt: skip
from .operator import Gradient, GradientContext, Operator
from .replay import Launch, Launches
from .rows.elementwise_kernels import (
    THREADS,
    UNROLL,
    Rotation,
    quantize_kernel,
    rope_kernel,
    swiglu_backward_kernel,
    swiglu_kernel,
)  # fmt: skip
from .rows.tile import chosen_rows

_TOKENS = Dynamic(modes=(0, 1))


def swiglu(gate: Array, up: Array, *, device: str = "auto") -> Array:
    """gate / (1 + exp(-gate)) * up, in the elements of `gate`; arithmetic is in f32.

    Both have one shape and elements of f16, bf16 or f32. They may be halves of one array, side by side in its last
    mode. LaunchError (E3106) for other shapes and elements.
    """
    return SWIGLU(gate, up, device)


def rope(
    x: Array,
    cos: Array,
    sin: Array,
    positions: Array | None = None,
    *,
    interleaved: bool = False,
    device: str = "auto",
) -> Array:
    """Turns the pairs of elements of each head by the angles of its token's position, in the elements of `x`.

    `x` is (batch, tokens, heads, D), D even, of f16, bf16 or f32; `cos` and `sin` are (positions, D / 2), of these
    types. The pairs are elements i and i + D / 2 of a head, or 2 i and 2 i + 1 if `interleaved`. A token's position is
    its number, or that in `positions` (batch, tokens) of i32 or i64, which is not checked. There is a gradient of `x`
    alone. LaunchError (E3106) for other shapes and elements.
    """
    return ROPE(x, cos, sin, positions, interleaved, False, device)


def _grid(vectors: int) -> int:
    return -(-vectors // (THREADS * UNROLL))


def _swiglu_places(gate: Array, up: Array, device: str) -> tuple[Array, ...]:
    check_array("swiglu", "gate", gate, FLOATS)
    check_array("swiglu", "up", up, FLOATS)
    check_shape("swiglu", "up", up, gate.shape)
    if not len(gate.shape):
        refuse("swiglu", "gate has no modes", "reshape it to (1,)")
    return (like(gate, gate.shape),)


def _swiglu(places: tuple[Array, ...], gate: Array, up: Array, device: str) -> Launches:
    if 0 in gate.shape:
        return
    gate, up, y = (matrix_of(x) for x in (gate, up, places[0]))
    vector = vector_for(gate, up)
    given = any_rows(gate), any_rows(up), any_rows(y), vector
    yield Launch(swiglu_kernel, given, _grid(y.shape[0] * y.shape[1] // vector), THREADS)


def _swiglu_backward_places(dy: Array, gate: Array, up: Array, device: str) -> tuple[Array, ...]:
    return like(gate, gate.shape), like(up, up.shape)


def _swiglu_backward(places: tuple[Array, ...], dy: Array, gate: Array, up: Array, device: str) -> Launches:
    if 0 in gate.shape:
        return
    matrices = [matrix_of(x) for x in (dy, gate, up, *places)]
    vector = vector_for(*matrices[:3])
    given = *(any_rows(x) for x in matrices), vector
    yield Launch(swiglu_backward_kernel, given, _grid(gate.shape[-1] * matrices[0].shape[0] // vector), THREADS)


def _keep_swiglu(ctx: GradientContext, inputs: Sequence[object], output: object) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.device = inputs[2]


def _swiglu_gradient(ctx: GradientContext, dy: Array) -> tuple[Array | None, ...]:
    return *SWIGLU_BACKWARD(dy, *ctx.saved_tensors, ctx.device), None


SWIGLU = Operator(
    "swiglu", '(Tensor gate, Tensor up, str device) -> Tensor', _swiglu_places, _swiglu,
    Gradient(_keep_swiglu, _swiglu_gradient),
)  # fmt: skip
SWIGLU_BACKWARD = Operator(
    "swiglu_backward", '(Tensor dy, Tensor gate, Tensor up, str device) -> (Tensor, Tensor)',
    _swiglu_backward_places, _swiglu_backward,
)  # fmt: skip


def _rope_places(
    x: Array, cos: Array, sin: Array, positions: Array | None, interleaved: bool, back: bool, device: str
) -> tuple[Array, ...]:
    check_array("rope", "x", x, FLOATS, 4)
    if x.shape[3] % 2 or not x.shape[3]:
        refuse("rope", f"x has heads of {x.shape[3]} elements", "they must be pairs")
    for name, angles in (("cos", cos), ("sin", sin)):
        check_array("rope", name, angles, FLOATS, 2)
        check_shape("rope", name, angles, (cos.shape[0], x.shape[3] // 2))
    if positions is not None:
        check_array("rope", "positions", positions, ("int32", "int64"))
        check_shape("rope", "positions", positions, x.shape[:2])
    elif cos.shape[0] < x.shape[1]:
        refuse("rope", f"cos has {cos.shape[0]} positions for {x.shape[1]} tokens", "give one for each token")
    return (like(x, x.shape),)


def _rope(
    places: tuple[Array, ...], x: Array, cos: Array, sin: Array, positions: Array | None, interleaved: bool, back: bool,
    device: str,
) -> Launches:  # fmt: skip
    if 0 in x.shape:
        return
    cos, sin = matrix_of(cos), matrix_of(sin)
    if step_of(x, 3) != 1:
        x = contiguous(x)
    half = x.shape[3] // 2
    vector = vector_of_heads(x, cos, sin)
    if interleaved:
        vector = max(vector // 2, 1)
    batch, tokens, heads, _ = x.shape
    positions = None if positions is None else any_rows(positions.reshape(-1))
    rotation = Rotation(vector, interleaved, back)
    given = Marked(x, _TOKENS), any_rows(cos), any_rows(sin), positions, Marked(places[0], _TOKENS), rotation
    yield Launch(rope_kernel, given, _grid(batch * tokens * heads * half // vector), THREADS)


def _keep_rope(ctx: GradientContext, inputs: Sequence[object], output: object) -> None:
    _, cos, sin, positions, ctx.interleaved, ctx.back, ctx.device = inputs
    ctx.save_for_backward(cos, sin, positions)


def _rope_gradient(ctx: GradientContext, dy: Array) -> tuple[Array | None, ...]:
    cos, sin, positions = ctx.saved_tensors
    dx = ROPE(dy, cos, sin, positions, ctx.interleaved, not ctx.back, ctx.device)
    return dx, None, None, None, None, None, None


ROPE = Operator(
    "rope",
    "(Tensor x, Tensor cos, Tensor sin, Tensor? positions, bool interleaved, bool back, str device)"
    " -> Tensor",
    _rope_places, _rope, Gradient(_keep_rope, _rope_gradient),
)  # fmt: skip


MOST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "int8": 127.0}
"""The greatest magnitude of each type that is used; -128 is not."""


def quantize(
    x: Array, dtype: str = "float8_e4m3fn", block: int | None = None, *, device: str = "auto"
) -> tuple[Array, Array]:
    """x / scale in 8 bits, rounded to the nearest, and the scales in f32, so that `result * scale` is about `x`.

    `x` is (..., K) of f16, bf16 or f32, `dtype` "float8_e4m3fn", "float8_e5m2" or "int8". The scale of a row is its
    greatest magnitude by that of the type: (...) of them; with a `block`, which divides K, each block of this many
    elements has its own: (..., K / block). fp8 needs a GPU of sm_89 or later, or the simulator. LaunchError (E3106)
    for other shapes and elements.
    """
    return QUANTIZE(x, dtype, 0 if block is None else block, device)


def _places(x: Array, dtype: str, block: int, device: str) -> tuple[Array, ...]:
    check_array("quantize", "x", x, FLOATS)
    if dtype not in MOST:
        refuse("quantize", f"dtype is {dtype!r}", f"one of: {', '.join(MOST)}")
    if not len(x.shape) or not x.shape[-1]:
        refuse("quantize", f"x has the shape {tuple(x.shape)}", "give it a last mode with elements")
    if block < 0 or (block and x.shape[-1] % block):
        refuse("quantize", f"block is {block}", f"give a divisor of the last mode's {x.shape[-1]} elements")
    blocks = (*x.shape[:-1], x.shape[-1] // block) if block else x.shape[:-1]
    return like(x, x.shape, dtype), like(x, blocks, "float32")


def _launch(places: tuple[Array, ...], x: Array, dtype: str, block: int, device: str) -> Launches:
    if 0 in x.shape:
        return
    q, scale = places
    x, q = (contiguous(x).reshape(-1, block), q.reshape(-1, block)) if block else (matrix_of(x), matrix_of(q))
    config = chosen_rows(x.shape[1], vector_for(x))
    given = any_rows(x), any_rows(q), any_rows(scale.reshape(-1)), MOST[dtype], config
    yield Launch(quantize_kernel, given, -(-x.shape[0] // config.rows), config.threads)


QUANTIZE = Operator(
    "quantize", '(Tensor x, str dtype, int block, str device) -> (Tensor, Tensor)', _places,
    _launch,
)  # fmt: skip
