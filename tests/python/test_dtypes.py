# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every type of elements computes at every stage what NumPy computes with it."""

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tilefold import cute

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

RANDOM = np.random.default_rng(7)

Function = Callable[..., Any]
"""A function of NumPy or `cute`, two fragments (4,8) and one (8), and a type for sums."""


def larger(np: Any) -> Callable[..., Any]:
    """The larger of two numbers, of NumPy or `cute`."""
    return cute.math.max if np is cute else np.maximum


def smaller(np: Any) -> Callable[..., Any]:
    """The smaller of two numbers."""
    return cute.math.min if np is cute else np.minimum


COMPUTED: dict[str, Function] = {
    "sum": lambda np, a, b, row: a + b * row - row,
    "quotient": lambda np, a, b, row: a // b,
    "remainder": lambda np, a, b, row: a % b,
    "number": lambda np, a, b, row: 3 + a * 2,
    "absolute": lambda np, a, b, row: abs(a),
    "square": lambda np, a, b, row: a**2,
    "extremes": lambda np, a, b, row: larger(np)(a, row) - smaller(np)(a, b),
}
EVERY: dict[str, Function] = {
    "where": lambda np, a, b, row: np.where(a < row, a, b),
    "equal": lambda np, a, b, row: np.where((a == b) | (a >= row), b, row),
}
COMPARED: dict[str, Function] = {
    "less": lambda np, a, b, row: a < b,
    "at most": lambda np, a, b, row: a <= row,
    "more": lambda np, a, b, row: (a > b) ^ (a != row),
    "is": lambda np, a, b, row: (a == a) & (a >= b),
}
BITS: dict[str, Function] = {
    "bits": lambda np, a, b, row: (a & b) | (row ^ a),
    "shifted": lambda np, a, b, row: (a >> 2) ^ (b << 1),
    "inverted": lambda np, a, b, row: ~a,
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW = ("float8_e4m3fn", "float8_e5m2")
CUTE = {
    "float16": cute.Float16, "bfloat16": cute.BFloat16, "float32": cute.Float32, "float64": cute.Float64,
    "float8_e4m3fn": cute.Float8E4M3FN, "float8_e5m2": cute.Float8E5M2, "bool": cute.Boolean,
    "int8": cute.Int8, "int16": cute.Int16, "int32": cute.Int32, "int64": cute.Int64,
    "uint8": cute.Uint8, "uint16": cute.Uint16, "uint32": cute.Uint32, "uint64": cute.Uint64,
}  # fmt: skip


def stages(name: str) -> tuple[str, ...]:
    """The first stage, the last, and one between, in turn: types take the same way."""
    between = ("folded", "atoms", "index")
    return "cute", between[list(CUTE).index(name) % 3], "instr"


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


def values(name: str, *shape: int) -> NDArray[Any]:
    """Elements that any arithmetic of the type is tried with: large ones, but no 0 to divide by."""
    if name == "bool":
        return RANDOM.integers(0, 2, shape).astype(bool)
    if name in INTEGERS:
        limits = np.iinfo(name)
        found = RANDOM.integers(limits.min, limits.max, shape, name, endpoint=True)
        return np.where(found == 0, np.array(1, name), found)
    return RANDOM.uniform(0.25, 4, shape).astype(dtype_of(name)) * RANDOM.choice([-1, 1], shape).astype(dtype_of(name))


def check(name: str, functions: dict[str, Function], to: str | None = None, on_gpu: bool = False) -> None:
    """Each function of fragments, and of their elements, gives in arrays of the type `to` what it gives in NumPy."""
    a, b, row = values(name, 4, 8), values(name, 4, 8), values(name, 1, 8)
    found = {each: np.zeros((4, 8), dtype_of(to or name)) for each in functions}
    first = {each: np.zeros(1, dtype_of(to or name)) for each in functions}

    @cute.kernel
    def compute(a, b, row, found: dict[str, cute.Tensor], first: dict[str, cute.Tensor]):
        x, y, z = a.load(), b.load(), row.load()
        assert a.element_type == x.dtype == CUTE[name]
        for each, function in functions.items():
            found[each].store(function(cute, x, y, z))
            first[each][0] = function(cute, a[1, 2], b[1, 2], row[0, 2])

    for stage in (None,) if on_gpu else stages(name):
        for array in (*found.values(), *first.values()):
            array.fill(0)
        compute(a, b, row, found, first).launch(1, 1, device="cuda" if on_gpu else "sim", stage=stage)
        for each, function in functions.items():
            with np.errstate(over="ignore"):
                wanted = np.asarray(function(np, a, b, row))
            tolerance = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 1e-5}.get(name, 0 if name in INTEGERS else 1e-12)
            np.testing.assert_allclose(
                found[each].astype("f8"), wanted.astype("f8"), tolerance, tolerance, err_msg=f"{each} at {stage}"
            )
            assert first[each][0] == found[each][1, 2], (each, stage)


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
@pytest.mark.sampled(2)
def test_arithmetic(name: str) -> None:
    check(name, COMPUTED | EVERY | (BITS if name in INTEGERS else {}))


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.sampled(2)
def test_comparisons_are_elements_of_bool(name: str) -> None:
    check(name, COMPARED, "bool")


