# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Example programs of TileLang at small sizes. The package `tilelang` makes CUDA C++ of them, without a GPU; NVRTC
compiles it, and the launches of the program run at stage `ptx`.

A program is executed as it is, with other numbers where it has no options. It compares its results itself. TileLang's
own host code makes the tensor maps and launches; `_Driver` stands for the CUDA driver that it calls.
"""

import atexit
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_void_p
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

from tilefold.compiler.machine.nvrtc import compile_cuda

import tilefold
from tilefold.cute.loaded_ptx import PtxKernel, PtxProgram
from tilefold.cutlass.without_gpu import stay_on_host
from tilefold.driver.faults import Report

from .case import Case, Checked

_FLASH, _TCGEN05, _SM100 = "flash_attention", "gemm_tcgen05", "flash_attention_sm100"
_SMALL = "--batch 1 --heads 1 --seq_len 256"


@dataclass(frozen=True)
class Program:
    """A program of the examples: its options, the statement that runs it if it has none, other numbers in its text, the
    target, the blocks of a cluster, and the codes of its faults.
    """

    file: str
    options: str = ""
    statement: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    target: str = "sm_80"
    cluster: int = 1
    codes: tuple[str, ...] = ()


PROGRAMS = (
    Program(f"{_FLASH}/example_mha_fwd_bshd.py", f"{_SMALL} --dim 64"),
    Program(f"{_FLASH}/example_mha_fwd_bshd.py", f"{_SMALL} --dim 128 --is_causal"),
    Program(
        f"{_FLASH}/example_mha_fwd_bshd.py", f"{_SMALL} --dim 128 --is_causal", target="sm_90a", codes=("E3232",)
    ),
    Program(f"{_FLASH}/example_mha_bwd_bshd.py", statement="main(1, 1, 128, 64, True)", codes=("E3206",)),
    Program("convolution/example_convolution.py", "--n 1 --c 32 --h 16 --w 16 --f 64"),
    Program("topk/example_topk.py", "--M 64 --N 64"),
    Program("hadamard_transform/example_hadamard.py", "--batch 2 --dim 1024"),
    Program("gemm_splitk/example_tilelang_gemm_splitk.py", statement="main()", numbers=(("1024", "128"),)),
    Program("gemv/example_gemv.py", "--n 128 --k 256", "main(False)", codes=("E3205",)),
    Program(
        "warp_specialize/example_warp_specialize_gemm_copy_0_gemm_1.py",
        statement="main(128, 128, 128)", target="sm_90a",
    ),
    Program(f"{_TCGEN05}/gemm_mma.py", target="sm_100a"),
    Program(
        f"{_TCGEN05}/gemm_tcgen5mma.py", numbers=(("4096, 4096, 8192", "128, 128, 512"),), target="sm_100a",
        codes=("E3206",),
    ),
    Program(f"{_TCGEN05}/gemm_tcgen5mma_ws.py", "--m 256 --n 256 --k 256", target="sm_100a", cluster=2),
    Program(
        f"{_TCGEN05}/gemm_tcgen5mma_ws_persistent.py", "--m 768 --n 512 --k 128 --group_size 1", target="sm_100a",
        cluster=2,
    ),
    Program(f"{_SM100}/mha_fwd_bshd.py", f"{_SMALL} --dim 128 --variant wasp --is_causal", target="sm_100a"),
    Program(f"{_SM100}/mha_fwd_bshd.py", f"{_SMALL} --dim 64 --variant ss", target="sm_100a", codes=("E3205", "E3260")),
    Program(
        f"{_SM100}/mha_fwd_bshd.py", f"{_SMALL} --dim 128 --variant ts", target="sm_100a", codes=("E3205", "E3262")
    ),
)  # fmt: skip


def cases(checkout: Path) -> Iterator[Case]:
    """The programs of the table."""
    for number, program in enumerate(PROGRAMS):
        name = f"{program.file}: {number}, {program.options or program.statement}, {program.target}"
        expected = "faults" if program.codes else "clean"
        file = checkout / "examples" / program.file
        launches = partial(launched, program)
        yield Case(name, "", file, expected, (), (), (), codes=program.codes, launches=launches, target=program.target)


@dataclass
class _Driver:
    """The CUDA driver of TileLang's host code: maps and launches on the simulator, and the reports of checks."""

    program: Program
    reports: list[Report] = field(default_factory=list[Report])
    tensors: Sequence[Any] = ()

    def module(self, real: ModuleType) -> ModuleType:
        """The bindings of the driver, with this one's functions in place of theirs."""
        made = ModuleType(real.__name__)
        made.__dict__.update(real.__dict__)

        def answering(work: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
            def call(*given: Any) -> tuple[Any, Any]:
                return real.CUresult.CUDA_SUCCESS, work(*given)

            return call

        def no_device(*_: Any) -> int:
            return 0

        made.__dict__.update(
            CUlaunchConfig=SimpleNamespace, CUdevice=no_device, cuuint64_t=int, cuuint32_t=int,
            CUlaunchAttribute=lambda: SimpleNamespace(value=SimpleNamespace()),
            cuKernelSetAttribute=answering(no_device), cuLibraryUnload=answering(no_device),
            cuLibraryGetKernel=answering(_kernel_of), cuTensorMapEncodeTiled=answering(self.map_of),
            cuLaunchKernelEx=answering(self.launch),
        )  # fmt: skip
        return made

    def map_of(self, kind: Any, _: int, address: int, dims: Any, strides: Any, box: Any, *rest: Any) -> Any:
        """The tensor map of a part of a tensor of the call."""
        torch = import_module("torch")
        swizzle = (0, 32, 64, 128)[int(rest[2])]
        tensor, begin = self._at(address)
        kinds = {0: "uint8", 3: "int32", 6: "float16", 7: "float32", 8: "float64", 9: "bfloat16"}  # CUtensorMapDataType
        flat = tensor.reshape(-1).view(torch.uint8)[begin:].view(getattr(torch, kinds[int(kind)]))
        steps = [1, *(stride // flat.element_size() for stride in strides)]
        view = torch.as_strided(flat, [int(dim) for dim in dims][::-1], steps[::-1])
        return tilefold.tensor_map(view, box=tuple(int(extent) for extent in box)[::-1], swizzle=swizzle)

    def launch(self, config: Any, kernel: Any, given: tuple[Sequence[Any], Sequence[Any]], _: int) -> None:
        """Checks a launch and, if it has no fault, runs it."""
        values = [self._argument(value, kind) for value, kind in zip(*given, strict=True)]
        sizes: dict[str, Any] = {
            size: tuple([int(getattr(config, f"{size}Dim{axis}")) for axis in "XYZ"]) for size in ("grid", "block")
        }
        sizes["shared"] = config.sharedMemBytes
        if self.program.cluster > 1:
            sizes["cluster"] = self.program.cluster
        self.reports.append(report := kernel(*values).check(**sizes))
        if not report.faults:
            kernel(*values).launch(races=False, **sizes)

    def _argument(self, value: Any, kind: Any) -> Any:
        if kind not in (None, c_void_p) or not isinstance(value, int):
            return value
        tensor, begin = self._at(value)
        return tensor.reshape(-1)[begin // tensor.element_size() :] if begin else tensor

    def _at(self, address: int) -> tuple[Any, int]:
        """The tensor of the call that has an address, and the bytes before it."""
        for tensor in self.tensors:
            if tensor.data_ptr() <= address < tensor.data_ptr() + max(tensor.nbytes, 1):
                return tensor, address - tensor.data_ptr()
        raise ValueError(f"no tensor of the call has the address {address:#x}")


def _kernel_of(library: PtxProgram, name: bytes) -> PtxKernel:
    return library[name.decode()]


def launched(program: Program, case: Case) -> Iterator[Checked]:
    """The checks of a program's launches, after it has compared its results, which are wrong where a launch has a
    fault.
    """
    driver = _Driver(program)
    try:
        with _on_simulator(program, driver):
            _run(program, case.file)
    except AssertionError as error:
        if not any(report.faults for report in driver.reports):
            yield f"its comparison fails: {str(error)[:200]}", None
            return
    for report in driver.reports:
        yield "", report


def _run(program: Program, file: Path) -> None:
    text = file.read_text()
    for before, after in program.numbers:
        assert before in text, before
        text = text.replace(before, after)
    made = file.with_name(f"small_{file.name}")  # TileLang reads the source of functions from their file
    made.write_text(text)
    try:
        words = [str(file), *program.options.split()]
        with patch.object(sys, "argv", words), patch.object(sys, "path", [str(file.parent), *sys.path]):
            names = runpy.run_path(str(made), run_name="program" if program.statement else "__main__")
            if program.statement:
                exec(program.statement, names)
    finally:
        made.unlink()


def _on_simulator(program: Program, driver: _Driver) -> Any:
    """A context in which TileLang's kernels are compiled for the program's target and launched by the driver."""
    atexit.register(stay_on_host().close)
    tilelang: Any = import_module("tilelang")
    names = "jit", "jit.adapter.nvrtc.adapter", "jit.adapter.nvrtc.libgen", "profiler", "carver.arch.driver.cuda_driver"
    modules: list[Any] = [import_module(f"tilelang.{name}") for name in names]
    jit, adapter, generator, profiler, gpu = modules
    tilelang.disable_cache()
    profiler.do_bench = MagicMock(return_value=1.0)
    gpu.get_num_sms.__code__ = (lambda device_id=0: 4).__code__  # other modules hold the function itself
    bindings = driver.module(import_module("cuda.bindings.driver"))
    adapter.cuda = generator.cuda = bindings
    target = tilelang.tvm.target.Target({"kind": "cuda", "arch": program.target})

    class Library(generator.NVRTCLibraryGenerator):
        """Compiles to PTX, and reads that."""

        def compile_lib(self, timeout: float | None = None) -> None:
            folder = Path(tilelang.__file__).parent
            options = [f"-I{folder / 'src'}", f"-I{folder / '3rdparty/cutlass/include'}"]
            text = f"#include <tl_templates/cuda/nvrtc_std.h>\n{self.lib_code}"
            self.text = compile_cuda(text, "program.cu", program.target, {}, more=options)

        def load_lib(self, lib_path: str | None = None) -> None:
            self.culib: PtxProgram = tilefold.load_ptx(self.text)
            self.pymodule = ModuleType("host")
            with patch.dict(sys.modules, {"cuda.bindings.driver": bindings}):
                exec(self.host_func, self.pymodule.__dict__)

    def forward(self: Any, *given: Any, stream: int | None = None) -> Any:
        driver.tensors = [value for value in given if hasattr(value, "data_ptr")]
        return self.pymodule.call(self.kernels, *given, stream=stream or 0)

    begin = jit.JITImpl.__post_init__

    def begun(self: Any) -> None:
        self.target, self.execution_backend = target, "nvrtc"
        begin(self)

    adapter.NVRTCLibraryGenerator = Library
    adapter.NVRTCKernelAdapter._forward_from_prebuild_lib = forward
    return patch.object(jit.JITImpl, "__post_init__", begun)
