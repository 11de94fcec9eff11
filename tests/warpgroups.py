# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that multiply by warpgroups, and their operands as they lie in shared memory.

Of a sparse A, its elements that are there lie in shared memory and registers, and each thread reads words of metadata.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.base.element_types import BY_PTX
from tilefold.layout.algebra.core import Layout, plain_layout
from tilefold.layout.algebra.divide import zipped_divide
from tilefold.layout.algebra.product import tile_to_shape
from tilefold.layout.atoms.contract import Named
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_sync import registers
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.wgmma_smem import SWIZZLE_BITS, MatrixDescriptor, make_matrix_descriptor, wgmma_smem_atom
from tilefold.runtime.arrays.storage import distances, element_indices
from tilefold.runtime.sim.atoms.mma_arithmetic import DTYPES

from tests.mma import random_elements


@dataclass(frozen=True)
class Operand:
    """A matrix (MN, K) of several instructions in shared memory: its layout, and the descriptor of each instruction."""

    rows: int
    k: int
    blocks: int
    bits: int
    major: str
    mode: str

    @cached_property
    def layout(self) -> Any:
        """The layout of all of it, swizzled."""
        atom = wgmma_smem_atom(self.major, self.mode, self.bits)
        return tile_to_shape(atom, (self.rows, self.k * self.blocks), (1, 0) if self.major == "MN" else (0, 1))

    def image(self, matrix: NDArray[Any]) -> NDArray[np.uint8]:
        """The bytes in shared memory of a matrix."""
        places = element_indices(self.layout)
        flat = np.zeros(places.size, matrix.dtype)
        flat[places] = matrix
        return flat.view(np.uint8)

    def descriptor(self, block: int) -> MatrixDescriptor:
        """The descriptor of a block of K, for shared memory that begins at address 0. That of B beside a sparse A,
        which is twice as wide, is the descriptor of its first half.
        """
        plain: Layout = plain_layout(self.layout)
        places = element_indices(plain)
        inside = zipped_divide(plain, (Layout(self.rows, 1), Layout(min(self.k, 256 // self.bits), 1)))[0]
        start = int(places[0, block * self.k]) * self.bits // 8
        return make_matrix_descriptor(inside, SWIZZLE_BITS[self.mode], self.bits, self.major, start)


@dataclass(frozen=True)
class Problem:
    """D = A * B^T by one warpgroup, in `blocks` instructions of an atom, with operands laid out by `mode`."""

    name: str
    mode: str
    blocks: int
    flags: str = ""

    @cached_property
    def atom(self) -> MmaAtom:
        """The atom."""
        return mma_atom(self.name)

    @property
    def arguments(self) -> str:
        """The names of the kernel's arguments; `E` are words (128, blocks) of metadata."""
        return "ABCE" if self.atom.is_sparse else "ABC"

    def operand(self, name: str) -> Operand:
        """A or B in shared memory."""
        (m, n, k), number = self.atom.shape, "AB".index(name)
        rows, k = (n, k) if number else (m, self.atom.stored_k)
        bits = BY_PTX[self.atom.types[1]].bits
        return Operand(rows, k, self.blocks, bits, self.atom.majors[number].value, self.mode)

    @property
    def is_in_registers(self) -> bool:
        """Whether A is in registers."""
        return self.atom.operand("A").named is Named.VALUE

    def text(self) -> str:
        """A kernel `@k` of 128 threads that reads A and B, bytes as they lie in shared memory or, of A, in registers,
        and writes the accumulators of each thread.
        """
        m, n, k = self.atom.shape
        size_a = 0 if self.is_in_registers else m * k * self.blocks * self.atom.bits[1] // 8
        size_b = n * k * self.blocks * self.atom.bits[2] // 8
        words_a, held = registers(self.atom, "A").count if self.is_in_registers else 0, registers(self.atom, "D")
        start_b = -(-size_a // 1024) * 1024
        type = "f32" if held.kind == "f32" else "i32"
        lines = ['%t = ptx.sreg "tid.x"', "%zero = arith.constant 0 : i32", "%step = arith.constant 128 : i32",
                 "%four = arith.constant 4 : i32", "%sixteen = arith.constant 16 : i32"]  # fmt: skip
        for name, size, start in (("A", size_a, 0), ("B", size_b, start_b)):
            lines += (
                [
                    f"%rows{name} = arith.constant {size // 16} : i32",
                    f"%s{name} = ptx.smem.addr {start}",
                    f"scf.for %i = %t to %rows{name} step %step : i32 {{",
                    "%o = arith.muli %i, %sixteen : i32",
                    f"%p = ptx.ptr_add %{name}, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
                    f"%q = ptx.ptr_add %s{name}, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>",
                    "%v = ptx.ld %p align 16 : !ptx.ptr<global> -> vector<4xi32>",
                    "ptx.st %v, %q align 16 : vector<4xi32>, !ptx.ptr<shared>",
                    "}",
                ]
                if size
                else []
            )
        lines += ["ptx.fence.proxy.async", "ptx.bar.sync 0", f"%d = ptx.local.alloc {4 * held.count} align 16"]
        for index in range(words_a * self.blocks):
            block, word = divmod(index, words_a)
            if not word:
                lines.append(f"%a{block} = ptx.local.alloc {4 * words_a} align 16")
            lines += [
                f"%at{index} = arith.constant {4 * word} : i32",
                f"%from{index} = arith.constant {4 * index} : i32",
                f"%each{index} = arith.constant {4 * words_a * self.blocks} : i32",
                f"%mine{index} = arith.muli %t, %each{index} : i32",
                f"%place{index} = arith.addi %mine{index}, %from{index} : i32",
                f"%p{index} = ptx.ptr_add %A, %place{index} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
                f"%q{index} = ptx.ptr_add %a{block}, %at{index} : !ptx.ptr<local>, i32 -> !ptx.ptr<local>",
                f"%v{index} = ptx.ld %p{index} align 4 : !ptx.ptr<global> -> i32",
                f"ptx.st %v{index}, %q{index} align 4 : i32, !ptx.ptr<local>",
            ]
        metadata = ""
        if self.atom.is_sparse:
            metadata = " metadata %e{} select 0"
            lines += [f"%words = arith.constant {4 * self.blocks} : i32", "%w = arith.muli %t, %words : i32"]
            lines += [
                f"%word{block} = arith.constant {4 * block} : i32\n%we{block} = arith.addi %w, %word{block} : i32\n"
                f"%pe{block} = ptx.ptr_add %E, %we{block} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
                f"%e{block} = ptx.ld %pe{block} align 4 : !ptx.ptr<global> -> i32"
                for block in range(self.blocks)
            ]
        lines.append("ptx.wgmma.fence")
        for block in range(self.blocks):
            for name in "B" if self.is_in_registers else "AB":
                lines += descriptor_lines(f"{name}{block}", f"%s{name}", self.operand(name).descriptor(block))
            a, of_a = (f"%a{block}", "!ptx.ptr<local>") if self.is_in_registers else (f"%A{block}", "i64")
            lines += [
                f"%more{block} = arith.constant {'true' if block else 'false'}",
                f'ptx.wgmma.mma_async "{self.name}" {self.flags} %d, {a}, %B{block}, %more{block}'
                f"{metadata.format(block)} : {of_a}",
            ]
        lines += [
            "ptx.wgmma.commit_group", "ptx.wgmma.wait_group 0", f"%each = arith.constant {4 * held.count} : i32",
            "%mine = arith.muli %t, %each : i32",
            "%c = ptx.ptr_add %C, %mine : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
            f"%count = arith.constant {held.count} : i32", "%one = arith.constant 1 : i32",
            "scf.for %i = %zero to %count step %one : i32 {", "%o = arith.muli %i, %four : i32",
            "%p = ptx.ptr_add %d, %o : !ptx.ptr<local>, i32 -> !ptx.ptr<local>",
            "%q = ptx.ptr_add %c, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>",
            f"%v = ptx.ld %p align 4 : !ptx.ptr<local> -> {type}",
            f"ptx.st %v, %q align 4 : {type}, !ptx.ptr<global>", "} {unroll}",
        ]  # fmt: skip
        pointers = ", ".join(f"%{name}: !ptx.ptr<global> align 16" for name in self.arguments)
        body = "\n".join(lines)
        return (
            f"gpu.module @kernels {{\nptx.entry @k({pointers}) threads(128) shared({start_b + size_b}) {{\n"
            f"{body}\nptx.ret\n}}\n}}\n"
        )

    def elements(self, seed: int, exact: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        """A (64, K) and B (N, K); small integers where `exact`."""
        m, n, k = self.atom.shape
        rng = np.random.default_rng(seed)
        _, of_a, of_b, _ = self.atom.types

        def made(name: str, rows: int) -> NDArray[Any]:
            shape = rows, k * self.blocks
            if not exact:
                return random_elements(name, shape, rng)
            least = 0 if BY_PTX[name].unsigned else -3
            return rng.integers(least, 4, shape).astype(DTYPES[name])

        return made(of_a, m), made(of_b, n)

    def given(self, a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The kernel's arguments for A and B."""
        image_b = self.operand("B").image(b)
        if not self.is_in_registers:
            return self.operand("A").image(a), image_b
        places = _places(self.atom.layout_a)  # (128, values)
        k = self.atom.stored_k
        if self.atom.is_sparse:  # two values for each element that is there
            places = places[:, ::2] % 64 + places[:, ::2] // 128 * 64
        blocks = [a[:, i * k : (i + 1) * k].T.ravel()[places] for i in range(self.blocks)]
        return np.ascontiguousarray(np.concatenate(blocks, axis=1)).view(np.uint8).ravel(), image_b

    def output(self) -> NDArray[Any]:
        """Storage for the accumulators, with other contents."""
        count = registers(self.atom, "D").count
        return np.full(128 * count * 4, 0xFF, np.uint8)

    def matrix(self, output: NDArray[Any]) -> NDArray[Any]:
        """D (64, N) of the accumulators that the kernel has written."""
        return accumulators(self.atom, output)


def accumulators(atom: MmaAtom, output: NDArray[Any]) -> NDArray[Any]:
    """The matrix (64, N) of the accumulators of 128 threads, one thread after the other."""
    dtype = DTYPES[atom.types[0]]
    values = output.view(np.uint8).view(dtype).reshape(128, -1)
    flat = np.empty(values.size, dtype)
    flat[_places(atom.layout_c)] = values
    return flat.reshape(-1, 64).T


def descriptor_lines(name: str, pointer: str, descriptor: MatrixDescriptor) -> list[str]:
    """Operations for `%name`, a descriptor of what lies at a shared pointer."""
    leading, stride = descriptor.leading_byte_offset, descriptor.stride_byte_offset
    return [
        f"%{name}base = ptx.wgmma.descriptor {pointer} leading {leading} stride {stride} "
        f"swizzle {descriptor.swizzle_bits}",
        f"%{name}from = arith.constant {descriptor.start_address} : i64",
        f"%{name} = arith.addi %{name}base, %{name}from : i64",
    ]


def _places(layout: Layout) -> NDArray[np.int64]:
    return distances(layout).reshape(layout[0].size, -1, order="F")