def test_bool() -> None:
    functions = {"bits": BITS["bits"], "inverted": BITS["inverted"]}
    check("bool", EVERY | functions)
    check("bool", {"counted": lambda np, a, b, row: np.where(a, 1, 0) + b + 2 * row}, "int32")


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, *NARROW, "bool"])
@pytest.mark.sampled(2)
def test_conversions(name: str) -> None:
    """From each type to each other, of numbers that both have, and, of integers, modulo the width."""
    targets = [each for each in CUTE if each != name]
    small = np.array([0, 1, 2, 3, 5, 6, 7, 8], "f4")
    negative = -small if name not in INTEGERS or name.startswith("i") else small
    given = np.concatenate([small, negative]).astype(dtype_of(name))
    if name in INTEGERS:
        given[-1] = np.iinfo(name).max
    found = {each: np.zeros(16, dtype_of(each)) for each in targets}

    @cute.kernel
    def compute(given, found: dict[str, cute.Tensor]):
        x = given.load()
        for each, out in found.items():
            out.store(x.to(CUTE[each]))
            out[3] = given[3].to(CUTE[each])

    for stage in stages(name):
        compute(given, found).launch(1, 1, device="sim", stage=stage)
        for each, out in found.items():
            exact = slice(0, 8) if each.startswith("u") and name not in INTEGERS else slice(0, 15)
            rest = slice(15, 16 if name in INTEGERS and (each in INTEGERS or each in ("float64", "bool")) else 15)
            with np.errstate(invalid="ignore", over="ignore"):
                wanted = given.astype(dtype_of(each))
            for part in (exact, rest):
                np.testing.assert_array_equal(out[part].astype("f8"), wanted[part].astype("f8"), f"{each} at {stage}")


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.sampled(3)
def test_reductions(name: str) -> None:
    Op = cute.ReductionOp
    x = values(name, 4, 8)
    reductions = {"max": (Op.MAX, x.max(1)), "min": (Op.MIN, x.min(1))}
    if name in INTEGERS:
        with np.errstate(over="ignore"):
            reductions |= {
                "add": (Op.ADD, x.sum(1, dtype=name)), "mul": (Op.MUL, x.prod(1, dtype=name)),
                "and": (Op.AND, np.bitwise_and.reduce(x, 1)), "or": (Op.OR, np.bitwise_or.reduce(x, 1)),
            }  # fmt: skip
    elif name == "bool":
        reductions |= {"and": (Op.AND, x.all(1)), "or": (Op.OR, x.any(1))}
    else:
        reductions |= {"add": (Op.ADD, x.astype("f8").sum(1))}
    found = {each: np.zeros(4, x.dtype) for each in reductions}

    @cute.kernel
    def compute(x, found: dict[str, cute.Tensor]):
        for each, out in found.items():
            out.store(x.load().reduce(reductions[each][0], reduction_profile=(None, 1)))

    for stage in stages(name):
        compute(x, found).launch(1, 1, device="sim", stage=stage)
        for each, (_, wanted) in reductions.items():
            tolerance = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5}.get(name, 1e-12)
            got = found[each].astype("f8")
            np.testing.assert_allclose(got, wanted.astype("f8"), tolerance, tolerance, err_msg=f"{each} at {stage}")


