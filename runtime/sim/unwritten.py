# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of outputs that a launch leaves unwritten: how many, and the store that ought to have written them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, Operation, SSAValue

from ...base.spaces import GMEM
from ...dialects import ptx, tile
from ...dialects.kernel import KernelOp
from ..arrays.storage import element_indices
from ..engine import NumPyArray, TensorArgument
from .faults import Site, site_of
from .memory.journal import Journal
from .memory.provenance import name_of

if TYPE_CHECKING:
    from .warp import Warp

COVER = "let the grid and the threads cover the whole tensor, or give the argument values that may stay"


@dataclass(frozen=True)
class Elements:
    """The elements of a tensor in its storage, by their coordinates."""

    argument: TensorArgument

    def of(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The elements with a byte that is marked, of those of the storage."""
        elements: Any = marked.reshape(-1, self.argument.storage.itemsize).any(axis=1)
        if self.argument.layout is not None:
            indices = element_indices(self.argument.layout)
            if int(indices.max()) < elements.size:
                return elements[indices]
        return elements

    def missing(self, journal: Journal) -> str | None:
        """Which elements a launch has left unwritten, in words."""
        elements = self.of(journal.unwritten(self.argument.storage))
        if not elements.any():
            return None
        first = ", ".join(map(str, np.argwhere(elements)[0].tolist()))
        count = int(elements.sum())
        if count == elements.size:
            return f"the launch writes none of its {elements.size} elements"
        return f"the launch leaves {count} of {elements.size} elements unwritten, the first of them at ({first})"


@dataclass(slots=True)
class Stores(Journal):
    """An observer of a launch that keeps which bytes of a range of global memory, from `start` on, each operation
    writes.
    """

    start: int = 0
    size: int = 0
    written: dict[Site, NDArray[np.bool_]] = field(default_factory=dict[Site, NDArray[np.bool_]])

    @property
    def is_watching(self) -> bool:
        """Each write counts, whatever their order."""
        return True

    def see(self, space: str, warp: "Warp", site: Site, rows: NumPyArray, width: int, *, writes: bool) -> None:
        """Sees the active lanes write one row of `width` bytes each."""
        if not writes or space != GMEM.ptx:
            return
        at = (rows[:, None] * width + np.arange(width)).ravel() - self.start
        at = at[(at >= 0) & (at < self.size)]
        if at.size:
            self.written.setdefault(site, np.zeros(self.size, bool))[at] = True


def least_store(kernel: KernelOp, name: str, elements: Elements, stores: Stores) -> tuple[Site, str] | None:
    """The operation that writes the fewest elements of an argument, with a sentence on it; None if nothing in the
    kernel does.
    """
    counts = dict.fromkeys(_stores_to(kernel, name), 0)
    counts |= {site: int(elements.of(written).sum()) for site, written in stores.written.items()}
    if not counts:
        return None
    site = min(counts, key=lambda site: counts[site])
    if not counts[site]:
        return site, "no thread executes this store to it"
    if len(counts) == 1:
        return site, f"this store writes {counts[site]} of its elements"
    return site, f"of {len(counts)} stores to it, this one writes the fewest elements: {counts[site]}"


def _stores_to(kernel: KernelOp, name: str) -> Iterator[Site]:
    """The operations by which a kernel may store to an argument."""
    for op in kernel.walk():
        target = _target(op)
        if target is not None and name_of(target) == name:
            yield site_of(op)


def _target(op: Operation) -> SSAValue | None:
    """The tensor in global memory, or the pointer there, to which an operation stores."""
    match op:
        case ptx.StoreOp():
            target = op.ptr
        case tile.StoreOp() | tile.FillOp():
            target = op.tensor
        case tile.CopyOp() | tile.MapOp() | tile.AtomCallOp():
            target = op.dst
        case _:
            return None
    kind: Attribute = target.type
    is_global = kind.space.data is GMEM if isinstance(kind, tile.TensorType) else kind == ptx.GLOBAL
    return target if is_global else None
