# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of sm_120 on floats of 8, 6 and 4 bits: at every stage, and their numbers, by a second formula
written from the PTX ISA (Block Scaling for mma.sync) and in fractions.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.element_types import BY_PTX
from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.layout.atoms.mma_narrow import NARROW
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.atoms.summation import ScaledSum, summation
from tilefold.runtime.sim.atoms.mma_arithmetic import DTYPES, from_bytes
from tilefold.runtime.sim.atoms.scaled import scaled_executor
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import simulate
from tests.sim.harness import entry, launch
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import Program, load

SM120A = Target("sm_120a")
SCALED = [name for name in MMA_ATOMS if mma_atom(name).has_scales]
STAGES = ("cute", "folded", "atoms", "index", "instr", "ptx")
_SOURCE = Path(__file__).with_name("mma_scaled.cute")
_HALVES = [name for name in SCALED if mma_atom(name).shape[2] == 64 and mma_atom(name).targets.includes(SM120A)]
_BYTES = [f"SM120_16x8x32_TN_VS<float_{a}_t,float_{b}_t,float,float_ue8m0_t,32>" for a, b in (
    ("e4m3", "e5m2"), ("e2m3", "e4m3"), ("e3m2", "e2m3"),
)]  # fmt: skip
"""Those whose elements are bytes in memory too."""


def probe(name: str) -> Program:
    """The program that executes an atom with scales once."""
    atom = mma_atom(name)
    _, a, b, _ = atom.types
    scale = "f8E4M3FN" if "ue4m3" in name else "f8E8M0FNU"
    values = {
        "ATOM": f'"{name}"', "TS": scale, "TA": BY_PTX[a].mlir, "TB": BY_PTX[b].mlir, "K": atom.shape[2],
        "F": atom.products.factors, "VS": atom.products.scaled,
    }  # fmt: skip
    return load(expand(_SOURCE.read_text(), _SOURCE.name, {key: str(value) for key, value in values.items()}))


@pytest.mark.parametrize("name", [*_HALVES, *_BYTES])
@pytest.mark.sampled(2)
def test_every_stage_gives_the_product(name: str) -> None:
    program, atom = probe(name), mma_atom(name)
    (given,) = read_launches(program.module, program.source, Changes())
    runs = [simulate(program, given, stage, SM120A) for stage in STAGES]
    values = runs[0].before
    a, b = [
        values[x].astype(np.float64) * values[f"S{x}"].astype(np.float64).repeat(atom.products.scaled, axis=1)
        for x in "AB"
    ]
    expected = a @ b.T + values["C"]
    results = [run.array("D") for run in runs]
    assert np.allclose(results[0], expected, rtol=1e-6, atol=1e-5)
    assert all(np.array_equal(results[0], result) for result in results)


