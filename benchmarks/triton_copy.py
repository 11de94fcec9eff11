# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The copy in Triton, a peer: one program copies a block of 1024 elements. Imported only where Triton is installed."""

# pyright: basic
# Triton is not installed where types are checked, and reads the annotations of its kernels itself.

from importlib import import_module
from typing import Any

triton: Any = import_module("triton")
tl: Any = import_module("triton.language")

BLOCK = 1024


@triton.jit
def _copy(source, output, block: "tl.constexpr"):  # pyright: ignore[reportInvalidTypeForm]
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    tl.store(output + place, tl.load(source + place))


def copy(source: Any, output: Any) -> None:
    """Queues the copy of a tensor whose size is a multiple of 1024."""
    _copy[(source.numel() // BLOCK,)](source, output, BLOCK)
