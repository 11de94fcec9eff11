# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The most that matrix instructions can do on a GPU: multiplications of registers alone, `kernels/mma_ceiling.cute`.

`python -m benchmarks.ceiling [NAME ...]` prints the figures of the first GPU. A figure of a GEMM is put against the
ceiling of its instruction, taken in the same run on the same kind of data, because power limits both.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType
from typing import Any

import numpy as np
from tilefold.base.element_types import BY_PTX
from tilefold.base.errors import Code, TilefoldError
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.cuda.packed_arguments import PackedArguments
from tilefold.runtime.engine import LaunchConfig

from benchmarks.record import Figure, Record, circumstances, print_record
from benchmarks.workloads import Built, Workload
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.messages import print_error

_NORMAL = ('"normal(seed=1)"', '"normal(seed=2)"')
_INTEGERS = ('"integers(-128, 128, seed=1)"', '"integers(-128, 128, seed=2)"')


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One atom with what each warp multiplies: `rows` x `columns` accumulators, `depth` values of K, by `warps` a block
    and `blocks` a multiprocessor.
    """

    atom: str
    rows: int = 4
    columns: int = 8
    depth: int = 1
    warps: int = 4
    blocks: int = 2
    iterations: int = 4096

    @property
    def label(self) -> str:
        """The atom, and what each warp multiplies."""
        depth = f" x {self.depth}" if self.depth > 1 else ""
        return f"{self.atom}, {self.rows} x {self.columns}{depth}, {self.blocks} x {self.warps} warps"

    def workload(self, multiprocessors: int) -> Workload:
        """The kernel for a GPU of this many multiprocessors."""
        atom = mma_atom(self.atom)
        m, n, k = atom.shape
        _, a, b, c = [BY_PTX[name].mlir for name in atom.types]
        fills = _INTEGERS if atom.types[0] == "s32" else _NORMAL
        sizes = {
            "ATOM": f'"{self.atom}"', "M": m, "N": n, "K": k, "TA": a, "TB": b, "TC": c, "ROWS": self.rows,
            "COLUMNS": self.columns, "DEPTH": self.depth, "WARPS": self.warps, "ITERATIONS": self.iterations,
            "BLOCKS": self.blocks * multiprocessors, "FILL_A": fills[0], "FILL_B": fills[1],
        }  # fmt: skip
        return Workload(f"ceiling of {self.label}, {self.iterations}", "benchmarks/kernels/mma_ceiling.cute", sizes)

    def operations(self, multiprocessors: int) -> int:
        """Multiplications and additions of one launch."""
        m, n, k = mma_atom(self.atom).shape
        executions = self.rows * self.columns * self.depth * self.iterations
        return 2 * m * n * k * executions * self.warps * self.blocks * multiprocessors


def _shapes(atom: str) -> tuple[Ceiling, ...]:
    """The shapes of accumulators that are tried for an atom of four or fewer 32-bit accumulators a thread."""
    return (
        Ceiling(atom),
        Ceiling(atom, rows=2, columns=8, warps=8),
        Ceiling(atom, rows=4, columns=4, warps=8),
    )


CEILINGS: Mapping[str, tuple[Ceiling, ...]] = MappingProxyType(
    {
        "f16": _shapes("SM80_16x8x16_F32F16F16F32_TN"),
        "f16, f16 sums": _shapes("SM80_16x8x16_F16F16F16F16_TN"),
        "bf16": _shapes("SM80_16x8x16_F32BF16BF16F32_TN"),
        "tf32": _shapes("SM80_16x8x8_F32TF32TF32F32_TN"),
        "s8": _shapes("SM80_16x8x32_S32S8S8S32_TN"),
        "f64": (
            Ceiling("SM90_16x8x16_F64F64F64F64_TN", rows=2, columns=4, iterations=2048),
            Ceiling("SM90_16x8x8_F64F64F64F64_TN", rows=2, columns=4, warps=8, iterations=2048),
            Ceiling("SM90_16x8x8_F64F64F64F64_TN", rows=4, columns=4, warps=8, blocks=1, iterations=2048),
            Ceiling("SM90_16x8x4_F64F64F64F64_TN", rows=4, columns=4, warps=8, blocks=1, iterations=4096),
        ),
        "fp8": (
            Ceiling("SM89_16x8x32_F32E4M3E4M3F32_TN", rows=2, columns=4, iterations=2048),
            Ceiling("SM89_16x8x32_F32E4M3E4M3F32_TN", rows=4, columns=4, warps=8, blocks=1, iterations=2048),
        ),
    }
)
"""The instructions that GEMMs are measured against, by the type of A and B; of several shapes the fastest counts."""


class Queued:
    """A launch of a ceiling's kernel on the engine's GPU, ready to be queued again and again, with its arguments."""

    def __init__(self, engine: CudaEngine, ceiling: Ceiling, built: Built | None = None) -> None:
        """Copies the arguments of the kernel, which is built if it has not been. TilefoldError where the GPU lacks the
        instruction.
        """
        driver = engine.driver
        count = multiprocessors(engine)
        self.ceiling, self.operations = ceiling, ceiling.operations(count)
        workload = ceiling.workload(count)
        program, launch = workload.loaded()
        self._arguments = prepare(launch, {}, seed=0, max_bytes=1 << 32)
        self._given = self._arguments.launchable()
        artifact, self._config = built or (
            program.artifact(launch.kernel, driver.target),
            LaunchConfig(launch.grid, launch.block),
        )
        self._kernel = engine.load(artifact)
        self._packed = PackedArguments(driver, artifact, self._given)
        self._frame = self._kernel.ready(self._packed, self._config.grid, self._config.stream, self._config.attributes)

    def run(self) -> None:
        """Queues the kernel on the default stream."""
        self._kernel.run(self._frame)

    def check(self) -> None:
        """Checks the accumulators of every block; see `check_product`."""
        self._packed.read_back()
        check_product(self.ceiling, self._arguments.logical(self._given))


def check_product(ceiling: Ceiling, values: Mapping[str, Any]) -> None:
    """Compares the accumulators C of a launch with the product of A and B. TilefoldError where they are too far away.

    For few iterations: over many, accumulators that are rounded towards zero drift away.
    """
    a, b, c = (np.asarray(values[name]).astype(np.float64) for name in ("A", "B", "C"))
    difference = np.abs(c - ceiling.iterations * (a @ b.T)[:, :, None])
    magnitude = ceiling.iterations * (np.abs(a) @ np.abs(b).T)[:, :, None]
    if not (difference <= magnitude * _allowed(mma_atom(ceiling.atom))).all():
        raise TilefoldError(Code.CHECK_FAILED, f"{ceiling.atom}: the result is wrong")


def _allowed(atom: MmaAtom) -> float:
    """The error of a sum against the sum of magnitudes: of integers none, else far above what rounding makes."""
    return {"s32": 0.0, "f64": 2.0**-40}.get(atom.types[0], 2.0**-6)


def multiprocessors(engine: CudaEngine) -> int:
    """How many multiprocessors the engine's GPU has."""
    driver = engine.driver
    return driver.attribute(driver.api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)