def bits_of(name: str, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    """Any numbers of a type but NaN and infinities."""
    element = BY_PTX[name]
    drawn = rng.integers(0, 1 << element.bits, shape).astype(np.uint8).view(DTYPES[name])
    return np.where(np.isfinite(drawn.astype(np.float64)), drawn, np.uint8(0x31).view(DTYPES[name]))


def exponent_of(element: str, value: Fraction) -> int:
    """The encoded exponent of a number that is not 0, the least one of a subnormal."""
    exponent = 0
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    least = -126 if element == "f32" else -127 if element == "ue8m0" else 2 - (1 << BY_PTX[element].exponent - 1)
    return max(exponent, least)


def truncated(value: Fraction, step: int) -> Fraction:
    unit = Fraction(2) ** step
    return Fraction(int(value / unit)) * unit


def by_the_rule(name: str, a: Any, b: Any, c: float, scales_a: Any, scales_b: Any) -> float:
    """One element of D, as MMA-Sim (arXiv 2511.10909) has it."""
    atom = mma_atom(name)
    how = summation(atom, SM120A)
    assert isinstance(how, ScaledSum)
    kind_a, kind_b, scale = *atom.types[1:3], "e4m3" if "ue4m3" in name else "ue8m0"
    addends: list[tuple[Fraction, int]] = [(Fraction(c), exponent_of("f32", Fraction(c)))] if c else []
    for first in range(0, len(a), how.exact):
        total = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in
                    zip(a[first : first + how.exact], b[first : first + how.exact], strict=True))  # fmt: skip
        s, t = (abs(Fraction(float(x[first // atom.products.scaled]))) for x in (scales_a, scales_b))
        if total * s * t:
            exponent = exponent_of(scale, s) + exponent_of(scale, t)
            if how.exact == 1:
                exponent += exponent_of(kind_a, Fraction(float(a[first])))
                exponent += exponent_of(kind_b, Fraction(float(b[first])))
            addends.append((total * s * t, exponent))
    top = max([-133, *(exponent for _, exponent in addends)])
    total = sum((truncated(value, top - how.fraction) for value, _ in addends), Fraction(0))
    if not total:
        return 0.0
    result = truncated(total, max(exponent_of("f32", total), -126) - 23)
    return float(np.copysign(np.inf, float(result > 0) - 0.5)) if abs(result) >= Fraction(2) ** 128 else float(result)


@pytest.mark.parametrize("name", [*_HALVES, *_BYTES])
@pytest.mark.sampled(2)
def test_numbers_follow_the_rule(name: str) -> None:
    atom, rng = mma_atom(name), np.random.default_rng(7)
    (m, n, k), (_, kind_a, kind_b, _), factors = atom.shape, atom.types, atom.products.factors
    scale = "e4m3" if "ue4m3" in name else "ue8m0"
    a, b = bits_of(kind_a, rng, (m, k)), bits_of(kind_b, rng, (n, k))
    if scale == "ue8m0":
        scales_a, scales_b = (rng.integers(120, 134, (rows, factors)).astype(np.uint8) for rows in (m, n))
    else:
        scales_a, scales_b = (rng.integers(0, 127, (rows, factors)).astype(np.uint8) for rows in (m, n))
    c = (rng.standard_normal((m, n)) * 2.0 ** rng.integers(-30, 12, (m, n))).astype(np.float32)
    lanes = np.arange(32)
    in_a = scales_a[lanes // 4 + 8 * (lanes % 2)]
    in_b = scales_b[lanes // 4]
    fragments = [place(matrix, layout) for matrix, layout in
                 ((a, atom.layout_a), (b, atom.layout_b), (c, atom.layout_c))]  # fmt: skip
    run = scaled_executor(atom, summation(atom, SM120A))
    d = run(fragments[0], fragments[1], fragments[2], in_a, in_b)
    numbers = [x.view(DTYPES[scale]) for x in (scales_a, scales_b)]
    expected = np.array(
        [[by_the_rule(name, a[i], b[j], float(c[i, j]), numbers[0][i], numbers[1][j]) for j in range(n)]
         for i in range(m)], np.float32
    )  # fmt: skip
    assert np.array_equal(d, place(expected, atom.layout_c))


def place(matrix: NDArray[Any], layout: Any) -> NDArray[Any]:
    """The values (lanes, values) of a matrix."""
    values = np.zeros((32, layout[1].size), matrix.dtype)
    for lane in range(32):
        for value in range(values.shape[1]):
            column, row = divmod(int(layout(lane, value)), matrix.shape[0])
            values[lane, value] = matrix[row, column]
    return values


def test_numbers_that_are_none() -> None:
    """A NaN among the scales is one of the results that it is a factor of; an infinite C stays."""
    name = _HALVES[-1]
    atom = mma_atom(name)
    ones = [np.ones((32, layout[1].size), ml_dtypes.float4_e2m1fn) for layout in (atom.layout_a, atom.layout_b)]
    c, scales = np.zeros((32, 4), np.float32), np.full((32, atom.products.factors), 0x38, np.uint8)
    c[:, 0] = np.inf
    broken = scales.copy()
    broken[0, 1] = 0x7F  # the scales of row 0, in lane 0
    run = scaled_executor(atom, summation(atom, SM120A))
    d = run(ones[0], ones[1], c, broken, scales)
    assert d[:4, :2].view(np.uint32).tolist() == [[0x7FFFFFFF, 0x7FFFFFFF]] * 4
    assert (d[4:, 0] == np.inf).all()
    assert (d[4:, 1:] == 64).all()


def lanes_of(rows: str, atom: str, scales: str = "", op: str = "ptx.mma.sync") -> str:
    """A kernel whose threads execute an instruction on words of A: `rows` makes them."""
    operands = "(%a, %a, %a, %a), (%a, %a), (%z, %z, %z, %z)"
    return entry(
        '%t = ptx.sreg "tid.x"\n%zero = arith.constant 0 : i32\n%z = arith.constant 0.0 : f32\n'
        f'{rows}\n%d:4 = {op} "{atom}" {operands}{scales}'
    )


_FP4 = "SM120_16x8x32_TN<float_e2m1_t,float_e2m1_t,float>"
_TWO = "%a = arith.constant 0x02020202 : i32"
_SECOND = """%a = arith.constant 0 : i32
%four = arith.constant 4 : i32
%two = arith.constant 2 : i32
%rest = arith.remui %t, %four : i32
%second = arith.cmpi uge, %rest, %two : i32
%scale = arith.constant 0x38383838 : i32
%s = arith.select %second, %scale, %zero : i32"""


def test_elements_that_are_not_shifted_are_found() -> None:
    with pytest.raises(SimulationError) as caught:
        launch(lanes_of(_TWO, _FP4))
    assert caught.value.code == Code.SIM_SCALES.id
    assert "outside bits 2 to 5" in str(caught.value)
    launch(lanes_of(_TWO.replace("02", "08"), _FP4))


def test_scales_in_lanes_that_are_not_read_are_found() -> None:
    """Threads 2 and 3 of four have them, which the instruction reads if it selects the second pair."""
    op, of_a = "ptx.mma.sync.block_scale", " scales (%s, %scale) select (0, 0, 0, 0)"
    with pytest.raises(SimulationError) as caught:
        launch(lanes_of(_SECOND, _HALVES[-1], of_a, op))
    assert caught.value.code == Code.SIM_SCALES.id
    assert "but not in lane 2" in str(caught.value)
    launch(lanes_of(_SECOND, _HALVES[-1], of_a.replace("(0, 0,", "(0, 1,"), op))


@pytest.mark.parametrize("element", NARROW)
def test_elements_in_bytes(element: str) -> None:
    """One of 4 bits is in bits 2 to 5, one of 6 bits in the low ones (PTX ISA, mma with .kind::f8f6f4)."""
    codes = np.arange(1 << BY_PTX[element].bits, dtype=np.uint8)
    held = (codes << 2 if element == "e2m1" else codes).astype(np.uint8)
    read = from_bytes(element, held[None], in_bytes=True)[0]
    assert np.array_equal(read.view(np.uint8), codes)
