# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of Triton that do nothing, to time their launches. Imported only where Triton is installed."""

# pyright: basic
# Triton is not installed where types are checked, and reads the annotations of its kernels itself.

from importlib import import_module
from typing import Any

triton: Any = import_module("triton")


@triton.jit
def _three(a, b, c):
    pass


@triton.jit
def _eight(a, b, c, d, e, f, g, h):
    pass


KERNELS: dict[int, Any] = {3: _three, 8: _eight}
"""The kernel for this many tensors."""
