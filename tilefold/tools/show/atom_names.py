# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types and copy atoms by the names that users give them."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from tilefold.base.element_types import ELEMENT_TYPES
from tilefold.base.errors import Code, LayoutError, TilefoldError
from tilefold.layout.atoms.bulk_copy import cp_async_name
from tilefold.layout.atoms.copy_atom import CopyAtom
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.instructions import Absent
from tilefold.layout.atoms.ldmatrix import ldmatrix_name, stmatrix_name
from tilefold.layout.atoms.universal import universal_name

_WIDTHS: Mapping[str, int] = {
    **{name: element.bits for element in ELEMENT_TYPES for name in (element.ptx, element.mlir, *element.cxx) if name},
    **{element.name: max(element.bits, 8) if element.kind == "bool" else element.bits for element in ELEMENT_TYPES},
}
"""The widths in bits of element types by their names in PTX, the IR, C++ and Python."""
_NUMBERED = re.compile(r"(?:[isu]|u?int)(8|16|32|64|128)(?:_t)?|(1|4|8|16|32|64|128)b?")


def element_bits(text: str) -> int:
    """The width in bits of an element type, from `f16`, `f8E4M3FN`, `uint16_t`, `half_t`, `Float16`, `16b`.

    TilefoldError for others.
    """
    name = text.strip().removeprefix("cute::").removeprefix("cutlass::").removeprefix("cute.")
    if (bits := _WIDTHS.get(name)) is not None:
        return bits
    match = _NUMBERED.fullmatch(name)
    if match is None:
        near = get_close_matches(name[:40], _WIDTHS, n=3)
        raise TilefoldError(
            Code.CLI_VALUE,
            f"unknown element type {text[:40]!r}",
            (f"similar names: {', '.join(near)}; " if near else "use f16, bf16, f32, f64, i8 to i64, half_t, ")
            + "or a width: 16b",
        )
    return int(match[1] or match[2])


def atom_of(text: str, bits: int) -> CopyAtom:
    """The atom of CuTe's name, or of a short one such as `cp.async.ca.16`, for values of `bits` bits.

    LayoutError for an unknown atom (E0302), one that PTX does not have (E0304) or that splits values (E0303).
    """
    atom = copy_atom(_cute_name("".join(text.split()).replace("cute::", "")), bits)
    if isinstance(atom.instruction, Absent):
        raise LayoutError(Code.ATOM_OPERAND, f"PTX has no instruction for {atom.name}, so it cannot copy")
    return atom


def _cute_name(text: str) -> str:
    """CuTe's name for one of our short ones, which follow PTX; any other text unchanged."""
    match text.split("."):
        case ["auto"]:
            return "AutoVectorizingCopy"
        case ["copy", bits] if bits.isdecimal():
            return universal_name(int(bits))
        case ["cp", "async", ("ca" | "cg") as cache, ("4" | "8" | "16") as size]:
            return cp_async_name(cache, int(size), zfill=False)
        case [("ldmatrix" | "stmatrix") as kind, ("x1" | "x2" | "x4") as matrices, *trans] if trans in ([], ["trans"]):
            name = ldmatrix_name if kind == "ldmatrix" else stmatrix_name
            return name(int(matrices[1:]), bool(trans))
        case _:
            return text
