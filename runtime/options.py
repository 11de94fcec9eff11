# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes of a launch and its options: attributes of the launch, and how the simulator runs it."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias, TypedDict, Unpack, cast

from ..base.errors import Code
from ..base.limits import DEFAULT_LIMITS, Limits, clock_start
from ..base.printable import shown
from ..base.target import MAX_BLOCK, MAX_GRID, MAX_THREADS
from .errors import Dim3, LaunchError


def dim3(subject: str, size: Any) -> Dim3:
    """One to three sizes as x, y, z. LaunchError (E3105), which names the `subject`, for anything else, and for a grid
    or a block that exceeds the limits of all GPUs.
    """
    text = shown(cast(object, size))
    given = tuple(cast("tuple[Any, ...]", size)) if isinstance(size, tuple | list) else (size,)
    if not given:
        raise LaunchError(Code.RUN_LAUNCH, f"the launch has no {subject}", f"write .launch(..., {subject}=(x, y, z))")
    sizes = tuple(n if type(n) is int else _index(n) for n in given)
    if not 1 <= len(sizes) <= 3 or any(n < 1 for n in sizes):
        raise LaunchError(
            Code.RUN_LAUNCH, f"the {subject} is {text}", "give one to three integers of at least 1: x, y, z"
        )
    x, y, z = (*sizes, 1, 1)[:3]
    if subject == "block" and x * y * z > MAX_THREADS:
        message = f"the block {text} has {x * y * z} threads; at most {MAX_THREADS} are possible"
        raise LaunchError(Code.RUN_LAUNCH, message, f"launch more blocks of {MAX_THREADS} threads or fewer")
    most = MAX_BLOCK if subject == "block" else MAX_GRID
    if any(n > limit for n, limit in zip((x, y, z), most, strict=True)):
        message = f"the {subject} is {text}; x, y, z can be at most {most}"
        raise LaunchError(Code.RUN_LAUNCH, message, "x has the greatest limit: give the largest size to it")
    return x, y, z


