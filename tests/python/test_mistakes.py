# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What users get wrong has a code, names their line, and hints at a cure."""

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.python.misuse import compiled
from tilefold import cute

A = np.zeros((16, 64), np.float32)

MISTAKES = MappingProxyType({
    # names and arguments
    "cute.gem(mma, x, x, x)": ("E5009", "cute has no 'gem'", "did you mean gemm"),
    "cute.arch.bariier()": ("E5009", "cute.arch has no 'bariier'", "did you mean barrier"),
    "cute.maximum(n, 1)": ("E5009", "cute has no 'maximum'", "here it is cute.math.max"),
    "A.load().reduce(cute.ADD)": ("E5009", "cute has no 'ADD'", "here it is cute.ReductionOp.ADD"),
    "cute.arch.setmaxnreg(40)": ("E5009", "'setmaxnreg'", "cute.arch.setmaxregister_increase"),
    "cute.arch.syncthreads()": ("E5009", "cute.arch has no 'syncthreads'", "here it is cute.arch.sync_threads"),
    "cute.thread_idx()": ("E5009", "cute has no 'thread_idx'", "here it is cute.arch.thread_idx"),
    "cute.arch.thread_idx().x": ("E5009", "a tuple has no 'x'", "x, y, z = ..."),
    "A[0].sqrt()": ("E5009", "a Float has no 'sqrt'", "here it is cute.math.sqrt"),
    "A.shap": ("E5009", "a Tensor has no 'shap'", "did you mean shape"),
    "x.reduce(cute.ReductionOp.ADD, profile=0)": (
        "E5009", "unexpected keyword argument 'profile'", "did you mean reduction_profile?"
    ),
    "cute.make_smem_tensor(8, cute.Int8, align=8)": ("E5009", "keyword argument 'align'", "did you mean alignment?"),
    "cute.copy(A, r)": ("E5009", "missing 1 required positional argument: 'dst'", "it takes atom, src, dst, pred"),
    "cute.copy(*(A,))": ("E5009", "missing 2 required positional arguments", "it takes atom, src, dst, pred"),
    "cute.size(A, **{'mod': 1})": ("E5009", "keyword argument 'mod'", "did you mean mode?"),
    "cute.make_fragment_like(r).fill()": ("E5009", "missing 1 required positional argument: 'value'", "it takes value"),
    # operands
    "[v for v in n]": ("E5002", "'Int' object is not iterable", "write cute.range(n)"),
    "[*n]": ("E5002", "must be an iterable, not Int", "write cute.range(n)"),
    "sum(n)": ("E5002", "'Int' object is not iterable", "write cute.range(n)"),
    "(1, 2)[x]": ("E5002", "tuple indices must be integers or slices, not Vec", ""),
    "-cute.make_fragment_like(r)": ("E5002", "bad operand type for unary -: 'Tensor'", "t.load()"),
    "np.ones(8) * x": ("E5002", "a kernel cannot compute with a NumPy array", "as an argument"),
    "x + A": ("E5002", "for +: 'Vec' and 'Tensor'", "t.load() is a tensor's elements as a value"),
    "n << -1": ("E5002", "Int32 cannot be shifted by -1", "shift by 0 to 31"),
    "n >> 32": ("E5002", "Int32 cannot be shifted by 32", "shift by 0 to 31"),
    "-A": ("E5002", "bad operand type for unary -: 'Tensor'", "t.load()"),
    "np.exp(n)": ("E5002", "NumPy's functions do not take Int", "take the function from cute"),
    "np.maximum(x, x)": ("E5002", "NumPy's functions do not take Vec", "take the function from cute"),
    "np.ones(8) + x": ("E5002", "a kernel cannot compute with a NumPy array", "as an argument"),
    "np.float32(2) * A": ("E5002", "for *: 'numpy.float32' and 'Tensor'", "t.load()"),
    "x + None": ("E5002", "for +: 'Vec' and 'NoneType'", "combine with each other and with numbers"),
    "cute.exp('a')": ("E5002", "expected a fragment, a value or a number, got str", "t.load()"),
    "cute.where(x > 0, x, A)": ("E5002", "a value or a number, got Tensor", "t.load()"),
    "cute.math.max(x, A)": ("E5002", "a value or a number, got Tensor", "t.load()"),
    "cute.arch.shuffle_sync(A, 0)": ("E5002", "got Tensor", ""),
    "cute.arch.warp_reduction(x, 'sum')": ("E5002", "expected a reduction such as cute.ReductionOp.ADD, got 'sum'", ""),
    "~x": ("E5002", "'xor' is not defined for Float32", "it combines bits"),
    "x.to(cute.Int4)": ("E5002", "a kernel cannot convert Float32 to Int4", ""),
    "cute.full((4, 8), x, cute.Float32)": ("E5002", "expected a value or a number, got Vec", ""),
    "cute.printf('%d', x)": ("E5002", "got Vec", ""),
    "cute.arch.inline_ptx('mov.b32 $0, $1;', '=r,r', x, results=cute.Int32)": ("E5002", "got Vec", ""),
    # what must be static, and where it must lie
    "A[16, 0]": ("E5002", "coordinate 16 is out of range for extent 16: 0 to 15", ""),
    "A[1024]": ("E5002", "coordinate 1024 is out of range for shape (16,64): 0 to 1023", ""),
    "x[0, 8]": ("E5002", "coordinate 8 is out of range for extent 8", ""),
    "A[n : n + 3, 0]": ("E5002", "the length of the slice is known only when the kernel runs", "cute.local_tile"),
    "A[n / 2, 0]": ("E5002", "a coordinate is an integer, not Float32", "write a // b"),
    "A[None, n / 2]": ("E5002", "a coordinate is an integer, not Float32", "write a // b"),
    "cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cute.Float32)).get_slice(cute.arch.thread_idx()).partition_A(A)": (
        "E5002", "a coordinate is an integer, not tuple", "take one of its numbers",
    ),
    "A[1.5, 0]": ("E5002", "a coordinate is an integer, not float", ""),
    "cute.arch.cp_async_wait_group(n)": ("E5003", "the number of groups must be static", "a Python number"),
    "cute.arch.barrier(barrier_id='a')": ("E5003", "the number of a barrier must be static, but it is 'a'", ""),
    "cute.full((n, 4), 0, cute.Float32)": ("E5003", "the shape of a fragment must be static", "cute.Constexpr"),
    "cute.autovec_copy(cute.make_fragment_like(r, cute.Int32), r)": ("E1003", "does not convert: write dst.store(", ""),
    # layouts and views
    "cute.local_tile(A, (4, 64), (4, 0))": ("E0215", "is out of range for (4,1), the shape of the tiles", "0 to 3"),
    "A[None, 64]": ("E0215", "the coordinate (_,64) is out of range for (16,64)", "from 0 to 63"),
    "cute.domain_offset(A, (16, 0))": ("E0215", "the coordinate (16,0) is out of range for (16,64)", "from 0 to 15"),
    "A.ptr(16, 0)": ("E5002", "coordinate 16 is out of range for extent 16", ""),
    "A[0, 0, 0]": ("E0201", "the coordinate (0,0,0) does not fit (16,64)", ""),
    "A[cute.arch.thread_idx(), 0]": ("E0201", "the coordinate (?,?,?) does not fit 16", ""),
    "cute.make_layout((8, 1.5))": ("E5002", "expected integers, or a tuple or a layout of them, got 1.5", ""),
    "cute.make_layout((cute.make_layout(2), 3))": ("E0213", "an extent must be an integer, not 2:1", ""),
    "cute.local_tile(A, (4, 'a'), (0, 0))": ("E5002", "got 'a'", ""),
    "cute.blocked_product((2, 2), (3, 4))": ("E5002", "expected a layout, got (2, 2)", "cute.make_layout(shape)"),
    "cute.complement(A)": ("E5002", "expected a layout, got Tensor", "t.layout is a tensor's"),
    "cute.zipped_divide(x, (2, 2))": ("E5002", "expected a layout, got Vec", ""),
    "cute.select((1, 2), 5)": ("E0208", "mode 5 is out of range: modes are 0 to 1", ""),
    "cute.take(A, 1, 3)": ("E0208", "modes 1 to 2 are not a range of 2 modes", ""),
    "cute.append((1, 2), up_to_rank=1)": ("E0202", "has more than 1 elements", ""),
    "cute.ceil_div((7, 9), (2, 4, 5))": ("E0202", "3 divisors for 2 integers", ""),
    "cute.arch.sync_threads(3)": ("E5009", "takes 0 positional arguments but 1 was given", "it takes no arguments"),
    "(7 * x).foo": ("E5009", "a Vec has no 'foo'", ""),
    "cute.round_up((7, 9), 4)": ("E0202", "(7, 9) cannot be rounded up to a multiple of 4", "give two tuples"),
    "cute.elem_less((1, 2), (3,))": ("E0201", "1 limits are given for a coordinate of 2 integers", ""),
    "cute.make_tensor(A, 8)": ("E5002", "expected where a tensor begins, got Tensor", "write t.iterator"),
    "cute.domain_offset((1, 2), 3)": ("E5002", "expected a coordinate and a tensor, got tuple and int", "((i, j), t)"),
    "A.iterator + 1.5": ("E5002", "a coordinate is an integer, not float", ""),
    "A.iterator - 1": ("E5002", "for -: 'Pointer' and 'int'", "p + n is where the n-th element begins"),
    "w[None, 0].iterator + 8": ("E0211", "a pointer into a swizzle cannot be moved", "take a view"),
    "A.__setattr__('shape', 3)": ("E5002", "property 'shape' of 'Tensor' object has no setter", "t.load()"),
    "A < A": ("E5002", "'<' not supported between instances of 'Tensor' and 'Tensor'", "t.load()"),
    "sorted([mma, mma])": ("E5002", "between instances of 'TiledMma' and 'TiledMma'", ""),
    "cute.stride(None)": ("E5002", "expected a layout, got NoneType", ""),
    "cute.group_modes((1, 2), A)": ("E5002", "the number of a mode is an integer, not Tensor", ""),
    "cute.logical_product(cute.make_layout(8))": ("E5002", "logical_product(Layout): ", "it takes block, tiler"),
    "cute.raked_product(cute.make_layout((4, 8)), (1, 2))": ("E5002", "raked_product(Layout, tuple)", "it takes block"),
    "cute.if_(n > 1, 3)": ("E5002", "expected a function, got int", "lambda"),
    "cute.full_like((4, 8), 0)": ("E5002", "expected a fragment or a tensor, got tuple", "cute.full"),
    "cute.Int(3)": ("E5002", "Int is a class of values", "cute.Int32(x)"),
    "cute.Tensor(3)": ("E5002", "the class Tensor does not make tensors", "cute.make_tensor"),
    "cute.TensorSSA(A)": ("E5002", "the class Vec does not make fragments", "t.load()"),
    "cute.make_swizzle(1, 2, (3, 4))": ("E0210", "must be static integers", ""),
    "cute.arch.fence(A)": ("E5002", "fence(Tensor", "it takes"),
    "cute.bounds(A, (1, 2))": ("E5002", "expected a tensor of coordinates, got Tensor", "make_identity_tensor"),
    # atoms
    "cute.make_tiled_mma(cute.Float16)": ("E5002", "expected a matrix instruction, got Float16", "MmaF16BF16Op"),
    "cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp('l2'), cute.Float16)": ("E5002", "no cache mode 'l2'", ""),
    "cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.LAST_USE), cute.Float16)": (
        "E5002", "cp.async has no cache mode <LoadCacheMode.LAST_USE: 'lu'>", "write cute.nvgpu.LoadCacheMode.ALWAYS"
    ),
    # powers
    "n ** n": ("E5002", "needs a static exponent", "1 << n"),
    "n ** -1": ("E5002", "is not an integer", "cute.Float32"),
    "(-2.0) ** x": ("E5002", "-2.0 ** x is undefined for a value x", "the base must be positive"),
    "x ** A": ("E5002", "for ** or pow(): 'Vec' and 'Tensor'", "t.load() is a tensor's elements as a value"),
    # numbers
    "n * 1e300": ("E5002", "1e+300 is not a number of type Float32", "float('inf')"),
    "cute.BFloat16(1e39)": ("E5002", "1e+39 is not a number of type BFloat16", "float('inf')"),
    "cute.Float8E4M3FN(1e3)": ("E5002", "1000.0 is not a number of type Float8E4M3FN", ""),
    "r.fill(2**20000)": ("E5002", "an integer of 20001 bits is not a number of type Float32", ""),
    "n + 2**20000": ("E5002", "an integer of 20001 bits is not a number of type Int32", "x.to(cute.Int64)"),
    "cute.log(0)": ("E5002", "log of 0 is not a number", "cute.log(cute.Float32(x))"),
    "cute.exp(1e9)": ("E5002", "exp of 1000000000.0 is not a number", "gives infinity or NaN"),
    "n.to(2)": ("E5002", "expected an element type, got 2", "such as cute.Float16"),
    "cute.range(n, unroll=cute)": ("E2007", "unroll is <module", ""),
})  # fmt: skip


