# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments compute what NumPy computes, and never change once they are loaded."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError
from tilefold.builder.scalars.values import convert
from tilefold.builder.tensors.expressions import broadcast
from tilefold.builder.tracing.state import building
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.layout.algebra.inttuple import has_underscore, wrap
from xdsl.ir import Block

from tests.examples import examples
from tilefold import cute


def by_one_thread(function: Callable[..., Any], shape: tuple[int, ...], dtype: Any, *arrays: NDArray[Any]) -> Any:
    """What a function of fragments, one for each array, gives in a kernel of one thread, in the simulator."""
    out = np.zeros(shape, dtype)

    @cute.kernel
    def compute(Out: cute.Tensor, inputs: list[cute.Tensor]):
        Out.store(function(*[each.load() for each in inputs]))

    compute(out, list(arrays)).launch(grid=1, block=1, device="sim")
    return out


@pytest.mark.parametrize("stage", ["cute", "folded", "atoms", "index", "instr"])
def test_a_fragment_like_a_tensor_whose_modes_are_one_element(stage: str) -> None:
    """Modes of equal strides share registers in the fragment as in CuTe, and hold what the tensor holds there."""

    @cute.kernel
    def read(A: cute.Tensor, Out: cute.Tensor):
        repeated = cute.make_tensor(A.iterator, cute.make_layout((4, 3, 5), stride=(1, 0, 0)))
        diagonal = cute.make_tensor(A.iterator, cute.make_layout((1, 3, 4), stride=(0, 2, 2)))
        for index, tensor in enumerate((repeated, diagonal)):
            fragment = cute.make_fragment_like(tensor)
            cute.autovec_copy(tensor, fragment)
            values = fragment.load().reshape(tensor.shape)
            Out[index] = values.reduce(cute.ReductionOp.ADD, 0) + values[0, 2, 3]

    a, out = np.arange(16, dtype=np.int32) ** 2, np.zeros(2, np.int32)
    read(a, out).launch(grid=1, block=1, device="sim", stage=stage)
    diagonal = [(2 * (i + j)) ** 2 for i in range(3) for j in range(4)]
    assert out.tolist() == [15 * (0 + 1 + 4 + 9) + 0, sum(diagonal) + (2 * 5) ** 2]


RANDOM = np.random.default_rng(0)
A = RANDOM.uniform(0.1, 2.0, (4, 8)).astype(np.float32)
B = RANDOM.uniform(0.1, 2.0, (4, 8)).astype(np.float32)
ROW = RANDOM.uniform(0.1, 2.0, (1, 8)).astype(np.float32)
COLUMN = RANDOM.uniform(0.1, 2.0, (4, 1)).astype(np.float32)


ELEMENTWISE: Sequence[Callable[[Any, Any, Any, Any, Any], Any]] = (
    lambda np, a, b, row, column: a + b * 2 - 1,
    lambda np, a, b, row, column: (a - row) / column,
    lambda np, a, b, row, column: row * column,
    lambda np, a, b, row, column: 1 / (a * row) + column,
    lambda np, a, b, row, column: -abs(a - b),
    lambda np, a, b, row, column: np.where(a > row, a, b),
    lambda np, a, b, row, column: np.where((a > row) & (b < 1), 0.5, column),
    lambda of, a, b, row, column: (
        cute.math.max(a, row) * cute.math.min(b, 1.0) if of is cute else np.maximum(a, row) * np.minimum(b, 1.0)
    ),
    lambda np, a, b, row, column: np.exp(a) + np.log(b) + np.sqrt(row) + np.tanh(column),
    lambda np, a, b, row, column: np.exp2(a) + np.log2(b) + np.sin(row) * np.cos(column) + np.floor(a * 4),
    lambda np, a, b, row, column: (a + b) * (a + b) + a**3,
    lambda np, a, b, row, column: a**b + a**0.5 + b**-0.5 + row**-2 + a**0 + column**2.5,
    lambda np, a, b, row, column: 2.0**a + row**column + 3**b,
)