@pytest.mark.parametrize("name", NARROW)
def test_floats_of_8_bits_are_converted(name: str) -> None:
    """They have no arithmetic, and are chosen, copied and converted; to them the nearest is taken."""
    a, b = values(name, 4, 8), values(name, 4, 8)
    out, sums = np.zeros_like(a), np.zeros_like(a)

    @cute.kernel
    def compute(a, b, out, sums):
        x, y = a.load(), b.load()
        wide = x.to(cute.Float32)
        out.store(cute.where(wide < y.to(cute.Float32), x, y))
        sums.store((wide + y.to(cute.Float32)).to(a.element_type))
        sums[0, 0] = (a[0, 0].to(cute.Float32) * 2).to(a.element_type)

    for stage in stages(name):
        compute(a, b, out, sums).launch(1, 1, device="sim", stage=stage)
        wide = a.astype("f4"), b.astype("f4")
        np.testing.assert_array_equal(out.astype("f4"), np.minimum(*wide))
        wanted = (wide[0] + wide[1]).astype(a.dtype).astype("f4")
        wanted[0, 0] = wide[0][0, 0] * 2
        np.testing.assert_array_equal(sums.astype("f4"), wanted, stage)


def test_tf32_is_float32_that_is_rounded() -> None:
    a, out = values("float32", 4, 8), np.zeros((3, 4, 8), np.float32)

    @cute.kernel
    def compute(a, out):
        x = a.load().to(cute.TFloat32)
        out[0, None, None] = x
        out[1, None, None] = x * x + 1
        out[2, None, None] = cute.where(x > 0, x, -x)
        out[0, 0, 0] = a[0, 0].to(cute.TFloat32)

    rounded = ((a.view(np.uint32) + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32)  # half away from zero
    for stage in stages("float32"):
        compute(a, out).launch(1, 1, device="sim", stage=stage)
        np.testing.assert_array_equal(out[0], rounded)
        np.testing.assert_allclose(out[1], rounded * rounded + 1, 1e-6)
        np.testing.assert_array_equal(out[2], abs(rounded))


def test_bools_in_shared_memory_and_copied() -> None:
    """An element of bool is a byte wherever threads share it; copies move bytes, fragments of predicates too."""
    given, out = values("bool", 32, 16), np.zeros((5, 32, 16), bool)
    numbers, chosen = np.arange(512, dtype=np.int32).reshape(32, 16), np.zeros((32, 16), np.int32)

    @cute.kernel
    def compute(given, out, numbers, chosen):
        t, _, _ = cute.arch.thread_idx()
        mine = given[t, None]
        shared = cute.make_smem_tensor((32, 16), cute.Boolean)
        shared[t, None] = ~mine.load()
        cute.arch.sync_threads()
        out[0, t, None].store(shared[31 - t, None].load())
        as_bytes = cute.make_rmem_tensor_like(given[t, None], None)
        predicates = cute.make_rmem_tensor((16,), cute.Boolean)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Boolean, num_bits_per_copy=128)
        cute.copy(atom, mine, as_bytes)
        cute.autovec_copy(mine, predicates)
        cute.autovec_copy(as_bytes, out[1, t, None])
        cute.copy(atom, predicates, out[2, t, None])
        predicates.fill(True)
        cute.autovec_copy(mine, predicates, pred=mine.load())
        out[3, t, None].store(predicates.load())
        out[4, t, t % 16] = True
        cute.autovec_copy(numbers[t, None], chosen[t, None], pred=as_bytes)

    for stage in stages("bool"):
        out.fill(False)
        chosen.fill(0)
        compute(given, out, numbers, chosen).launch(1, 32, device="sim", stage=stage)
        t, i = np.arange(32)[:, None], np.arange(16)
        for number, wanted in enumerate((~given[::-1], given, given, np.ones_like(given), t % 16 == i)):
            np.testing.assert_array_equal(out[number], wanted, f"{number} at {stage}")
        np.testing.assert_array_equal(chosen, np.where(given, numbers, 0))
    assert "ld.global.v4.b32" in compute.ptx() or "ld.global.v2.b64" in compute.ptx()


