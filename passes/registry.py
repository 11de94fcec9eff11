# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every pass by its name. A pass's module is imported when the pass is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from xdsl.ir import Operation
from xdsl.passes import ModulePass


def pass_of(module: str, name: str) -> Callable[[], type[ModulePass]]:
    """A function that imports a module and returns its pass of this name."""

    def load() -> type[ModulePass]:
        kinds = (value for value in vars(import_module(module)).values() if isinstance(value, type))
        return next(kind for kind in kinds if issubclass(kind, ModulePass) and vars(kind).get("name") == name)

    return load


def _file_of(name: str) -> str:
    return name.replace("-", "_")


_OURS = (
    "check-target", "check-stage", "fold-layouts", "expand-gemms", "expand-copies", "expand-maps", "expand-conversions",
    "lower-tensors", "combine-remainders", "unroll-loops", "merge-accesses", "expand-atoms", "allocate-smem",
    "convert-index", "strength-reduce", "cse", "expand-math",
)  # fmt: skip
_CUTE_IR = (
    "base-prepare", "cute-fold-static", "cute-expand-ops", "cute-to-base", "gpu-to-ptx", "inline-calls",
    "one-shot-convert-to-llvm", "attach-nvvm-target",
)  # fmt: skip

OUR_PASSES: Mapping[str, Callable[[], type[ModulePass]]] = MappingProxyType({
    **{name: pass_of(f"{__package__}.{_file_of(name)}", name) for name in _OURS},
    **{name: pass_of(f"{__package__}.cute_ir.{_file_of(name)}", name) for name in _CUTE_IR},
})  # fmt: skip
"""The passes that tilefold defines: a file each, by the name of the pass."""

PASSES: Mapping[str, Callable[[], type[ModulePass]]] = MappingProxyType({
    **OUR_PASSES,
    "dce": pass_of("xdsl.transforms.dead_code_elimination", "dce"),
    "reconcile-unrealized-casts": pass_of(
        "xdsl.transforms.reconcile_unrealized_casts", "reconcile-unrealized-casts"
    ),
})  # fmt: skip
"""All passes of the command line: ours, and those of xDSL that the pipeline uses."""

_HANDLED: Mapping[str, frozenset[str]] = MappingProxyType({
    "expand-gemms": frozenset(("tile.gemm",)),
    "expand-copies": frozenset(("tile.copy", "tile.prefetch", "tile.prefetch_tensor", "tile.coord_tensor")),
    "expand-maps": frozenset(("tile.fill", "tile.map")),
    "combine-remainders": frozenset(("arith.remui", "arith.remsi", "arith.andi")),
    "unroll-loops": frozenset(("scf.for",)),
    "merge-accesses": frozenset(("ptx.ld", "ptx.st")),
    "expand-atoms": frozenset(("tile.atom_call",)),
    "expand-math": frozenset(
        f"math.{name}"
        for name in ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "erf", "sqrt", "rsqrt")
    ),
})  # fmt: skip
"""By the name of a pass, the operations without which it changes nothing. Other passes look at every operation."""


def concerns(name: str, module: Operation) -> bool:
    """Whether a pass of this name may change a module or refuse it."""
    handled = _HANDLED.get(name)
    return handled is None or any(op.name in handled for op in module.walk())
