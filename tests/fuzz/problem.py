# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A random kernel and what it must compute: what generators make, and `.engines` runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.layout.algebra.core import Layout

Storage = NDArray[Any]
INTERPRETED = ("sm_80", "sm_90a")
"""Targets whose PTX of integer programs is interpreted."""


@dataclass(frozen=True)
class Tensor:
    """An argument in global memory: its storage before the launch, one-dimensional, and what the launch must leave.

    `expected` None: the storage stays as it is. `layout` says where the elements are, which a kernel asks for whose
    tensor has `?`. `fresh` tells the simulator that nothing was written yet.
    """

    storage: Storage
    expected: Storage | None = None
    layout: Layout | None = None
    fresh: bool = False

    @property
    def wanted(self) -> Storage:
        """The storage after the launch."""
        return self.storage if self.expected is None else self.expected


@dataclass(frozen=True)
class Problem:
    """A program whose kernel `kernel` is launched on `arguments`, which are tensors and numbers by their names."""

    text: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: Mapping[str, Tensor | np.generic | int | float]
    kernel: str = "k"
    target: str = "sm_80"
    tolerance: float = 0.0
    """How far a number may be from what is expected, relative to it or to 1; 0 compares bits, where all NaN are one."""
    costs: bool = False
    """Whether the costs of its accesses to global memory are compared with those that are told before the run."""
    interpreted: tuple[str, ...] = ()
    """Targets whose PTX is interpreted: of a kernel whose threads do not exchange anything."""
    source: str = ""
    """What the text was made of, to be shown where it fails."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """The blocks of a cluster."""
    names: frozenset[str] = field(default_factory=lambda: frozenset[str]())
    """Arguments that are compared; all tensors where there are none."""

    @property
    def compared(self) -> dict[str, Tensor]:
        """The tensors whose storage is compared after a launch."""
        tensors = {name: each for name, each in self.arguments.items() if isinstance(each, Tensor)}
        return {name: each for name, each in tensors.items() if name in (self.names or tensors)}

    def differences(self, found: Mapping[str, Storage]) -> str | None:
        """What is wrong with the tensors after a launch; None where they are as they must be."""
        for name, tensor in self.compared.items():
            wrong = np.flatnonzero(~_same(found[name], tensor.wanted, self.tolerance))
            if wrong.size:
                at = int(wrong[0])
                got, wanted = found[name][at], tensor.wanted[at]
                return f"{wrong.size} elements of {name} differ, first {at}: {got!r} instead of {wanted!r}"
        return None


def _same(found: Storage, wanted: Storage, tolerance: float) -> NDArray[np.bool_]:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    bits = np.dtype(f"u{found.itemsize}")
    same = found.view(bits) == wanted.view(bits)
    if found.dtype.kind in "iub":
        return same
    with np.errstate(invalid="ignore"):
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        near = np.abs(a - b) <= tolerance * np.maximum(np.abs(b), 1)
    return same | (np.isnan(a) & np.isnan(b)) | (near & (tolerance > 0))


@dataclass(frozen=True)
class Generator:
    """Makes the problem of a seed. `refusals` are the codes with which its kernels may be refused: any other is a
    fault of the compiler, or of the generator.
    """

    make: Callable[[int], Problem]
    refusals: frozenset[str] = frozenset()
    on_gpus: bool = True
    """Whether the GPUs at hand have what its kernels need."""