def test_signs_meet() -> None:
    """Of integers of one width the unsigned type counts, else the wider one; coordinates stay what they are."""
    u, i = np.array([0, 5, 2**31, 2**32 - 1], np.uint32), np.array([-1, 3, -7, 2], np.int32)
    wide = np.array([-1, 2**40, -5, 8], np.int64)
    out = np.zeros((8, 4), np.int64)

    @cute.kernel
    def compute(u, i, wide, out, limit: cute.Uint32):
        t, _, _ = cute.arch.thread_idx()
        a, b, c = u[t], i[t], wide[t]
        assert (a + b).dtype == (a + 1).dtype == (1 + a).dtype == cute.Uint32
        assert (a + c).dtype == cute.Int64
        assert (a.to(cute.Uint8) + b).dtype == cute.Int32
        assert t.dtype == cute.Int32
        assert (a + t).dtype == cute.Uint32
        assert (a / 2).dtype == cute.Float32
        out[0, t] = a + b
        out[1, t] = a < b
        out[2, t] = a + c
        out[3, t] = a.to(cute.Uint8) * b
        out[4, t] = cute.where(a > limit, 1, 0) + (a > 7)
        out[5, t] = a + t
        total = a
        for n in cute.range(t):
            total = total // 3 + cute.Uint32(n)
        out[6, t] = total
        out[7, t] = -a if a > 4 else a

    limit = 2**31
    for stage in stages("uint32"):
        compute(u, i, wide, out, limit).launch(1, 4, device="sim", stage=stage)
        sums = [int(x) for x in u]
        for t in range(4):
            for n in range(t):
                sums[t] = sums[t] // 3 + n
        both = i.astype(np.uint32)
        wanted = [
            u + both, u < both, u + wide, u.astype(np.uint8) * i, (u > limit) + 0 + (u > 7),
            u + np.arange(4, dtype=np.uint32),
            sums, np.where(u > 4, -u, u),
        ]  # fmt: skip
        for number, row in enumerate(wanted):
            np.testing.assert_array_equal(out[number], np.asarray(row).astype("i8"), f"{number} at {stage}")


def test_unsigned_in_instructions() -> None:
    u = np.array([2**32 - 1, 3] * 16, np.uint32)
    out = np.array([7, 7, 0, 0], np.uint32)

    @cute.kernel
    def compute(u, out):
        t, _, _ = cute.arch.thread_idx()
        x = u[t]
        cute.arch.atomic_max(out.ptr(0), x)
        cute.arch.red(out.ptr(1), x, op="min")
        most, least = cute.arch.redux_sync(x, "max"), cute.arch.warp_reduction(x, cute.ReductionOp.MIN)
        if t == 0:
            out[2], out[3] = most, least
            cute.printf("{} {} {}", x, x.to(cute.Uint64) * 2, x.to(cute.Uint8))

    result = compute(u, out).launch(1, 32, device="sim")
    assert out.tolist() == [2**32 - 1, 3, 2**32 - 1, 3]
    assert result is not None
    assert result.output == "4294967295 8589934590 255\n"
    ptx = compute.ptx("sm_90")
    for words in (r"atom\S*\.max\.u32", r"(red|atom)\S*\.min\.u32", r"redux\.sync\.max\.u32"):
        assert re.search(words, ptx), words


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
def test_on_a_gpu(name: str) -> None:
    bits = BITS if name in INTEGERS else {}
    check(name, EVERY | bits if name != "bool" else EVERY | {"bits": BITS["bits"]}, on_gpu=True)
    check(name, COMPARED, "bool", on_gpu=True)
    if name != "bool":
        check(name, COMPUTED, on_gpu=True)


