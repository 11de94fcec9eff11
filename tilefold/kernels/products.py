# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices, plain, with an epilogue, in groups and with scales, and their gradients."""

from collections.abc import Sequence
from typing import Any

from .activations import ACTIVATIONS
from .arguments import FLOATS, Array, check_array, check_shape, contiguous, dtype_of, like, refuse, step_of
from .operator import Gradient, GradientContext, Operator
from .replay import Launches
from .targets import at_hand, kernel_for

ELEMENTS = ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "int8", "uint8")
RESULTS = ("float16", "bfloat16", "float32", "int32")
_UNIT = 16
"""Rows of operands have a multiple of this many bytes."""


def gemm(
    a: Array,
    b: Array,
    *,
    out_dtype: str | None = None,
    accumulate: str = "fast",
    autotune: bool = False,
    device: str = "auto",
    target: str | None = None,
) -> Array:
    """a @ b^T for `a` of M x K elements, or (..., K), and `b` of N x K: the result is M x N, or (..., N).

    Elements of both are f16, bf16, f32 (multiplied as tf32), fp8 or integers of 8 bits; `out_dtype` is "float16",
    "bfloat16", "float32" or, for integers, "int32", by default that of `a`, and bf16 for fp8. Any strides are taken; a
    matrix whose rows do not begin at multiples of 16 bytes is copied first. Tensor cores add up products of fp8 to 14
    bits; where they `accumulate` "accurate" instead of "fast", the products of each 128 elements of K are added in f32.
    `autotune` measures the configurations that the model finds best, on the first call with tensors of a GPU. `target`
    chooses a kernel as for another GPU, for the simulator. Raises LaunchError for other shapes and elements (E3106),
    and where no kernel is for the target (E3105).
    """
    if accumulate not in ("fast", "accurate"):
        refuse("gemm", f"accumulate is {accumulate!r}", "one of fast, accurate")
    return GEMM(a, b, out_dtype, accumulate == "accurate", autotune, device, target)


def linear(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    activation: str = "none",
    gate: Array | None = None,
    residual: Array | None = None,
    scale_x: Array | None = None,
    scale_weight: Array | None = None,
    *,
    out_dtype: str | None = None,
    device: str = "auto",
    target: str | None = None,
) -> Array:
    """activation(scale_x * (x @ weight^T) * scale_weight + bias) * gate + residual, rounded once, at the end.

    `x` is (..., K) and `weight` N x K, as `a` and `b` of `gemm`; `bias` has N elements, `activation` is "none", "relu",
    "gelu" (its tanh form) or "silu"; `gate` and `residual` are (..., N) of f16, bf16 or f32. The scales are f32, one
    for each row of `x` and of `weight`, as `quantize` gives them. There are gradients of x, weight, bias, gate and
    residual. Errors are those of `gemm`.
    """
    return LINEAR(x, weight, bias, activation, gate, residual, scale_x, scale_weight, out_dtype, device, target)


def scaled_gemm(
    a: Array,
    b: Array,
    scale_a: Array,
    scale_b: Array,
    *,
    out_dtype: str = "bfloat16",
    device: str = "auto",
    target: str | None = None,
) -> Array:
    """(scale_a * a) @ (scale_b * b)^T for fp8, with sums in f32 of the products of each 128 elements of K.

    `a` is M x K and `b` N x K, K a multiple of 128; `scale_a` is M x K/128 and `scale_b` N/128 (rounded up) x K/128, of
    f32. There is a kernel for sm_90a alone. Errors are those of `gemm`.
    """
    return SCALED_GEMM(a, b, scale_a, scale_b, out_dtype, device, target)


def grouped_gemm(
    a: Array,
    b: Array,
    rows: Array,
    scale_a: Array | None = None,
    scale_b: Array | None = None,
    *,
    out_dtype: str | None = None,
    device: str = "auto",
    target: str | None = None,
) -> Array:
    """a_g @ b_g^T for groups of rows, whose numbers `rows` (groups) of i32 are read on the GPU.

    `b` is (groups, N, K). `a` is (groups, M, K), of which the first rows of each group count, or (M, K), in which the
    groups follow each other, each at a multiple of 128 rows. Elements are f16 or bf16, or fp8 with the scales of
    `scaled_gemm`, with a mode of groups where a and b have one. Rows that do not count are unwritten or any number.
    There is a kernel for sm_90a alone. Errors are those of `gemm`.
    """
    return GROUPED_GEMM(a, b, rows, scale_a, scale_b, out_dtype, device, target)


