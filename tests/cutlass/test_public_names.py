# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of the public vocabulary that few programs use."""

from importlib import import_module
from operator import add, mul
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cute.nvgpu import CopyUniversalOp, tcgen05
from tilefold.cute.nvgpu.tcgen05 import OperandMajorMode
from tilefold.cute.nvgpu.warp import LdMatrix8x8x16bOp
from tilefold.cute.testing import CantImplementError
from tilefold.cute.utils import SmemAllocator, blackwell_helpers, blockscaled_layout
from tilefold.cutlass.cutlass_dsl import Arch, T
from tilefold.cutlass.mlir import helpers
from tilefold.cutlass.mlir.dialects import nvvm


@cute.kernel
def exchanging(x: cute.Tensor, y: cute.Tensor, f: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    own = cute.make_rmem_tensor(4, cute.Int32)
    even = cute.make_rmem_tensor(4, cute.Boolean)
    for i in cute.range_constexpr(4):
        own[i] = t + i
        even[i] = (t + i) % 2 == 0
    cute.basic_copy_if(even, own, cute.local_tile(x, (4,), (t,)))
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Int32, num_bits_per_copy=128)
    cute.copy_atom_call(atom, own, cute.local_tile(x, (4,), (t + 32,)))
    y[t] = cute.arch.warp_redux_sync(t, "add")
    largest = cute.arch.warp_redux_sync(f[t], kind="fmax", mask_and_clamp=0xFFFFFFFF)
    f[t + 32] = cute.arch.fma(2.0, largest, cute.arch.log(cute.Float32(1.0)))
    read = cute.arch.load(y.iterator + t, cute.Int32, sem="acquire", scope="gpu")
    cute.arch.store(y.iterator + t + 32, read + 1, sem="release", scope="gpu")
    cute.arch.store(y.iterator + t + 64, cute.arch.load(y.iterator + t))
    kind, place = nvvm.ReductionType.S32, y.iterator + 96
    nvvm.red(op=nvvm.ReductionOp.ADD, type_=kind, a=place, b=t, mem_order=nvvm.MemOrderKind.RELAXED)