def build(expression: str) -> None:
    """Builds a kernel that evaluates an expression of a tensor `A` (16,64), its registers `r` (4,8), their elements `x`
    and an Int32 `n`.
    """

    @cute.kernel(preprocessor=False)
    def mistaken(A: cute.Tensor, n: cute.Int32):
        r = cute.make_rmem_tensor((4, 8), cute.Float32)
        r.fill(0.0)
        mma = cute.make_tiled_mma("UniversalFMA<float>")
        swizzled = cute.make_composed_layout(cute.make_swizzle(3, 0, 3), 0, (8, 8))
        w = cute.make_smem_tensor(swizzled, cute.Float32)
        names = {"np": np, "cute": cute, "A": A, "n": n, "r": r, "x": r.load(), "mma": mma, "w": w}
        eval(compiled(expression), {**names, "__name__": "user"})

    mistaken(A, 3).build(32)


@pytest.mark.parametrize("expression", MISTAKES)
def test_a_mistake_is_told(expression: str) -> None:
    code, message, hint = MISTAKES[expression]
    with pytest.raises(TilefoldError) as caught:
        build(expression)
    error: Any = caught.value
    assert error.code == code
    assert str(error).startswith("user.py:1:")
    assert message in str(error)
    assert hint in str(error).partition("hint:")[2]


