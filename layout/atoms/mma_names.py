# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuTe's names of matrix instructions, derived from their contracts (CuTe's mma_sm*.hpp)."""

from dataclasses import dataclass
from typing import assert_never, final

from ...base.element_types import BY_PTX
from .contract import Contract, Major, Named, Role
from .instructions import Dp4a, Fma, MmaSync, WgMma
from .mma_atom import MmaAtom
from .numbers import MmaOperation, Products, Shape, Types

_ENDINGS = {
    MmaOperation.MULTIPLY_ADD: "",
    MmaOperation.SATURATE: "_SATURATE",
    MmaOperation.XOR_POPC: "_XORPOPC",
    MmaOperation.AND_POPC: "_ANDPOPC",
}


_SCALE_NAMES = {"ue8m0": "float_ue8m0_t", "e4m3": "float_ue4m3_t"}
"""CuTe's names of the types of scales; the sign of an e4m3 is ignored."""


@final
@dataclass(frozen=True, slots=True)
class MmaFacts:
    """The facts of a matrix instruction that its name tells. `generation` is the architecture under which CuTe has it,
    which may be newer than the oldest that does; `a_named` says whether A is in registers or in shared memory. `scale`
    is the type of the scales, each of `scaled` elements; empty where there are none.
    """

    generation: int
    instruction: MmaSync | WgMma | Dp4a | Fma
    shape: Shape
    types: Types
    majors: tuple[Major, Major]
    a_named: Named
    operation: MmaOperation
    scale: str = ""
    scaled: int = 0

    @property
    def is_sparse(self) -> bool:
        """Whether A is sparse."""
        return isinstance(self.instruction, MmaSync | WgMma) and self.instruction.is_sparse


def named(generation: int, contract: Contract) -> MmaAtom:
    """The atom of a contract under CuTe's name."""
    operands = {operand.role: operand for operand in contract.operands}
    d, a, b = (operands[role] for role in (Role.D, Role.A, Role.B))
    c, products, instruction = operands.get(Role.C, d), contract.numbers, contract.instruction
    assert isinstance(products, Products)
    assert isinstance(instruction, MmaSync | WgMma | Dp4a | Fma)
    types, majors = (d.element, a.element, b.element, c.element), (a.major, b.major)
    scale = operands[Role.SCALE_A].element if Role.SCALE_A in operands else ""
    facts = MmaFacts(
        generation, instruction, products.shape, types, majors, a.named, products.operation, scale, products.scaled
    )
    return MmaAtom(mma_name(facts), contract)


def mma_name(facts: MmaFacts) -> str:
    """CuTe's name: `SM80_16x8x16_F32F16F16F32_TN`, `SM90_64x128x16_F32F16F16_SS<Major::K,Major::K>`; with a sparse A
    `SM90_SPARSE_64x128x32_F32F16F16_SS<...>` of CuTe's namespace SM90::GMMA::SPARSE.
    """
    m, n, k = facts.shape
    sparse = "SPARSE_" if facts.is_sparse else ""
    start, ending = f"SM{facts.generation}_{sparse}{m}x{n}x{k}_", _ENDINGS[facts.operation]
    match facts.instruction:
        case MmaSync(kind) if kind:
            return _narrow_name(facts, kind)
        case MmaSync():
            a, b = facts.majors
            return (
                f"{start}{_types(facts.types)}_{'N' if a is Major.MN else 'T'}{'T' if b is Major.MN else 'N'}{ending}"
            )
        case WgMma():
            a, b = facts.majors
            start = f"{start}{_types(facts.types[:3])}_{'SS' if facts.a_named is Named.DESCRIPTOR else 'RS'}"
            if BY_PTX[facts.types[1]].bits == 16:
                return f"{start}<Major::{_major(a)},Major::{_major(b)}>"
            return f"{start}_TN{ending}"
        case Dp4a():
            return "SM61_DP4A"
        case Fma():
            d, a, b, c = [BY_PTX[name].cxx[0] for name in facts.types]
            given = [d, a, b, c]
            for last, default in ((c, d), (b, a), (a, d)):  # the template arguments that CuTe fills in
                if last != default:
                    break
                given.pop()
            return f"UniversalFMA<{','.join(given)}>"
        case _:
            assert_never(facts.instruction)


def _narrow_name(facts: MmaFacts, kind: str) -> str:
    """`SM120_16x8x32_TN<float_e4m3_t,float_e2m1_t,float>`, with scales `SM120_16x8x32_TN_VS<...,float_ue8m0_t,32>`.
    CuTe has no instruction of kind mxf4, whose name here says so.
    """
    m, n, k = facts.shape
    _, a, b, c = [BY_PTX[name].cxx[0] if name in BY_PTX else name for name in facts.types]
    if not facts.scale:
        return f"SM{facts.generation}_{m}x{n}x{k}_TN<{a},{b},{c}>"
    own = "_MXF4" if kind == "mxf4" else ""
    scale = _SCALE_NAMES.get(facts.scale, facts.scale)
    return f"SM{facts.generation}_{m}x{n}x{k}{own}_TN_VS<{a},{b},{c},{scale},{facts.scaled}>"


def _types(names: tuple[str, ...]) -> str:
    return "".join([BY_PTX[name].atom_name for name in names])


def _major(major: Major) -> str:
    """The contiguous mode; registers of A, which leave no choice, count as K."""
    return major.value or Major.K.value