@pytest.mark.parametrize("function", ELEMENTWISE)
def test_elementwise_as_numpy(function: Callable[..., Any]) -> None:
    got = by_one_thread(lambda *xs: function(cute, *xs), (4, 8), np.float32, A, B, ROW, COLUMN)
    np.testing.assert_allclose(got, function(np, A, B, ROW, COLUMN), rtol=2e-6, atol=1e-6)


def less_half(a: Any, b: Any) -> Any:
    return a - b / 2


def argmin_above_least(x: NDArray[Any]) -> int:
    flat = x.reshape(-1, order="F")
    return int(np.where(flat > flat.min(), flat, np.inf).argmin())


SHAPES: Sequence[tuple[Callable[[Any], Any], Any]] = (
    (lambda x: x.reduce(cute.ReductionOp.ADD, reduction_profile=(None, 1)), A.sum(1)),
    (lambda x: x.reduce(cute.ReductionOp.MAX, reduction_profile=(0, None)), A.max(0)),
    (lambda x: x.reduce(cute.ReductionOp.MIN, reduction_profile=(0, 1)), A.min()),
    (lambda x: x.reduce(cute.ReductionOp.ADD, 10.0), A.sum() + 10),
    (lambda x: x.reduce(cute.ReductionOp.ADD, 10.0, 0), A.sum() + 10),
    (lambda x: x.reduce("max", None, 1), A.max()),
    (lambda x: x.reduce(less_half, 1.0, (None, 1)), functools.reduce(less_half, A.T, 1.0)),
    (lambda x: cute.argmax(x).to(cute.Float32), A.reshape(-1, order="F").argmax()),
    (lambda x: cute.argmin(cute.where(x > A.min(), x, float("nan"))).to(cute.Float32), argmin_above_least(A)),
    (lambda x: x.reduce(cute.ReductionOp.ADD, 0, (None, 1)), A.sum(1)),
    (lambda x: x.reduce(cute.ReductionOp.ADD, None, [0, None]), A.sum(0)),
    (lambda x: x.reduce(cute.ReductionOp.MAX, None, (1, None), keepdims=True), A.max(0, keepdims=True)),
    (lambda x: x.reduce(cute.ReductionOp.ADD, 1.0, (None, None)), A + 1),
    (lambda x: x.reduce(cute.ReductionOp.MUL, reduction_profile=(None, 1), keepdims=True), A.prod(1, keepdims=True)),
    (
        lambda x: x - x.reduce(cute.ReductionOp.MAX, reduction_profile=(None, 1), keepdims=True),
        A - A.max(1, keepdims=True),
    ),
    (lambda x: x.reshape((2, 16))[1, None], A.reshape(-1, order="F").reshape((2, 16), order="F")[1]),
    (lambda x: x[2, 3] + x[0, 0], A[2, 3] + A[0, 0]),
    (lambda x: (x > 1).to(cute.Int32).reduce(cute.ReductionOp.ADD).to(cute.Float32), (A > 1).sum()),
    (lambda x: (x > 1.9).reduce(cute.ReductionOp.OR).to(cute.Float32), float((A > 1.9).any())),
    (lambda x: cute.full_like(x, 3) + cute.fma(x, 2, 1), A * 2 + 4),
    (lambda x: cute.exp2(x - 1).to(cute.Float16).to(cute.Float32), np.exp2(A - 1).astype(np.float16)),
)


@pytest.mark.parametrize(("function", "wanted"), SHAPES)
def test_reductions_and_shapes(function: Callable[..., Any], wanted: Any) -> None:
    wanted = np.asarray(wanted, np.float32)
    got = by_one_thread(function, wanted.shape or (1,), np.float32, A)
    np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-5)


def profiles(shape: Any) -> Iterator[Any]:
    """All that a reduction can name of a shape: None for what is kept."""
    yield from (None, 1)
    if not isinstance(shape, int):
        parts: list[Any] = [list(profiles(part)) for part in shape]
        yield from product(*parts)


