# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The xDSL context of tilefold: the dialects that a `.cute` file can use, each imported when it is first needed."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect

from ... import dialects

_OURS = dialects.__name__


def _dialect(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(module), name)


OUR_DIALECTS: Mapping[str, Callable[[], Dialect]] = MappingProxyType({
    "cute": _dialect(f"{_OURS}.cute.dialect", "CUTE"), "tile": _dialect(f"{_OURS}.tile", "TILE"),
    "ptx": _dialect(f"{_OURS}.ptx", "PTX"), "run": _dialect(f"{_OURS}.run", "RUN"),
})  # fmt: skip
"""The dialects that tilefold defines."""

DIALECTS: Mapping[str, Callable[[], Dialect]] = MappingProxyType({
    **OUR_DIALECTS,
    "gpu": _dialect(f"{_OURS}.gpu", "GPU"), "func": _dialect("xdsl.dialects.func", "Func"),
    "cf": _dialect("xdsl.dialects.cf", "Cf"), "llvm": _dialect(f"{_OURS}.llvm", "LLVM"),
    "nvvm": _dialect(f"{_OURS}.nvvm", "NVVM"), "ub": _dialect("xdsl.dialects.ub", "UB"),
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
