# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host functions as object files: programs in C call them, and `load_module` reads them back."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError
from tilefold.runtime.errors import LaunchError

from tests.runtime.toolkit import DRIVER, toolkit
from tilefold import cute
from tilefold.cute.host.compiled import CompiledFunction
from tilefold.cute.nvgpu import cpasync
from tilefold.cute.runtime import (
    find_runtime_libraries,
    from_dlpack,
    load_module,
    make_fake_compact_tensor,
    make_fake_stream,
    make_fake_tensor,
    make_ptr,
)

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


TWO: Any = 2.0


class CUstream(int):
    """A stream as cuda-python has it."""


@cute.kernel
def scale_kernel(a: cute.Tensor, alpha: cute.Float32, limit: cute.Int32) -> None:
    row, t = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    if row < limit and t < a.shape[1]:
        a[row, t] = a[row, t] * alpha


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, count: cute.Int64) -> None:
    row, t = cute.arch.block_idx()[1], cute.arch.thread_idx()[0]
    if t < a.shape[1]:
        b[row, t] = b[row, t] + a[row, t] + count


@cute.jit
def scale_and_add(
    tensors: tuple[cute.Tensor, cute.Tensor],
    alpha: cute.Float32,
    limit: cute.Int32,
    stream: Any,
    bias: cute.Tensor | None = None,
) -> None:
    a, b = tensors
    rows = a.shape[0]
    if limit > 100:
        limit = limit - 100
    scale_kernel(a, alpha, limit).launch(grid=(rows, 1, 1), block=32, stream=stream)
    add_kernel(a, b, rows * 10).launch(grid=(1, rows), block=(32, 1, 1), stream=stream)


Matrix = NDArray[np.float32]


