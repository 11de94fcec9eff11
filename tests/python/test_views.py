# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of tensors in Python are those of the algebra, whether extents are static or known at run time."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from tilefold.base.spaces import GMEM
from tilefold.builder.scalars.values import convert
from tilefold.builder.tracing.state import building
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.tile import TensorType
from tilefold.layout.text.layouts import parse_layout, to_text
from xdsl.dialects.builtin import Float16Type, IntAttr
from xdsl.ir import Block

from tilefold import cute


def tensor(layout: str, align: int = 16) -> TensorType:
    """The type of a tensor of f16 in global memory."""
    return TensorType(Float16Type(), SpaceAttr(GMEM), IntAttr(align), LayoutAttr(parse_layout(layout)))


def viewed(layout: str, view: Callable[[cute.Tensor], Any]) -> str:
    """The layout of a view of a tensor, as text."""
    block = Block(arg_types=[tensor(layout)])
    with building(block, convert):
        return to_text(view(cute.Tensor(block.args[0])).ir_type.layout.data)


VIEWS: Sequence[tuple[str, Callable[[Any], Any], str]] = (
    ("(128,64):(64,1)", lambda t: cute.local_tile(t, (32, 16), (1, None)), "(32,16,4):(64,1,16)"),
    ("(128,64):(64,1)", lambda t: cute.local_tile(t, (32, 8, 16), (1, 2, 3), (1, None, 1)), "(32,16):(64,1)"),
    ("100:1", lambda t: cute.local_tile(t, 32, 3), "(32):(1)"),
    ("(64,32,2):(32,1,2048)", lambda t: cute.local_tile(t, (16, 99, 8), (1, 7, None, 1), proj=(1, None, 1)),
     "(16,8,4):(32,1,8)"),
    ("(128,64):(64,1)", lambda t: cute.local_tile(t, (32, 16), 6), "(32,16):(64,1)"),
    ("(128,64):(64,1)", lambda t: cute.local_tile(t, (32, 16), (3,)), "(32,16,4):(64,1,16)"),
    ("(128,64):(64,1)", lambda t: cute.inner_partition(t, (32, 16), (1, None)), "(32,16,4):(64,1,16)"),
    ("(128,64):(64,1)", lambda t: cute.outer_partition(t, (32, 16), (5, 3)), "(4,4):(2048,16)"),
    ("(128,64):(64,1)", lambda t: cute.outer_partition(t, (32, 16), (5, None)), "(16,4,4):(1,2048,16)"),
    ("(128,64):(64,1)", lambda t: cute.outer_partition(t, (32, 16), 37), "(4,4):(2048,16)"),
    ("(?,6):(8,1)", lambda t: cute.outer_partition(t, (5, 4), (1, 2)), "(?,2):(40,4)"),
    ("(8,128):(128,1)", lambda t: cute.flat_divide(t, (1, 8)), "(1,8,8,16):(0,1,128,8)"),
    ("(8,128):(128,1)", lambda t: cute.zipped_divide(t, (2, 8)), "((2,8),(4,16)):((128,1),(256,8))"),
    ("(8,128):(128,1)", lambda t: cute.tiled_divide(t, (2, 8)), "((2,8),4,16):((128,1),256,8)"),
    ("(8,128):(128,1)", lambda t: cute.logical_divide(t, (2, 8)), "((2,4),(8,16)):((128,256),(1,8))"),
    ("(8,16):(16,1)", lambda t: cute.composition(t, cute.make_layout((4, 2), stride=(2, 1))), "(4,2):(32,16)"),
    ("(8,16,4):(16,1,128)", lambda t: cute.select(t, [2, 0]), "(4,8):(128,16)"),
    ("(8,16,4):(16,1,128)", lambda t: cute.group_modes(t, 1), "(8,(16,4)):(16,(1,128))"),
    ("(8,16):(1,8)", cute.coalesce, "128:1"),
    ("(8,16):(16,1)", lambda t: cute.recast_tensor(t, cute.Int32), "(8,8):(8,1)"),
    ("(?,?):(?{div=8},1)", lambda t: cute.recast_tensor(t, cute.Int32), "(?,?):(?{div=4},1)"),
    ("(32,64):(64,1)", lambda t: cute.local_partition(t, (8, 4), 5), "(4,16):(512,4)"),
    ("(8,16):(16,1)", lambda t: t[None, 3], "(8):(16)"),
    ("(8,(2,8)):(16,(1,2))", lambda t: t[1, (None, 2)], "(2):(1)"),
    ("(8,16):(16,1)", lambda t: cute.slice_(t, (2, None)), "(16):(1)"),
    ("(?,?{div=8}):(?{div=8},1)", lambda t: cute.local_tile(t, (64, 8), (1, None)),
     "(64,8,?):(?{div=8},1,8)"),
    ("(?,?{div=8}):(?{div=8},1)", lambda t: cute.make_tensor(t.iterator, t.layout), "(?,?{div=8}):(?{div=8},1)"),
    ("(?,8):(8,1)", lambda t: cute.make_tensor(t.iterator, (t.shape[0], 4)), "(?,4):(1,?)"),
)  # fmt: skip


