# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the tensors that a copy atom is used on: memory spaces, number of values, contiguity, alignment."""

from math import gcd
from types import MappingProxyType

from ...base.errors import Code, LayoutError
from ...base.spaces import GMEM, RMEM, TMEM
from ...layout.algebra.coalesce import contiguous_values, steps
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, plain_layout, size
from ...layout.algebra.divide import logical_divide
from ...layout.algebra.integers import divisor
from ...layout.algebra.swizzle import Swizzle
from ...layout.atoms.contract import Role
from ...layout.tiling.tmem_copies import values_descriptor
from .copy_types import CopyAtomAttr
from .custom import check_values
from .types import TensorType
from .umma_rules import check_copied_cells, reaches_cells


def atom_values(atom: CopyAtomAttr) -> tuple[int, int]:
    """How many values a thread supplies and receives in one execution of the atom."""
    record = atom.atom
    return record.src[1].size, record.dst[1].size


def split_atom_mode(
    layout: LayoutLike, values: int, atom: CopyAtomAttr | None = None
) -> tuple[LayoutLike, LayoutLike] | None:
    """The values of one execution and the repetitions, from the first mode of a partition; None if it does not split.

    The first mode is `(AtomV, RestV)` after a partition; of a plain fragment it may also be `AtomV` alone. An `atom`
    of one thread takes its values in order from any mode that has a multiple of them.
    """
    first = layout[0]
    if size(first) == values:
        return first, layout_one(first)
    if isinstance(first.shape, tuple) and len(first) == 2 and size(first[0]) == values:
        return first[0], first[1]
    if atom is not None and atom.atom.threads == 1 and size(first) % values == 0:
        divided = logical_divide(first, Layout(values, 1))
        return divided[0], divided[1]
    return None


def layout_one(like: LayoutLike) -> LayoutLike:
    """The layout of one coordinate, `1:0`, composed as `like` is."""
    if isinstance(like, ComposedLayout):
        return ComposedLayout(like.inner, like.offset, Layout(1, 0))
    return Layout(1, 0)


def access_align(tensor: TensorType) -> int:
    """The alignment in bytes that the tensor's first element is known to have."""
    layout = tensor.layout.data
    if not isinstance(layout, ComposedLayout):
        return tensor.align.data
    assert isinstance(layout.inner, Swizzle)
    return gcd(8 * tensor.align.data, gcd(1 << layout.inner.base, divisor(layout.offset)) * tensor.element_bits) // 8


def _name(atom: CopyAtomAttr) -> str:
    return f"atom {atom.atom_name}"


_ROLES = MappingProxyType({"source": Role.SOURCE, "destination": Role.DESTINATION})


def register_align(atom: CopyAtomAttr, bits: int) -> int:
    """The alignment in bits of a thread's registers for one execution of an atom, which have `bits`: those of tensor
    memory have each register as an operand of its own.
    """
    return min(bits, 8 * REGISTER) if reaches_cells(atom.atom) else bits


REGISTER = 4
"""The bytes of a register."""


def _check_side(atom: CopyAtomAttr, role: str, tensor: TensorType, values: LayoutLike, rest: LayoutLike) -> None:
    """Checks contiguity and alignment of one operand, where its values must be contiguous in memory."""
    count = size(values)
    width = register_align(atom, count * tensor.element_bits) // 8
    run = contiguous_values(values)
    if run % count:
        raise LayoutError(
            Code.ATOM_NOT_CONTIGUOUS,
            f"{_name(atom)} moves {count} adjacent elements, but only {run} of the {role}'s are adjacent in {values}",
            "choose a value layout along the mode that has stride 1, or a narrower atom",
        )
    step = gcd(steps(rest) * tensor.element_bits, 8 * access_align(tensor)) // 8
    if tensor.space.data is not RMEM:
        width = atom.atom.contract.operand(_ROLES[role]).align
    if step % width:
        raise LayoutError(
            Code.ATOM_MISALIGNED,
            f"{_name(atom)} needs addresses aligned to {width} bytes, but the {role}'s are only known to be "
            f"aligned to {step}",
            f"raise the tensor's alignment, change the layout so that all rows start at multiples of {width} bytes, or "
            "use a narrower atom",
        )


