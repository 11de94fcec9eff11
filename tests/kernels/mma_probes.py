# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One execution of each MMA atom, `mma_probe.cute` with its parameters: programs, and what must come out.

`python -m tests.kernels.mma_probes` prints how far a GPU is from the simulator, atom by atom.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.atoms.numbers import MmaOperation
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.atoms.mma_arithmetic import DTYPES, compute_allowed_error

from tests.kernels.harness import MAX_BYTES, simulate
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program, load

MIXED = (
    "UniversalFMA<float,half_t>",
    "UniversalFMA<float,bfloat16_t,half_t,float>",
    "UniversalFMA<half_t,float_e4m3_t,float_e5m2_t,half_t>",
    "UniversalFMA<double,float,half_t,bfloat16_t>",
    "UniversalFMA<int32_t,int8_t>",
    "UniversalFMA<int,uint8_t,int8_t,int16_t>",
    "UniversalFMA<uint64_t,int32_t,uint32_t,unsigned>",
    "UniversalFMA<int16_t,uint8_t>",
)
"""Atoms of one thread whose operands are of several types: a sample of all combinations."""
ATOMS = (*[name for name in MMA_ATOMS if not name.startswith("SM120_")], *MIXED)
"""Those of narrow floats have probes of their own."""
NEWEST = Target("sm_90a")
"""A target that has every atom of a warp."""

_SOURCE = Path(__file__).with_name("mma_probe.cute")
_ELEMENTS = {
    "tf32": "f32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "s4": "si4", "u4": "ui4", "b1": "ui1",
    **{f"{sign}{bits}": f"i{bits}" for sign in "su" for bits in (8, 16, 32, 64)},
}  # fmt: skip
_RANGES = {
    **{f"{sign}{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1)) for sign in "su" for bits in (8, 16, 32)},
    "s64": (-(2**62), 2**62), "u64": (-(2**62), 2**62), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2),
}  # fmt: skip
_LAST = {
    "f64": (2.0**-52, 2.0**-1074), "f32": (2.0**-23, 2.0**-149), "f16": (2.0**-10, 2.0**-24),
    "bf16": (2.0**-7, 2.0**-133),
}  # fmt: skip
"""How far the numbers of a type lie apart at most: as a part of them, and at the smallest."""
_WARP = {32: (1, 1), 8: (2, 2), 1: (8, 4)}
"""How many atoms of so many threads a warp executes at once, in M and N."""


def probe(
    name: str, seed: int = 0, target: Target = NEWEST, fills: Sequence[str] | None = None
) -> tuple[Program, Launch]:
    """The program that executes an atom, and its launch, on random data of the seed, or by the fills of A, B and C."""
    atom = mma_atom(name)
    m, n, k = atom.shape
    rows, columns = _WARP[atom.threads]
    _, a, b, c = atom.types
    fills = fills or [_fill(t, 4 * seed + number) for number, t in enumerate((a, b, c))]
    values = {
        "ATOM": f'"{name}"', "ATOMS": f'"({rows},{columns},1):(1,{rows},0)"', "M": m * rows, "N": n * columns, "K": k,
        **{f"T{operand}": _ELEMENTS.get(t, t) for operand, t in zip("DABC", atom.types, strict=True)},
        **{f"FILL_{operand}": f'"{fill}"' for operand, fill in zip("ABC", fills, strict=True)},
    }  # fmt: skip
    text = expand(_SOURCE.read_text(), _SOURCE.name, {name: str(value) for name, value in values.items()})
    program = replace(load(text), target=target)
    (launch,) = read_launches(program.module, program.source, Changes())
    return program, launch


def _fill(element: str, seed: int) -> str:
    if element in _RANGES:
        return "integers({}, {}, seed={})".format(*_RANGES[element], seed)
    return f"normal(seed={seed})"