@cute.kernel
def copying_other_ranks(x: cute.Tensor, y: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    own = cute.make_rmem_tensor((2, 2), cute.Int32)
    even = cute.make_fragment_like(cute.group_modes(cute.make_identity_tensor((2, 2)), 0), cute.Boolean)
    for i in cute.range_constexpr(4):
        own[i] = i
        even[i] = (t + i) % 2 == 0
    cute.basic_copy_if(even, own, cute.group_modes(cute.local_tile(x, (2, 2), (t, 0)), 0))
    cute.basic_copy(own, cute.local_tile(y, (4,), (t,)))


def test_copies_of_other_ranks() -> None:
    """Without an atom, elements are copied in the order of their coordinates, whatever the modes are."""
    x, y = np.full((64, 2), -1, np.int32), np.zeros(128, np.int32)
    copying_other_ranks(x, y).launch(grid=1, block=32, device="sim")
    assert (x.reshape(32, 2, 2)[::2] == [[0, 2], [-1, -1]]).all()
    assert (x.reshape(32, 2, 2)[1::2] == [[-1, -1], [1, 3]]).all()
    assert (y == np.tile(np.arange(4), 32)).all()


def test_parts_of_a_copy_atom_and_of_a_swizzle() -> None:
    """ldmatrix reads a row by each of its lanes; transposed, it writes two adjacent elements of a column to each."""
    atom = cute.make_copy_atom(LdMatrix8x8x16bOp(transpose=True, num_matrices=4), cute.Float16)
    assert (str(atom.layout_src_tv), str(atom.thr_id)) == ("(32,8):(8,1)", "32:1")
    assert str(atom.layout_dst_tv) == "((4,8),(1,2,4)):((16,1),(1,8,64))"
    assert atom.value_type is cute.Float16
    swizzle = cute.make_swizzle(2, 3, 4)
    assert (swizzle.num_bits, swizzle.num_base, swizzle.num_shift) == (2, 3, 4)


def test_instructions() -> None:
    x, y = np.full(256, -1, np.int32), np.zeros(97, np.int32)
    f = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    exchanging(x, y, f).launch(grid=1, block=32, device="sim")
    numbers = np.arange(32)[:, None] + np.arange(4)
    assert (x[:128].reshape(32, 4) == np.where(numbers % 2 == 0, numbers, -1)).all()
    assert (x[128:].reshape(32, 4) == numbers).all()
    assert y[:96].reshape(3, 32).tolist() == [[496] * 32, [497] * 32, [496] * 32]
    assert y[96] == 496
    assert (f[32:] == 2 * f[:32].max()).all()


@cute.kernel
def refusing(x: cute.Tensor, case: cute.Constexpr) -> None:
    if case == "order":
        cute.arch.load(x.iterator, sem="release")
    elif case == "lanes":
        cute.arch.warp_redux_sync(x[0], "fmin", 3)


@pytest.mark.parametrize(("case", "words"), [("order", "the memory order 'release'"), ("lanes", "over all lanes")])
def test_refusals(case: str, words: str) -> None:
    with pytest.raises(TilefoldError, match=words):
        refusing(np.zeros(4, np.float32), case).launch(grid=1, block=32, device="sim")


@cute.kernel
def summed_over_the_cluster(out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    rank = cute.arch.block_idx_in_cluster()
    own = cute.make_smem_tensor(32, cute.Float32)
    own[t] = 100.0 * rank + t
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    other = cute.make_tensor(cute.arch.mapa(own.iterator, 1 - rank), own.layout)
    out[rank, t] = other[31 - t]
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


def test_a_pointer_to_the_memory_of_a_peer_makes_tensors() -> None:
    out = np.zeros((2, 32), np.float32)
    summed_over_the_cluster(out).launch(grid=2, block=32, cluster=2, device="sim")
    assert out.tolist() == [list(np.arange(131.0, 99.0, -1)), list(np.arange(31.0, -1.0, -1))]


def test_tuples() -> None:
    assert str(cute.make_layout((4, 8), stride=(cute.E(0), cute.E([1, 0])))) == "(4,8):(1@0,1@0@1)"
    assert cute.unwrap((((1, 2),),)) == (1, 2)
    assert cute.unwrap(3) == 3
    assert cute.transform_apply((1, 2), (3, 4), f=mul, g=add) == 11
    assert cute.is_congruent((1, (2, 3)), (4, (5, 6)))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("cute.nvgpu.common", "CopyUniversalOp"),
        ("utils.sm90", "make_smem_layout_a"),
        ("utils.static_persistent_tile_scheduler", "StaticPersistentTileScheduler"),
        ("base_dsl._mlir_helpers.op", "dsl_user_op"),
        ("base_dsl.common", "DSLRuntimeError"),
        ("base_dsl.runtime.cuda", "checkCudaErrors"),
        ("cutlass_dsl", "DSLCudaRuntimeError"),
        ("cute.runtime", "Pointer"),
        ("cute.arch", "Arch"),
        ("cute", "SymInt"),
        ("cute", "from_dlpack"),
        ("cute", "MmaAtom"),
        ("cute", "mma_atom_call"),
        ("cute", "absf"),
        ("cute.arch.nvvm", "exit"),
        ("cute.nvgpu.tcgen05.mma", "MmaOp"),
        ("cute.nvgpu.warp.mma", "MmaOp"),
        ("utils.blackwell_helpers", "get_tmem_copy_properties"),
        ("utils.blackwell_helpers", "get_num_tmem_alloc_cols"),
        ("utils.hopper_helpers", "make_smem_layout_atom"),
        ("cute.arch", "SM100_TMEM_CAPACITY_COLUMNS"),
        ("cute.typing", "Constexpr"),
    ],
)
def test_modules_and_names_that_programs_import(module: str, name: str) -> None:
    assert hasattr(import_module(f"tilefold.cutlass.{module}"), name)


def test_types_and_errors() -> None:
    assert (cutlass.Float8E8M0FNU.width, cutlass.Float8E4M3B11FNUZ.width) == (8, 8)
    assert issubclass(CantImplementError, Exception)