@pytest.mark.parametrize("keepdims", [False, True])
def test_profiles_of_nested_shapes(keepdims: bool) -> None:
    """Each of the profiles of the shape ((2,4),3,2), against NumPy on its leaves."""
    shape, leaves = ((2, 4), 3, 2), (2, 4, 3, 2)
    values = np.arange(48, dtype=np.int32) % 7
    chosen: list[Any] = [each for each in profiles(shape) if each is not None and has_underscore(each)]

    def reduced(profile: Any) -> NDArray[Any]:
        kept = [[leaf is None for leaf in wrap(part)] for part in profile]
        kept[0] *= 2 // len(kept[0])
        axes = tuple(axis for axis, stays in enumerate(chain(*kept)) if not stays)
        modes = [
            [size for size, stays in zip(part, mode, strict=True) if stays]
            for part, mode in zip(((2, 4), (3,), (2,)), kept, strict=True)
        ]
        wanted = tuple(math.prod(mode) for mode in modes if mode or keepdims)
        return values.reshape(leaves, order="F").sum(axes, dtype=np.int32).reshape(wanted, order="F")

    @cute.kernel
    def sums(Out: cute.Tensor, Source: cute.Tensor, profile: cute.Constexpr):
        r = cute.make_rmem_tensor(shape, cute.Int32)
        for i in range(48):
            r[i] = Source[i]
        Out.store(r.load().reduce(cute.ReductionOp.ADD, 0, profile, keepdims=keepdims))

    assert len(chosen) > 10
    for profile in chosen:
        wanted = reduced(profile)
        out = np.zeros(wanted.shape, np.int32)
        sums(out, values, profile).launch(grid=1, block=1, device="sim")
        assert out.tolist() == wanted.tolist(), profile


