# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of kernels: how a launch passes a value, and the names of its type in LLVM IR and C.

Whatever passes, stores, exports or emits parameters asks their kinds for these facts. A new kind is a class with the
members of `ParameterKind`, which the type of the IR names (`dialects.kernel.passed_as`).
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from .element_types import ELEMENT_TYPES, ElementType
from .spaces import GMEM

MAX_PARAMETER_BYTES = 4096
"""The bytes that the parameters of a kernel can take (PTX ISA, Kernel Function Parameters)."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor in a GPU's memory: its address, and its layout, None if it is unknown."""

    address: int
    layout: Any = None


class ParameterKind(Protocol):
    """How one value of a kernel's parameters is passed. Kinds are hashable, and equal ones mean the same."""

    @property
    def name(self) -> str:
        """The name by which a stored kernel and messages know the kind."""
        ...

    @property
    def size(self) -> int:
        """The bytes of a value."""
        ...

    @property
    def align(self) -> int:
        """The alignment of a value in bytes."""
        ...

    @property
    def is_tensor(self) -> bool:
        """Whether a tensor is passed: `pack` takes it as `Placed`. Otherwise it takes the argument itself."""
        ...

    @property
    def packing(self) -> str:
        """The format in `struct` of a packed value."""
        ...

    @property
    def c(self) -> str:
        """The type of the value in C, with `cuda.h` and `stdint.h`."""
        ...

    def llvm(self, align: int) -> str:
        """The type and the attributes in a list of parameters in LLVM IR. `align` is the caller's promise for an
        address.
        """
        ...

    def pack(self, value: Any) -> bytes:
        """The bytes that the kernel reads, of `size`. ValueError for a value that the type cannot hold."""
        ...

    def unpack(self, data: bytes) -> Any:
        """The value that the kernel reads from these bytes."""
        ...


@dataclass(frozen=True, slots=True)
class PointerParameter:
    """The address of a tensor in global memory."""

    name: str = "pointer"
    size: int = 8
    align: int = 8
    is_tensor: bool = True
    packing: str = "P"
    c: str = "CUdeviceptr"

    def llvm(self, align: int) -> str:
        return f"{GMEM.llvm_pointer} align {align}"

    def pack(self, value: Placed) -> bytes:
        return value.address.to_bytes(8, "little")

    def unpack(self, data: bytes) -> int:
        return int.from_bytes(data, "little")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of an element type. An integer can be given with or without its sign."""

    element: ElementType

    @property
    def name(self) -> str:
        return self.element.mlir

    @property
    def size(self) -> int:
        return self.element.bytes

    @property
    def align(self) -> int:
        return self.element.bytes

    @property
    def is_tensor(self) -> bool:
        return False

    @property
    def packing(self) -> str:
        return self.element.packing

    @property
    def c(self) -> str:
        return self.element.c

    @property
    def by_bits(self) -> bool:
        """Whether C lacks the type, so that the bits of a number are passed as an integer."""
        return self.element.kind == "float" and self.c.startswith("uint")

    def llvm(self, align: int) -> str:
        return self.element.llvm

    def pack(self, value: Any) -> bytes:
        """Floats are rounded to the nearest, and infinite where they are too large. ValueError for a value that is no
        number, and for an integer that the type does not hold.
        """
        of_numpy: str = value.dtype.kind if getattr(value, "shape", None) == () else ""  # a NumPy scalar
        is_integer = isinstance(value, int) or of_numpy in tuple("biu")
        if self.element.kind == "float":
            if not (is_integer or isinstance(value, float) or of_numpy):
                raise ValueError(value)
            return self._pack_float(float(value))
        bits = self.element.bits
        if not is_integer or not -(1 << bits - 1) <= int(value) < 1 << bits:
            raise ValueError(value)
        return (int(value) & ((1 << 8 * self.size) - 1)).to_bytes(self.size, "little")

    def unpack(self, data: bytes) -> Any:
        if self.element.kind == "float":
            (number,) = struct.unpack(*("<f", b"\0\0" + data) if self._is_upper_half else (f"<{self.packing}", data))
            return number
        number = int.from_bytes(data, "little", signed=True)
        return bool(number) if self.element.kind == "bool" else number

    @property
    def _is_upper_half(self) -> bool:
        """Whether a value has the upper bits of an f32: a bf16 has."""
        return self.packing == "H"

    def _pack_float(self, value: float) -> bytes:
        packing = "f" if self._is_upper_half else self.packing
        try:
            data = struct.pack(f"<{packing}", value)
        except OverflowError:
            data = struct.pack(f"<{packing}", float("inf") if value > 0 else float("-inf"))
        if not self._is_upper_half:
            return data
        bits = int.from_bytes(data, "little")
        if value == value:
            bits += 0x7FFF + (bits >> 16 & 1)  # to the nearest, ties to even
        return (bits >> 16 | (value != value) << 6).to_bytes(2, "little")


@dataclass(frozen=True, slots=True)
class TensorMapObject:
    """A tensor map as the driver encodes it (CUDA Driver API, CUtensorMap); a launch derives it from a tensor.

    It lies in the kernel's constant memory, which `nvvm.grid_constant` says: LLVM would copy it to local memory, where
    no copy finds it.
    """

    name: str = "tensor_map"
    size: int = 128
    align: int = 64
    is_tensor: bool = False
    packing: str = "128s"
    c: str = "CUtensorMap"

    def llvm(self, align: int) -> str:
        return f'ptr byval([{self.size} x i8]) align {self.align} "nvvm.grid_constant"'

    def pack(self, value: bytes) -> bytes:
        return value

    def unpack(self, data: bytes) -> bytes:
        return data


POINTER = PointerParameter()
TENSOR_MAP = TensorMapObject()

SCALARS: Mapping[str, Scalar] = MappingProxyType({
    element.mlir: Scalar(element) for element in reversed(ELEMENT_TYPES) if element.c
})  # fmt: skip
"""The kinds of numbers by the names of their types in MLIR, with the signed one of integers."""

KindNamed: TypeAlias = Callable[[str], ParameterKind]
"""The kind of a name. ValueError if there is none."""


def kind_named(name: str) -> ParameterKind:
    """The kind of this name. ValueError if there is none."""
    kind = POINTER if name == POINTER.name else SCALARS.get(name)
    if kind is None:
        raise ValueError(f"unknown parameter kind '{name[:40]}'")
    return kind


def offsets_of(kinds: Iterable[ParameterKind]) -> tuple[list[int], int]:
    """The offsets of values that follow each other, each at a multiple of its alignment, and the bytes of all."""
    offsets: list[int] = []
    end = 0
    for kind in kinds:
        offsets.append(-(-end // kind.align) * kind.align)
        end = offsets[-1] + kind.size
    return offsets, end