@cute.kernel
def extremes(A: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    smallest = nvvm.fmin(T.f32(), A[t], 3.0)
    A[t] = nvvm.fmax(T.f32(), smallest, -1.0, c=cute.Float32(0.5))


def test_the_largest_of_three() -> None:
    a = np.arange(-8, 24, dtype=np.float32)
    extremes(a).launch(grid=1, block=32, device="sim")
    assert a.tolist() == [min(max(n, 0.5), 3) for n in range(-8, 24)]


@cute.kernel
def counting_threads(counts: cute.Tensor, sums: cute.Tensor) -> None:
    nvvm.atomicrmw(op=nvvm.AtomicOpKind.ADD, ptr=counts.iterator, a=cute.Int32(2))
    nvvm.atomicrmw(res=T.f32(), op=nvvm.AtomicOpKind.FADD, ptr=sums.iterator, a=cute.Float32(0.5))
    t, _, _ = cute.arch.thread_idx()
    most = nvvm.redux_sync(T.i32(), t, nvvm.ReduxKind.UMAX, -1)
    if most == t:
        nvvm.atomicrmw(nvvm.AtomicOpKind.MAX, counts.iterator + 1, most)
    order, scope = nvvm.MemOrderKind.ACQUIRE, nvvm.MemScopeKind.GPU
    found = nvvm.atomicrmw(nvvm.AtomicOpKind.CAS, counts.iterator + 2, t, b=3, mem_order=order, syncscope=scope)
    if found == 3:
        counts[3] = 1 + t - counts[2]


def test_atomic_operations_of_the_dialect() -> None:
    counts, sums = np.array([0, 0, 3, 0], np.int32), np.zeros(1, np.float32)
    counting_threads(counts, sums).launch(grid=1, block=32, device="sim")
    assert (*counts[[0, 1, 3]], sums[0]) == (64, 31, 1, 16)


def test_the_block_that_layouts_of_scales_repeat() -> None:
    chunk = blockscaled_layout.BlockScaledBasicChunk(16)
    assert str(chunk.layout) == "((32,4),(16,4)):((16,4),(0,1))"
    by_rows = blockscaled_layout.BlockScaledBasicChunk(32, OperandMajorMode.MN)
    assert str(by_rows.layout) == "((32,4),(32,4)):((0,1),(16,4))"


def test_families_of_targets() -> None:
    assert Arch.sm_90.is_family_of(Arch.sm_90a)
    assert Arch.sm_103a.is_family_of(Arch.sm_100f)
    assert not Arch.sm_80.is_family_of(Arch.sm_86)
    assert not Arch.sm_90a.is_family_of(Arch.sm_80)


def test_layouts_of_tiled_objects() -> None:
    mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 1, 1))
    assert (mma.tv_layout_A_tiled, mma.tv_layout_C_tiled) == (mma.get_layoutA_TV(), mma.get_layoutC_TV())
    assert str(mma.thr_layout_vmnk) == "(32,2,1,1):(1,32,0,0)"
    assert mma.get_slice(5).get_slice(0).tv_layout_B_tiled == mma.get_layoutB_TV()
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 4)))
    assert str(copy.layout_tv_tiled) == "((8,4),4):((16,1),4)"
    assert (copy.layout_src_tv_tiled, copy.layout_dst_tv_tiled) == (copy.get_layoutS_TV(), copy.get_layoutD_TV())
    assert [mode.shape for mode in copy.get_slice(3).tiler_mn] == [mode.shape for mode in copy.tiler_mn] == [4, 32]
    assert copy.get_slice(3).get_slice(1).thr_idx == 1
    assert (cute.shape(copy.tiler_mn), cute.size(cute.shape((copy.tiler_mn[0], (2, 3))))) == ((4, 32), 24)


@cute.kernel
def swizzling(x: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    layout = cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, cute.make_layout((16, 8), stride=(8, 1)))
    tile = SmemAllocator().allocate_array(cute.Float32, cute.cosize(layout))
    part = cute.make_tensor(tile, layout)
    for i in cute.range_constexpr(4):
        part[t * 4 + i] = x[t * 4 + i]
    cute.arch.sync_threads()
    for i in cute.range_constexpr(4):
        x[t * 4 + i] = part[127 - t * 4 - i]


def test_a_tile_that_is_shorter_than_the_period_of_its_swizzle() -> None:
    x = np.arange(128, dtype=np.float32)
    swizzling(x).launch(grid=1, block=32, device="sim")
    assert (x == np.arange(128)[::-1]).all()


@cute.jit
def counting(n: cute.Int32) -> None:
    for i in cute.range(1, n, 2, unroll=2):
        cute.printf("at %d\n", i)


def test_the_host_counts_through_a_range(capfd: pytest.CaptureFixture[str]) -> None:
    counted = cute.compile(counting, 6)
    counted(6)
    counted(3)
    assert capfd.readouterr().out.split("\n") == ["at 1", "at 3", "at 5", "at 1", ""]


