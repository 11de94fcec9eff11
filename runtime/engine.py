# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Engines launch kernels over a grid: the simulator and CUDA. Here is the interface that both have, and the counters of
a launch: instructions by mnemonic, and the cost of each memory access.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..base.element_types import ElementType
from ..base.errors import Code
from ..base.parameters import ParameterKind
from ..base.spaces import GMEM, SMEM
from ..base.target import MAX_CLUSTER, PORTABLE_CLUSTER, Target
from ..layout.algebra.core import ComposedLayout, Layout
from .errors import Dim3, LaunchError, argument_error
from .options import Cluster, LaunchAttributes

if TYPE_CHECKING:
    from .accesses import Accesses

NumPyArray: TypeAlias = NDArray[Any]
"""An array of NumPy, of elements of any type."""
NumPyType: TypeAlias = np.dtype[Any]
"""The type of the elements of an array of NumPy."""


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """The grid in blocks and the block in threads, each as (x, y, z), the handle of the CUDA stream to launch in, and
    the attributes of the launch.

    LaunchError (E3105) for a size below 1, and for a grid that is not made of whole clusters.
    """

    grid: Dim3
    block: Dim3
    stream: int = 0
    attributes: LaunchAttributes = ()

    def __post_init__(self) -> None:
        cluster = self.cluster
        for name, size in (("grid", self.grid), ("block", self.block), ("cluster", cluster)):
            if len(size) != 3 or any(n < 1 for n in size):
                raise LaunchError(Code.RUN_LAUNCH, f"the {name} is {size}", "give three sizes of at least 1: x, y, z")
        for axis, blocks, extent in zip("xyz", self.grid, cluster, strict=True):
            if blocks % extent:
                rest = f"{axis} leaves {blocks % extent}"
                message = f"the grid {self.grid} does not consist of clusters of {cluster}: {rest}"
                raise LaunchError(Code.RUN_LAUNCH, message, "make each size of the grid a multiple of the cluster's")

    def of_kernel(self, cluster: Dim3 | None, non_portable: bool) -> "LaunchConfig":
        """The launch of a kernel, in clusters of the size that it names, if it does. LaunchError (E3105) for a launch
        that asks for others or for too large ones, and for a grid that is not made of whole clusters.
        """
        given = [attribute for attribute in self.attributes if isinstance(attribute, Cluster)]
        if cluster is not None and given and given[0].size != cluster:
            message = f"the kernel has clusters of {cluster} blocks, but the launch asks for {given[0].size}"
            raise LaunchError(Code.RUN_LAUNCH, message, "leave the cluster to the kernel, or ask for the same")
        size = cluster or self.cluster
        if prod(size) > PORTABLE_CLUSTER and not non_portable:
            hint = (
                f"a cluster has at most {PORTABLE_CLUSTER} blocks, or {MAX_CLUSTER} if the kernel says `non_portable`"
            )
            raise LaunchError(Code.RUN_LAUNCH, f"a cluster of {size} has {prod(size)} blocks", hint)
        return self if given or cluster is None else replace(self, attributes=(Cluster(cluster), *self.attributes))

    @property
    def cluster(self) -> Dim3:
        """The size of a cluster in blocks: (1, 1, 1) by default."""
        return next((attribute.size for attribute in self.attributes if isinstance(attribute, Cluster)), (1, 1, 1))

    def check_target(self, target: Target) -> None:
        """LaunchError (E3105) where the target of a kernel lacks an attribute of the launch."""
        if self.cluster != (1, 1, 1) and not target.has_clusters:
            message = f"the kernel is compiled for {target}, which has no clusters"
            raise LaunchError(Code.RUN_LAUNCH, message, "compile for sm_90 or newer, or launch without a cluster")

    @property
    def blocks(self) -> int:
        """How many blocks the grid has."""
        return prod(self.grid)

    @property
    def threads(self) -> int:
        """How many threads a block has."""
        return prod(self.block)


def numpy_type(element: ElementType) -> NumPyType:
    """The type of an array's elements, those narrower than a byte taking one each."""
    return np.dtype(element.library if element.in_numpy else getattr(ml_dtypes, element.library))


