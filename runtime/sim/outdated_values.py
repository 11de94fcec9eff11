# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches whose atomic accesses find outdated values, as PTX's memory model lets them: `ordering.outdated`. A launch
without a fault is repeated so, if it has such loads. A fault that shows is one of the kernel. Results that no order of
warps gives tell only that they depend on the values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

import numpy as np

from ...base.errors import Code
from ...dialects.ptx import AtomCasOp, AtomOp, LoadAcquireOp, RedOp, StoreReleaseOp
from ..engine import Argument, TensorArgument
from .diagnosis import DiagnosedLaunch, Diagnosis, Finding, diagnose
from .faults import SimulationError, Site
from .late_loads import delay_loads
from .launch import Loads
from .memory.journal import Journal

_ATOMIC = (LoadAcquireOp, StoreReleaseOp, AtomOp, RedOp, AtomCasOp)
_Results: TypeAlias = Mapping[str, Argument]
_SEEDS = range(5)
"""The choices of outdated values that are tried."""
_CHOSEN = 3
"""How many of these are not left to chance."""
_ACCESSES = 10_000
"""The number of atomic accesses of all runs so far, after which none is left to chance."""
_LEAST, _MOST = 24, 72
"""The numbers of orders of the warps in which results that do not depend on outdated values are collected: the search
goes beyond the least number while some result has come only once, because others may still come.
"""
_RESIDENT = 4
"""The least number of clusters that run at the same time, so that the accesses of several blocks come in turns."""
_STEPS = 400_000
"""The operations of warps that all these orders may take, about."""
_ATOMIC_COST = 4
"""The operations of warps that an atomic access of a lane takes as long as, about."""
_CLOSE = 1e-2
"""How far floats may differ that were summed in another order."""

DEPENDS = (
    "the check assumes that accesses find the newest value; PTX's memory model allows this one another, with which the "
    "results are others than in any order of the threads"
)
_AT_ONCE = "it shows where several blocks run at the same time"
CUT = "the check assumes that atomic accesses after the first {} find the newest values"
ORDER = "order the accesses by ptx.fence, or by a release and an acquire; store and load on both sides need fence.sc"


@dataclass(frozen=True)
class OutdatedOutcome:
    """The faults of launches with outdated values, and the accesses on whose values the results depend."""

    findings: tuple[Finding, ...] = ()
    depends: tuple[Site, ...] = ()
    newest_after: int | None = None
    """The number of atomic accesses after which all found the newest values, if there were more."""
    assumed: Mapping[Site, str] = field(default_factory=dict[Site, str])
    """The accesses that may find values which are not kept."""


def examine_outdated(
    launch: DiagnosedLaunch, diagnosis: Diagnosis, wrong: Callable[[Diagnosis], str | None]
) -> OutdatedOutcome:
    """The outcome of a launch, whose own run had no fault, where accesses find outdated values. `wrong` says in words
    which condition the arguments do not meet afterwards.
    """
    if not launch.engine.options.races or not _may_find(launch):
        return OutdatedOutcome()
    usual: _Usual | None = None
    newest_after: int | None = None
    assumed: dict[Site, str] = {}
    accesses = 0
    for seed in _SEEDS:
        if seed >= _CHOSEN and accesses > _ACCESSES:
            break
        other = diagnose(_with(launch, Loads(seed=seed)))
        newest_after = newest_after or other.newest_after
        accesses += other.atomic_accesses
        assumed |= other.assumed
        if not other.outdated and (faults := [finding for finding in other.findings if not finding.is_remark]):
            return OutdatedOutcome(tuple(replace(finding, note=finding.note or _AT_ONCE) for finding in faults))
        if not other.outdated:
            if seed == 0:  # nothing that a load may have found
                break
            continue
        site, where = next(iter(other.outdated.items()))
        does = "comes before an earlier write" if site.op == StoreReleaseOp.name else "finds an outdated value"
        note = f"it shows where {site} {does} of {where}"
        if faults := [finding for finding in other.findings if not finding.is_remark]:
            return OutdatedOutcome(tuple(replace(finding, note=finding.note or note) for finding in faults))
        if other.arguments is None or diagnosis.arguments is None or other.is_as_in_order:
            continue
        if (text := wrong(other)) is not None:
            return OutdatedOutcome((Finding(Code.CHECK_FAILED, text, ORDER, site, note=note),))
        if _same(diagnosis.arguments, other.arguments):
            continue
        usual = usual or _Usual(launch, _cost(other), [diagnosis.arguments])
        if usual.lack(other.arguments):
            alone = (_results(_with(launch, Loads(seed=seed, site=site))) for site in other.outdated)
            sites = [
                site
                for site, results in zip(other.outdated, alone, strict=True)
                if results is not None and usual.lack(results)
            ]
            return OutdatedOutcome(depends=tuple(sites or other.outdated))
    return replace(_examine_late(launch, diagnosis, wrong, usual), newest_after=newest_after, assumed=assumed)


def _examine_late(
    launch: DiagnosedLaunch, diagnosis: Diagnosis, wrong: Callable[[Diagnosis], str | None], usual: "_Usual | None"
) -> OutdatedOutcome:
    """The outcome where relaxed loads come as late as they may, behind stores that follow them."""
    module = launch.program.module.clone()
    late = replace(launch, program=replace(launch.program, module=module))
    if diagnosis.arguments is None or not (moved := delay_loads(late.program.find())):
        return OutdatedOutcome()
    for seed in _SEEDS:
        other = diagnose(_with(late, Loads(hurry=seed or None), seed))
        note = f"it shows where {moved[0]} finds a value that another thread stores because of a later store"
        if faults := [finding for finding in other.findings if not finding.is_remark]:
            return OutdatedOutcome(tuple(replace(finding, note=finding.note or note) for finding in faults))
        if other.arguments is None or _same(diagnosis.arguments, other.arguments):
            continue
        if (text := wrong(other)) is not None:
            return OutdatedOutcome((Finding(Code.CHECK_FAILED, text, ORDER, moved[0], note=note),))
        usual = usual or _Usual(launch, _cost(other), [diagnosis.arguments])
        if usual.lack(other.arguments):
            return OutdatedOutcome(depends=tuple(moved))
    return OutdatedOutcome()


def _cost(diagnosis: Diagnosis) -> int:
    """About how many operations of warps a run takes as long as, since atomic accesses run lane by lane."""
    return max(diagnosis.steps + _ATOMIC_COST * diagnosis.atomic_accesses, 1)


def _may_find(launch: DiagnosedLaunch) -> bool:
    """Whether a kernel has an atomic load whose value it uses, or an atomic store, and another atomic access, which may
    be that of another block: blocks that run at the same time may also find other values than one after the other.
    """
    accesses = [op for op in launch.program.find().walk() if isinstance(op, _ATOMIC)]
    matters = (isinstance(op, StoreReleaseOp) or (op.results and op.results[0].first_use) for op in accesses)
    return (len(accesses) > 1 or prod(launch.config.grid) > 1) and any(matters)


def _with(launch: DiagnosedLaunch, loads: Loads, seed: int | None = None) -> DiagnosedLaunch:
    options = launch.engine.options
    options = replace(
        options, seed=options.seed if seed is None else seed, resident=max(options.resident or 1, _RESIDENT)
    )
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
    come. An order takes about this many `steps`.
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
        return 1 not in self.counts or 2 * len(self.found) <= self.orders

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
