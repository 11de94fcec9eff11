# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler of C for programs that call the CUDA driver, on a machine with a GPU."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

DRIVER = Path(__file__).parent / "driver"
"""The folder of a driver without a GPU, and of a header of the driver."""


def toolkit(folder: Path) -> list[str]:
    """The command of a compiler that finds the driver's header and library, on a machine with a GPU; the test fails
    without one.
    """
    link = folder / "libcuda.so"  # the name for the linker, which a machine without the toolkit lacks
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcuda.so" in line}
    if loaded:
        link.symlink_to(next(iter(loaded)))
    link_with = [f"-L{folder}", "-lcuda"]
    if shutil.which("nvcc"):
        return ["nvcc", "-Xcompiler", "-Wall,-Wextra,-Werror", *link_with]
    nvidia = find_spec("nvidia")
    roots = [Path(place) for place in (nvidia.submodule_search_locations or [])] if nvidia else []
    triton = find_spec("triton")
    roots += [Path(place) for place in (triton.submodule_search_locations or [])] if triton else []
    headers = [header for root in roots for header in root.rglob("cuda.h")]
    if not shutil.which("cc"):
        pytest.fail("neither nvcc nor cc is installed")
    return ["cc", "-Wall", "-Wextra", "-Werror", f"-I{headers[0].parent if headers else DRIVER}", *link_with]
