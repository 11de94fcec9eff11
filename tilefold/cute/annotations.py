# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the parameters of a kernel are annotated with."""

from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _T = TypeVar("_T", default=Any)
    Constexpr = Annotated[_T, "constexpr"]
    """A parameter that Python knows while the kernel is built; each value is a kernel of its own."""
else:

    class Constexpr:
        """A parameter that Python knows while the kernel is built; each value is a kernel of its own."""

        def __class_getitem__(cls, _: Any) -> type:
            return cls


def is_constexpr(annotation: object) -> bool:
    """Whether an annotation says that a parameter is known while the kernel is built."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2].strip() == "Constexpr"
    return annotation is Constexpr
