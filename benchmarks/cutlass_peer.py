# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of CUTLASS as a peer of the products by wgmma (`benchmarks/cutlass_gemm.cu`).

The environment variable CUTLASS names a folder with the headers of CUTLASS in `include/`, of which nvcc makes a
library, or such a library. Without it the figures lack this peer, and a line says so.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tilefold.base.errors import Code, TilefoldError

from benchmarks.timing import Run

VARIABLE = "CUTLASS"
SOURCE = Path(__file__).with_name("cutlass_gemm.cu")
TILES = {"CUTLASS 128x128 in turns": 0, "CUTLASS 128x256 together": 1}
"""The peers: their tiles, and the last argument of their function but for the stream."""


def command(cutlass: Path, library: Path, nvcc: str = "nvcc") -> list[str]:
    """The command that builds the library of a checkout of CUTLASS."""
    options = ("-std=c++17", "-O3", "-DNDEBUG", "-gencode", "arch=compute_90a,code=sm_90a", "--expt-relaxed-constexpr")
    files = ("-I", f"{cutlass}/include", "-o", str(library), str(SOURCE))
    return [nvcc, *options, "-shared", "-Xcompiler", "-fPIC", *files]


@cache
def library() -> Callable[..., int] | None:
    """The function that queues a product; None, after a line that says so, where no CUTLASS is given. TilefoldError
    (E4003) where nvcc makes no library.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        print(f"no figures of CUTLASS: {VARIABLE} names no checkout of it", file=sys.stderr)
        return None
    path = Path(given)
    if path.is_dir():
        made = Path(mkdtemp(prefix="cutlass-")) / "gemm.so"
        try:
            done = subprocess.run(command(path, made), capture_output=True, text=True, timeout=900, check=False)
        except OSError as error:
            raise TilefoldError(Code.CLI_VALUE, f"nvcc cannot be run: {error}", "put it on PATH") from error
        if done.returncode:
            raise TilefoldError(Code.CLI_VALUE, f"nvcc makes no kernels of {given}: {done.stderr[-400:]}")
        path = made
    function: Any = ctypes.CDLL(str(path)).cutlass_gemm
    function.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 5, ctypes.c_void_p]
    return function


def peers(torch: Any, a: Any, b: Any, d: Any, blocks: int) -> dict[str, Run]:
    """The products D = A * B^T of f16 by CUTLASS; none where it is not given, or rows are not contiguous."""
    contiguous = all(x.dtype == torch.float16 and x.is_contiguous() for x in (a, b, d))
    function = library() if contiguous else None
    if function is None:
        return {}
    (m, k), n = a.shape, b.shape[0]

    def run(together: int) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        status = function(a.data_ptr(), b.data_ptr(), d.data_ptr(), m, n, k, blocks, together, stream)
        if status:
            raise TilefoldError(Code.CLI_VALUE, f"CUTLASS refuses the product of {m} x {n} x {k}: status {status}")

    return {name: partial(run, together) for name, together in TILES.items()}
