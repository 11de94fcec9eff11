# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels that multiply matrices by tiled MMAs, with small integers as numbers, so that every sum is exact."""

from dataclasses import replace
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.text.layouts import to_text
from tilefold.runtime.arrays.storage import scatter, storage_size

from tests.fuzz.problem import Generator, Problem, Tensor

_DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32, "f64": np.float64,
    "s8": np.int8, "s32": np.int32,
}  # fmt: skip
_ELEMENTS = {"tf32": "f32", "s8": "i8", "s32": "i32"}
_ATOMS = (
    "SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F32F16F16F32_TN", "SM80_16x8x16_F16F16F16F16_TN",
    "SM80_16x8x16_F32BF16BF16F32_TN", "SM80_16x8x8_F32TF32TF32F32_TN", "SM80_8x8x4_F64F64F64F64_TN",
    "SM80_16x8x32_S32S8S8S32_TN", "UniversalFMA<float>", "UniversalFMA<double>", "UniversalFMA<half_t>",
    "UniversalFMA<int32_t>",
)  # fmt: skip


def _matrix(rng: Random, rows: int, columns: int) -> Layout:
    """A matrix with either mode contiguous, with or without padding."""
    padding = rng.choice([0, 0, 8])
    return Layout((rows, columns), (1, rows + padding) if rng.random() < 0.5 else (columns + padding, 1))


def _stored(values: NDArray[Any], layout: Layout) -> NDArray[Any]:
    storage = np.zeros(storage_size(layout), values.dtype)
    scatter(np.ascontiguousarray(values), storage, layout)
    return storage


def generate(seed: int) -> Problem:
    """D = A B^T + C, each block a tile, in as many steps along K as are drawn."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    atom = mma_atom(rng.choice(_ATOMS))
    if atom.threads == 1:
        warps_m, warps_n = rng.choice([(8, 4), (4, 8), (16, 2), (5, 3)])
    else:
        warps_m, warps_n = rng.choice([(1, 1), (2, 1), (1, 2), (2, 2)])
    repeats = [rng.choice([1, 2, 3]) for _ in range(2)] + [rng.choice([1, 2])]
    tile = [
        size * count * repeat for size, count, repeat in zip(atom.shape, (warps_m, warps_n, 1), repeats, strict=True)
    ]
    grid, steps = (rng.choice([1, 2]), rng.choice([1, 2])), rng.choice([1, 2])
    m, n, k = tile[0] * grid[0], tile[1] * grid[1], tile[2] * steps
    shapes = {"A": (m, k), "B": (n, k), "C": (m, n), "D": (m, n)}
    layouts = {name: _matrix(rng, *shape) for name, shape in shapes.items()}
    types = dict(zip("DABC", atom.types, strict=True))
    values: dict[str, NDArray[Any]] = {name: numbers.integers(-3, 4, shape) for name, shape in shapes.items()}
    values["D"] = values["A"] @ values["B"].T + values["C"]
    values = {name: array.astype(_DTYPES[types[name]]) for name, array in values.items()}
    order = f"(1,{warps_m},0)" if rng.random() < 0.5 else f"({warps_n},1,0)"
    parameters = ", ".join(
        f'%{name}: !tile.tensor<{_ELEMENTS.get(types[name], types[name])}, gmem, align<16>, "{to_text(layout)}">'
        for name, layout in layouts.items()
    )
    blocks = {"A": f'"({tile[0]},{tile[2]})", (%m, %k)', "B": f'"({tile[1]},{tile[2]})", (%n, %k)'}
    ends = f'"({tile[0]},{tile[1]})", (%m, %n)'
    tiles = "\n".join(f"%t{name} = tile.local_tile %{name}, {ends}" for name in "CD")
    parts = "\n".join(
        f"%t{name} = tile.local_tile %{name}, {where}\n%g{name} = tile.partition_{name} %mma, %t{name}, %t\n"
        f"%r{name} = tile.make_fragment_{name} %mma, %g{name}\ntile.copy %g{name}, %r{name}"
        for name, where in blocks.items()
    )
    text = f"""gpu.module @m {{
tile.kernel @k({parameters}) threads({atom.threads * warps_m * warps_n}) {{
%t = gpu.thread_id x
%m = gpu.block_id x
%n = gpu.block_id y
%mma = tile.tiled_mma #tile.mma_atom<"{atom.name}"> atoms "({warps_m},{warps_n},1):{order}"
{tiles}
%gC = tile.partition_C %mma, %tC, %t
%gD = tile.partition_C %mma, %tD, %t
%rC = tile.make_fragment_C %mma, %gC
tile.copy %gC, %rC
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%steps = arith.constant {steps} : index
scf.for %k = %zero to %steps step %one {{
{parts}
tile.gemm %mma, %rC, %rA, %rB, %rC
}}
tile.copy %rC, %gD
return
}}
}}
"""
    arguments = {name: Tensor(_stored(values[name], layout)) for name, layout in layouts.items()}
    result = arguments["D"]
    unwritten = np.full_like(result.storage, 77)
    expected = unwritten.copy()
    scatter(np.ascontiguousarray(values["D"]), expected, layouts["D"])
    arguments["D"] = replace(result, storage=unwritten, expected=expected, fresh=True)
    return Problem(text, (*grid, 1), (atom.threads * warps_m * warps_n, 1, 1), arguments, names=frozenset({"D"}))


MULTIPLICATIONS = Generator(generate)
