# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which targets and PTX versions have each MMA atom: the assembler's word against the table's."""

import pytest
from tilefold.base.target import Target, TargetFamily
from tilefold.compiler.machine.assemble import AssembleError, assemble
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, SPARSE_ATOMS, mma_atom
from tilefold.layout.atoms.ptx_text import mma_mnemonic

from tests.emit.harness import ASSEMBLED

TARGETS = {"sm_75": 63, "sm_80": 70, "sm_89": 78, "sm_90": 78, "sm_120": 87}
"""Architectures by age, with the first PTX version that has them (PTX ISA, Release Notes)."""
NARROW = TargetFamily(120, 87, "f", 12)
"""Those of the instructions on narrow floats."""
VERSIONS = (63, 64, 65, *range(70, 79), *range(80, 89), 90)
ATOMS = [
    atom
    for atom in map(mma_atom, (*MMA_ATOMS, *SPARSE_ATOMS))
    if atom.threads > 1 and atom.targets.oldest.min_ptx <= VERSIONS[-1]
]
"""Those that the assembler knows."""


def registers(letter: str, element: str, layout: Layout, bits: int) -> tuple[str, str]:
    """The declaration of an operand's registers, whose elements have this many bits, and the operand."""
    count = layout[1].size * bits // max(bits, 32)
    kind = {"f64": "f64", "f32": "f32"}.get(element, "b32")
    names = ", ".join(f"%{letter}{i}" for i in range(count))
    return f".reg .{kind} %{letter}<{count}>;", f"{{{names}}}"


def entry(name: str, atom: MmaAtom) -> str:
    """A kernel that executes the atom."""
    layouts = (atom.layout_c, atom.layout_a, atom.layout_b, atom.layout_c)
    operands = [registers(*given) for given in zip("dabc", atom.types, layouts, atom.bits, strict=True)]
    declared, used = "\n".join([d for d, _ in operands]), ", ".join([o for _, o in operands])
    if atom.has_scales:
        declared, used = f"{declared}\n.reg .b32 %s<2>;", f"{used}, {{%s0}}, {{0, 1}}, {{%s1}}, {{0, 3}}"
    if atom.is_sparse:
        declared, used = f"{declared}\n.reg .b32 %e;", f"{used}, %e, 0x0"
    return f".entry {name}() {{\n{declared}\n{mma_mnemonic(atom)} {used};\nret;\n}}\n"


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
    supported = [atom for atom in ATOMS if atom.targets.includes(target)]
    assert assembles(supported, target.arch, target.ptx_version)
    missing = [atom for atom in ATOMS if atom not in supported]
    assert not missing or target.sm < 90 or {atom.targets.oldest for atom in missing} == {NARROW}


@pytest.mark.parametrize("atom", ATOMS, ids=str)
@pytest.mark.sampled(40)
def test_the_oldest_target_and_version_are_the_oldest(atom: MmaAtom) -> None:
    """An older architecture and an older version of PTX are refused; 13.0's assembler has nothing before sm_75."""
    names = list(TARGETS)
    arch = f"sm_{max(atom.targets.oldest.min_sm, 75)}"
    suffix = "a" if atom.targets.oldest == NARROW else ""
    version = max(atom.targets.oldest.min_ptx, TARGETS[arch])
    assert assembles([atom], arch + suffix, version)
    assert not suffix or not assembles([atom], arch, version)
    if arch != names[0]:  # of those that begin with sm_120 sm_90 is the one before
        older = names[names.index(arch) - 1]
        assert not assembles([atom], older, max(version, TARGETS[older]))
    before = VERSIONS[VERSIONS.index(version) - 1]
    if before >= TARGETS[arch] and atom.targets.oldest.min_sm >= 75:
        assert not assembles([atom], arch + suffix, before)


def is_wgmma_assembled(target: Target) -> bool:
    """Whether the assembler takes an instruction of warpgroups for this target."""
    version = f"{target.ptx_version // 10}.{target.ptx_version % 10}"
    body = ".entry k() {\nwgmma.fence.sync.aligned;\nret;\n}\n"
    try:
        return "k" in assemble(f".version {version}\n.target {target}\n.address_size 64\n{body}", target).kernels
    except AssembleError:
        return False


@pytest.mark.parametrize("target", ASSEMBLED, ids=str)
def test_warpgroups_multiply_on_a_single_architecture(target: Target) -> None:
    """sm_90a is not "90 or newer": neither sm_90 nor sm_100a has wgmma."""
    atom = mma_atom("SM90_64x8x16_F32F16F16_SS<Major::K,Major::K>")
    assert atom.targets.includes(target) == is_wgmma_assembled(target) == (target.arch == "sm_90a")


@pytest.mark.parametrize(
    ("family", "target", "said", "hint"),
    [
        (TargetFamily(90, 80, "a"), "sm_90", "x is an instruction of sm_90a only, not of sm_90", "--target sm_90a"),
        (TargetFamily(90, 80, "a"), "sm_100a", "x is an instruction of sm_90a only", "--target sm_90a"),
        (TargetFamily(90, 80, "a"), "sm_90a", None, None),
        (TargetFamily(90, 88, "a"), "sm_90a", "x needs PTX 8.8; the PTX of sm_90a is 8.7", "use an instruction that"),
        (TargetFamily(90, 78), "sm_89", "x needs sm_90 and PTX 7.8; sm_89 is older", "--target sm_90 or newer"),
        (TargetFamily(80, 88), "sm_90", "x needs PTX 8.8; the PTX of sm_90 is 8.7", "--target sm_100 or newer, or use"),
        (TargetFamily(80, 85), "sm_80", "x needs PTX 8.5; the PTX of sm_80 is 8.0", "--target sm_89 or newer, or use"),
        (TargetFamily(90, 78), "sm_120", None, None),
        (TargetFamily(100, 86, "f"), "sm_120", "sm_120 stands for all later ones too", "--target sm_120a"),
        (TargetFamily(100, 86, "f"), "sm_120f", None, None),
        (TargetFamily(100, 86, "f", 10), "sm_103f", None, None),
        (TargetFamily(100, 86, "f", 10), "sm_120a", "x is an instruction of sm_10x only", "--target sm_100f"),
    ],
)
def test_a_family_of_targets_says_why_it_excludes_one(
    family: TargetFamily, target: str, said: str | None, hint: str | None
) -> None:
    refusal = family.refusal("x", Target(target))
    assert family.includes(Target(target)) == (refusal is None) == (said is None)
    if refusal is not None and said is not None and hint is not None:
        assert said in refusal[0]
        assert hint in refusal[1]
