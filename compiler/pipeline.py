# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes by their names, and the pipeline: the stages of lowering in order, and the passes that lead from each to
the next; and the dialects of a program. The modules of passes and dialects are imported on first use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect, Operation
from xdsl.passes import ModulePass

from .. import dialects, passes
from ..base.target import DEFAULT_ARCH


def _pass(module: str, name: str) -> Callable[[], type[ModulePass]]:
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
    **{name: _pass(f"{passes.__name__}.{_file_of(name)}", name) for name in _OURS},
    **{name: _pass(f"{passes.__name__}.cute_ir.{_file_of(name)}", name) for name in _CUTE_IR},
    "emit-gpu-binary": _pass(f"{__package__}.cute_ir.emit_gpu_binary", "emit-gpu-binary"),
})  # fmt: skip
"""The passes that tilefold defines: a file each, by the name of the pass."""

PASSES: Mapping[str, Callable[[], type[ModulePass]]] = MappingProxyType({
    **OUR_PASSES,
    "dce": _pass("xdsl.transforms.dead_code_elimination", "dce"),
    "reconcile-unrealized-casts": _pass(
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
    "expand-conversions": frozenset(("arith.truncf", "arith.extf")),
    "expand-math": frozenset(
        f"math.{name}"
        for name in ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "erf", "sqrt", "rsqrt")
    ),
})  # fmt: skip
"""The operations without which a pass changes nothing, by the name of the pass. Other passes look at every operation.
"""

_JOINING = frozenset(("merge-accesses",))
"""The passes that join operations, so that they change nothing where each is the only one of its name."""


def concerns(name: str, module: Operation) -> bool:
    """Whether a pass of this name may change a module or refuse it."""
    handled = _HANDLED.get(name)
    if handled is None:
        return True
    seen = set[str]()
    for op in module.walk():
        if op.name in handled:
            if name not in _JOINING or op.name in seen:
                return True
            seen.add(op.name)
    return False


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of lowering: its name, the state of the program there, and the passes that lead to it.

    `{target}` in a pass stands for the target's name.
    """

    name: str
    summary: str
    passes: tuple[str, ...]


STAGES: tuple[Stage, ...] = (
    Stage("cute", "as written or built", ("check-stage{{stage=cute}}",)),
    Stage(
        "folded",
        "every static layout operation folded into types and constants",
        ("check-target{{target={target}}}", "fold-layouts", "cse", "check-stage{{stage=folded}}"),
    ),
    Stage(
        "atoms",
        "copies and multiplications expanded to executions of atoms on per-thread tensors",
        ("expand-gemms", "expand-copies", "expand-maps", "check-stage{{stage=atoms}}"),
    ),
    Stage(
        "index", "tensors are pointers plus index arithmetic", ("lower-tensors", "cse", "check-stage{{stage=index}}")
    ),
    Stage(
        "instr",
        "one operation for each PTX instruction",
        (
            "combine-remainders",
            "unroll-loops",
            "cse",
            "merge-accesses",
            "expand-atoms",
            "expand-conversions",
            "allocate-smem{{target={target}}}",
            "convert-index",
            "strength-reduce",
            "cse",
            "check-target{{target={target}}}",
            "check-stage{{stage=instr}}",
        ),
    ),
)
"""All stages whose programs are IR, in order. After `instr` come `expand-math`, LLVM IR text, PTX and machine code."""

STAGE_NAMES: tuple[str, ...] = tuple(stage.name for stage in STAGES)
"""The names of the stages in order."""


def pipeline_to(stage: str, target: str = DEFAULT_ARCH, after: str | None = None) -> list[str]:
    """The passes, as the command line writes them, that bring a program to a stage, from stage `after` or from text."""
    first = 0 if after is None else STAGE_NAMES.index(after) + 1
    passed = STAGES[first : STAGE_NAMES.index(stage) + 1]
    return [text.format(target=target) for passing in passed for text in passing.passes]


_HERE = dialects.__name__


def _dialect(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(module), name)


OUR_DIALECTS: Mapping[str, Callable[[], Dialect]] = MappingProxyType({
    "cute": _dialect(f"{_HERE}.cute.dialect", "CUTE"), "tile": _dialect(f"{_HERE}.tile", "TILE"),
    "ptx": _dialect(f"{_HERE}.ptx", "PTX"), "run": _dialect(f"{_HERE}.run", "RUN"),
})  # fmt: skip
"""The dialects that tilefold defines."""

DIALECTS: Mapping[str, Callable[[], Dialect]] = MappingProxyType({
    **OUR_DIALECTS,
    "gpu": _dialect(f"{_HERE}.gpu", "GPU"), "func": _dialect("xdsl.dialects.func", "Func"),
    "cf": _dialect("xdsl.dialects.cf", "Cf"), "llvm": _dialect(f"{_HERE}.llvm", "LLVM"),
    "nvvm": _dialect(f"{_HERE}.nvvm", "NVVM"), "ub": _dialect("xdsl.dialects.ub", "UB"),
    "arith": _dialect("xdsl.dialects.arith", "Arith"), "scf": _dialect("xdsl.dialects.scf", "Scf"),
    "math": _dialect("xdsl.dialects.math", "Math"), "vector": _dialect("xdsl.dialects.vector", "Vector"),
})  # fmt: skip
"""Every dialect of a `.cute` file beside `builtin`. `gpu` is xDSL's with MLIR's assembly, `llvm` xDSL's and more."""


def make_context() -> Context:
    """A context in which `.cute` files parse."""
    context = Context()
    context.load_dialect(Builtin)
    for name, factory in DIALECTS.items():
        context.register_dialect(name, factory)
    return context
