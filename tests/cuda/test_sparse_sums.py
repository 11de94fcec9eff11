# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications with a sparse A: a GPU's results are those of the simulator, bit for bit, for any numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.element_types import BY_PTX
from tilefold.layout.atoms.contract import Role
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_sparse import chunk_of, selectors
from tilefold.layout.atoms.mma_sync import registers
from tilefold.layout.atoms.mma_table import SPARSE_ATOMS, mma_atom
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.cuda.harness import artifact
from tests.cuda.test_sums import KINDS, engine, how_of, numbers
from tests.emit.harness import kernel, parse
from tests.warpgroups import Problem

ORDERED: Mapping[int, tuple[int, ...]] = {2: (0b0100, 0b1110), 4: (4, 8, 9, 12, 13, 14), 8: (4, 8, 9, 12, 13, 14)}
"""The descriptions of a chunk, by its elements, whose indices rise."""
BLOCKS = 16
"""The warps of a launch, each with matrices of its own."""
WARPGROUPS = [
    *(f"SM90_SPARSE_64x{n}x32_{types}_{space}<Major::K,Major::K>" for n in (8, 128)
      for types in ("F32F16F16", "F16F16F16", "F32BF16BF16") for space in ("SS", "RS")),
    *(f"SM90_SPARSE_64x{n}x16_F32TF32TF32_{space}_TN" for n in (8, 128) for space in ("SS", "RS")),
    *(f"SM90_SPARSE_64x64x64_{d}{a}{b}_{space}_TN" for d in ("F32", "F16")
      for a, b in (("E4M3", "E5M2"), ("E5M2", "E4M3")) for space in ("SS", "RS")),
]  # fmt: skip
INTEGERS = ["SM90_SPARSE_64x16x64_S32S8U8_SS_TN", "SM90_SPARSE_64x16x64_S32U8S8_RS_TN_SATURATE"]


def words(rng: np.random.Generator, element: str, shape: tuple[int, ...], ordered: bool = True) -> NDArray[np.uint32]:
    """Random metadata of a matrix of a PTX type: eight chunks each word."""
    codes = rng.choice(ORDERED[chunk_of(element).size], (*shape, 8))
    if not ordered and chunk_of(element).size != 2:
        codes = np.where(rng.integers(0, 2, codes.shape) > 0, codes, (codes & 3) << 2 | codes >> 2)
    return (codes.astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)


def warp_kernel(atom: MmaAtom, select: int, ordered: bool) -> str:
    """A kernel `@k` of a warp that executes the instruction, on the words that each thread has in A, B, C and E, and
    writes its words of D.
    """
    pointer = "!ptx.ptr<global>, i32 -> !ptx.ptr<global>"
    count = {**{name: registers(atom, name).count for name in "ABCD"}, "E": 1}
    type = "f32" if registers(atom, "D").kind == "f32" else "i32"
    lines = ['%t = ptx.sreg "tid.x"', '%b = ptx.sreg "ctaid.x"', "%c32 = arith.constant 32 : i32",
             "%first = arith.muli %b, %c32 : i32", "%lane = arith.addi %first, %t : i32"]  # fmt: skip
    given: list[str] = []
    for name in "ABCDE":
        lines.append(f"%bytes{name} = arith.constant {4 * count[name]} : i32")
        lines.append(f"%at{name} = arith.muli %lane, %bytes{name} : i32")
        lines.append(f"%p{name} = ptx.ptr_add %{name}, %at{name} : {pointer}")
        for i in range(count[name]):
            lines.append(f"%o{name}{i} = arith.constant {4 * i} : i32")
            lines.append(f"%q{name}{i} = ptx.ptr_add %p{name}, %o{name}{i} : {pointer}")
            if name != "D":
                of = type if name == "C" else "i32"
                lines.append(f"%v{name}{i} = ptx.ld %q{name}{i} align 4 : !ptx.ptr<global> -> {of}")
        given.append(", ".join(f"%v{name}{i}" for i in range(count[name])))
    order = " ordered" if ordered else ""
    lines.append(
        f'%r:{count["D"]} = ptx.mma.sync.sp "{atom.name}" ({given[0]}), ({given[1]}), ({given[2]}) '
        f"metadata %vE0 select {select}{order}"
    )
    lines += [f"ptx.st %r#{i}, %qD{i} align 4 : {type}, !ptx.ptr<global>" for i in range(count["D"])]
    return kernel("\n".join(lines), ", ".join(f"%{name}: !ptx.ptr<global> align 16" for name in "ABCDE"))


