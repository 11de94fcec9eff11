# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared and tensor memory of resources, each placed in one block of memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tilefold.base.spaces import SMEM, TMEM, Cells
from tilefold.builder.pipelines.groups import pipeline_error
from tilefold.builder.primitives.arrays import LARGE, VECTOR, Array
from tilefold.builder.scalars.dtypes import DTYPES, DType, as_dtype

_BYTE = DTYPES["Uint8"]


class SmemAllocation:
    """Shared memory that a resource needs: `size_bytes`, or `count` elements of a type. `offset` is its place in the
    block's memory in bytes, after `SmemAllocator.compute_layout`.
    """

    def __init__(
        self, name: str, size_bytes: int | None = None, *, dtype: object = None, count: int = 1, alignment: int = VECTOR
    ) -> None:
        self.name = name
        self.dtype: DType = _BYTE if dtype is None else as_dtype(dtype)
        self.count = count if size_bytes is None else size_bytes * 8 // self.dtype.bits
        self.size_bytes = -(-self.count * self.dtype.bits // 8)
        self.alignment = alignment
        self.offset = 0


class TmemAllocation:
    """Columns of tensor memory that a resource needs. `offset` is the first of them, counted from the address that the
    kernel's allocation returns, after `TmemAllocator.compute_layout`.
    """

    def __init__(self, name: str, num_columns: int) -> None:
        self.name = name
        self.num_columns = num_columns
        self.offset = 0


class NeedsMemory(Protocol):
    """A resource, as allocators see it."""

    def get_smem_requirements(self) -> Sequence[SmemAllocation]: ...
    def get_tmem_requirements(self) -> Sequence[TmemAllocation]: ...


@dataclass(frozen=True)
class ResourceContext:
    """The memory that all resources share: the bytes of shared memory, and the place to which the kernel's allocation
    of tensor memory writes its address. A kernel without the one or the other has None.
    """

    smem_base: Any
    tmem_ptr_i32: Any


class SmemAllocator:
    """Places the shared memory of resources in one array of bytes."""

    def __init__(self) -> None:
        self.smem_base: Any = None
        self.tmem_ptr_alloc: SmemAllocation | None = None
        self._parts: list[SmemAllocation] = []
        self._overlays: list[list[list[SmemAllocation]]] = []
        self._size = 0

    def add(self, allocation: SmemAllocation) -> SmemAllocation:
        """Adds memory of the kernel's own, and returns it."""
        if not any(part is allocation for part in self._parts):
            self._parts.append(allocation)
        return allocation

    def add_tmem_ptr(self, allocation: SmemAllocation) -> SmemAllocation:
        """Adds the place for the address of tensor memory, and returns it."""
        self.tmem_ptr_alloc = allocation
        return self.add(allocation)

    def add_resource(self, resource: NeedsMemory) -> None:
        """Adds the memory that a resource needs."""
        for allocation in resource.get_smem_requirements():
            self.add(allocation)

    def add_pipeline_group(self, group: Any) -> None:
        """Adds a group, with the memory of its members."""
        for member in group.members:
            self.add_resource(member)

    def add_alias_group(self, alternatives: Sequence[Sequence[SmemAllocation]]) -> None:
        """Gives each of several lists of allocations the same memory: they are used one after another."""
        self._overlays.append([[self.add(part) for part in parts] for parts in alternatives])

    def compute_layout(self) -> None:
        """Places all that was added: tiles of whole kilobytes first, each at a multiple of 1024 bytes, where swizzles
        of addresses begin. Memory that shares its place stands where the first of its lists would.
        """
        shared = [part for overlay in self._overlays for parts in overlay for part in parts]
        alone = [part for part in self._parts if not any(part is other for other in shared)]
        units = [*([[part]] for part in alone), *self._overlays]
        end = 0
        for unit in sorted(units, key=_is_small):
            end = max([_place(parts, end) for parts in unit])
        self._size = end

    def allocate(self) -> Array:
        """Allocates the memory, unless that has been done, and returns it as bytes."""
        if self.smem_base is None:
            self.smem_base = Array(_BYTE, (max(self._size, 1),), SMEM.name, LARGE)
        return self.smem_base

    def get(self, allocation: SmemAllocation) -> Array:
        """The memory of an allocation as an array of its elements."""
        place = self.allocate().data_ptr() + allocation.offset
        return Array(place, (allocation.count,), dtype=allocation.dtype)


def _is_small(unit: Sequence[Sequence[SmemAllocation]]) -> bool:
    return not all(part.size_bytes % LARGE == 0 for parts in unit for part in parts)


def _place(parts: Iterable[SmemAllocation], end: int) -> int:
    """Places allocations one after another from `end` on; returns where the last one ends."""
    for part in parts:
        align = max(part.alignment, LARGE if part.size_bytes >= LARGE else part.dtype.bits // 8)
        part.offset = -(-end // align) * align
        end = part.offset + part.size_bytes
    return end


class TmemAllocator:
    """Places the tensor memory of resources; the kernel itself allocates the columns."""

    def __init__(self) -> None:
        self._parts: list[TmemAllocation] = []
        self._overlays: list[list[list[TmemAllocation]]] = []
        self.num_columns = 0

    def add_resource(self, resource: NeedsMemory) -> None:
        """Adds the columns that a resource needs."""
        self._parts += [part for part in resource.get_tmem_requirements() if part not in self._parts]

    def add_alias_group(self, alternatives: Sequence[Sequence[TmemAllocation]]) -> None:
        """Gives each of several lists of allocations the same columns."""
        self._overlays.append([list(parts) for parts in alternatives])
        self._parts += [part for parts in alternatives for part in parts if part not in self._parts]

    def compute_layout(self) -> None:
        """Places all that was added, one after another. Raises TilefoldError (E5011) for more than 512 columns."""
        shared = [part for overlay in self._overlays for parts in overlay for part in parts]
        units = [*([[part]] for part in self._parts if part not in shared), *self._overlays]
        end = 0
        for unit in units:
            ends: list[int] = []
            for parts in unit:
                at = end
                for part in parts:
                    part.offset, at = at, at + part.num_columns
                ends.append(at)
            end = max(ends)
        self.num_columns = end
        form = TMEM.form
        assert isinstance(form, Cells)
        if end > form.columns:
            problem = f"the resources need {end} columns of tensor memory"
            raise pipeline_error(problem, f"a multiprocessor has {form.columns}; add_alias_group shares them")
