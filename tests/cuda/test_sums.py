# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of tensor cores: a GPU's results are those of `Summation`, bit for bit, for every form and any numbers."""

from functools import cache
from itertools import product
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.element_types import BY_PTX
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.atoms.summation import FusedChain, Summation, summation
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.atoms.mma_arithmetic import DTYPES, widen
from tilefold.runtime.sim.atoms.sums import multiply_add

import tilefold
from tests.cuda.harness import artifact
from tests.warpgroups import Problem

CHAIN = """
!A = !tile.tensor<$TA, gmem, align<16>, "($ROWS,$LENGTH):($LENGTH,1)">
!B = !tile.tensor<$TB, gmem, align<16>, "($COLUMNS,$LENGTH):($LENGTH,1)">
!C = !tile.tensor<$TC, gmem, align<16>, "($ROWS,$N):($N,1)">

gpu.module @kernels {
  tile.kernel @chain(%A: !A, %B: !B, %C: !C, %D: !C) threads(32) {
    %t = gpu.thread_id x
    %block = gpu.block_id x
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %steps = arith.constant $STEPS : index
    %mma = tile.tiled_mma #tile.mma_atom<"$ATOM"> atoms "$ATOMS"
    %tileC = tile.local_tile %C, "($M,$N)", (%block, %zero)
    %tileD = tile.local_tile %D, "($M,$N)", (%block, %zero)
    %gC = tile.partition_C %mma, %tileC, %t
    %gD = tile.partition_C %mma, %tileD, %t
    %rC = tile.make_fragment_C %mma, %gC
    tile.copy %gC, %rC
    scf.for %i = %zero to %steps step %one {
      %tileA = tile.local_tile %A, "($M,$K)", (%block, %i)
      %tileB = tile.local_tile %B, "($N,$K)", (%block, %i)
      %gA = tile.partition_A %mma, %tileA, %t
      %gB = tile.partition_B %mma, %tileB, %t
      %rA = tile.make_fragment_A %mma, %gA
      %rB = tile.make_fragment_B %mma, %gB
      tile.copy %gA, %rA
      tile.copy %gB, %rB
      tile.gemm %mma, %rC, %rA, %rB, %rC
    }
    tile.copy %rC, %gD
    return
  }
}
"""
"""D = A * B^T + C for each block, by one atom along K."""
_MLIR = {"tf32": "f32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
FORMS = [name for name in MMA_ATOMS if mma_atom(name).threads > 1 and BY_PTX[mma_atom(name).types[0]].kind == "float"]
WGMMA = [
    *(f"SM90_64x{n}x16_{types}_{space}<Major::K,Major::K>" for n in (8, 64, 256)
      for types in ("F32F16F16", "F16F16F16", "F32BF16BF16") for space in ("SS", "RS")),
    *(f"SM90_64x{n}x8_F32TF32TF32_{space}_TN" for n in (8, 256) for space in ("SS", "RS")),
    *(f"SM90_64x{n}x32_{d}{a}{b}_{space}_TN" for n in (64, 256) for d in ("F32", "F16")
      for a in ("E4M3", "E5M2") for b in ("E4M3", "E5M2") for space in ("SS", "RS")),
]  # fmt: skip


@cache
def engine() -> CudaEngine:
    return CudaEngine()


def how_of(atom: MmaAtom) -> Summation:
    """How this GPU sums. Skips a test of an instruction that it lacks, or that nobody has measured on it."""
    target = engine().driver.target
    if not atom.targets.includes(target):
        pytest.skip(f"{target} has no {atom.name}")
    how = summation(atom, target)
    if how is None:
        pytest.skip(f"nobody has measured how {target} sums in {atom.name}")
    return how


def numbers(name: str, shape: tuple[int, ...], rng: np.random.Generator, kind: str) -> NDArray[Any]:
    """Numbers of a PTX type, by the kind of their bits."""
    dtype, element = DTYPES[name], BY_PTX[name]
    unsigned = np.dtype(f"u{dtype.itemsize}")
    if kind == "normal":
        return rng.standard_normal(shape).astype(dtype)
    bits = rng.integers(0, 1 << element.bits, shape, np.uint64, endpoint=False)
    if kind == "any":
        return bits.astype(unsigned).view(dtype)
    fraction = np.uint64((1 << element.fraction) - 1)
    sign = bits & np.uint64(1 << element.bits - 1)
    if kind == "subnormal":
        exponents = rng.integers(0, 2, shape, np.uint64)
    elif kind == "alike":  # sums cancel
        exponents = np.full(shape, (1 << element.exponent - 1) - 1, np.uint64)
    else:  # a wide range, up to infinities and NaN
        exponents = rng.integers(0, 1 << element.exponent, shape, np.uint64)
    return (sign | exponents << np.uint64(element.fraction) | bits & fraction).astype(unsigned).view(dtype)


KINDS = ("normal", "any", "subnormal", "alike", "wide")


def expected(atom: MmaAtom, how: Summation, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """D of matrices (count, M, K), (count, N, K) and (count, M, N), by one instruction after the other along K."""
    m, n, k = atom.shape
    places = [np.arange(rows * columns).reshape(rows, columns) for rows, columns in ((m, k), (n, k), (m, n))]
    run = multiply_add(how, atom.types, places[0], places[1].T, places[2])
    left, right = widen(atom.types[1])(a), widen(atom.types[2])(b)
    total = c.reshape(len(c), -1)
    for first in range(0, a.shape[2], k):
        part = np.s_[:, :, first : first + k]
        total = run(left[part].reshape(len(a), -1), right[part].reshape(len(b), -1), total)
    return total.reshape(c.shape)


def assert_same_bits(found: NDArray[Any], by_rule: NDArray[Any]) -> None:
    """NaN of f64, which has no canonical one, count as equal."""
    unsigned = np.dtype(f"u{found.itemsize}")
    differ = np.ascontiguousarray(found).view(unsigned) != np.ascontiguousarray(by_rule).view(unsigned)
    if found.itemsize == 8:
        differ &= ~(np.isnan(found) & np.isnan(by_rule))
    where = np.argwhere(differ)[:3]
    assert not where.size, [(tuple(at), found[tuple(at)], by_rule[tuple(at)]) for at in where]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "length"), [(2048, 0), (16, 4096)], ids=["one", "chain"])
