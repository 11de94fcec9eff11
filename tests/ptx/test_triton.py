# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.triton`: kernels of Triton, compiled without a GPU and run on the simulator."""

import linecache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError

import tilefold.triton

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton: pip install triton")
ADD = """
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, x + y, mask=mask)
"""


def _module(tmp_path: Path) -> Any:
    path = tmp_path / "adding.py"
    path.write_text(ADD)
    linecache.checkcache(str(path))
    spec = spec_from_file_location("adding", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_triton
def test_a_kernel_runs_and_its_fault_is_at_the_line_in_python(tmp_path: Path) -> None:
    adding = _module(tmp_path)
    x, y, out = (np.arange(size, dtype=np.float32) for size in (1000, 1024, 1000))

    def grid(values: dict[str, int]) -> tuple[int]:
        return (1024 // values["BLOCK"],)

    tilefold.triton.launch(adding.add[grid], x, y, out, 1000, BLOCK=256)
    assert (out == 2 * x).all()
    report = tilefold.triton.check(adding.add[(4,)], x, y[:1000], out, 1000, BLOCK=256, outputs=["out_ptr"])
    assert [fault.code for fault in report.faults] == [Code.SIM_OUT_OF_BOUNDS]
    assert report.faults[0].place is not None
    assert (Path(report.faults[0].place.file).name, report.faults[0].place.line) == ("adding.py", 11)
    assert "argument y_ptr" in report.faults[0].message


def test_what_is_no_launch_of_triton_is_refused() -> None:
    with pytest.raises(TilefoldError, match="not a launch of a Triton kernel") as error:
        tilefold.triton.check(len, 1)
    assert error.value.code == Code.RUN_LAUNCH