def test_softmax_of_rows() -> None:
    def softmax(x: Any) -> Any:
        e = cute.exp(x - x.reduce(cute.ReductionOp.MAX, reduction_profile=(None, 1), keepdims=True))
        return e / e.reduce(cute.ReductionOp.ADD, reduction_profile=(None, 1), keepdims=True)

    e = np.exp(A - A.max(1, keepdims=True))
    np.testing.assert_allclose(by_one_thread(softmax, (4, 8), np.float32, A), e / e.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("stage", ["cute", "folded", "atoms", "index", "instr"])
def test_what_was_loaded_stays(stage: str) -> None:
    """Stores, fills, copies, single elements, loops and branches come after what was loaded, not before."""

    @cute.kernel
    def snapshots(Out: cute.Tensor, Source: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        r = cute.make_rmem_tensor(8, cute.Float32)
        r.store(Source)
        x = r.load()
        doubled = x * 2
        r.store(doubled)
        y = r.load()
        cute.autovec_copy(Source, r)
        z = r.load() + 1
        r[0] = 100.0
        shifted = r.load()
        for i in cute.range(2):
            r[i] = -1.0
        if t == 0:
            r.fill(7)
        Out[0, None] = x
        Out[1, None] = doubled
        Out[2, None] = y
        Out[3, None] = z
        Out[4, None] = shifted
        Out[5, None] = r.load()

    source = np.arange(8, dtype=np.float32)
    out = np.zeros((6, 8), np.float32)
    snapshots(out, source).launch(grid=1, block=1, device="sim", stage=stage)
    shifted = source.copy()
    shifted[0] = 100
    wanted = [source, source * 2, source * 2, source + 1, shifted, np.full(8, 7)]
    assert out.tolist() == np.array(wanted).tolist()


def test_overlapping_views() -> None:
    """A transposition in place reads everything before it writes."""

    @cute.kernel
    def transpose(Out: cute.Tensor, Source: cute.Tensor):
        r = cute.make_rmem_tensor((4, 4), cute.Float32)
        r.store(Source)
        turned = cute.select(r, [1, 0])
        turned.store(r.load() + 0)
        Out.store(r)

    source, out = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((4, 4), np.float32)
    transpose(out, source).launch(grid=1, block=1, device="sim")
    assert out.tolist() == source.T.tolist()


def test_fragments_that_are_returned_from_branches_and_loops() -> None:
    """Nothing reads what a function returns on a path on which it does not: a fragment is not taken from another."""

    def returned(t: Any, n: Any, x: Any) -> Any:
        if n > 0:
            if t > 5:
                return x - 1
            for i in range(n):
                if t > 2 + i:
                    return x * 2
        return x

    @cute.kernel
    def kernel(Out: cute.Tensor, Source: cute.Tensor, n: cute.Int32):
        t, _, _ = cute.arch.thread_idx()
        Out[t, None] = cute.jit(returned)(t, n, Source[t, None].load())

    source = np.arange(32, dtype=np.float32).reshape(8, 4)
    for n in range(3):
        out = np.zeros((8, 4), np.float32)
        kernel(out, source, n).launch(grid=1, block=8, device="sim")
        assert out.tolist() == [returned(t, n, source[t]).tolist() for t in range(8)]


def test_coordinates_meet_fragments() -> None:
    """A coordinate is an Int32, and a loop's counter, of type Index, makes a fragment of integers one of Int64."""

    @cute.kernel
    def kernel(Out: cute.Tensor, Source: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        x = Source[t, None].load() + t
        assert x.dtype == cute.Int32
        for i in cute.range(t, t + 1):
            assert (x * i).dtype == cute.Int64
        if t > 3:
            x = x * t
        Out[t, None] = x - x.reduce(cute.ReductionOp.MIN, None, 0, keepdims=True)

    source = np.arange(32, dtype=np.int32).reshape(8, 4) ** 2 % 50
    out = np.zeros((8, 4), np.int64)
    kernel(out, source).launch(grid=1, block=8, device="sim")
    lanes = np.arange(8)[:, None]
    wanted = (source + lanes) * np.where(lanes > 3, lanes, 1)
    assert out.tolist() == (wanted - wanted.min(1, keepdims=True)).tolist()


def test_one_pass_over_the_elements() -> None:
    @cute.kernel
    def fused(X: cute.Tensor, Y: cute.Tensor):
        r, s = cute.make_rmem_tensor(8, cute.Float32), cute.make_rmem_tensor(8, cute.Float32)
        r.store(X)
        s.store(cute.exp2(r.load() * 2 + 1) / (r.load() + 3))
        Y.store(s)

    x, y = np.zeros(8, np.float32), np.zeros(8, np.float32)
    built = fused(x, y).build(1)
    text = built.ir("cute")
    assert text.count("tile.map") == 1
    assert text.count("tile.alloc") == 3  # the user's two, and what was loaded of X
    assert ".local" not in built.ptx("sm_80")


def test_broadcasting_appends_modes() -> None:
    """FlashInfer's gqa_decode subtracts the maxima of columns, (8), from scores of the shapes (8,2) and (8,1)."""
    assert broadcast((4, 8), (4,)) == (4, 8)
    assert broadcast((4, 1), (4,)) == (4, 1)
    assert broadcast((1, 8), (4,)) == (4, 8)
    assert broadcast(((2, 2), 8), (1, 8)) == ((2, 2), 8)
    assert broadcast((1, 8), ((2, 2), 8)) == ((2, 2), 8)
    with pytest.raises(TilefoldError, match="no common shape"):
        broadcast((4, 8), (8,))


MISTAKES: Sequence[tuple[Callable[[Any], object], str]] = (
    (lambda x: bool(x), "Python cannot branch on a"),
    (lambda x: [each for each in x], "cannot iterate over a fragment"),
    (lambda x: x & 1, "not defined for Float32"),
    (lambda x: x.reduce("sum"), "expected a reduction"),
    (lambda x: x.reduce(less_half), "needs an initial value"),
    (lambda x: x.reduce(cute.ReductionOp.ADD, 0, (None, 1, 1)), "are nested differently"),
    (lambda x: x.reduce(cute.ReductionOp.ADD, 0, (None, (1, None))), "are nested differently"),
    (lambda x: x.reduce(cute.ReductionOp.ADD, 0, 1.0), "expected integers"),
    (lambda x: x.reduce(cute.ReductionOp.ADD, 0, True), "not a profile of a shape"),
    (lambda x: x.reshape((3, 3)), "do not fit the shape"),
    (lambda x: x + cute.full((3, 5), 1, cute.Float32), "no common shape"),
    (lambda x: cute.make_rmem_tensor((4, 2), cute.Float32).store(x), "no common shape"),
    (lambda x: cute.exp(x.to(cute.Float8E5M2)), "does not support arithmetic"),
)


@pytest.mark.parametrize(("mistake", "words"), MISTAKES)
def test_mistakes(mistake: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(ProgramError) as error, building(Block(), convert):
        mistake(cute.make_rmem_tensor((4, 8), cute.Float32).load())
    assert words in error.value.message  # the line that is shown has the words, too


def test_numbers_stay_numbers() -> None:
    assert cute.exp(0.0) == 1.0
    assert cute.math.max(2, 3) == 3
    assert cute.where(True, 1, 2) == 1
    assert cute.fma(2, 3, 4) == 10
    assert cute.rsqrt(4.0) == 0.5
    assert math.isclose(cute.log2(8.0), 3.0)


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_loops_and_branches_hand_on_fragments(stage: str) -> None:
    """The softmax of long rows, one tile after the other: maxima, sums and results are carried."""

    @cute.kernel
    def online(X: cute.Tensor, M: cute.Tensor, L: cute.Tensor, Y: cute.Tensor):
        tiles = cute.flat_divide(X, (4, 8))
        m = cute.full((4, 1), float("-inf"), cute.Float32)
        total = cute.full((4, 1), 0, cute.Float32)
        last = first = tiles[None, None, 0, 0].load()
        for k in cute.range(X.shape[1] // 8):
            x = tiles[None, None, 0, k].load()
            old, m = m, cute.math.max(m, x.reduce(cute.ReductionOp.MAX, reduction_profile=(None, 1), keepdims=True))
            total = total * cute.exp(old - m) + cute.exp(x - m).reduce(
                cute.ReductionOp.ADD, reduction_profile=(None, 1), keepdims=True
            )
            if k == 1:
                last = x * 2
            elif k == 2:
                last = last + 1
            first, last = last, first
        M.store(m)
        L.store(total)
        Y.store(last)

    x = RANDOM.standard_normal((4, 32)).astype(np.float32)
    m, total, y = np.zeros((4, 1), np.float32), np.zeros((4, 1), np.float32), np.zeros((4, 8), np.float32)
    online(x, m, total, y).launch(grid=1, block=1, device="sim", stage=stage)
    assert ".local" not in online.ptx("sm_80")  # what is handed on is in registers
    largest = x.max(1, keepdims=True)
    assert m.tolist() == largest.tolist()
    np.testing.assert_allclose(total, np.exp(x - largest).sum(1, keepdims=True), rtol=1e-5)
    last = first = x[:, :8]
    for k in range(4):
        last = x[:, 8:16] * 2 if k == 1 else last + 1 if k == 2 else last
        first, last = last, first
    assert y.tolist() == last.tolist()


def test_fragments_of_other_shapes_are_not_handed_on() -> None:
    @cute.kernel
    def grow(Y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        x = cute.full(4, 0, cute.Float32)
        if t == 0:
            x = cute.full(8, 0, cute.Float32)
        Y.store(x)

    with pytest.raises(ProgramError, match="'x' has no value here"):
        grow(np.zeros(4, np.float32)).launch(grid=1, block=1, device="sim")


def test_elements_are_written_as_wide_as_they_are_read() -> None:
    @cute.kernel
    def doubled(X: cute.Tensor, Y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        Y[None, t].store(X[None, t].load() * 2.0)

    x = np.ones((2, 8), np.float16).T
    ptx = doubled(x, np.zeros((2, 8), np.float32).T).build(2).ptx("sm_80")
    assert ptx.count("ld.global.v4.b32") == 1
    assert ptx.count("st.global.v4.b32") == 2


def test_elements_beyond_a_fragment_are_not_stored() -> None:
    """FlashAttention's sm_90 kernel stores so many elements of the sums of its rows that most are beyond them. The
    simulator names them at each stage.
    """

    @cute.kernel
    def beyond(A: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        r = cute.make_rmem_tensor(2, cute.Float32)
        r[0], r[1] = A[t] + 1.0, A[t] + 2.0
        for m in cute.range(4, unroll_full=True):
            A[m % 2 * 32 + t] = r[m]

    built = beyond(np.zeros(64, np.float32)).build(32)
    assert built.ptx("sm_90a").count("st.global.b32") == 2
    for stage, said in (("instr", "coordinate 2 is out of range for extent 2"), ("ptx", "depends on undefined bytes")):
        with pytest.raises(TilefoldError, match=said):
            beyond(np.zeros(64, np.float32)).launch(grid=1, block=32, device="sim", stage=stage)


SHAPES_OF_INPUTS = ((2, 3, 4), (1, 3, 4), (1, 1, 4), (2, 1, 4), (1, 3, 1), (1,))


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Operations on what was computed before: a name and the numbers of two operands; -1 stores and loads again."""
    steps: list[tuple[str, int, int]] = []
    for _ in range(draw(st.integers(1, 8))):
        known = len(SHAPES_OF_INPUTS) + len(steps)
        name = draw(st.sampled_from(["add", "sub", "mul", "max", "where", "reduce", "memory"]))
        steps.append((name, draw(st.integers(0, known - 1)), draw(st.integers(0, known - 1))))
    return steps


def run(np_or_cute: Any, steps: list[tuple[str, int, int]], inputs: list[Any], memory: Callable[[Any], Any]) -> Any:
    """The last result of a program, and the sum of all, which use everything several times."""
    held, total = list(inputs), inputs[0]
    for name, i, j in steps:
        a, b = held[i], held[j]
        held.append(
            {
                "add": lambda a=a, b=b: a + b,
                "sub": lambda a=a, b=b: a - b * 2,
                "mul": lambda a=a, b=b: a * 0.5 * b,
                "max": lambda a=a, b=b: (cute.math.max if np_or_cute is cute else np.maximum)(a, b),
                "where": lambda a=a, b=b: np_or_cute.where(a < b, a, 1.0),
                "reduce": lambda a=a: (
                    a.reduce(cute.ReductionOp.MAX, None, (*(None,) * (a.rank - 1), 1), keepdims=True)
                    if np_or_cute is cute
                    else a.max(-1, keepdims=True)
                ),
                "memory": lambda a=a: memory(a),
            }[name]()
        )
        total = total + held[-1]
    return total


@given(programs())
@settings(max_examples=examples(12), deadline=None)
def test_programs_of_fragments(steps: list[tuple[str, int, int]]) -> None:
    """However results are used again, and whatever is written between, they are NumPy's."""
    random = np.random.default_rng(len(steps))
    arrays = [random.integers(-8, 9, shape).astype(np.float64) for shape in SHAPES_OF_INPUTS]

    def through_memory(x: cute.TensorSSA) -> cute.TensorSSA:
        scratch = cute.make_rmem_tensor(x.shape, cute.Float64)
        scratch.store(x)
        loaded = scratch.load()
        scratch.fill(-1)  # what was loaded stays what it was
        return loaded

    got = by_one_thread(lambda *xs: run(cute, steps, list(xs), through_memory), (2, 3, 4), np.float64, *arrays)
    assert got.tolist() == run(np, steps, arrays, lambda x: x).tolist()


def test_fragments_like_others() -> None:
    @cute.kernel
    def like(A: cute.Tensor, out: cute.Tensor):
        x = A.load()
        zeros, ones = cute.zeros_like(x), cute.ones_like(A, cute.Int32)
        assert (zeros.shape, zeros.dtype, ones.dtype) == (x.shape, x.dtype, cute.Int32)
        out[0] = (x + zeros).reduce(cute.ReductionOp.ADD) + ones.reduce(cute.ReductionOp.ADD).to(cute.Float32)
        out[1] = cute.any_(x > 6).to(cute.Float32) + 10 * cute.all_(x > 0).to(cute.Float32)
        out[2] = cute.any_(x > 9).to(cute.Float32) + 10 * cute.all_(x).to(cute.Float32)

    out = np.zeros(3, np.float32)
    like(np.arange(8, dtype=np.float32), out).launch(grid=1, block=1, device="sim")
    assert out.tolist() == [28 + 8, 1, 0]
