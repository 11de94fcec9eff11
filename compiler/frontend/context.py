# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The xDSL context of tilefold: the dialects that a `.cute` file can use, each imported when it is first needed."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect


def _cute() -> Dialect:
    from ...dialects.cute.dialect import CUTE

    return CUTE


def _tile() -> Dialect:
    from ...dialects.tile import TILE

    return TILE


def _ptx() -> Dialect:
    from ...dialects.ptx import PTX

    return PTX


def _run() -> Dialect:
    from ...dialects.run import RUN

    return RUN


def _gpu() -> Dialect:
    from ...dialects.gpu import GPU

    return GPU


def _func() -> Dialect:
    from xdsl.dialects.func import Func

    return Func


def _arith() -> Dialect:
    from xdsl.dialects.arith import Arith

    return Arith


def _scf() -> Dialect:
    from xdsl.dialects.scf import Scf

    return Scf


def _math() -> Dialect:
    from xdsl.dialects.math import Math

    return Math


def _vector() -> Dialect:
    from xdsl.dialects.vector import Vector

    return Vector


def _cf() -> Dialect:
    from xdsl.dialects.cf import Cf

    return Cf


def _ub() -> Dialect:
    from xdsl.dialects.ub import UB

    return UB


def _llvm() -> Dialect:
    from ...dialects.llvm import LLVM

    return LLVM


def _nvvm() -> Dialect:
    from ...dialects.nvvm import NVVM

    return NVVM


OUR_DIALECTS: Mapping[str, Callable[[], Dialect]] = MappingProxyType(
    {"cute": _cute, "tile": _tile, "ptx": _ptx, "run": _run}
)
"""The dialects that tilefold defines."""

DIALECTS: Mapping[str, Callable[[], Dialect]] = MappingProxyType(
    {
        **OUR_DIALECTS,
        "gpu": _gpu,
        "func": _func,
        "cf": _cf,
        "llvm": _llvm,
        "nvvm": _nvvm,
        "ub": _ub,
        "arith": _arith,
        "scf": _scf,
        "math": _math,
        "vector": _vector,
    }
)
"""Every dialect of a `.cute` file beside `builtin`. `gpu` is xDSL's with MLIR's assembly, `llvm` xDSL's and more."""


def make_context() -> Context:
    """A context in which `.cute` files parse."""
    context = Context()
    context.load_dialect(Builtin)
    for name, factory in DIALECTS.items():
        context.register_dialect(name, factory)
    return context
