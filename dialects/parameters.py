# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments that a launch passes to a kernel, by name: a tensor counts once, whatever becomes of it on the way to
PTX.

From stage `index` on, a tensor whose type has `?` is a pointer and one integer for each `?`, those of the shape first;
its layout stays with the pointer, so that a launch can take the integers from a tensor.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from ..base.parameters import SCALARS, ParameterKind
from ..layout.algebra.core import Layout
from .element_types import element_of


class ParameterType(ABC):
    """The base of a type of the IR whose values a launch does not pass as numbers."""

    @abstractmethod
    def passed_as(self) -> ParameterKind | None:
        """How a launch passes a value; None for one that a launch cannot pass."""


def passed_as(type: Attribute) -> ParameterKind | None:
    """How a launch passes a value of a type, from stage `index` on; None for a type that a launch cannot pass."""
    if isinstance(type, ParameterType):
        return type.passed_as()
    element = element_of(type)
    return None if element is None else SCALARS.get(element.mlir)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel: its name, the type and alignment of its first argument, the layout of a tensor with `?`
    (None for any other), and the block's arguments that it becomes.
    """

    name: str
    type: Attribute
    align: int
    layout: Layout | None
    arguments: Sequence[SSAValue]

    @property
    def kind(self) -> ParameterKind | None:
        """How a launch passes the first argument; None if it cannot, and for a tensor before stage `index`."""
        return passed_as(self.type)


def scalar_names(name: str, count: int, taken: set[str]) -> list[str]:
    """Names for the integers of tensor `name`, none of them in `taken`: `A_0`, `A_1`."""
    names: list[str] = []
    for number in range(count):
        candidate = f"{name}_{number}"
        while candidate in taken:
            candidate += "_"
        names.append(candidate)
    return names
