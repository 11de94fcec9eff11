# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that load a box and store it again, and what must come of them, element by element."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.layout.algebra.core import Layout
from tilefold.runtime.engine import TensorArgument

from tests.sim.harness import entry

SWIZZLES = {"": 0, "32B": 1, "64B": 2, "128B": 3}


@dataclass(frozen=True)
class Case:
    """A tensor of elements as maps name them, with extents and strides in elements, both from the contiguous mode on;
    a box, and where it begins.
    """

    element: str
    dtype: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    at: tuple[int, ...]
    swizzle: str = ""
    nan: bool = False

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return np.dtype(self.dtype).itemsize

    @property
    def bytes(self) -> int:
        """The bytes of the box."""
        return int(np.prod(self.box)) * self.size

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """The names of extents and strides among the parameters."""
        rank = len(self.extents)
        return [f"E{n}" for n in range(rank)], [f"S{n}" for n in range(1, rank)]

    def recipe(self, tensor: str) -> str:
        """The recipe of the tensor's map."""
        extents, strides = self.names
        of_strides = f" strides ({', '.join(f'{name} * {self.size}' for name in strides)})" if strides else ""
        fill = " fill nan" if self.nan else ""
        swizzle = f" swizzle {self.swizzle}" if self.swizzle else ""
        return f"{self.element} {tensor} dims ({', '.join(extents)}){of_strides} box {show(self.box)}{swizzle}{fill}"

    def arguments(self, tensors: str) -> tuple[str, dict[str, int]]:
        """The text of the parameters and their values: `tensors`, extents, strides, and a map of each tensor."""
        extents, strides = self.names
        values = dict(zip((*extents, *strides), (*self.extents, *self.strides[1:]), strict=True))
        pointers = [f"%{name}: !ptx.ptr<global> align 16" for name in tensors]
        numbers = [f"%{name}: i64" for name in values]
        maps = [f'%{name}_map: !ptx.tensor_map of "{self.recipe(name)}"' for name in tensors if name != "R"]
        return ", ".join((*pointers, *numbers, *maps)), values

    def coordinates(self) -> str:
        """The operations that define the coordinates %x0 and so on."""
        return "".join(f"%x{n} = arith.constant {x} : i32\n" for n, x in enumerate(self.at))

    @property
    def coords(self) -> str:
        """The coordinates as operands."""
        return ", ".join(f"%x{n}" for n in range(len(self.at)))

    def indices(self) -> list[tuple[int, int | None]]:
        """For each element of the box its place in it, and in the tensor; None where it is outside."""
        found: list[tuple[int, int | None]] = []
        for number, reversed_ in enumerate(product(*map(range, reversed(self.box)))):
            index = tuple(x + i for x, i in zip(self.at, reversed(reversed_), strict=True))
            inside = all(0 <= i < n for i, n in zip(index, self.extents, strict=True))
            found.append((number, sum(i * d for i, d in zip(index, self.strides, strict=True)) if inside else None))
        return found

    def place(self, number: int) -> int:
        """The byte in shared memory, at an address that the swizzle does not change, of an element of the box."""
        line, byte = divmod(number * self.size, 128)
        chunk, rest = divmod(byte, 16)
        return line * 128 + (chunk ^ line % (1 << SWIZZLES[self.swizzle])) * 16 + rest

    def tensor(self, seed: int = 0) -> NDArray[Any]:
        """Random elements of the tensor's storage."""
        rng = np.random.default_rng(seed)
        span = sum((n - 1) * d for n, d in zip(self.extents, self.strides, strict=True)) + 1
        return numbers(rng, self.dtype, span)

    def loaded(self, storage: NDArray[Any]) -> NDArray[np.uint8]:
        """The bytes of shared memory after a load."""
        raw = np.zeros(self.bytes, np.uint8)
        for number, element in self.indices():
            if element is not None:
                raw[self.place(number) :][: self.size] = storage[element : element + 1].view(np.uint8)
        return raw

    def outside(self) -> list[int]:
        """The bytes in shared memory at which elements begin that are not in the tensor."""
        return [self.place(number) for number, element in self.indices() if element is None]


def numbers(rng: np.random.Generator, dtype: str, count: int) -> NDArray[Any]:
    """Random numbers of a type."""
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, count).astype(dtype)
    return rng.integers(-100, 100, count).astype(dtype)


