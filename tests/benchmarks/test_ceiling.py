# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ceilings of matrix instructions: right products, and loops that do nothing but multiply."""

import re
from dataclasses import replace

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.ptx_text import mma_mnemonic

from benchmarks.ceiling import CEILINGS, Ceiling, check_product, measure_ceiling
from tests.kernels.harness import simulate

SM90 = Target("sm_90a")
SHAPES = [shape for shapes in CEILINGS.values() for shape in shapes]
ATOMS = {shape.atom: shape for shape in SHAPES}


@pytest.mark.parametrize("ceiling", SHAPES, ids=lambda shape: shape.label)
@pytest.mark.sampled(4)
def test_the_loop_holds_nothing_but_the_instruction(ceiling: Ceiling) -> None:
    program, _ = ceiling.workload(132).loaded()
    ptx = program.ptx(SM90)
    (loop,) = re.findall(r"^\$L__BB0_\d+:(.*?)bra", ptx, re.MULTILINE | re.DOTALL)
    found = [line.split()[0] for line in loop.splitlines() if re.match(r"\s*[a-z]", line)]
    executions = ceiling.rows * ceiling.columns * ceiling.depth
    multiplications = [mma_mnemonic(mma_atom(ceiling.atom))] * executions
    assert sorted(found) == sorted([*multiplications, "add.s32", "setp.ne.b32"])
    resources = assemble(ptx, SM90).kernels["mma_ceiling"]
    assert (resources.spill_loads, resources.stack) == (0, 0)
    assert resources.registers * 32 * ceiling.warps * ceiling.blocks <= 65536


@pytest.mark.parametrize("atom", ATOMS)
def test_products_on_the_simulator(atom: str) -> None:
    small = replace(ATOMS[atom], rows=2, columns=2, depth=2, warps=2, blocks=2, iterations=2)
    program, launch = small.workload(1).loaded()
    program = replace(program, target=SM90)
    ran = simulate(program, launch, "instr")
    check_product(small, ran.after)
    m, n, k = mma_atom(small.atom).shape
    assert small.operations(1) == 2 * 2 * ran.array("A").shape[0] * (2 * n) * (2 * k) * small.iterations
    assert ran.array("A").shape[0] == 4 * m
    wrong = {**ran.after, "C": np.zeros_like(ran.array("C"))}
    with pytest.raises(TilefoldError):
        check_product(small, wrong)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CEILINGS)
def test_figures_on_the_gpu(name: str) -> None:
    from tilefold.runtime.cuda import CudaEngine

    assert measure_ceiling(CudaEngine(), name, warmup=1, repeat=3).value > 1
