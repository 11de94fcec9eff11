# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches whose atomic loads find outdated values, as PTX's memory model lets them: `ordering.outdated`. A launch
without a fault is repeated so, if it has such loads. A fault that shows is one of the kernel. Results that no order of
warps gives tell only that they depend on the values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ...base.errors import Code
from ...dialects.ptx import LoadAcquireOp
from ..engine import Argument, TensorArgument
from .diagnosis import DiagnosedLaunch, Diagnosis, Finding, diagnose
from .faults import SimulationError, Site
from .launch import Loads
from .memory.journal import Journal

_Results: TypeAlias = Mapping[str, Argument]
_SEEDS = range(5)
"""The choices of outdated values that are tried."""
_LEAST, _MOST = 24, 72
"""In how many orders of the warps results are looked for that do not depend on outdated values: more than the least
number while some results have come only once, so that others may still come.
"""
_STEPS = 400_000
"""The operations of warps that all these orders may take, about."""
_CLOSE = 1e-2
"""How far floats may differ that were summed in another order."""

DEPENDS = (
    "the check assumes that this load finds the newest value; PTX's memory model allows an outdated one, with which "
    "the results are others than in any order of the threads"
)
ORDER = "order the accesses by ptx.fence, or by a release and an acquire; store and load on both sides need fence.sc"


@dataclass(frozen=True)
class OutdatedOutcome:
    """The faults of launches with outdated values, and the loads on whose values the results depend."""

    findings: tuple[Finding, ...] = ()
    depends: tuple[Site, ...] = ()


def examine_outdated(
    launch: DiagnosedLaunch, diagnosis: Diagnosis, wrong: Callable[[Diagnosis], str | None]
) -> OutdatedOutcome:
    """The outcome of a launch, whose own run had no fault, where loads find outdated values. `wrong` says in words
    which condition the arguments do not meet afterwards.
    """
    if not launch.engine.options.races or not any(isinstance(op, LoadAcquireOp) for op in launch.program.find().walk()):
        return OutdatedOutcome()
    usual: _Usual | None = None
    for seed in _SEEDS:
        other = diagnose(_with(launch, Loads(seed=seed)))
        if not other.outdated:
            if seed == 0:  # nothing that a load may have found
                break
            continue
        site, where = next(iter(other.outdated.items()))
        note = f"it shows where {site} finds an outdated value of {where}"
        if faults := [finding for finding in other.findings if not finding.is_remark]:
            return OutdatedOutcome(tuple(replace(finding, note=finding.note or note) for finding in faults))
        if other.arguments is None or diagnosis.arguments is None:
            continue
        if (text := wrong(other)) is not None:
            return OutdatedOutcome((Finding(Code.CHECK_FAILED, text, ORDER, site, note=note),))
        if _same(diagnosis.arguments, other.arguments):
            continue
        usual = usual or _Usual(launch, max(diagnosis.steps, 1), [diagnosis.arguments])
        if usual.lack(other.arguments):
            alone = (_results(_with(launch, Loads(seed=seed, site=site))) for site in other.outdated)
            sites = [
                site
                for site, results in zip(other.outdated, alone, strict=True)
                if results is not None and usual.lack(results)
            ]
            return OutdatedOutcome(depends=tuple(sites or other.outdated))
    return OutdatedOutcome()


def _with(launch: DiagnosedLaunch, loads: Loads, seed: int | None = None) -> DiagnosedLaunch:
    options = launch.engine.options if seed is None else replace(launch.engine.options, seed=seed)
    return replace(launch, engine=replace(launch.engine, loads=loads, options=options))


def _results(launch: DiagnosedLaunch) -> _Results | None:
    """The arguments after a launch; None where it does not come to its end."""
    try:
        return launch.run(frozenset(), Journal())[0]
    except SimulationError:
        return None


@dataclass
class _Usual:
    """The different results of a launch in orders of its warps, as many as have been asked for, and how often each has
    come. An order takes about so many `steps`.
    """

    launch: DiagnosedLaunch
    steps: int
    found: list[_Results]
    counts: list[int] = field(default_factory=lambda: [1])
    orders: int = 0

    def lack(self, results: _Results) -> bool:
        """Whether no order gives these results, as far as the orders tell."""
        if any(_same(results, other) for other in self.found):
            return False
        while self.orders < _LEAST or (self.orders < _MOST and 1 in self.counts):
            if self.orders * self.steps > _STEPS:
                return False
            self.orders += 1
            if self._add() and _same(results, self.found[-1]):
                return False
        return 1 not in self.counts

    def _add(self) -> bool:
        """Whether another order has other results."""
        results = _results(_with(self.launch, Loads(hurry=self.orders), self.orders))
        if results is None:
            return False
        for index, other in enumerate(self.found):
            if _same(results, other):
                self.counts[index] += 1
                return False
        self.found.append(results)
        self.counts.append(1)
        return True


def _same(first: _Results, second: _Results) -> bool:
    """Whether the tensors among the arguments are the same, but for the order of sums of floats."""
    for name, argument in first.items():
        other = second[name]
        if isinstance(argument, TensorArgument) and isinstance(other, TensorArgument):
            a, b = argument.storage, other.storage
            if a.tobytes() == b.tobytes():
                continue
            if a.dtype.kind not in "fV" or not np.allclose(
                a.astype(np.float64), b.astype(np.float64), rtol=_CLOSE, atol=_CLOSE, equal_nan=True
            ):
                return False
    return True
