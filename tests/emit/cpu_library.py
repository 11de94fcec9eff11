# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVVM's intrinsics as functions of LLVM IR that any processor runs: the library of `.cpu`.

Each function computes what the PTX ISA says of the instruction that the intrinsic becomes. Approximations
(ex2.approx and its like) are the nearest values instead; what is compared with them needs a tolerance.
"""

import re
from itertools import product

REGISTERS = tuple(f"{name}.{axis}" for name, axis in product(("tid", "ntid", "ctaid", "nctaid"), "xyz"))
"""The special registers of the thread that runs, as they lie in the array `@x.registers`."""

CONVERSIONS = ("__truncsfbf2", "__truncdfhf2", "__truncdfbf2")
"""What LLVM's code for a processor calls, without that its text says so."""

_FUNCTIONS = {name: name for name in ("sin", "cos", "tanh", "sqrt")} | {"ex2": "exp2", "lg2": "log2"}
"""PTX's names of functions, and LLVM's."""
_FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}

_ROUNDING = """
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %nan = fcmp uno float %x, 0.0
  %top = lshr i32 %bits, 16
  %odd = and i32 %top, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %top, 64
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %narrow = trunc i32 %chosen to i16
  %result = bitcast i16 %narrow to bfloat
  ret bfloat %result
}
define float @x.to.odd(double %x) { ; the f32 next to x whose last bit is odd, unless x is one itself
  %near = fptrunc double %x to float
  %wide = fpext float %near to double
  %exact = fcmp ueq double %wide, %x
  %bits = bitcast float %near to i32
  %size = call double @llvm.fabs.f64(double %x)
  %found = call double @llvm.fabs.f64(double %wide)
  %beyond = fcmp ogt double %found, %size
  %step = zext i1 %beyond to i32
  %below = sub i32 %bits, %step
  %odd = or i32 %below, 1
  %chosen = select i1 %exact, i32 %bits, i32 %odd
  %result = bitcast i32 %chosen to float
  ret float %result
}
define half @__truncdfhf2(double %x) {
  %odd = call float @x.to.odd(double %x)
  %result = fptrunc float %odd to half
  ret half %result
}
define bfloat @__truncdfbf2(double %x) {
  %odd = call float @x.to.odd(double %x)
  %result = call bfloat @__truncsfbf2(float %odd)
  ret bfloat %result
}
define double @x.odd.sum(double %a, double %b) { ; the f64 next to a + b whose last bit is odd, unless it is exact
  %sum = fadd double %a, %b
  %part = fsub double %sum, %a
  %rest = fsub double %sum, %part
  %lost.a = fsub double %a, %rest
  %lost.b = fsub double %b, %part
  %lost = fadd double %lost.a, %lost.b
  %inexact = fcmp one double %lost, 0.0
  %bits = bitcast double %sum to i64
  %low = and i64 %bits, 1
  %even = icmp eq i64 %low, 0
  %moves = and i1 %inexact, %even
  %up = fcmp ogt double %lost, 0.0
  %positive = fcmp ogt double %sum, 0.0
  %away = xor i1 %up, %positive
  %step = select i1 %away, i64 -1, i64 1
  %moved = add i64 %bits, %step
  %chosen = select i1 %moves, i64 %moved, i64 %bits
  %result = bitcast i64 %chosen to double
  ret double %result
}
"""

_FUSED = """
define {type} @x.fma.{name}({type} %a, {type} %b, {type} %c) {{ ; rounded once
  %wide.a = fpext {type} %a to double
  %wide.b = fpext {type} %b to double
  %wide.c = fpext {type} %c to double
  %product = fmul double %wide.a, %wide.b
  %sum = call double @x.odd.sum(double %product, double %wide.c)
  %result = fptrunc double %sum to {type}
  ret {type} %result
}}
define <2 x {type}> @x.fma.v2{name}(<2 x {type}> %a, <2 x {type}> %b, <2 x {type}> %c) {{
  %a0 = extractelement <2 x {type}> %a, i32 0
  %b0 = extractelement <2 x {type}> %b, i32 0
  %c0 = extractelement <2 x {type}> %c, i32 0
  %a1 = extractelement <2 x {type}> %a, i32 1
  %b1 = extractelement <2 x {type}> %b, i32 1
  %c1 = extractelement <2 x {type}> %c, i32 1
  %r0 = call {type} @x.fma.{name}({type} %a0, {type} %b0, {type} %c0)
  %r1 = call {type} @x.fma.{name}({type} %a1, {type} %b1, {type} %c1)
  %low = insertelement <2 x {type}> poison, {type} %r0, i32 0
  %result = insertelement <2 x {type}> %low, {type} %r1, i32 1
  ret <2 x {type}> %result
}}
"""

