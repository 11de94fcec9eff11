# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products on Hopper: which kernel takes one, its configuration and its grid, found once for arguments alike."""

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import ModuleType
from typing import Generic, TypeVar

from tilefold.cute import utils
from tilefold.runtime.arrays.signature import Dynamic, Marked

from ..arguments import Array, any_rows, is_torch
from ..replay import Launch, Launches
from ..stream_memory import scratch, zeros
from .gemm import Activation, chosen_config, empty_kernel, gemm_kernel
from .gemm_grouped import grouped_launch
from .gemm_model import ranked, rated
from .gemm_scaled import scaled_launch
from .gemm_skinny import skinny_kernel
from .parts import WARPGROUP, Config
from .skinny_model import FEW, VECTOR, Skinny, chosen_skinny, is_skinny, is_small, rated_skinny

_COLUMN = Dynamic(modes=(0,))
USUAL = 1.15
"""By what factor the usual kernel takes longer for few tiles than its model says, which knows no limit of the bytes
from the L2 cache to all multiprocessors.
"""
MOST_BLOCKS, MOST_SUMS = 160, 192 * 192
"""The most blocks that share K of tiles, and the sums of the largest of these tiles."""


P = TypeVar("P")
RUNS = 5
"""The launches of each plan that are timed, after one that compiles it."""


@dataclass(frozen=True)
class Tuner(Generic[P]):
    """The fastest plans of problems that were measured."""

    _fastest: dict[Hashable, P] = field(default_factory=dict[Hashable, P])

    def plan(self, problem: Hashable, plans: Sequence[P], launch: Callable[[P], Launch]) -> P:
        """The fastest of some plans for a problem, whose launches write the same result. Only the first call measures;
        within a graph that is being captured, the first plan serves.
        """
        if problem in self._fastest:
            return self._fastest[problem]
        torch = sys.modules["torch"]
        if torch.cuda.is_current_stream_capturing():
            return plans[0]
        times = [self._time(torch, launch(plan)) for plan in plans]
        return self._fastest.setdefault(problem, plans[times.index(min(times))])

    @staticmethod
    def _time(torch: ModuleType, launch: Launch) -> float:
        """Milliseconds of the fastest of some launches."""
        launch.run(None, "auto")
        times: list[float] = []
        for _ in range(RUNS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            launch.run(None, "auto")
            end.record()
            end.synchronize()
            times.append(float(start.elapsed_time(end)))
        return min(times)


@dataclass(frozen=True)
class Plan:
    """A kernel's configuration and the sizes of its launch."""

    config: Config | Skinny
    grid: tuple[int, int, int]
    threads: int
    cluster: tuple[int, int, int]


TUNED: Tuner[Plan] = Tuner()
"""The plans that were measured."""


@lru_cache(maxsize=8192)
def plan_of(m: int, n: int, k: int, itemsize: int, by_rows: bool, blocks: int) -> Plan:
    """How `blocks` multiprocessors compute a product of these extents and elements of this many bytes."""
    if by_rows and (m <= FEW or (itemsize != 2 and is_skinny(m, n, blocks))):
        return plan_skinny(chosen_skinny(m, n, k, blocks, itemsize, streams=True), m, n)
    if by_rows and itemsize == 2 and is_small(m, n, blocks):
        time, few = rated_skinny(m, n, k, blocks, streams=True)
        (least, usual), *_ = rated(m, n, k, blocks, shares_k=True)
        return plan_skinny(few, m, n) if time < USUAL * least else plan_usual(usual, m, n, blocks)
    return plan_usual(chosen_config(m, n, k, blocks, itemsize, shares_k=True), m, n, blocks)


def plans_of(m: int, n: int, k: int, itemsize: int, by_rows: bool, blocks: int) -> list[Plan]:
    """The plans that the model finds fastest, at most three, and that for few rows if it is not among them."""
    first = plan_of(m, n, k, itemsize, by_rows, blocks)
    found = [first]
    if itemsize == 2:
        found += [plan_usual(config, m, n, blocks) for config in ranked(m, n, k, blocks, 1, 3, True)]
    if by_rows and is_small(m, n, blocks):
        found.append(plan_skinny(chosen_skinny(m, n, k, blocks, itemsize, streams=True), m, n))
    return list(dict.fromkeys(found))


def plan_skinny(config: Skinny, m: int, n: int) -> Plan:
    """The launch of a configuration for few rows."""
    config = replace(config, vector=VECTOR if n % VECTOR == 0 else 1)
    grid, cluster = config.launch(m, n)
    return Plan(config, grid, 2 * WARPGROUP, cluster)


def plan_usual(config: Config, m: int, n: int, blocks: int) -> Plan:
    """The launch of a configuration of the usual kernel."""
    if config.splits > 1:
        tiles = math.prod(config.tiles(m, n))
        return Plan(config, (1, 1, blocks if tiles > blocks else config.splits * tiles), config.threads, (1, 1, 1))
    cluster = (*config.cluster, 1)
    params = utils.PersistentTileSchedulerParams((*config.tiles(m, n), 1), cluster)
    most = blocks // (config.cluster[0] * config.cluster[1])
    grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, most)
    return Plan(config, grid, config.threads, cluster)


