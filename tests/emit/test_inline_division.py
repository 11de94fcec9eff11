# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisions and roots without calls, beside `wgmma`: their machine code has none, and their results are the same.

The emitted code runs on the CPU. There the instructions that approximate reciprocals are models, which read and write
the upper 32 bits of a number alone (PTX ISA, rcp.approx.ftz.f64), and have a further error of 2**-19.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.compiler.emit import rule_of
from tilefold.compiler.emit.inline_division import compute
from tilefold.compiler.emit.writer import FunctionWriter, ModuleWriter
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import STARTING, bindings

from tests.emit.examples import ARGS, multiplication
from tests.emit.harness import kernel, ptx_of
from tests.sass import instructions

SM90A = Target("sm_90a")
MULTIPLICATION = multiplication("SM90_64x8x16_F32F16F16_SS<Major::K,Major::K>")
FLOATS, INTEGERS = ("f16", "bf16", "f32"), ("i8", "i16", "i32", "i64")
DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
OPERATIONS = (
    *((f"arith.{name} %{type}, %x", type) for type in INTEGERS for name in DIVISIONS),
    *((text, type) for type in FLOATS for text in (f"arith.divf %{type}, %x", "math.sqrt %x")),
)


@pytest.mark.parametrize(("text", "type"), [*OPERATIONS, ("arith.divf %v, %v", "vector<4xf32>")])
@pytest.mark.sampled(3)
def test_no_division_beside_wgmma_is_a_call(text: str, type: str) -> None:
    vector = "%v = vector.broadcast %f32 : f32 to vector<4xf32>\n" if type.startswith("vector") else ""
    load = f"{vector}%x = ptx.ld %A align 16 : !ptx.ptr<global> -> {type}"
    store = f"ptx.st %y, %B align 16 : {type}, !ptx.ptr<global>"
    body = f"{load}\n%y = {text} : {type}\n{store}"
    cubin = assemble(ptx_of(kernel(f"{MULTIPLICATION}\n{body}", ARGS, "128"), SM90A), SM90A)
    counts = instructions(cubin.code)["k"]
    assert counts["HGMMA"] == 1
    assert counts["CALL"] == 0
    assert "C75" not in cubin.log


def test_other_kernels_keep_the_instructions_of_ptx() -> None:
    ptx = ptx_of(kernel("%y = arith.divf %f32, %f32 : f32\nptx.st %y, %B align 4 : f32, !ptx.ptr<global>", ARGS), SM90A)
    assert "div.rn.f32" in ptx
    assert "rcp" not in ptx


@pytest.mark.parametrize("divisor", ["2.0", "0.125", "-1024.0"])
def test_quotients_by_powers_of_two_are_products(divisor: str) -> None:
    body = f"%c = arith.constant {divisor} : f32\n%y = arith.divf %f32, %c : f32"
    store = "ptx.st %y, %B align 4 : f32, !ptx.ptr<global>"
    assert "rcp.approx" not in ptx_of(kernel(f"{MULTIPLICATION}\n{body}\n{store}", ARGS, "128"), SM90A)