_EXTREME = """
define {type} @x.{kind}num.{name}({type} %a, {type} %b) {{ ; max.f32 and its like: what is not NaN, and -0 below +0
  %left.nan = fcmp uno {type} %a, %a
  %right.nan = fcmp uno {type} %b, %b
  %both = call {type} @llvm.{kind}imum.{name}({type} %a, {type} %b)
  %one = select {bit} %right.nan, {type} %a, {type} %both
  %result = select {bit} %left.nan, {type} %b, {type} %one
  ret {type} %result
}}
"""

_COPYSIGN = """
define {type} @x.copysign.{name}({type} %a, {type} %b) {{ ; LLVM does not select every one of bf16 for a processor
  %size = call {type} @llvm.fabs.{name}({type} %a)
  %sign.bits = bitcast {type} %b to {bits}
  %negative = icmp slt {bits} %sign.bits, zeroinitializer
  %other = fneg {type} %size
  %result = select {bit} %negative, {type} %other, {type} %size
  ret {type} %result
}}
"""

_TO_INTEGER = """
define {integer} @x.{letter}2{result}.rz({type} %x) {{
  %nan = fcmp uno {type} %x, 0.0
  %near = call {integer} @llvm.fpto{sign}i.sat.{integer}.{name}({type} %x)
  %result = select i1 %nan, {integer} {of_nan}, {integer} %near
  ret {integer} %result
}}
"""

_FROM_INTEGER = """
define float @x.u{letters}2f.rz({type} %x) {{ ; the 24 bits that f32 has
  %unused = call {type} @llvm.ctlz.{type}({type} %x, i1 false)
  %used = sub {type} {bits}, %unused
  %dropped = call {type} @llvm.usub.sat.{type}({type} %used, {type} 24)
  %high = lshr {type} %x, %dropped
  %kept = shl {type} %high, %dropped
  %result = uitofp {type} %kept to float
  ret float %result
}}
define float @x.{letters}2f.rz({type} %x) {{
  %size = call {type} @llvm.abs.{type}({type} %x, i1 false)
  %near = call float @x.u{letters}2f.rz({type} %size)
  %other = fneg float %near
  %negative = icmp slt {type} %x, 0
  %result = select i1 %negative, float %other, float %near
  ret float %result
}}
"""

_DIVISION = """
define {type} @x.udiv.{type}({type} %a, {type} %b) {{ ; divisors of 0 do not end the process
  %none = icmp eq {type} %b, 0
  %safe = select i1 %none, {type} 1, {type} %b
  %quotient = udiv {type} %a, %safe
  %result = select i1 %none, {type} -1, {type} %quotient
  ret {type} %result
}}
define {type} @x.urem.{type}({type} %a, {type} %b) {{
  %quotient = call {type} @x.udiv.{type}({type} %a, {type} %b)
  %whole = mul {type} %quotient, %b
  %result = sub {type} %a, %whole
  ret {type} %result
}}
define {type} @x.sdiv.{type}({type} %a, {type} %b) {{ ; neither does the least number by -1, which stays
  %none = icmp eq {type} %b, 0
  %inverse = icmp eq {type} %b, -1
  %either = or i1 %none, %inverse
  %safe = select i1 %either, {type} 1, {type} %b
  %quotient = sdiv {type} %a, %safe
  %negated = sub {type} 0, %a
  %signed = select i1 %inverse, {type} %negated, {type} %quotient
  %result = select i1 %none, {type} -1, {type} %signed
  ret {type} %result
}}
define {type} @x.srem.{type}({type} %a, {type} %b) {{
  %quotient = call {type} @x.sdiv.{type}({type} %a, {type} %b)
  %whole = mul {type} %quotient, %b
  %result = sub {type} %a, %whole
  ret {type} %result
}}
"""

