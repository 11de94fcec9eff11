# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the library on a GPU, against torch in f64: at least 500 random shapes of each, forward and backward."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

import math
import random
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from tilefold import kernels
from tilefold.kernels.sm90 import products
from tilefold.kernels.sm90.parts import Config

pytestmark = pytest.mark.gpu

CASES = 500
MATRICES = (
    (1, "float16"), (7, "bfloat16"), (33, "float32"), (64, "bfloat16"), (100, "float16"), (128, "float32"),
    (256, "bfloat16"), (520, "float16"), (1000, "bfloat16"), (1024, "float32"), (2048, "float16"), (3000, "bfloat16"),
    (4096, "bfloat16"), (5120, "float32"), (8192, "bfloat16"), (12288, "float16"),
)  # fmt: skip
"""Columns and types: each makes kernels of its own, which any number of rows share."""
LONG = (16384, 32000, 65536, 100000)
WEIGHTS = (
    (8, 8), (40, 64), (64, 520), (72, 128), (128, 1000), (200, 72), (256, 256), (520, 40), (1000, 200), (1024, 1024),
    (2056, 64), (64, 2056), (1000, 8), (256, 2056), (2056, 520), (4096, 512),
)  # fmt: skip
"""N and K."""
HEADS = (
    (1, 1, 64, "float16"), (4, 1, 128, "bfloat16"), (6, 2, 64, "bfloat16"), (8, 8, 128, "float16"),
    (2, 2, 64, "bfloat16"), (8, 2, 128, "bfloat16"),
)  # fmt: skip
"""Heads of Q and of K, D, and types."""
ALLOWED = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 1e-4}


@pytest.fixture(name="torch")
def _torch() -> Any:  # pyright: ignore[reportUnusedFunction]
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch


def near(given: Any, wanted: Any, name: str, what: object, scale: float = 1.0) -> None:
    """Fails unless elements are near those in f64, relative to the greatest of them."""
    difference = (given.double() - wanted).abs().max() if given.numel() else given.sum().double()
    most = wanted.abs().max() if wanted.numel() else wanted.sum()
    assert float(difference) <= ALLOWED[name] * scale * (1 + float(most)), what


def compare(
    torch: Any, ours: Callable[..., Any], theirs: Callable[..., Any], inputs: list[Any], name: str, what: object
) -> None:
    """Compares results, and the gradients of those inputs that are numbers, with the same in f64."""
    given = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    exact = [x.detach().double().requires_grad_() if x.is_floating_point() else x for x in inputs]
    results, wanted = ours(*given), theirs(*exact)
    results, wanted = (x if isinstance(x, tuple) else (x,) for x in (results, wanted))
    along = [torch.randn_like(x) for x in results]
    for result, right in zip(results, wanted, strict=True):
        near(result.detach(), right.detach(), name, what)
    leaves, right = [x for x in given if x.is_floating_point()], [x for x in exact if x.is_floating_point()]
    found = torch.autograd.grad(results, leaves, along)
    expected = torch.autograd.grad(wanted, right, [x.double() for x in along])
    for gradient, correct in zip(found, expected, strict=True):
        near(gradient, correct, name, (what, "gradient"), 4)


def rows(seed: str) -> list[tuple[int, int, str]]:
    """Rows, columns and types of random matrices."""
    chosen = random.Random(seed)
    return [(chosen.randint(1, 300), *chosen.choice(MATRICES)) for _ in range(CASES)]


def numbers(torch: Any, name: str, *shape: int) -> Any:
    """Normally distributed numbers."""
    return torch.randn(*shape, device="cuda").to(getattr(torch, name))


def test_softmax(torch: Any) -> None:
    for m, n, name in rows("softmax") + [(3, n, "bfloat16") for n in LONG]:
        compare(torch, kernels.softmax, lambda x: x.softmax(-1), [numbers(torch, name, m, n)], name, (m, n, name))


