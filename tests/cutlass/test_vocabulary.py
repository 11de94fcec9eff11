# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that programs take from the parts of another compiler: control flow and types of its IR, instructions."""

from dataclasses import dataclass
from inspect import isclass
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tests.cutlass.test_modules import ran
from tilefold import cute
from tilefold.cute import math as floats
from tilefold.cutlass.cutlass_dsl import (
    NumericMeta,
    T,
    debug_print_mlir_values,
    extract_mlir_values,
    if_generate,
    new_from_mlir_values,
    not_,
    set_dynamic_debug,
    while_generate,
    yield_out,
)
from tilefold.cutlass.mlir.dialects import llvm, nvvm, vector
from tilefold.cutlass.mlir.ir import IntegerType


def goes_on(n: Any, *_: Any) -> Any:
    return n > 1


@cute.kernel
def collatz(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    loop = while_generate([A[t], cutlass.Int32(0)], goes_on)
    with loop as (n, steps):
        half = n // 2
        yield_out([if_generate(n % 2 == 0, lambda: half, lambda: 3 * n + 1), steps + 1])
    A[t] = loop.results[1]


def steps_of(n: int) -> int:
    return 0 if n <= 1 else 1 + steps_of(n // 2 if n % 2 == 0 else 3 * n + 1)


def test_loops_and_branches_that_are_generated() -> None:
    A = np.arange(32, dtype=np.int32)
    collatz(A).launch(grid=1, block=32, device="sim")
    assert A.tolist() == [steps_of(n) for n in range(32)]


@cute.kernel
def badly_generated(A: cute.Tensor, given: cute.Constexpr):
    loop = while_generate([A[0]], goes_on)
    with loop as (n,):
        if given:
            yield_out([n] * given)
    A[0] = loop.results[0]


@pytest.mark.parametrize(
    ("given", "text"), [(0, "does not yield its values"), (2, "passes on 2 values, but the loop has 1")]
)
def test_a_loop_whose_body_yields_other_values(given: int, text: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        badly_generated(np.zeros(4, np.int32), given).launch(grid=1, block=32, device="sim")
    assert "E5006" in str(caught.value)
    assert text in str(caught.value)


class Walk:
    """Values that a program names, and such as it does not."""

    def __init__(self, at: Any, steps: Any, limit: int) -> None:
        self.at, self.steps, self.limit = at, steps, limit

    def __extract_mlir_values__(self) -> list[Any]:
        return [*extract_mlir_values(self.at), *extract_mlir_values(self.steps)]

    def __new_from_mlir_values__(self, values: list[Any]) -> "Walk":
        (y, x), steps = new_from_mlir_values(self.at, values[:2]), new_from_mlir_values(self.steps, values[2:])
        return Walk((y, x), steps, self.limit)


@cute.kernel
def rebuilt(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    walk = Walk((t, t + 1), t * 2, 7)
    values = extract_mlir_values(walk)
    assert len(values) == 3
    other = new_from_mlir_values(walk, values[::-1])
    A[t] = other.at[0] * 10000 + other.at[1] * 100 + other.steps + other.limit - 7


def test_values_of_objects() -> None:
    A = np.zeros(32, np.int32)
    rebuilt(A).launch(grid=1, block=32, device="sim")
    assert A.tolist() == [2 * t * 10000 + (t + 1) * 100 + t for t in range(32)]


class Divisors:
    """Divisors that the host prepares, as schedulers of tiles have them."""

    def __init__(self, n: Any, divisor: Any = None) -> None:
        self.n, self.divisor = n, cute.fast_divmod_create_divisor(n) if divisor is None else divisor

    def __extract_mlir_values__(self) -> list[Any]:
        return cutlass.extract_mlir_values(self.n) + cutlass.extract_mlir_values(self.divisor)

    def __new_from_mlir_values__(self, values: list[Any]) -> "Divisors":
        return Divisors(values[0], cutlass.new_from_mlir_values(self.divisor, values[1:]))


@cute.kernel
def divided(out: cute.Tensor, divisors: Divisors, other: cute.FastDivmodDivisor):
    t, _, _ = cute.arch.thread_idx()
    quotient, remainder = divmod(t, divisors.divisor)
    out[t] = quotient * 100 + remainder + (t // other) * 10000 + (t % other) * 1000000 + divisors.n


@cute.jit
def divide(out: cute.Tensor, n: cutlass.Int32):
    divided(out, Divisors(cutlass.Int32(n)), cute.fast_divmod_create_divisor(n + 1)).launch(grid=1, block=32)


def test_divisors_of_the_host() -> None:
    out, t = np.zeros(32, np.int32), np.arange(32)

    def expected(n: int) -> Any:
        return t // n * 100 + t % n + t // (n + 1) * 10000 + t % (n + 1) * 1000000 + n

    divide(out, 5)
    assert out.tolist() == expected(5).tolist()
    cute.compile(divide, out, 5)(out, 7)
    assert out.tolist() == expected(7).tolist()


@dataclass
class Point:
    x: Any
    y: Any


class Cloud:
    """Points in a list, which a program names by their places."""

    def __init__(self, points: list[Point], label: str) -> None:
        self.points, self.label = points, label

    def __extract_mlir_values__(self) -> dict[str, Any]:
        return {"points": [extract_mlir_values(point, structured=True) for point in self.points]}

    def __new_from_mlir_values__(self, values: dict[str, Any]) -> "Cloud":
        given = zip(self.points, values["points"], strict=True)
        return Cloud([new_from_mlir_values(point, new, structured=True) for point, new in given], self.label)


@cute.kernel
def drifted(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    cloud = Cloud([Point(t, 1.0), Point(cute.Float32(2.0), t)], "drift")
    values = extract_mlir_values(cloud, structured=True)
    assert [list(point) for point in values["points"]] == [["x"], ["x", "y"]]
    assert len(extract_mlir_values(cloud)) == 3
    print(debug_print_mlir_values(cloud))
    for _ in cute.range(3):
        values = extract_mlir_values(cloud, structured=True)
        values["points"][0]["x"] = values["points"][0]["x"] + 1
        cloud = new_from_mlir_values(cloud, values, structured=True)
        for _ in cute.range(2):
            cloud.points[1].y = cloud.points[1].y + 1
    A[t] = cloud.points[0].x * 100 + cloud.points[1].y


def test_values_of_objects_by_their_places(capsys: pytest.CaptureFixture[str]) -> None:
    A = np.zeros(32, np.int32)
    set_dynamic_debug(True, max_depth=0)
    try:
        drifted(A).launch(grid=1, block=32, device="sim")
    finally:
        set_dynamic_debug(False)
    assert A.tolist() == [(t + 3) * 100 + t + 6 for t in range(32)]
    tree, _, loops = capsys.readouterr().out.partition("for at ")
    assert tree.splitlines() == [
        "Cloud:", "  points:", "    [0]:", "      x: Int32", "    [1]:", "      x: Float32", "      y: Int32",
    ]  # fmt: skip
    assert "within 0 loops and branches\n  cloud: Cloud\n    points:\n      [0]:\n        x: Int32\n" in loops
    assert loops.count("within") == 1


@cute.kernel
def dialects(A: cute.Tensor, B: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    row = A[t, None].load()
    B[t] = floats.log(vector.extract(row, [], [2])) + floats.exp2(vector.extract(row, [], [1]))
    if nvvm.elect_sync():
        B[t] = -1.0


def test_functions_of_dialects() -> None:
    A = np.random.default_rng(0).random((32, 4)).astype(np.float32) + 1
    B = np.zeros(32, np.float32)
    dialects(A, B).launch(grid=1, block=32, device="sim")
    np.testing.assert_allclose(B[1:], (np.log(A[:, 2]) + np.exp2(A[:, 1]))[1:], rtol=1e-5)
    assert B[0] == -1


@cute.kernel
def packed(A: cute.Tensor, B: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    pair = vector.from_elements(T.vector(2, T.f32()), [A[t], A[t] + 1])
    words = vector.bitcast(T.vector(1, T.i64()), pair)
    low, high = vector.bitcast(T.vector(2, T.i32()), words)[0], vector.bitcast(T.vector(2, T.f32()), words)[1]
    B[t] = vector.bitcast(T.vector(1, T.f32()), vector.from_elements(T.vector(1, T.i32()), [low]))[0] + high


def test_bits_of_vectors() -> None:
    A, B = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    packed(A, B).launch(grid=1, block=32, device="sim")
    assert B.tolist() == (2 * A + 1).tolist()


def test_types_and_conditions() -> None:
    types = [T.bool(), T.i32(), T.i64(), T.f16(), T.bf16(), T.f32(), IntegerType.get_signless(1)]
    assert [str(type) for type in types] == ["i1", "i32", "i64", "f16", "bf16", "f32", "i1"]
    assert isinstance(cutlass.Int32, NumericMeta)
    assert cutlass.Int32.__qualname__ == cutlass.Int32.__name__ == "Int32"
    assert (str(T.vector(2, T.f32())), cutlass.Float.zero, -cutlass.Float.inf) == ("vector<2xf32>", 0, float("-inf"))
    assert not not_(True)
    with pytest.raises(TilefoldError):
        llvm.PointerType.get(99)
    mode = nvvm.CpAsyncBulkTensorLoadMode.IM2COL
    with pytest.raises(TilefoldError, match="im2col"):
        nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp(None, None, [], None, loadMode=mode)


HELPERS = """
import cutlass.cute as cute


class Tiles:
    def __init__(self, shape, *, loc=None, ip=None):
        self.layout = cute.make_layout(shape, loc=loc, ip=ip)
        self.count = cute.size(self.layout, loc=loc, ip=ip)

    def coordinate(self, i, *, loc=None, ip=None):
        return self.layout.get_hier_coord(i, loc=loc, ip=ip)

    def code_of(self, x):
        return {cute.Float32: 1, cute.Int32: 7}[type(x)]

    def with_type(self, x, type):
        return type(x)

    @cute.jit
    def last(layout: cute.Layout, i):
        return Tiles.first(layout, cute.size(layout) - 1 - i)

    @cute.jit
    def first(layout: cute.Layout, i):
        return layout(i)
"""
PROGRAM = """
import numpy as np
import cutlass.cute as cute
from helpers.tiles import Tiles


@cute.kernel
def kernel(A: cute.Tensor):
    tiles = Tiles((4, 8))
    t, _, _ = cute.arch.thread_idx()
    y, x = tiles.coordinate(t)
    A[t] = tiles.with_type(y * 100 + x, cute.Int32) + Tiles.last(tiles.layout, t) * 1000 + tiles.code_of(t) - 7


A = np.zeros(32, np.int32)
kernel(A).launch(grid=1, block=32, device="sim")
assert type(__tilefold_builtin__) is type(len)  # a library may follow the globals of functions that it makes keys of
print(A.tolist() == [t % 4 * 100 + t // 4 + (31 - t) * 1000 for t in range(32)])
"""


def test_places_of_an_ir_are_left_out_of_calls_in_all_files_of_a_program(tmp_path: Path) -> None:
    """Also methods without a decorator have them; and a method may name its class, and ask for the type of a value."""
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "tiles.py").write_text(HELPERS)
    (tmp_path / "program.py").write_text(PROGRAM)
    assert ran("-m", "tilefold.cutlass", str(tmp_path / "program.py")) == "True\n"
    assert not list(tmp_path.rglob("*.pyc"))


@cute.kernel
def approximated(A: cute.Tensor, B: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    B[t] = llvm.inline_asm(T.f32(), [A[t].ir_value()], " tanh.approx.f32  $0, $1; ", "=f,f", has_side_effects=False)
    B[t + 32] = cute.arch.inline_ptx("ex2.approx.ftz.f32 $0, $1;", "=f, f", A[t], results=cute.Float32)


def test_an_approximation_as_text_is_simulated() -> None:
    A, B = np.linspace(-2, 2, 32, dtype=np.float32), np.zeros(64, np.float32)
    call = approximated(A, B)
    call.launch(grid=1, block=32, device="sim")
    np.testing.assert_allclose(B, np.concatenate([np.tanh(A), np.exp2(A)]), rtol=1e-3)
    ptx = call.build(32).ptx("sm_80")
    assert ptx.count("tanh.approx.f32") == ptx.count("ex2.approx.ftz.f32") == 1


@cute.kernel
def voted(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    text = "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, $2; }"
    A[t] = llvm.inline_asm(T.i32(), [(A[t] > 3).ir_value(), cute.Int32(-1)], text, "=r,r,i", has_side_effects=True)
    any_of = "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.any.pred p, p, $2; selp.u32 $0, 1, 0, p; }"
    if llvm.inline_asm(T.bool(), [(A[t] > 3).ir_value(), cute.Int32(-1)], any_of, "=r,r,i", has_side_effects=True):
        A[t] = 0


def test_a_predicate_is_an_integer_of_text() -> None:
    assert "setp.ne.b32 p, %r" in voted(np.zeros(32, np.int32)).build(32).ptx("sm_80")


@cute.kernel
def increased(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    given = [A[t].ir_value(), (A[t] > 3).ir_value(), cute.Int32(10)]
    made = llvm.inline_asm(T.i32(), given, "@$2 add.u32 $0, $1, $3;", "=r,0,b,r", has_side_effects=False)
    if llvm.inline_asm(T.bool(), [made, cute.Int32(15)], "setp.lt.s32 $0, $1, $2;", "=b,r,r"):
        A[t] = made


def test_predicates_of_text() -> None:
    A = np.arange(8, dtype=np.int32)
    call = increased(A)
    call.launch(grid=1, block=8, device="sim")
    assert A.tolist() == [0, 1, 2, 3, 14, 5, 6, 7]
    assert "@holds2 add.u32" in call.build(8).ptx("sm_80")


def of_floats(dtype: Any) -> str:
    return "float" if issubclass(dtype, cutlass.Float) else "none"


@cute.kernel
def families(A: cute.Tensor, dtype: cutlass.Constexpr[Any]):
    x = A[0]
    if not isclass(dtype) or not issubclass(dtype, cutlass.Numeric):
        A[0] = -1
    elif isinstance(x, cutlass.Int32) and isinstance(x, cutlass.Integer) and not isinstance(x, cutlass.Int64):
        A[0] = cutlass.Float16.width


@cute.jit
def doubled(x: float | cutlass.Float32, times: cutlass.Constexpr[int]) -> Any:
    """A function may call itself."""
    if cutlass.const_expr(times == 0):
        return x
    return doubled(x + x, times - 1)


@cute.kernel
def of_type(A: cute.Tensor, B: cute.Tensor | None, n: cutlass.Int32 | None):
    for x in (A[0], A[0].to(cutlass.Int32)):
        kind = {cutlass.Float32: 1, cutlass.Int32: 2}[type(x)]
        A[kind] = doubled(x, 3) + (kind if isinstance(x, float | cutlass.Float32) else 0)
    if cutlass.const_expr(type(n) is cutlass.Int32 and B is None):
        A[3] = n


@cute.jit
def sized() -> list[int]:
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cute.Float32), (4, 2, 1))
    return [cute.make_tiled_copy_tv(atom, cute.make_layout(64), cute.make_layout(1)).size, mma.size]


def test_tiled_copies_and_multiplications_have_sizes() -> None:
    assert sized() == [64, 8]


def test_types_of_values_and_unions_of_types() -> None:
    a = np.array([1.5, 0, 0, 0], np.float32)
    of_type(a, None, 7).launch(grid=1, block=1, device="sim")
    assert a.tolist() == [1.5, 13, 8, 7]


def test_types_are_classes_to_programs() -> None:
    A = np.zeros(1, np.int32)
    families(A, cutlass.Float16).launch(grid=1, block=1, device="sim")
    assert A[0] == 16
    assert [of_floats(dtype) for dtype in (cutlass.Float16, cutlass.Int8)] == ["float", "none"]
    assert issubclass(cutlass.Int8, cutlass.Integer)
    assert issubclass(cutlass.Int8, cutlass.Int8)
    assert not issubclass(cutlass.Int8, cutlass.Int16)
    assert not isinstance(3, cutlass.Numeric)


@cute.kernel
def moved(A: cute.Tensor, B: cute.Tensor, dtype: cutlass.Constexpr[Any]):
    pairs = cute.recast_tensor(A, dtype)
    cute.autovec_copy(pairs, cute.recast_tensor(B, dtype))


@pytest.mark.parametrize("dtype", [cutlass.Float4E2M1FN, cutlass.Float4E2M1FNx2])
def test_floats_of_4_bits_are_moved(dtype: Any) -> None:
    A, B = np.arange(16, dtype=np.uint8), np.zeros(16, np.uint8)
    moved(A, B, dtype).launch(grid=1, block=1, device="sim")
    assert np.array_equal(A, B)
    assert cutlass.Float4E2M1FNx2.width == 2 * cutlass.Float4E2M1FN.width
    assert cutlass.Float6E3M2FNx4.width == 24


@cute.kernel
def other_text(A: cute.Tensor):
    A[0] = cute.arch.inline_ptx("tex.1d.v4.f32.f32 {$0, $0, $0, $0}, [$1, {$1}];", "=f,f", A[0], results=cute.Float32)


def test_any_other_text_is_not() -> None:
    with pytest.raises(TilefoldError) as caught:
        other_text(np.zeros(4, np.float32)).launch(grid=1, block=1, device="sim")
    assert "sim=" in str(caught.value)


def test_integers_of_tuples() -> None:
    shape = (2, (3, 4))
    assert cute.product(shape) == 24
    assert cute.product_like((2, (3, (4, 5))), shape) == (2, (3, 20))
    assert cute.transform_leaf(add, shape, (1, (2, 3))) == (3, (5, 7))
    assert cute.flatten_to_tuple(shape) == cute.tuple_cat(2, (3, 4)) == (2, 3, 4)
    assert cute.front(((5, 6), 7)) == 5
    assert cute.find(shape, 4) == (1, 1)
    assert cute.find(shape, 5) is None
    assert cute.find_if(shape, lambda x, _: x > 1) == 0
    assert cute.has_underscore((1, (None, 2)))
    assert cute.is_major(1, (8, 1))
    assert not cute.is_major(0, (8, 1))
    assert cute.leading_dim((4, (1, 8)), (8, (1, 1))) == (1, 1)
    assert cute.leading_dim((4, 8), (16, 2)) is None
    layout = cute.make_layout((4, 8))
    assert cute.append_ones(layout, up_to_rank=3).shape == (4, 8, 1)
    assert cute.prepend_ones(layout).stride == (0, 1, 4)
    swizzled = cute.make_composed_layout(cute.make_swizzle(1, 2, 2), 0, layout)
    assert cute.get_nonswizzle_portion(swizzled) == layout
    assert cute.get_swizzle_portion(swizzled) == cute.make_swizzle(1, 2, 2)
    assert cute.get_swizzle_portion(layout) is None
    with pytest.raises(TilefoldError):
        cute.transform_leaf(add, shape, (1, 2, 3))


def test_structures_of_values() -> None:
    @cute.native_struct
    class Sums:
        total: cutlass.Float32
        count: cutlass.Int32

    @cute.native_struct(zero_init=False, packed=True)
    class Limits:
        least: cutlass.Float32
        most: cutlass.Float32

    @cute.kernel
    def means(A: cute.Tensor, out: cute.Tensor, limits: Limits):
        t, _, _ = cute.arch.thread_idx()
        sums = Sums()
        for i in range(A.shape[1]):
            if A[t, i] > limits.least and A[t, i] < limits.most:
                sums.total = sums.total + A[t, i]
                sums.count += 1
        out[t] = sums.total / sums.count

    @cute.jit
    def host(A: cute.Tensor, out: cute.Tensor, limits: Limits):
        means(A, out, limits).launch(grid=1, block=4)

    A, out = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros(4, np.float32)
    host(A, out, Limits(1, 30))
    assert out.tolist() == [4.5, 11.5, 19.5, 26.5]
    with pytest.raises(TypeError, match="most"):
        Limits(1)


def test_pairs_and_names_of_instructions() -> None:
    @cute.kernel
    def pairs(A: cute.Tensor):
        a, b = (A[0], A[1]), (A[2], A[3])
        product = cute.arch.mul_packed_f32x2(a, b)
        A[4], A[5] = cute.arch.fma_packed_f32x2(a, b, product, rnd=nvvm.RoundingModeKind.RN)
        A[6], A[7] = cute.arch.sub_packed_f32x2(cute.arch.add_packed_f32x2(a, b), product)
        A[0] = cute.arch.exp2(cute.math.exp2(A[0], approx=True, ftz=True))

    A = np.arange(1, 9, dtype=np.float32)
    pairs(A).launch(grid=1, block=1, device="sim")
    assert A.tolist() == [4, 2, 3, 4, 6, 16, 1, -2]

    @cute.kernel
    def fenced(A: cute.Tensor):
        cute.arch.fence_proxy(cute.arch.ProxyKind.async_shared, space=cute.arch.SharedSpace.shared_cta)
        A[0] = 1

    assert "fence.proxy.async.shared::cta" in fenced(A).build(1).ptx("sm_90")


def test_decorators_and_launches_take_the_options_of_programs() -> None:
    @cute.kernel(preprocessor=True)
    def kernel(A: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < 4:
            A[t] = A[t] + 1

    @cute.jit(preprocessor=True)
    def host(A: cute.Tensor):
        options: Any = {"max_number_threads": [64, 1, 1], "preferred_smem_carveout": 50, "fallback_cluster": [1, 1, 1]}
        hints: Any = {"smem_merge_branch_allocs": False, "hint_smem_base_uniform": True}
        kernel(A).launch(grid=1, block=8, **options, **hints)

    A = np.zeros(8, np.float32)
    host(A, no_cache=True)
    assert A.sum() == 4


def test_machine_code_is_kept_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def disassemble(cubin: bytes, cuda_home: str = "", options: str = "") -> str:
        made.append(options)
        return f"{cubin[1:4]!r}"

    monkeypatch.setattr("tilefold.compiler.machine.nvdisasm.disassemble", disassemble)

    @cute.jit
    def host(A: cute.Tensor):
        collatz(A).launch(grid=1, block=1)

    A = np.zeros(32, np.int32)
    cute.compile[cute.KeepSASS, cute.DumpDir(str(tmp_path))](host, A)
    cute.compile(host, A, options=f"--keep-sass --nvdisasm-options '-c' --dump-dir {tmp_path}")
    assert made == ["-g -c", "-c"]
    assert (tmp_path / "collatz.sass").read_text() == "b'ELF'"


def test_major_modes_of_matrices() -> None:
    rows, columns = cute.utils.LayoutEnum.ROW_MAJOR, cute.utils.LayoutEnum.COL_MAJOR
    assert [rows.is_k_major_a(), rows.is_k_major_b(), rows.is_n_major_c()] == [True] * 3
    assert [rows.is_m_major_a(), rows.is_n_major_b(), rows.is_m_major_c()] == [False] * 3
    assert [columns.is_m_major_a(), columns.is_n_major_b(), columns.is_m_major_c()] == [True] * 3
