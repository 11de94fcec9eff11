# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes of host functions and of calls that the host makes: a code, the user's line, and what would work."""

import runpy
from pathlib import Path

import pytest
from tilefold.base.errors import TilefoldError

HEAD = """import numpy as np
from tilefold import cute
from tilefold.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_tensor, make_ptr, sym_int
A = np.zeros((8, 32), np.float32)

@cute.kernel
def k(a: cute.Tensor, n: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    a[0, t] = 1.0

@cute.jit
def launched(a: cute.Tensor):
    k(a, 1).launch(grid=1, block=32)

@cute.jit
def variadic(a: cute.Tensor, *more: cute.Tensor):
    k(a, 1).launch(grid=1, block=32)

@cute.jit
def tiled(a: cute.Tensor, tile: cute.Constexpr):
    k(a, 1).launch(grid=1, block=32)

"""
HOST = "@cute.jit\ndef host(a: cute.Tensor, tile=None):\n    {}\n    k(a, 1).launch(grid=1, block=32)\n\nhost(A)\n"
OPERATION = "this operation belongs in a kernel, but a host function"

IN_HOST = {
    "k(a, 1).launch(block=32)": ("E3105", "the launch has no grid", ".launch(..., grid=(x, y, z))"),
    "k(a, 1).launch(grid=1)": ("E3105", "the launch has no block", ".launch(..., block=(x, y, z))"),
    "k(a, 1).launch(grid=1, block=32, shared=4)": ("E3105", "no option 'shared'", ""),
    "k(a, 2)": ("E3105", "k(...) is not launched", "k(...).launch(grid=..., block=...)"),
    "k(a, 1).launch(grid=1, block=32, smem='48k')": ("E3105", "smem is '48k'", "leave it out"),
    "k(a, 1).launch(grid=1, block=32, fallback_cluster=[2, 1, 1])": ("E3105", "does not divide", "leave it out"),
    "k[1, 32](a, 1)": ("E3105", "k[...] does not launch", "k(...).launch(grid=..., block=...)"),
    "k(a).launch(grid=1, block=32)": ("E5009", "missing a required argument: 'n'", "it takes a, n"),
    "k(a, 1, 2).launch(grid=1, block=32)": ("E5009", "takes 2 positional arguments but 3", "it takes a, n"),
    "k(a, m=1).launch(grid=1, block=32)": ("E5009", "unexpected keyword argument 'm'", "it takes a, n"),
    "k(3, 1).launch(grid=1, block=32)": ("E3106", "argument 'a' is of type int", "pass an array"),
    "k(a, 'x').launch(grid=1, block=32)": ("E3106", "argument 'n' is of type str", "pass a number of type Int32"),
    "k(a, 1).launch(grid='x', block=32)": ("E3105", "the grid is ('x',)", "one to three integers"),
    "k(a, 1).launch(grid=(8 / 2, 1, 1), block=32)": ("E3105", "the grid is (4.0, 1, 1)", "one to three integers"),
    "k(a, 1).launch(grid=(1, 1, 1, 1), block=32)": ("E3105", "the grid is (1, 1, 1, 1)", "one to three integers"),
    "k(a, 1).launch(grid=1, block=2048)": ("E3105", "the block (2048,) has 2048 threads", "1024"),
    "cute.make_layot((4, 8))": ("E5009", "cute has no 'make_layot'", "did you mean make_layout"),
    "cute.make_layout((4, 8), strides=(1, 4))": ("E5009", "'strides'", "did you mean stride?"),
    "cute.make_layout((4, 8), stride=(1,))": ("E0201", "are nested differently", ""),
    "cute.assume(a.shape[0], divby='x')": ("E5002", "assume(int, str)", "it takes"),
    "cute.Float32.infinity": ("E5009", "has no 'infinity'", "did you mean inf"),
    "cute.arch.alloc_smem(cute.Float32, 32)": ("E5001", OPERATION, "@cute.kernel"),
    "cute.arch.thread_idx()": ("E5001", OPERATION, "@cute.kernel"),
    "cute.local_tile(a, (4, 8), (0, 0, 0))": ("E0202", "has 3 modes", ""),
    "cute.make_fragment_like(cute.make_tensor(a.iterator, cute.make_layout((cute.Int32(4), 2))))": (
        "E1003",
        "allocates memory of static layouts only",
        "",
    ),
    "a.shapes[0]": ("E5009", "a Tensor has no 'shapes'", "did you mean shape"),
    "a.shape[2]": ("E5002", "index out of range", ""),
    "a.shape[0] + None": ("E5002", "unsupported operand", ""),
    "a(0)": ("E5002", "not callable", "t.load()"),
    "int(a)": ("E5002", "int() argument", "t.load()"),
    "np.zeros(-1)": ("E5002", "negative dimensions", ""),
    "tiel": ("E5009", "name 'tiel' is not defined", "did you mean tile"),
    "(1).numrator": ("E5009", "has no attribute 'numrator'", "did you mean numerator"),
}
BY_THE_HOST = {
    "launched(3)": ("E3106", "argument 'a' is of type int", "pass an array"),
    "launched([[1.0]])": ("E3106", "argument 'a' is of type list", "pass an array"),
    "launched()": ("E5009", "missing a required argument: 'a'", "it takes a"),
    "variadic()": ("E5009", "variadic() missing a required argument: 'a'", "it takes a, more"),
    "launched(A, A)": ("E5009", "takes 1 positional arguments but 2", "it takes a"),
    "k(A)": ("E5009", "missing a required argument: 'n'", "it takes a, n"),
    "k(A, 1)()": ("E3105", "does not launch", "k(...).launch(grid=..., block=...)"),
    "k(A, 1).launch(1)": ("E3105", "the launch has no block", "block=(x, y, z)"),
    "cute.compile(k, A, 1)": ("E5005", "a Kernel cannot be compiled", "@cute.jit"),
    "cute.compile(dict, A)": ("E5005", "the class dict cannot be compiled", "pass an object: dict(...)"),
    "cute.compile(launched)": ("E5009", "missing a required argument: 'a'", "it takes a"),
    "cute.compile(launched, A)(3)": ("E3106", "argument 'a' is of type int", "pass an array"),
    "cute.compile(launched, A)(A, 3)": ("E5009", "takes 1 positional arguments but 2", "it takes a"),
    "cute.compile(tiled, A, 4)(A, 4)": ("E5009", "takes 1 positional", "it takes a; tile was given to cute.compile"),
    "from_dlpack([1, 2])": ("E3106", "not an array but a list", ""),
    "from_dlpack(None)": ("E3106", "not an array but a NoneType", ""),
    "from_dlpack(A, align=16)": ("E5009", "'align'", "did you mean assumed_align?"),
    "from_dlpack(A, assumed_align=3)": ("E3106", "assumed_align is 3", "power of two"),
    "from_dlpack(A, assumed_align='16')": ("E5002", "from_dlpack(ndarray, str)", "it takes tensor, assumed_align"),
    "from_dlpack(A).mark_layout_dynamic(leading=1)": ("E5009", "'leading'", "did you mean leading_dim?"),
    "from_dlpack(A).mark_compact_shape_dynamic(5)": ("E3106", "mode 5 of a tensor of 2", ""),
    "from_dlpack(A).mark_compact_shape_dynamic('1')": ("E5002", "mark_compact_shape_dynamic(str)", "it takes mode"),
    "from_dlpack(A).mark_compact_shape_dynamic(1, divisibility=0)": ("E3106", "divisibility is 0", "at least 1"),
    "make_fake_tensor(cute.Float32, (4, 8), (1,))": ("E3106", "different ranks", "a stride for each extent"),
    "make_fake_compact_tensor(float, (4, 8))": ("E3106", "not an element type", "cute.Float32"),
    "make_fake_compact_tensor(cute.Float32, (-4, 8))": ("E0205", "not positive", ""),
    "make_fake_compact_tensor(cute.Float32, (4, 8), stride_order=(0, 0))": (
        "E3106",
        "stride_order is (0, 0)",
        "different",
    ),
    "make_ptr(cute.Float32, 'x')": ("E3106", "an address is an integer", "data_ptr()"),
    "make_ptr(np.float32, 0x1000)": ("E3106", "not an element type", "cute.Float32"),
    "sym_int('n')": ("E3106", "sym_int(n, 1)", "32 or 64"),
    "class W(cute.Float32): pass": ("E5002", "Float32 cannot be the base of a class", "functions of its values"),
    "cute.testing.benchmark(3)": ("E3105", "type int cannot be called", ""),
    "cute.testing.benchmark(print, iters=3)": ("E5009", "'iters'", "did you mean iterations"),
}


