# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels that copy a matrix A to a matrix B tile by tile, in every way the `tile` dialect offers.

Whatever layouts, tilers, swizzles, atoms and loops are drawn, B must hold the elements of A (or of its transpose), and
nothing between them may be written. So NumPy knows the result without any layout algebra.
"""

from dataclasses import dataclass
from random import Random

import numpy as np
from tilefold.layout.algebra.core import Layout, cosize
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.text.layouts import parse_layout, to_text
from tilefold.layout.tiling.tiled_copy import make_tiled_copy
from tilefold.runtime.arrays.storage import scatter, storage_size

from tests.fuzz.problem import Generator, Problem, Tensor

BYTES = {"i8": 1, "f16": 2, "f32": 4, "i32": 4, "f64": 8}
DTYPES = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "i32": np.int32, "f64": np.float64}


@dataclass(frozen=True, slots=True)
class Shape:
    """One mode of the problem: threads, values of a thread, repetitions in a tile, tiles."""

    threads: int
    values: int
    repeats: int
    tiles: int

    @property
    def tile(self) -> int:
        """The extent of a tile."""
        return self.threads * self.values * self.repeats

    @property
    def extent(self) -> int:
        """The extent of the matrix."""
        return self.tile * self.tiles


class _Writer:
    """Writes the lines of one kernel."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.element = rng.choice(list(BYTES))
        self.m, self.n = self._shape(), self._shape()
        self.lines: list[str] = []
        self.count = 0
        self.transposed = False
        self.thread_order = rng.choice(["m", "n"])

    def _shape(self) -> Shape:
        rng = self.rng
        return Shape(*[rng.choice(n) for n in ([1, 2, 4, 8, 3], [1, 2, 4, 4, 8], [1, 1, 1, 2, 3], [1, 1, 2])])

    @property
    def threads(self) -> int:
        """The size of the block."""
        return self.m.threads * self.n.threads

    def name(self) -> str:
        """A new SSA name."""
        self.count += 1
        return f"%v{self.count}"

    def value(self, text: str) -> str:
        """Writes an operation with one result."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value: int) -> str:
        """An index constant."""
        return self.value(f"arith.constant {value} : index")

    def arith(self, op: str, left: str, right: int | str) -> str:
        """An operation on indices."""
        other = self.constant(right) if isinstance(right, int) else right
        return self.value(f"arith.{op} {left}, {other} : index")

    def layout(self, extents: list[tuple[int, int]], padded: bool = True) -> Layout:
        """A random injective layout; each mode has an extent, and may be split at the divisor beside it."""
        rng = self.rng
        parts = [[d, n // d] if d > 1 and rng.random() < 0.4 else [n] for n, d in extents]
        leaves = [(i, j) for i, part in enumerate(parts) for j in range(len(part))]
        rng.shuffle(leaves)
        strides: dict[tuple[int, int], int] = {}
        span = 1
        for i, j in leaves:
            unit = rng.choice([1, 1, 1, 2, 4, 16]) if padded else 1
            strides[i, j] = -(-span // unit) * unit
            span = strides[i, j] * (parts[i][j] - 1) + span
        shape = tuple(tuple(part) if len(part) > 1 else part[0] for part in parts)
        stride = tuple(
            tuple(strides[i, j] for j in range(len(part))) if len(part) > 1 else strides[i, 0]
            for i, part in enumerate(parts)
        )
        return Layout(shape, stride)

    def swizzle(self) -> str:
        """A random swizzle as a prefix of a layout, or nothing."""
        if self.rng.random() < 0.5:
            return ""
        bits = self.rng.randint(1, 3)
        return f"S<{bits},{self.rng.randint(0, 4)},{self.rng.randint(bits, 4)}> o 0 o "

    def tensor(self, space: str, layout: str) -> str:
        """A tensor type with a random alignment."""
        least = 16 if space == "rmem" else BYTES[self.element]
        align = self.rng.choice([a for a in (1, 2, 4, 8, 16, 128) if a >= least])
        if layout.startswith("S"):
            align = 128
        return f'!tile.tensor<{self.element}, {space}, align<{align}>, "{layout}">'

    def matrix(self, m: Shape, n: Shape) -> tuple[str, str]:
        """A random layout and type for a matrix in global memory."""
        layout = to_text(self.layout([(m.extent, self._split(m)), (n.extent, self._split(n))]))
        if self.rng.random() < 0.15:
            layout = (self.swizzle() or "") + layout
        return layout, self.tensor("gmem", layout)

    def _split(self, shape: Shape) -> int:
        return self.rng.choice([1, shape.tile, shape.values, shape.values * shape.threads])


class _Kernel(_Writer):
    """Writes a kernel body: per-thread parts of tiles, and the copies between them."""

    def coordinates(self, m: Shape, n: Shape) -> tuple[str, str]:
        """The thread's place in a tile's grid of values: `t % m` and `t / m`, or the other way round."""
        if self.thread_order == "m":
            return self.arith("remui", "%t", m.threads), self.arith("divui", "%t", m.threads)
        return self.arith("divui", "%t", n.threads), self.arith("remui", "%t", n.threads)

    def move(self, src: str, dst: str, m: Shape, n: Shape, spaces: tuple[str, str]) -> None:
        """Copies a tile in one of the ways; a barrier is up to the caller."""
        way = self.rng.choice(["tiled_copy", "tiled_copy", "tv", "divide", "divide", "scalar"])
        if way == "tiled_copy":
            self.by_tiled_copy(src, dst, m, n, spaces)
        elif way == "tv" and m.repeats == n.repeats == 1:
            tv = make_tiled_copy(
                copy_atom("UniversalCopy<uint8_t>", 8), self.thread_layout(m, n), self.value_layout(m, n)
            ).layout_tv
            parts = [
                self.value(f'tile.slice {self.value(f"""tile.composition {x}, "{to_text(tv)}" """)}, (%t, _)')
                for x in (src, dst)
            ]
            self.copy(parts, f"({m.values * n.values})")
        elif way == "scalar":
            self.by_elements(src, dst, m, n)
        else:
            self.by_division(src, dst, m, n)

    def thread_layout(self, m: Shape, n: Shape) -> Layout:
        """Threads of a tile, in either order."""
        strides = (1, m.threads) if self.thread_order == "m" else (n.threads, 1)
        return Layout((m.threads, n.threads), strides)

    def value_layout(self, m: Shape, n: Shape) -> Layout:
        """Values of a thread, in either order."""
        return Layout((m.values, n.values), self.rng.choice([(1, m.values), (n.values, 1)]))

    def by_tiled_copy(self, src: str, dst: str, m: Shape, n: Shape, spaces: tuple[str, str]) -> None:
        """Partitions by a tiled copy, with an atom that the layouts may or may not allow."""
        values = m.values * n.values
        widths = [w for w in (1, 2, 4, 8, 16) if BYTES[self.element] <= w and values % (w // BYTES[self.element]) == 0]
        width = self.rng.choice(widths)
        auto = self.rng.random() < 0.4
        atom = "AutoVectorizingCopy" if auto else f"UniversalCopy<uint{8 * width}_t>"
        is_async = spaces == ("gmem", "smem") and width >= 4 and self.rng.random() < 0.6
        if is_async:
            atom = f"SM80_CP_ASYNC_CACHEALWAYS<uint{8 * width}_t>"
        thr, val = to_text(self.thread_layout(m, n)), to_text(self.value_layout(m, n))
        copy = self.value(f'tile.tiled_copy #tile.copy_atom<"{atom}", {self.element}> thr "{thr}" val "{val}"')
        parts = [self.value(f"tile.partition_{side} {copy}, {x}, %t") for side, x in (("S", src), ("D", dst))]
        per = 1 if auto and not is_async else width // BYTES[self.element]
        self.copy(parts, f"(({per},{values // per}),{m.repeats},{n.repeats})", copy, not is_async)
        if is_async:
            self.lines += ["ptx.cp.async.commit_group", "ptx.cp.async.wait_group 0"]

    def by_division(self, src: str, dst: str, m: Shape, n: Shape) -> None:
        """Divides both tiles into the threads' values, and copies one piece in each iteration of two loops."""
        i, j = self.coordinates(m, n)
        i, j = (self.loop(i, m), self.loop(j, n))
        tiler = f'"({m.values},{n.values})"'
        way = self.rng.choice(["local_tile", "logical", "zipped", "tiled", "flat", "grouped"])
        parts: list[str] = []
        for x in (src, dst):
            match way:
                case "local_tile":
                    parts.append(self.value(f"tile.local_tile {x}, {tiler}, ({i}, {j})"))
                case "logical":
                    parts.append(
                        self.value(
                            f"tile.slice {self.value(f'tile.logical_divide {x}, {tiler}')}, ((_, {i}), (_, {j}))"
                        )
                    )
                case "zipped":
                    parts.append(
                        self.value(f"tile.slice {self.value(f'tile.zipped_divide {x}, {tiler}')}, ((_, _), ({i}, {j}))")
                    )
                case "tiled":
                    parts.append(
                        self.value(f"tile.slice {self.value(f'tile.tiled_divide {x}, {tiler}')}, (_, {i}, {j})")
                    )
                case "flat":
                    parts.append(
                        self.value(f"tile.slice {self.value(f'tile.flat_divide {x}, {tiler}')}, (_, _, {i}, {j})")
                    )
                case _:
                    flat = self.value(f"tile.flat_divide {x}, {tiler}")
                    grouped = self.value(f"tile.group_modes {self.value(f'tile.select {flat}, [0, 1, 3, 2]')}, [2, 4]")
                    rest = self.arith("addi", j, self.arith("muli", i, n.threads * n.repeats))
                    parts.append(self.value(f"tile.slice {grouped}, (_, _, {rest})"))
        if way == "tiled" and self.rng.random() < 0.5:
            self.by_numbers([self.value(f"tile.coalesce {part}") for part in parts], m.values * n.values)
        else:
            self.copy(parts, f"({m.values * n.values})" if way == "tiled" else f"({m.values},{n.values})")
        self.lines += ["}", "}"]

    def by_numbers(self, parts: list[str], count: int) -> None:
        """Loads and stores elements by their number in colexicographic order."""
        number = self.count_to(count)
        element = self.value(f"tile.load {parts[0]}({number})")
        self.lines += [f"tile.store {element}, {parts[1]}({number})", "}"]

    def count_to(self, extent: int) -> str:
        """Opens a loop; its induction variable."""
        zero, one, end = self.constant(0), self.constant(1), self.constant(extent)
        index = self.name()
        self.lines.append(f"scf.for {index} = {zero} to {end} step {one} {{")
        return index

    def loop(self, first: str, shape: Shape) -> str:
        """Opens a loop over the repetitions of a tile; the thread's coordinate in each."""
        return self.arith("addi", first, self.arith("muli", self.count_to(shape.repeats), shape.threads))

    def by_elements(self, src: str, dst: str, m: Shape, n: Shape) -> None:
        """Loads and stores single elements in four loops, whose coordinates are arithmetic on the thread's."""
        i, j = self.coordinates(m, n)
        i, j = self.loop(i, m), self.loop(j, n)
        for values, is_m in ((m.values, True), (n.values, False)):
            place = self.arith("addi", self.arith("muli", i if is_m else j, values), self.count_to(values))
            i, j = (place, j) if is_m else (i, place)
        element = self.value(f"tile.load {src}({i}, {j})")
        self.lines += [f"tile.store {element}, {dst}({i}, {j})", "}", "}", "}", "}"]

    def copy(self, parts: list[str], sizes: str | None, tiled: str = "", through: bool = True) -> None:
        """Copies the first part to the second, directly or through a fragment with these extents."""
        by = f"{tiled}, " if tiled else ""
        if sizes is None or not through or self.rng.random() < 0.5:
            self.lines.append(f"tile.copy {by}{parts[0]}, {parts[1]}")
            return
        fragment = self.value(
            f"tile.alloc : {self.tensor('rmem', to_text(parse_layout(sizes + ':' + _compact(sizes))))}"
        )
        self.lines += [f"tile.copy {by}{parts[0]}, {fragment}", f"tile.copy {by}{fragment}, {parts[1]}"]

    def tile(self) -> None:
        """The copy of one tile: `%gA` to `%gB`, straight or through shared memory."""
        m, n = self.m, self.n
        if "%sA" not in self.shared:
            self.move("%gA", "%gB", m, n, ("gmem", "gmem"))
            return
        self.move("%gA", "%sA", m, n, ("gmem", "smem"))
        self.lines.append("ptx.bar.sync 0")
        self.thread_order = self.rng.choice(["m", "n"])
        if self.transposed:
            turned = self.value("tile.select %sA, [1, 0]")
            self.move(turned, "%gB", n, m, ("smem", "gmem"))
        else:
            self.move("%sA", "%gB", m, n, ("smem", "gmem"))
        self.lines.append("ptx.bar.sync 0")

    def write(self) -> Problem:
        """The whole kernel."""
        rng, m, n = self.rng, self.m, self.n
        layout_a, type_a = self.matrix(m, n)
        self.shared = ""
        if rng.random() < 0.7:
            self.transposed = rng.random() < 0.3
            split = [(m.tile, rng.choice([1, m.values])), (n.tile, rng.choice([1, n.values]))]
            swizzle = self.swizzle()
            plain = self.layout(split, padded=not swizzle)
            if cosize(plain) * BYTES[self.element] > 1 << 16:
                plain = self.layout(split, padded=False)
            layout = swizzle + to_text(plain)
            self.shared = f"%sA = tile.alloc : {self.tensor('smem', layout)}"
        layout_b, type_b = self.matrix(*((n, m) if self.transposed else (m, n)))
        looped = rng.random() < 0.3
        self.lines += ["%t = gpu.thread_id x", self.shared, "%bm = gpu.block_id x"]
        if looped:
            zero, one, end = self.constant(0), self.constant(1), self.constant(n.tiles)
            self.lines.append(f"scf.for %bn = {zero} to {end} step {one} {{")
        else:
            self.lines.append("%bn = gpu.block_id y")
        tiler = f'"({m.tile},{n.tile})"'
        self.lines.append(f"%gA = tile.local_tile %A, {tiler}, (%bm, %bn)")
        turned = f'"({n.tile},{m.tile})", (%bn, %bm)' if self.transposed else f"{tiler}, (%bm, %bn)"
        self.lines.append(f"%gB = tile.local_tile %B, {turned}")
        self.tile()
        self.lines += ["}"] if looped else []
        body = "\n".join(self.lines)
        head = f"gpu.module @m {{\ntile.kernel @k(%A: {type_a}, %B: {type_b}) threads({self.threads}) {{\n"
        text = f"{head}{body}\nreturn\n}}\n}}\n"
        return self._problem(text, layout_a, layout_b, (m.tiles, 1 if looped else n.tiles, 1))

    def _problem(self, text: str, layout_a: str, layout_b: str, grid: tuple[int, int, int]) -> Problem:
        numbers = np.random.default_rng(self.rng.randrange(2**32))
        source, target = parse_layout(layout_a), parse_layout(layout_b)
        values = numbers.integers(-100, 100, (self.m.extent, self.n.extent)).astype(DTYPES[self.element])
        a = np.zeros(storage_size(source), values.dtype)
        scatter(values, a, source)
        expected = np.full(storage_size(target), 77, values.dtype)
        scatter(np.ascontiguousarray(values.T) if self.transposed else values, expected, target)
        unwritten = np.full_like(expected, 77)
        arguments = {"A": Tensor(a), "B": Tensor(unwritten, expected, fresh=True)}
        return Problem(text, grid, (self.threads, 1, 1), arguments, costs=True)


def _compact(sizes: str) -> str:
    """The strides of the compact layout whose first mode runs fastest, for extents as text."""
    step, strides = 1, ""
    number = ""
    for character in sizes:
        if character.isdigit():
            number += character
            continue
        if number:
            strides += str(step)
            step *= int(number)
            number = ""
        strides += character
    return strides


def generate(seed: int) -> Problem:
    """The kernel of a seed. Its text may be one that the compiler refuses, for example for want of alignment."""
    return _Kernel(Random(seed)).write()


COPIES = Generator(
    generate, frozenset({"E0203", "E0204", "E0211", "E0214", "E0301", "E0303", "E0306", "E0311", "E0312"})
)
"""Refused are layouts that do not divide, and atoms that do not fit."""
