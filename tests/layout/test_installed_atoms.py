# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms of other packages: the example of docs/extending.md, installed; and packages that are wrong."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import Code, LayoutError
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.entry_points import GROUP, installed_atoms
from tilefold.layout.atoms.mma_table import mma_atom

from tests.docs.pages import blocks
from tests.kernels.harness import STAGES, simulate
from tests.kernels.mma_probes import expected, probe
from tests.project.tree import ROOT

NAME = "NEIGHBOURS_16x8x32_S32S8S8S32_TN"


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    """Packages are looked up once in a process; here they come and go."""
    installed_atoms.cache_clear()
    yield
    installed_atoms.cache_clear()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, text: str, points: dict[str, str]) -> None:
    """Puts a package into a folder as an installer does, and the folder on the path."""
    (folder / f"{module}.py").write_text(text)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = "".join([f"{name} = {value}\n" for name, value in points.items()])
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.delitem(sys.modules, module, raising=False)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that the page shows."""
    page = {block.name: block.text for block in blocks((ROOT / "docs" / "extending.md").read_text()) if block.name}
    points = tomllib.loads(page["pyproject.toml"])["project"]["entry-points"][GROUP]
    install(tmp_path, monkeypatch, "neighbour_atoms", page["neighbour_atoms.py"], points)


@pytest.mark.usefixtures("example")
def test_the_example_of_the_docs_works() -> None:
    program, launch = probe(NAME)
    found = [simulate(program, launch, stage) for stage in STAGES]
    for ran in found:
        product, allowed = expected(mma_atom(NAME), ran.after)
        assert (np.abs(ran.array("D") - product) <= allowed).all()
    ptx = program.ptx(Target("sm_80"))
    assert "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {" in ptx
    assert assemble(ptx, Target("sm_80")).kernels


@pytest.mark.usefixtures("example")
def test_the_fragments_of_the_example() -> None:
    """PTX ISA, mma.m16n8k32 with 8-bit types: rows g, and g + 8 for a4 to a7 and a12 to a15."""
    atom = mma_atom(NAME)
    for lane in range(32):
        for i in range(16):
            assert atom.layout_a(lane, i) == lane // 4 + 8 * (i // 4 % 2) + 16 * (8 * (lane % 4) + i // 8 * 4 + i % 4)
        for i in range(8):
            assert atom.layout_b(lane, i) == lane // 4 + 8 * (8 * (lane % 4) + i)


def test_without_the_package_there_is_no_such_atom() -> None:
    with pytest.raises(LayoutError) as caught:
        mma_atom(NAME)
    assert caught.value.code == Code.ATOM_UNKNOWN.id


COPY = """
from dataclasses import replace
from tilefold.layout.atoms.instructions import LdMatrix, Move
from tilefold.layout.atoms.copy_names import copy_atom

def atoms():
    atom = copy_atom("UniversalCopy<uint32_t>")
    return [replace(atom, name="MyCopy", contract=replace(atom.contract, instruction={instruction}))]
"""


def test_a_copy_atom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "my_copies", COPY.format(instruction="Move()"), {"a": "my_copies:atoms"})
    assert copy_atom("MyCopy", 16).values == 2
    with pytest.raises(LayoutError) as caught:
        mma_atom("MyCopy")
    assert caught.value.code == Code.ATOM_UNKNOWN.id


HEAD = """
from dataclasses import replace
from tilefold.base.target import targets
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.mma_table import mma_atom

def changed(atom, **changes):
    return [replace(atom, name='X', contract=replace(atom.contract, **changes))]
"""
F16 = 'mma_atom("SM80_16x8x8_F32F16F16F32_TN")'
WRONG = {
    "raise ValueError('no')": "cannot be loaded: ValueError: no",
    "def atoms(): return 3": "TypeError",
    "def atoms(): return ['x']": "str is not an MmaAtom or a CopyAtom",
    f"def atoms(): return [replace({F16}, name='a b')]": "cannot be the name of an atom",
    f"def atoms(): return changed({F16}, instruction='mma.sync.aligned {{%r0}}; exit')": "cannot have 'mma.sync",
    f"def atoms(): return changed({F16}, operands=(replace({F16}.operand('A'), major='x; exit'),))": "'x; exit'",
    f"def atoms(): return changed({F16}, numbers=replace({F16}.products, operation='.no'))": "have '.no'",
    f"def atoms(): return changed({F16}, ids=Layout(1, 0))": "1 threads are not a warp",
    f"def atoms(): return changed({F16}, ids=Layout(64, 1))": "64 threads are not a warp",
    "def atoms(): return [replace(mma_atom('UniversalFMA<half_t>'), name='X')]": "X is fma.rn.f16",
    f"""TWO = [{{}}, {{'targets': targets(80, 70)}}]
def atoms(): return [atom for x in TWO for atom in changed({F16}, **x)]""": ("another package also has"),
    f"""A = replace({F16}.operand('A'), layout={F16}.layout_b)
def atoms(): return changed({F16}, operands={F16}.contract.with_operand(A).operands)""": "not hold the 128 elements",
}


@pytest.mark.parametrize("body", WRONG)
def test_packages_that_are_wrong(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "wrong_atoms", f"{HEAD}\n{body}\n", {"w": "wrong_atoms:atoms"})
    with pytest.raises(LayoutError) as caught:
        mma_atom("X")
    assert caught.value.code == Code.ATOM_PACKAGE.id
    assert WRONG[body] in caught.value.message
    assert "wrong_atoms" in caught.value.message
    assert mma_atom("SM80_16x8x8_F32F16F16F32_TN").targets.oldest.min_sm == 75


@pytest.mark.parametrize("instruction", ["LdMatrix(3)", "'ld.b32 / st.b32'"])
def test_a_copy_atom_with_an_instruction_that_nobody_knows(
    instruction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "my_copies", COPY.format(instruction=instruction), {"a": "my_copies:atoms"})
    with pytest.raises(LayoutError) as caught:
        copy_atom("MyCopy")
    assert caught.value.code == Code.ATOM_PACKAGE.id


@pytest.mark.parametrize("name", ['x"', "a b", "", "x\n", "1x", "x" * 200])
def test_names_that_text_could_not_hold(name: str) -> None:
    from dataclasses import replace

    with pytest.raises(LayoutError) as caught:
        replace(mma_atom("SM80_16x8x8_F32F16F16F32_TN"), name=name)
    assert caught.value.code == Code.ATOM_INVALID.id


def test_fragments_fill_registers() -> None:
    from dataclasses import replace

    atom = mma_atom("SM80_16x8x8_F32F16F16F32_TN")
    narrow = replace(atom.contract, numbers=replace(atom.products, shape=(16, 8, 4)))
    for name, layout in (("A", Layout((32, 2), (1, 32))), ("B", Layout((32, 1), (1, 0)))):
        narrow = narrow.with_operand(replace(atom.operand(name), layout=layout))
    with pytest.raises(LayoutError) as caught:
        replace(atom, contract=narrow)
    assert "do not fill whole registers" in caught.value.message