def assert_as_simulated(text: str, config: LaunchConfig, arrays: Mapping[str, NDArray[Any]], out: str) -> None:
    """Runs a kernel on both; the bits of the array `out` must be the same."""
    simulated = {name: array.copy() for name, array in arrays.items()}
    simulator = SimEngine(sink=lambda _: None, tensor_cores=engine().driver.target)
    for one, given in ((engine(), arrays), (simulator, simulated)):
        args = {name: TensorArgument(array) for name, array in given.items()}
        if one is simulator:
            simulator.launch(SimProgram(parse(text), "k"), config, args)
        else:
            engine().launch(artifact(text, engine().driver.target), config, args)
    found, wanted = arrays[out].view(np.uint32).ravel(), simulated[out].view(np.uint32).ravel()
    differ = np.flatnonzero(found != wanted)
    assert not differ.size, f"{differ.size} of {found.size}: " + ", ".join(
        f"{at}: {found[at]:#x}, simulated {wanted[at]:#x}" for at in differ[:3]
    )


@pytest.mark.gpu
@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "any order"])
@pytest.mark.parametrize("name", SPARSE_ATOMS)
def test_a_warp_sums_by_the_rule(name: str, ordered: bool) -> None:
    atom, rng = mma_atom(name), np.random.default_rng(3)
    is_float = atom.types[0] != "s32"
    if is_float:
        how_of(atom)
    elif not atom.targets.includes(engine().driver.target):
        pytest.skip(f"{engine().driver.target} has no {name}")
    count = {operand: registers(atom, operand).count for operand in "ABCD"}
    for select in range(selectors(atom.contract.operand(Role.METADATA).layout)):
        text = warp_kernel(atom, select, ordered)
        for kind in KINDS if is_float else ("any",):
            arrays: dict[str, NDArray[Any]] = {"D": np.zeros(BLOCKS * 32 * count["D"], np.uint32)}
            for operand, of in zip("ABC", atom.types[1:], strict=True):
                size = BLOCKS * 32 * count[operand]
                if is_float:
                    arrays[operand] = numbers(of, (size * 32 // BY_PTX[of].bits,), rng, kind).view(np.uint32)
                else:
                    arrays[operand] = rng.integers(0, 1 << 32, size, np.uint32)
            arrays["E"] = words(rng, atom.types[1], (BLOCKS * 32,), ordered)
            assert_as_simulated(text, LaunchConfig((BLOCKS, 1, 1), (32, 1, 1)), arrays, "D")


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*WARPGROUPS, *INTEGERS])
def test_a_warpgroup_sums_by_the_rule(name: str) -> None:
    """Four instructions that follow each other without waiting."""
    problem, rng = Problem(name, "SW128", 4), np.random.default_rng(4)
    is_float = problem.atom.types[0] != "s32"
    if is_float:
        how_of(problem.atom)
    m, n, k = problem.atom.shape
    text, stored = problem.text(), problem.atom.stored_k
    for kind in KINDS if is_float else ("any",):
        made = [(m, 4 * stored), (n, 4 * k)]
        if is_float:
            a, b = [numbers(x, shape, rng, kind) for x, shape in zip(problem.atom.types[1:3], made, strict=True)]
        else:
            a, b = [rng.integers(0, 256, shape, np.uint8) for shape in made]
        given = problem.given(a, b)
        e = words(rng, problem.atom.types[1], (128 * 4,))
        arrays = {"A": given[0], "B": given[1], "C": problem.output(), "E": e}
        assert_as_simulated(text, LaunchConfig((1, 1, 1), (128, 1, 1)), arrays, "C")
