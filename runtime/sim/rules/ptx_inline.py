# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text that stays text since the reader of PTX has no operation for it: an instruction by its name, a special
register, a call of the heap; or a text with a function of the user's.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np

from ....base.errors import Code
from ....dialects import ptx
from ....dialects.ptx.inline import DISCARD, HEAP_CALLS, REGISTER_TEXTS
from ...engine import NumPyType
from ..events import Step
from ..faults import Site, site_of
from ..translate import Rules, Translator
from ..values import Value
from ..warp import Warp
from .gpu import register_of
from .heap import discard, heap_call
from .named_instructions import Instruction, instruction_of

_Meaning: TypeAlias = Callable[..., tuple[Any, ...]]
"""The results of a text, as a function of the operands in all lanes of a warp."""
_REGISTERS: Mapping[str, str] = MappingProxyType({text: name for name, text in REGISTER_TEXTS.items()})


def executes(op: ptx.InlineOp) -> bool:
    """Whether the simulator executes a text as it is."""
    text = op.text.data
    return text in HEAP_CALLS.values() or text == DISCARD or text in _REGISTERS or _instruction(text) is not None


def _instruction(text: str) -> Instruction | None:
    """The instruction of a text that is its name, its result and its operands in order; None for another text."""
    name, _, places = text.partition(" ")
    found = instruction_of(name)
    if found is None:
        return None
    return found if places == ", ".join(f"${place}" for place in range(1 + len(found.operands))) + ";" else None


def _inline(op: ptx.InlineOp, t: Translator) -> Step:
    text = op.text.data
    if (function := t.texts.get(text)) is not None:
        t.launch.leave_lockstep()
        return _computed(op, t, _of_user(function), None)
    if text in HEAP_CALLS.values() or text == DISCARD:
        t.launch.leave_lockstep()
        return discard(op, t) if text == DISCARD else heap_call(op, t)
    if text in _REGISTERS:
        t.launch.leave_lockstep()
        return _register(op, t)
    instruction = _instruction(text)
    if instruction is None:
        return _refused(op)
    run = instruction.run
    return _computed(op, t, lambda *given: (run(*given),), instruction.operands)


def _register(op: ptx.InlineOp, t: Translator) -> Step:
    """Reads a special register."""
    (result,), read = op.res, register_of(_REGISTERS[op.text.data])
    slot, dtype = t.slot(result), t.kind(result).dtype

    def step(warp: Warp) -> None:
        warp.registers[slot] = np.broadcast_to(read(warp), (warp.lanes,)).astype(dtype)

    return step


def _computed(op: ptx.InlineOp, t: Translator, meaning: _Meaning, types: tuple[NumPyType, ...] | None) -> Step:
    """Computes the results of a text of its operands, whose bits are taken as these types."""
    operands = [(t.slot(value), t.kind(value).dtype) for value in op.args]
    results = [(t.slot(value), t.kind(value).dtype) for value in op.res]
    site, wanted = site_of(op), [dtype for _, dtype in operands] if types is None else types

    def step(warp: Warp) -> None:
        registers, lanes = warp.registers, warp.lanes
        given = [np.broadcast_to(np.asarray(registers[slot], dtype), (lanes,)) for slot, dtype in operands]
        values = meaning(*map(_of_type, given, wanted))
        if len(values) != len(results):
            message = f"the function for {_shown(op)} gives {len(values)} results, the text has {len(results)}"
            warp.fault(Code.SIM_UNSUPPORTED, site, None, message)
        for (slot, dtype), value in zip(results, values, strict=True):
            made = np.asarray(value)
            made = made.astype(dtype) if types is None else _of_type(made, dtype)
            registers[slot] = np.array(np.broadcast_to(made, (lanes,)))

    return step


def _of_type(x: Value, dtype: NumPyType) -> Value:
    """An array with its bits as a type of their number."""
    return x if x.dtype == dtype else x.view(dtype) if x.dtype.itemsize == dtype.itemsize else x.astype(dtype)


def _of_user(function: Callable[..., object]) -> _Meaning:
    def run(*given: object) -> tuple[Value, ...]:
        out: Value = function(*given)
        return cast("tuple[Any, ...]", out) if isinstance(out, tuple) else () if out is None else (out,)

    return run


def _shown(op: ptx.InlineOp) -> str:
    text = op.text.data
    return text if len(text) <= 60 else text[:57] + "..."


def _refused(op: ptx.InlineOp) -> Step:
    """Ends the launch where a thread executes a text that the simulator does not know."""
    site: Site = site_of(op)

    def step(warp: Warp) -> None:
        lane = int(warp.lane_numbers()[0])
        hint = "use the operation of the instruction, run on a GPU, or give cute.arch.inline_ptx a function: sim="
        text = f"the simulator does not execute text: {_shown(op)}" + (f" ({op.refusal})" if op.refusal else "")
        warp.fault(Code.SIM_UNSUPPORTED, site, lane, text, hint)

    return step


PTX_INLINE: Rules = {ptx.InlineOp: _inline}
