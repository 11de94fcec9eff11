# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels on elements of a type whose row was added just before: `python -m tests.project.another_type ROW` prints
what the layers do with it. The row is that of `f8E5M2FNUZ`, which xDSL and ml_dtypes have.
"""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

from tests.project.tree import ROOT

COPY = """
!m = !tile.tensor<f8E5M2FNUZ, gmem, align<16>, "32:1">
gpu.module @kernels {
  tile.kernel @copy(%A: !m, %B: !m) threads(32) {
    %t = gpu.thread_id x
    %copy = tile.tiled_copy #tile.copy_atom<"UniversalCopy<float_e5m2fnuz_t>", f8E5M2FNUZ> thr "32:1" val "1:1"
    %a = tile.partition_S %copy, %A, %t
    %b = tile.partition_D %copy, %B, %t
    tile.copy %copy, %a, %b
    tile.return
  }
}
run.launch @kernels::@copy grid(1) {
  run.arg "A" : !m = "normal(seed=0)"
  run.arg "B" : !m = "poison"
  run.check "B ~= f8E5M2FNUZ(f32(A) * 1.1)"
}
"""


def add_row(module: str, before: str, row: str) -> None:
    """Puts a module of `base` with one row more, after the text `before`, in its place. Nothing may have read it."""
    name, text = f"tilefold.base.{module}", (ROOT / "base" / f"{module}.py").read_text()
    assert text.count(before) == 1
    assert name not in sys.modules
    spec = spec_from_loader(name, None)
    assert spec is not None
    changed = sys.modules[name] = module_from_spec(spec)
    exec(compile(text.replace(before, before + row), name, "exec"), changed.__dict__)


def doubled(X: Any, Y: Any) -> None:
    """Twice the elements of X, rounded to the type of Y."""
    cute: Any = import_module("tilefold.cute")
    Y.store((X.load().to(cute.Float32) * 2.0).to(Y.element_type))


def main() -> None:
    """Prints one line for each layer."""
    add_row("element_types", "ELEMENT_TYPES = (\n", sys.argv[1])
    import ml_dtypes
    import numpy as np

    import tilefold
    from tilefold import cute

    dtype = np.dtype(ml_dtypes.float8_e5m2fnuz)
    X, Y = np.arange(-4, 4).astype(dtype), np.zeros(8, dtype)
    kernel = cute.kernel(doubled)
    kernel(X, Y).launch(grid=1, block=1, device="sim")
    print("NumPy, builder, simulator:", Y.astype(int).tolist())
    print("PTX:", "cvt.rn.satfinite.e5m2fnuzx2.f32" in kernel.ptx("sm_89"))
    print("file:", *tilefold.load(COPY).run(device="sim"))
    element_bits = import_module("tilefold.tools.show.options").element_bits
    print("names:", *[element_bits(name) for name in ("Float8E5M2FNUZ", "e5m2fnuz", "float_e5m2fnuz_t", "f8E5M2FNUZ")])


if __name__ == "__main__":
    main()
