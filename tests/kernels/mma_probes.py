# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One execution of each MMA atom, `mma_probe.cute` with its parameters: programs, and what must come out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.compiler.params import expand
from tilefold.dialects.target import Target
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.runtime.sim.mma import DTYPES, allowed_error

from tilefold.launches import Changes, Launch, launches_of
from tilefold.lowering import Program, load

ATOMS = tuple(MMA_ATOMS)
NEWEST = Target("sm_90a")
"""A target that has every atom of a warp."""

_SOURCE = Path(__file__).with_name("mma_probe.cute")
_ELEMENTS = {
    "tf32": "f32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "s32": "i32", "s8": "i8", "u8": "i8", "s4": "si4", "u4": "ui4",
    "b1": "ui1",
}  # fmt: skip
_RANGES = {"s32": (-(2**31), 2**31), "s8": (-128, 128), "u8": (-128, 128), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}
_WARP = {32: (1, 1), 8: (2, 2), 1: (8, 4)}
"""How many atoms of so many threads a warp executes at once, in M and N."""


def probe(name: str, seed: int = 0, target: Target = NEWEST) -> tuple[Program, Launch]:
    """The program that executes an atom, and its launch, on data that depend on the seed."""
    atom = mma_atom(name)
    m, n, k = atom.shape
    rows, columns = _WARP[atom.threads]
    d, a, b, c = atom.types
    fills = [_fill(t, 4 * seed + number) for number, t in enumerate((a, b, c))]
    values = {
        "ATOM": f'"{name}"', "ATOM_D": f'"{name if d == c else name.replace("F16_", "F32_")}"',
        "ATOMS": f'"({rows},{columns},1):(1,{rows},0)"', "M": m * rows, "N": n * columns, "K": k,
        **{f"T{operand}": _ELEMENTS.get(t, t) for operand, t in zip("DABC", atom.types, strict=True)},
        **{f"FILL_{operand}": f'"{fill}"' for operand, fill in zip("ABC", fills, strict=True)},
    }  # fmt: skip
    text = expand(_SOURCE.read_text(), _SOURCE.name, {name: str(value) for name, value in values.items()})
    program = replace(load(text), target=target)
    (launch,) = launches_of(program.module, program.source, Changes())
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
    if atom.types[0] != "s32":
        product: NDArray[np.float64] = np.matmul(a, b.T) + c
        magnitude = np.matmul(np.abs(a), np.abs(b).T) + np.abs(c)
        last = np.spacing(np.abs(product).astype(DTYPES[atom.types[0]])).astype(np.float64)
        own = magnitude * (atom.shape[2] + 1) * 2.0**-53  # the error of NumPy's sum
        return product, allowed_error(atom, magnitude) + last + own
    wide = a[:, None, :], b[None, :, :]
    products = (
        wide[0] ^ wide[1] if ".xor" in atom.ptx else wide[0] & wide[1] if ".and" in atom.ptx else wide[0] * wide[1]
    )
    total: NDArray[np.int64] = products.sum(axis=2) + c
    if ".satfinite" in atom.ptx:
        total = np.clip(total, -(2**31), 2**31 - 1)
    return total.astype(np.int32), np.zeros(total.shape)


def _read(element: str, values: NDArray[Any]) -> NDArray[Any]:
    """Elements as the instruction reads them, in 64 bits."""
    if element == "u8":
        values = values.view(np.uint8)
    if element == "tf32":
        values = (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values.astype(np.int64 if element in _RANGES else np.float64)
