# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What threads know of themselves and do together: lanes, votes, atomics, barriers, printing."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError
from tilefold.builder.scalars.values import convert, wrap
from tilefold.builder.tracing.state import building
from tilefold.compiler.frontend.diagnostics import ProgramError
from xdsl.dialects.builtin import Float32Type, IntegerType
from xdsl.ir import Block

from tests.kernels.harness import STAGES
from tilefold import cute

LANES = np.arange(32)


def by_lane(function: Callable[[Any], Any], values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """What a function gives in each lane of a warp, in the simulator."""
    out = np.zeros(32, dtype)

    @cute.kernel
    def warp(A: cute.Tensor, Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        Out[t] = function(A[t])

    warp(values, out).launch(grid=1, block=32, device="sim")
    return out


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64])
def test_values_of_other_lanes(dtype: Any) -> None:
    values = (LANES * 3 - 40).astype(dtype)
    if dtype == np.int64:
        values = values * (1 << 33) + LANES
    assert by_lane(lambda x: cute.arch.shuffle_sync_bfly(x, 5), values, dtype).tolist() == values[LANES ^ 5].tolist()
    up = by_lane(lambda x: cute.arch.shuffle_sync_up(x, 3, mask_and_clamp=24 << 8), values, dtype)
    assert up.tolist() == values[np.where(LANES % 8 < 3, LANES, LANES - 3)].tolist()
    down = by_lane(lambda x: cute.arch.shuffle_sync_down(x, 1), values, dtype)
    assert down.tolist() == values[np.minimum(LANES + 1, 31)].tolist()
    part = by_lane(lambda x: cute.arch.shuffle_sync_op(x, 2, -1, 28 << 8 | 31, "down"), values, dtype)
    assert part.tolist() == values[np.where(LANES % 4 < 2, LANES + 2, LANES)].tolist()
    assert by_lane(lambda x: cute.arch.shuffle_sync(x, 7), values, dtype).tolist() == [values[7].item()] * 32


def test_reductions_of_a_warp() -> None:
    values = np.random.default_rng(0).integers(-100, 100, 32).astype(np.int32)
    for op, function in (
        (cute.ReductionOp.ADD, np.sum),
        (cute.ReductionOp.MAX, np.max),
        (cute.ReductionOp.MIN, np.min),
    ):
        got = by_lane(lambda x, op=op: cute.arch.warp_reduction(x, op), values, np.int32)
        assert got.tolist() == [function(values)] * 32
    got = by_lane(lambda x: cute.arch.warp_reduction(x, cute.ReductionOp.ADD, threads_in_group=8), values, np.int32)
    assert got.tolist() == np.repeat(values.reshape(4, 8).sum(1), 8).tolist()
    most = by_lane(lambda x: cute.arch.warp_reduction_max(x, threads_in_group=4), values, np.int32)
    assert most.tolist() == np.repeat(values.reshape(8, 4).max(1), 4).tolist()
    assert by_lane(cute.arch.warp_reduction_sum, values, np.int32).tolist() == [values.sum()] * 32
    got = by_lane(lambda x: cute.arch.warp_reduction(x, lambda a, b: a ^ b), values, np.int32)
    assert got.tolist() == [np.bitwise_xor.reduce(values)] * 32
    assert by_lane(lambda x: cute.arch.redux_sync(x, "max"), values, np.int32).tolist() == [values.max()] * 32


def test_votes() -> None:
    values = LANES.astype(np.int32)
    assert by_lane(lambda x: cute.arch.vote_ballot_sync(x < 3), values, np.int32).tolist() == [7] * 32
    assert by_lane(lambda x: cute.arch.vote_any_sync(x == 9).to(cute.Int32), values, np.int32).tolist() == [1] * 32
    assert by_lane(lambda x: cute.arch.vote_all_sync(x < 9).to(cute.Int32), values, np.int32).tolist() == [0] * 32
    assert by_lane(lambda x: cute.arch.vote_uni_sync(x < 99).to(cute.Int32), values, np.int32).tolist() == [1] * 32
    wanted = [sum(1 << j for j in range(32) if j % 4 == i % 4) for i in range(32)]
    got = by_lane(lambda x: cute.arch.match_any(x % 4), values, np.int32)
    assert (got.astype(np.int64) & 0xFFFFFFFF).tolist() == wanted


