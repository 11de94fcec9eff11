# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small kernels of each language, which a process checks once so that later checks begin at once."""

import io
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tilefold.commands.cli import COMMANDS
from tilefold.commands.cli import main as command
from tilefold.tools.agents.python_case import execute

_CUTE = """\
!t = !tile.tensor<f32, gmem, align<16>, "32:1">
gpu.module @m {
  tile.kernel @k(%A: !t, %B: !t) threads(32) {
    %t = gpu.thread_id x
    %a = tile.load %A(%t)
    tile.store %a, %B(%t)
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !t = "arange"
  run.arg "B" : !t = "poison"
}
"""
_CUDA = """\
__global__ void k(const float *A, float *B) {
  __shared__ float s[32];
  s[threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  B[threadIdx.x] = s[31 - threadIdx.x];
}
"""
_PYTHON = """\
import numpy as np

from tilefold import cute


@cute.kernel
def reverse(A: cute.Tensor, B: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(32), cute.Float32)
    s[t] = A[t]
    cute.arch.sync_threads()
    B[t] = s[31 - t]


def case():
    return reverse(np.arange(32, dtype=np.float32), np.zeros(32, np.float32)), {"grid": 1, "block": 32}
"""
_ARGUMENTS = ("--block", "32", "--arg", "A=f32[32]", "--fill", "A=arange", "--arg", "B=f32[32]")


def warm_up() -> None:
    """Imports what the tools use, and checks the kernels."""
    for name in COMMANDS.keys() & {"bisect", "check", "explain", "layout", "run", "show"}:
        import_module(f"tilefold.commands.{name}")
    files: list[tuple[str, str, tuple[str, ...]]] = [("k.cute", _CUTE, ())]
    if find_spec("nvidia.cuda_nvrtc") or find_spec("nvidia.cu13"):
        files.append(("k.cu", _CUDA, _ARGUMENTS))
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for name, text, options in files:
            path = Path(folder) / name
            path.write_text(text)
            command(["check", str(path), *options, "--format", "json"])
        path = Path(folder) / "k.py"
        path.write_text(_PYTHON)
        execute(str(path), "check")
