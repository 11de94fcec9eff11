# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words that name the operands of tcgen05.mma: the kinds of the instruction and their shapes, the descriptor of a
matrix in shared memory, and the instruction descriptor (PTX ISA, 5th Generation Tensor Core Instructions: Matrix shape,
Shared memory descriptor, Instruction descriptor).

No assembler looks into these words. `problems` of a decoded instruction descriptor names the cases that hardware
leaves undefined.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, final


class MmaKind(Enum):
    """The kinds of tcgen05.mma; the value is the modifier of PTX."""

    F16 = "f16"
    TF32 = "tf32"
    F8F6F4 = "f8f6f4"
    I8 = "i8"
    MXF8F6F4 = "mxf8f6f4"
    MXF4 = "mxf4"
    MXF4NVF4 = "mxf4nvf4"

    @property
    def is_scaled(self) -> bool:
        """Whether blocks of A and B have scale factors."""
        return self in (MmaKind.MXF8F6F4, MmaKind.MXF4, MmaKind.MXF4NVF4)

    @property
    def is_dense_fp4(self) -> bool:
        """Whether elements of 4 bits are packed, two in a byte."""
        return self in (MmaKind.MXF4, MmaKind.MXF4NVF4)

    @property
    def divides(self) -> bool:
        """Whether D can be divided by a power of two before the addition: of elements of 16 and 32 bits."""
        return self.element_bits() >= 16

    @property
    def k(self) -> int:
        """The extent K of a dense instruction, in elements; 96 is another one of fp4 kinds on sm_103a."""
        return {MmaKind.F16: 16, MmaKind.TF32: 8}.get(self, 64 if self.is_dense_fp4 else 32)

    @property
    def inputs(self) -> Mapping[int, str]:
        """The element types of A and B by their codes in the instruction descriptor."""
        return _INPUTS[self]

    @property
    def outputs(self) -> Mapping[int, str]:
        """The element types of D by their codes in the instruction descriptor."""
        if self is MmaKind.I8:
            return _S32
        return _F32 if self is MmaKind.TF32 or self.is_scaled else _F16_F32

    def element_bits(self) -> int:
        """The bits that an element of A or B takes in shared memory."""
        return {MmaKind.F16: 16, MmaKind.TF32: 32}.get(self, 4 if self.is_dense_fp4 else 8)


