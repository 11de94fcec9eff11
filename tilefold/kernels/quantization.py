# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in 8 bits with scales."""

from .arguments import FLOATS, Array, any_rows, check_array, contiguous, like, matrix_of, refuse, vector_for
from .operator import Operator
from .replay import Launch, Launches
from .rows.elementwise_kernels import quantize_kernel
from .rows.tile import chosen_rows

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
