# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The annotations of parameters: which of them are constants or dynamic tensors."""

from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args

from tilefold.runtime.arrays.signature import Dynamic

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
