# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that go wrong, on request: where the first NaN or infinity comes from, where an integer that addresses memory
wraps, a conversion loses the value that it converts, and a difference cancels almost all digits of its operands.

Each operation is looked at after it was executed. A NaN or infinity is charged to the operation whose operands have
none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ...base.errors import Code
from ..arrays.storage import element_indices
from ..engine import Argument, NumPyArray, TensorArgument
from .events import Step, Suspending
from .faults import SimulationError, Site, site_of
from .launch import Forgiven
from .number_checks import CHECKED, RANGE_HINT, Check, Indices, checks_of, is_floating
from .translate import Rule, RuleOf, Translator
from .values import Value
from .warp import Warp

FAULTS = frozenset({Code.SIM_NAN, Code.SIM_INFINITY, Code.SIM_INDEX, Code.SIM_LOSSY, Code.SIM_CANCELLATION})
"""The codes of the faults that are found here."""


def instrumented(rules: RuleOf) -> RuleOf:
    """The rules of operations, that look at the results."""
    indices = Indices()

    def rule_of(kind: type[Operation]) -> Rule | None:
        rule = rules(kind)
        if rule is None or not issubclass(kind, CHECKED):
            return rule
        return lambda op, t: _instrumented(op, t, rule(op, t), checks_of(op, t, indices))

    return rule_of


def check_arguments(arguments: Mapping[str, Argument], site: Site, forgiven: Forgiven) -> None:
    """SimulationError (E3251) for NaN in an argument that has values, unless it is forgiven."""
    if forgiven is None or (Code.SIM_NAN, site) in forgiven:
        return
    for name, given in arguments.items():
        if not isinstance(given, TensorArgument) or not given.initialised or not is_floating(given.storage.dtype):
            continue
        values = given.storage if given.layout is None else given.storage[element_indices(given.layout)]
        wrong = np.isnan(values.astype(np.float64))
        if wrong.any():
            at = ", ".join(map(str, np.argwhere(wrong)[0].tolist()))
            text = f"argument {name} holds NaN at ({at}) before the launch, and {int(wrong.sum())} in all"
            raise SimulationError(Code.SIM_NAN, text, "give it numbers", site=site)


def check_product(warp: Warp, site: Site, name: str, operands: Sequence[NumPyArray], d: NumPyArray) -> None:
    """A fault for an execution of a matrix instruction that makes a NaN or infinity, by its operands and D, an array
    (lanes, values) each.
    """
    if not is_floating(d.dtype):
        return
    wide = d.astype(np.float64)
    if np.isfinite(wide).all():
        return
    given = [operand.astype(np.float64) for operand in operands]
    for wrong, code, verb in ((np.isnan, Code.SIM_NAN, "NaN"), (_not_finite, Code.SIM_INFINITY, "infinity")):
        if wrong(wide).any() and not any(wrong(operand).any() for operand in given):
            lane = int(warp.lane_numbers()[wrong(wide).any(axis=1).argmax()])
            most = ", ".join(f"|{n}| up to {np.abs(x).max():.6g}" for n, x in zip("ABC", given, strict=True))
            if not warp.launch.forgives(code, site):
                warp.fault(code, site, lane, f"{name} produces {verb} from operands without one: {most}", RANGE_HINT)


def _not_finite(x: NumPyArray) -> NDArray[np.bool_]:
    return ~np.isfinite(x)


def _instrumented(op: Operation, t: Translator, step: Step | Suspending | None, checks: Sequence[Check]) -> Any:
    """The step of an operation, which looks at its result."""
    if not checks or step is None or isinstance(step, Suspending):
        return step
    operands, result, site = t.slots(op.operands), t.slot(op.results[0]), site_of(op)

    def checked(warp: Warp) -> None:
        given = [warp.registers[slot] for slot in operands]
        step(warp)
        value = warp.registers[result]
        for find in checks:
            for wrong, code, text, hint in find(warp, given, value):
                lanes = np.broadcast_to(wrong.reshape(len(wrong), -1).any(axis=1) if wrong.ndim else wrong, warp.lanes)
                lanes = lanes if warp.mask is None else lanes & warp.mask
                if lanes.any() and not warp.launch.forgives(code, site):
                    lane = int(lanes.argmax())
                    shown = ", ".join(_shown(operand, lane) for operand in given)
                    warp.fault(code, site, lane, f"{text}: from {shown} it produces {_shown(value, lane)}", hint)

    return checked


def _shown(value: Value, lane: int) -> str:
    """A value in a lane, in words."""
    array = np.asarray(value)
    row = array[lane if len(array) > 1 else 0] if array.ndim else array
    numbers = [f"{float(x):.9g}" if is_floating(array.dtype) else str(int(x)) for x in np.ravel(row)[:8]]
    return numbers[0] if np.ndim(row) == 0 else f"({', '.join(numbers)}{', ...' if np.size(row) > 8 else ''})"
