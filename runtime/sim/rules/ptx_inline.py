# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text, which the simulator executes by its meaning, or by a function that is given for the text."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ....base.errors import Code
from ....dialects import ptx
from ..events import Step
from ..faults import Site, site_of
from ..translate import Rules, Translator
from ..warp import Warp
from .inline_texts import Meaning, meaning_of


def _inline(op: ptx.InlineOp, t: Translator) -> Step:
    site, text = site_of(op), op.text.data
    shown = text if len(text) <= 60 else text[:57] + "..."
    operands = [(t.slot(value), t.kind(value).dtype) for value in op.args]
    results = [(t.slot(value), t.kind(value).dtype) for value in op.res]
    types, function = [dtype for _, dtype in results], t.texts.get(text)
    meaning = meaning_of(text, len(operands), types, site) if function is None else _of_user(function)
    if meaning is None:
        return _text_error(site, shown)

    def step(warp: Warp) -> None:
        registers, lanes = warp.registers, warp.lanes
        given = [np.broadcast_to(np.asarray(registers[slot], dtype), (lanes,)) for slot, dtype in operands]
        values = meaning(warp, *given)
        if len(values) != len(results):
            message = f"the function for {shown} gives {len(values)} results, the text has {len(results)}"
            warp.fault(Code.SIM_UNSUPPORTED, site, None, message)
        for (slot, dtype), value in zip(results, values, strict=True):
            registers[slot] = np.array(np.broadcast_to(np.asarray(value).astype(dtype), (lanes,)))

    return step


def _of_user(function: Callable[..., Any]) -> Meaning:
    def run(_: Warp, *given: Any) -> tuple[Any, ...]:
        out: Any = function(*given)
        return cast("tuple[Any, ...]", out) if isinstance(out, tuple) else () if out is None else (out,)

    return run


def _text_error(site: Site, shown: str) -> Step:
    def step(warp: Warp) -> None:
        lane = int(warp.lane_numbers()[0])
        hint = "use the operation of the instruction, run on a GPU, or give cute.arch.inline_ptx a function: sim="
        warp.fault(Code.SIM_UNSUPPORTED, site, lane, f"the simulator does not execute text: {shown}", hint)

    return step


PTX_INLINE: Rules = {ptx.InlineOp: _inline}