@pytest.mark.parametrize(("layout", "view", "wanted"), VIEWS)
def test_layouts_of_views(layout: str, view: Callable[[cute.Tensor], Any], wanted: str) -> None:
    assert viewed(layout, view) == wanted


def test_properties() -> None:
    block = Block(arg_types=[tensor("((4,2),16):((1,4),8)")])
    with building(block, convert):
        t = cute.Tensor(block.args[0])
        assert t.shape == ((4, 2), 16)
        assert t.stride == ((1, 4), 8)
        assert (t.rank, len(t), cute.rank(t), cute.depth(t), cute.cosize(t)) == (2, 2, 2, 2, 128)
        assert cute.cosize(cute.make_layout((8, 4), stride=(4, 1)), mode=[0]) == 29
        assert (cute.size(t), cute.size(t, 0), cute.size(t, mode=[0, 1])) == (128, 8, 2)
        assert (t.element_type, t.memspace, t.iterator.alignment) == (cute.Float16, cute.AddressSpace.gmem, 16)
        assert cute.shape(t, 0) == (4, 2)
        assert cute.stride(t, 1) == 8
        assert repr(t) == "gmem_ptr[16b] o ((4,2),16):((1,4),8)"
        assert t.mark_layout_dynamic() is t.mark_compact_shape_dynamic(mode=1, divisibility=2) is t
    assert block.is_empty


def test_extents_at_run_time_are_values() -> None:
    block = Block(arg_types=[tensor("(?,?{div=8}):(?{div=8},1)")])
    with building(block, convert):
        t = cute.Tensor(block.args[0])
        m, n = t.shape
        assert (m.known.div, n.known.div, t.stride[0].known.div, t.stride[1]) == (1, 8, 8, 1)
        assert (n // 8 * 16).known.div == 16
        assert cute.ceil_div(m, 64).dtype.name == "Index"
    assert [op.name for op in block.ops][:3] == ["tile.stride", "tile.dim", "tile.dim"]


def test_extents_are_taken_where_the_tensor_is() -> None:
    """What a loop asks for first can be used after it."""
    block, body = Block(arg_types=[tensor("(?,8):(8,1)")]), Block()
    with building(block, convert) as builder:
        t = cute.Tensor(block.args[0])
        with builder.inside(body):
            inner = t.shape[0] + 1
        assert inner.ssa.owner.parent is body
        assert t.shape[0].ssa.owner.parent is block


def test_ragged_copy() -> None:
    """The last tiles are copied under predicates, which come from coordinates."""

    @cute.kernel
    def ragged(A: cute.Tensor, B: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        m, n, _ = cute.arch.block_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), A.element_type, num_bits_per_copy=16)
        tiled = cute.make_tiled_copy_tv(atom, (4, 8), (2, 1))
        part = tiled.get_slice(t)
        gA, gB = (cute.local_tile(x, (16, 8), (m, n)) for x in (A, B))
        gI = cute.local_tile(cute.make_identity_tensor(A), (16, 8), (m, n))
        inside = cute.bounds(part.partition_S(gI), (30, 20))
        r = cute.make_rmem_tensor_like(part.partition_D(gB))
        r.fill(0)
        cute.copy(tiled, part.partition_S(gA), r, pred=inside)
        cute.copy(tiled, r, part.partition_D(gB), pred=inside)

    a = np.arange(600, dtype=np.float16).reshape(30, 20)
    b = np.zeros_like(a)
    ragged(a, b).launch(grid=(2, 3), block=32, device="sim")
    assert b.tolist() == a.tolist()


