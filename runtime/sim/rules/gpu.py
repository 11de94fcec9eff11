# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the coordinates of threads and blocks. Thread coordinates that a warp shares are uniform."""

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import gpu

from ....dialects.ptx import SregOp
from ..translate import Rule, Rules, Step, Translator
from ..values.values import Value, varies
from ..warp import Warp

_AXES = {"x": 0, "y": 1, "z": 2}


def _rule(coordinate: Callable[[Warp, int], Value]) -> Rule:
    def rule(op: Any, t: Translator) -> Step:
        axis, result = _AXES[op.dimension.data.value], t.slot(op.results[0])

        def step(warp: Warp) -> None:
            warp.registers[result] = coordinate(warp, axis)

        return step

    return rule


def _thread(warp: Warp, axis: int) -> Value:
    x, y, _ = warp.launch.config.block
    number = np.arange(warp.first_thread, warp.first_thread + warp.lanes)
    value = (number % x, number // x % y, number // (x * y))[axis]
    return int(value[0]) if (value == value[0]).all() else value


def _sreg(op: SregOp, t: Translator) -> Step:
    name, axis = op.register.data.split(".")
    coordinate, at, result = _REGISTERS[name], _AXES[axis], t.slot(op.result)
    dtype = t.kind(op.result).dtype

    def step(warp: Warp) -> None:
        value = coordinate(warp, at)
        warp.registers[result] = value.astype(dtype) if varies(value) else value

    return step


_REGISTERS: dict[str, Callable[[Warp, int], Value]] = {
    "tid": _thread,
    "ctaid": lambda warp, axis: warp.block.coordinate[axis],
    "ntid": lambda warp, axis: warp.launch.config.block[axis],
    "nctaid": lambda warp, axis: warp.launch.config.grid[axis],
}
"""PTX's special registers by name."""

GPU: Rules = {
    gpu.ThreadIdOp: _rule(_REGISTERS["tid"]),
    gpu.BlockIdOp: _rule(_REGISTERS["ctaid"]),
    gpu.BlockDimOp: _rule(_REGISTERS["ntid"]),
    gpu.GridDimOp: _rule(_REGISTERS["nctaid"]),
    SregOp: _sreg,
}