def test_rms_norm(torch: Any) -> None:
    def exact(x: Any, w: Any, r: Any) -> Any:
        h = x + r
        return h * (h.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w, h

    for m, n, name in rows("rms"):
        inputs = [numbers(torch, name, *shape) for shape in ((m, n), (n,), (m, n))]
        if n > 1:
            compare(torch, kernels.rms_norm, exact, inputs, name, (m, n, name))


def test_layer_norm(torch: Any) -> None:
    def exact(x: Any, w: Any, b: Any) -> Any:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], w, b)

    for m, n, name in rows("layer"):
        inputs = [numbers(torch, name, *shape) for shape in ((m, n), (n,), (n,))]
        if n > 8:  # a variance of few numbers may be tiny
            compare(torch, kernels.layer_norm, exact, inputs, name, (m, n, name))


def test_cross_entropy(torch: Any) -> None:
    def exact(x: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(x, target, reduction="none")

    for m, n, name in rows("loss") + [(3, n, "bfloat16") for n in LONG]:
        target = torch.randint(0, n, (m,), device="cuda")
        target[0] = -100
        compare(torch, kernels.cross_entropy, exact, [numbers(torch, name, m, n), target], name, (m, n, name))


def test_swiglu(torch: Any) -> None:
    for m, n, name in rows("swiglu"):
        inputs = [numbers(torch, name, m, n) for _ in range(2)]
        compare(torch, kernels.swiglu, lambda g, u: torch.nn.functional.silu(g) * u, inputs, name, (m, n, name))


def test_rope(torch: Any) -> None:
    chosen = random.Random("rope")
    for _ in range(CASES):
        batch, tokens, heads, half = (chosen.randint(1, most) for most in (3, 40, 6, 80))
        name, interleaved = chosen.choice(list(ALLOWED)), chosen.random() < 0.5
        angles = torch.randn(64, half, device="cuda")
        cos, sin = angles.cos(), angles.sin()
        positions = torch.randint(0, 64, (batch, tokens), device="cuda")

        def exact(x: Any, p: Any, cos: Any = cos, sin: Any = sin, turned: bool = interleaved) -> Any:
            c, s = cos.double()[p][:, :, None], sin.double()[p][:, :, None]
            a, b = (x[..., 0::2], x[..., 1::2]) if turned else x.chunk(2, -1)
            pair = a * c - b * s, b * c + a * s
            return torch.stack(pair, -1).flatten(-2) if turned else torch.cat(pair, -1)

        def ours(x: Any, p: Any, cos: Any = cos, sin: Any = sin, turned: bool = interleaved) -> Any:
            return kernels.rope(x, cos, sin, p, interleaved=turned)

        x = numbers(torch, name, batch, tokens, heads, 2 * half)
        compare(torch, ours, exact, [x, positions], name, (tuple(x.shape), name, interleaved))


def test_quantize(torch: Any) -> None:
    most = {"float8_e4m3fn": (448.0, 2**-4), "float8_e5m2": (57344.0, 2**-3), "int8": (127.0, 0.0)}
    for i, (m, n, name) in enumerate(rows("quantize")):
        kind = list(most)[i % 3]
        block = 64 if n % 64 == 0 and i % 2 else n
        x = numbers(torch, name, m, n)
        q, scale = kernels.quantize(x, kind, None if block == n else block)
        blocks = x.double().view(m, -1, block)
        wanted = blocks.abs().amax(-1).clamp(min=1e-12) / most[kind][0]
        torch.testing.assert_close(scale.double().view(wanted.shape), wanted, rtol=1e-5, atol=0)
        error = (q.double().view(m, -1, block) * wanted[..., None] - blocks).abs()
        step = wanted[..., None] * (0.5 if kind == "int8" else 2**-9) + blocks.abs() * most[kind][1]
        assert bool((error <= 1.01 * step).all()), (m, n, name, kind)


def test_gemm(torch: Any) -> None:
    chosen = random.Random("gemm")
    for i in range(CASES):
        m, (n, k) = chosen.randint(1, 600), WEIGHTS[i % len(WEIGHTS)]
        m = 8 * (m // 8 + 1) if i % 4 == 1 else m
        name = ("float16", "bfloat16")[i % 2]
        a, b = numbers(torch, name, m, k), numbers(torch, name, n, k)
        if i % 4 == 1:
            a = numbers(torch, name, k, m).t()
        if i % 8 == 3:
            b = numbers(torch, name, k, n).t()
        near(kernels.gemm(a, b), a.double() @ b.double().T, name, (m, n, k, name, i))


def test_gemm_whose_blocks_share_k(torch: Any) -> None:
    chosen = random.Random("shared")
    for i in range(CASES):
        m, (n, k) = chosen.randint(65, 300), ((1000, 2048), (264, 4096), (2056, 1024), (520, 8192))[i % 4]
        a, b = numbers(torch, "bfloat16", m, k), numbers(torch, "bfloat16", n, k)
        config = Config(*((128, 64), (128, 128), (256, 128))[i % 3], stages=4, takes_turns=False, splits=2 + i // 4 % 3)
        d = [numbers(torch, "bfloat16", m, n) for _ in range(2)]
        for result in d:
            products.launch_of(result, a, b, products.plan_usual(config, m, n, 132)).run(a, "auto")
        near(d[0], a.double() @ b.double().T, "bfloat16", (m, n, k, config))
        assert bool((d[0] == d[1]).all())


def test_gemm_of_any_extents_and_types(torch: Any) -> None:
    for m, n, k in ((1, 1, 1), (17, 33, 5), (130, 257, 71), (3, 1001, 100), (300, 12, 1023)):
        for name in ("float16", "bfloat16", "float32"):
            a, b = numbers(torch, name, m, k), numbers(torch, name, n, k)
            near(kernels.gemm(a, b), a.double() @ b.double().T, "bfloat16" if name == "float32" else name, (m, n, k))
        a, b = (numbers(torch, "float8_e4m3fn", rows, k) for rows in (m, n))
        near(kernels.gemm(a, b), a.double() @ b.double().T, "bfloat16", (m, n, k, "fp8"))


@pytest.mark.parametrize("part", range(8))
def test_gemm_of_large_ragged_extents(torch: Any, part: int) -> None:
    """Products of more rows than the kernel for few takes, by all orders of memory, whose results have ragged rows.
    Each has a kernel of its own, so that parts that run side by side take less time.
    """
    chosen = random.Random(f"ragged {part}")
    for i in range(part * 5, part * 5 + 5):
        m, n, k = (chosen.randint(least, 2000) for least in (65, 1, 1))
        name = ("float16", "bfloat16", "float32", "float8_e4m3fn")[i % 4]
        a, b = (numbers(torch, name, rows, k) for rows in (m, n))
        if i // 4 % 2 and name != "float8_e4m3fn":
            a = a.t().contiguous().t()
        exact = a.double() @ b.double().T
        near(kernels.gemm(a, b), exact, "bfloat16" if i % 4 > 1 else name, (m, n, k, name))


def test_linear(torch: Any) -> None:
    functional, chosen = torch.nn.functional, random.Random("linear")
    acts = {
        "none": lambda x: x, "relu": functional.relu, "silu": functional.silu,
        "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    }  # fmt: skip
    for i in range(CASES):
        m, (n, k) = chosen.randint(1, 600), WEIGHTS[i % len(WEIGHTS)]
        name, act = ("float16", "bfloat16")[i % 2], list(acts)[i % 4]
        shapes = ((m, k), (n, k), (n,), (m, n), (m, n))
        inputs = [numbers(torch, name, *shape) / (8 if j < 2 else 1) for j, shape in enumerate(shapes)]

        def ours(x: Any, w: Any, b: Any, g: Any, r: Any, act: str = act) -> Any:
            return kernels.linear(x, w, b, act, g, r)

        def exact(x: Any, w: Any, b: Any, g: Any, r: Any, act: str = act) -> Any:
            return acts[act](functional.linear(x, w, b)) * g + r

        if i % 25 == 0:
            compare(torch, ours, exact, inputs, name, (m, n, k, name, act))
        else:
            near(ours(*inputs), exact(*(x.double() for x in inputs)), name, (m, n, k, name, act))


def attended(q: Any, k: Any, v: Any, causal: bool, window: int = 0) -> Any:
    """Attention in the elements of its arguments."""
    torch: Any = import_module("torch")

    shared, rows, keys = q.shape[2] // k.shape[2], q.shape[1], k.shape[1]
    k, v = (x.repeat_interleave(shared, 2) for x in (k, v))
    scores = torch.einsum("brhd,bkhd->bhrk", q, k) / math.sqrt(q.shape[3])
    at = torch.arange(rows, device=q.device)[:, None] + keys - rows
    key = torch.arange(keys, device=q.device)[None]
    seen = (key <= at) if causal else torch.ones_like(key <= at)
    if window:
        seen = seen & (key > at - window)
    scores = scores.masked_fill(~seen, float("-inf"))
    weights = torch.where(seen.any(-1, keepdim=True), scores.softmax(-1).nan_to_num(), 0.0)
    return torch.einsum("bhrk,bkhd->brhd", weights, v)


def _problems(torch: Any, seed: str, only: tuple[int, int, int, str] | None = None) -> Any:
    """Those that are drawn, or `only` those with some heads."""
    chosen = random.Random(seed)
    for i in range(CASES):
        drawn = heads, heads_k, depth, name = chosen.choice(HEADS)
        batch, rows, keys = (chosen.randint(1, most) for most in (3, 300, 300))
        if only not in (None, drawn):
            continue
        q = numbers(torch, name, batch, rows, heads, depth)
        k, v = (numbers(torch, name, batch, keys, heads_k, depth) for _ in range(2))
        yield i, name, (q, k, v), (batch, rows, keys, heads, heads_k, depth, name)


def test_attention(torch: Any) -> None:
    for i, name, (q, k, v), what in _problems(torch, "attention"):
        causal = bool(i % 3) or q.shape[1] < 17
        window = (0, 0, 0, 0, 33)[i % 5] if causal else 0
        exact = attended(q.double(), k.double(), v.double(), causal, window)
        near(kernels.attention(q, k, v, causal=causal, window=window), exact, name, (what, causal, window))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", HEADS, ids=str)
def test_gradient_of_attention(torch: Any, heads: tuple[int, int, int, str], causal: bool) -> None:
    """Each part has kernels of its own, so that parts that run side by side take less time."""

    def ours(q: Any, k: Any, v: Any) -> Any:
        return kernels.attention(q, k, v, causal=causal)

    def exact(q: Any, k: Any, v: Any) -> Any:
        return attended(q, k, v, causal)

    for i, name, inputs, what in _problems(torch, "gradient", heads):
        if causal == (i % 4 < 2):
            compare(torch, ours, exact, list(inputs), name, (what, causal))


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("depth", [64, 128])
def test_gradient_of_packed_sequences(torch: Any, depth: int, deterministic: bool) -> None:
    """If asked for, it is the same in every launch."""
    lengths = (70, 1, 200, 64)
    starts = torch.tensor([0, *lengths], device="cuda").cumsum(0).int()
    q, k, v = (numbers(torch, "bfloat16", 1, sum(lengths), heads, depth).requires_grad_() for heads in (4, 2, 2))
    do = torch.randn_like(q)
    found: list[Any] = []
    for _ in range(2):
        options: Any = {"starts": starts, "starts_k": starts, "deterministic": deterministic}
        out = kernels.attention(q, k, v, causal=True, **options)
        found.append(torch.autograd.grad(out, (q, k, v), do))
    begin = 0
    for length in lengths:
        part = slice(begin, begin + length)
        leaves = [x.detach()[:, part].double().requires_grad_() for x in (q, k, v)]
        exact = torch.autograd.grad(attended(leaves[0], leaves[1], leaves[2], True), leaves, do[:, part].double())
        for mine, right in zip(found[0], exact, strict=True):
            near(mine[:, part], right, "bfloat16", length, 4)
        begin += length
    assert not deterministic or all(bool((a == b).all()) for a, b in zip(*found, strict=True))


def test_decode_attention(torch: Any) -> None:
    chosen = random.Random("decode")
    shapes = [
        (batch, rows, 700, *heads) for batch, rows, heads in ((1, 1, HEADS[1]), (3, 4, HEADS[2]), (8, 2, HEADS[5]))
    ]
    for i in range(CASES):
        batch, rows, keys, heads, heads_k, depth, name = shapes[i % 3]
        q = numbers(torch, name, batch, rows, heads, depth)
        k, v = (numbers(torch, name, batch, keys, heads_k, depth) for _ in range(2))
        lengths = [chosen.randint(rows, keys) for _ in range(batch)]
        causal, window = i % 2 == 0, 50 if i % 4 == 0 else 0
        held = torch.tensor(lengths, device="cuda", dtype=torch.int32)
        given = kernels.decode_attention(q, k, v, held, causal=causal, window=window)
        for b, length in enumerate(lengths):
            wide: list[Any] = [x[b : b + 1].double() for x in (q, k[:, :length], v[:, :length])]
            near(
                given[b : b + 1],
                attended(wide[0], wide[1], wide[2], causal, window),
                name,
                (shapes[i % 3], length, causal, window),
            )


def test_grouped_and_scaled_products(torch: Any) -> None:
    chosen = random.Random("groups")
    for i in range(CASES):
        groups, (n, k) = (3, 8)[i % 2], ((256, 128), (520, 512), (64, 1024))[i % 3]
        a, b = numbers(torch, "bfloat16", groups, 128, k), numbers(torch, "bfloat16", groups, n, k)
        rows = [chosen.randint(0, 128) for _ in range(groups)]
        d = kernels.grouped_gemm(a, b, torch.tensor(rows, device="cuda", dtype=torch.int32))
        for g, count in enumerate(rows):
            near(d[g, :count], a[g, :count].double() @ b[g].double().T, "bfloat16", (rows, n, k, g))
    for m in (1, 64, 100, 128, 257, 1000):
        for n, k in ((128, 128), (520, 512), (2048, 1024)):
            x, w = numbers(torch, "float8_e4m3fn", m, k), numbers(torch, "float8_e4m3fn", n, k)
            scales = (
                torch.rand(m, k // 128, device="cuda") + 0.5,
                torch.rand(-(-n // 128), k // 128, device="cuda") + 0.5,
            )
            wide = [s.double().repeat_interleave(128, -1) for s in scales]
            wide[1] = wide[1].repeat_interleave(128, 0)[:n]
            wanted = (x.double() * wide[0]) @ (w.double() * wide[1]).T
            near(kernels.scaled_gemm(x, w, *scales), wanted, "bfloat16", (m, n, k))
            exact = x.double() @ w.double().T
            near(kernels.gemm(x, w, accumulate="accurate"), exact, "bfloat16", (m, n, k, "accurate"))


def test_the_fastest_plan_of_those_that_are_measured(torch: Any) -> None:
    for m, n, k in ((256, 5120, 1024), (64, 4096, 512), (1000, 664, 2048)):
        a, b = numbers(torch, "bfloat16", m, k), numbers(torch, "bfloat16", n, k)
        for _ in range(2):
            near(kernels.gemm(a, b, autotune=True), a.double() @ b.double().T, "bfloat16", (m, n, k))


def test_under_compilation(torch: Any) -> None:
    x, w = numbers(torch, "bfloat16", 64, 128).requires_grad_(), numbers(torch, "bfloat16", 128)

    def layer(x: Any) -> Any:
        return kernels.softmax(kernels.rms_norm(x, w) * 2)

    compiled = torch.compile(layer, fullgraph=True)
    assert bool((compiled(x) == layer(x)).all())
    along = torch.randn_like(x)
    first, second = (torch.autograd.grad(run(x), x, along)[0] for run in (compiled, layer))
    near(first, second.double(), "bfloat16", "gradient")
