# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the host: views and numbers that reach kernels, compiled functions, descriptions of tensors."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tests.ptxas import needs_ptxas
from tilefold import cute
from tilefold.cute.host.compiled import CompiledFunction
from tilefold.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream, make_fake_tensor, make_ptr

built: list[str] = []


@cute.kernel
def add_tiles(gA: cute.Tensor, gB: cute.Tensor, coords: Any, shape: Any, step: cute.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    a, b, c = (x[(None, None), block] for x in (gA, gB, coords))
    if cute.elem_less(c[t], shape):
        b[t] = a[t] + step


@cute.jit
def add(A: cute.Tensor, B: cute.Tensor, step: cutlass.Int32, tile: cutlass.Constexpr = (4, 8)) -> None:
    built.append(str(A.layout))
    gA, gB = cute.zipped_divide(A, tile), cute.zipped_divide(B, tile)
    coords = cute.zipped_divide(cute.make_identity_tensor(B.shape), tile)
    add_tiles(gA, gB, coords, B.shape, step).launch(grid=cute.size(gB, mode=[1]), block=cute.size(tile))


def matrices(rows: int, columns: int) -> tuple[Any, Any]:
    return np.arange(rows * columns, dtype=np.int32).reshape(rows, columns), np.zeros((rows, columns), np.int32)


def test_views_of_the_host_reach_the_kernel_with_tiles_that_reach_beyond() -> None:
    a, b = matrices(6, 20)
    add(a, b, 5)
    assert np.array_equal(b, a + 5)


def test_a_compiled_function_is_not_executed_again() -> None:
    a, b = matrices(8, 16)
    made = cute.compile(add, from_dlpack(a).mark_layout_dynamic(), from_dlpack(b).mark_layout_dynamic(), 1)
    built.clear()
    for rows, columns, step in ((8, 16, 3), (6, 24, 4), (10, 12, -2)):
        a, b = matrices(rows, columns)
        made(a, b, step)
        assert np.array_equal(b, a + step)
    assert not built
    assert "tile.zipped_divide" in made.kernels[0].to_cute()
    assert len(made.kernels) == 1


def test_static_arguments_of_another_shape_compile_the_function_again() -> None:
    a, b = matrices(8, 16)
    made = cute.compile(add, a, b, 1)
    a, b = matrices(4, 24)
    built.clear()
    made(a, b, 2)
    made(a, b, 3)
    assert np.array_equal(b, a + 3)
    assert len(built) == 1


def test_functions_are_compiled_for_descriptions() -> None:
    n = cute.sym_int(divisibility=4)
    fake = make_fake_compact_tensor(cute.Int32, (cute.sym_int(), n), stride_order=(1, 0), assumed_align=16)
    made = cute.compile(add, fake, fake, 0)
    built.clear()
    a, b = matrices(6, 12)
    made(a, b, 7)
    assert np.array_equal(b, a + 7)
    assert not built


@cute.jit
def add_in_another_order(A: cute.Tensor, B: cute.Tensor) -> None:
    gA, gB = (cute.zipped_divide(x, (4, 8)) for x in (A, B))
    order = cute.make_ordered_layout(cute.select(gA.shape[1], mode=[1, 0]), order=(1, 0))
    gA, gB = (cute.composition(x, (None, order)) for x in (gA, gB))
    coords = cute.zipped_divide(cute.make_identity_tensor(A.shape), (4, 8))
    add_tiles(gA, gB, coords, B.shape, 1).launch(grid=cute.size(gB, mode=[1]), block=32)


def test_a_composition_that_holds_for_some_extents_asks_for_them() -> None:
    a, b = matrices(8, 24)
    made = cute.compile(add_in_another_order, from_dlpack(a), from_dlpack(b).mark_layout_dynamic())
    made(a, b)
    assert np.array_equal(b, a + 1)
    a, b = matrices(12, 16)
    made(a, b)
    assert np.array_equal(b, a + 1)


@cute.kernel
def count_blocks(A: cute.Tensor) -> None:
    block, _, _ = cute.arch.block_idx()
    A[block] = A[block] + 1


@cute.jit
def count_tiles(A: cute.Tensor) -> None:
    count_blocks(A).launch(grid=[cute.zipped_divide(A, (1,)).shape[1], 1, 1], block=1)


def test_a_grid_has_modes_of_several_extents() -> None:
    a = np.zeros(5, np.int32)
    count_tiles(a)
    cute.compile(count_tiles, from_dlpack(a).mark_layout_dynamic())(a)
    assert a.tolist() == [2] * 5


def test_a_question_for_a_number_is_asked_again() -> None:
    asked: list[int] = []

    @cute.kernel
    def fill(A: cute.Tensor, value: cute.Int32) -> None:
        t, _, _ = cute.arch.thread_idx()
        A[t] = value

    @cute.jit
    def run(A: cute.Tensor) -> None:
        is_long = A.shape[0] > 4
        asked.append(bool(is_long))
        fill(A, 1 if is_long else 2).launch(grid=1, block=4)

    made = cute.compile(run, make_fake_tensor(cute.Int32, (cute.sym_int(),), (1,)))
    for length in (4, 8, 4, 12):
        a = np.zeros(length, np.int32)
        made(a)
        assert a[:4].tolist() == [1 if length > 4 else 2] * 4
    assert asked == [True, False, True] or asked == [False, True], asked


class Scaled:
    """A kernel and its launch, which share what the launch computes."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    @cute.jit
    def __call__(self, A: cute.Tensor, stream: Any) -> None:
        self.tiled = cute.flat_divide(A, (8,))
        self.kernel().launch(grid=self.tiled.shape[1], block=8, stream=stream)

    @cute.kernel
    def kernel(self) -> None:
        t, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        self.tiled[(t, block)] = self.tiled[(t, block)] * self.factor


def test_attributes_that_the_host_sets_reach_the_kernel() -> None:
    a = np.arange(24, dtype=np.int32)
    made = cute.compile(Scaled(3), from_dlpack(a).mark_layout_dynamic(), make_fake_stream())
    for length in (24, 40):
        a = np.arange(length, dtype=np.int32)
        made(a, 0) if length < 30 else made(a, make_fake_stream())
        assert a.tolist() == [3 * i for i in range(length)]


MISTAKES: Sequence[tuple[Callable[[Any], object], str]] = (
    (lambda a: from_dlpack(a).mark_layout_dynamic(leading_dim=0), "mode 0 has stride 4, not 1"),
    (
        lambda a: from_dlpack(a).mark_compact_shape_dynamic(1, (0, 1), 3),
        "is not a multiple of 3",
    ),
    (lambda a: from_dlpack(a).mark_compact_shape_dynamic(1, (1, 0)), "does not match the strides"),
    (lambda a: cute.compile(Scaled(3), a[0], 0)(a[0], "s"), "a str is not a stream"),
    (lambda a: cute.compile(3, a), "a int cannot be compiled"),
    (lambda a: cute.compile(add, a, a, 1, options="--fast"), "unrecognized arguments: --fast"),
    (lambda a: cutlass.dtype("Float17"), "unknown element type 'Float17'"),
)


@pytest.mark.parametrize(("call", "words"), MISTAKES)
def test_mistakes_of_the_host(call: Any, words: str) -> None:
    with pytest.raises(TilefoldError, match=words):
        call(np.zeros((8, 4), np.int32))


def test_options_are_text_or_objects(tmp_path: Path) -> None:
    a, b = matrices(4, 8)
    keeping = cute.compile[cute.OptLevel(2), cute.KeepPTX, cute.DumpDir(str(tmp_path))]
    made: CompiledFunction = keeping(add, a, b, 1)
    assert (made.options.opt_level, made.options.keep_ptx) == (2, True)
    assert cute.compile(add, a, b, 1, options="--opt-level 1 --gpu-arch sm_90a").options.gpu_arch == "sm_90a"


def test_options_have_their_effects(tmp_path: Path) -> None:
    a, b = matrices(4, 8)
    text = f"--gpu-arch sm_90a --keep-ptx --keep-cubin --dump-dir '{tmp_path}' --generate-line-info"
    made: CompiledFunction = cute.compile(add, a, b, 1, options=text)
    assert made.__ptx__ == (tmp_path / "add_tiles.ptx").read_text() == made.ptx()
    assert ".target sm_90a" in made.ptx()
    assert ".loc" in made.ptx()
    assert made.__cubin__ == (tmp_path / "add_tiles.cubin").read_bytes()
    plain: CompiledFunction = cute.compile[cute.GenerateLineInfo(False)](add, a, b, 1)
    assert ".loc" not in plain.ptx()
    assert plain.__ptx__ is None
    assert plain.__cubin__ is None
    assert plain.kernels[0] is not made.kernels[0]


def test_a_level_of_optimisation_reaches_the_assembler() -> None:
    a, b = matrices(4, 8)
    codes = {level: cute.compile[cute.OptLevel(level)](add, a, b, 1).kernels[0].cubin() for level in (0, 3)}
    assert codes[0] != codes[3]


@needs_ptxas
def test_options_of_ptxas_reach_it() -> None:
    a, b = matrices(4, 8)
    made = cute.compile(add, a, b, 1, options="--ptxas-options '-O1 --verbose'")
    assert made.kernels[0].cubin()
    unknown = cute.compile(add, a, b, 1, options="--ptxas-options --no-such-option")
    with pytest.raises(TilefoldError, match=r"(?s)E2301.*must be among those"):
        unknown.kernels[0].cubin()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--link-libraries a.bc", "no libraries are linked"),
        ("--opt-level 4", "unknown optimisation level 4"),
        ("--opt-level x", "invalid int value: 'x'"),
        ("--gpu-arch sm_99", "unknown target 'sm_99'"),
        ("--ptxas-options 'open", "No closing quotation"),
        (cute.OptLevel("2"), "is not of type int"),
        (cute.KeepPTX(1), "is not of type bool"),
        (7, "7 is not an option"),
    ],
)
def test_options_without_an_effect_are_refused(options: Any, words: str) -> None:
    a, b = matrices(4, 8)
    with pytest.raises(TilefoldError, match=words):
        cute.compile(add, a, b, 1, options=options)


def test_a_target_that_lacks_an_instruction_is_refused_at_once() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor) -> None:
        cute.arch.cp_async_commit_group()

    @cute.jit
    def host(A: cute.Tensor) -> None:
        kernel(A).launch(grid=1, block=32)

    cute.compile[cute.GPUArch("sm_80")](host, matrices(4, 8)[0])
    with pytest.raises(TilefoldError, match="sm_75"):
        cute.compile[cute.GPUArch("sm_75")](host, matrices(4, 8)[0])


class Buffer:
    """An object of a program's that holds a pointer, and says so in the way of the public programs."""

    def __init__(self, ptr: Any) -> None:
        self.ptr = ptr

    def __new_from_mlir_values__(self, values: Any) -> "Buffer":
        return Buffer(values[0])


@cute.kernel
def double(A: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    A[t, 0] = 2 * A[t, 0]


@cute.jit
def double_at(ptr: cute.Pointer, buffer: Buffer, n: cutlass.Int32) -> None:
    assert ptr.value_type is cute.Int32
    for start in (ptr, buffer.ptr):
        double(cute.make_tensor(start, cute.make_layout((n, 1), stride=(1, n)))).launch(grid=1, block=4)


def test_addresses_are_arguments() -> None:
    a, b = np.arange(6, dtype=np.int32), np.arange(6, dtype=np.int32)
    p, q = (cute.runtime.make_ptr(cute.Int32, x.ctypes.data, cute.AddressSpace.gmem, assumed_align=4) for x in (a, b))
    double_at(p, Buffer(q), 6)
    assert a.tolist() == b.tolist() == [0, 2, 4, 6, 4, 5]
    compiled = cute.compile(double_at, p, Buffer(q), 6)
    compiled(p, Buffer(q), 5)
    assert a.tolist() == b.tolist() == [0, 4, 8, 12, 4, 5]
    with pytest.raises(TilefoldError, match="is out of range for"):
        compiled(p, Buffer(q), 3)


def test_a_launch_says_how_many_blocks_a_multiprocessor_holds() -> None:
    @cute.jit
    def run(A: cute.Tensor) -> None:
        double(A).launch(grid=1, block=4, min_blocks_per_mp=3)

    a = np.ones((4, 1), np.int32)
    compiled = cute.compile(run, a)
    compiled(a)
    assert a.tolist() == [[2]] * 4
    assert "min_blocks(3)" in compiled.kernels[0].to_cute()


leading: list[Any] = []


@cute.jit
def look_at(A: cute.Tensor, B: cute.Tensor) -> None:
    nested = cute.make_tensor(A.iterator, cute.make_layout((A.shape[0], (4, 2)), stride=(A.stride[0], (2, 1))))
    broadcast = cute.make_tensor(A.iterator, cute.make_layout((1, 8), stride=(1, 1)))
    leading[:] = [A.leading_dim, B.leading_dim, nested.leading_dim, broadcast.leading_dim, A[None, 0].leading_dim]


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_contiguous_mode_of_a_tensor(dynamic: bool) -> None:
    a = np.zeros((6, 8), np.float32)
    given = [from_dlpack(a), from_dlpack(a.T)]
    look_at(*([one.mark_layout_dynamic() for one in given] if dynamic else given))
    assert leading == [1, 0, (1, 1), 1, None]


def test_stages_of_an_epilogue_for_several_warpgroups() -> None:
    helpers, rows = cute.utils.hopper_helpers, cute.utils.LayoutEnum.ROW_MAJOR
    plain = helpers.make_smem_layout_epi(cute.Float16, rows, (64, 32), 2)
    both = helpers.make_smem_layout_epi(cute.Float16, rows, (64, 32), 2, (64, 32, 2, 2), (0, 1, 2, 3))
    other = helpers.make_smem_layout_epi(cute.Float16, rows, (64, 32), 2, (64, 32, 2, 2), (0, 1, 3, 2))
    assert cute.size(both) == 2 * cute.size(plain)
    assert [layout(0, 0, 1, 1) for layout in (both, other)] == [3 * 2048] * 2
    assert [layout(0, 0, 1, 0) for layout in (both, other)] == [2048, 2 * 2048]


@cute.jit
def transposed(A: cute.Tensor, B: cute.Tensor, scale: cutlass.Constexpr) -> None:
    for i in cute.range_constexpr(cute.size(A, mode=[0])):
        for j in cute.range_constexpr(cute.size(A, mode=[1])):
            B[j, i] = A[i, j] * scale


@cute.jit
def filled(memory: cute.Pointer, value: cute.Int32) -> None:
    cute.make_tensor(memory, cute.make_layout((2, 3), stride=(4, 1))).fill(value)


def test_a_function_that_writes_by_a_pointer_is_a_kernel_of_one_thread() -> None:
    a = np.zeros((3, 4), np.int32)
    filled(make_ptr(cute.Int32, a.ctypes.data), 7)
    assert a.tolist() == [[7, 7, 7, 0], [7, 7, 7, 0], [0] * 4]
    made = cute.compile(filled, make_ptr(cute.Int32, a.ctypes.data), 7)
    made(make_ptr(cute.Int32, a[1:].ctypes.data), 8)
    assert a.tolist() == [[7, 7, 7, 0], [8, 8, 8, 0], [8, 8, 8, 0]]


def test_a_compiled_function_that_writes_elements_is_a_kernel_of_one_thread() -> None:
    made = cute.compile(transposed, make_fake_tensor(cute.Int32, (2, 3), (3, 1)), np.zeros((3, 2), np.int32), 5)
    a, b = matrices(2, 3)[0], np.zeros((3, 2), np.int32)
    made(a, b)
    assert np.array_equal(b, 5 * a.T)
    made(a + 1, b)
    assert np.array_equal(b, 5 * (a + 1).T)


def test_elements_of_tf32_are_those_of_float32_in_the_kernel() -> None:
    floats, halves = np.zeros(8, np.float32), np.zeros(8, np.float16)
    tensor = from_dlpack(floats, force_tf32=True)
    assert tensor.element_type is cutlass.TFloat32
    shift(tensor)
    assert (floats == 1).all()
    tensor.element_type = cutlass.Float32
    assert tensor.element_type is cutlass.Float32
    tensor.element_type = cutlass.TFloat32
    assert tensor.mark_layout_dynamic().element_type is cutlass.TFloat32
    assert from_dlpack(halves, force_tf32=True).element_type is cutlass.Float16


@cute.kernel
def widened(A: cute.Tensor, B: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    B[t] = A[t].to(cute.Float32)


@cute.jit
def widen(A: cute.Tensor, B: cute.Tensor) -> None:
    widened(A, B).launch(grid=1, block=4)


def test_bytes_are_passed_as_floats_of_8_bits() -> None:
    a, b = np.array([0x38, 0x40, 0xB8, 0], np.uint8), np.zeros(4, np.float32)
    tensor = from_dlpack(a)
    tensor.element_type = cutlass.Float8E4M3FN
    made = cute.compile(widen, tensor.mark_layout_dynamic(), b, options="--enable-tvm-ffi")
    made(a, b)
    assert b.tolist() == [1, 2, -1, 0]
    made(a[::-1].copy(), b)
    assert b.tolist() == [0, -1, 2, 1]
    with pytest.raises(TilefoldError, match="of i8; the function is compiled for"):
        made(a.view(np.int8), b)


@cute.kernel
def shifted(A: cute.Tensor, *, by: cutlass.Constexpr = 1) -> None:
    t, _, _ = cute.arch.thread_idx()
    A[t] = A[t] + by


@cute.jit
def shift(A: cute.Tensor, **options: Any) -> None:
    shifted(A, **options).launch(grid=1, block=8)


@pytest.mark.parametrize("options", [{}, {"by": 5}])
def test_a_kernel_has_parameters_by_keyword_only(options: dict[str, int]) -> None:
    a = np.zeros(8, np.int32)
    shift(a, **options)
    assert a.tolist() == [options.get("by", 1)] * 8


@cute.jit
def shift_by_extents(A: cute.Tensor, addresses: cute.Tensor, needs: cutlass.Constexpr[str]) -> None:
    first: Any = addresses[0]
    pointer = cute.make_ptr(cutlass.Int32, first, mem_space=cute.AddressSpace.gmem, assumed_align=4)
    tensor = cute.make_tensor(pointer, cute.make_layout((8, 2)))
    count = first if needs == "element" else cute.size(tensor, mode=[1])
    shifted(tensor if needs == "tensor" else A, by=count if needs == "extent" else 2).launch(grid=count - 1, block=8)


@pytest.mark.parametrize("needs", ["extent", "element", "tensor"])
def test_the_host_reads_elements_for_the_extents_of_tensors(needs: str) -> None:
    a, addresses = np.zeros(8, np.int32), np.full(1, 2, np.int64)
    if needs == "extent":
        shift_by_extents(a, addresses, needs)
        cute.compile(shift_by_extents, a, addresses, needs)(a, addresses)
        assert a.tolist() == [4] * 8
        return
    with pytest.raises(TilefoldError) as caught:
        shift_by_extents(a, addresses, needs)
    assert caught.value.code == "E5001"
    assert "addresses[0]" in str(caught.value)