def workloads(name: str, multiprocessors: int) -> list[Workload]:
    """What `best` runs for a ceiling of `CEILINGS`, to be built before."""
    shapes = CEILINGS[name]
    return [
        variant.workload(multiprocessors) for ceiling in shapes for variant in (replace(ceiling, iterations=2), ceiling)
    ]


def best(engine: CudaEngine, name: str, built: Callable[[Workload], Built | None] = lambda _: None) -> Queued:
    """The fastest shape of a ceiling of `CEILINGS` on the engine's GPU; the results of all are checked before.

    `built` tells the kernels that have been built. TilefoldError where a result is wrong, or the GPU lacks the
    instruction.
    """
    count = multiprocessors(engine)
    speeds: list[tuple[float, Queued]] = []
    for ceiling in CEILINGS[name]:
        short = replace(ceiling, iterations=2)
        checked = Queued(engine, short, built(short.workload(count)))
        checked.run()
        checked.check()
        queued = Queued(engine, ceiling, built(ceiling.workload(count)))
        timing = engine.measure(queued.run, ceiling.atom, warmup=2, repeat=5)
        speeds.append((queued.operations / timing.median_ms, queued))
    return max(speeds, key=lambda pair: pair[0])[1]


def measure_ceiling(engine: CudaEngine, name: str, *, warmup: int = 3, repeat: int = 10) -> Figure:
    """TFLOP/s (of integers TOP/s) of a ceiling of `CEILINGS` on the engine's GPU. Raises what `best` raises."""
    queued = best(engine, name)
    ceiling = queued.ceiling
    samples = engine.measure(queued.run, ceiling.atom, warmup=warmup, repeat=repeat).samples
    speeds = [queued.operations / sample / 1e9 for sample in samples]
    return Figure(f"ceiling, {name}", median(speeds), unit_of(ceiling), note=ceiling.label, samples=tuple(samples))


def unit_of(ceiling: Ceiling) -> str:
    """The unit of its figures."""
    return "TOP/s" if mma_atom(ceiling.atom).types[0] == "s32" else "TFLOP/s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the ceilings that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ceiling", description=__doc__, allow_abbrev=False)
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"one of: {', '.join(CEILINGS)}")
    parser.add_argument("--repeat", type=int, default=10, metavar="N", help="launches of each (default: 10)")
    options = parser.parse_args(arguments)
    if unknown := set(options.name) - set(CEILINGS):
        parser.error(f"there is no ceiling {min(unknown)!r}")
    try:
        engine = CudaEngine()
        figures = [measure_ceiling(engine, name, repeat=options.repeat) for name in options.name or CEILINGS]
    except TilefoldError as error:
        print_error(error)
        return 1
    print_record(Record("ceilings of matrix instructions", circumstances(engine.driver.name), tuple(figures)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
