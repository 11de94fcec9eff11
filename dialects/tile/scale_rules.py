# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the scales of a matrix multiplication."""

from collections.abc import Sequence

from xdsl.dialects.builtin import i8

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, TMEM
from ...layout.algebra.coalesce import steps
from ...layout.algebra.core import LayoutLike, join, plain_layout, size
from ...layout.atoms.contract import Role
from ...layout.atoms.instructions import Umma
from ..element_types import ir_types
from .mma_types import MmaAtomAttr
from .types import TensorType
from .umma_rules import check_factors

_ROLES = (Role.SCALE_A, Role.SCALE_B)


def check_scales(atom: MmaAtomAttr, scales: Sequence[TensorType], layouts: Sequence[LayoutLike]) -> None:
    """Checks the scales of A and B, by their layouts (V,M,K) and (V,N,K). Raises `LayoutError` if an atom lacks or does
    not take them (E0317), for other elements, and where the scales of one execution are not neighbours (E0309) or do
    not begin at a multiple of their number (E0308).
    """
    if bool(scales) != atom.atom.has_scales:
        message = "has no scales" if scales else "needs the scales of A and B"
        raise LayoutError(Code.MMA_OPERAND, f"{atom.atom.name} {message}")
    if isinstance(atom.atom.instruction, Umma):
        for operand, role, tensor, layout in zip("AB", _ROLES, scales, layouts, strict=False):
            _check_element(atom, role, tensor)
            if tensor.space.data is not TMEM:
                text = f"{role.value} of {atom.atom.name} are in tmem, not in {tensor.space.data}"
                raise LayoutError(Code.ATOM_SPACE, text, "copy them there by SM100_UTCCP_4x32dp128bit")
            check_factors(atom.atom, operand, layout[0])
        return
    k, each, count = atom.atom.shape[2], atom.atom.products.scaled, atom.atom.products.factors
    for role, tensor, layout in zip(_ROLES, scales, layouts, strict=False):
        name = role.value
        _check_element(atom, role, tensor)
        if tensor.space.data is not RMEM:
            raise LayoutError(Code.ATOM_SPACE, f"{name} of {atom.atom.name} are in rmem, not in {tensor.space.data}")
        modes = plain_layout(layout)
        if size(modes[0]) != k or [modes[0](i) for i in range(k)] != [i // each for i in range(k)]:
            raise LayoutError(
                Code.ATOM_NOT_CONTIGUOUS,
                f"mode 0 of {name} {layout} is not the {k} elements of K, of which {each} have one scale",
                f"make the fragment of a layout such as (({each},{count}),...):((0,1),...)",
            )
        if steps(join(list(modes)[1:])) % count or tensor.align.data % count:
            raise LayoutError(
                Code.ATOM_MISALIGNED,
                f"{name} {layout}, aligned to {tensor.align.data} bytes, are {count} bytes for an execution, which do "
                "not all begin at a multiple of that",
            )


def _check_element(atom: MmaAtomAttr, role: Role, tensor: TensorType) -> None:
    allowed = (*ir_types(BY_PTX[atom.atom.contract.operand(role).element]), i8)
    if tensor.element_type not in allowed:
        types = " or ".join(map(str, allowed))
        text = f"{role.value} of {atom.atom.name} are {types}, not {tensor.element_type}"
        raise LayoutError(Code.MMA_OPERAND, text)
