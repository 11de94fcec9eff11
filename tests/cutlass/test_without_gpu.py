# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU that programs find on a machine without one: its memory, graphs and cooperative launches."""

import ctypes
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime.arrays.reachable import Reachable, reachable
from tilefold.runtime.cuda.driver import CudaError

import tilefold
from tilefold import cute
from tilefold.cutlass.replacements import Replacements
from tilefold.cutlass.without_gpu.device_calls import MissingGpu, device_on_host, take_the_place_of_gpus
from tilefold.cutlass.without_gpu.host_memory import HostMemory, memory_on_host
from tilefold.cutlass.without_gpu.streams import streams_on_host
from tilefold.cutlass.without_gpu.tensor_maps import tensor_maps_on_host


@cute.kernel
def count(A: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    A[block * threads + t] = A[block * threads + t] + 1


@cute.kernel
def count_at(memory: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    A = cute.make_tensor(memory, cute.make_layout(4))
    A[t] = A[t] + t


@cute.jit
def host(A: cute.Tensor, blocks: cute.Constexpr = 1, threads: cute.Constexpr = 4) -> None:
    count(A).launch(grid=blocks, block=threads, cooperative=True)


@cute.jit
def host_at(memory: Any) -> None:
    count_at(memory).launch(grid=1, block=4)


@pytest.fixture
def replaced() -> Iterator[Replacements]:
    """What a test replaces, until its end."""
    with Replacements() as made:
        yield made


@pytest.fixture
def gpu(replaced: Replacements) -> MissingGpu:
    """The missing GPU, until the end of the test."""
    made = MissingGpu()
    take_the_place_of_gpus(made, replaced)
    return made


def test_what_was_replaced_comes_back() -> None:
    class Base:
        kept = 1

    class Owner(Base):
        @staticmethod
        def function() -> int:
            return 2

    class Renamed(Owner): ...

    one = Owner()
    before = dict(vars(Owner))
    with Replacements() as replaced:
        replaced.set(one, __class__=Renamed)
        assert type(one) is Renamed
        replaced.set(Owner, kept=3, function=4, new=5)
        replaced.set(Owner, kept=6)
        owner: Any = Owner
        assert (owner.kept, owner.function, owner.new, Base.kept) == (6, 4, 5, 1)
    assert (dict(vars(Owner)), Owner.kept, Owner.function()) == (before, 1, 2)
    assert type(one) is Owner


_HOLDERS = """
import sys
from importlib import import_module
names = ["torch", "torch.amp", "torch.cuda", "torch.cuda.profiler", "torch.accelerator", "torch.library",
         "torch.profiler", "torch.utils._triton", "cuda.bindings.runtime", "cuda.bindings.driver"]
from tilefold.cute.host.streams import torch_module
torch = torch_module()
from tilefold.driver.devices import devices_of_process
holders = [import_module(name) for name in names] + [torch.Tensor, devices_of_process()]
from tilefold.cutlass.without_gpu import stay_on_host
before = [dict(vars(holder)) for holder in holders]
with stay_on_host():
    x = torch.ones(4, 4, device="cuda")
    assert torch.cuda.is_available() and x.is_cuda and x.device == torch.device("cuda", 0)
    assert torch.mm(x.bfloat16(), x.bfloat16(), out_dtype=torch.float32).dtype == torch.float32
    torch.cuda.profiler.start(), torch.accelerator.synchronize(), torch.cuda.device(0).__enter__()
    assert torch.cuda.mem_get_info()[0] > torch.cuda.current_blas_handle() == 0
    assert torch.cuda.ExternalStream(0).cuda_stream == torch._C._cuda_getCurrentRawStream(0) == 0
    assert isinstance(torch.cuda.Stream(), torch.cuda.Stream)
for holder, names in zip(holders, before):
    now = vars(holder)
    assert names.keys() == now.keys() and all(now[name] is names[name] for name in names), holder
assert not torch.cuda.is_available() and not x.is_cuda and x.device.type == "cpu"
with stay_on_host():
    assert torch.cuda.is_available() and torch.mm(x.bfloat16(), x.bfloat16(), out_dtype=torch.float32).sum() == 64
"""


def test_torch_and_cuda_are_as_before_when_the_replacement_ends() -> None:
    pytest.importorskip("torch", reason="its functions are replaced")
    pytest.importorskip("cuda.bindings.runtime", reason="its functions are replaced")
    subprocess.run([sys.executable, "-c", _HOLDERS], check=True, timeout=300)


def test_sizes(gpu: MissingGpu) -> None:
    hardware = cute.utils.HardwareInfo()
    assert hardware.get_device_multiprocessor_count() == gpu.multiprocessors == 4
    assert [hardware.get_max_active_clusters(blocks) for blocks in (1, 2, 8)] == [4, 2, 1]
    assert hardware.get_l2_cache_size_in_bytes() == 1 << 20


def test_a_graph_repeats_launches_that_are_not_executed_while_it_is_captured(
    gpu: MissingGpu, replaced: Replacements
) -> None:
    cuda, others = SimpleNamespace(profiler=SimpleNamespace()), SimpleNamespace
    torch: Any = SimpleNamespace(_C=others(), cuda=cuda, accelerator=others())
    streams_on_host(torch, gpu, replaced)
    assert torch.cuda.synchronize is not torch.accelerator.synchronize  # each has a handler of torch's compiler
    A = np.zeros(4, np.int32)
    compiled = cute.compile(host, A)
    graph = torch.cuda.CUDAGraph()
    assert None | torch.cuda.CUDAGraph == torch.cuda.CUDAGraph | None  # as programs annotate
    with torch.cuda.graph(graph):
        compiled(A)
        host(A)
        count(A).launch(grid=1, block=4)
    assert A.tolist() == [0] * 4
    graph.replay()
    graph.replay()
    assert A.tolist() == [6] * 4
    host(A)
    assert A.tolist() == [7] * 4


def test_a_cooperative_launch_that_the_gpu_cannot_hold(gpu: MissingGpu) -> None:
    A = np.zeros(9 * 1024, np.int32)
    host(A, 8, 1024)  # four multiprocessors of 2048 threads
    with pytest.raises(CudaError, match=r"9 blocks of 1024 threads .* holds 8") as caught:
        host(A, 9, 1024)
    assert (caught.value.status, caught.value.error_code) == ("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", 720)


def test_kernels_reach_memory_that_a_program_allocates(gpu: MissingGpu, replaced: Replacements) -> None:
    runtime: Any = pytest.importorskip("cuda.bindings.runtime")
    driver: Any = pytest.importorskip("cuda.bindings.driver")
    memory_on_host(gpu.streams, replaced)
    good, bad = runtime.cudaError_t.cudaSuccess, runtime.cudaError_t.cudaErrorInvalidValue
    kind = runtime.cudaMemcpyKind
    status, address = runtime.cudaMalloc(16)
    assert (status, address % 256, reachable().size_from(address)) == (good, 0, 16)
    assert runtime.cudaMemset(address, 0, 16) == (good,)
    host_at(cute.runtime.make_ptr(cute.Int32, address, cute.AddressSpace.gmem))
    result = np.zeros(4, np.int32)
    assert runtime.cudaMemcpy(result, address, 16, kind.cudaMemcpyDeviceToHost) == (good,)
    assert result.tolist() == [0, 1, 2, 3]
    assert runtime.cudaMemset(address, 0, 17) == runtime.cudaMemcpy(address, result, 17, kind) == (bad,)
    status, pointer = driver.cuMemAlloc(8)
    assert (int(status), driver.cuMemcpyHtoD(pointer, result[2:], 8)[0]) == (0, status)
    assert driver.cuMemcpyDtoD(address, pointer, 8)[0] == status
    assert runtime.cudaMemcpy(result, address, 16, kind.cudaMemcpyDeviceToHost) == (good,)
    assert result.tolist() == [2, 3, 2, 3]
    assert (driver.cuMemFree(pointer)[0], runtime.cudaFree(address), runtime.cudaFree(0)) == (status, (good,), (good,))
    assert (runtime.cudaFree(address), reachable().size_from(address)) == ((bad,), 0)


def test_streams_events_and_devices_of_the_driver(replaced: Replacements, gpu: MissingGpu) -> None:
    runtime: Any = pytest.importorskip("cuda.bindings.runtime")
    driver: Any = pytest.importorskip("cuda.bindings.driver")
    device_on_host(gpu, replaced)
    good = driver.CUresult.CUDA_SUCCESS
    status, stream = driver.cuStreamCreate(0)
    assert (status, driver.cuStreamSynchronize(stream)) == (good, (good,))
    start, end = driver.cuEventCreate(0)[1], driver.cuEventCreate(0)[1]
    assert driver.cuEventRecord(start, stream) == driver.cuEventRecord(end, stream) == driver.cuStreamDestroy(stream)
    status, milliseconds = driver.cuEventElapsedTime(start, end)
    assert status == good
    assert milliseconds >= 0
    kind = driver.CUdevice_attribute
    major = kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    assert driver.cuDeviceGetAttribute(major, driver.cuDeviceGet(0)[1]) == (good, gpu.target.sm // 10)
    assert driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0)[0] != good
    assert runtime.cudaGetLastError() == (runtime.cudaError_t.cudaSuccess,)
    assert runtime.cudaGetDeviceCount() == (runtime.cudaError_t.cudaSuccess, 1)


def test_memory_that_a_launch_reaches_stays_alive() -> None:
    memory = Reachable()
    array = np.arange(1000)
    owner = weakref.ref(array)
    memory.add(array[:2])
    memory.add(array)
    (piece,) = memory.memory()
    del array
    assert owner() is not None
    assert piece.view(np.int64).tolist() == list(range(1000))
    del piece
    assert owner() is None
    assert not memory.memory()


def test_a_copy_between_memory_that_nobody_knows_is_refused() -> None:
    memory = HostMemory()
    assert not memory.copy(0, np.zeros(1), 8)
    assert not memory.copy(np.zeros(1), np.zeros(2), 16)
    assert not memory.fill(12345, 0, 1)
    assert memory.allocate(0) == 0


_ALIGNED = """
import torch
from tilefold.cutlass.replacements import Replacements
from tilefold.cutlass.without_gpu.tensors import tensors_on_host

tensors_on_host(torch, replaced := Replacements())
for rows in range(1, 20):
    numbers = torch.arange(4 * rows).reshape(rows, 4)
    made = torch.randn(rows, 7, device="cuda"), torch.empty(rows, dtype=torch.bfloat16), numbers.t().to("cuda")
    made += numbers.to(torch.float16).cuda(), numbers.to(torch.float8_e5m2).cuda()
    assert all(tensor.data_ptr() % 256 == 0 and tensor.is_cuda for tensor in made)
    assert made[2].stride() == (1, 4) and made[2].t().equal(numbers) and made[3].equal(numbers.to(torch.float16))


@torch.library.custom_op("tilefold_tests::fill", mutates_args=("x",), device_types="cuda")
def fill(x: torch.Tensor) -> None:
    x.fill_(3)


fill(made[1])
assert (made[1] == 3).all()
assert torch.vmap(lambda x: x.new_zeros(3) + x)(torch.arange(2, device="cuda")).tolist() == [[0, 0, 0], [1, 1, 1]]
"""

_DEVICE = """
import torch
from tilefold.cutlass.replacements import Replacements
from tilefold.cutlass.without_gpu.tensors import tensors_on_host

tensors_on_host(torch, replaced := Replacements())
x = torch.logspace(0, 3, 4, device="cuda")
gpu = torch.device("cuda", 0)
assert x.device == gpu == torch.zeros(2, device=x.device).device == x.to(x.device).device
assert x.__dlpack_device__()[0].name == "kDLCPU"
assert torch.nn.Linear(4, 2, device=x.device).to(x.device)(x).device == gpu != torch.empty(1, device="meta").device
same = [torch.randn(4, generator=torch.Generator(device).manual_seed(1)) for device in (gpu, "cuda", "cpu")]
assert same[0].equal(same[1]) and same[0].equal(same[2])
assert all(isinstance(torch.Generator(device), torch.Generator) for device in (gpu, "cpu"))
x.record_stream(None)
for kind in (None, torch.bfloat16):
    with torch.autocast(x.device.type, kind):
        assert (x[None] @ x[:, None]).dtype == torch.get_autocast_dtype("cuda") == (kind or torch.float16)
        assert torch.is_autocast_enabled()
        with torch.amp.autocast("cuda", enabled=False):
            assert not torch.is_autocast_enabled("cuda")
torch.testing.assert_close(x, torch.tensor([1.0, 10, 100, 1000], device=x.device))
"""


@pytest.mark.parametrize("program", [_ALIGNED, _DEVICE], ids=["aligned", "device"])
def test_tensors_are_as_those_of_a_gpu(program: str) -> None:
    pytest.importorskip("torch", reason="these are tensors of torch")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_products_with_another_type_of_result(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="these are tensors of torch")
    text = """import torch
a = torch.ones(3, 4, dtype=torch.bfloat16, device="cuda")
b = torch.ones(4, 2, dtype=torch.bfloat16, device="cuda")
print(torch.mm(a, b, out_dtype=torch.float32).dtype, torch.bmm(a[None], b[None], out_dtype=torch.float32).sum().item())
c = torch.ones(3, 2, device="cuda")
print(torch.addmm(c, a, b, out_dtype=torch.float32, beta=2).sum().item())
"""
    file = tmp_path / "program.py"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "tilefold.cutlass", str(file)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "torch.float32 24.0\n36.0\n", done.stderr


_COMPILED = """
import torch
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def double(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    y[t] = x[t] * 2.0


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    double(x, y).launch(grid=1, block=32)


a = torch.arange(32.0, device="cuda")
compiled = cute.compile(launch, from_dlpack(a), from_dlpack(a))


@torch.library.custom_op("tilefold_tests::twice", mutates_args=(), device_types="cuda")
def twice(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    compiled(from_dlpack(x), from_dlpack(y))
    return y


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def broken(x):
    y = torch.empty_like(x)
    compiled(from_dlpack(x + 1), from_dlpack(y))
    return y.to(x.device) * 3


options = {"backend": "aot_eager"}
assert torch.compile(broken, **options)(a).equal(6 * (a + 1))
three = lambda: torch.cuda.get_device_properties(0).warp_size - 29
assert torch.compile(lambda x: twice(x + 1) * three(), fullgraph=True, **options)(a).equal(6 * (a + 1))


def asks(x, y):
    return x * 2 if isinstance(y, tuple) and type(x) is torch.Tensor and not isinstance(x, cute.Tensor) else x


assert torch.compile(asks, fullgraph=True, **options)(a, (1,)).equal(2 * a)
"""


def test_torch_compiles_around_a_launch(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="its compiler is torch's")
    program = tmp_path / "program.py"
    program.write_text(_COMPILED)
    subprocess.run([sys.executable, "-m", "tilefold.cutlass", str(program)], check=True, cwd=tmp_path)


def test_the_driver_encodes_the_maps_of_the_simulator(replaced: Replacements) -> None:
    driver: Any = pytest.importorskip("cuda.bindings.driver")
    tensor_maps_on_host(replaced)
    kinds, of_layout, of_swizzle = driver.CUtensorMapDataType, driver.CUtensorMapInterleave, driver.CUtensorMapSwizzle
    array = np.zeros((64, 96), np.float16)
    given: list[Any] = [
        kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, array.ctypes.data, [driver.cuuint64_t(n) for n in (96, 64)],
        [driver.cuuint64_t(192)], [driver.cuuint32_t(n) for n in (32, 8)], [driver.cuuint32_t(1)] * 2,
        of_layout.CU_TENSOR_MAP_INTERLEAVE_NONE, of_swizzle.CU_TENSOR_MAP_SWIZZLE_64B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    ]  # fmt: skip
    status, made = driver.cuTensorMapEncodeTiled(*given)
    wanted = tilefold.tensor_map(array, (8, 32), swizzle=64)
    assert (int(status), ctypes.string_at(int(made.getPtr()), 128)) == (0, wanted.content)
    given[7] = of_layout.CU_TENSOR_MAP_INTERLEAVE_16B
    with pytest.raises(TilefoldError, match="a tensor map interleaves its elements"):
        driver.cuTensorMapEncodeTiled(*given)
