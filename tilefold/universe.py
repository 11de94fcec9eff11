# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What xDSL's own tools (`xdsl-opt`, `xdsl-gui`) see of tilefold, by the entry point `xdsl.universe`.

xDSL already has a dialect `gpu`, whose custom syntax for `gpu.module` is ours alone: with `xdsl-opt`, use the generic form,
as `tilefold opt --mlir-print-op-generic` prints it.
"""

from xdsl.ir import Dialect
from xdsl.universe import Universe

from tilefold.compiler.pipeline import PASSES


def _cute() -> Dialect:
    from tilefold.dialects.cute import CUTE

    return CUTE


def _tile() -> Dialect:
    from tilefold.dialects.tile import TILE

    return TILE


def _ptx() -> Dialect:
    from tilefold.dialects.ptx import PTX

    return PTX


def _run() -> Dialect:
    from tilefold.dialects.run import RUN

    return RUN


UNIVERSE = Universe(
    all_dialects={"cute": _cute, "tile": _tile, "ptx": _ptx, "run": _run},
    all_passes=dict(PASSES),
)
