# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels on a GPU. Run with `make gpu-test`; without a device every test here fails."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.runtime.cuda import CudaEngine, CudaError
from tilefold.runtime.cuda.packed_arguments import DeviceBuffer
from tilefold.runtime.engine import LaunchConfig, TensorArgument

from tests.cuda.harness import artifact
from tests.emit.harness import kernel
from tests.emit.test_semantics import INTEGER_OPS, INTEGERS, loop_kernel, wrap

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
POINTERS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
COPY = """
%t = ptx.sreg "tid.x"
%b = ptx.sreg "ctaid.x"
%n = ptx.sreg "ntid.x"
%o = arith.muli %b, %n : i32
%i = arith.addi %o, %t : i32
%sixteen = arith.constant 16 : i32
%at = arith.muli %i, %sixteen : i32
%p = ptx.ptr_add %A, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%q = ptx.ptr_add %B, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%v = ptx.ld %p align 16 : !ptx.ptr<global> -> vector<4xf32>
ptx.st %v, %q align 16 : vector<4xf32>, !ptx.ptr<global>
"""
ONE = LaunchConfig((1, 1, 1), (1, 1, 1))
WARP = LaunchConfig((1, 1, 1), (32, 1, 1))


def _rsqrt(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / np.sqrt(x)


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


@pytest.mark.parametrize("cubin", [False, True], ids=["ptx", "cubin"])
@pytest.mark.parametrize("arch", ["sm_80", "device"])
def test_copy(engine: CudaEngine, arch: str, cubin: bool) -> None:
    target = engine.driver.target if arch == "device" else Target(arch)
    if cubin and arch != "device":
        target = Target(f"sm_{engine.driver.target.sm}")
    source, out = np.arange(4096, dtype=np.float32), np.full(4096, np.nan, np.float32)
    program = artifact(kernel(COPY, POINTERS, threads="128"), target, cubin=cubin)
    config = LaunchConfig((8, 1, 1), (128, 1, 1))
    result = engine.launch(program, config, {"A": TensorArgument(source), "B": TensorArgument(out)})
    np.testing.assert_array_equal(out, source)
    assert 0 < result.seconds < 1


@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integer_operation(engine: CudaEngine, name: str) -> None:
    pairs = [
        (a, b) for a in INTEGERS for b in INTEGERS if not ("div" in name or "rem" in name) or (a, b) != (-(2**31), -1)
    ]
    text = loop_kernel(f"arith.{name} %x, %y : i32", "i32", "i32", 4, 4, len(pairs))
    a, b = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    out = np.zeros(len(pairs), np.int32)
    args = {"A": TensorArgument(a), "B": TensorArgument(b), "C": TensorArgument(out)}
    engine.launch(artifact(text, engine.driver.target), ONE, args)
    assert out.tolist() == [wrap(INTEGER_OPS[name](x, y)) for x, y in pairs]


@pytest.mark.parametrize(
    ("name", "function", "tolerance"),
    [
        ("exp", np.exp, 2e-6),
        ("exp2", np.exp2, 1e-6),
        ("log", np.log, 1e-5),
        ("log2", np.log2, 1e-5),
        ("sin", np.sin, 1e-5),
        ("cos", np.cos, 1e-5),
        ("tanh", np.tanh, 1e-3),
        ("rsqrt", _rsqrt, 1e-6),
        ("sqrt", np.sqrt, 1e-7),
    ],
)
def test_function(engine: CudaEngine, name: str, function: Any, tolerance: float) -> None:
    count = 64
    text = loop_kernel(f"math.{name} %x : f32", "f32", "f32", 4, 4, count)
    x, out = np.linspace(0.1, 3.0, count, dtype=np.float32), np.zeros(count, np.float32)
    args = {"A": TensorArgument(x), "B": TensorArgument(x.copy()), "C": TensorArgument(out)}
    engine.launch(artifact(text, engine.driver.target), ONE, args)
    np.testing.assert_allclose(out, function(x.astype(np.float64)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("transposed", [False, True])
def test_asynchronous_copy_and_ldmatrix(engine: CudaEngine, transposed: bool) -> None:
    """Four 8x8 matrices by cp.async to shared memory and by ldmatrix into registers; fragments by the PTX ISA."""
    text = kernel(
        f"""
        %t = ptx.sreg "tid.x"
        %sixteen = arith.constant 16 : i32
        %o = arith.muli %t, %sixteen : i32
        %p = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        %s = ptx.smem.addr 0
        %r = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
        ptx.cp.async "cg" 16 %r, %p
        ptx.cp.async.commit_group
        ptx.cp.async.wait_group 0
        ptx.bar.warp.sync -1
        %m = ptx.ldmatrix x 4{" trans" if transposed else ""} %r : vector<4xi32>
        %q = ptx.ptr_add %B, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        ptx.st %m, %q align 16 : vector<4xi32>, !ptx.ptr<global>
        """,
        POINTERS,
        shared=512,
    )
    source, out = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    args = {"A": TensorArgument(source), "B": TensorArgument(out)}
    engine.launch(artifact(text, engine.driver.target), WARP, args)
    matrices = source.reshape(4, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    for lane in range(32):
        row, column = lane // 4, 2 * (lane % 4)
        expected = [matrices[i, row, column + j] for i in range(4) for j in range(2)]
        assert out[8 * lane : 8 * lane + 8].tolist() == expected


def test_shared_memory_beyond_what_a_kernel_can_declare(engine: CudaEngine) -> None:
    size = engine.driver.max_shared_bytes
    text = kernel(
        f"""
        %t = ptx.sreg "tid.x"
        %four = arith.constant 4 : i32
        %o = arith.muli %t, %four : i32
        %s = ptx.smem.addr {size - 128}
        %r = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
        ptx.st %t, %r align 4 : i32, !ptx.ptr<shared>
        ptx.bar.sync 0
        %x = ptx.ld %r align 4 : !ptx.ptr<shared> -> i32
        %q = ptx.ptr_add %B, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        ptx.st %x, %q align 4 : i32, !ptx.ptr<global>
        """,
        POINTERS,
        shared=size,
    )
    assert size == engine.driver.target.max_shared_bytes
    out = np.full(32, -1, np.int32)
    args = {"A": TensorArgument(np.zeros(1, np.int32)), "B": TensorArgument(out)}
    engine.launch(artifact(text, engine.driver.target), WARP, args)
    assert out.tolist() == list(range(32))


def test_printf(engine: CudaEngine, capfd: pytest.CaptureFixture[str]) -> None:
    text = kernel(
        'ptx.printf "n=%d m=%lld x=%f h=%g 100%%\\n"(%n, %m, %x, %h) : i32, i64, f64, f16',
        "%n: i32, %m: i64, %x: f64, %h: f16",
        threads="1",
    )
    engine.launch(artifact(text, engine.driver.target), ONE, {"n": -3, "m": 1 << 40, "x": 0.25, "h": 1.5})
    assert "n=-3 m=1099511627776 x=0.250000 h=1.5 100%\n" in capfd.readouterr().out


def test_scalars_of_every_type_arrive(engine: CudaEngine) -> None:
    types = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
    arguments = ", ".join(f"%x{i}: {type}" for i, type in enumerate(types))
    body = "\n".join(
        f"%c{i} = arith.constant {8 * i} : i32\n"
        f"%p{i} = ptx.ptr_add %B, %c{i} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
        f"ptx.st %x{i}, %p{i} align {size} : {type}, !ptx.ptr<global>"
        for i, (type, size) in enumerate(types.items())
    )
    body += "\n%b = arith.extui %flag : i1 to i8\nptx.st %b, %A align 1 : i8, !ptx.ptr<global>"
    text = kernel(body, f"{POINTERS}, %flag: i1, {arguments}", threads="1")
    out, flag = np.zeros(8, np.uint64), np.zeros(1, np.uint8)
    values = {f"x{i}": -3 if type.startswith("i") else -1.5 for i, type in enumerate(types)}
    args = {"A": TensorArgument(flag), "B": TensorArgument(out), "flag": True, **values}
    engine.launch(artifact(text, engine.driver.target), ONE, args)
    assert flag[0] == 1
    integers = [(-3) % (1 << 8 * size) for size in (1, 2, 4, 8)]
    floats = [0xBE00, 0xBFC0, 0xBFC00000, 0xBFF8000000000000]
    assert out.tolist() == integers + floats


def test_device_arrays_are_not_copied(engine: CudaEngine) -> None:
    class Array:
        """Device memory as CuPy and others show it."""

        def __init__(self, buffer: DeviceBuffer) -> None:
            self.__cuda_array_interface__ = {
                "data": (buffer.address, False),
                "shape": (512,),
                "typestr": "<f4",
            }

    source, out = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    engine.driver.activate()
    first, second = (DeviceBuffer(engine.driver, source.nbytes) for _ in range(2))
    first.write(source)
    program = artifact(kernel(COPY, POINTERS, threads="128"), engine.driver.target)
    config = LaunchConfig((1, 1, 1), (128, 1, 1))
    engine.launch(program, config, {"A": Array(first), "B": Array(second)})
    second.read(out)
    np.testing.assert_array_equal(out, source)


def test_dlpack_arrays_are_not_copied(engine: CudaEngine) -> None:
    torch = pytest.importorskip("torch", reason="torch makes the DLPack arrays of this test")
    source = torch.arange(1024, device="cuda").to(torch.bfloat16)
    out = torch.zeros_like(source)
    program = artifact(kernel(COPY, POINTERS, threads="128"), engine.driver.target)
    engine.launch(program, LaunchConfig((1, 1, 1), (128, 1, 1)), {"A": source, "B": out})
    assert torch.equal(source, out)


def test_launches_are_timed_by_the_device(engine: CudaEngine) -> None:
    count = 1 << 24
    source, out = np.ones(count, np.float32), np.zeros(count, np.float32)
    program = artifact(kernel(COPY, POINTERS, threads="128"), engine.driver.target)
    config = LaunchConfig((count // 512, 1, 1), (128, 1, 1))
    timing = engine.time(program, config, {"A": TensorArgument(source), "B": TensorArgument(out)}, repeat=10)
    assert len(timing.samples) == 10
    assert 0.005 < timing.median_ms < 100  # 128 MiB moved
    np.testing.assert_array_equal(out, source)


def test_machine_code_of_another_architecture_is_refused(engine: CudaEngine) -> None:
    other = Target("sm_120a" if engine.driver.target.sm < 120 else "sm_90a")
    with pytest.raises(CudaError, match=f"compiled for {other}"):
        engine.launch(artifact(kernel("", threads="1"), other), ONE, {})


def test_ptx_that_the_driver_refuses(engine: CudaEngine) -> None:
    good = artifact(kernel("ptx.bar.sync 0", threads="1"), engine.driver.target)
    assert isinstance(good.code, str)
    bad = type(good)("k", good.code.replace("bar.sync", "bar.sinc"), good.target, (), (1, 1, 1))
    with pytest.raises(CudaError, match=r"loading kernel 'k'.*line .*sinc"):
        engine.launch(bad, ONE, {})


_ASSERTION = """
import numpy as np
from tilefold import cute
from tilefold.cute import testing
from tilefold.runtime.cuda import CudaError

@cute.kernel
def kernel(A: cute.Tensor, n: cute.Int32):
    t = cute.arch.thread_idx()[0]
    testing.assert_(t < n, "t is beyond n")
    A[t] = A[t] + 1.0

@cute.jit
def main(A: cute.Tensor, n: cute.Int32):
    kernel(A, n).launch(grid=1, block=32)

A = np.zeros(32, np.float32)
cute.compile(main, A, 32)(A, 20)
print(A.sum())
checking = cute.compile[cute.EnableAssertions](main, A, 32)
checking(A, 32)
print(A.sum())
try:
    checking(A, 20)
except CudaError as error:
    print(error.status)
"""


def test_assertions_of_kernels_are_checked_where_they_are_enabled(tmp_path: Path) -> None:
    """In a process of its own, since the assertion that fails ends the use of the device."""
    file = tmp_path / "assertion.py"  # Python keeps no source of text after -c
    file.write_text(_ASSERTION, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["32.0", "64.0", "CUDA_ERROR_ASSERT"], done.stderr
    assert "thread: [20,0,0] Assertion `t is beyond n` failed." in done.stderr


_FAULT = """
import numpy as np
from tests.cuda.test_gpu import COPY, POINTERS, artifact, kernel
from tilefold.runtime.cuda import CudaEngine, CudaError
from tilefold.runtime.engine import LaunchConfig, TensorArgument
engine = CudaEngine()
program = artifact(kernel(COPY, POINTERS, threads="128"), engine.driver.target)
tiny = TensorArgument(np.zeros(4, np.float32))
try:
    engine.launch(program, LaunchConfig((1 << 20, 1, 1), (128, 1, 1)), {"A": tiny, "B": tiny})
except CudaError as error:
    print(error.status, "|", error)
"""


def test_fault_of_a_kernel_is_decoded_and_names_it() -> None:
    """In a process of its own: the fault ends the use of the device in the process."""
    done = subprocess.run(
        [sys.executable, "-c", _FAULT], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert "CUDA_ERROR_ILLEGAL_ADDRESS | E3302: running kernel 'k'" in done.stdout, done.stderr
    assert "--device sim" in done.stdout
