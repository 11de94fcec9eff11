# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which targets and PTX versions have each MMA atom: the assembler's word against the table's."""

import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import AssembleError, assemble
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.mma_atom import BITS, MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom

from tests.emit.harness import ASSEMBLED

TARGETS = {"sm_75": 63, "sm_80": 70, "sm_89": 78, "sm_90": 78}
"""Architectures by age, with the first PTX version that has them (PTX ISA, Release Notes)."""
VERSIONS = (63, 64, 65, *range(70, 79), *range(80, 89), 90)
ATOMS = [atom for atom in map(mma_atom, MMA_ATOMS) if atom.threads > 1]


def registers(letter: str, element: str, layout: Layout) -> tuple[str, str]:
    """The declaration of an operand's registers, and the operand."""
    bits = BITS[element]
    count = layout[1].size * bits // max(bits, 32)
    kind = {"f64": "f64", "f32": "f32"}.get(element, "b32")
    names = ", ".join(f"%{letter}{i}" for i in range(count))
    return f".reg .{kind} %{letter}<{count}>;", f"{{{names}}}"


def entry(name: str, atom: MmaAtom) -> str:
    """A kernel that executes the atom."""
    layouts = (atom.layout_c, atom.layout_a, atom.layout_b, atom.layout_c)
    operands = [registers(letter, t, layout) for letter, t, layout in zip("dabc", atom.types, layouts, strict=True)]
    declared, used = "\n".join([d for d, _ in operands]), ", ".join([o for _, o in operands])
    return f".entry {name}() {{\n{declared}\n{atom.ptx} {used};\nret;\n}}\n"


def assembles(atoms: list[MmaAtom], arch: str, version: int) -> bool:
    """Whether the assembler takes all `atoms` in PTX of this version for this architecture."""
    head = f".version {version // 10}.{version % 10}\n.target {arch}\n.address_size 64\n"
    text = head + "".join([entry(f"k{i}", atom) for i, atom in enumerate(atoms)])
    try:
        return len(assemble(text, Target(arch)).kernels) == len(atoms)
    except AssembleError:
        return False


@pytest.mark.parametrize("target", ASSEMBLED, ids=str)
def test_atoms_assemble_for_every_target_that_has_them(target: Target) -> None:
    supported = [atom for atom in ATOMS if target.supports(atom.min_sm, 10 * atom.min_ptx[0] + atom.min_ptx[1])]
    assert assembles(supported, target.arch, target.ptx_version)
    assert len(supported) == len(ATOMS) or target.sm < 90


@pytest.mark.parametrize("atom", ATOMS, ids=str)
def test_the_oldest_target_and_version_are_the_oldest(atom: MmaAtom) -> None:
    """An older architecture and an older version of PTX are refused; 13.0's assembler has nothing before sm_75."""
    names = list(TARGETS)
    arch = f"sm_{max(atom.min_sm, 75)}"
    version = max(10 * atom.min_ptx[0] + atom.min_ptx[1], TARGETS[arch])
    assert assembles([atom], arch, version)
    if arch != names[0]:
        older = names[names.index(arch) - 1]
        assert not assembles([atom], older, max(version, TARGETS[older]))
    before = VERSIONS[VERSIONS.index(version) - 1]
    if before >= TARGETS[arch] and atom.min_sm >= 75:
        assert not assembles([atom], arch, before)
