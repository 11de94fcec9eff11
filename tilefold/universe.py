# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of tilefold that xDSL's own tools (`xdsl-opt`, `xdsl-gui`) see, by the entry point `xdsl.universe`.

xDSL already has a dialect `gpu`, whose custom syntax for `gpu.module` only tilefold has: with `xdsl-opt`, use the
generic form, as `tilefold opt --mlir-print-op-generic` prints it. It has a `cse` of its own, by the same rules.
"""

from xdsl.universe import Universe

from tilefold.compiler.pipeline import OUR_DIALECTS, OUR_PASSES

UNIVERSE = Universe(
    all_dialects=dict(OUR_DIALECTS), all_passes={name: make for name, make in OUR_PASSES.items() if name != "cse"}
)