def matrix(rows: int, columns: int) -> Matrix:
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def compiled_for(limit: int, options: str = "") -> CompiledFunction:
    rows = cute.sym_int()
    shape = rows, cute.sym_int(divisibility=4)
    a = make_fake_compact_tensor(cute.Float32, shape, stride_order=(1, 0))
    b = make_fake_tensor(cute.Float32, (rows, 8), (cute.sym_int(width=64), 1))
    return cute.compile(scale_and_add, (a, b), 1.0, limit, make_fake_stream(), options=options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two objects: of the function as PTX for a small limit, and as machine code for a large one."""
    made = tmp_path_factory.mktemp("export")
    compiled_for(3).export_to_c(file_path=made, file_name="few", function_prefix="scaled")
    compiled_for(103, "--gpu-arch sm_80").export_to_c(made / "many.o", function_name="scaled_many")
    return made


def call(function: Any, limit: int) -> tuple[Matrix, Matrix]:
    a, b = matrix(4, 8), np.ones((4, 16), np.float32)[:, :8]
    function((a, b), 2.0, limit, CUstream(0))
    return a, b


def test_loaded_functions_compute_what_they_were_compiled_for(folder: Path) -> None:
    a, b = call(compiled_for(3), 3)
    few = load_module(folder / "few.o").scaled
    for got, expected in zip(call(few, 3), (a, b), strict=True):
        assert np.array_equal(got, expected)
    assert np.array_equal(a[:3], 2 * matrix(4, 8)[:3])
    assert np.array_equal(b, a + 41)
    a, b = call(load_module(str(folder / "many.o")).scaled_many, 102)
    assert np.array_equal(a[2:], matrix(4, 8)[2:])
    assert [kernel.name for kernel in few.kernels] == ["scale_kernel", "add_kernel"]


def test_other_arguments_are_refused(folder: Path) -> None:
    few = load_module(folder / "few.o").scaled
    with pytest.raises(LaunchError, match="compiled for other numbers"):
        call(few, 200)
    with pytest.raises(LaunchError, match=r"'tensors0' is \(4,6\):\(6,1\) of f32"):
        few((matrix(4, 6), matrix(4, 8)), 2.0, 3, CUstream(0))
    with pytest.raises(LaunchError, match=r"'tensors1' has extent 0 5, but extent 0 of argument 'tensors0' is 4"):
        few((matrix(4, 8), matrix(5, 8)), 2.0, 3, CUstream(0))
    with pytest.raises(LaunchError, match=r"'bias' is .*; the function is compiled for none"):
        few((matrix(4, 8), matrix(4, 8)), 2.0, 3, CUstream(0), matrix(1, 8))


def test_a_marked_array_of_another_layout_is_passed_as_c_passes_it(folder: Path) -> None:
    few = load_module(folder / "few.o").scaled
    memory = np.zeros(64, np.float32)
    turned = memory.reshape(8, 8)[:6, :3].T  # (3,6):(1,8), which is passed as (3,6):(8,1)
    with pytest.warns(RuntimeWarning, match=r"'tensors0' is \(3,6\):\(1,8\); .* them: \(3,6\):\(8,1\)") as caught:
        few((from_dlpack(turned).mark_layout_dynamic(), matrix(3, 8)), 2.0, 3, CUstream(0))
    assert caught[0].filename == __file__
    with pytest.raises(LaunchError, match="the function is compiled for"):
        few((from_dlpack(turned[:, :1]).mark_layout_dynamic(), matrix(3, 8)), 2.0, 3, CUstream(0))


@cute.jit
def scale_without(bias: cute.Tensor | None, a: cute.Tensor, alpha: cute.Float32, limit: Any = None) -> None:
    scale_kernel(a, alpha, 4).launch(grid=(a.shape[0], 1, 1), block=32)


def test_none_is_passed_before_other_arguments(tmp_path: Path) -> None:
    compiled = cute.compile(scale_without, None, from_dlpack(matrix(4, 8)), 1.0)
    compiled.export_to_c(object_file_path=tmp_path / "x.o", function_name="scaled")
    loaded, a, b = load_module(tmp_path / "x.o")["scaled"], matrix(4, 8), matrix(4, 8)
    loaded(None, a, 2.0)
    loaded(None, b, 2.0, None)
    assert np.array_equal(a, 2 * matrix(4, 8))
    assert np.array_equal(a, b)
    with pytest.raises(TypeError, match="missing a required argument: 'alpha'"):
        loaded(None, a)


def test_files_without_functions(folder: Path, tmp_path: Path) -> None:
    data = (folder / "few.o").read_bytes()
    at = data.index(b'"version": ')
    changed = data[:at] + data[at:].replace(b'"version": "', b'"version": "9', 1)[:-1]
    broken = data.replace(b'"guards"', b'"guarts"')
    for name, content, words in (
        ("none.o", b"\x7fELF", "has no exported functions"),
        ("other.o", changed, r"is of tilefold 9|is damaged"),
        ("broken.o", broken, "is damaged"),
        ("short.o", data[: at + 40], "is damaged"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TilefoldError, match=words) as caught:
            load_module(tmp_path / name)
        assert caught.value.code == "E4001"
    with pytest.raises(TilefoldError, match="No such file"):
        load_module(tmp_path / "absent.o")
    module = load_module(folder / "few.o")
    assert dir(module) == ["scaled"]
    with pytest.raises(AttributeError, match=r"has no function 'add'.*\n.*it has scaled"):
        _ = module.add
    assert not hasattr(module, "add")
    assert find_runtime_libraries() == []


def built(folder: Path, source: str, *objects: Path) -> Path:
    """A program in C with objects and the driver of these tests; messages of the compiler fail the test."""
    (folder / "program.c").write_text(source)
    include = [f"-I{DRIVER}", *(f"-I{path.parent}" for path in objects)]
    command = ["cc", *WARNINGS, "-std=c99", *include, "-o", "program", "program.c", *map(str, objects)]
    made = subprocess.run([*command, str(DRIVER / "driver.c")], cwd=folder, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, ""), made.stderr
    return folder / "program"


def said(program: Path, **arguments: str) -> list[str]:
    """The lines that a program writes on the driver of these tests, which knows the `arguments` of these kernels."""
    return subprocess.run(
        [program], env={**os.environ, **arguments}, capture_output=True, text=True, check=False
    ).stdout.splitlines()


needs_c = pytest.mark.skipif(not shutil.which("cc"), reason="no cc")

PROGRAM = """
#include "few.h"
#include "many.h"
int main(void)
{
    scaled_Kernel_Module_t few;
    scaled_many_Kernel_Module_t many;
    scaled_Tensor_tensors0_t a = {(void *)(uintptr_t)4096, {4, 8}, {8}};
    scaled_Tensor_tensors1_t b = {(void *)(uintptr_t)8192, {4}, {1099511627776}};
    scaled_many_Tensor_tensors0_t c = {(void *)(uintptr_t)4096, {4, 8}, {8}};
    scaled_many_Tensor_tensors1_t d = {(void *)(uintptr_t)8192, {4}, {16}};
    CUstream stream = (CUstream)(uintptr_t)7;
    CUresult status = scaled_Kernel_Module_Load(&few);
    if (status != CUDA_SUCCESS)
        return printf("status %d\\n", (int)status) < 0;
    if (scaled_many_Kernel_Module_Load(&many) != CUDA_SUCCESS)
        return 1;
    printf("few %d\\n", cute_dsl_scaled_wrapper(&few, &a, &b, 1.5f, -3, stream));
    printf("few %d\\n", cute_dsl_scaled_wrapper(&few, &a, &b, 1.5f, 101, stream));
    printf("many %d\\n", cute_dsl_scaled_many_wrapper(&many, &c, &d, 2.0f, 105, 0));
    printf("unload %d\\n", scaled_Kernel_Module_Unload(&few));
    return scaled_many_Kernel_Module_Unload(&many) != CUDA_SUCCESS;
}
"""


@needs_c
def test_a_program_in_c_launches_what_the_function_does(folder: Path, tmp_path: Path) -> None:
    program = built(tmp_path, PROGRAM, folder / "few.o", folder / "many.o")
    written = said(program, scale_kernel="48444f", add_kernel="84448488")
    loads = ["load PTX at 0", "function scale_kernel", "load PTX at 0", "function add_kernel"]
    assert written == [
        *loads, *(line.replace("PTX", "machine code") for line in loads),
        "launch 4x1x1 32x1x1 0 -3 4096 4 8 8 1.5 stream 7",
        "launch 1x4x1 32x1x1 0 4096 4 8 8 8192 4 1099511627776 40 stream 7",
        "few 0", "few 1",
        "launch 4x1x1 32x1x1 0 5 4096 4 8 8 2",
        "launch 1x4x1 32x1x1 0 4096 4 8 8 8192 4 16 40",
        "many 0", "unload", "unload", "unload 0", "unload", "unload",
    ]  # fmt: skip
    missing = said(program, scale_kernel="")
    assert missing == [*loads, "unload", "unload", "status 500"]


@needs_c
def test_a_library_has_the_functions_of_its_objects(folder: Path, tmp_path: Path) -> None:
    library = tmp_path / "both.so"
    subprocess.run(["cc", "-shared", "-o", library, folder / "few.o", folder / "many.o"], check=True)
    module = load_module(library)
    assert dir(module) == ["scaled", "scaled_many"]
    a, b = call(module.scaled_many, 102)
    assert np.array_equal(b, a + 41)
    assert np.array_equal(a[:2], 2 * matrix(4, 8)[:2])


@cute.kernel
def tile_kernel(load: Any, coords: cute.Tensor, layout: cute.Constexpr[Any]) -> None:
    tile = cute.group_modes(cute.make_smem_tensor(layout, cute.Float16, 128), 0, 2)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    to, source = cpasync.tma_partition(load, 0, cute.make_layout(1), tile, cute.group_modes(coords, 0, 2))
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
        cute.copy(load, source, to, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)


@cute.jit
def load_tile(A: cute.Tensor) -> None:
    layout = cute.make_layout((8, 64), stride=(64, 1))
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, (8, 64))
    tile_kernel(load, cute.local_tile(coords, (8, 64), (0, 0)), layout).launch(
        grid=4, block=32, cluster=(2, 1, 1), use_pdl=True, cooperative=True
    )


TILE_PROGRAM = """
#include "tile.h"
int main(void)
{
    tile_Kernel_Module_t module;
    tile_Tensor_A_t a = {0, {48}, {72}};
    tile_Kernel_Module_Load(&module);
    return (int)cute_dsl_tile_wrapper(&module, &a);
}
"""


@needs_c
def test_tensor_maps_and_attributes_of_launches(tmp_path: Path) -> None:
    a = make_fake_tensor(cute.Float16, (cute.sym_int(), 64), (cute.sym_int(64, 8), 1), assumed_align=16)
    cute.compile(load_tile, a).export_to_c(tmp_path / "tile.o")
    written = said(built(tmp_path, TILE_PROGRAM, tmp_path / "tile.o"), tile_kernel="848m")
    assert written[2:] == [
        "map 6 0 64:64:1 48:8:144 0 0 0 0", "cluster 2x1x1", "attribute 6", "attribute 2",
        "launch 4x1x1 32x1x1 0 0 48 72 map1",
    ]  # fmt: skip


@cute.jit
def printing(a: cute.Tensor, x: Any = None) -> None:
    cute.printf("x")
    scale_kernel(a, 1.0, 1).launch(grid=1, block=1)


@cute.jit
def writing(a: cute.Tensor, x: Any = None) -> None:
    a[0, 0] = 1.0


@cute.jit
def given(a: cute.Tensor, x: Any = None) -> None:
    scale_kernel(a, 1.0, 1).launch(grid=1, block=1)


@cute.jit
def deciding(a: cute.Tensor, x: cute.Float32 = TWO) -> None:
    scale_kernel(a, 1.0, 1 if x > 1.0 else 2).launch(grid=1, block=1)


@cute.jit
def by_a_float(a: cute.Tensor, x: cute.Float32 = TWO) -> None:
    scale_kernel(a, 1.0, int(x)).launch(grid=1, block=1)


@cute.jit
def in_a_stream(a: cute.Tensor, x: Any = None) -> None:
    scale_kernel(a, 1.0, 1).launch(grid=1, block=1, stream=CUstream(3))


@cute.jit
def with_an_event(a: cute.Tensor, x: Any = None) -> None:
    scale_kernel(a, 1.0, 1).launch(grid=1, block=1, launch_completion_event=1)


@pytest.mark.parametrize(
    ("function", "more", "name", "words"),
    [
        (given, (), "a-b", "it is not a name in C"),
        (printing, (), "f", "it prints, or checks an assertion, on the host"),
        (writing, (), "f", "it has not been compiled for its arguments"),
        (given, (make_ptr(cute.Float32, 4096),), "f", "it takes 'x', a Pointer, which C does not pass"),
        (given, ("text",), "f", "it takes 'x', a str, which C does not pass"),
        (by_a_float, (), "f", "it depends on the number of a float"),
        (in_a_stream, (), "f", "it launches in a stream that is not its argument"),
        (with_an_event, (), "f", "it records an event"),
    ],
)
def test_functions_that_c_cannot_call(
    function: Any, more: tuple[Any, ...], name: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(TilefoldError, match=words) as caught:
        cute.compile(function, matrix(4, 4), *more).export_to_c(tmp_path, "f", name)
    assert caught.value.code == "E0213"
    assert not list(tmp_path.iterdir())


def test_a_choice_by_a_comparison_is_checked(tmp_path: Path) -> None:
    cute.compile(deciding, matrix(4, 4)).export_to_c(tmp_path / "f.o")
    load_module(tmp_path / "f.o").f(matrix(4, 4), 1.5)
    with pytest.raises(LaunchError, match="compiled for other numbers"):
        load_module(tmp_path / "f.o").f(matrix(4, 4), 0.5)


GPU_PROGRAM = """
#include "both.h"
static float memory[2][64];
int main(void)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr address;
    both_Kernel_Module_t module;
    both_Tensor_tensors0_t a = {0, {4, 8}, {8}};
    both_Tensor_tensors1_t b = {0, {4}, {16}};
    int i;
    for (i = 0; i < 64; i++) {
        memory[0][i] = (float)i;
        memory[1][i] = 1;
    }
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context))
        return 1;
    if (cuMemAlloc(&address, sizeof memory) || cuMemcpyHtoD(address, memory, sizeof memory))
        return 2;
    a.data = (void *)(uintptr_t)address;
    b.data = (void *)(uintptr_t)(address + sizeof memory[0]);
    if (both_Kernel_Module_Load(&module) || cute_dsl_both_wrapper(&module, &a, &b, 2.0f, 3, 0))
        return 3;
    if (cuMemcpyDtoH(memory, address, sizeof memory) || both_Kernel_Module_Unload(&module))
        return 4;
    for (i = 0; i < 128; i++)
        printf("%g\\n", memory[i / 64][i % 64]);
    return 0;
}
"""


@pytest.mark.gpu
def test_c_and_python_compute_on_a_gpu_what_the_simulator_does(tmp_path: Path) -> None:
    compiled_for(3).export_to_c(tmp_path / "both.o")
    a, b = matrix(4, 8), np.ones((4, 16), np.float32)
    a[:3] *= 2
    b[:, :8] += a + 40
    got_a, got_b = call(load_module(tmp_path / "both.o").both, 3)
    assert np.array_equal(got_a, a)
    assert np.array_equal(got_b, b[:, :8])
    (tmp_path / "program.c").write_text(GPU_PROGRAM)
    compiler, *rest = toolkit(tmp_path)
    command = [compiler, "-o", "program", "program.c", "both.o", "-I.", *rest]
    subprocess.run(command, cwd=tmp_path, check=True)
    written = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout.split()
    expected = [*a.ravel(), *np.arange(32, 64), *b.ravel()]
    assert [float(number) for number in written] == expected
