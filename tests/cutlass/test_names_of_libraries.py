# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What public libraries import and derive from, and names that they import and do not use."""

import subprocess
import sys
from dataclasses import dataclass
from functools import reduce
from inspect import isclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tests.programs.private_names import NEEDED_BY
from tilefold import cute
from tilefold.cute import nvgpu, pipeline
from tilefold.cute.math import absi
from tilefold.cute.nvgpu import cpasync, warpgroup
from tilefold.cute.utils import SmemAllocator, SmemPartition, block_copy, hopper_helpers
from tilefold.cutlass import architectures, iket
from tilefold.cutlass.architectures import Arch, BaseDSL
from tilefold.cutlass.base_typing import get_c_pointers, get_mlir_types
from tilefold.cutlass.cutlass_dsl import and_, extract_mlir_attributes, is_dynamic_expression
from tilefold.cutlass.experimental import primitives
from tilefold.cutlass.mlir import ir, types
from tilefold.cutlass.mlir.dialects import arith, llvm, nvvm

IMPORTS = """
import numpy as np
import cutlass
import cutlass.cute as cute
import cutlass.cute.nvgpu.tcgen06.mma as mma
from cutlass._private.module import something
from cutlass.cute import unheard_of
from cutlass.cute.nvgpu import tcgen06, warp
from importlib.util import find_spec
from typing import Union


def of_sm_100(a: tcgen06.Mode = tcgen06.Mode.K, b: Union[unheard_of, int] = 0, c: warp.NoOp = warp.NoOp.X): ...


class Derived(warp.NoSuchOp): ...


try:
    from cutlass.cute import not_there
except ImportError:
    print("tried")

print(hasattr(cute, "unheard_of"), hasattr(cute.nvgpu, "tcgen06"), isinstance(3, unheard_of), tcgen06.X == None)
print(find_spec("cutlass.utils.unheard_of"), find_spec("cutlass.utils.hopper_helpers") is not None)
for use in (lambda: mma.Op(1), lambda: unheard_of(), lambda: something + 1, lambda: Derived(), lambda: tcgen06.X == 3):
    try:
        use()
    except AttributeError as error:
        print(str(error).splitlines()[0])


@cute.jit
def host(a: cute.Tensor):
    cute.print_tensor(unheard_of(a))


host(np.zeros(3, np.float32))
"""