def _result(a: Array) -> str:
    name = dtype_of(a)
    return "bfloat16" if name.startswith("float8") else "int32" if name in ("int8", "uint8") else name


def _check(function: str, a: Array, b: Array, out_dtype: str | None) -> str:
    """The elements of the result."""
    check_array(function, "a", a, ELEMENTS)
    check_array(function, "b", b, ELEMENTS, 2)
    if dtype_of(a) != dtype_of(b):
        refuse(function, f"a has elements of {dtype_of(a)}, b of {dtype_of(b)}", "convert one of them")
    if not len(a.shape) or a.shape[-1] != b.shape[1]:
        refuse(function, f"a has the shape {tuple(a.shape)}, b {tuple(b.shape)}", "their last extents are equal: K")
    out_dtype = out_dtype or _result(a)
    if out_dtype not in RESULTS or (out_dtype == "int32") != (dtype_of(a) in ("int8", "uint8")):
        refuse(function, f"out_dtype is {out_dtype!r} for {dtype_of(a)}", f"one of {', '.join(RESULTS)}")
    return out_dtype


def _operand(x: Array) -> tuple[Array, bool]:
    """A matrix whose rows or columns are contiguous and begin at multiples of 16 bytes; whether rows are."""
    unit = _UNIT // x.itemsize
    (rows, columns), (down, across) = x.shape, (step_of(x, 0), step_of(x, 1))
    if (across == 1 or columns == 1) and down % unit == 0 and down >= columns:
        return x, True
    if x.itemsize == 2 and down == 1 and across % unit == 0 and rows > 1:
        return x, False
    padded = like(x, (rows, -(-columns // unit) * unit))[:, :columns]
    padded[...] = x
    return padded, True


def _gemm_places(
    a: Array, b: Array, out_dtype: str | None, accurate: bool, autotune: bool, device: str, target: str | None
) -> tuple[Array, ...]:
    out_dtype = _check("gemm", a, b, out_dtype)
    return (like(a, (*a.shape[:-1], b.shape[0]), out_dtype),)


def _gemm(
    places: tuple[Array, ...], a: Array, b: Array, _: str | None, accurate: bool, autotune: bool, device: str,
    target: str | None,
) -> Launches:  # fmt: skip
    accurate = accurate and dtype_of(a).startswith("float8")
    return _product(places[0], a, b, device, target, autotune=autotune, accurate=accurate)


def _product(
    d: Array, a: Array, b: Array, device: str, target: str | None, activation: object = None, **more: object
) -> Launches:
    if 0 in d.shape:
        return
    n = b.shape[0]
    whole = d if len(d.shape) == 2 else d.reshape(-1, n)
    a = a if len(a.shape) == 2 else a.reshape(-1, a.shape[-1])
    arch, blocks = at_hand(device, target)
    if a.shape[1]:
        (a, rows_a), (b, rows_b) = _operand(a), _operand(b)
    else:
        rows_a = rows_b = True
    to, is_right = _operand_of_result(whole, rows_a and rows_b)
    launch = kernel_for("gemm", arch)
    scale_m, *of_columns = (more.get(name) for name in ("scale_m", "scale_n", "gate", "residual", "bias"))
    if not is_right and arch.startswith("sm_90"):  # TMA copies end rows by whole units, too
        of_columns = [_widened(x, to.shape[1]) for x in of_columns]
    elif not is_right:
        to = to[:, :n]
    *extras, bias = of_columns
    ways = (more.get(name, False) for name in ("autotune", "accurate"))
    yield from launch(to, a, b, rows_a and rows_b, blocks, bias, activation, scale_m, *extras, *ways)
    if not is_right:
        whole[...] = to[:, :n]
        yield None


def _operand_of_result(d: Array, by_rows: bool) -> tuple[Array, bool]:
    """The matrix that is written, and whether it is the result: TMA copies write rows of whole units of 16 bytes,
    but of a product of one row with rows no TMA copy writes the result.
    """
    unit = _UNIT // d.itemsize
    if d.shape[-1] % unit == 0 or (d.shape[0] == 1 and by_rows):
        return d, True
    return like(d, (*d.shape[:-1], -(-d.shape[-1] // unit) * unit)), False


def _widened(x: Array | None, columns: int) -> Array | None:
    """A row or a matrix padded with zero columns."""
    if x is None:
        return None
    wide = like(x, (*x.shape[:-1], columns))
    wide[..., x.shape[-1] :] = 0
    wide[..., : x.shape[-1]] = x
    return wide


def _keep_gemm(ctx: GradientContext, inputs: Sequence[object], output: object) -> None:
    a, b, _, _, _, ctx.device, ctx.target = inputs
    ctx.save_for_backward(a, b)


def _gemm_gradient(ctx: GradientContext, d: Array) -> tuple[Array | None, ...]:
    a, b = ctx.saved_tensors
    return *_gradients(ctx, d, a, b), *[None] * 5


def _gradients(ctx: GradientContext, d: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The gradients of a and b for one of a @ b^T."""
    d, name = d.to(a.dtype), dtype_of(a)
    of_a = GEMM(d, b.t(), name, False, False, ctx.device, ctx.target) if ctx.needs_input_grad[0] else None
    of_b = None
    if ctx.needs_input_grad[1]:
        flat, rows = d.reshape(-1, d.shape[-1]), a.reshape(-1, a.shape[-1])
        of_b = GEMM(flat.t(), rows.t(), name, False, False, ctx.device, ctx.target)
    return of_a, of_b


GEMM = Operator(
    "gemm",
    "(Tensor a, Tensor b, str? out_dtype, bool accurate, bool autotune, str device, str? target) -> Tensor",
    _gemm_places, _gemm, Gradient(_keep_gemm, _gemm_gradient),
)  # fmt: skip


def _linear_places(
    x: Array, weight: Array, bias: Array | None, activation: str, gate: Array | None, residual: Array | None,
    scale_x: Array | None, scale_weight: Array | None,
    out_dtype: str | None, device: str, target: str | None,
) -> tuple[Array, ...]:  # fmt: skip
    out_dtype = _check("linear", x, weight, out_dtype)
    if activation not in ACTIVATIONS:
        refuse("linear", f"activation is {activation!r}", f"one of {', '.join(ACTIVATIONS)}")
    shape = (*x.shape[:-1], weight.shape[0])
    for name, row, wanted in (
        ("bias", bias, shape[-1:]), ("gate", gate, shape), ("residual", residual, shape),
        ("scale_x", scale_x, shape[:-1]), ("scale_weight", scale_weight, shape[-1:]),
    ):  # fmt: skip
        if row is not None:
            check_array("linear", name, row, ("float32",) if name.startswith("scale") else FLOATS)
            check_shape("linear", name, row, wanted)
    return (like(x, shape, out_dtype),)


def _linear(
    places: tuple[Array, ...], x: Array, weight: Array, bias: Array | None, activation: str, gate: Array | None,
    residual: Array | None,
    scale_x: Array | None, scale_weight: Array | None, out_dtype: str | None, device: str, target: str | None,
) -> Launches:  # fmt: skip
    n = weight.shape[0]
    gate, residual = (None if y is None else contiguous(y).reshape(-1, n) for y in (gate, residual))
    scale_x = None if scale_x is None else scale_x.reshape(-1)
    return _product(
        places[0], x, weight, device, target, ACTIVATIONS[activation], bias=bias, gate=gate, residual=residual,
        scale_m=scale_x, scale_n=scale_weight,
    )  # fmt: skip


def _keep_linear(ctx: Any, inputs: tuple[Array, ...], output: object) -> None:
    x, weight, bias, ctx.activation, gate, residual, scale_x, scale_weight, _, ctx.device, ctx.target = inputs
    ctx.of_residual = None if residual is None else residual.dtype
    ctx.has_scales = scale_x is not None or scale_weight is not None
    ctx.save_for_backward(x, weight, bias, gate)


def _linear_gradient(ctx: GradientContext, d: Array) -> tuple[Array | None, ...]:
    x, weight, bias, gate = ctx.saved_tensors
    if ctx.has_scales:
        refuse("linear", "the gradient does not support scale factors", "multiply in f16 or bf16 for training")
    of_residual = None if ctx.of_residual is None else d.to(ctx.of_residual)
    d, of_gate = d.float(), None
    if ctx.activation != "none" or gate is not None:
        z = LINEAR(x, weight, bias, "none", None, None, None, None, "float32", ctx.device, ctx.target)
        value, slope = _activated(ctx.activation, z)
        if gate is not None:
            of_gate = (d * value).to(gate.dtype)
            d = d * gate.float()
        d = d * slope
    of_bias = None if bias is None else d.reshape(-1, d.shape[-1]).sum(0).to(bias.dtype)
    return *_gradients(ctx, d, x, weight), of_bias, None, of_gate, of_residual, *[None] * 5


def _activated(name: str, z: Array) -> tuple[Any, Any]:
    """An activation of a tensor of torch, and its slope."""
    if name == "relu":
        return z.clamp(min=0), (z > 0).to(z.dtype)
    if name == "silu":
        share = z.sigmoid()
        return z * share, share * (1 + z * (1 - share))
    if name == "gelu":
        t = (z * (0.7978845608 + 0.0356774081 * z * z)).tanh()
        return z / 2 * (1 + t), (1 + t) / 2 + z / 2 * (1 - t * t) * (0.7978845608 + 3 * 0.0356774081 * z * z)
    return z, z.new_ones(())


LINEAR = Operator(
    "linear",
    "(Tensor x, Tensor weight, Tensor? bias, str activation, Tensor? gate, Tensor? residual, Tensor? scale_x,"
    ' Tensor? scale_weight, str? out_dtype, str device, str? target) -> Tensor',
    _linear_places, _linear, Gradient(_keep_linear, _linear_gradient),
)  # fmt: skip


def _scaled_places(a: Array, b: Array, *args: Any) -> tuple[Array, ...]:
    check_array("scaled_gemm", "a", a, ELEMENTS, 2)
    _check("scaled_gemm", a, b, args[2])
    return (like(a, (a.shape[0], b.shape[0]), args[2]),)


def _scaled(
    places: tuple[Array, ...], a: Array, b: Array, scale_a: Array, scale_b: Array, out_dtype: str, device: str,
    target: str | None,
) -> Launches:  # fmt: skip
    arch, blocks = at_hand(device, target)
    to, is_right = _operand_of_result(places[0], False)
    yield from kernel_for("scaled_gemm", arch)(to, a, b, scale_a, scale_b, blocks)
    if not is_right:
        places[0][...] = to[:, : b.shape[0]]
        yield None


SCALED_GEMM = Operator(
    "scaled_gemm",
    "(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, str out_dtype, str device, str? target)"
    " -> Tensor",
    _scaled_places, _scaled,
)  # fmt: skip


def _grouped_places(a: Array, b: Array, rows: Array, *args: Any) -> tuple[Array, ...]:
    check_array("grouped_gemm", "a", a, ELEMENTS, (2, 3))
    check_array("grouped_gemm", "b", b, ELEMENTS, 3)
    check_array("grouped_gemm", "rows", rows, ("int32",), 1)
    if a.shape[-1] != b.shape[2] or dtype_of(a) != dtype_of(b):
        refuse("grouped_gemm", f"a has {a.shape[-1]} {dtype_of(a)} in a row, b {b.shape[2]} {dtype_of(b)}")
    return (like(a, (*a.shape[:-1], b.shape[1]), args[2] or _result(a)),)


def _grouped(
    places: tuple[Array, ...], a: Array, b: Array, rows: Array, scale_a: Array | None, scale_b: Array | None,
    out_dtype: str | None,
    device: str, target: str | None,
) -> Launches:  # fmt: skip
    arch, blocks = at_hand(device, target)
    to, is_right = _operand_of_result(places[0], False)
    yield from kernel_for("grouped_gemm", arch)(to, a, b, rows, scale_a, scale_b, blocks)
    if not is_right:
        places[0][...] = to[..., : b.shape[1]]
        yield None


GROUPED_GEMM = Operator(
    "grouped_gemm",
    "(Tensor a, Tensor b, Tensor rows, Tensor? scale_a, Tensor? scale_b, str? out_dtype, str device,"
    " str? target) -> Tensor",
    _grouped_places, _grouped,
)  # fmt: skip
