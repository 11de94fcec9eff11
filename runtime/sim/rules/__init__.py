# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator's rules, one file for each family of operations, loaded for the operations that a kernel has."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from xdsl.ir import Operation

from ..translate import Rule

COMMON = ("arith", "math", "scf", "vector", "func", "cf", "cute", "llvm", "ub")
"""The dialects whose operations can run anywhere, on the host too."""

MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "arith": ("arithmetic", "casts"), "math": ("arithmetic", "math_functions"), "scf": ("scf",),
    "vector": ("vector",), "func": ("calls",), "cf": ("calls",), "llvm": ("structs",), "ub": ("structs",),
    **dict.fromkeys(("cute.arithmetic", "cute.constructors", "cute.op"), ("cute",)),
    **dict.fromkeys(("gpu", "ptx.entry"), ("gpu",)),
    **dict.fromkeys(("ptx.address", "ptx.hints", "ptx.memory"), ("ptx_memory",)),
    "ptx.async_copy": ("ptx_sync",),
    **dict.fromkeys(("ptx.approx", "ptx.convert", "ptx.packed"), ("ptx_compute",)),
    "ptx.sync": ("ptx_sync", "ptx_atomic"), "ptx.atomic": ("ptx_atomic",), "ptx.multimem": ("ptx_multimem",),
    "ptx.warp": ("ptx_lanes",),
    "ptx.matrix": ("ptx_matrix",), "ptx.mbarrier": ("ptx_mbarrier",), "ptx.bulk": ("ptx_bulk",),
    "ptx.tma": ("ptx_tma",), "ptx.tensor_map": ("ptx_tensor_map",),
    "ptx.cluster": ("ptx_cluster",), "ptx.launch_control": ("ptx_launch_control",), "ptx.inline": ("ptx_inline",),
    **dict.fromkeys(("ptx.custom", "tile.custom"), ("ptx_custom",)),
    "ptx.wgmma": ("ptx_wgmma",),
    "ptx.tcgen05.memory": ("tcgen05_memory",), "ptx.tcgen05.copies": ("tcgen05_copies",),
    **dict.fromkeys(("ptx.tcgen05.base", "ptx.tcgen05.mma"), ("tcgen05_mma",)),
    **dict.fromkeys(("ptx.mma", "tile.gemm"), ("mma",)),
    **dict.fromkeys(
        (
            "tile.folded", "tile.kernel", "tile.rasterize", "tile.recast", "tile.run_time", "tile.tiled_copy",
            "tile.tiled_mma", "tile.view_base",
        ),
        ("tile_views",),
    ),
    "tile.coordinates": ("tile_coordinates",), "tile.elementwise": ("tile_maps",),
    **dict.fromkeys(("tile.alias", "tile.fragments", "tile.memory"), ("tile_memory",)),
    "tile.copies": ("tile_copies", "tile_bulk_copies"),
    **dict.fromkeys(("tile.tma", "tile.tma_memory"), ("tile_tma",)),
    "tile.tensor_memory": ("tile_allocations",),
})  # fmt: skip
"""By module of `dialects` that defines operations, ours or xDSL's, the modules here that have their rules."""


_IN_STEP = frozenset((
    "arithmetic", "casts", "math_functions", "scf", "vector", "calls", "structs", "cute", "gpu",
    "ptx_memory", "ptx_sync", "ptx_compute", "ptx_inline", "ptx_lanes", "ptx_matrix", "mma", "tile_views",
    "tile_coordinates", "tile_maps", "tile_memory", "tile_copies",
))  # fmt: skip
"""The modules here whose operations the warps of a block may execute in step. Others depend on the order of the warps,
or are of some warps of a block.
"""


_ORDERING = frozenset(("ptx_atomic", "ptx_multimem", "ptx_tensor_map", "ptx_launch_control"))
"""The modules here with operations by which clusters order themselves, so that one may wait for another."""


@cache
def rule_of(kind: type[Operation]) -> Rule | None:
    """The rule of a class of operations, or of the nearest base that has one; None if it cannot run in a kernel."""
    for base in kind.__mro__:
        for name in MODULES.get(base.__module__.partition("dialects.")[2], ()):
            rule = getattr(import_module(f".{name}", __package__), name.upper()).get(base)
            if rule is not None:
                return rule
    return None


def runs_in_step(rule: Rule) -> bool:
    """Whether the warps of a block may execute operations of a rule in step, unless the rule itself refuses."""
    return _module(rule) in _IN_STEP


def orders_clusters(rule: Rule) -> bool:
    """Whether a rule has operations by which clusters may order themselves."""
    return _module(rule) in _ORDERING


def _module(rule: Rule) -> str:
    return rule.__module__.rpartition(".")[2]