def run(file: Path, text: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    import os

    file.write_text(text)
    command = [sys.executable, "-m", "tilefold.cutlass", str(file)]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_names_that_are_missing_are_errors_where_they_are_used(tmp_path: Path) -> None:
    done = run(tmp_path / "program.py", IMPORTS)
    assert done.stdout.splitlines() == [
        "tried",
        "False False False False",
        "None True",
        "E5009: cute.nvgpu has no 'tcgen06'",
        "E5009: cute has no 'unheard_of'",
        "E5009: cutlass has no '_private'",
        "E5009: cute.nvgpu.warp has no 'NoSuchOp'",
        "E5009: cute.nvgpu has no 'tcgen06'",
    ], done.stderr
    assert done.returncode == 1
    assert "unheard_of(a)" in done.stderr
    assert "E5009" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_uncaught_error_shows_the_lines_of_the_program(tmp_path: Path) -> None:
    text = "import cutlass.cute as cute\ndef f():\n    return cute.make_layout((2, -1))\nf()\n"
    done = run(tmp_path / "program.py", text)
    assert done.returncode == 1
    assert "cute.make_layout((2, -1))" in done.stderr
    assert "tilefold/cutlass" not in done.stderr
    whole = run(tmp_path / "program.py", text, TILEFOLD_TRACEBACK="1").stderr
    assert "Traceback" in whole
    assert "run_as_main" in whole
    assert "TypeError" in run(tmp_path / "program.py", "import cutlass\n1 + ''\n").stderr


def test_an_error_of_python_shows_the_lines_of_the_program(tmp_path: Path) -> None:
    text = "import cutlass.cute as cute\n@cute.jit\ndef f():\n    g()\ndef g():\n    raise KeyError(1)\nf()\n"
    done = run(tmp_path / "program.py", text)
    assert [line.strip() for line in done.stderr.splitlines() if "File" in line] == [
        f'File "{tmp_path / "program.py"}", line {line}, in {name}'
        for line, name in ((7, "<module>"), (4, "f"), (6, "g"))
    ]
    assert done.stderr.endswith("KeyError: 1\n")
    assert "jit.py" in run(tmp_path / "program.py", text, TILEFOLD_TRACEBACK="1").stderr


@pytest.mark.parametrize("name", NEEDED_BY)
def test_private_names_that_public_programs_need(name: str) -> None:
    assert NEEDED_BY[name]
    assert reduce(getattr, name.split("."), cutlass) is not None


def helper(out: cute.Tensor, t: Any) -> None:
    with cute.arch.elect_one():  # in a function that is not rewritten
        out[64] = 7
        with cute.arch.elect_one():
            out[65] = 8


@cute.kernel
def instructions(out: cute.Tensor, f: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    iket.range_push("range")
    shifted = arith.shrui(cute.Int32(-1), 28) + arith.shli(arith.constant(cute.Int32.mlir_type, 1), 4)
    known = is_dynamic_expression([1, t]) and not is_dynamic_expression((1, 2.0))
    chosen = cutlass.select_(and_(t < 8, True, t > 3), llvm.intr_ctlz(t, False), 0)
    out[t] = shifted + chosen if known else -1
    floats = arith.bitcast(cute.Float32.mlir_type, arith.bitcast(cute.Int32.mlir_type, cute.Float32(t)))
    f[t], f[t + 32] = cute.arch.calc_packed_f32x2_op((floats, 1.0), (2.0, t), None, nvvm.sub_packed_f32x2)
    f[t + 64] = arith.maximumf(floats, 5.0) + arith.minnumf(floats, 5.0) + arith.select(t < 3, 0.5, 0.0)
    out[t + 32] = arith.extui(cute.Int32, arith.trunci(cute.Int8, t - 1)) ^ arith.andi(t, 0)
    out[t + 66] = cute.arch.log2_of_pow2_int(cute.Int32(1) << t) + cute.arch.log2_of_pow2_int(8)
    out[t + 98] = cute.arch.cvt_f32_tf32(1.0 + cute.math.mul(t, 2.0**-12))
    f[t + 96] = arith.divf(cute.Float32(t), 4.0, fastmath=arith.FastMathFlags.fast)
    iket.mark("point")
    iket.range_pop()
    helper(out, t)


def test_instructions_by_private_names() -> None:
    out, f = np.zeros(130, np.int32), np.zeros(128, np.float32)
    instructions(out, f).launch(grid=1, block=32, device="sim")
    t = np.arange(32)
    assert (out[:32] == 31 + np.where((t > 3) & (t < 8), 29, 0)).all()
    assert (out[32:64] == np.concatenate([[255], t[:-1]])).all()
    assert out[64:66].tolist() == [7, 8]
    assert (out[66:98] == t + 3).all()
    assert (out[98:].view(np.float32) == 1 + np.floor(t / 4 + 0.5) * 2.0**-10).all()
    assert (f[:32] == t - 2).all()
    assert (f[32:64] == 1 - t).all()
    assert (f[96:] == t / 4).all()
    assert (f[64:96] == t + 5 + np.where(t < 3, 0.5, 0)).all()


@cute.kernel
def rounded_pairs(f: cute.Tensor, rnd: cute.Constexpr) -> None:
    third, tiny = cute.Float32(1 / 3), f[0]
    f[0], f[1] = cute.arch.add_packed_f32x2((third, -third), (2.0**23, -(2.0**23)), rnd=rnd)
    f[2], f[3] = cute.arch.mul_packed_f32x2((tiny, tiny), (1.0, -1.0), rnd=rnd, ftz=True)
    f[4], f[5] = cute.arch.fma_packed_f32x2((third, -third), (1.0, 1.0), (2.0**23, -(2.0**23)), rnd=rnd)


@pytest.mark.parametrize(("rnd", "up"), [("rm", (0, -1)), ("rp", (1, 0)), ("rz", (0, 0)), (None, (0, 0))])
def test_pairs_have_the_roundings_of_instructions(rnd: str | None, up: tuple[int, int]) -> None:
    f = np.full(6, 1e-40, np.float32)
    rounded_pairs(f, rnd).launch(grid=1, block=1, device="sim")
    wanted = [2**23 + up[0], -(2**23) + up[1]]
    assert f.tolist() == [*wanted, 0, 0, *wanted]


def test_types_in_objects() -> None:
    class Argument:
        def __get_mlir_types__(self) -> list[Any]:
            return [cute.Int32.mlir_type]

        def __c_pointers__(self) -> list[int]:
            return [4096]

        def __extract_mlir_attributes__(self) -> list[str]:
            return ["grid_constant"]

    assert get_mlir_types(Argument()) == [cute.Int32.mlir_type]
    assert [*extract_mlir_attributes(Argument()), *extract_mlir_attributes(3)] == ["grid_constant"]
    assert get_c_pointers((Argument(), 3, [Argument()])) == [4096, 4096]


def test_offsets_and_bases() -> None:
    @cute.kernel
    def shifted(a: cute.Tensor, out: cute.Tensor) -> None:
        out[0] = cute.domain_offset((None, 2), a)[1, 0]

    a, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(1, np.float32)
    shifted(a, out).launch(grid=1, block=1, device="sim")
    assert out[0] == a[1, 2]
    assert str(cute.E(0) * 3) == str(3 * cute.E(0))


@dataclass(frozen=True)
class OwnPipeline(pipeline.PipelineTmaAsync):
    """As a library derives it: it acquires by the mbarrier arrays."""

    extra: int

    @staticmethod
    def create(**given: Any) -> "OwnPipeline":  # pyright: ignore[reportIncompatibleMethodOverride]
        made = pipeline.PipelineTmaAsync.create(**given)
        object.__setattr__(made, "__class__", OwnPipeline)
        return made  # pyright: ignore[reportReturnType]

    def producer_acquire(self, state: Any, try_acquire_token: Any = None) -> None:
        self.sync_object_empty.wait(state.index, state.phase)
        self.sync_object_full.arrive(state.index, self.producer_mask)


def parts_of_a_pipeline(storage: Any, stages: int, tx_count: int) -> Any:
    """A pipeline that a program makes of its parts."""
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    make = pipeline.PipelineAsync._make_sync_object  # pyright: ignore[reportPrivateUsage]
    full = make(storage, stages, (pipeline.PipelineOp.TmaLoad, group), tx_count)
    empty = make(storage + stages, stages, (pipeline.PipelineOp.AsyncThread, group))
    layout = cute.make_layout((1, 1, 1, 1))
    rank, signals = pipeline.PipelineTmaAsync.init_empty_barrier_arrive_signal(layout, 0)
    cute.arch.mbarrier_init_fence()
    pipeline.pipeline_init_wait()
    assert rank == 0
    return OwnPipeline(full, empty, stages, None, None, signals, 0)


@cute.kernel
def loading(atom: cute.CopyAtom, src: cute.Tensor, out: cute.Tensor, of_parts: cute.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    smem = SmemAllocator()
    layout = cute.make_layout((32, 8, 2), stride=(8, 1, 256))
    staged = smem.allocate_tensor(cute.Float32, layout, partition=SmemPartition.USER)
    group, bytes = pipeline.CooperativeGroup(pipeline.Agent.Thread), 32 * 8 * 4
    bars = pipeline.alloc_reserved_mbarrier(2)
    if of_parts:
        pipe = parts_of_a_pipeline(bars, 2, bytes)
    else:
        pipe = OwnPipeline.create(
            num_stages=2, producer_group=group, consumer_group=group, tx_count=bytes, barrier_storage=bars
        )
    tiles = cute.local_tile(src, (32, 8), (None, 0))
    for i in cute.range_constexpr(4):
        filled = pipeline.PipelineState(stages=0, count=0, index=i % 2, phase=(i // 2 + 1) % 2)
        pipe.producer_acquire(filled)
        at = pipe.producer_get_barrier(filled)
        block_copy(atom, tiles[None, None, i], staged[None, None, i % 2], tma_bar_ptr=at)
        pipe.producer_commit(filled)
        read = pipeline.PipelineState(stages=0, count=0, index=i % 2, phase=i // 2)
        pipe.consumer_wait(read)
        out[i, t] = staged[t, 3, i % 2]
        pipe.consumer_release(read)


@cute.jit
def load(src: cute.Tensor, out: cute.Tensor, of_parts: cute.Constexpr) -> None:
    tile = cute.make_layout((32, 8), stride=(8, 1))
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), src, tile, (32, 8))
    assert isinstance(atom.op, cpasync.CopyBulkTensorTileG2SOp)
    loading(atom, coords, out, of_parts).launch(grid=1, block=32)


@pytest.mark.parametrize("of_parts", [False, True])
def test_pipelines_that_programs_derive_and_make(of_parts: bool) -> None:
    src = np.random.default_rng(0).random((128, 8), np.float32)
    out = np.zeros((4, 32), np.float32)
    load(src, out, of_parts)
    assert (out == src[:, 3].reshape(4, 32)).all()


GROUPED = cute.make_layout((32, (2, 8)), stride=(8, (0, 1)))
"""32 rows of 16 elements of which two share a place, as elements share a scale factor."""


@cute.kernel
def loading_shared(atom: cute.CopyAtom, coords: cute.Tensor, out: cute.Tensor) -> None:
    t = cute.arch.thread_idx()[0]
    staged = cute.make_smem_tensor(GROUPED, cute.Float32, alignment=128)
    bar = cute.make_smem_tensor(1, cute.Int64).ptr(0)
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 32 * 8 * 4)
    cute.arch.sync_threads()
    block_copy(atom, cute.local_tile(coords, (32, (2, 8)), (1, 0)), staged, tma_bar_ptr=bar)
    cute.arch.mbarrier_wait(bar, 0)
    for i in cute.range_constexpr(8):
        out[t, i] = staged[t, (1, i)]


@cute.jit
def load_shared(src: cute.Tensor, out: cute.Tensor) -> None:
    grouped = cute.make_tensor(src.iterator, cute.make_layout((64, (2, 8)), stride=(8, (0, 1))))
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), grouped, GROUPED, (32, (2, 8)))
    loading_shared(atom, coords, out).launch(grid=1, block=32)


def test_a_block_copy_copies_shared_elements_once() -> None:
    src, out = np.random.default_rng(0).random((64, 8), np.float32), np.zeros((32, 8), np.float32)
    load_shared(src, out)
    assert (out == src[32:]).all()


@cute.kernel
def releasing(out: cute.Tensor) -> None:
    """Both blocks of a cluster release a stage of the first one, which waits for that."""
    t, rank = cute.arch.thread_idx()[0], cute.arch.block_idx_in_cluster()
    sides = (pipeline.CooperativeGroup(pipeline.Agent.Thread, size) for size in (32, 64))
    producers, consumers = sides
    pipe = pipeline.PipelineAsync.create(
        num_stages=1, producer_group=producers, consumer_group=consumers, consumer_mask=0, defer_sync=True
    )
    pipeline.agent_sync(pipeline.Agent.ThreadBlockCluster)
    state = pipeline.PipelineState(1)
    pipe.consumer_release(state)
    if rank == 0:
        pipe.producer_acquire(state)
        out[t] = 1
    pipeline.agent_sync(pipeline.Agent.ThreadBlockCluster, is_relaxed=True)


def test_threads_arrive_at_the_block_of_a_mask() -> None:
    out = np.zeros(32, np.int32)
    releasing(out).launch(grid=2, block=32, cluster=2, device="sim")
    assert out.all()


def test_code_without_a_target_is_for_the_least_one_that_fits() -> None:
    src, out = np.zeros((128, 8), np.float32), np.zeros((4, 32), np.float32)
    compiled = cute.compile(load, src, out, False)
    assert ".target sm_90a" in compiled.ptx()


def test_the_target_that_programs_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    dsl = BaseDSL._get_dsl()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_80")
    assert dsl.get_arch_enum() is Arch.sm_80
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_8")
    with pytest.raises(TilefoldError, match="CUTE_DSL_ARCH=sm_8 is not a target"):
        dsl.get_arch_enum()


def test_a_state_of_no_stages_does_not_advance() -> None:
    with pytest.raises(TilefoldError, match="0 stages"):
        pipeline.PipelineState(0).advance()


def test_the_phase_of_a_derived_state_is_the_parity_of_its_rounds() -> None:
    class Counting(pipeline.PipelineState):
        def advance_iters(self: Any, count: int) -> None:
            following = self._index + count
            self._phase ^= following // self.stages
            self._index = following % self.stages

    state = Counting(2)
    state.advance_iters(5)
    assert (state.index, state.phase) == (1, 0)


def test_an_object_may_become_one_of_a_derived_class() -> None:
    class Mixed:
        """A class of a library."""

    @dataclass(frozen=True)
    class Derived(Mixed, pipeline.PipelineAsync):
        """A pipeline of a library, which its `create` makes of one of ours."""

    made = object.__new__(pipeline.PipelineAsync)
    object.__setattr__(made, "__class__", Derived)
    assert isinstance(made, Mixed)


def test_an_atom_of_a_warpgroup_has_a_field() -> None:
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 64, 16))
    tiled = cute.make_tiled_mma(op)
    atom = cute.make_mma_atom(tiled.op)
    atom.set(warpgroup.Field.ACCUMULATE, False)
    assert (tiled.op, tiled.get_slice(0).op, atom.accumulate) == (op, op, False)
    assert cute.make_tiled_mma(atom) == tiled
    assert cute.make_tiled_mma(atom).op is op