def _error(folder: Path, text: str) -> TilefoldError:
    file = folder / "program.py"
    file.write_text(HEAD + text)
    with pytest.raises(TilefoldError) as caught:
        runpy.run_path(str(file))
    return caught.value


@pytest.mark.parametrize("line", IN_HOST)
def test_a_mistake_in_a_host_function_is_shown_at_its_line(tmp_path: Path, line: str) -> None:
    code, words, hint = IN_HOST[line]
    error = _error(tmp_path, HOST.format(line))
    assert str(error.code) == code
    assert words in error.message
    assert hint in error.hint
    if code != "E1003":  # which is about the kernel
        assert f"      {line}\n" in str(error)


@pytest.mark.parametrize("line", BY_THE_HOST)
def test_a_mistake_in_a_call_of_the_host_has_a_code(tmp_path: Path, line: str) -> None:
    code, words, hint = BY_THE_HOST[line]
    error = _error(tmp_path, line)
    assert str(error.code) == code
    assert words in error.message
    assert hint in error.hint


@pytest.mark.parametrize("line", ["raise ValueError('no such tile')", "assert tile, 'no such tile'"])
def test_exceptions_that_a_program_raises_stay(tmp_path: Path, line: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(HEAD + HOST.format(line))
    with pytest.raises((ValueError, AssertionError), match="no such tile"):
        runpy.run_path(str(file))


def test_what_a_benchmark_calls_raises_its_own(tmp_path: Path) -> None:
    def run() -> None:
        raise ValueError("of the program")

    from tilefold.cute.testing import benchmark

    with pytest.raises(ValueError, match="of the program"):
        benchmark(run)