def strided_view(array: NumPyArray, shape: Sequence[int], steps: Sequence[int]) -> NumPyArray:
    """The elements from the first one of an array on, in another shape, with strides in bytes.

    NumPy's `as_strided` asks for the type by its name, and finds none for `float8_e5m2` of ml_dtypes.
    """
    if array.dtype.hasobject:  # exact numbers
        return np.lib.stride_tricks.as_strided(array, shape, steps)
    raw = array.view(f"V{array.itemsize}")
    return np.lib.stride_tricks.as_strided(raw, shape, steps).view(array.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class TensorArgument:
    """A tensor as a kernel sees it: one-dimensional storage in elements, and the layout that addresses it.

    The launch reads `storage` and leaves the results in it. `layout` maps coordinates to elements of the
    storage; None means that any use within the storage is right. Where `initialised` is false, the simulator
    treats a read before a write as an error. The simulator places the storage `offset` bytes after an address that is
    aligned as that of an allocation on a GPU is.
    """

    storage: NumPyArray
    layout: Layout | ComposedLayout | None = None
    initialised: bool = True
    offset: int = 0

    def __post_init__(self) -> None:
        if self.storage.ndim != 1 or not self.storage.flags.c_contiguous:
            raise LaunchError(
                Code.RUN_ARGUMENT,
                f"the storage of a tensor is an array of shape {self.storage.shape}",
                "it must be one-dimensional and contiguous; see tilefold.runtime.arrays.storage.storage_of",
            )

    @classmethod
    def of(cls, array: NumPyArray) -> "TensorArgument":
        """A NumPy array as it lies in memory: the launch reads and writes the array itself.

        LaunchError for an array without elements or with negative strides.
        """
        strides = [step // array.itemsize for step in array.strides]
        if not array.size or any(step < 0 for step in array.strides):
            raise LaunchError(
                Code.RUN_ARGUMENT,
                f"an array of shape {array.shape} with strides {array.strides} cannot be passed",
                "pass a copy of it, which has elements and positive strides",
            )
        span = 1 + sum((n - 1) * d for n, d in zip(array.shape, strides, strict=True))
        storage = strided_view(array, (span,), (array.itemsize,))
        layout = Layout(tuple(array.shape), tuple(strides)) if array.ndim else Layout(1, 0)
        return cls(storage, layout)


Argument: TypeAlias = TensorArgument | int | float | np.generic
"""An argument of a launch: a tensor, or a scalar of the argument's type."""


def pack_argument(name: str, kind: ParameterKind, value: object) -> bytes:
    """The bytes that a kernel reads for an argument. LaunchError (E3106) for a value that the kind cannot hold."""
    try:
        return kind.pack(value)
    except ValueError:
        given = repr(value)[:40] if isinstance(value, int | float | str) else f"a {type(value).__name__}"
        hint = "give a value that the type can hold"
        raise argument_error(name, f"is of type {kind.name}, but {given} was given", hint) from None


@dataclass(frozen=True, slots=True)
class InstructionCount:
    """How often an instruction was executed: by warps (as an issue slot counts it) and by threads."""

    warps: int = 0
    threads: int = 0

    def __add__(self, other: "InstructionCount") -> "InstructionCount":
        return InstructionCount(self.warps + other.warps, self.threads + other.threads)


def sum_counts(counts: Iterable[Mapping[str, InstructionCount]]) -> dict[str, InstructionCount]:
    """The sums of counts of the same name."""
    total: dict[str, InstructionCount] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total[name] + count if name in total else count
    return total


@dataclass(frozen=True, slots=True)
class AccessCount:
    """The cost of the executions of one memory operation in the source, summed over warps and blocks.

    `space` is `shared` or `global`, `kind` is `load`, `store`, `async`, `bulk`, `multicast` or `matrix`, `width` the
    bytes a thread moves, `requests` the warp-wide executions, `threads` the sum of their active threads. Of bulk
    copies and of multiplications by warpgroups, `requests` counts the copies or matrices, and `threads` their units of
    `width` bytes. A multicast's are those to further blocks, whose bytes the L2 cache need not read again.
    `transactions` are shared-memory wavefronts (passes over the 32 banks) or 32-byte sectors of global
    memory; `minimum` is the least that accesses of this width by this many threads can need.
    """

    op: str
    location: str
    space: str
    kind: str
    width: int
    requests: int = 0
    threads: int = 0
    transactions: int = 0
    minimum: int = 0

    def __add__(self, other: "AccessCount") -> "AccessCount":
        """The counts of two operations together, under the name of the first."""
        return replace(
            self,
            requests=self.requests + other.requests,
            threads=self.threads + other.threads,
            transactions=self.transactions + other.transactions,
            minimum=self.minimum + other.minimum,
        )

    @property
    def excess(self) -> int:
        """Transactions beyond the minimum: bank conflicts, or wasted sectors of global memory."""
        return self.transactions - self.minimum


@dataclass(frozen=True, slots=True)
class Counters:
    """The counts of one launch.

    `instructions` maps PTX mnemonics (`ld.global.v4.b32`) to counts, `accesses` lists the memory operations
    in the order in which they appear in the program, `steps` is the number of operations that warps executed. `lines`
    has the instructions by `file:line`.
    """

    instructions: Mapping[str, InstructionCount] = field(default_factory=lambda: MappingProxyType({}))
    accesses: tuple[AccessCount, ...] = ()
    steps: int = 0
    lines: Mapping[str, InstructionCount] = field(default_factory=lambda: MappingProxyType({}))

    def by_place(self) -> list[AccessCount]:
        """The accesses, those by one operation of the source to one memory together: a loop that is unrolled, or a copy
        of many elements, has many.
        """
        places: dict[tuple[str, str, str, str, int], AccessCount] = {}
        for access in self.accesses:
            key = access.op, access.location, access.space, access.kind, access.width
            places[key] = places[key] + access if key in places else access
        return list(places.values())

    def __str__(self) -> str:
        parts = [f"{sum(count.warps for count in self.instructions.values())} instructions of warps"]
        for name, (total, least) in (("wavefronts", self.wavefronts()), ("sectors", self.sectors())):
            if total:
                parts.append(f"{total} {name}" if total == least else f"{total} {name} where {least} would do")
        return ", ".join(parts)

    def wavefronts(self) -> tuple[int, int]:
        """Shared-memory wavefronts of the whole launch, and the minimum."""
        return self._total(SMEM.ptx)

    def sectors(self) -> tuple[int, int]:
        """Global-memory sectors of the whole launch, and the minimum."""
        return self._total(GMEM.ptx)

    def _total(self, space: str) -> tuple[int, int]:
        chosen = [access for access in self.accesses if access.space == space]
        return sum(a.transactions for a in chosen), sum(a.minimum for a in chosen)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a launch: `seconds` it took, `output` the text that the kernel printed, as far as the
    engine sees it, and `counters`, empty on an engine that does not count. `exact` has the tensors afterwards, by their
    names, as arrays of exact numbers, where the launch ran in exact arithmetic. `accesses` are its bytes of the host's
    memory, where the engine keeps them.
    """

    seconds: float
    output: str = ""
    counters: Counters = field(default_factory=Counters)
    exact: Mapping[str, object] = field(default_factory=dict[str, Any])
    accesses: "Accesses | None" = None

    def __repr__(self) -> str:
        """One line, as a notebook shows the result of a launch."""
        counted = f": {self.counters}" if self.counters.instructions or self.counters.accesses else ""
        return f"<launch of {self.seconds * 1e3:.3g} ms{counted}>"


ProgramT = TypeVar("ProgramT", contravariant=True)
CodeT = TypeVar("CodeT")


@dataclass(frozen=True, slots=True)
class Launch(Generic[CodeT]):
    """A kernel in the form of an engine, its sizes and its arguments by name, on a device of several."""

    code: CodeT
    config: LaunchConfig
    args: Mapping[str, Argument]
    device: int = 0


class Engine(Protocol[ProgramT]):
    """Runs programs of one kind: the simulator IR modules, the CUDA engine assembled artifacts."""

    @property
    def name(self) -> str:
        """The name on the command line: `sim` or `cuda`."""
        ...

    def launch(self, program: ProgramT, config: LaunchConfig, args: Mapping[str, Any]) -> RunResult:
        """Runs the kernel on arguments by name; returns when it has finished and the tensors hold its results.

        Each engine takes an `Argument`; CUDA also arrays that are in a GPU's memory. TilefoldError for a launch that
        does not fit the kernel, and for an error of the kernel while it runs.
        """
        ...
