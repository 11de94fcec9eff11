# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The signature of a kernel: the part of each argument that its type fixes, promises about the rest, and the
annotations of parameters that say so.

Equal types serve the same kernel, so they are the key of the cache of specialisations. The promises of a type
(divisors, widths, alignment) are properties of that argument, found out or declared, and found again in each launch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args

from ...base.errors import Code
from ...layout.algebra.core import Layout
from ...layout.algebra.integers import Unknown
from ..errors import LaunchError
from .array import ALLOCATION, Array, is_array

if TYPE_CHECKING:
    import typing_extensions

    _T = typing_extensions.TypeVar("_T", default=Any)
    Constexpr = Annotated[_T, "constexpr"]
    """A parameter that Python knows while the kernel is built; each value is a kernel of its own."""
else:

    class Constexpr:
        """A parameter that Python knows while the kernel is built; each value is a kernel of its own."""

        def __class_getitem__(cls, _: object) -> type:
            return cls


ALIGN = 16
"""The greatest alignment that counts, in bytes: that of the widest access of most GPUs."""


@dataclass(frozen=True, slots=True, init=False)
class Dynamic:
    """A tensor parameter whose extents may differ from launch to launch: an annotation, `A: cute.Dynamic(modes=(0,))`,
    or, for type checkers, `A: Annotated[cute.Tensor, cute.Dynamic(modes=(0,))]`.

    `modes` are those whose extents are not part of the type, from the end where they are negative; None means all.
    `divisibility` promises divisors of these extents, one number for all or by mode, which every launch checks. A
    stride is dynamic where it depends on such an extent, and its divisor, up to 16 bytes, becomes part of the type.
    `align` promises an alignment in bytes, instead of that of each argument; `width` is the bits of extents and
    strides, 32 or 64.
    """

    modes: tuple[int, ...] | None
    divisibility: tuple[tuple[int | None, int], ...]
    align: int | None
    width: int

    def __init__(
        self,
        *,
        modes: int | Sequence[int] | None = None,
        divisibility: int | Mapping[int, int] = 1,
        align: int | None = None,
        width: int = 32,
    ) -> None:
        """LaunchError (E3106) for senseless numbers."""
        is_single = not isinstance(divisibility, Mapping)
        by_mode: dict[int | None, int] = {None: divisibility} if is_single else {**divisibility}
        if any(type(n) is not int or n < 1 for n in by_mode.values()):
            raise _declaration_error(
                f"divisibility={divisibility} does not consist of positive integers", "give numbers of at least 1"
            )
        if align is not None and (align < 1 or align & (align - 1)):
            raise _declaration_error(f"an alignment of {align} bytes is not a power of two", "give 1, 2, 4, 8, ...")
        if width not in (32, 64):
            raise _declaration_error(f"width={width} is not a width of extents", "give 32 or 64")
        set = object.__setattr__
        set(self, "modes", (modes,) if isinstance(modes, int) else None if modes is None else tuple(modes))
        set(self, "divisibility", tuple(by_mode.items()))
        set(self, "align", align)
        set(self, "width", width)

    def divisor(self, mode: int, rank: int) -> int:
        """The divisor of the extent of a mode of `rank`."""
        promised = {mode if mode is None or mode >= 0 else mode + rank: n for mode, n in self.divisibility}
        return promised.get(mode, promised.get(None, 1))


@dataclass(frozen=True, slots=True)
class Marked:
    """An array and its dynamic parts; see `dynamic`."""

    array: Any
    rule: Dynamic


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The type of a parameter: elements, extents and strides (in elements), each fixed or an `Unknown`, and the
    alignment in bytes.
    """

    dtype: str
    shape: tuple[int | Unknown, ...]
    strides: tuple[int | Unknown, ...]
    align: int

    @property
    def layout(self) -> Layout:
        """The layout of the parameter's type; a tensor without modes is one element."""
        return Layout(self.shape, self.strides) if self.shape else Layout(1, 0)

    def scalars(self, array: Array) -> list[int]:
        """The extents and strides of an array of this type that the type leaves open, in the kernel's order."""
        pairs = zip((*self.shape, *self.strides), (*array.shape, *array.strides), strict=True)
        return [value for expected, value in pairs if isinstance(expected, Unknown)]


def dynamic(
    array: object,
    *,
    modes: int | Sequence[int] | None = None,
    divisibility: int | Mapping[int, int] = 1,
    align: int | None = None,
    width: int = 32,
) -> Marked:
    """The array as an argument whose extents in `modes` (all by default) may differ from launch to launch; the other
    parameters are those of `Dynamic`. LaunchError (E3106) for an object that is not an array and for senseless numbers.
    """
    if not (is_array(array) or hasattr(array, "__tilefold_array__")):
        raise _declaration_error(f"a {type(array).__name__} has no extents", "make arrays dynamic, each by itself")
    return Marked(array, Dynamic(modes=modes, divisibility=divisibility, align=align, width=width))


