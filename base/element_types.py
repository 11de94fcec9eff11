# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The element types: one row for each, with its names in every language and the facts that layers need.

A type of elements is added here and nowhere else. Layers look their own side up by the names in its row: the type of
MLIR in `dialects.element_types`, that of NumPy in `runtime.engine`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

ElementKind = Literal["float", "int", "bool", "packed"]
"""The kinds of elements: numbers with a point, integers, truth values, or elements narrower than a byte and scale
factors, which are only moved and multiplied."""

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL, _FLOAT8_E4M3FN, _FLOAT8_E5M2 = 0, 1, 2, 4, 6, 10, 12
_FLOAT8_E8M0FNU, _FLOAT6_E2M3FN, _FLOAT6_E3M2FN = 14, 15, 16
"""Codes of DLPack: kDLInt and so on (dlpack.h, DLDataTypeCode)."""


@dataclass(frozen=True, kw_only=True)
class ElementType:
    """An element type: `name` in Python, its kind, its width in bits, and the following.

    - `mlir` names its values in the IR, where integers have no sign. `stored` names another type as which it is
      stored: `TFloat32` is an f32 in memory and registers.
    - `ptx` is its suffix in PTX; empty where no instruction has such elements.
    - `cxx` are its names in CuTe C++, that of `UniversalFMA` first.
    - `library` is its name in NumPy, ml_dtypes and torch; packed elements are unpacked to that type.
    - `llvm` is its type in LLVM IR, which only moves 8-bit floats.
    - `dlpack` is its type code in DLPack; None if no array has such elements.
    - `c` is its type in C, and `packing` its format in `struct`, as a parameter of a kernel; empty if it is not one.
      Types that C lacks are passed by their bits.
    - `exponent` and `fraction` are the bits of a float; a `finite` one has no infinities.
    - `needs` is the oldest sm and PTX version with arithmetic, or, of 8-bit floats, with conversions (PTX ISA, cvt).
    - `tolerance` is how far results of a check may differ: relative, absolute.
    """

    name: str
    kind: ElementKind
    bits: int
    mlir: str
    ptx: str
    library: str
    llvm: str
    cxx: tuple[str, ...] = ()
    unsigned: bool = False
    stored: str = ""
    dlpack: int | None = None
    c: str = ""
    packing: str = ""
    exponent: int = 0
    fraction: int = 0
    finite: bool = False
    needs: tuple[int, int] = (20, 20)
    tolerance: tuple[float, float] = (0.0, 0.0)

    @cached_property  # each launch reads it, and the next one
    def bytes(self) -> int:
        """The bytes of an element in memory; a truth value takes one."""
        return max(self.bits // 8, 1)

    @cached_property
    def signed_name(self) -> str:
        """The name in MLIR with the sign, which values lack there but arrays have: `ui8`."""
        return f"u{self.mlir}" if self.kind == "int" and self.unsigned else self.mlir

    @property
    def in_numpy(self) -> bool:
        """Whether NumPy has the type without ml_dtypes."""
        return not self.exponent or self.library == f"float{self.bits}"

    @property
    def numpy_kind(self) -> str:
        """NumPy's letter for the kind: b, i, u or f."""
        return "u" if self.kind == "int" and self.unsigned else self.kind[0]

    @property
    def memory_bits(self) -> int:
        """The bits from one element to the next in memory: one of 6 bits takes a byte."""
        return self.bits if self.bits in (1, 4) and self.kind == "packed" else 8 * self.bytes

    @property
    def is_narrow_float(self) -> bool:
        """Whether it is a float without arithmetic of its own: of 4 or 6 bits, or a scale factor."""
        return self.kind == "packed" and self.exponent > 0

    @property
    def is_held_in_bytes(self) -> bool:
        """Whether arrays of bytes can be treated as such elements, though no library has them: narrow floats, and
        integers of 4 bits.
        """
        return self.is_narrow_float or (self.kind == "packed" and self.bits == 4)

    @property
    def atom_name(self) -> str:
        """How CuTe's names of MMA atoms spell it: `F16`, `TF32`, and `U1` for the bits that PTX calls b1."""
        return self.ptx.replace("b", "u").upper() if self.kind == "packed" else self.ptx.upper()

    @property
    def has_fma(self) -> bool:
        """Whether CuTe's UniversalFMA takes such elements; 8-bit floats only as operands, which it widens."""
        return self.kind in ("float", "int") and not self.stored

    @property
    def greatest(self) -> float:
        """The greatest finite number of a float."""
        if not self.fraction:  # powers of 2 alone, without zero
            return 2.0 ** (2 ** (self.exponent - 1) - 1)
        top = 2.0 ** (2 ** (self.exponent - 1) - (0 if self.finite else 1))
        return top * (2 - 2.0 ** ((1 if self.finite and self.bits == 8 else 0) - self.fraction))

    @property
    def least(self) -> float:
        """The least positive number of a float, a subnormal one."""
        if not self.fraction:
            return 1 / self.greatest
        return 2.0 ** (2 - 2 ** (self.exponent - 1) - self.fraction)


def _integer(bits: int, unsigned: bool) -> ElementType:
    sign = "u" if unsigned else ""
    more = {8: () if unsigned else ("char",), 32: ("unsigned" if unsigned else "int",)}
    return ElementType(
        name=f"{sign}int{bits}".capitalize(), kind="int", bits=bits, mlir=f"i{bits}", ptx=f"{sign or 's'}{bits}",
        library=f"{sign}int{bits}", llvm=f"i{bits}", cxx=(f"{sign}int{bits}_t", *more.get(bits, ())),
        unsigned=unsigned, dlpack=_UINT if unsigned else _INT, c=f"int{bits}_t",
        packing={8: "B", 16: "H", 32: "I", 64: "Q"}[bits],
    )  # fmt: skip


def _make_packed(bits: int, unsigned: bool) -> ElementType:
    sign = "u" if unsigned else ""
    return ElementType(
        name=f"{sign}int{bits}".capitalize(), kind="packed", bits=bits, mlir=f"{sign or 's'}i{bits}",
        ptx="b1" if bits == 1 else f"{sign or 's'}{bits}", library=f"{sign}int8", llvm=f"i{bits}",
        cxx=(f"{sign}int{bits}b_t",), unsigned=unsigned,
    )  # fmt: skip


def _make_narrow(name: str, bits: int, exponent: int, fraction: int, dlpack: int | None, tolerance: tuple[float, float],
                 unsigned: bool = False) -> ElementType:  # fmt: skip
    """A float without infinities and arithmetic: `E2M1FN` of 4 bits is Float4E2M1FN, a f4E2M1FN of MLIR."""
    ptx = f"{'u' if unsigned else ''}{name[:4].lower()}"
    return ElementType(
        name=f"Float{bits}{name}", kind="packed", bits=bits, mlir=f"f{bits}{name}", ptx=ptx,
        library=f"float{bits}_{name.lower()}", llvm=f"i{bits}", cxx=(f"float_{ptx}_t",), unsigned=unsigned,
        dlpack=dlpack, exponent=exponent, fraction=fraction, finite=True, tolerance=tolerance,
    )  # fmt: skip


ELEMENT_TYPES = (
    ElementType(
        name="Float16", kind="float", bits=16, mlir="f16", ptx="f16", library="float16", llvm="half", cxx=("half_t",),
        dlpack=_FLOAT, c="uint16_t", packing="e", exponent=5, fraction=10, needs=(53, 42), tolerance=(1e-3, 1e-5),
    ),
    ElementType(
        name="BFloat16", kind="float", bits=16, mlir="bf16", ptx="bf16", library="bfloat16", llvm="bfloat",
        cxx=("bfloat16_t",), dlpack=_BFLOAT, c="uint16_t", packing="H", exponent=8, fraction=7, needs=(80, 70),
        tolerance=(1.6e-2, 1e-5),
    ),
    ElementType(
        name="Float32", kind="float", bits=32, mlir="f32", ptx="f32", library="float32", llvm="float", cxx=("float",),
        dlpack=_FLOAT, c="float", packing="f", exponent=8, fraction=23, tolerance=(1.3e-6, 1e-5),
    ),
    ElementType(
        name="TFloat32", kind="float", bits=32, mlir="f32", ptx="tf32", library="float32", llvm="float",
        cxx=("tfloat32_t",), stored="Float32", exponent=8, fraction=10,
    ),
    ElementType(
        name="Float64", kind="float", bits=64, mlir="f64", ptx="f64", library="float64", llvm="double",
        cxx=("double",), dlpack=_FLOAT, c="double", packing="d", exponent=11, fraction=52, tolerance=(1e-7, 1e-7),
    ),
    ElementType(
        name="Float8E4M3FN", kind="float", bits=8, mlir="f8E4M3FN", ptx="e4m3", library="float8_e4m3fn", llvm="i8",
        cxx=("float_e4m3_t",), dlpack=_FLOAT8_E4M3FN, exponent=4, fraction=3, finite=True, needs=(89, 81),
        tolerance=(0.125, 2**-9),
    ),
    ElementType(
        name="Float8E5M2", kind="float", bits=8, mlir="f8E5M2", ptx="e5m2", library="float8_e5m2", llvm="i8",
        cxx=("float_e5m2_t",), dlpack=_FLOAT8_E5M2, exponent=5, fraction=2, needs=(89, 81), tolerance=(0.25, 2**-16),
    ),
    *(_integer(bits, unsigned) for unsigned in (False, True) for bits in (8, 16, 32, 64)),
    ElementType(
        name="Boolean", kind="bool", bits=1, mlir="i1", ptx="", library="bool", llvm="i1", unsigned=True,
        dlpack=_BOOL, c="uint8_t", packing="?",
    ),
    _make_narrow("E2M1FN", 4, 2, 1, None, (0.5, 0.5)),
    _make_narrow("E2M3FN", 6, 2, 3, _FLOAT6_E2M3FN, (0.125, 0.125)),
    _make_narrow("E3M2FN", 6, 3, 2, _FLOAT6_E3M2FN, (0.25, 0.0625)),
    _make_narrow("E8M0FNU", 8, 8, 0, _FLOAT8_E8M0FNU, (1.0, 0.0), unsigned=True),
    _make_packed(4, unsigned=False),
    _make_packed(4, unsigned=True),
    _make_packed(1, unsigned=True),
)  # fmt: skip
"""Every element type; of those with one type in the IR, the one that stands for it comes first. The tolerances of 8-bit
floats are the distance to the next number, the others those of `torch.testing.assert_close`."""

BY_NAME: Mapping[str, ElementType] = MappingProxyType({element.name: element for element in ELEMENT_TYPES})
"""The element types by their names in Python."""
BY_PTX: Mapping[str, ElementType] = MappingProxyType({element.ptx: element for element in ELEMENT_TYPES if element.ptx})
"""The types of instructions, by their suffixes in PTX."""
BY_CXX: Mapping[str, ElementType] = MappingProxyType({name: x for x in ELEMENT_TYPES for name in x.cxx})
"""All types, by their names in CuTe C++."""
VALUES = ", ".join(dict.fromkeys(element.mlir for element in ELEMENT_TYPES if element.kind != "packed"))
"""The types of values in the IR, as messages list them."""


_OF_ARRAYS = [element for element in ELEMENT_TYPES if element.dlpack is not None]

_TREATED_AS = [element for element in ELEMENT_TYPES if element.is_held_in_bytes]
ELEMENTS: Mapping[str, ElementType] = MappingProxyType(
    {**{element.signed_name: element for element in _OF_ARRAYS}, **{x.signed_name: x for x in _TREATED_AS}}
)
"""Every element type that arrays have, by its name in MLIR, `ui8` where it has no sign, and those as which bytes can
be treated.
"""
BY_LIBRARY_NAME: Mapping[str, ElementType] = MappingProxyType({element.library: element for element in _OF_ARRAYS})
"""Element types by their names in NumPy, ml_dtypes and torch."""
BY_NAME_OF_PAIRS: Mapping[str, ElementType] = MappingProxyType(
    {f"{element.library}_x2": element for element in _TREATED_AS if element.bits == 4}
)
"""Element types of 4 bits by torch's names for types whose elements are pairs of them."""
BY_DLPACK: Mapping[tuple[int | None, int], ElementType] = MappingProxyType(
    {(element.dlpack, 8 * element.bytes): element for element in _OF_ARRAYS}
)
"""Element types by DLPack's code and bits (dlpack.h, DLDataType)."""
BY_TYPESTR: Mapping[str, ElementType] = MappingProxyType(
    {f"{element.numpy_kind}{element.bytes}": element for element in _OF_ARRAYS if element.in_numpy}
)
"""Element types by the `typestr` of an array interface, without its byte order; other types have none."""

ELEMENTS_HINT = "use floats and integers of 8 to 64 bits, or bool"
"""The hint for arrays of other elements."""