def check_spaces(atom: CopyAtomAttr, src: TensorType, dst: TensorType) -> None:
    """Raises `LayoutError` unless the atom moves elements of this type between these memory spaces."""
    record = atom.atom
    for role, tensor in (("source", src), ("destination", dst)):
        allowed = record.contract.operand(_ROLES[role]).spaces
        if tensor.space.data not in allowed:
            raise LayoutError(
                Code.ATOM_SPACE,
                f"the {role} of {_name(atom)} is in {tensor.space.data.name}; it can be in "
                f"{', '.join(sorted(map(str, allowed)))}",
                "copy by an atom between these memories; a copy without an atom works between any",
            )
        if tensor.element_type != atom.value_type:
            raise LayoutError(
                Code.ATOM_VALUE_WIDTH,
                f"{_name(atom)} moves {atom.value_type}, the {role} holds {tensor.element_type}",
                "use an atom with the type of the elements, or recast the tensor",
            )
    for role, tensor, hint in (("load", src, atom.load), ("store", dst, atom.store)):
        if hint and tensor.space.data is not GMEM:
            raise LayoutError(
                Code.CACHE_HINT,
                f"the cache hint {hint!r} is for a {role} of gmem, not of {tensor.space.data.name}",
                f"leave it out where the {'source' if role == 'load' else 'destination'} is not in gmem",
            )


def check_tiled_operands(atom: CopyAtomAttr, src: TensorType, dst: TensorType) -> None:
    """Checks the operands of a tiled copy. Raises `LayoutError` naming the operand and the misfit."""
    check_spaces(atom, src, dst)
    counts = atom_values(atom)
    repeats: list[int] = []
    own = RMEM in (src.space.data, dst.space.data)  # else a part of the tensors may be meant for a thread
    for role, tensor, count in (("source", src, counts[0]), ("destination", dst, counts[1])):
        layout = tensor.layout.data
        split = split_atom_mode(layout, count, atom if own else None)
        if split is None:
            raise LayoutError(
                Code.ATOM_VALUES,
                f"{_name(atom)} moves {count} values per thread, but mode 0 of the {role} is {layout[0]}",
                "pass the results of partition_S and partition_D, or fragments like them",
            )
        repeats.append(size(split[1]))
        if reaches_cells(atom.atom) and tensor.space.data is not RMEM:
            _check_memory(atom, role, tensor, split)
        elif atom.atom.max_bits is None and tensor.space.data is not RMEM:
            rest: LayoutLike = layout
            if len(layout) == 1 and size(split[1]) == 1:
                rest = layout_one(layout)
            contract = atom.atom.contract
            if not check_values(contract, contract.operand(_ROLES[role]), tensor, split[0]):
                _check_side(atom, role, tensor, split[0], _without_values(rest, split))
    if repeats[0] != repeats[1]:
        raise LayoutError(
            Code.ATOM_VALUES,
            f"the source repeats {_name(atom)} {repeats[0]} times in mode 0, the destination {repeats[1]} times",
        )


def _check_memory(atom: CopyAtomAttr, role: str, tensor: TensorType, split: tuple[LayoutLike, LayoutLike]) -> None:
    """Checks the side in memory of a copy to or from tensor memory."""
    if tensor.space.data is TMEM:
        check_copied_cells(atom.atom, tensor, split[0])
    else:
        _ = values_descriptor(atom.atom, plain_layout(split[0]))


def _without_values(layout: LayoutLike, split: tuple[LayoutLike, LayoutLike]) -> LayoutLike:
    """All coordinates of a partition but those of one execution of the atom."""
    outer = plain_layout(layout)
    repeat = plain_layout(split[1])
    assert isinstance(outer, Layout)
    assert isinstance(repeat, Layout)
    modes = [repeat, *(outer[i] for i in range(1, len(outer)))]
    return Layout(tuple(m.shape for m in modes), tuple(m.stride for m in modes))


def check_atom_operands(atom: CopyAtomAttr, src: TensorType, dst: TensorType) -> None:
    """Checks the tensors of one execution of an atom. Raises `LayoutError` naming the operand and the misfit."""
    check_spaces(atom, src, dst)
    counts = atom_values(atom)
    for role, tensor, count in (("source", src, counts[0]), ("destination", dst, counts[1])):
        layout = tensor.layout.data
        if size(layout) != count:
            raise LayoutError(
                Code.ATOM_VALUES, f"{_name(atom)} moves {count} values per thread, the {role} has {size(layout)}"
            )
        if reaches_cells(atom.atom) and tensor.space.data is not RMEM:
            _check_memory(atom, role, tensor, (layout, layout_one(layout)))
        elif tensor.space.data is not RMEM or count > 1:
            _check_side(atom, role, tensor, layout, layout_one(layout))