_APPROXIMATE = """
define float @x.{name}.approx.f32(float %x) {{
  %result = call float @llvm.{function}.f32(float %x)
  ret float %result
}}
"""
_RECIPROCAL = """
define float @x.rcp.approx.f32(float %x) {
  %result = fdiv float 1.0, %x
  ret float %result
}
define float @x.rsqrt.approx.f(float %x) {
  %root = call float @llvm.sqrt.f32(float %x)
  %result = fdiv float 1.0, %root
  ret float %result
}
define float @x.rsqrt.approx.ftz.f(float %x) {
  %result = call float @x.rsqrt.approx.f(float %x)
  ret float %result
}
"""

_EIGHT_BITS = """
define i16 @x.to.{name}(float %x) {{ ; the nearest number, at most the greatest
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 24
  %sign = and i32 %high, 128
  %size = and i32 %bits, 2147483647
  %shifted = lshr i32 %size, {shift}
  %odd = and i32 %shifted, 1
  %half = add i32 %odd, {half}
  %sum = add i32 %size, %half
  %top = lshr i32 %sum, {shift}
  %normal = sub i32 %top, {rebias}
  %number = bitcast i32 %size to float
  %aligned = fadd float %number, {unit} ; rounds to multiples of the least number
  %places = bitcast float %aligned to i32
  %unit = bitcast float {unit} to i32
  %small = sub i32 %places, %unit
  %is.small = icmp ult i32 %size, {least}
  %code = select i1 %is.small, i32 %small, i32 %normal
  %within = call i32 @llvm.smin.i32(i32 %code, i32 {greatest})
  %nan = icmp ugt i32 %size, 2139095040
  %signed = or i32 %within, %sign
  %chosen = select i1 %nan, i32 127, i32 %signed
  %result = trunc i32 %chosen to i16
  ret i16 %result
}}
define half @x.from.{name}(i16 %x) {{
  %wide = zext i16 %x to i32
  %sign = and i32 %wide, 128
  %code = and i32 %wide, 127
  %bits = shl i32 %code, {shift}
  %scaled = bitcast i32 %bits to float
  %size = fmul float %scaled, {scale}
  %is.infinite = icmp eq i32 %code, {infinity}
  %beyond = select i1 %is.infinite, float 0x7FF0000000000000, float 0x7FF8000000000000
  %is.number = icmp ult i32 %code, {beyond}
  %number = select i1 %is.number, float %size, float %beyond
  %positive = icmp eq i32 %sign, 0
  %negated = fneg float %number
  %chosen = select i1 %positive, float %number, float %negated
  %result = fptrunc float %chosen to half
  ret half %result
}}
define i16 @x.cvt.rn.satfinite.{name}x2.f32(float %high, float %low) {{
  %upper = call i16 @x.to.{name}(float %high)
  %lower = call i16 @x.to.{name}(float %low)
  %shifted = shl i16 %upper, 8
  %result = or i16 %shifted, %lower
  ret i16 %result
}}
define i32 @x.cvt.rn.f16x2.{name}x2(i16 %x) {{
  %upper = lshr i16 %x, 8
  %lower = and i16 %x, 255
  %high = call half @x.from.{name}(i16 %upper)
  %low = call half @x.from.{name}(i16 %lower)
  %first = insertelement <2 x half> poison, half %low, i32 0
  %both = insertelement <2 x half> %first, half %high, i32 1
  %result = bitcast <2 x half> %both to i32
  ret i32 %result
}}
"""

_TF32 = """
define float @x.cvt.rna.tf32.f32(float %x) { ; half away from zero
  %bits = bitcast float %x to i32
  %sum = add i32 %bits, 4096
  %rounded = and i32 %sum, -8192
  %size = and i32 %bits, 2147483647
  %finite = icmp ult i32 %size, 2139095040
  %chosen = select i1 %finite, i32 %rounded, i32 %bits
  %result = bitcast i32 %chosen to float
  ret float %result
}
"""