_MODELS = """
define double @upper(double %x) alwaysinline {{
  %b = bitcast double %x to i64
  %u = and i64 %b, -4294967296
  %y = bitcast i64 %u to double
  ret double %y
}}
define double @rcp(double %x) alwaysinline {{
  %t = call double @upper(double %x)
  %r = fdiv double 1.0, %t
  %e = fmul double %r, {error}
  %y = call double @upper(double %e)
  ret double %y
}}
define double @rsqrt(double %x) alwaysinline {{
  %t = call double @upper(double %x)
  %s = call double @llvm.sqrt.f64(double %t)
  %r = fdiv double 1.0, %s
  %e = fmul double %r, {error}
  %y = call double @upper(double %e)
  ret double %y
}}
define double @rounded_up(i64 %x) alwaysinline {{
  %n = uitofp i64 %x to double
  %b = fptoui double %n to i64
  %top = fcmp oge double %n, 0x43F0000000000000
  %less = icmp ult i64 %b, %x
  %none = xor i1 %top, true
  %up = and i1 %less, %none
  %i = bitcast double %n to i64
  %z = zext i1 %up to i64
  %j = add i64 %i, %z
  %y = bitcast i64 %j to double
  ret double %y
}}
define double @rounded_down(i64 %x) alwaysinline {{
  %n = uitofp i64 %x to double
  %b = fptoui double %n to i64
  %top = fcmp oge double %n, 0x43F0000000000000
  %more = icmp ugt i64 %b, %x
  %down = or i1 %more, %top
  %i = bitcast double %n to i64
  %z = zext i1 %down to i64
  %j = sub i64 %i, %z
  %y = bitcast i64 %j to double
  ret double %y
}}
define i64 @whole(double %x) alwaysinline {{
  %y = fptoui double %x to i64
  ret i64 %y
}}
"""
_INSTRUCTIONS = {
    "llvm.nvvm.rcp.approx.ftz.d": "rcp", "llvm.nvvm.rsqrt.approx.ftz.d": "rsqrt", "llvm.nvvm.ull2d.rp": "rounded_up",
    "llvm.nvvm.ull2d.rz": "rounded_down", "llvm.nvvm.d2ull.rz": "whole",
}  # fmt: skip
_ERRORS = (1.0, 1 + 2.0**-19, 1 - 2.0**-19)