def test_coordinates_and_profiles() -> None:
    assert cute.unflatten([1, 2, 3, 4], ((0, 0), (0, 0))) == ((1, 2), (3, 4))
    assert cute.increment_coord((2, 0, 0), (3, 3, 3)) == (0, 1, 0)
    assert cute.increment_coord(((2, 2), 2), ((3, 3), 3)) == ((0, 0), 3)
    assert cute.find((1, (2, 3)), 3) == (1, 1)
    assert cute.find((1, (2, 3), 2), 2, hierarchical=False) == 2
    assert cute.filter_tuple((1, 2, 3), (4, 5, 6), f=lambda *parts: parts[1:]) == (4, 5, 6)
    assert (cute.wrap(3), cute.wrap((3,)), cute.get_divisibility(12)) == ((3,), (3,), 12)
    basis: Any = cute.ScaledBasis(2, [1, 0])
    assert (cute.basis_value(basis), basis.mode, cute.basis_get(basis, (1, (4, 5)))) == (2, [1, 0], 4)
    assert isinstance(basis, cute.ScaledBasis)
    layout, offset = cute.slice_and_offset((1, None), cute.make_layout((4, 8), stride=(8, 1)))
    assert (cute.pretty_str(layout), offset) == ("(8):(1)", 8)
    assert cute.filter_zeros(cute.make_layout((2, 3), stride=(0, 1)), target_profile=(1, 0)).shape == (2, 1)


@cute.union
class Word:
    number: cute.Int32
    float: cute.Float32
    halves: cute.struct.MemRange[cute.Int16, 2]


@cute.kernel
def overlapping(out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    word = cute.utils.SmemAllocator().allocate(Word)
    if t == 0:
        word.float = 1.5
        out[0] = word.number.ptr.load()
        out[1] = word.halves[1]
        place = cute.increment_coord((out[2] + 3, 5), (4, 8))
        out[2], out[3] = place
        halves = cute.full(4, 3, cute.Int32).apply_op(mul, out[0], flip=True)
        out[4] = halves[2] + cute.empty_like(halves)[0]
        cute.printf("{} words", Word.size_in_bytes(), end=";\n")


def test_a_union(capfd: pytest.CaptureFixture[str]) -> None:
    out = np.zeros(5, np.int32)
    overlapping(out).launch(grid=1, block=32, device="sim")
    bits = int(np.float32(1.5).view(np.int32))
    assert out.tolist() == [bits, bits >> 16, 0, 6, np.int32(3 * bits % 2**32 - 2**32)]
    assert (Word.__sizeof__(), Word.__alignof__()) == (4, 4)
    assert capfd.readouterr().out == "4 words;\n"


@cute.kernel
def reading_bits(x: cute.Tensor, words: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    words[t] = helpers.bitcast(cute.Float32(x[t]).ir_value(), T.i32())


def test_helpers_take_the_number_first() -> None:
    x, words = np.linspace(-2, 2, 32, dtype=np.float32), np.zeros(32, np.int32)
    reading_bits(x, words).launch(grid=1, block=32, device="sim")
    assert words.tolist() == x.view(np.int32).tolist()


def test_the_instructions_of_atoms() -> None:
    op = cute.nvgpu.CopyUniversalOp()
    atom = cute.make_copy_atom(op, cute.Float32)
    assert (atom.op, atom._op) == (op, op)  # pyright: ignore[reportPrivateUsage]
    assert atom == cute.make_copy_atom(atom.name, cute.Float32)
    mma = tcgen05.mma
    assert all(issubclass(each, mma.MmaOp) for each in (mma.MmaF16BF16Op, mma.MmaMXF4Op, mma.MmaI8Op))


@cute.kernel
def sums_of_sizes(out: cute.Tensor) -> None:
    number = cute.typing.as_numeric(3) - cute.typing.as_numeric(cute.arch.thread_idx()[0])
    out[cute.arch.thread_idx()[0]] = cute.absf(cute.typing.as_numeric(0.5) * number)


def test_numbers_are_values_of_kernels() -> None:
    out = np.zeros(32, np.float32)
    sums_of_sizes(out).launch(grid=1, block=32, device="sim")
    assert out.tolist() == [abs(3 - t) / 2 for t in range(32)]


def test_rows_that_tma_copies_reach() -> None:
    def check(m: int, n: int, k: int, *majors: str) -> None:
        half = cute.Float16
        blackwell_helpers.check_gemm_tma_alignment(m, n, k, half, half, cute.Float32, *majors, output_tensor_name="D")

    check(8, 4, 8, "k", "k", "n")
    check(8, 8, 3, "m", "n", "m")
    for sizes, majors, name in (
        ((8, 8, 12), "kkn", "the rows of A have 24 bytes"),
        ((8, 8, 12), "mkn", "the rows of B have 24 bytes"),
        ((8, 2, 8), "kkn", "the rows of D have 8 bytes"),
    ):
        with pytest.raises(TilefoldError, match=name) as caught:
            check(*sizes, *majors)
        assert caught.value.code == "E0322"
    with pytest.raises(TilefoldError, match="A has the modes m, k, and not 'n'"):
        check(8, 8, 8, "n", "k", "n")
