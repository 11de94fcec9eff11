# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the bits of values: counts, the other half of products, bytes, other types (PTX ISA, popc to prmt).

Those of one operand take fragments, too, element by element, except `brev`.
"""

from collections.abc import Callable
from functools import partial

import xdsl.dialects.math as ops
from xdsl.dialects import arith

from ...base.errors import Code, TilefoldError
from ...dialects import ptx
from ..scalars.casts import common_type
from ..scalars.dtypes import DTYPES, Boolean, DType, Float32, Index, Int32, Int64, Uint32, as_dtype
from ..scalars.operators import Operand
from ..scalars.values import Int, Scalar, Value, as_value, compare, convert, wrap
from ..tensors.allocation import make_rmem_tensor
from ..tensors.fragments import Vec, elementwise, load, store
from ..tensors.pointers import recast_tensor
from ..tracing.state import insert_value
from .inline import inline_ptx


def popc(value: object) -> Operand:
    """The number of 1 bits of an integer, as an Int32."""
    return _count_bits(ops.CtPopOp, value)


def clz(value: object) -> Operand:
    """The number of leading zero bits of an integer, as an Int32; all bits for 0."""
    return _count_bits(ops.CountLeadingZerosOp, value)


def cvt_f32_tf32(src: Scalar) -> Operand:
    """The bits of the TFloat32 nearest to a Float32, of two equally near ones the larger magnitude, as an Int32 (PTX
    ISA, cvt.rna.tf32).
    """
    return inline_ptx("cvt.rna.tf32.f32 $0, $1;", "=r,f", convert(src, Float32), results=Int32.mlir_type)


def sext_unpacked_i4_i8_intrinsic(vec_i4: Vec, length: int) -> Vec:
    """`length` integers of 4 bits, each the low half of an Int8, as Int8."""
    return ((vec_i4.to(Int32) << 28) >> 28).to(DTYPES["Int8"])


def log2_of_pow2_int(a: "Operand | int") -> Operand:
    """The exponent of a power of two, as an Int32, or an int of an int."""
    return a.bit_length() - 1 if isinstance(a, int) else 31 - clz(a)


def _count_bits(op: Callable[[Operand], Operand], x: object) -> Operand:
    if isinstance(x, Vec):
        return elementwise(partial(_count_bits, op), Int32, x)
    return convert(wrap(insert_value(op(_integer(x).ssa))), Int32)


def brev(value: object) -> Operand:
    """An integer of 32 or 64 bits with its bits in reverse order."""
    value = _integer(value)
    bits, letter = value.dtype.bits, {32: "r", 64: "l"}.get(value.dtype.bits)
    if letter is None:
        raise TilefoldError(Code.BUILD_VALUE, f"brev takes 32 or 64 bits, not {value.dtype}", "convert it by .to")
    return inline_ptx(f"brev.b{bits} $0, $1;", f"={letter},{letter}", value, results=value.dtype)


def mulhi(a: Operand, b: Operand) -> Operand:
    """The upper half of the product of two integers of up to 32 bits, in the type of the multiplication."""
    if isinstance(a, Vec) or isinstance(b, Vec):
        return elementwise(mulhi, common_type(a, b), a, b)
    dtype = common_type(a, b)
    if dtype.kind != "int" or dtype.bits > 32:
        raise TilefoldError(Code.BUILD_VALUE, f"mulhi takes integers of up to 32 bits, not {dtype}")
    wide = DTYPES["Uint64" if dtype.unsigned else "Int64"]
    x, y = (convert(convert(operand, dtype), wide) for operand in (a, b))
    return convert(x * y >> dtype.bits, dtype)


def bitcast(x: Operand, dtype: object) -> Operand:
    """The bits of a value as a value of another type of the same width; for a fragment, the bits of all elements. If
    the widths differ, the fragment's first mode grows or shrinks.
    """
    target = as_dtype(dtype)
    if isinstance(x, Vec):
        return _bitcast_fragment(x, target)
    value = as_value(x)
    value = convert(value, Int64) if value.dtype == Index else value
    if value.dtype.bits != target.bits or (Boolean in (value.dtype, target) and value.dtype != target):
        message = f"a {value.dtype} of {value.dtype.bits} bits cannot be reinterpreted as a {target} of {target.bits}"
        raise TilefoldError(Code.BUILD_VALUE, message, "only types of equal width share their bits; .to converts")
    same = value.ssa.type == target.ir
    return wrap(value.ssa if same else insert_value(arith.BitcastOp(value.ssa, target.ir)), target)


def _bitcast_fragment(x: Vec, target: DType) -> Vec:
    if x.dtype.bits == target.bits and x.dtype.kind != "packed" != target.kind:
        return elementwise(partial(bitcast, dtype=target), target, x)
    memory = make_rmem_tensor(x.shape, x.dtype)
    store(memory, x)
    return load(recast_tensor(memory, target))


def isnan(x: object) -> Operand:
    """Whether a float is NaN."""
    return _predicate("ne", x, x)


def isinf(x: Operand) -> Operand:
    """Whether a float is infinite, of either sign."""
    return _predicate("eq", abs(x), float("inf"))


def isfinite(x: Operand) -> Operand:
    """Whether a float is neither infinite nor NaN."""
    return _predicate("lt", abs(x), float("inf"))


def _predicate(name: str, x: object, y: object) -> Operand:
    if isinstance(x, Vec):
        return elementwise(partial(compare, name), Boolean, x, y)
    return compare(name, x, y)


def prmt(src: Operand, src_reg_shifted: Operand, prmt_indices: Operand) -> Int:
    """Four of the eight bytes of two registers, a Uint32: each of the four lowest nibbles of the indices names a byte,
    0 to 3 of `src` and 4 to 7 of `src_reg_shifted`; with the highest bit of the nibble set, the sign of the byte is
    repeated.
    """
    words = [convert(as_value(x, Uint32), Uint32).ssa for x in (src, src_reg_shifted, prmt_indices)]
    return wrap(insert_value(ptx.PrmtOp(*words)), Uint32)


def dp4a(a: Operand, b: Operand, c: Operand) -> Operand:
    """`c` plus the products of the four bytes of `a` and `b`, signed or unsigned like their types. The result has the
    type of `c`, Int32 or Uint32.
    """
    x, y, z = (as_value(operand, Int32) for operand in (a, b, c))
    if any(value.dtype not in (Int32, Uint32) for value in (x, y, z)):
        given = ", ".join(str(value.dtype) for value in (x, y, z))
        message = f"dp4a takes Int32 and Uint32, not {given}"
        raise TilefoldError(Code.BUILD_VALUE, message, "cute.arch.bitcast and x.to convert")
    form = ".".join("u32" if value.dtype.unsigned else "s32" for value in (x, y))
    return wrap(insert_value(ptx.Dp4aOp(form, x.ssa, y.ssa, z.ssa)), z.dtype)


def _integer(x: Operand) -> Value:
    value = as_value(x)
    if value.dtype.kind != "int":
        raise TilefoldError(Code.BUILD_VALUE, f"expected an integer, got a {value.dtype}", "see cute.arch.bitcast")
    return convert(value, Int64) if value.dtype == Index else value