@cute.kernel
def of_partitions(A: cute.Tensor, Tiles: cute.Tensor, Within: cute.Tensor, Linear: cute.Tensor, Every: cute.Tensor):
    """By thread t: element (0,1) of a tile, the sums over tiles, and both of tiles and elements counted through."""
    t, _, _ = cute.arch.thread_idx()
    Tiles[t] = cute.inner_partition(A, (4, 2), (t % 2, t // 2))[0, 1]
    Within[t] = cute.outer_partition(A, (4, 2), (t % 4, t // 4)).load().reduce(cute.ReductionOp.ADD, 0)
    Linear[t] = cute.local_tile(A, (4, 2), t)[2, 0]
    Every[t] = cute.outer_partition(A, (4, 2), t).load().reduce(cute.ReductionOp.ADD, 0)


def test_partitions_within_and_across_tiles() -> None:
    """A is (8,8), so that there are 2 x 4 tiles of 4 x 2 elements, and as many elements in each."""
    a = np.random.default_rng(0).integers(0, 1000, (8, 8)).astype(np.int32)
    results = [np.zeros(8, np.int32) for _ in range(4)]
    of_partitions(a, *results).launch(grid=1, block=8, device="sim")
    tiles, within, linear, every = results
    for t in range(8):
        assert tiles[t] == a[4 * (t % 2), 2 * (t // 2) + 1]
        assert within[t] == a[t % 4 :: 4, t // 4 :: 2].sum()
        assert linear[t] == a[4 * (t % 2) + 2, 2 * (t // 2)]
        assert every[t] == a[t % 4 :: 4, t // 4 :: 2].sum()


def test_all_threads_parts_of_a_tensor() -> None:
    """What tidfrg and thrfrg give of a tensor is what a slice at each thread gives to it."""
    a, seen = np.arange(64 * 8, dtype=np.int32).reshape(64, 8), np.full((32, 2), -1, np.int32)

    @cute.kernel
    def compare(A: cute.Tensor, Seen: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), A.element_type, num_bits_per_copy=64)
        tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 2)), (2, 4))
        mine = tiled.tidfrg_S(A)[t, None, None].load()
        sliced = tiled.get_slice(t).partition_S(A).load()
        Seen[t, 0] = cute.absolute(mine - sliced.reshape(mine.shape)).reduce(cute.ReductionOp.MAX, -1)
        mma = cute.make_tiled_mma("UniversalFMA<int>", (8, 4, 1))
        part = mma.thrfrg_C(A)[(0, (t % 8, t // 8)), None].load()
        sliced = mma.get_slice(t).partition_C(A).load()
        Seen[t, 1] = cute.absolute(part - sliced.reshape(part.shape)).reduce(cute.ReductionOp.MAX, -1)

    compare(a.T.copy().T, seen).launch(grid=1, block=32, device="sim")
    assert seen.tolist() == [[0, 0]] * 32


def test_sliced_tilings_print_as_in_cute() -> None:
    atom = cute.make_copy_atom("UniversalCopy<uint64_t>", cute.Float16)
    copy = cute.make_tiled_copy_tv(atom, (8, 4), (4, 1))
    assert str(copy.get_slice(5)).split("\n")[:3] == ["ThrCopy", "  ThrIdx: 5", "TiledCopy"]
    assert str(copy.get_slice(5)).endswith(str(copy))
    mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 1))
    assert str(mma.get_slice(37)).split("\n")[:3] == ["ThrMMA", "  Thr VMNK: (5,1,0,0)", "TiledMMA"]
    assert str(mma.get_slice(37)).endswith(str(mma))

    @cute.kernel
    def printed(A: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        assert "ThrIdx: ?\n" in str(copy.get_slice(t))
        assert "Thr VMNK: (?,?,?,0)\n" in str(mma.get_slice(t))

    printed(np.zeros(4, np.float32)).launch(grid=1, block=1, device="sim")


def test_a_division_by_the_tiler_leads_to_threads() -> None:
    """tile2thrfrg of what zipped_divide gives is tidfrg, with the atom's own (thread, value) in between."""
    atom = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.Float16)
    copy = cute.make_tiled_copy(atom, cute.make_layout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))), (16, 16))
    layout = cute.make_layout((64, 32))
    tiles = cute.zipped_divide(layout, copy.tiler)
    record = copy.type.tiled_copy.atom
    from_src = cute.composition(cute.right_inverse(record.ref), record.src)
    assert copy.tile2thrfrg(tiles, from_src) == copy.tidfrg_S(layout)
    assert copy.tidfrg_D(layout) != copy.tidfrg_S(layout)


def test_the_last_tiles_reach_beyond_their_tensor() -> None:
    @cute.kernel
    def uncovered(A: cute.Tensor, out: cute.Tensor):
        atom = cute.make_copy_atom("UniversalCopy<uint32_t>", cute.Float32)
        copy = cute.make_tiled_copy_tv(atom, (8, 4), (1, 1))
        assert cute.size(copy.tidfrg_S(A)) == 64
        part = copy.get_slice(cute.arch.thread_idx()[0]).partition_S(A)
        assert part.shape == ((1, 1), 2, 1)
        row = cute.arch.thread_idx()[0] % 8
        out[cute.arch.thread_idx()[0]] = part[0, 1, 0] if row < 2 else part[0, 0, 0]

    a, out = np.arange(40, dtype=np.float32).reshape(10, 4), np.zeros(32, np.float32)
    uncovered(a, out).launch(grid=1, block=32, device="sim")
    assert out.tolist() == [a[i + 8 if i < 2 else i, j] for j in range(4) for i in range(8)]


def test_coordinates() -> None:
    @cute.kernel
    def coordinates(Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        tile = cute.local_tile(cute.make_identity_tensor((8, 12)), (2, 3), (t, 1))
        i, j = tile[1, 2]
        Out[t, 0], Out[t, 1] = i.to(cute.Int32), j.to(cute.Int32)
        Out[t, 2] = cute.elem_less((i, j), (5, 100)).to(cute.Int32)

    out = np.zeros((4, 3), np.int32)
    coordinates(out).launch(grid=1, block=4, device="sim")
    assert out.tolist() == [[1, 5, 1], [3, 5, 1], [5, 5, 0], [7, 5, 0]]


def test_shared_memory_of_two_names() -> None:
    @cute.kernel
    def transpose(A: cute.Tensor, B: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        sA = cute.make_smem_tensor((8, 8), A.element_type)
        words = cute.alias(sA, 32, cute.Int32)
        for i in cute.range(8):
            sA[t, i] = A[t, i]
        cute.arch.sync_threads()
        r = cute.make_rmem_tensor(4, cute.Int32)
        cute.autovec_copy(cute.local_tile(words, 4, t), r)
        cute.autovec_copy(cute.recast_tensor(r, A.element_type), B[t, None])

    a = np.arange(64, dtype=np.float16).reshape(8, 8)
    b = np.zeros_like(a)
    transpose(a, b).launch(grid=1, block=8, device="sim")
    assert b.tolist() == a.T.tolist()


MISTAKES: Sequence[tuple[Callable[[Any, Any], object], str, str]] = (
    (lambda t, x: cute.local_tile(t.layout, (2, 2), (0, 0)), "E5002", "expected a tensor, got a layout"),
    (lambda t, x: t[-1000, 0], "E5002", "coordinate -1000 is out of range for"),
    (lambda t, x: t[0, 1.5], "E5002", "a coordinate is an integer, not float"),
    (lambda t, x: t[0, 0, 0], "E0201", "profile"),
    (lambda t, x: t.__setitem__((0, 0), [1]), "E5002", "an element is a value or a number"),
    (lambda t, x: list(t), "E5002", "not iterated over"),
    (lambda t, x: cute.make_rmem_tensor((4, x), cute.Float32), "E5003", "static layout"),
    (lambda t, x: cute.local_tile(t, (x, 4), (0, 0)), "E5003", "are static"),
    (lambda t, x: cute.make_tiled_copy(cast("Any", "atom"), (4, 8), (4, 8)), "E5002", "expected a copy atom"),
    (lambda t, x: cute.make_copy_atom("SM80_NOTHING", cute.Float16), "E0302", "unknown copy atom"),
    (lambda t, x: cute.make_tiled_mma("SM80_NOTHING"), "E0302", "unknown MMA atom"),
    (lambda t, x: cute.nvgpu.MmaOp(cute.Int8, cute.Float32).atom(), "E0302", "no matrix instruction"),
    (
        lambda t, x: cute.nvgpu.MmaOp(cute.TFloat32, cute.Float32).atom(),
        "E0302",
        r"types: \(16, 8, 4\), \(16, 8, 8\)",
    ),
    (lambda t, x: cute.copy(cast("Any", None), t, t), "E5002", "expected a tiled copy or a copy atom"),
    (lambda t, x: cute.autovec_copy(t, cast("Any", 3)), "E5002", "expected a tensor in memory"),
    (lambda t, x: cute.autovec_copy(t, cute.make_rmem_tensor((8, 8), cute.Float32)), "E1003", "elements"),
    (lambda t, x: cute.gemm(None, t, t, cast("Any", 3)), "E5002", "expected a tensor"),
    (lambda t, x: cute.make_identity_tensor((4, 1.5)), "E5002", "expected integers"),
    (lambda t, x: cute.size(t, 2), "E0208", "modes 0 to 1"),
)


@pytest.mark.parametrize(("mistake", "code", "words"), MISTAKES)
def test_mistakes(mistake: Callable[[Any, Any], object], code: str, words: str) -> None:
    block = Block(arg_types=[tensor("(8,16):(16,1)")])
    with pytest.raises(ProgramError, match=words) as error, building(block, convert):
        mistake(cute.Tensor(block.args[0]), cute.arch.thread_idx()[0])
    assert error.value.code == code
    place = error.value.diagnostics[0].place
    assert place is not None
    assert "lambda t, x" in place.text


@cute.kernel
def behind_a_condition(A: cute.Tensor, B: cute.Tensor, tiles: cute.Int32):
    B.store(cute.local_tile(A, (4,), (1,)).load())
    if tiles > 2:
        B.store(cute.local_tile(A, (4,), (2,)).load())
        B[0] = A[8]


def test_a_coordinate_outside_is_a_mistake_of_the_thread_that_gets_there() -> None:
    A, B = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    behind_a_condition(A, B, 2).launch(grid=1, block=1, device="sim")
    assert B.tolist() == [4, 5, 6, 7]
    said = r"through the view of A at .*test_views.py:\d+:\d+, whose coordinate 2 is out of range for extent 2"
    with pytest.raises(ProgramError, match=said):
        behind_a_condition(A, B, 3).launch(grid=1, block=1, device="sim")


def test_registers_like_a_tensor_have_the_first_mode_as_the_fastest() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor) -> None:
        rows = cute.make_rmem_tensor_like(A, cute.Float16)
        assert rows.element_type == cute.Float16
        assert str(rows.layout) == "(2,3,4):(1,2,6)"
        assert str(cute.make_rmem_tensor_like(A.load()).layout) == "(2,3,4):(1,2,6)"
        assert str(cute.make_fragment_like(A).layout) == "(2,3,4):(1,8,2)"

    kernel(np.zeros((2, 3, 4), np.float32)).build(32)


def test_a_projection_leaves_the_coordinates_of_modes_that_are_not_tiled() -> None:
    @cute.kernel
    def tiles(A: cute.Tensor, out: cute.Tensor) -> None:
        m, n, batch = cute.arch.block_idx()
        part = cute.local_tile(A, (2, 8, 4), (m, n, None, batch), proj=(1, None, 1))
        out[batch] = part[1, 3, 1]

    a, out = np.arange(4 * 8 * 2, dtype=np.int32).reshape(4, 8, 2), np.zeros(2, np.int32)
    tiles(a, out).launch(grid=(1, 1, 2), block=1, device="sim")
    assert out.tolist() == a[1, 7].tolist()


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_layouts_of_run_time_extents_over_memory_that_the_kernel_allocates(stage: str) -> None:
    """CuTe's make_tensor takes any layout for a pointer; only what a kernel allocates is static."""

    @cute.kernel
    def kernel(A: cute.Tensor, out: cute.Tensor, rows: cute.Int32):
        t, _, _ = cute.arch.thread_idx()
        memory = cute.arch.alloc_smem(cute.Float32, 64)
        tile = cute.make_tensor(memory, cute.make_layout((rows, 64 // rows)))
        tile[t % rows, t // rows] = A[t]
        cute.arch.sync_threads()
        own = cute.make_rmem_tensor(4, cute.Float32)
        own.fill(0.0)
        pair = cute.make_tensor(own.iterator, cute.make_layout(2, stride=rows // 8))
        pair[1] = tile[t // (64 // rows), t % (64 // rows)]
        out[t] = own[2]

    A, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel(A, out, 16).launch(grid=1, block=64, device="sim", stage=stage)
    assert out.tolist() == A.reshape(4, 16).T.ravel().tolist()
    with pytest.raises(ProgramError, match="E3202"):
        kernel(A, out, 48).launch(grid=1, block=64, device="sim", stage=stage)


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_a_coordinate_tensor_from_a_coordinate(stage: str) -> None:
    """CuTe's make_tensor(make_inttuple_iter(...), layout)."""

    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Int32):
        row = cute.make_identity_tensor((8, 8))[3, None]
        moved = cute.make_tensor((row.iterator[0] - n, 7, row.iterator[1]), cute.make_layout(4, stride=cute.E(2)))
        for i in cute.range_constexpr(4):
            for axis in cute.range_constexpr(3):
                out[i, axis] = moved[i][axis].to(cute.Int32)

    out = np.zeros((4, 3), np.int32)
    kernel(out, 5).launch(grid=1, block=1, device="sim", stage=stage)
    assert out.tolist() == [[-2, 7, i] for i in range(4)]