@pytest.mark.parametrize("name", FORMS)
def test_a_warp_sums_by_the_rule(name: str, count: int, length: int, kind: str, tmp_path: Path) -> None:
    """A single instruction for many matrices, and chains with K = 4096."""
    atom, rng = mma_atom(name), np.random.default_rng(len(kind))
    how = how_of(atom)
    side = 1 if atom.threads == 32 else 2  # a warp executes four multiplications by eight threads
    m, n, k = side * atom.shape[0], side * atom.shape[1], atom.shape[2]
    if isinstance(how, FusedChain):
        count, length = count // 64 or 1, length and 256
    length = length or k
    a, b, c = [
        numbers(element, shape, rng, kind)
        for element, shape in zip(atom.types[1:], ((count, m, length), (count, n, length), (count, m, n)), strict=True)
    ]
    words = {
        "ATOMS": "(1,1,1):(0,0,0)" if side == 1 else "(2,2,1):(1,2,0)",
        "M": m, "N": n, "K": k, "ROWS": count * m, "COLUMNS": count * n, "LENGTH": length, "STEPS": length // k,
        **{f"T{operand}": _MLIR.get(x, x) for operand, x in zip("ABC", atom.types[1:], strict=True)},
    }  # fmt: skip
    path = tmp_path / "chain.cute"
    path.write_text(Template(CHAIN).substitute(words, ATOM=name))
    d = np.empty_like(c)
    flat = [x.reshape(-1, x.shape[2]) for x in (a, b, c, d)]
    tilefold.load(path).kernel("chain")(*flat).launch(grid=count, device="cuda")
    result = flat[3].reshape(c.shape)
    for i, j in product(range(side), repeat=2):
        rows, columns = (slice(x * own, (x + 1) * own) for x, own in ((i, atom.shape[0]), (j, atom.shape[1])))
        with np.errstate(all="ignore"):
            one = expected(atom, how, a[:, rows], b[:, columns], np.ascontiguousarray(c[:, rows, columns]))
        assert_same_bits(result[:, rows, columns], one)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WGMMA)
def test_a_warpgroup_sums_by_the_rule(name: str, kind: str) -> None:
    """Chains of four instructions that follow each other without waiting."""
    problem, rng = Problem(name, "SW128", 4), np.random.default_rng(len(kind))
    how = how_of(problem.atom)
    m, n, k = problem.atom.shape
    kernel = artifact(problem.text(), engine().driver.target)
    for _ in range(4):
        a, b = [numbers(x, (rows, 4 * k), rng, kind) for x, rows in zip(problem.atom.types[1:3], (m, n), strict=True)]
        given, out = problem.given(a, b), problem.output()
        args = {"A": TensorArgument(given[0]), "B": TensorArgument(given[1]), "C": TensorArgument(out)}
        engine().launch(kernel, LaunchConfig((1, 1, 1), (128, 1, 1)), args)
        zero = np.zeros((1, m, n), DTYPES[problem.atom.types[0]])
        with np.errstate(all="ignore"):
            assert_same_bits(problem.matrix(out), expected(problem.atom, how, a[None], b[None], zero)[0])