def _index(n: Any) -> int:
    """A size that is an integer of NumPy or the like; 0 for anything else."""
    try:
        return 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        return 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A launch in clusters of `size` blocks, which run at the same time and share their shared memory."""

    size: Dim3


@dataclass(frozen=True, slots=True)
class ProgrammaticStreamSerialization:
    """A launch that may begin before earlier work in its stream has ended (CUDA C++ Programming Guide, Programmatic
    Dependent Launch).
    """


@dataclass(frozen=True, slots=True)
class Cooperative:
    """A launch whose blocks run all at the same time, so that they may wait for each other; one that does not fit the
    GPU fails.
    """


@dataclass(frozen=True, slots=True)
class LaunchEvent:
    """An event by its handle, which the driver records when all blocks of a launch have begun; `programmatic` ones when
    all have executed griddepcontrol.launch_dependents or, with `at_start`, have begun.
    """

    handle: int
    flags: int = 0
    programmatic: bool = False
    at_start: bool = False


LaunchAttribute: TypeAlias = Cluster | ProgrammaticStreamSerialization | Cooperative | LaunchEvent
"""A property of a launch beside its sizes (CUDA Driver API, CUlaunchAttribute)."""
LaunchAttributes: TypeAlias = tuple[LaunchAttribute, ...]


class CheckKeywords(TypedDict, total=False):
    """The fields of `SimOptions` that a search for faults leaves open, as keyword arguments."""

    max_steps: int | None
    max_memory: int | None
    seed: int
    resident: int
    numbers: bool
    processes: int | None
    max_seconds: float | None
    numerics: str


class SimKeywords(CheckKeywords, total=False):
    """The fields of `SimOptions` as keyword arguments."""

    races: bool
    exact: bool


class LaunchOptions(SimKeywords, total=False):
    """The options that few launches have: those of the simulator, `cooperative`, and the events that the driver
    records, of torch or of cuda-python, or by their handles. The others CuTe programs give: the most threads of a
    block, for which a kernel is compiled here as it is launched, hints about shared memory, which is placed without,
    and `fallback_cluster`, the size that clusters may have where one of the size `cluster` finds no room: here all
    have the size `cluster`.
    """

    cooperative: bool
    launch_completion_event: Any
    launch_completion_event_flags: int
    programmatic_event: Any
    programmatic_event_flags: int
    programmatic_event_trigger_at_block_start: int
    max_number_threads: Any
    smem_merge_branch_allocs: bool
    preferred_smem_carveout: int | None
    hint_smem_base_uniform: bool
    fallback_cluster: Any


OPTIONS = (
    "grid", "block", "cluster", "stream", "device", "stage", "smem", "use_pdl", "cooperative", "races", "max_steps",
    "max_memory", "max_seconds", "seed", "resident", "exact", "numbers", "numerics", "processes",
    "launch_completion_event", "programmatic_event",
)  # fmt: skip
"""The options of a launch that a kernel may need."""
_GRID = "grid= is the number of blocks, one to three sizes: launch(grid=..., block=...)"
_BLOCK = "block= is the number of threads of a block, one to three sizes: launch(grid=..., block=...)"
_OTHERS: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(("blocks", "nblocks", "numblocks", "gridsize", "griddim", "grids", "numctas", "ctas"), _GRID),
    **dict.fromkeys(("threads", "nthreads", "numthreads", "blocksize", "blockdim", "threadsperblock"), _BLOCK),
    **dict.fromkeys(("numwarps", "warps", "nwarps"), "a warp has 32 threads: block=32 * warps"),
    **dict.fromkeys(
        ("shared", "sharedmem", "sharedmemory", "sharedbytes", "smembytes", "dynamicsmem", "smemsize", "sharedsize"),
        "leave it out: the kernel declares its shared memory by cute.make_smem_tensor",
    ),
    **dict.fromkeys(("clustersize", "clusterdim", "clusters"), "cluster= is the size of a cluster in blocks"),
    **dict.fromkeys(("pdl", "programmatic"), "use_pdl=True lets the kernel begin before earlier work has ended"),
    **dict.fromkeys(("numstages", "constants", "args"), "give it to the kernel, as an argument: k(...).launch(...)"),
    **dict.fromkeys(("gpu", "cuda", "simulate", "sim", "backend"), 'device= is "cuda", "cuda:1", "sim" or "auto"'),
    **dict.fromkeys(("racecheck", "checkraces", "sanitize"), "races=False does not look for data races"),
    **dict.fromkeys(("sync", "wait", "blocking"), "a launch does not wait for the GPU: synchronize the stream"),
})  # fmt: skip
"""Hints by names in small letters, without underscores."""


def option_hint(name: str) -> str:
    """A hint for an option that a launch lacks: the option that is meant, or all of them."""
    if hint := _OTHERS.get(re.sub("_", "", name).lower()):
        return hint
    similar = get_close_matches(name, OPTIONS, 2, 0.6)
    return f"did you mean {' or '.join(similar)}?" if similar else f"it takes {', '.join(OPTIONS)}"


def launch_attributes(cluster: object = None, use_pdl: bool = False, **more: Unpack[LaunchOptions]) -> LaunchAttributes:
    """The attributes for the options of a launch in Python: the size of a cluster in blocks, whether the launch is a
    programmatic one, and those of `LaunchOptions`. A cluster of one block adds none. Equal options give the same
    object.

    LaunchError (E3105) for a cluster that is not one to three sizes, an option that there is not or has another value,
    a fallback that does not divide the cluster, and for no event.
    """
    if unknown := more.keys() - _OPTIONS.keys():
        name = min(unknown)
        raise LaunchError(Code.RUN_LAUNCH, f"a launch has no option '{name}'", option_hint(name))
    size = (1, 1, 1) if cluster is None else dim3("cluster", cluster)
    if (fallback := more.get("fallback_cluster")) is not None:
        _check_fallback(dim3("fallback_cluster", fallback), size)
    events: list[LaunchEvent] = []
    for name in more:
        _OPTIONS[name](name, more.get(name))
    if (event := more.get("launch_completion_event")) is not None:
        events.append(LaunchEvent(_handle(event), more.get("launch_completion_event_flags", 0)))
    if (event := more.get("programmatic_event")) is not None:
        at_start = bool(more.get("programmatic_event_trigger_at_block_start", 0))
        events.append(LaunchEvent(_handle(event), more.get("programmatic_event_flags", 0), True, at_start))
    if type(use_pdl) is not bool:
        _check_switch("use_pdl", use_pdl)
    return _attributes(size, bool(use_pdl), bool(more.get("cooperative", False)), tuple(events))


def _check_fallback(fallback: Dim3, cluster: Dim3) -> None:
    """LaunchError (E3105) unless clusters of the size `cluster` consist of whole ones of the size `fallback`, as the
    driver wants (CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION).
    """
    if any(size % part for size, part in zip(cluster, fallback, strict=True)):
        problem = f"the fallback_cluster {fallback} does not divide the cluster {cluster}"
        raise LaunchError(Code.RUN_LAUNCH, problem, "give sizes that divide those of the cluster, or leave it out")


def _check_switch(name: str, value: object) -> None:
    """LaunchError (E3105) unless it is True, False, 1, 0, or None, which stands for False."""
    if value is not None and not (isinstance(value, int) and value in (0, 1)):
        raise LaunchError(Code.RUN_LAUNCH, f"{name} is {shown(value)}", "give True or False")


def _check_number(name: str, value: object) -> None:
    """LaunchError (E3105) unless it is an integer of 32 bits, or None."""
    if value is not None and not (type(value) is int and -(1 << 31) <= value < 1 << 31):
        raise LaunchError(Code.RUN_LAUNCH, f"{name} is {shown(value)}", "give an integer, or leave it out")


def _check_nothing(name: str, value: object) -> None:
    """An option that is checked where it is used."""


_OPTIONS: Mapping[str, Callable[[str, Any], None]] = MappingProxyType(
    {
        "cooperative": _check_switch,
        "launch_completion_event": _check_nothing,
        "launch_completion_event_flags": _check_number,
        "programmatic_event": _check_nothing,
        "programmatic_event_flags": _check_number,
        "programmatic_event_trigger_at_block_start": _check_switch,
        "max_number_threads": _check_nothing,
        "smem_merge_branch_allocs": _check_switch,
        "preferred_smem_carveout": _check_number,
        "hint_smem_base_uniform": _check_switch,
        "fallback_cluster": _check_nothing,
    }
)


def check_smem(smem: object) -> None:
    """LaunchError (E3105) unless it is None or a number of bytes."""
    if smem is not None and (type(smem) is not int or not 0 <= smem < 1 << 31):
        raise LaunchError(
            Code.RUN_LAUNCH, f"smem is {shown(smem)}", "leave it out: the kernel declares its shared memory"
        )


def _handle(event: Any) -> int:
    """The handle of an event of torch or cuda-python."""
    given = getattr(event, "cuda_event", event)
    try:
        handle = 0 if isinstance(given, float | str) else int(given)
    except (TypeError, ValueError):
        handle = 0
    if not 0 < handle < 1 << 64:
        hint = "give one of torch, recorded before, or of cuda-python"
        raise LaunchError(Code.RUN_LAUNCH, f"expected an event, got {type(event).__name__}", hint)
    return handle


@lru_cache
def _attributes(cluster: Dim3, use_pdl: bool, cooperative: bool, events: tuple[LaunchEvent, ...]) -> LaunchAttributes:
    attributes: list[LaunchAttribute] = [] if cluster == (1, 1, 1) else [Cluster(cluster)]
    attributes += [ProgrammaticStreamSerialization()] * use_pdl + [Cooperative()] * cooperative
    return (*attributes, *events)


NUMERICS = ("hardware", "exact-sum")
"""How the simulator sums products of matrix instructions: as the tensor cores of a target, or in f64, rounded once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimOptions:
    """How the simulator runs a launch. A GPU has none of these options, and ignores them.

    `races` looks for accesses that nothing orders. A run ends with an error after `max_steps` operations of warps, or
    where it needs more than `max_memory` MiB, or after `max_seconds`; None is the simulator's own limit. `seed`
    chooses the order of warps; 0 is their own order. So many `resident` blocks run at the same time, in whole
    clusters. At most `processes` processes share out the blocks; None is as many as `TILEFOLD_SIM_PROCESSES` says, or
    else one for each core. With `exact` kernels compute with exact numbers instead of floats. `numbers` looks for
    those that go wrong: the first NaN or infinity, indices that wrap, conversions that lose numbers, differences
    without digits. `numerics` is one of `NUMERICS`. The seconds count from when the options, or the command that
    made them, have `began`, over all launches. LaunchError (E3105) for other values.
    """

    races: bool = True
    max_steps: int | None = None
    max_memory: int | None = None
    seed: int = 0
    resident: int = 1
    exact: bool = False
    numbers: bool = False
    processes: int | None = None
    max_seconds: float | None = None
    numerics: str = NUMERICS[0]
    began: float = field(default_factory=clock_start, compare=False)

    @classmethod
    def of(cls, options: SimKeywords | CheckKeywords, kind: type[CheckKeywords] = SimKeywords) -> "SimOptions":
        """The options for keyword arguments of a kind. LaunchError (E3105) for one that the kind lacks."""
        if unknown := options.keys() - kind.__annotations__:
            name, known = min(unknown), sorted(kind.__annotations__)
            similar = get_close_matches(name, known, 1, 0.6)
            hint = f"did you mean {similar[0]}?" if similar else f"it takes {', '.join(known)}"
            raise LaunchError(Code.RUN_LAUNCH, f"unknown option '{name}'", hint)
        return cls(**cast("SimKeywords", options))

    @classmethod
    def taken_from(cls, options: LaunchOptions) -> "SimOptions":
        """Those among the options of a launch, from which they are removed."""
        given = cast("dict[str, Any]", options)
        return cls(**{name: given.pop(name) for name in SimKeywords.__annotations__ if name in given})

    def __post_init__(self) -> None:
        for name, switch in (("races", self.races), ("exact", self.exact), ("numbers", self.numbers)):
            if type(switch) is not bool:
                raise LaunchError(Code.RUN_LAUNCH, f"{name} is {shown(switch)}", "give True or False")
        for name in ("max_steps", "max_memory", "resident", "processes"):
            limit = getattr(self, name)
            if (limit is not None or name == "resident") and (type(limit) is not int or limit < 1):
                raise LaunchError(Code.RUN_LAUNCH, f"{name} is {shown(limit)}", "give an integer of at least 1")
        seconds = self.max_seconds
        if seconds is not None and not (type(seconds) in (int, float) and seconds > 0):
            raise LaunchError(Code.RUN_LAUNCH, f"max_seconds is {shown(seconds)}", "give a number above 0")
        if self.numerics not in NUMERICS:
            hint = f"give one of {', '.join(map(repr, NUMERICS))}"
            raise LaunchError(Code.RUN_LAUNCH, f"numerics is {shown(self.numerics)}", hint)
        if type(self.seed) is not int:
            raise LaunchError(Code.RUN_LAUNCH, f"seed is {shown(self.seed)}", "give an integer")

    @property
    def limits(self) -> Limits:
        """The limits of the run."""
        return Limits(
            steps=DEFAULT_LIMITS.steps if self.max_steps is None else self.max_steps,
            bytes=DEFAULT_LIMITS.bytes if self.max_memory is None else self.max_memory << 20,
            seconds=DEFAULT_LIMITS.seconds if self.max_seconds is None else self.max_seconds,
            began=self.began,
        )
