# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types that are only storage: they have a width, and copies move elements of 4, 6 and 8 bits by the byte, but they
have no arithmetic.
"""

from xdsl.dialects.builtin import IntegerType

from tilefold.builder.scalars.dtypes import DTYPES, DType

Float4E2M1FN = DTYPES["Float4E2M1FN"]
"""A float of 4 bits; two share a byte."""

Float4E2M1FNx2 = DType("Float4E2M1FNx2", IntegerType(8), "packed", 8, unsigned=True)
"""A byte of two floats of 4 bits."""

Float6E2M3FNx4, Float6E3M2FNx4 = (
    DType(f"Float6{name}FNx4", IntegerType(24), "packed", 24, unsigned=True) for name in ("E2M3", "E3M2")
)
"""Three bytes of four floats of 6 bits; no tensor has such elements, but programs ask for the width."""

Float6E2M3FN, Float6E3M2FN = DTYPES["Float6E2M3FN"], DTYPES["Float6E3M2FN"]
"""Floats of 6 bits; each takes a byte."""

Float8E8M0FNU = DTYPES["Float8E8M0FNU"]
"""Scale factors, which are powers of 2."""

Float8E4M3B11FNUZ, Float8E4M3 = (
    DType(name, IntegerType(8), "packed", 8, unsigned=True) for name in ("Float8E4M3B11FNUZ", "Float8E4M3")
)
"""Floats of 8 bits that no instruction takes."""

Int128, Uint128 = (
    DType(name, IntegerType(128), "packed", 128, unsigned=name != "Int128") for name in ("Int128", "Uint128")
)
"""Integers of 16 bytes, by which programs count the bytes of their memory."""