def product(
    D: Array,
    A: Array,
    B: Array,
    by_rows: bool,
    blocks: int,
    bias: Array | None,
    activation: Activation | None,
    scale_m: Array | None,
    scale_n: Array | None,
    gate: Array | None,
    residual: Array | None,
    autotune: bool = False,
    accurate: bool = False,
    plan: Plan | None = None,
) -> Launches:
    """D = activation(scale_m * (A @ B^T) * scale_n + bias) * gate + residual. With `autotune`, the fastest of the plans
    that the model finds best, as measured on a GPU at the first call. `accurate` is for fp8, without an epilogue.
    """
    (m, k), n = A.shape, B.shape[0]
    if k == 0:
        yield Launch(empty_kernel, (D, bias, activation), (m, 1, 1), WARPGROUP)
        return
    if accurate:
        if is_skinny(m, n, blocks):
            config = chosen_skinny(m, n, k, blocks, A.itemsize, streams=True, accurate=True)
            yield launch_of(D, A, B, plan_skinny(config, m, n))
        else:
            yield from scaled(D, A, B, None, None, blocks)
        return
    problem = m, n, k, A.itemsize, by_rows, blocks
    if autotune and is_torch(A) and A.is_cuda:
        plan = TUNED.plan((*problem, A.dtype, D.dtype), plans_of(*problem), partial(launch_of, D, A, B))
    plan = plan or plan_of(*problem)
    extras = bias, activation, None if scale_m is None else Marked(scale_m, _COLUMN), scale_n
    yield launch_of(D, A, B, plan, *extras, any_rows(gate), any_rows(residual))


def launch_of(D: Array, A: Array, B: Array, plan: Plan, *extras: object) -> Launch:
    """The launch of a plan."""
    given, options = (any_rows(A), B, any_rows(D), plan.config), {"cluster": plan.cluster, "use_pdl": True}
    extras = extras or (None,) * 6
    if plan.config.stream if isinstance(plan.config, Skinny) else plan.config.splits > 1:
        extras = *extras, scratch(MOST_BLOCKS * MOST_SUMS), zeros(MOST_BLOCKS)
    kernel = skinny_kernel if isinstance(plan.config, Skinny) else gemm_kernel
    return Launch(kernel, given + extras, plan.grid, plan.threads, options)


def grouped(
    D: Array, A: Array, B: Array, rows: Array, scale_a: Array | None, scale_b: Array | None, blocks: int
) -> Launches:
    """D_g = A_g @ B_g^T for all groups."""
    launch = grouped_launch(A, B, rows, D, scale_a, scale_b, blocks)
    if launch is not None:
        yield launch


def scaled(D: Array, A: Array, B: Array, scale_a: Array | None, scale_b: Array | None, blocks: int) -> Launches:
    """D = (scale_a * A) @ (scale_b * B)^T for fp8 with scales of blocks, or without scales."""
    launch = scaled_launch(A, B, scale_a, scale_b, D, blocks)
    if launch is not None:
        yield launch