@cute.kernel
def counted(out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    for _ in cute.range_constexpr(2, unroll_full=True):
        out[1 + t] = primitives.atomicrmw(primitives.AtomicOp.INC, out.iterator, cute.Int32(5))


def test_atomics_of_primitives() -> None:
    """INC counts from 0 to the value, and then from 0 on."""
    out = np.zeros(9, np.int32)
    counted(out).launch(grid=1, block=8, device="sim")
    assert out[0] == 16 % 6
    assert sorted(out[1:]) == sorted(n % 6 for n in range(8, 16))


def test_sizes_that_calls_decide_are_divided() -> None:
    size, number = cute.ceil_div((cute.sym_int(divisibility=8), 7), (4, 2))
    assert (size.divisibility, number) == (2, 4)
    assert cute.ceil_div(cute.sym_int(divisibility=6), 4).divisibility == 1
    assert cute.ceil_div((4, cute.sym_int64()), cute.sym_int())[1].width == 64
    six, long = cute.sym_int(divisibility=6), cute.sym_int64(divisibility=4)
    made = (3 * six + 9, six * long, long - six, 64 - long, six // 2)
    assert [(each.width, each.divisibility) for each in made] == [(32, 9), (64, 24), (64, 2), (64, 4), (32, 3)]


def test_functions_that_are_taken_as_they_are() -> None:
    out = np.zeros(9, np.int32)

    @cute.jit(preprocess=False)
    def count(A: cute.Tensor) -> None:
        counted(A).launch(grid=1, block=8)

    compiled = cute.compile(count, out)
    assert compiled.to(0) is compiled
    compiled.to()(out)
    assert out[0] == 16 % 6
    assert architectures.SMEM_CAPACITY["sm80"] == 163 * 1024
    assert hopper_helpers.SMEM_CAPACITY["sm90"] == 227 * 1024


def test_what_libraries_of_2026_call() -> None:
    """Addresses as numbers, structures of results, fragments by their type, memory from a pointer on, shuffles by
    the words of the newest programs.
    """

    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t = cute.arch.thread_idx()[0]
        held = cutlass.Array(cute.Int32, (2, 32), space=cute.AddressSpace.smem)
        rows = cutlass.Array(held.data_ptr() + 32, dtype=cute.Uint32, shape=(1, 32), addrspace=3)
        held[1, t] = t - 16
        out[0, t] = rows[0, t].to(cute.Int32)
        first = llvm.ptrtoint(ir.Type.parse("i32"), held.data_ptr())
        out[1, t] = llvm.ptrtoint(types.i32(), held.data_ptr().to_llvm_ptr() + t) - first
        pair = llvm.inline_asm(
            ir.Type.parse("!llvm.struct<(i32, i32)>"), [t], "add.s32 $0, $2, 1; add.s32 $1, $2, 2;", "=r,=r,r"
        )
        out[2, t] = llvm.extractvalue(types.i32(), pair, [0]) * llvm.extractvalue(types.i32(), pair, [1])
        near = cute.make_rmem_tensor(2, cute.Int32)
        near[0], near[1] = t - 16, 3
        away = cute.TensorSSA(absi(near.load()), (1, 2), cute.Uint32)
        out[3, t] = away[0, 0].to(cute.Int32)
        out[4, t] = primitives.shfl_sync(
            thread_mask=0xFFFFFFFF, val=t, offset=1, mask_and_clamp=0x1F, kind=primitives.Shfl.BFLY
        )

    out = np.zeros((5, 32), np.int32)
    kernel(out).launch(grid=1, block=32, device="sim")
    t = np.arange(32)
    np.testing.assert_array_equal(out, [t - 16, 4 * t, (t + 1) * (t + 2), abs(t - 16), t ^ 1])
    assert (cutlass.Int128.width, ir.Type.parse("vector<4xf32>")) == (128, ir.VectorType.get([4], types.f32()))


def test_types_that_have_no_text() -> None:
    with pytest.raises(TilefoldError, match="is not one of numbers"):
        ir.Type.parse("!llvm.array<4 x i32>")


def test_sums_of_bulk_copies_and_waits_of_a_cluster() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, total: cute.Tensor, small: cute.Tensor) -> None:
        t = cute.arch.thread_idx()[0]
        held = cutlass.Array(cute.Float32, 4, space=cute.AddressSpace.smem)
        bar = cutlass.Array(cute.Int64, 1, space=cute.AddressSpace.smem)
        if t == 0:
            primitives.mbarrier_init(bar, 32)
        cute.arch.sync_threads()
        if t < 4:
            held[t] = x[t]
            primitives.fence_proxy(primitives.Proxy.ASYNC_SHARED, primitives.SharedSpace.shared_cta)
        primitives.fence_sync_restrict(primitives.MemOrder.RELEASE)
        primitives.mbarrier_arrive(bar)
        cluster = primitives.MBarrierScope.CLUSTER
        while not primitives.mbarrier_wait_parity(bar, 0, primitives.MBarrierWait.TEST, scope=cluster):
            pass
        if t == 0:
            for _ in range(2):
                primitives.cp_reduce_async_bulk_global_shared_cta(
                    total.iterator, held, 16, op=primitives.CpReduceOp.ADD, type=primitives.CpReduceType.F32
                )
            primitives.cp_async_bulk_commit_group()
            primitives.cp_async_bulk_wait_group(0)
            small[0] = cute.math.max(small[1], 0.0, ftz=True)
            small[2], small[3] = cute.arch.exp_packed_f32x2((small[4], small[5]))

    x, total = np.array([1, 2, 3, 4], np.float32), np.array([10, 20, 30, 40], np.float32)
    small = np.array([7, 1e-40, 7, 7, 0, 1], np.float32)
    kernel(x, total, small).launch(grid=1, block=32, device="sim")
    np.testing.assert_array_equal(total, [12, 24, 36, 48])
    np.testing.assert_allclose(small[[0, 2, 3]], [0, 1, np.e], rtol=1e-6)


def test_modules_keep_names_that_do_not_exist(tmp_path: Path) -> None:
    """A module of a program may list the names of several GPUs; what it asks for by `hasattr` does not exist."""
    (tmp_path / "lists.py").write_text(
        "from cutlass.cute.nvgpu import tcgen05\nOPS = (tcgen05.Ld32x32bOp, tcgen05.NoSuchOp)\n"
        "print(len(OPS), hasattr(tcgen05, 'NoSuchOp'))\n"
    )
    (tmp_path / "main.py").write_text(
        "import lists\nfrom cutlass.cute.nvgpu import tcgen05\nprint(isinstance(3, lists.OPS[1]))\n"
        "try:\n    lists.OPS[1]()\nexcept AttributeError as error:\n    print(str(error).splitlines()[0])\n"
        "tcgen05.NoSuchOp\n"
    )
    command = [sys.executable, "-m", "tilefold.cutlass", str(tmp_path / "main.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["2 False", "False", "E5009: cute.nvgpu.tcgen05 has no 'NoSuchOp'"]
    assert "E5009: cute.nvgpu.tcgen05 has no 'NoSuchOp'" in done.stderr


def test_operations_are_classes_for_isinstance() -> None:
    one = nvgpu.tcgen05.MmaFP8Op(cute.Float8E4M3FN, cute.Float32, (64, 64, 32))
    assert isinstance(one, nvgpu.tcgen05.MmaF8F6F4Op)
    assert (one.a_dtype, one.b_dtype) == (cute.Float8E4M3FN,) * 2
    for module in (cpasync, nvgpu.tcgen05, nvgpu.warp, warpgroup):
        names = [name for name in dir(module) if name.endswith("Op")]
        assert names
        assert all(isclass(getattr(module, name)) for name in names)
