# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold: a compiler for CuTe-style GPU kernels, whose programs run at every stage of lowering.

The layers (`tilefold.base`, `tilefold.layout`, `tilefold.dialects`, `tilefold.passes`, `tilefold.compiler`,
`tilefold.runtime`) are the folders of the same names at the root of the source tree. An installed package holds them
inside `tilefold/`; in a checkout they lie beside it, and this file extends the package's search path to them.
"""

import os

from .version import VERSION

TYPE_CHECKING = False  # of `typing`, which takes longer to import than all else here
if TYPE_CHECKING:
    from typing import Any

    from tilefold.cute.loaded import load as load
    from tilefold.cute.loaded_ptx import load_ptx as load_ptx
    from tilefold.cute.tensor_map_argument import tensor_map as tensor_map

    from .cute import Constexpr as Constexpr
    from .cute import range as range
    from .cute import range_constexpr as range_constexpr

_here = os.path.dirname(os.path.abspath(__file__))
if not os.path.isdir(os.path.join(_here, "layout")):  # a checkout: the subpackages are the folders beside this one
    __path__.append(os.path.dirname(_here))

__version__ = VERSION

_LOADING = {"load": "loaded", "load_ptx": "loaded_ptx", "tensor_map": "tensor_map_argument"}
"""The modules of `tilefold.cute` with the ways to `.cute` files and to PTX, and tensor maps for it."""
_KERNEL_NAMES = ("Constexpr", "range", "range_constexpr")
"""Names of `tilefold.cute` that kernels of the literature take from the package around it."""


def __getattr__(name: str) -> "Any":
    if name in _LOADING:
        from importlib import import_module

        return getattr(import_module(f".cute.{_LOADING[name]}", __name__), name)
    if name not in _KERNEL_NAMES:
        raise AttributeError(f"module 'tilefold' has no attribute '{name}'")
    from . import cute

    return getattr(cute, name)