def test_what_python_refuses_in_control_flow_is_told() -> None:
    """Statements of a kernel are not Python's own, but what Python would refuse is a mistake in the same way."""

    def iterated(n: Any, x: Any) -> None:
        for _ in n:
            pass

    def counted(n: Any, x: Any) -> None:
        for _ in range(x):
            pass

    def contained(n: Any, x: Any) -> None:
        if n in 3:  # pyright: ignore[reportOperatorIssue]
            pass

    @cute.kernel
    def mistaken(n: cute.Int32, function: cute.Constexpr):
        cute.jit(function)(n, cute.full((4,), 1, cute.Float32))

    for function, words in ((iterated, "write cute.range(n)"), (counted, "'Vec' object cannot be interpreted")):
        with pytest.raises(TilefoldError, match="E5002") as caught:
            mistaken(3, function).build(32)
        assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno + 1}:")
        assert words in str(caught.value)
    with pytest.raises(TypeError, match="argument of type 'int' is not iterable"):
        mistaken(3, contained).build(32)


def test_an_expression_that_doubles_is_built_at_once() -> None:
    for expression in ("x ** 1e300", "x ** 2**200"):
        build(f"r.store({expression})")


def test_what_is_not_ours_goes_through() -> None:
    """Python's own exceptions about the user's own functions and objects stay what they are."""
    for expression, kind in (
        ("(lambda a: a)()", TypeError), ("(lambda: 1)(A)", TypeError), ("'a' + 1", TypeError),
        ("'a'.b", AttributeError), ("len(A, A)", TypeError), ("sorted([1, 'a'])", TypeError),
    ):  # fmt: skip
        with pytest.raises(kind) as caught:
            build(expression)
        assert caught.value.__notes__ == ["while the kernel 'mistaken' was built"]


def test_branches_may_be_ones_that_no_thread_takes() -> None:
    """An element that is not there is refused where every thread would access it; elsewhere by the simulator."""
    out = np.zeros(4, np.float32)

    @cute.kernel
    def guarded(out: cute.Tensor, n: cute.Int32):
        for i in range(8):
            if n > i:
                out[i] = 1.0

    guarded(out, 3).launch(grid=1, block=1, device="sim")
    assert out.tolist() == [1, 1, 1, 0]
    with pytest.raises(TilefoldError, match="E3202"):
        guarded(out, 5).launch(grid=1, block=1, device="sim")