def show(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))})"


SETUP = """
%t = ptx.sreg "tid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%leads = arith.cmpi eq, %t, %zero : i32
%s = ptx.smem.addr 0
"""

CASES = [
    Case("f32", "float32", (40,), (1,), (32,), (4,)),
    Case("f32", "float32", (40, 20), (1, 44), (32, 8), (4, 4), "128B"),
    Case("f16", "float16", (40, 20), (1, 48), (32, 16), (16, 8), "64B"),
    Case("bf16", "uint16", (33, 20), (1, 40), (16, 16), (-8, -2), "32B"),
    Case("f64", "float64", (9, 7), (1, 10), (8, 8), (4, -4), "64B"),
    Case("u8", "uint8", (100, 9), (1, 112), (64, 8), (48, 3), "64B"),
    Case("s32", "int32", (8, 7, 5), (1, 8, 64), (8, 4, 4), (0, 5, 3), "32B"),
    Case("u16", "uint16", (16, 3, 4, 3), (1, 16, 48, 200), (16, 2, 2, 2), (8, 2, -1, 2)),
    Case("s64", "int64", (6, 3, 2, 3, 2), (1, 6, 18, 36, 108), (4, 2, 2, 2, 2), (2, 2, 1, -1, 1)),
    Case("f32", "float32", (8, 5), (1, 0), (8, 4), (0, 3)),
    Case("f32", "float32", (64, 8), (1, 64), (32, 8), (64, 0), "128B"),
    Case("u16", "uint16", (16, 3, 4, 3), (1, 16, 48, 200), (16, 2, 2, 2), (8, 2, 3, 2)),
    Case("bf16", "uint16", (40, 20), (1, 40), (16, 16), (32, 8), "32B"),
]

STORED = [
    case for case in CASES if 0 not in case.strides and min(case.at) >= 0 and case.extents[0] * case.size % 16 == 0
]
"""Those that a store moves too: from coordinates that are not below 0, to rows of whole units of 16 bytes."""


def load_kernel(case: Case, nbytes: int) -> tuple[str, dict[str, int]]:
    """A kernel that loads a box of A, and stores the bytes of shared memory to R."""
    arguments, values = case.arguments("AR")
    body = f"""{SETUP}{case.coordinates()}
%bytes = arith.constant {nbytes} : i32
%bar = ptx.smem.addr {case.bytes}
scf.if %leads {{
  ptx.mbarrier.init %bar, %one
  ptx.fence.mbarrier_init
  ptx.prefetch.tensormap %A_map
  ptx.cp.async.bulk.tensor.prefetch %A_map[{case.coords}]
  ptx.mbarrier.arrive.expect_tx %bar, %bytes
  ptx.cp.async.bulk.tensor.load %A_map[{case.coords}], %s, %bar
  ptx.mbarrier.wait %bar, %zero
  ptx.cp.async.bulk.store %R, %s, %bytes
  ptx.cp.async.bulk.commit_group
  ptx.cp.async.bulk.wait_group 0
}}"""
    return entry(body, arguments, "32", shared=case.bytes + 16), values


def store_kernel(case: Case, operation: str = "ptx.cp.async.bulk.tensor.store") -> tuple[str, dict[str, int]]:
    """A kernel that loads the bytes of R to shared memory, and stores them as a box of A."""
    arguments, values = case.arguments("AR")
    body = f"""{SETUP}{case.coordinates()}
%bytes = arith.constant {case.bytes} : i32
%bar = ptx.smem.addr {case.bytes}
scf.if %leads {{
  ptx.mbarrier.init %bar, %one
  ptx.fence.mbarrier_init
  ptx.mbarrier.arrive.expect_tx %bar, %bytes
  ptx.cp.async.bulk.load %s, %R, %bytes, %bar
  ptx.mbarrier.wait %bar, %zero
  {operation} %A_map[{case.coords}], %s
  ptx.cp.async.bulk.commit_group
  ptx.cp.async.bulk.wait_group 0
}}"""
    return entry(body, arguments, "32", shared=case.bytes + 16), values


def argument(storage: NDArray[Any]) -> TensorArgument:
    """Storage as an argument."""
    return TensorArgument(storage, Layout(storage.size, 1))
