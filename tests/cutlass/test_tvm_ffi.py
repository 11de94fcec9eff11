# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host functions as functions of TVM FFI, called from C on a driver without a GPU, and by the package itself."""

import ctypes
import os
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.runtime.toolkit import DRIVER
from tilefold import cute
from tilefold.cute.host.compiled import CompiledFunction
from tilefold.cute.runtime import find_runtime_libraries, make_fake_compact_tensor, make_fake_stream
from tilefold.tools.export.cuda_driver import driver_declarations

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no cc")
FFI: Any = "--enable-tvm-ffi"


@cute.kernel
def scale_kernel(a: cute.Tensor, b: cute.Tensor, alpha: cute.Float32, limit: cute.Int32) -> None:
    at = cute.arch.block_idx()[0] * 32 + cute.arch.thread_idx()[0]
    if at < limit:
        b[at, 0] = a[at, 0] * alpha


@cute.jit
def scale(
    a: cute.Tensor, b: cute.Tensor, alpha: cute.Float32, limit: cute.Int32, bias: cute.Tensor | None = None
) -> None:
    scale_kernel(a, b, alpha, limit).launch(grid=(a.shape[0] // 32, 1, 1), block=(32, 1, 1))


@cute.jit
def scale_in(a: cute.Tensor, b: cute.Tensor, stream: Any) -> None:
    scale_kernel(a, b, 2.0, 5).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)


def described() -> list[Any]:
    rows = cute.sym_int(divisibility=32)
    return [make_fake_compact_tensor(cute.Float32, (rows, 4), stride_order=(1, 0), assumed_align=16) for _ in range(2)]


def compiled(options: str = FFI) -> CompiledFunction:
    return cute.compile(scale, *described(), cute.Float32(2), cute.Int32(3), None, options=options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tvm_ffi")
    compiled().export_to_c(path / "scale.o")
    cute.compile(scale_in, *described(), make_fake_stream(), options=FFI).export_to_c(path / "scale_in.o")
    return path


CALLER = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef struct { void *data; int32_t device, id, rank; uint8_t code, bits; uint16_t lanes;
                 int64_t *shape, *strides; uint64_t offset; } tensor;
typedef struct { int32_t type; uint32_t pad; union { int64_t i; double f; void *p; } v; } any;
typedef int (*function)(void *, const any *, int32_t, any *);

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) { printf("%s: %s\n", kind, message); }
void *TVMFFIEnvGetStream(int32_t type, int32_t id) { return (void *)(uintptr_t)(10 * type + id); }

static any number(double f) { any a = {3, 0, {0}}; a.v.f = f; return a; }
static any integer(int64_t i) { any a = {1, 0, {0}}; a.v.i = i; return a; }
static any of(tensor *t) { any a = {7, 0, {0}}; a.v.p = t; return a; }
static any none(void) { any a = {0, 0, {0}}; return a; }

int main(void)
{
    void *module = dlopen("./scale.so", RTLD_NOW), *second = dlopen("./scale_in.so", RTLD_NOW);
    function scale, scale_in;
    int64_t shape[] = {64, 4}, strides[] = {4, 1}, odd[] = {65, 4}, more[] = {96, 4}, wide[] = {8, 1};
    tensor a = {(void *)4096, 2, 0, 2, 2, 32, 1, shape, strides, 64}, b = a, odd_ = a, host = a, half = a, off = a;
    tensor flat = a, more_ = a, wide_ = a, other = a;
    any result, args[5];
    if (!module || !second)
        return puts(dlerror());
    *(void **)&scale = dlsym(module, "__tvm_ffi_scale");
    *(void **)&scale_in = dlsym(second, "__tvm_ffi_scale_in");
    odd_.shape = odd; host.device = 1; half.bits = 16; off.offset = 4; flat.rank = 1; more_.shape = more;
    wide_.strides = wide; other.id = 1;
    {
        tensor *bad[] = {&odd_, &host, &half, &off, &flat, &more_, &wide_, &other};
        struct { char header[24]; tensor held; } object = {"", a};
        unsigned i;
        args[0] = of(&a); args[1] = of(&b); args[2] = number(1.5); args[3] = integer(7); args[4] = none();
        printf("status %d\n", scale(0, args, 5, &result));
        args[0].type = 70; args[0].v.p = &object; args[2] = integer(3);
        printf("status %d type %d\n", scale(0, args, 5, &result), result.type);
        args[0] = of(&a);
        for (i = 0; i < sizeof bad / sizeof *bad; i++) {
            args[1] = of(bad[i]);
            printf("status %d\n", scale(0, args, 5, &result));
        }
        args[1] = of(&b);
        printf("status %d\n", scale(0, args, 4, &result));
        args[2] = of(&a);
        printf("status %d\n", scale(0, args, 5, &result));
        args[2] = number(1); args[3] = integer((int64_t)1 << 32);
        printf("status %d\n", scale(0, args, 5, &result));
        args[3] = number(1);
        printf("status %d\n", scale(0, args, 5, &result));
        args[3] = integer(1); args[4] = integer(0);
        printf("status %d\n", scale(0, args, 5, &result));
        args[2].type = 4; args[2].v.p = (void *)99;
        printf("status %d\n", scale_in(0, args, 3, &result));
        args[2] = number(1);
        printf("status %d\n", scale_in(0, args, 3, &result));
    }
    return 0;
}
"""

EXPECTED = """\
load PTX at 0
function scale_kernel
launch 2x1x1 32x1x1 0 7 4160 64 1.5 4160 64 stream 20
status 0
launch 2x1x1 32x1x1 0 7 4160 64 3 4160 64 stream 20
status 0 type 0
ValueError: scale: argument 'b': extent 0 is 65, and must be a multiple of 32
status -1
ValueError: scale: argument 'b': must be on a CUDA device
status -1
TypeError: scale: argument 'b': must have elements of float32
status -1
ValueError: scale: argument 'b': must be at an address that is a multiple of 16
status -1
ValueError: scale: argument 'b': the rank is 1, and must be 2
status -1
ValueError: scale: argument 'b': extent 0 is 96, and must be 64
status -1
ValueError: scale: argument 'b': stride 0 is 8, and must be 4
status -1
ValueError: scale: argument 'b': the device is 1, and must be 0
status -1
ValueError: scale: the number of arguments is 4, and must be 5
status -1
TypeError: scale: argument 'alpha': must be a number
status -1
OverflowError: scale: argument 'limit': does not fit 4 bytes
status -1
TypeError: scale: argument 'limit': must be an integer
status -1
TypeError: scale: argument 'bias': must be None, for which the function is compiled
status -1
load PTX at 0
function scale_kernel
launch 1x1x1 32x1x1 0 5 4160 64 2 4160 64 stream 99
status 0
TypeError: scale_in: argument 'stream': is a stream: pass its handle
status -1
"""


def shared(folder: Path, name: str, *libraries: str) -> Path:
    made = folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-o", made, folder / f"{name}.o", *libraries], check=True)
    return made


def test_calls_from_c(folder: Path) -> None:
    for name in ("scale", "scale_in"):
        shared(folder, name)
    driver = ["cc", "-shared", "-fPIC", f"-I{DRIVER}", "-o", "libcuda.so.1", str(DRIVER / "driver.c")]
    subprocess.run(driver, cwd=folder, check=True)
    (folder / "caller.c").write_text(CALLER)
    subprocess.run(["cc", "-Wall", "-Werror", "-rdynamic", "-o", "caller", "caller.c", "-ldl"], cwd=folder, check=True)
    run = subprocess.run(
        ["./caller"],
        cwd=folder,
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), "scale_kernel": "484f84"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == EXPECTED


def test_without_a_driver_a_call_says_so(folder: Path) -> None:
    tvm_ffi: Any = import_module("tvm_ffi")
    module = tvm_ffi.load_module(str(shared(folder, "scale", *find_runtime_libraries(enable_tvm_ffi=True))))
    with pytest.raises(ValueError, match="argument 'a': must be on a CUDA device"):
        module.scale(*[tvm_ffi.from_dlpack(np.zeros((32, 4), np.float32))] * 2, 1.0, 3, None)
    with pytest.raises(ValueError, match="the number of arguments is 0, and must be 5"):
        module.scale()


@pytest.mark.gpu
def test_calls_from_torch_on_a_gpu(folder: Path) -> None:
    tvm_ffi, torch = import_module("tvm_ffi"), import_module("torch")
    libraries = find_runtime_libraries(enable_tvm_ffi=True)
    scale, scale_in = (
        tvm_ffi.load_module(str(shared(folder, name, *libraries)))[name] for name in ("scale", "scale_in")
    )
    a, stream = torch.arange(256.0, device="cuda").reshape(64, 4), torch.cuda.Stream()
    b, c, d = (torch.zeros_like(a) for _ in range(3))
    torch.cuda.synchronize()
    scale(a, b, 3.0, 40, None)
    with torch.cuda.stream(stream):
        scale(a, c, 2.0, 64, None)
    scale_in(a, d, stream.cuda_stream)
    torch.cuda.synchronize()
    for result, alpha, limit in ((b, 3.0, 40), (c, 2.0, 64), (d, 2.0, 5)):
        expected = torch.zeros_like(a)
        expected[:limit, 0] = alpha * a[:limit, 0]
        assert torch.equal(result, expected)
    with pytest.raises(ValueError, match="extent 0 is 32, and must be 64"):
        scale(a, b[:32], 3.0, 40, None)
    with pytest.raises(TypeError, match="must have elements of float32"):
        scale(a, b.half(), 3.0, 40, None)


def test_the_kernels_are_in_the_file_too(folder: Path) -> None:
    a, b = np.ones((32, 4), np.float32), np.zeros((32, 4), np.float32)
    cute.runtime.load_module(folder / "scale.o", enable_tvm_ffi=True).scale(a, b, 3.0, 2, None)
    assert b[:3, 0].tolist() == [3, 3, 0]


def test_without_the_option_there_is_no_such_function(tmp_path: Path) -> None:
    compiled(None).export_to_c(tmp_path / "scale.o")  # pyright: ignore[reportArgumentType]
    assert b"__tvm_ffi_scale" not in (tmp_path / "scale.o").read_bytes()


def test_declarations_are_those_of_the_driver(tmp_path: Path) -> None:
    """The sizes of structures, and the numbers, are those of the header of these tests' driver. That abridges launch
    attributes, which have 72 bytes in cuda.h.
    """
    names = ("CUtensorMap", "CUlaunchConfig", "CUlaunchAttribute")
    numbers = ("CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", "CU_TENSOR_MAP_DATA_TYPE_FLOAT16", "CU_TENSOR_MAP_SWIZZLE_128B")
    values: list[list[int]] = []
    for head in ("#include <cuda.h>\n", driver_declarations()):
        body = "".join(f"long of_{name}(void) {{ return sizeof({name}); }}\n" for name in names)
        body += "".join(f"long of_{name}(void) {{ return {name}; }}\n" for name in numbers)
        (tmp_path / "sizes.c").write_text(head + body)
        made = tmp_path / f"sizes{len(values)}.so"
        subprocess.run(["cc", "-shared", "-fPIC", f"-I{DRIVER}", "-o", made, tmp_path / "sizes.c"], check=True)
        library = ctypes.CDLL(str(made))
        values.append([getattr(library, f"of_{name}")() for name in (*names, *numbers)])
    assert values[1][2] == 72
    assert [*values[0][:2], *values[0][3:]] == [*values[1][:2], *values[1][3:]]


def test_parts_of_an_argument_are_refused(tmp_path: Path) -> None:
    @cute.jit
    def both(tensors: tuple[cute.Tensor, cute.Tensor]) -> None:
        scale_kernel(*tensors, 2.0, 5).launch(grid=(1, 1, 1), block=(32, 1, 1))

    function = cute.compile(both, tuple(described()), options=FFI)
    with pytest.raises(TilefoldError, match="'tensors0' is a part of an argument") as caught:
        function.export_to_c(tmp_path / "both.o")
    assert caught.value.code == "E0213"
    assert not list(tmp_path.iterdir())
