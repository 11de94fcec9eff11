# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text, which the simulator does not execute."""

from ....dialects import ptx
from ....layout.errors import Code
from ..faults import site_of
from ..translate import Rules, Step, Translator
from ..warp import Warp


def _inline(op: ptx.InlineOp, t: Translator) -> Step:
    site, text = site_of(op), op.text.data

    def step(warp: Warp) -> None:
        lane = int(warp.lane_numbers()[0])
        shown = text if len(text) <= 60 else text[:57] + "..."
        hint = "use the operation of the instruction, or run on a GPU"
        warp.fault(Code.SIM_UNSUPPORTED, site, lane, f"the simulator does not execute text: {shown}", hint)

    return step


PTX_INLINE: Rules = {ptx.InlineOp: _inline}
