# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the operands of a matrix multiplication: modes, element types, memory spaces, and whole registers;
and the rules of their scales.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.dialects.builtin import i8

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM, TMEM, Space
from ...layout.algebra.coalesce import steps
from ...layout.algebra.complement import complement
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, flat_modes, join, plain_layout, rank, size
from ...layout.algebra.modes import append, prepend
from ...layout.atoms.contract import AtOnce, Named, Operand, Role
from ...layout.atoms.instructions import Umma
from ...layout.atoms.mma_sync import OPERANDS, registers, thread_values
from ..element_types import ir_types
from .custom import check_values
from .mma_types import MmaAtomAttr
from .types import TensorType
from .umma_rules import check_cells, check_factors
from .wgmma_rules import check_shared

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


@dataclass(frozen=True, slots=True)
class Gemm:
    """The operands of D = A * B + C as layouts (V,M,N), (V,M,K), (V,N,K) and (V,M,N), V being an atom's values."""

    d: LayoutLike
    a: LayoutLike
    b: LayoutLike
    c: LayoutLike


def infer_gemm_modes(atom: MmaAtomAttr, d: TensorType, a: TensorType, b: TensorType, c: TensorType) -> Gemm:
    """The operands in the modes that their ranks stand for (CuTe's algorithm/gemm.hpp).

    `(V) x (V) -> (V)`, `(M) x (N) -> (M,N)`, `(M,K) x (N,K) -> (M,N)`, `(V,M) x (V,N) -> (V,M,N)` and
    `(V,M,K) x (V,N,K) -> (V,M,N)`; those without V are for atoms of one value. Raises `LayoutError` (E0202) for other
    ranks.
    """
    given = [t.layout.data for t in (d, a, b, c)]
    of_d, of_a, of_b, of_c = (rank(layout) for layout in given)
    if of_d != of_c or of_a != of_b or (of_a, of_c) not in ((1, 1), (1, 2), (2, 2), (2, 3), (3, 3)):
        raise LayoutError(
            Code.RANK_MISMATCH,
            f"D, A, B and C have ranks {of_d}, {of_a}, {of_b} and {of_c}",
            "A, B and C are (V), (V), (V), or (M), (N), (M,N), or (M,K), (N,K), (M,N), or (V,M), (V,N), (V,M,N), or "
            "(V,M,K), (V,N,K), (V,M,N)",
        )
    without_values = of_c == 2
    if without_values and thread_values(atom.atom, "C") != 1:
        raise LayoutError(
            Code.RANK_MISMATCH,
            f"operands without a mode of values are for atoms of one value per thread; {atom.atom.name} has more",
            "pass the results of partition_A, partition_B and partition_C, or fragments like them",
        )
    return Gemm(*[append(prepend(x, rank(x) + 1) if without_values else x, 3) for x in given])


def check_gemm(atom: MmaAtomAttr, d: TensorType, a: TensorType, b: TensorType, c: TensorType,
               scales: Sequence[TensorType] = ()) -> None:  # fmt: skip
    """Checks the operands of a multiplication. Raises `LayoutError` naming the operand and the misfit."""
    modes = infer_gemm_modes(atom, d, a, b, c)
    _check_operands(atom, (d, a, b, c), (modes.d, modes.a, modes.b, modes.c))
    of_scales = [append(scale.layout.data, 3) for scale in scales]
    check_scales(atom, scales, of_scales)
    for name, scale, of in zip("AB", of_scales, (modes.a, modes.b), strict=False):
        given, wanted = ([size(mode) for mode in list(plain_layout(layout))[1:]] for layout in (scale, of))
        if given != wanted:
            raise LayoutError(
                Code.MMA_OPERAND, f"the scales of {name} {scale} do not have the executions of the atom that {name} has"
            )
    m, n, k = size(modes.c[1]), size(modes.c[2]), size(modes.a[2])
    for mode, given, wanted, of in (
        ("M of A", size(modes.a[1]), m, "C"),
        ("N of B", size(modes.b[1]), n, "C"),
        ("K of B", size(modes.b[2]), k, "A"),
        ("M of D", size(modes.d[1]), m, "C"),
        ("N of D", size(modes.d[2]), n, "C"),
    ):
        if given != wanted:
            raise LayoutError(
                Code.MMA_OPERAND, f"mode {mode} has {given} executions of the atom, but that of {of} has {wanted}"
            )
    if k > 1 and d.element_type != c.element_type:
        raise LayoutError(
            Code.MMA_OPERAND,
            f"D of {atom.atom.name} has elements of another type than C, so it cannot accumulate over K",
            "multiply one K at a time",
        )


def check_mma_call(atom: MmaAtomAttr, d: TensorType, a: TensorType, b: TensorType, c: TensorType,
                   scales: Sequence[TensorType] = ()) -> None:  # fmt: skip
    """Checks the tensors of one execution of an atom: fragments of exactly a thread's values. Raises `LayoutError`."""
    for operand, tensor in zip(OPERANDS, (d, a, b, c), strict=True):
        spaces = atom.atom.operand(operand).spaces
        if tensor.space.data not in spaces:
            where = " or ".join([_LONG_NAMES.get(space, space.name) for space in spaces])
            raise LayoutError(Code.ATOM_SPACE, f"operand {operand} of {atom.atom.name} is in {where}")
    wholes = [append(_one_mode(t.layout.data), 3) for t in (d, a, b, c)]
    _check_operands(atom, (d, a, b, c), wholes)
    check_scales(atom, scales, [append(_one_mode(scale.layout.data), 3) for scale in scales])


