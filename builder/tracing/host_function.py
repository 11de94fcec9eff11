# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function of the host, as the builder of its kernels sees it."""

from typing import Protocol

from xdsl.ir import Block, Operation, SSAValue


class HostFunction(Protocol):
    """A host function that is being executed."""

    @property
    def block(self) -> Block:
        """Where its operations are."""
        ...

    def number(self, value: SSAValue) -> int | float | bool:
        """The number that a host value has in this call."""
        ...

    def present(self, value: SSAValue) -> int | float | bool | None:
        """The number that a host value has at present, on which nothing will depend; None if it has none."""
        ...

    def places_of_maps(self, count: int) -> tuple[SSAValue, int]:
        """The workspace of its caller for tensor maps, a tensor of bytes, and the number of the first of `count`
        further maps in it, of each block of the kernel that is built. Raises TilefoldError without one.
        """
        ...

    def effect(self, op: Operation) -> None:
        """Makes the host execute an operation that has effects. Raises TilefoldError if it cannot."""
        ...