_COPY = """
define void @x.cp.async.{cache}.shared.global.{bytes}(ptr %to, ptr %from) {{
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 {bytes}, i1 false)
  ret void
}}
define void @x.cp.async.{cache}.shared.global.{bytes}.s(ptr %to, ptr %from, i32 %size) {{
  %count = zext i32 %size to i64
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 {bytes}, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %count, i1 false)
  ret void
}}
"""

_WAIT = """
define void @x.cp.async.commit.group() { ret void }
define void @x.cp.async.wait.group(i32 %n) { ret void }
define void @x.cp.async.wait.all() { ret void }
define i32 @vprintf(ptr %format, ptr %values) { ret i32 0 }
"""


def _registers() -> str:
    return "".join(
        f"define i32 @x.read.ptx.sreg.{name}() {{\n  %at = getelementptr i32, ptr @x.registers, i32 {index}\n"
        "  %value = load i32, ptr %at\n  ret i32 %value\n}\n"
        for index, name in enumerate(REGISTERS)
    )


def _extremes() -> str:
    vectors = {f"v2{name}": (f"<2 x {type}>", "<2 x i1>") for name, type in _FLOATS.items()}
    kinds = {name: (type, "i1") for name, type in _FLOATS.items()} | vectors
    return "".join(
        _EXTREME.format(kind=kind, name=name, type=type, bit=bit)
        for kind, (name, (type, bit)) in product(("min", "max"), kinds.items())
    )


def _to_integers() -> str:
    found = ""
    for (name, type), (result, (integer, sign)) in product(
        (("f32", "float"), ("f64", "double")),
        {"i": ("i32", "s"), "ui": ("i32", "u"), "ll": ("i64", "s"), "ull": ("i64", "u")}.items(),
    ):
        of_nan = 0 if (name, integer) == ("f32", "i32") else -(1 << int(integer[1:]) - 1)
        found += _TO_INTEGER.format(
            letter=type[0], result=result, type=type, name=name, integer=integer, sign=sign, of_nan=of_nan
        )
    return found


def _eight_bits(name: str, mantissa: int) -> str:
    """Conversions of 8-bit floats with so many bits of mantissa; e4m3 has no infinities, and one NaN."""
    shift, bias = 23 - mantissa, (1 << 6 - mantissa) - 1
    return _EIGHT_BITS.format(
        name=name,
        shift=shift,
        half=(1 << shift - 1) - 1,
        rebias=127 - bias << mantissa,
        unit=float(1 << 24 - bias - mantissa),
        least=127 - bias + 1 << 23,
        greatest=0x7E if mantissa == 3 else 0x7B,
        infinity=0xFF if mantissa == 3 else 0x7C,
        beyond=0x7F if mantissa == 3 else 0x7C,
        scale=f"0x{1023 + 127 - bias << 52:016X}",
    )


_TEXT = (
    _registers()
    + _ROUNDING
    + "".join(_FUSED.format(name=name, type=_FLOATS[name]) for name in ("f16", "bf16"))
    + _extremes()
    + _COPYSIGN.format(name="bf16", type="bfloat", bits="i16", bit="i1")
    + _COPYSIGN.format(name="v2bf16", type="<2 x bfloat>", bits="<2 x i16>", bit="<2 x i1>")
    + _to_integers()
    + "".join(_FROM_INTEGER.format(letters=letters, type=f"i{n}", bits=n) for letters, n in (("i", 32), ("ll", 64)))
    + "".join(_DIVISION.format(type=f"i{bits}") for bits in (8, 16, 32, 64))
    + "".join(_APPROXIMATE.format(name=name, function=function) for name, function in _FUNCTIONS.items())
    + _RECIPROCAL
    + "".join(map(_eight_bits, ("e4m3", "e5m2"), (3, 2)))
    + _TF32
    + "".join(_COPY.format(cache=cache, bytes=size) for cache, size in product(("ca", "cg"), (4, 8, 16)))
    + _WAIT
)
_DEFINITION = re.compile(r"^define .*?@([\w.]+)\(.*?\) \{(?:.* \}\n|.*\n(?:  .*\n)+\}\n)", re.MULTILINE)
LIBRARY = {match[1]: match[0] for match in _DEFINITION.finditer(_TEXT)}
"""The definitions by their names, which begin with `x.` where LLVM does not give them. Declarations of LLVM's own
intrinsics are not needed."""
