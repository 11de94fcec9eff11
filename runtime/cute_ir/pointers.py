# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers of host programs: into constant strings, which cannot be written and end where they end."""

from dataclasses import dataclass

from xdsl.dialects.llvm import LLVMArrayType
from xdsl.ir import Attribute

from ...dialects.ptx.base import integer_bits


class PointerError(Exception):
    """A pointer that leads nowhere; the text says where it leads."""


@dataclass(frozen=True, slots=True)
class HostPointer:
    """A place in a constant: `offset` bytes into `data`, which is called `name` in messages."""

    data: bytes
    offset: int
    name: str

    def moved(self, distance: int) -> "HostPointer":
        """The place `distance` bytes further on, which may be anywhere until it is read."""
        return HostPointer(self.data, self.offset + distance, self.name)

    def string(self) -> bytes:
        """The bytes up to the next NUL, as C reads a string. Raises PointerError for one that does not end here."""
        end = self.data.find(b"\0", self.offset) if 0 <= self.offset < len(self.data) else -1
        if self is NULL or end < 0:
            where = f"{self.offset} bytes into {self.name} of {len(self.data)} bytes"
            raise PointerError("a null pointer" if not self.data else f"no string {where}")
        return self.data[self.offset : end]


NULL = HostPointer(b"", 0, "null")
"""The pointer that points nowhere."""


def byte_size(type: Attribute) -> int | None:
    """The bytes of an integer or of an array of them in memory; None for another type."""
    match type:
        case LLVMArrayType():
            element = byte_size(type.type)
            return None if element is None else element * type.size.data
        case _:
            bits = integer_bits(type)
            return None if bits is None else -(-bits // 8)