def expected(atom: MmaAtom, values: dict[str, Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """D of the arguments A, B and C of a probe in higher precision, and how far a GPU's may be from it.

    Integers are those that the instruction gives, bit for bit. Of tf32 only the bits that tensor cores read count.
    """
    a, b, c = (_read(name, np.asarray(values[x])) for name, x in zip(atom.types[1:], "ABC", strict=True))
    if atom.types[0] not in _RANGES:
        product: NDArray[np.float64] = np.matmul(a, b.T) + c
        magnitude = np.matmul(np.abs(a), np.abs(b).T) + np.abs(c)
        eps, smallest = _LAST[atom.types[0]]
        last = np.abs(product) * eps + smallest
        own = magnitude * (atom.shape[2] + 1) * 2.0**-53  # the error of NumPy's sum
        return product, compute_allowed_error(atom, magnitude) + last + own
    wide = a[:, None, :], b[None, :, :]
    operation = atom.products.operation
    products = (
        wide[0] ^ wide[1]
        if operation is MmaOperation.XOR_POPC
        else wide[0] & wide[1]
        if operation is MmaOperation.AND_POPC
        else wide[0] * wide[1]
    )
    total: NDArray[np.int64] = products.sum(axis=2) + c
    if operation is MmaOperation.SATURATE:
        total = np.clip(total, -(2**31), 2**31 - 1)
    return total.astype(DTYPES[atom.types[0]]), np.zeros(total.shape)


def _read(element: str, values: NDArray[Any]) -> NDArray[Any]:
    """Elements as the instruction reads them, in 64 bits."""
    if element in _RANGES and DTYPES[element].itemsize == values.itemsize:
        values = values.view(DTYPES[element])
    if element == "tf32":
        values = (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values.astype(np.int64 if element in _RANGES else np.float64)


@dataclass(frozen=True)
class Distance:
    """How far a GPU's result is from the simulator's, the farthest element: as a part of what is allowed, and in units
    of the last place of the largest element. Both 0 where all bits agree.
    """

    of_allowed: float
    ulps: float


def is_supported(name: str, target: Target) -> bool:
    """Whether a target has an atom."""
    return mma_atom(name).targets.includes(target)


def measure(
    name: str, engine: CudaEngine, seeds: Sequence[int] = (0, 1, 2, 3), fills: Sequence[str] | None = None
) -> Distance:
    """Executes an atom on a GPU. AssertionError where the result is farther than allowed from NumPy's or the
    simulator's.
    """
    atom, target = mma_atom(name), engine.driver.target
    found = Distance(0.0, 0.0)
    for seed in seeds:
        program, launch = probe(name, seed, target, fills)
        arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
        given = arguments.launchable()
        config = LaunchConfig(launch.grid, launch.block)
        engine.launch(program.artifact(launch.kernel, target), config, given)
        values = arguments.logical(given)
        got, simulated = np.asarray(values["D"]), simulate(program, launch, "instr").array("D")
        product, allowed = expected(atom, values)
        assert (np.abs(got.astype(product.dtype) - product) <= allowed).all(), f"{name} is not NumPy's product"
        distance = np.abs(got.astype(np.float64) - simulated.astype(np.float64))
        assert (distance <= allowed).all(), f"{name} is not the simulator's product"
        if distance.any():
            last = float(np.spacing(np.abs(simulated).max()))
            found = Distance(
                max(found.of_allowed, float((distance / allowed).max())),
                max(found.ulps, float(distance.max()) / last),
            )
    return found


def main() -> None:
    """Prints the distances of all atoms that the first GPU has."""
    engine = CudaEngine()
    print(f"{engine.driver.name}: distance from the simulator, of what is allowed, and in ulps of the largest element")
    for name in ATOMS:
        if is_supported(name, engine.driver.target):
            found = measure(name, engine)
            print(f"{name:42} {found.of_allowed:10.3g} {found.ulps:10.3g}")


if __name__ == "__main__":
    main()