_LONG_NAMES = MappingProxyType({
    RMEM: "registers (rmem)", SMEM: "shared memory (smem)", TMEM: "tensor memory (tmem)",
})  # fmt: skip


def _spaces(given: Operand) -> tuple[Space, ...]:
    """The memories that the operand of a multiplication can be in: those of the instruction's, and, of a matrix that it
    only reads in registers, shared memory, from where it is copied.
    """
    names = given.spaces
    staged = given.named is Named.VALUE and given.role in (Role.A, Role.B) and isinstance(given.completion, AtOnce)
    return (*names, SMEM) if staged else names


def _one_mode(layout: LayoutLike) -> LayoutLike:
    """A layout as the only mode of another."""
    outer = plain_layout(layout)
    whole = Layout((outer.shape,), (outer.stride,))
    return ComposedLayout(layout.inner, layout.offset, whole) if isinstance(layout, ComposedLayout) else whole


def _check_operands(atom: MmaAtomAttr, tensors: Sequence[TensorType], layouts: Sequence[LayoutLike]) -> None:
    """Checks element types, spaces, the number of values and their registers. A sparse A needs more than tensors."""
    if atom.atom.is_sparse:
        raise LayoutError(
            Code.MMA_OPERAND,
            f"{atom.atom.name} needs the metadata of A, which a multiplication of tensors does not take",
            "write the instruction: ptx.mma.sync.sp, ptx.wgmma.mma_async or ptx.tcgen05.mma with metadata",
        )
    for operand, tensor, layout in zip(OPERANDS, tensors, layouts, strict=True):
        allowed = atom.element_types(operand)
        if tensor.element_type not in allowed:
            raise LayoutError(
                Code.MMA_OPERAND,
                f"operand {operand} of {atom.atom.name} holds {' or '.join(map(str, allowed))}, "
                f"not {tensor.element_type}",
            )
        given, space = atom.atom.operand(operand), tensor.space.data
        possible = _spaces(given)
        if space not in possible:
            raise LayoutError(
                Code.ATOM_SPACE,
                f"operand {operand} of {atom.atom.name} is in {space}; it can be in {' or '.join(map(str, possible))}",
            )
        values = thread_values(atom.atom, operand)
        if size(layout[0]) != values:
            raise LayoutError(
                Code.ATOM_VALUES,
                f"{atom.atom.name} has {values} values of {operand} per thread, but mode 0 is {layout[0]}",
                "pass a result of partition_A, partition_B or partition_C, or a fragment like it",
            )
        if space is RMEM:
            _check_registers(atom, operand, tensor, layout)
        elif given.named is Named.CELL:
            check_cells(atom.atom, operand, layout[0])
        elif not check_values(atom.atom.contract, given, tensor, layout[0]) and given.named is Named.DESCRIPTOR:
            check_shared(atom.atom, operand, tensor, layout)
    _check_distinct(layouts[0])


def _check_registers(atom: MmaAtomAttr, operand: str, tensor: TensorType, layout: LayoutLike) -> None:
    """Checks that the values of each register are neighbours, and that it begins where a register can."""
    held = registers(atom.atom, operand).values
    places = [layout[0](i) for i in range(size(layout[0]))]
    in_place = not isinstance(atom.atom.operand(operand).completion, AtOnce)  # the fragment itself is in use
    run, subject = (len(places), "one execution's part") if in_place else (held, "a register")
    for first in range(0, len(places), run):
        if places[first : first + run] != list(range(places[first], places[first] + run)):
            raise LayoutError(
                Code.ATOM_NOT_CONTIGUOUS,
                f"{subject} of operand {operand} of {atom.atom.name} holds {run} adjacent values, but mode 0 of the "
                f"fragment is {layout[0]}",
                "make the fragment by make_fragment_A, make_fragment_B or make_fragment_C",
            )
    bits = held * tensor.element_bits
    assert isinstance(layout, Layout), "fragments must have plain layouts"
    step = steps(join(list(layout)[1:]))
    if any(place % held for place in places[::held]) or step % held or tensor.align.data * 8 % bits:
        raise LayoutError(
            Code.ATOM_MISALIGNED,
            f"registers of operand {operand} of {atom.atom.name} have {bits} bits, and not all begin at a multiple of "
            f"that in a fragment {layout} aligned to {tensor.align.data} bytes",
        )


def _check_distinct(d: LayoutLike) -> None:
    """Refuses a D two of whose values are one register."""
    assert not isinstance(d, ComposedLayout), "a fragment's layout is plain"
    if any(extent != 1 and stride == 0 for extent, stride in flat_modes(d)):
        raise LayoutError(Code.NOT_INJECTIVE, f"two results of the multiplication share one element of D {d}")
    _ = complement(d)  # the LayoutError, where two coordinates are one element
