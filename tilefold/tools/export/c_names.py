# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of an exported kernel in C: a pointer and an integer for each `?` of a tensor, under names that
are free in C.

A kernel and its parameters are named by letters, digits and underscores, which the verifiers hold.
"""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilefold.base.parameters import ParameterKind, Scalar
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves
from tilefold.runtime.compiled.artifact import Artifact, Parameter

if TYPE_CHECKING:
    from tilefold.dialects.tile import TensorType

LICENCE = "/* Written by tilefold. This file may be used under any terms. */"
"""The first line of the files."""

_OURS = (
    "kernel grid_x grid_y grid_z stream arguments argc argv device context check number real tensor read_tensor "
    "write_tensor main module values status config attributes"
)
_C = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof "
    "NULL errno assert stderr stdin stdout fprintf linux unix i386"
)
_CPP = (
    "alignas alignof and and_eq bitand bitor bool catch char8_t char16_t char32_t class co_await co_return co_yield "
    "compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export false friend "
    "mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast "
    "requires static_assert static_cast template this thread_local throw true try typeid typename using virtual "
    "wchar_t xor xor_eq"
)
_OF_HEADER = ("kernel", "find", "load", "load_data", "launch", "unload")
"""The definitions of the header, after the kernel's name."""
_OF_MAPS = ("", "_dims", "_strides", "_box", "_steps", "_status")
"""The variables of a tensor map in a launch."""
TAKEN = frozenset(f"{_OURS} {_C} {_CPP}".split())
"""Names that mean something else in the files."""
_RESERVED = re.compile(r"_[A-Z_]\w*|u?int\w*_t|size_t|CU\w*|cu[A-Z]\w*")
"""Names that are reserved in C, types of integers, and names of the driver's header."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a launch in C: its name, and the kind of the value.

    `note` tells the caller the conditions, unless the tensor to which an extent or a stride belongs says it.
    """

    name: str
    kind: ParameterKind
    note: str


def arguments(artifact: Artifact, tensors: "Mapping[str, TensorType]") -> tuple[Argument, ...]:
    """The arguments of a kernel's launch, in the order in which it takes them, with notes on `tensors` by name."""
    fixed = TAKEN | {f"{artifact.kernel}_{suffix}" for suffix in _OF_HEADER}
    fixed |= {f"tensor_map{number}{part}" for number in range(len(artifact.maps)) for part in _OF_MAPS}
    taken = set(artifact.names)
    arguments: list[Argument] = []
    for parameter in artifact.parameters:
        taken.discard(parameter.name)
        for kind, name, note in _values(parameter, tensors.get(parameter.name)):
            arguments.append(Argument(free_name(name, taken, fixed), kind, note))
    return tuple(arguments)


def free_name(name: str, taken: set[str], fixed: Set[str] = TAKEN) -> str:
    """The name, or one like it, that C and the header leave free; it is `taken` then."""
    if _RESERVED.fullmatch(name):
        name = f"arg{name if name.startswith('_') else f'_{name}'}"
    while name in taken or name in fixed:
        name += "_"
    taken.add(name)
    return name


def _values(parameter: Parameter, tensor: "TensorType | None") -> Iterator[tuple[ParameterKind, str, str]]:
    """Kind, wanted name and note of each value that is passed for a parameter."""
    layout = parameter.layout
    integers = () if layout is None else (("extent", layout.shape), ("stride", layout.stride))
    names = [
        f"{parameter.name}_{name}{mode}"
        for name, part in integers
        for mode, leaf in enumerate(leaves(part))
        if isinstance(leaf, Unknown)
    ]
    first, *rest = parameter.kinds
    yield first, parameter.name, _note(parameter, tensor)
    yield from zip(rest, names, [""] * len(names), strict=True)


def _note(parameter: Parameter, tensor: "TensorType | None") -> str:
    kind = parameter.kind
    if not kind.is_tensor:
        return kind.name + (", by its bits" if isinstance(kind, Scalar) and kind.by_bits else "")
    elements = "" if tensor is None else f"{tensor.element_type}, "
    layout = parameter.layout if tensor is None else tensor.layout.data
    in_elements = "" if layout is None else f"; layout {layout}, in elements"
    return f"{elements}an address that is a multiple of {parameter.align} bytes{in_elements}"