@pytest.mark.gpu
def test_tensors_of_torch_on_a_gpu() -> None:
    torch: Any = import_module("torch")
    mask = torch.arange(64, device="cuda") % 3 == 0
    x = torch.full((64,), 250, dtype=torch.uint8, device="cuda")
    out, flags = torch.zeros(64, dtype=torch.float32, device="cuda"), torch.zeros(64, dtype=torch.bool, device="cuda")

    @cute.kernel
    def compute(mask, x, out, flags, limit: cute.Uint32):
        t, _, _ = cute.arch.thread_idx()
        out[t] = cute.where(mask[t], x[t] // 4, x[t])
        flags[t] = mask[t] & (x[t].to(cute.Uint32) < limit)

    for limit in (2**32 - 1, 250):
        compute(mask, x, out, flags, limit).launch(1, 64)
        torch.cuda.synchronize()
        assert out.tolist() == [62.0 if i % 3 == 0 else 250.0 for i in range(64)]
        assert flags.tolist() == [i % 3 == 0 and limit > 250 for i in range(64)]


def saturated(target: str, device: str) -> None:
    """Floats beyond an integer type become its least or greatest number; NaN becomes 0, or where 64 bits take part the
    least, of an unsigned type the half (PTX ISA, cvt), which is 255 where it is more.
    """
    limits = np.iinfo(target)
    half = int(limits.min) if limits.min else min(max(1 << limits.bits - 1, 1 << 31), int(limits.max))
    for source in ("float16", "bfloat16", "float32", "float64"):
        beyond = [1e30, -1e30, np.inf, -np.inf, np.nan, 127.9, 128, -128.9, -130, 255.9, 256, 300, -1, -0.9, 40000, 0]
        with np.errstate(over="ignore"):
            a = np.array(beyond * 2, dict(float16=np.float16, bfloat16=ml_dtypes.bfloat16).get(source, source))
        found = np.zeros(a.shape, target)

        @cute.kernel
        def convert(A, B):
            i, _, _ = cute.arch.thread_idx()
            B[i] = A[i].to(B.element_type)
            if i == 0:  # of a constant
                B[0] = cute.Float32(1e30).to(B.element_type)

        convert(a, found).launch(1, a.size, device=device)
        nan = half if source == "float64" or limits.bits == 64 else 0
        numbers = [nan if x != x else max(float(limits.min), min(float(x), float(limits.max))) for x in a]
        assert found.tolist() == [min(int(x), int(limits.max)) for x in numbers], source
        ptx, kind = convert.ptx("sm_90"), target[0].replace("i", "s")
        assert f"cvt.rzi.{kind}{max(limits.bits, 32)}.f{64 if source == 'float64' else 32}" in ptx
        assert (f"min.{kind}32" in ptx) == (limits.bits < 32)
        assert re.search(rf"st\.global\.b{limits.bits}\s+\[%rd\d+\], (-1|{limits.max});", ptx)


@pytest.mark.parametrize("target", INTEGERS)
def test_floats_beyond_integers_saturate(target: str) -> None:
    saturated(target, "sim")


@pytest.mark.gpu
@pytest.mark.parametrize("target", INTEGERS)
def test_floats_beyond_integers_saturate_on_a_gpu(target: str) -> None:
    saturated(target, "cuda")
