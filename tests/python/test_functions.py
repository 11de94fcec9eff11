# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels are made of: closures, defaults, containers and dataclasses of arguments, helpers, methods, cells."""

import linecache
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

from tests.kernels.harness import TARGET, program_of
from tilefold import cute

N = 32


def ran(kernel: cute.Kernel, *arguments: Any, **named: Any) -> None:
    """Launches on one block of 32 threads, at the first and the last stage of IR."""
    arrays: list[NDArray[Any]] = [x for x in arguments if isinstance(x, np.ndarray)]
    kept = [x.copy() for x in arrays]
    kernel(*arguments, **named).launch(grid=1, block=N, device="sim", stage="cute")
    after = [x.copy() for x in arrays]
    for array, before in zip(arrays, kept, strict=True):
        array[:] = before
    kernel(*arguments, **named).launch(grid=1, block=N, device="sim")
    assert all(np.array_equal(x, y) for x, y in zip(arrays, after, strict=True))


def zeros() -> Any:
    return np.zeros(N, np.float32)


def made(factor: int) -> cute.Kernel:
    offset = 3

    @cute.kernel
    def kernel(out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t > 4:
            out[t] = cute.Float32(t * factor + offset)

    offset = 5  # a closure sees the variable, not the value it had
    return kernel


def test_closures() -> None:
    for factor in (2, 7):
        out = zeros()
        ran(made(factor), out)
        assert out.tolist() == [float(t * factor + 5) if t > 4 else 0.0 for t in range(N)]


@cute.kernel
def with_defaults(out: cute.Tensor, scale: float = 2.0, *, shift: cute.Constexpr[int] = 3, other: Any = None):
    t, _, _ = cute.arch.thread_idx()
    value = cute.Float32(t + shift) * scale
    if other is not None:
        value = value + other[t]
    out[t] = value


def test_default_arguments_and_optional_tensors() -> None:
    out, t = zeros(), np.arange(N, dtype=np.float32)
    ran(with_defaults, out)
    assert out.tolist() == ((t + 3) * 2).tolist()
    with_defaults(out, 0.5, shift=1, other=t).launch(grid=1, block=N, device="sim")
    assert out.tolist() == ((t + 1) * 0.5 + t).tolist()
    assert "other" in with_defaults.ir()


@dataclass
class Operands:
    """Arguments of a kernel, some of them known when it is built."""

    a: Any
    b: Any
    scale: float
    steps: cute.Constexpr[int] = 2
    names: tuple[str, ...] = ("a", "b")
    more: list[Any] = field(default_factory=lambda: [])


@cute.kernel
def of_dataclass(o: Operands, out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    total = o.a[t] * o.scale
    for _ in range(o.steps):
        total += o.b[t]
    for each in o.more:
        total += each[t]
    out[t] = total


def test_dataclasses_of_tensors_numbers_and_constants() -> None:
    t = np.arange(N, dtype=np.float32)
    out = zeros()
    of_dataclass(Operands(t, t * 2, 0.5, 3, more=[t, t]), out).launch(grid=1, block=N, device="sim")
    assert out.tolist() == (t * 0.5 + t * 6 + t * 2).tolist()
    names = ("o_a", "o_b", "o_scale", "o_more0", "o_more1", "out")
    assert all(f"%{name}:" in of_dataclass.ir() for name in names)


@cute.kernel
def over_tensors(inputs: Sequence[cute.Tensor], by_name: dict[str, cute.Tensor], out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    total = cute.Float32(0)
    for i, each in enumerate(inputs):
        if t > i:
            total += each[t]
    for name, each in by_name.items():
        if name != "left out":
            total += each[t] * 10
    out[t] = total


def test_lists_and_dictionaries_of_tensors() -> None:
    t = np.arange(N, dtype=np.float32)
    out = zeros()
    ones = np.ones_like(t)
    for kind in (list, tuple):
        call = over_tensors(kind([t, ones, ones]), {"x": ones, "left out": t}, out)
        call.launch(grid=1, block=N, device="sim")
        assert out.tolist() == [x * (x > 0) + (x > 1) + (x > 2) + 10.0 for x in range(N)]


def traced(function: Any) -> Any:
    """A decorator that is not ours."""

    @wraps(function)
    def wrapper(out: Any) -> None:
        t, _, _ = cute.arch.thread_idx()
        if t < 4:
            out[t] = 1.0
        function(out)

    return wrapper


@cute.kernel
@traced
def decorated(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    out[t] = out[t] + 1.0


def test_other_decorators() -> None:
    out = zeros()
    ran(decorated, out)
    assert out.tolist() == [2.0] * 4 + [1.0] * (N - 4)


@cute.kernel
def variadic(out: cute.Tensor, /, *inputs: cute.Tensor, **named: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    total = cute.Float32(0)
    for each in (*inputs, *named.values()):
        total += each[t]
    out[t] = total


def test_variable_numbers_of_arguments() -> None:
    t = np.arange(N, dtype=np.float32)
    out = zeros()
    ran(variadic, out, t, t, third=t)
    assert out.tolist() == (3 * t).tolist()


@cute.jit
def clamped(x: Any, low: Any = 0, high: Any = 9) -> Any:
    """A helper with control flow, which may be called by Python, too."""
    if x < low:
        return low
    return min(x, high)


def tile_of(tensor: Any, t: Any) -> Any:
    """A helper without control flow on values needs no decorator."""
    return cute.local_tile(tensor, (4,), (t // 4,))


@cute.kernel
def with_helpers(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    tile_of(out, t)[t % 4] = cute.Float32(clamped(t - 5, high=clamped(40, 0, 12)))


def test_helpers() -> None:
    out = zeros()
    ran(with_helpers, out)
    assert out.tolist() == [float(max(0, min(t - 5, 12))) for t in range(N)]
    assert clamped(-3) == 0


class Scaled:
    """A kernel that is a method: the object is known when it is built."""

    def __init__(self, factor: int) -> None:
        self.__factor = factor

    @cute.jit
    def scaled(self, x: Any) -> Any:
        return x * self.__factor if x > 3 else 0

    @cute.kernel
    def kernel(self, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        out[t] = cute.Float32(self.scaled(t))

    def __hash__(self) -> int:
        return hash(self.__factor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaled) and other.__factor == self.__factor


def test_methods() -> None:
    for factor in (2, 3):
        out = zeros()
        Scaled(factor).kernel(out).launch(grid=1, block=N, device="sim")
        assert out.tolist() == [float(t * factor if t > 3 else 0) for t in range(N)]


@cute.jit
def host(a: Any, b: Any) -> None:
    """Launches a kernel on as many blocks as the layout of an array says."""
    assert isinstance(a.layout, cute.Layout)
    assert a.element_type is cute.Float32
    added(a, b, cute.size(a.layout) // N).launch(grid=cute.size(a.layout) // N, block=N, device="sim")


@cute.kernel
def added(a: cute.Tensor, b: cute.Tensor, blocks: cute.Constexpr[int]):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    assert blocks == 3
    b[block * N + t] = a[block * N + t] + 1


def test_functions_of_the_host_see_layouts() -> None:
    a = np.arange(3 * N, dtype=np.float32)
    b = np.zeros_like(a)
    host(a, b)
    assert b.tolist() == (a + 1).tolist()


def test_one_kernel_for_each_combination_of_types_and_constants() -> None:
    out, wide = zeros(), np.zeros(2 * N, np.float32)
    first = with_defaults(out, shift=1).build(N)
    assert with_defaults(zeros(), 5.0, shift=1).build(N) is first  # a number is an argument of the launch
    for other in (with_defaults(out, shift=2), with_defaults(wide, shift=1), with_defaults(out, shift=1, other=out)):
        assert other.build(N) is not first
    assert with_defaults(out, shift=1).build((N, 2)) is not first


def test_what_became_of_a_kernel() -> None:
    kernel = made(3)
    with pytest.raises(TilefoldError, match="has not been built yet"):
        kernel.ir()
    kernel(zeros()).build(N)
    assert "scf.if" in kernel.ir()
    assert "ptx.st" in kernel.ir("instr")
    assert ".entry kernel" in kernel.ptx("sm_90")
    assert "registers per thread" in kernel.report()
    assert f"{__file__}:" in kernel.explain()
    assert program_of(kernel.to_cute()).ptx(TARGET, lines=False) == kernel.ptx("sm_80", lines=False)


def test_options_of_the_decorator() -> None:
    @cute.kernel(name="other", min_blocks=2, max_registers=64)
    def kernel(out: cute.Tensor):
        out[0] = 1.0

    kernel(zeros()).build(N)
    assert "@other(" in kernel.ir()
    assert "min_blocks(2) max_registers(64)" in kernel.ir()


@pytest.mark.parametrize("size", [0, (1, 2, 3, 4), (1, -1), "3"])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(TilefoldError, match="give one to three integers") as caught:
        made(1)(zeros()).launch(grid=size, block=N, device="sim")
    assert caught.value.code == "E3105"


WITHOUT_SOURCE = """
from tilefold import cute
import numpy as np

def body(out, n):
    t, _, _ = cute.arch.thread_idx()
    total = cute.for_(n, lambda i, total: total + i * t, cute.Int32(0))
    first, second = cute.for_(cute.range(1, 4), lambda i, a, b: (b, a + i), 0, 1)
    x = cute.while_(lambda x: x < t, lambda x: x + 5, 0)
    out[t] = cute.if_(t > 3, lambda: total + x + first * second, lambda: -1)

explicit = cute.kernel(preprocessor=False)(body)
rewritten = cute.kernel(body)
"""


def test_without_source_there_are_explicit_builders() -> None:
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec(WITHOUT_SOURCE, names)
    out = np.zeros(N, np.int32)
    ran(names["explicit"], out, 4)
    first, second = 0, 1
    for i in range(1, 4):
        first, second = second, first + i
    assert out.tolist() == [6 * t + -(-t // 5) * 5 + first * second if t > 3 else -1 for t in range(N)]
    with pytest.raises(TilefoldError, match="the source of 'body' is not available") as caught:
        names["rewritten"](out, 4).build(N)
    assert caught.value.code == "E5004"
    assert "cute.for_, cute.if_ and cute.while_" in str(caught.value)


def test_python_minus_c(tmp_path: Path) -> None:
    code = WITHOUT_SOURCE + "\nout = np.zeros(32, np.int32)\nrewritten(out, 4).build(32)\n"
    root = Path(__file__).resolve().parents[2]
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    keeps_source = sys.version_info >= (3, 13)
    assert "E5004" in result.stderr if not keeps_source else result.returncode == 0


def test_what_is_no_function_of_python_is_refused() -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(print)(zeros()).build(N)
    assert caught.value.code == "E5004"


CELL = """
@cute.kernel
def cell(out):
    t, _, _ = cute.arch.thread_idx()
    if t > 2:
        out[t] = unknown_to_us
"""


def test_cells_of_a_notebook() -> None:
    """IPython compiles a cell under a name of its own, and keeps its lines in linecache."""
    file = "<ipython-input-1-0123456789ab>"
    linecache.cache[file] = (len(CELL), None, [f"{line}\n" for line in CELL.splitlines()], file)
    names: dict[str, Any] = {"__name__": "__main__", "cute": cute, "unknown_to_us": 4.0}
    exec(compile(CELL, file, "exec"), names)
    out = zeros()
    ran(names["cell"], out)
    assert out.tolist() == [4.0 if t > 2 else 0.0 for t in range(N)]
    names["unknown_to_us"] = np.zeros  # globals are looked up when the kernel is built
    with pytest.raises(TilefoldError) as caught:
        names["cell"](np.zeros(N, np.float64)).build(N)
    assert f"{file}:6:" in str(caught.value)
    assert "out[t] = unknown_to_us" in str(caught.value)


@cute.kernel
def with_names(out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    tile = cute.local_tile(out, (4,), (0,))
    größe = thread + 1  # which the IR cannot have as a name
    total = cute.Float32(0)
    for step in cute.range(thread):
        factor = step * größe
        total += cute.Float32(factor)
    if thread < 4:
        tile[thread] = total


def test_values_have_the_names_of_variables() -> None:
    with_names(zeros()).build(N)
    text = with_names.ir()
    for line in (
        "%thread = gpu.thread_id x",
        '%tile = tile.local_tile %out, "(4)", (0)',
        "%total = scf.for %step =",
        "%factor = arith.muli %step,",
        "tile.store %total, %tile(%thread)",
    ):
        assert line in text, text


def test_names_that_the_ir_cannot_have() -> None:
    @cute.kernel
    def größer(größe: Any, größte: Any) -> None:
        thread, _, _ = cute.arch.thread_idx()
        größe[thread] = größte + thread

    out = zeros()
    größer(out, 2.0).launch(grid=1, block=N, device="sim")
    assert out.tolist() == [2.0 + t for t in range(N)]
    assert "@gr__er(%gr__e: " in größer.ir()
    assert program_of(größer.to_cute()).ptx(TARGET, lines=False) == größer.ptx("sm_80", lines=False)
