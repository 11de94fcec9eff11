# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instruction descriptors of multiplications into tensor memory (CuTe's make_instr_desc and
make_instr_desc_block_scaled)."""

from collections.abc import Mapping

from ...base.errors import Code, LayoutError
from .contract import Major, Role
from .instructions import Umma
from .mma_atom import MmaAtom
from .numbers import MmaOperation
from .umma import SCALE_ELEMENTS
from .umma_descriptors import InstructionDescriptor, MmaKind

SCALE_IDS = (29, 4)
"""The bits of the instruction descriptor at which the numbers of the scale factors of A and of B begin."""
_SHIFTS = {0: 0, 8: 1, 16: 2, 32: 3}
_SCALE_TYPES = {"ue4m3": 0, "ue8m0": 1}


def instruction_descriptor_of(atom: MmaAtom) -> InstructionDescriptor:
    """The descriptor of an atom of tcgen05.mma, whose scale factors are the first of their cells. Where K is 96, the
    bit that says so is left to the instruction, as in CuTe.
    """
    facts = atom.instruction
    assert isinstance(facts, Umma)
    d, a, b, _ = atom.types
    kind, (m, n, _) = MmaKind(facts.kind), atom.shape
    scale = 1
    if atom.has_scales:
        element = atom.contract.operand(Role.SCALE_A).element
        scale = _SCALE_TYPES[next(name for name, held in SCALE_ELEMENTS.items() if held == element)]
    majors = [atom.operand(x).major is Major.MN for x in "AB"]
    return InstructionDescriptor(
        kind, m, n, d=0 if kind.is_scaled else _code(kind.outputs, d), a=_code(kind.inputs, a),
        b=_code(kind.inputs, b), a_is_mn=majors[0], b_is_mn=majors[1], negate_a=facts.negates[0],
        negate_b=facts.negates[1], sparse=facts.is_sparse,
        saturate=atom.products.operation is MmaOperation.SATURATE, scale_type=scale,
    )  # fmt: skip


def instruction_descriptor(
    types: tuple[str, str, str], m: int, n: int, majors: tuple[Major, Major], *,
    negates: tuple[bool, bool] = (False, False), sparse: bool = False, saturate: bool = False, shift: int = 0,
    scale: str = "",
) -> InstructionDescriptor:  # fmt: skip
    """The descriptor of D, A and B of these types, whatever instruction has it: extents, majors and modifiers are not
    checked (see `InstructionDescriptor.problems`). An operand of 4 bits is packed, unless its type is `e2m1 in bytes`.
    `scale` is the type of scale factors, `shift` the greatest of .ws.

    Raises `LayoutError` (E0304) for types that no kind has.
    """
    d, a, b = types
    kind = next((kind for kind in MmaKind if _has(kind, types, scale)), None)
    if kind is None or shift not in _SHIFTS:
        scaled = f" with scale factors {scale}" if scale else ""
        raise LayoutError(Code.ATOM_OPERAND, f"tcgen05.mma has no types {d}, {a}, {b}{scaled}")
    mn = [major is Major.MN for major in majors]
    return InstructionDescriptor(
        kind, m, n, d=0 if kind.is_scaled else _code(kind.outputs, d), a=_code(kind.inputs, _plain(a)),
        b=_code(kind.inputs, _plain(b)), a_is_mn=mn[0], b_is_mn=mn[1], negate_a=negates[0], negate_b=negates[1],
        sparse=sparse, saturate=saturate, shift=_SHIFTS[shift], scale_type=_SCALE_TYPES.get(scale, 1),
    )  # fmt: skip


def _has(kind: MmaKind, types: tuple[str, str, str], scale: str) -> bool:
    d, a, b = types
    if kind.is_scaled != bool(scale) or (scale and scale not in _SCALE_TYPES):
        return False
    if kind in (MmaKind.F8F6F4, MmaKind.MXF8F6F4) and "e2m1" in (a, b):
        return False  # packed
    known = kind.inputs.values()
    return d in kind.outputs.values() and _plain(a) in known and _plain(b) in known


def _plain(element: str) -> str:
    return element.removesuffix(" in bytes")


def _code(codes: Mapping[int, str], element: str) -> int:
    return next(code for code, name in codes.items() if name == element)
