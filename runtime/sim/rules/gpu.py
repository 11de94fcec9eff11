# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the coordinates of threads, blocks and clusters, and for the end of a thread. Thread coordinates that a
warp shares are uniform.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np
from xdsl.ir import SSAValue

from ....base.target import WARP
from ....dialects.gpu import COORDINATES, CoordinateOp
from ....dialects.ptx import RetOp, SregOp
from ..events import Step
from ..translate import Rules, Translator
from ..values import Value, varies
from ..warp import Warp

Coordinates = Callable[[Warp], Sequence[Value]]


def _coordinate(register: str, result: SSAValue, t: Translator) -> Step:
    """Reads a special register."""
    name, _, axis = register.partition(".")
    coordinates, at, slot = _REGISTERS[name], "xyz".index(axis or "x"), t.slot(result)
    dtype = t.kind(result).dtype

    def step(warp: Warp) -> None:
        value = coordinates(warp)[at]
        warp.registers[slot] = value.astype(dtype) if varies(value) else value

    return step


def _thread(warp: Warp) -> list[Value]:
    x, y, _ = warp.block.cluster.config.block
    number = _number(warp)
    values = number % x, number // x % y, number // (x * y)
    return [int(value[0]) if (value == value[0]).all() else value for value in values]


def _block(warp: Warp) -> Sequence[Value]:
    if not warp.spans_blocks:
        return warp.block.coordinate
    cluster, threads = warp.block.cluster, warp.block.cluster.config.threads
    blocks = [warp.launch.coordinate(cluster.block_number(rank)) for rank in range(cluster.size)]
    axes = [np.repeat(axis, threads) for axis in zip(*blocks, strict=True)]
    return [int(axis[0]) if (axis == axis[0]).all() else axis for axis in axes]


def _divide_by_cluster(warp: Warp, size: Sequence[Value]) -> list[Value]:
    """A size or a coordinate in blocks as one in clusters."""
    return [n // extent for n, extent in zip(size, warp.block.cluster.config.cluster, strict=True)]


_REGISTERS: Mapping[str, Coordinates] = MappingProxyType(
    {
        "tid": _thread,
        "ctaid": _block,
        "ntid": lambda warp: warp.block.cluster.config.block,
        "nctaid": lambda warp: warp.block.cluster.config.grid,
        "cluster_ctaid": lambda warp: [
            n % extent for n, extent in zip(_block(warp), warp.block.cluster.config.cluster, strict=True)
        ],
        "cluster_nctaid": lambda warp: warp.block.cluster.config.cluster,
        "clusterid": lambda warp: _divide_by_cluster(warp, _block(warp)),
        "nclusterid": lambda warp: _divide_by_cluster(warp, warp.block.cluster.config.grid),
        "cluster_ctarank": lambda warp: [warp.block.rank],
        "cluster_nctarank": lambda warp: [prod(warp.block.cluster.config.cluster)],
    }
)
"""PTX's special registers by name."""


Reader = Callable[[Warp], Value]


def _number(warp: Warp) -> Value:
    """The number of each lane's thread in its block."""
    return (warp.first_thread + np.arange(warp.lanes)) % warp.block.cluster.config.threads


_TICK = 1000


def _time(warp: Warp) -> Value:
    """A time, later than all that were read before, so that loops that wait for one end."""
    warp.launch.times += 1
    return _TICK * warp.launch.times


_OTHERS: Mapping[str, Reader] = MappingProxyType(
    {
        "warpid": lambda warp: _number(warp) // WARP,
        "nwarpid": lambda warp: 64,
        "nsmid": lambda warp: 1,
        "is_explicit_cluster": lambda warp: prod(warp.block.cluster.config.cluster) > 1,
        **dict.fromkeys(("clock", "clock64", "globaltimer", "globaltimer_lo"), _time),
    }
)
"""Those that only texts read. The simulator has one multiprocessor, and static shared memory only: the others are 0."""


def register_of(name: str) -> Reader:
    """The function that reads a special register of `REGISTER_TEXTS`."""
    return _OTHERS.get(name, lambda warp: 0)


def _rule(op: CoordinateOp | SregOp, t: Translator) -> Step:
    return _coordinate(op.register if isinstance(op, CoordinateOp) else op.register.data, op.results[0], t)


def _ret(op: RetOp, t: Translator) -> None:
    """Nothing is left to do: it ends the kernel's only block."""


GPU: Rules = {RetOp: _ret, SregOp: _rule, **dict.fromkeys(COORDINATES, _rule)}