def _on_cpu(name: str, type: str, error: float, *operands: NDArray[Any]) -> NDArray[Any]:
    """The emitted code of an operation, for each element of arrays."""
    w = FunctionWriter(ModuleWriter(SM90A, rule_of), "k")
    w.divides_inline = True
    result = compute(w, name, type, ["%x", "%y"][: len(operands)])
    lines = "\n".join(w.lines)
    for instruction, model in _INSTRUCTIONS.items():
        lines = lines.replace(f"@{instruction}(", f"@{model}(")
    assert "nvvm" not in lines
    text = f"""{_MODELS.format(error=repr(error) if error != 1.0 else "1.0")}
define void @run(ptr %a, ptr %b, ptr %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %following, %loop ]
  %pa = getelementptr {type}, ptr %a, i64 %i
  %pb = getelementptr {type}, ptr %b, i64 %i
  %po = getelementptr {type}, ptr %out, i64 %i
  %x = load {type}, ptr %pa
  %y = load {type}, ptr %pb
{lines}
  store {type} {result}, ptr %po
  %following = add i64 %i, 1
  %more = icmp ult i64 %following, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
    with STARTING:
        llvm = bindings()
    features = ",".join(f"+{feature}" for feature in ("fma",) if llvm.get_host_cpu_features().get(feature))
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2, features=features)
    module = llvm.parse_assembly(text, llvm.create_context())
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    arrays = [np.ascontiguousarray(each) for each in operands]
    out = np.empty_like(arrays[0])
    try:
        engine.finalize_object()
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(engine.get_function_address("run"))
        run(arrays[0].ctypes.data, arrays[-1].ctypes.data, out.ctypes.data, out.size)
    finally:
        engine.close()
    return out


RANDOM = np.random.default_rng(20)
_BITS = np.array([
    *(0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x007FFFFF, 0x00400000, 0x00800000, 0x00800001, 0x00FFFFFF),
    *(0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x40000000, 0x40400000, 0x7F7FFFFF, 0x7F000000, 0x7F7FFFFE, 0x7F800000),
    *(0x7FC00000, 0x7F800001, 0x34000000, 0x4B000000, 0x4B7FFFFF, 0x01000000, 0x7E800000, 0x3EAAAAAB, 0x3FFFFFFF),
], np.uint32)  # fmt: skip
SPECIAL: Any = np.concatenate([_BITS, _BITS | np.uint32(0x80000000)]).view(np.float32)
MANY = 1 << 20


def _any_floats() -> NDArray[np.float32]:
    return RANDOM.integers(0, 1 << 32, MANY, np.uint32).view(np.float32)


def _floats_of(exponents: tuple[int, int]) -> NDArray[np.float32]:
    """Floats of exponents, the first of which has subnormal numbers where it is 0."""
    bits = RANDOM.integers(0, 1 << 23, MANY, np.uint32) | RANDOM.integers(*exponents, MANY, np.uint32) << 23
    signed: Any = bits | RANDOM.integers(0, 2, MANY, np.uint32) << 31
    return signed.view(np.float32)


def _quotients() -> Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    few: list[NDArray[np.float32]] = [np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)]
    whole = [RANDOM.integers(1, 1 << 24, MANY).astype(np.float32) for _ in range(2)]
    divisor = _floats_of((1, 254))
    with np.errstate(all="ignore"):
        near = (_floats_of((100, 150)).astype(np.float64) * (1 + 2.0**-24) * divisor).astype(np.float32)
        middles = np.float32(2**-149) * RANDOM.integers(1, 1 << 12, MANY).astype(np.float32)
    return (
        (few[0], few[1]),
        (_any_floats(), _any_floats()),
        (whole[0], whole[1]),
        (near, divisor),  # quotients near the middle of two floats
        (_floats_of((0, 40)), _floats_of((120, 180))),  # subnormal quotients
        (middles, np.exp2(RANDOM.integers(1, 12, MANY)).astype(np.float32)),  # at the middle of two subnormal ones
        (_floats_of((0, 1)), _floats_of((0, 1))),
        (_floats_of((230, 255)), _floats_of((80, 130))),  # near infinity and beyond
    )


def _same(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> bool:
    """Whether floats have the same bits; NaN is NaN."""
    nan = np.isnan(theirs)
    return bool((np.isnan(ours) == nan).all() and (ours.view(np.uint32) == theirs.view(np.uint32))[~nan].all())


@pytest.mark.parametrize("error", _ERRORS)
def test_quotients_are_the_nearest_floats(error: float) -> None:
    for x, y in _quotients():
        with np.errstate(all="ignore"):
            assert _same(_on_cpu("fdiv", "float", error, x, y), x / y)


@pytest.mark.parametrize("error", _ERRORS)
def test_roots_are_the_nearest_floats(error: float) -> None:
    whole = np.arange(1 << 12, dtype=np.float32) ** 2
    every = np.arange(0x3F800000, 0x40800000, dtype=np.uint32).view(np.float32)  # from 1 to 4: all fractions
    beside = [np.nextafter(whole, np.float32(bound)) for bound in (0, np.inf)]
    for x in (SPECIAL, _any_floats(), _floats_of((0, 1)), every, whole, *beside):
        with np.errstate(all="ignore"):
            assert _same(_on_cpu("sqrt", "float", error, x), np.sqrt(x))


def _integers(bits: int, signed: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pairs of integers of every length, among them neighbours of multiples, without divisors of 0."""
    dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    unsigned = np.dtype(f"u{bits // 8}")
    edges = [
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        *(((1 << n) + d) % (1 << bits) for n in range(1, bits + 1) for d in (-2, -1, 0, 1, 2)),
    ]
    few = np.meshgrid(*[np.array(sorted(set(edges)), unsigned)] * 2)
    a, b = (
        RANDOM.integers(0, 1 << bits, MANY, unsigned, endpoint=False) >> RANDOM.integers(0, bits, MANY).astype(unsigned)
        for _ in range(2)
    )
    multiple = a // np.maximum(b, 1).astype(unsigned) * b
    x = np.concatenate([few[0].ravel(), a, multiple, multiple - unsigned.type(1)]).view(dtype)
    y = np.concatenate([few[1].ravel(), b, b, b]).view(dtype)
    defined = y != 0
    if signed:
        defined &= ~((x == np.iinfo(dtype).min) & (y == -1))
    return x[defined], y[defined]


def _towards_zero(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    return (x - np.fmod(x, y)) // y


@pytest.mark.parametrize("bits", [8, 16, 64])
@pytest.mark.parametrize(
    ("name", "by_numpy"),
    [("udiv", np.floor_divide), ("urem", np.fmod), ("sdiv", _towards_zero), ("srem", np.fmod)],
)
@pytest.mark.parametrize("error", _ERRORS)
@pytest.mark.sampled(7)
def test_quotients_and_remainders_of_integers(bits: int, name: str, by_numpy: Callable[..., Any], error: float) -> None:
    x, y = _integers(bits, signed=name.startswith("s"))
    np.testing.assert_array_equal(_on_cpu(name, f"i{bits}", error, x, y), by_numpy(x, y))