def test_fragments_are_exchanged_by_elements() -> None:
    @cute.kernel
    def exchange(A: cute.Tensor, Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        x = A[t, None].load()
        Out[t, None] = cute.arch.warp_reduction(x * x, cute.ReductionOp.ADD) + cute.arch.shuffle_sync_bfly(x, 1)

    a = np.arange(128, dtype=np.float32).reshape(32, 4)
    out = np.zeros_like(a)
    exchange(a, out).launch(grid=1, block=32, device="sim")
    assert out.tolist() == ((a * a).sum(0) + a[LANES ^ 1]).tolist()


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_atomics_and_barriers(stage: str) -> None:
    @cute.kernel
    def count(Bins: cute.Tensor, Values: cute.Tensor, Sum: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        bins = cute.make_smem_tensor(8, cute.Int32)
        if t < 8:
            bins[t] = 0
        cute.arch.sync_threads()
        cute.arch.red(bins.ptr(Values[t]), 1, op="add")
        cute.arch.sync_threads()
        if t < 8:
            cute.arch.atomic_add(Bins.ptr(t), bins[t], sem="relaxed", scope="gpu")
        cute.arch.atomic_max(Bins.ptr(8), Values[t])
        cute.arch.atomic_cas(Bins.ptr(9), 0, 42)
        cute.arch.atomic_or(Bins.iterator + 10, 1 << t % 4)
        cute.arch.atomic_xor(Bins.iterator + 11, 0)
        cute.arch.atomic_and(Bins.iterator + 11, 6)
        cute.arch.red(Sum.ptr(), 0.5, op="add")
        cute.arch.fence()

    values = np.random.default_rng(1).integers(0, 8, 64).astype(np.int32)
    bins, total = np.zeros(12, np.int32), np.zeros(1, np.float32)
    bins[11] = 13
    count(bins, values, total).launch(grid=2, block=64, device="sim", stage=stage)
    assert bins[:8].tolist() == (2 * np.bincount(values, minlength=8)).tolist()
    assert bins[8:].tolist() == [values.max(), 42, 15, 4]
    assert total.tolist() == [64.0]


@pytest.mark.parametrize("device", ["sim", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float32, np.float64])
def test_exchanges(dtype: Any, device: str) -> None:
    """Each thread leaves its number and takes another one's: all are there once, in some order."""

    @cute.kernel
    def exchange(Slot: cute.Tensor, Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        Out[t] = cute.arch.atomic_exch(Slot.ptr(), t + 1)

    slot, out = np.zeros(1, dtype), np.zeros(32, dtype)
    exchange(slot, out).launch(grid=1, block=32, device=device)
    assert sorted([*out.tolist(), *slot.tolist()]) == list(range(33))


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_extremes_of_floats(stage: str) -> None:
    @cute.kernel
    def extremes(Values: cute.Tensor, Most: cute.Tensor, Least: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        cute.arch.atomic_fmax(Most.iterator + t // 16, Values[t], sem="relaxed", scope="gpu")
        cute.arch.atomic_fmin(Least.iterator + t // 16, Values[t])

    values = np.random.default_rng(3).normal(size=(4, 16)).astype(np.float32)
    values[1], values[2] = np.abs(values[1]), -np.abs(values[2])
    most, least = np.full(4, -np.inf, np.float32), np.full(4, np.inf, np.float32)
    extremes(values.reshape(-1), most, least).launch(grid=1, block=64, device="sim", stage=stage)
    assert most.tolist() == values.max(1).tolist()
    assert least.tolist() == values.min(1).tolist()


def test_approximations_and_extremes_by_their_names() -> None:
    values = np.linspace(0.5, 4, 32).astype(np.float32)
    got = by_lane(lambda x: cute.arch.rcp_approx(cute.arch.fmin(cute.arch.fmax(x, 1.0), 3.0)), values, np.float32)
    np.testing.assert_allclose(got, 1 / np.clip(values, 1, 3), rtol=1e-6)


class Names(IntEnum):
    PAIR = 1


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_waiting_for_each_other(stage: str) -> None:
    """Barriers in shared memory, of copies too; flags that blocks release and acquire; named barriers."""

    @cute.kernel
    def wait(A: cute.Tensor, Out: cute.Tensor, Flag: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        shared = cute.make_smem_tensor(cute.make_layout((64, 4), stride=(4, 1)), cute.Float32)
        bars = cute.make_smem_tensor(2, cute.Int64)
        if t == 0:
            cute.arch.mbarrier_init(bars.ptr(0), 64)
            cute.arch.mbarrier_init(bars.ptr(1), 64)
        cute.arch.sync_threads()
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.GLOBAL), cute.Float32)
        cute.copy(atom, A[t, None], shared[t, None])
        cute.arch.cp_async_mbarrier_arrive_noinc(bars.ptr(0))
        cute.arch.mbarrier_wait(bars.ptr(0), 0)
        row = shared[63 - t, None].load()
        cute.arch.mbarrier_arrive(bars.ptr(1))
        cute.arch.mbarrier_wait(bars.ptr(1), 0)
        shared[t, None] = row + 1
        cute.arch.barrier(barrier_id=Names.PAIR, number_of_threads=64)
        Out[t, None] = shared[63 - t, None]
        if t == 0:
            cute.arch.store_release(Flag.ptr(0), 7)
            Flag[1] = cute.arch.load_acquire(Flag.ptr(0))
            cute.arch.nanosleep(20)
        cute.arch.sync_warp()

    a = np.arange(256, dtype=np.float32).reshape(64, 4)
    out, flag = np.zeros_like(a), np.zeros(2, np.int32)
    wait(a, out, flag).launch(grid=1, block=64, device="sim", stage=stage)
    assert out.tolist() == (a + 1).tolist()
    assert flag.tolist() == [7, 7]


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_bulk_copies(stage: str) -> None:
    """One thread has a tile copied in, and the result copied out."""

    @cute.kernel
    def scale(A: cute.Tensor, B: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        tile = cute.make_smem_tensor(128, cute.Float32)
        bar = cute.make_smem_tensor(1, cute.Int64)
        if t == 0:
            cute.arch.mbarrier_init(bar.ptr(0), 1)
            cute.arch.fence_proxy("async")
        cute.arch.sync_threads()
        if t == 0:
            cute.arch.cp_async_bulk_prefetch(A.ptr(0), 512)
            cute.arch.mbarrier_arrive_and_expect_tx(bar.ptr(0), 512)
            cute.arch.cp_async_bulk_load(tile.ptr(0), A.ptr(0), 512, bar.ptr(0))
        cute.arch.mbarrier_wait(bar.ptr(0), 0)
        tile[t] = 2.0 * tile[t]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0:
            cute.arch.cp_async_bulk_store(B.ptr(0), tile.ptr(0), 512)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)

    a, b = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    scale(a, b).launch(grid=1, block=128, device="sim", stage=stage)
    assert b.tolist() == (2 * a).tolist()


def test_registers_of_warpgroups() -> None:
    @cute.kernel
    def move(Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t < 128:
            cute.arch.setmaxregister_decrease(40)
        else:
            cute.arch.setmaxregister_increase(232)
        Out[t] = t

    out = np.zeros(384, np.int32)
    move(out).launch(grid=1, block=384, device="sim")
    assert out.tolist() == list(range(384))


def test_where_a_thread_is() -> None:
    @cute.kernel
    def places(Out: cute.Tensor):
        x, y, _ = cute.arch.thread_idx()
        m, _, _ = cute.arch.block_idx()
        width, _, _ = cute.arch.block_dim()
        blocks, _, _ = cute.arch.grid_dim()
        i = cute.arch.linear_thread_idx()
        row = Out[m, i, None]
        row[0], row[1], row[2] = cute.Int32(x), cute.Int32(y), cute.Int32(width * 100 + blocks)
        row[3], row[4] = cute.Int32(cute.arch.warp_idx()), cute.Int32(cute.arch.lane_idx())

    out = np.zeros((2, 48, 5), np.int32)
    places(out).launch(grid=2, block=(16, 3), device="sim")
    wanted = [[i % 16, i // 16, 1602, i // 32, i % 32] for i in range(48)]
    assert out.tolist() == [wanted, wanted]


def test_approximations() -> None:
    values = np.linspace(0.5, 4, 32).astype(np.float32)
    got = by_lane(lambda x: cute.arch.approx("ex2", cute.arch.approx("lg2", x)), values, np.float32)
    np.testing.assert_allclose(got, values, rtol=1e-5)


def test_printing() -> None:
    @cute.kernel
    def show(A: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 3:
            cute.printf("t = {}, x = {}, 100%", t, A[t])
            cute.printf("%lld %g\n", t, A[1])
            cute.printf("{}\n", t + 4)
            cute.printf("%d%% without an end", t)
            cute.print_layout(A, "A")
            cute.print_tensor(cute.local_tile(A, (2,), (1,)), "tile")

    result: Any = show(np.arange(4, dtype=np.float16)).launch(grid=1, block=4, device="sim")
    lines = result.output.splitlines()
    assert lines[:4] == ["t = 3, x = 3.000000, 100%", "3 1", "7", "3% without an end"]
    assert lines[4].startswith("A: ")
    assert [line.split() for line in lines[6:]] == [["2"], ["3"]]


def test_printing_coordinates() -> None:
    @cute.kernel
    def show(A: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        coords = cute.local_tile(cute.make_identity_tensor((4, 40)), (2, 20), (1, t))
        if t == 1:
            cute.print_tensor(coords, "c")

    result: Any = show(np.zeros(4, np.float16)).launch(grid=1, block=4, device="sim")
    header, *rows = result.output.splitlines()
    assert header == "c: (2,20) o (2,20):(1@0,1@1):"
    assert [row.split() for row in rows] == [[f"({m},{n})" for n in range(20, 40)] for m in (2, 3)]


def test_coordinates_that_are_too_many_to_print() -> None:
    @cute.kernel
    def show(shape: cute.Constexpr):
        cute.print_tensor(cute.make_identity_tensor(shape))

    with pytest.raises(TilefoldError, match=r"E2005.*2048 elements; at most 1024"):
        show((64, 32)).launch(grid=1, block=1, device="sim")


def test_tables_of_layouts(capsys: Any) -> None:
    assert cute.pretty_str(cute.make_layout((2, 3), stride=(3, 1))) == "(2,3):(3,1)"
    cute.print_layout(cute.make_layout((2, 3), stride=(3, 1)))
    assert capsys.readouterr().out.splitlines()[::2] == ["(2,3):(3,1)", "    +---+---+---+", *["    +---+---+---+"] * 2]
    with pytest.raises(TilefoldError, match="a table needs two modes, but the layout is 4:1"):
        cute.print_layout(cute.make_layout(4))


@cute.kernel
def inline(A: cute.Tensor, Out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    x = A[t]
    Out[t] = cute.arch.inline_ptx("lop3.b32 $0, $1, $2, $3, 0x96;", "=r,r,r,r", x, 5, cute.Int32(t), results=cute.Int32)
    low, high = cute.arch.inline_ptx(
        "mov.b64 {$0, $1}, $2;", "=r,=r,l", cute.Int64(t), results=(cute.Int32, cute.Int32)
    )
    cute.arch.inline_ptx("st.global.b32 [$0], $1;", "l,r", Out.ptr(t + 32), low + high)


def test_ptx_as_text() -> None:
    a, out = np.arange(32, dtype=np.int32), np.zeros(64, np.int32)
    built = inline(a, out).build(32)
    ptx = built.ptx("sm_80")
    assert ptx.count("lop3.b32") >= 1
    assert "mov.b64 {%r" in ptx
    inline(a, out).launch(grid=1, block=32, device="sim")
    assert out.tolist() == [*(a ^ 5 ^ np.arange(32)), *range(32)]


@pytest.mark.gpu
def test_ptx_as_text_on_a_gpu() -> None:
    a, out = np.arange(32, dtype=np.int32), np.zeros(64, np.int32)
    inline(a, out).launch(grid=1, block=32, device="cuda")
    assert out[:32].tolist() == (a ^ 5 ^ LANES).tolist()
    assert out[32:].tolist() == LANES.tolist()


def xor(x: Any, y: Any, z: Any) -> Any:
    return x ^ y ^ z


def two(x: Any, y: Any, z: Any) -> Any:
    return x, y


def halves(wide: Any) -> Any:
    return wide & 0xFFFFFFFF, wide >> 32


def nothing(_: Any) -> None:
    return None


@cute.kernel
def simulated_text(
    Source: cute.Tensor,
    Out: cute.Tensor,
    given: cute.Constexpr[Callable[..., Any]],
    split: cute.Constexpr[Callable[..., Any] | None],
):
    t, _, _ = cute.arch.thread_idx()
    x = Source[t]
    three = "lop3.b32 $0, $1, $2, $3, 0x96;"
    Out[t] = cute.arch.inline_ptx(three, "=r,r,r,r", x, 5, cute.Int32(t), results=cute.Int32, sim=given)
    low, high = cute.arch.inline_ptx(
        "mov.b64 {$0, $1}, $2;",
        "=r,=r,l",
        cute.Int64(x) * 65537 + t,
        results=(cute.Int32, cute.Int32),
        sim=split,
    )
    cute.arch.inline_ptx("nanosleep.u32 $0;", "r", 10, sim=nothing)
    Out[t + 32] = low - high


@pytest.mark.parametrize("stage", STAGES)
def test_text_is_simulated_by_a_function(stage: str) -> None:
    a, out = np.arange(32, dtype=np.int32) * 7 - 50, np.zeros(64, np.int32)
    t = np.arange(32)
    simulated_text(a, out, xor, halves).launch(grid=1, block=32, device="sim", stage=stage)
    wide = a.astype(np.int64) * 65537 + t
    low = (wide & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)
    assert out[:32].tolist() == (a ^ 5 ^ t).tolist()
    assert out[32:].tolist() == (low - (wide >> 32).astype(np.int32)).tolist()


@cute.kernel
def unknown_text(Source: cute.Tensor):
    Source[0] = cute.arch.inline_ptx("txq.width.b32 $0, [$1];", "=r,r", Source[0], results=cute.Int32)


def test_text_that_the_simulator_is_told_nothing_of() -> None:
    a, out = np.zeros(32, np.int32), np.zeros(64, np.int32)
    with pytest.raises(ProgramError, match=r"E3201.* does not execute text: txq") as unknown:
        unknown_text(a).launch(grid=1, block=1, device="sim")
    assert "sim=" in str(unknown.value)
    with pytest.raises(ProgramError, match="E3201") as caught:
        simulated_text(a, out, two, halves).launch(grid=1, block=32, device="sim")
    assert "gives 2 results, the text has 1" in str(caught.value)


@pytest.mark.gpu
def test_a_gpu_computes_what_the_functions_do() -> None:
    a = np.arange(32, dtype=np.int32) * 7 - 50
    wanted, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
    call = simulated_text(a, wanted, xor, halves)
    call.launch(grid=1, block=32, device="sim")
    simulated_text(a, out, xor, None).launch(grid=1, block=32, device="cuda")
    assert out.tolist() == wanted.tolist()


MISTAKES: Sequence[tuple[Callable[[Any, Any], object], str, str]] = (
    (lambda i, x: cute.arch.atomic_add(x, 1), "E5002", "expected the address of an element"),
    (lambda i, x: cute.arch.atomic_fmax(cute.make_smem_tensor(1, cute.Int32).ptr(), x), "E5002", "is for Float32"),
    (lambda i, x: cute.arch.approx("exp", x), "E5002", "no approximation 'exp'"),
    (lambda i, x: cute.arch.warp_reduction(x, cute.ReductionOp.ADD, threads_in_group=12), "E5002", "a segment has"),
    (lambda i, x: cute.arch.shuffle_sync(x, 0, mask_and_clamp=20 << 8 | 31), "E5002", "not a mask of segments"),
    (
        lambda i, x: cute.arch.inline_ptx("mov.b32 $0, $1;", "=r,r", x, results=cute.Int32),
        "E1003",
        "which is 'f', not 'r'",
    ),
    (lambda i, x: cute.arch.inline_ptx("mov.b32 $0, $1;", "r", i), "E1003", "names .1, but there are 1"),
    (lambda i, x: cute.printf("{}"), "E5002", "1 {}, but 0 values"),
    (lambda i, x: cute.printf("%s", i), "E5002", "unknown conversion"),
    (lambda i, x: cute.printf("%d"), "E1003", "1 conversions, but 0 values"),
    (lambda i, x: cute.make_rmem_tensor(4, cute.Float32).ptr(0), "E1003", "registers, which have no address"),
)


@pytest.mark.parametrize(("mistake", "code", "words"), MISTAKES)
def test_mistakes(mistake: Callable[[Any, Any], object], code: str, words: str) -> None:
    block = Block(arg_types=[IntegerType(32), Float32Type()])
    with pytest.raises(ProgramError, match=words) as error, building(block, convert):
        mistake(*map(wrap, block.args))
    assert error.value.code == code


@pytest.mark.parametrize(("kind", "space"), [("async.shared", None), ("async", "cta"), ("alias", None)])
def test_fences_of_proxies_that_there_are_not(kind: str, space: str | None) -> None:
    @cute.kernel
    def kernel(A: cute.Tensor):
        cute.arch.fence_proxy(kind, space)

    with pytest.raises(ProgramError, match=r"E5002.*there is no fence of the proxy"):
        kernel(np.zeros(1, np.float32)).build(32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_functions_by_one_instruction(dtype: Any) -> None:
    values = np.linspace(0.25, 3, 32).astype(dtype)
    for name in ("exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tanh"):
        function = getattr(cute.math, name)
        fast = by_lane(lambda x, function=function: function(x, fastmath=True), values, dtype)
        exact = by_lane(function, values, dtype)
        np.testing.assert_allclose(fast, exact, rtol=2e-3 if dtype == np.float16 else 1e-3, atol=1e-5)
    assert by_lane(lambda x: cute.math.rcp(x), values, dtype).tolist() == pytest.approx((1 / values).tolist(), rel=1e-3)
    assert (
        by_lane(lambda x: cute.math.min(cute.math.max(x, 1), 2), values, dtype).tolist()
        == np.clip(values, 1, 2).tolist()
    )

    @cute.kernel
    def approximated(A: cute.Tensor):
        A.store(cute.math.exp2(A.load(), fastmath=True) + cute.math.erf(A.load(), fastmath=True))

    assert "ex2.approx.ftz.f32" in approximated(np.zeros(4, np.float32)).build(1).ptx("sm_80")


def test_memory_by_the_name_of_cute_programs() -> None:
    def reversed_by(x: Any) -> Any:
        memory = cute.make_tensor(cute.arch.alloc_smem(cute.Int32, 32), 32)
        t = cute.arch.thread_idx()[0]
        memory[t] = x
        cute.arch.sync_threads()
        return memory[31 - t]

    assert by_lane(reversed_by, LANES.astype(np.int32), np.int32).tolist() == LANES[::-1].tolist()


@cute.kernel
def words_stored(A: cute.Tensor, B: cute.Tensor, sem: cute.Constexpr[str | None] = None):
    cute.arch.store(B.iterator.llvm_ptr, cute.recast_tensor(A, cute.Int32).load(), sem=sem)


def test_a_vector_is_stored_in_its_own_type() -> None:
    A, B = np.arange(8, dtype=np.float16), np.zeros(8, np.float16)
    words_stored(A, B).launch(grid=1, block=1, device="sim")
    np.testing.assert_array_equal(B, A)


def test_a_vector_is_stored_without_an_order() -> None:
    A, B = np.arange(8, dtype=np.float16), np.zeros(8, np.float16)
    with pytest.raises(ProgramError, match=r"E5002.*takes a single element"):
        words_stored(A, B, "release").launch(grid=1, block=1, device="sim")
