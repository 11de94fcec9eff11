# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator's rules, one file for each family of operations, loaded for the dialects that a kernel has."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from xdsl.ir import Operation

from ..translate import Rule, Rules

COMMON: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "arith": ("integers", "floats", "casts"), "math": ("integers", "floats"), "scf": ("scf",), "vector": ("vector",),
    "func": ("calls",), "cf": ("calls",), "cute": ("cute",), "llvm": ("structs",), "ub": ("structs",),
})  # fmt: skip
"""By dialect, the modules with the rules of operations that can run anywhere, on the host too."""

MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    **COMMON,
    "gpu": ("gpu",),
    "ptx": (
        "gpu", "ptx_memory", "ptx_matrix", "ptx_sync", "ptx_lanes", "ptx_compute", "ptx_atomic", "ptx_mbarrier",
        "ptx_bulk", "ptx_tensor_copy", "ptx_cluster", "ptx_inline", "mma",
    ),
    "tile": (
        "tile_views", "tile_coordinates", "tile_memory", "tile_maps", "tile_copies", "tile_tensor_copies", "mma",
    ),
})  # fmt: skip
"""By dialect, the modules with the rules of operations that can run inside a kernel."""


@cache
def rules_of(dialect: str) -> Rules:
    """The rule of every operation of a dialect that can run inside a kernel."""
    rules: dict[type[Operation], Rule] = {}
    for name in MODULES.get(dialect, ()):
        rules.update(getattr(import_module(f".{name}", __package__), name.upper()))
    return MappingProxyType(rules)