def infer_array_spec(name: str, array: Array, rule: Dynamic | None = None) -> ArraySpec:
    """The type of the parameter that an array is given to. LaunchError (E3106), which names the argument, for one that
    breaks a promise of the rule.
    """
    align = address_alignment(array.place)
    if rule is None:
        return ArraySpec(array.dtype, array.shape, array.strides, align)
    if rule.align is not None:
        promised = max(rule.align, array.itemsize)  # elements lie at multiples of their size
        if problem := misalignment(array, promised):
            hint = "promise less in align=, or pass a tensor that begins at such an address"
            raise _declaration_error(f"argument '{name}' {problem}", hint)
        align = promised
    rank = len(array.shape)
    given = range(rank) if rule.modes is None else rule.modes
    named = {*given, *(mode for mode, _ in rule.divisibility if mode is not None)}
    if not named <= set(range(-rank, rank)):
        raise _declaration_error(f"argument '{name}' has {rank} modes; {sorted(named, key=str)} are declared dynamic")
    modes = {mode % rank for mode in given}
    shape = tuple(
        _extent(name, mode, n, rule.divisor(mode, rank), rule.width) if mode in modes else n
        for mode, n in enumerate(array.shape)
    )
    inside = [array.strides[mode] for mode in modes]
    most = max(ALIGN // array.itemsize, 1)
    strides = tuple(
        Unknown(_width(step, rule.width), min(step & -step, most)) if any(other < step for other in inside) else step
        for step in array.strides
    )
    return ArraySpec(array.dtype, shape, strides, align)


def fit_conditions(
    spec: ArraySpec, rule: Dynamic, itemsize: int, extents: Sequence[str], strides: Sequence[str]
) -> list[str]:
    """When an array has the type `spec`, which `infer_array_spec` has made of another: conditions in Python on its
    extents and strides, which have these names.
    """
    modes = range(len(extents)) if rule.modes is None else sorted(set(rule.modes))
    inside = [strides[mode] for mode in modes]
    most = max(ALIGN // itemsize, 1)
    conditions: list[str] = []
    for name, extent in zip(extents, spec.shape, strict=True):
        if isinstance(extent, int):
            conditions.append(f"{name} == {extent}")
        else:
            conditions.append(f"0 < {name} < {1 << (extent.width - 1)}")
            conditions += [f"not {name} % {extent.div}"] if extent.div > 1 else []
    for name, stride in zip(strides, spec.strides, strict=True):
        if isinstance(stride, int):
            conditions.append(f"{name} == {stride}")  # it is at most the least of `inside`, which is fixed as well
            continue
        conditions.append(f"({' or '.join(f'{other} < {name}' for other in inside if other != name)})")
        full = stride.div == most
        conditions.append(f"not {name} & {most - 1}" if full else f"{name} & {2 * stride.div - 1} == {stride.div}")
        if rule.width == 32:
            conditions.append(f"{name} {'<' if stride.width == 32 else '>='} {1 << 31}")
    return conditions


def misalignment(array: Array, align: int) -> str:
    """The words for an array that is not known to be aligned to `align` bytes; none for one that is."""
    if array.offset is None:
        at = f"is at address {array.address:#x}, which is not a multiple of {align} bytes"
        return at if array.address % align else ""
    if array.offset % align:
        return f"begins {array.offset} bytes after its allocation, which is not a multiple of {align} bytes"
    return f"counts as aligned to {ALLOCATION} bytes at most, not to {align}" if align > ALLOCATION else ""


def address_alignment(address: int) -> int:
    """The alignment of an address in bytes: a power of two, at most `ALIGN`."""
    return min(address & -address, ALIGN) if address else ALIGN


def _extent(name: str, mode: int, extent: int, divisor: int, width: int) -> Unknown:
    if extent % divisor:
        raise _declaration_error(
            f"argument '{name}': extent {extent} of mode {mode} is not a multiple of {divisor}",
            "promise less in divisibility=, or pad the tensor",
        )
    if extent >= 1 << (width - 1):
        raise _declaration_error(
            f"argument '{name}': extent {extent} of mode {mode} exceeds {width} bits", "give width=64"
        )
    return Unknown(width, divisor)


def _width(step: int, width: int) -> int:
    return 64 if step >= 1 << 31 else width


def _declaration_error(message: str, hint: str = "") -> LaunchError:
    return LaunchError(Code.RUN_ARGUMENT, message, hint)


def is_constexpr(annotation: object) -> bool:
    """Whether an annotation says that a parameter is known while the kernel is built."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2].strip() == "Constexpr"
    return annotation is Constexpr


def read_annotation(annotation: object) -> object:
    """The meaning of an annotation for a parameter that is not None: `Annotated[cute.Tensor, cute.Dynamic()]` and
    `cute.Dynamic` are a rule, `cute.Tensor | None` is `cute.Tensor`.
    """
    if annotation is Dynamic:
        return Dynamic()
    if hasattr(annotation, "__metadata__"):
        kind, *others = get_args(annotation)
        return next(
            (marker for marker in map(read_annotation, others) if isinstance(marker, Dynamic)), read_annotation(kind)
        )
    given = get_args(annotation)
    if NoneType in given and len(given) == 2:
        return read_annotation(given[given[0] is NoneType])
    return annotation