_F16_F32, _F32, _S32 = [MappingProxyType(x) for x in ({0: "f16", 1: "f32"}, {1: "f32"}, {2: "s32"})]
_F8F6F4 = MappingProxyType({0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"})
_FP4 = MappingProxyType({1: "e2m1"})
_INPUTS: Mapping[MmaKind, Mapping[int, str]] = MappingProxyType({
    MmaKind.F16: MappingProxyType({0: "f16", 1: "bf16"}),
    MmaKind.TF32: MappingProxyType({2: "tf32"}),
    MmaKind.F8F6F4: _F8F6F4,
    MmaKind.I8: MappingProxyType({0: "u8", 1: "s8"}),
    MmaKind.MXF8F6F4: _F8F6F4,
    MmaKind.MXF4: _FP4,
    MmaKind.MXF4NVF4: _FP4,
})  # fmt: skip


class Swizzling(Enum):
    """The forms of a matrix in shared memory; the value is the code in the descriptor."""

    NONE = 0
    BYTES_128_ATOM_32 = 1
    """128 bytes whose units are 32 bytes: of tf32 that is MN-major, and of nothing else."""
    BYTES_128 = 2
    BYTES_64 = 4
    BYTES_32 = 6

    @property
    def bits(self) -> int:
        """How many bits of the address are xored."""
        return {0: 0, 1: 2, 2: 3, 4: 2, 6: 1}[self.value]


UNIT = 16
"""The unit of the fields of descriptors of shared memory, in bytes."""
VERSION = 1
"""The version of these descriptors; wgmma's have 0 there."""
FIELD = (1 << 14) - 1
LEADING, ABSOLUTE = 16, 52
"""The bits of descriptors of shared memory at which the leading field begins, and that makes it an address."""


@final
@dataclass(frozen=True, slots=True)
class SmemDescriptor:
    """The descriptor of a matrix in shared memory (PTX ISA, Shared memory descriptor). `start`, `leading` and `stride`
    are in units of 16 bytes. `swizzling` is a code, which may be invalid.
    """

    start: int
    leading: int
    stride: int
    swizzling: int
    base_offset: int = 0
    version: int = VERSION
    is_absolute: bool = False
    """Whether the leading field is an address (sm_103a, only for 48 bytes of K)."""
    reserved: int = 0

    @property
    def value(self) -> int:
        """The 64 bits."""
        return (
            self.start & FIELD | (self.leading & FIELD) << LEADING | (self.stride & FIELD) << 32
            | (self.version & 7) << 46 | (self.base_offset & 7) << 49 | int(self.is_absolute) << ABSOLUTE
            | (self.reserved & 0xFF) << 53
            | (self.swizzling & 7) << 61
        )  # fmt: skip

    @staticmethod
    def decode(value: int) -> "SmemDescriptor":
        """The fields of 64 bits."""
        return SmemDescriptor(
            value & FIELD, value >> LEADING & FIELD, value >> 32 & FIELD, value >> 61 & 7, value >> 49 & 7,
            value >> 46 & 7, bool(value >> ABSOLUTE & 1), value >> 53 & 0xFF,
        )  # fmt: skip

    def problems(self) -> Iterator[str]:
        """Its problems, regardless of the operand that it describes."""
        if self.version != VERSION:
            yield f"version {self.version} in bits 46 to 48, which are 1; wgmma's descriptors have 0"
        if self.swizzling not in [form.value for form in Swizzling]:
            yield f"{self.swizzling} in bits 61 to 63 is not a swizzle: 0 none, 2 128 bytes, 4 64 bytes, 6 32 bytes"
        if self.reserved:
            yield f"{self.reserved:#x} in bits 53 to 60, which are 0"


_FLAGS = (("sparse", 2), ("saturate", 3), ("negate_a", 13), ("negate_b", 14), ("a_is_mn", 15), ("b_is_mn", 16))


@final
@dataclass(frozen=True, slots=True)
class InstructionDescriptor:
    """The matrices that a tcgen05.mma multiplies (PTX ISA, Instruction descriptor). Types are codes, which `kind`
    gives a meaning.

    `m` and `n` are the extents for the block or the pair. Scaled kinds have `a_scale` and `b_scale`, the numbers of
    the scale factors in their cells, `scale_type` (0 ue4m3, 1 ue8m0) and `is_k96`; others have the type `d`, and
    `shift`, the code of the greatest shift of .ws.
    """

    kind: MmaKind
    m: int
    n: int
    d: int = 1
    a: int = 0
    b: int = 0
    a_is_mn: bool = False
    b_is_mn: bool = False
    negate_a: bool = False
    negate_b: bool = False
    sparse: bool = False
    saturate: bool = False
    selector: int = 0
    shift: int = 0
    a_scale: int = 0
    b_scale: int = 0
    scale_type: int = 1
    is_k96: bool = False
    reserved: int = 0
    """The bits that must be 0 and are not."""

    @property
    def value(self) -> int:
        """The 32 bits."""
        bits = self.selector | self.a << 7 | self.b << 10 | (self.n >> 3) << 17 | (self.m >> 4) << 24
        for name, place in _FLAGS:
            bits |= int(getattr(self, name)) << place
        if self.kind.is_scaled:
            return bits | self.b_scale << 4 | self.scale_type << 23 | self.a_scale << 29 | int(self.is_k96) << 31
        return bits | self.d << 4 | self.shift << 30

    @staticmethod
    def decode(kind: MmaKind, value: int) -> "InstructionDescriptor":
        """The fields of 32 bits for an instruction of a kind."""
        value &= (1 << 32) - 1
        scaled = kind.is_scaled
        named: dict[str, Any] = {name: bool(value >> place & 1) for name, place in _FLAGS}
        if scaled:
            named |= {
                "a_scale": value >> 29 & 3, "b_scale": value >> 4 & 3, "scale_type": value >> 23 & 1,
                "is_k96": bool(value >> 31),
            }  # fmt: skip
        else:
            named |= {"d": value >> 4 & 3, "shift": value >> 30}
        return InstructionDescriptor(
            kind, (value >> 24 & 31) << 4, (value >> 17 & 63) << 3, a=value >> 7 & 7, b=value >> 10 & 7,
            selector=value & 3, reserved=value & (0x48 if scaled else 0x20800040), **named,
        )  # fmt: skip

    @property
    def types(self) -> tuple[str, str, str]:
        """The element types of D, A and B. KeyError for codes that the kind lacks, which are `problems`."""
        d = "f32" if self.kind.is_scaled else self.kind.outputs[self.d]
        return d, self.kind.inputs[self.a], self.kind.inputs[self.b]

    @property
    def k(self) -> int:
        """The extent K."""
        return 96 if self.is_k96 else self.kind.k * (2 if self.sparse else 1)

    def problems(self, group: int, *, ws: bool = False, sparse: bool = False) -> Iterator[str]:
        """Its problems in an instruction of one block or of a pair, with `.ws` and `.sp` or without."""
        kind = self.kind
        yield from self._problems_of_types()
        shapes = sizes(kind, group, ws=ws, sparse=sparse)
        if self.m not in shapes:
            known = ", ".join(map(str, shapes)) or "none"
            yield f"M = {self.m}; kind::{kind.value} of {_whom(group, ws)} has {known}"
        elif self.n not in shapes[self.m]:
            known = _listed(shapes[self.m])
            yield f"N = {self.n}; kind::{kind.value} of {_whom(group, ws)} with M = {self.m} has {known}"
        if self.sparse != sparse:
            yield f"bit 2 says {'sparse' if self.sparse else 'dense'}, and the instruction is not"
        if self.reserved:
            yield f"bits {self.reserved:#x} are set, which are 0"
        if self.shift and not ws:
            yield "bits 30 and 31 are set, which only .ws has"

    def _problems_of_types(self) -> Iterator[str]:
        kind = self.kind
        for name, code in (("A", self.a), ("B", self.b)):
            if code not in kind.inputs:
                yield f"the type of {name} has code {code}; kind::{kind.value} has {_codes(kind.inputs)}"
        if not kind.is_scaled and self.d not in kind.outputs:
            yield f"the type of D has code {self.d}; kind::{kind.value} has {_codes(kind.outputs)}"
        elif kind is MmaKind.F16 and self.d == 0 and (self.a, self.b) != (0, 0):
            yield "D is f16, and A or B is not"
        if kind is MmaKind.F16 and self.a != self.b:
            yield "A and B have different types, which kind::f16 does not mix"
        if kind.is_dense_fp4 and (self.a_is_mn or self.b_is_mn):
            yield "elements of 4 bits are K-major"
        narrow = [name for name, code, mn in (("A", self.a, self.a_is_mn), ("B", self.b, self.b_is_mn))
                  if mn and kind in (MmaKind.F8F6F4, MmaKind.MXF8F6F4) and code > 1]  # fmt: skip
        if narrow:
            yield f"{narrow[0]} has elements of 4 or 6 bits, which are K-major"
        if (self.negate_a or self.negate_b) and kind is MmaKind.I8:
            yield "integers cannot be negated"
        if self.saturate and kind is not MmaKind.I8:
            yield "only integers saturate"
        if kind in (MmaKind.MXF8F6F4, MmaKind.MXF4) and self.scale_type != 1:
            yield f"the scales are ue4m3, and those of kind::{kind.value} are ue8m0"
        if self.is_k96 and not kind.is_dense_fp4:
            yield "K = 96 belongs to elements of 4 bits"


def sizes(kind: MmaKind, group: int, *, ws: bool = False, sparse: bool = False) -> Mapping[int, Sequence[int]]:
    """The extents N by the extents M of a kind, for an instruction of one block (`group` 1) or of a pair (2)."""
    if ws:
        return (
            {}
            if kind.is_scaled or group == 2
            else dict.fromkeys((32, 64, 128), (64, 128) if sparse else (64, 128, 256))
        )
    if kind is MmaKind.I8:
        of_n = range(32, 257, 32) if group == 2 else (8, 16, 24, 32, *range(48, 257, 16))
    else:
        of_n = range(16, 257, 16) if group == 2 else range(8, 257, 8)
    if kind.is_scaled:
        of_m = (128,) if group == 1 else (256,) if sparse else (128, 256)
    else:
        of_m = (64, 128) if group == 1 else (128, 256)
    return dict.fromkeys(of_m, of_n)


def _whom(group: int, ws: bool) -> str:
    return ("a pair" if group == 2 else "one block") + (" with .ws" if ws else "")


def _codes(types: Mapping[int, str]) -> str:
    return ", ".join(f"{code} ({name})" for code, name in types.items())


def _listed(numbers: Sequence[int]) -> str:
    if len(numbers) > 4:
        return f"{numbers[0]} to {numbers[-1]} in steps of {numbers[-1] - numbers[-2]}"
    return ", ".join(map(str, numbers))
