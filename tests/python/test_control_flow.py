# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow of kernels means what Python means: each function is called by Python on numbers, and by a kernel whose
threads have these numbers as values that are known at run time only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

THREADS = 32

# What the functions below compute is of no interest; they differ in their control flow.


def branches(t: Any, n: Any) -> Any:
    if t < 4:
        x = 1
    elif t < 8:
        x = t
    else:
        x = 3
    if x > n:
        x = x - n
    return x


def nested_branches(t: Any, n: Any) -> Any:
    x = 0
    if t > 5:
        if t > 10:
            x = n
            if t % 2 == 0:
                x = x + 1
        else:
            x = 2
    else:
        if n > 3:
            x = t
    return x


def returns_in_branches(t: Any, n: Any) -> Any:
    if t > 20:
        return 7
    if t > 10:
        if n > 3:
            return t
        n = n + 1
    return n


def returns_everywhere(t: Any, n: Any) -> Any:
    if t == 0:
        return 5
    elif t == 1:
        return n
    else:
        return t * n


def counted(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        total += i * t
    return total


def counted_with_bounds(t: Any, n: Any) -> Any:
    total = 0
    for i in range(t, n + 10, 3):
        total += i
    for i in range(n, 0, -2):
        total += i * 100
    return total


def counted_to_less(t: Any, n: Any) -> Any:
    total = t
    for i in range(n, n - 3):
        total += i
    return total


def nested_loops(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        row = 0
        for j in range(i):
            row += j
        total += row * t
    return total


def breaks(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        if i == t:
            break
        total += i
    return total


def breaks_with_else(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        if i * 3 == t:
            total = 50
            break
        total += 1
    else:
        total = total + 100
    return total


def continues(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        if (i + t) % 2 == 0:
            continue
        total += i
        if i > 4:
            continue
        total += 10
    return total


def break_and_continue(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n + 5):
        if i % 3 == 1:
            if t > 8:
                continue
            total += 2
        elif i > t:
            break
        total += i
    return total


def returns_from_loops(t: Any, n: Any) -> Any:
    for i in range(n):
        for j in range(i):
            if i * j > t:
                return i * 100 + j
        if i > t:
            break
    return -1


def breaks_of_both_loops(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        for j in range(n):
            if j > t:
                break
            if i + j > 6:
                continue
            total += j
        if total > 30:
            break
    return total


def whiles(t: Any, n: Any) -> Any:
    x = 0
    while x < t:
        x = x + n + 1
    return x


def while_true(t: Any, n: Any) -> Any:
    a, b = 0, 1
    while True:
        if b > t:
            break
        a, b = b, a + b
    return a * n


def while_with_flag(t: Any, n: Any) -> Any:
    done = False
    x = t
    while not done:
        x = x + n + 1
        done = x > 40
    return x


def while_that_returns(t: Any, n: Any) -> Any:
    x = t
    while x < 100:
        x = x * 2 + 1
        if x % (n + 2) == 0:
            return x
    return -x


def while_with_else(t: Any, n: Any) -> Any:
    x = 0
    while x < n:
        x += 1
        if x == t:
            break
    else:
        x = 99
    return x


def while_that_assigns(t: Any, n: Any) -> Any:
    x = 0
    rest = 0
    while (rest := t - x) > n:
        x += 2
    return x * 10 + rest


def conditional_values(t: Any, n: Any) -> Any:
    x = 5 if (t > 3 and t < 10) or t == 20 else t + 1
    y = 1 if 2 <= t < 30 != n else 0
    return x * y + (n if not t > 7 else 2)


def logic(t: Any, n: Any) -> Any:
    a = t > 3 or n > 2
    b = not a and t == 1
    c = a and (b or t % 2 == 0)
    return (1 if a else 0) + (2 if b else 0) + (4 if c else 0)


def short_circuit(t: Any, n: Any) -> Any:
    if t != 0 and n * 8 // t > 3:
        return 1
    return 1 if t == 0 or n % t == 0 else 2


def unrolled(t: Any, n: Any) -> Any:
    total = 0
    for i in cute.range_constexpr(4):
        if i == 2:
            continue
        if i * 7 > t:
            break
        total += i + n
    return total


def over_a_list(t: Any, n: Any) -> Any:
    total = 0
    for name, factor in (("a", 1), ("b", t), ("c", n)):
        if name != "b":
            total += factor
        if total > 9:
            return total * 2
    return total


def swaps(t: Any, n: Any) -> Any:
    a, b, c = t, n, 1
    for i in range(n):
        a, b, c = b, c, a + i
    return a * 100 + b * 10 + c


def lists(t: Any, n: Any) -> Any:
    sums = [0, 0, 0]
    for i in range(n):
        for j in cute.range_constexpr(3):
            sums[j] += i * j + t
        if i > 3:
            sums[0] = t
    return sums[0] + sums[1] * 10 + sums[2] * 100


def dictionaries(t: Any, n: Any) -> Any:
    state = {"sum": 0, "max": -1}
    for i in range(n):
        value = (i * t) % 7
        state["sum"] += value
        if value > state["max"]:
            state["max"] = value
    return state["sum"] * 10 + state["max"]


def new_lists(t: Any, n: Any) -> Any:
    row = [t, n]
    kept = row
    for i in range(n):
        row = [row[1], row[0] + i]
    return row[0] * 100 + row[1] * 10 + kept[0]


def tuples(t: Any, n: Any) -> Any:
    pair = (t, (0, 1))
    for _ in range(n):
        pair = (pair[0] + 1, (pair[1][1], pair[0]))
    return pair[0] + 10 * pair[1][0] + 100 * pair[1][1]


def calls_that_assign(t: Any, n: Any) -> Any:
    level = 3
    seen = [0, 0]

    def raised() -> Any:
        nonlocal level
        level = 10
        seen[0] = 5
        return True

    def plain(values: list[Any]) -> None:
        values[1] += 1

    if t > 3:
        raised()
    for _ in range(n):
        plain(seen)
    found = t > 9 and raised()
    return level + 100 * seen[0] + 1000 * seen[1] + (7 if found else 0)


def calls_that_assign_what_branches_assign(t: Any, n: Any) -> Any:
    if t > 3:  # noqa: SIM108 - the statement is what is tested
        scale = 1
    else:
        scale = n

    def raised() -> None:
        nonlocal scale
        if scale < 4:
            scale = scale + 10

    raised()
    return scale


def python_functions(t: Any, n: Any) -> Any:
    least = min(t, n, 9)
    most = max(t, n)
    every = all(x > 2 for x in (t, n)) or any([t == 1, n == 2])
    return least + 10 * most + (1000 if every else 0) + int(t > 3) + abs(n - t)


def inner_functions(t: Any, n: Any) -> Any:
    scale = 3

    def larger(a: Any, b: Any = 4) -> Any:
        if a > b:
            return a * scale
        return b

    def count() -> None:
        nonlocal scale
        scale = scale + n

    first = larger(t)
    count()
    return first + larger(n, b=t)


def rebinding_parameters(t: Any, n: Any) -> Any:
    while n > 0:
        t, n = t + n, n - 2
    return t


def reused_names(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        x = i * 2
        total += x
    for i in range(t):
        x = i > 2
        if x:
            total += 1
    return total


def counters_that_had_a_value(t: Any, n: Any) -> Any:
    x = n
    for x in range(t % 3):
        for n in range(t % 2):
            if n + x == t:
                break
    return x * 100 + n


def with_statement(t: Any, n: Any) -> Any:
    from contextlib import nullcontext

    with nullcontext(2) as two:
        if t > n:
            return t * two
        t = t + 1
    return t


def match_statement(t: Any, n: Any) -> Any:
    total = 0
    for mode in ("add", "double", "stop", "add"):
        match mode:
            case "add":
                total += t
            case "double":
                if total > n:
                    total *= 2
            case _:
                break
    return total


FUNCTIONS = [value for value in dict(globals()).values() if callable(value) and hasattr(value, "__code__")]


@cute.kernel
def call(function: cute.Constexpr, out: cute.Tensor, n: int):
    t, _, _ = cute.arch.thread_idx()
    out[t] = cute.Int32(cute.jit(function)(t, n))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_kernel_computes_what_python_does(function: Callable[[Any, Any], Any]) -> None:
    for n in (0, 1, 7):
        expected = [function(t, n) for t in range(THREADS)]
        for stage in ("cute", "instr"):
            out = np.full(THREADS, -7, np.int32)
            call(function, out, n).launch(grid=1, block=THREADS, device="sim", stage=stage)
            assert out.tolist() == expected, (n, stage)


@pytest.mark.gpu
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_gpu_computes_what_python_does(function: Callable[[Any, Any], Any]) -> None:
    for n in (0, 1, 7):
        out = np.full(THREADS, -7, np.int32)
        call(function, out, n).launch(grid=1, block=THREADS, device="cuda")
        assert out.tolist() == [function(t, n) for t in range(THREADS)], n


def test_a_static_range_is_a_loop_and_range_constexpr_is_unrolled() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        for i in range(2, 10, 2):
            out[i] = 1.0
        for i in cute.range(3, prefetch_stages=2):
            out[i] = 2.0
        for i in cute.range_constexpr(4):
            out[20 + i] = float([5, 6, 7, 8][i])
        for i in range(0):
            out[100] = out[100] / [][i]
        values = [cute.Float32(i) for i in range(3)]
        out[30] = values[0] + values[1] + values[2]

    out = np.zeros(32, np.float32)
    kernel(out).launch(grid=1, block=1, device="sim")
    assert out[:10].tolist() == [2, 2, 2, 0, 1, 0, 1, 0, 1, 0]
    assert [*out[20:24], out[30]] == [5, 6, 7, 8, 3]
    assert kernel.ir("cute").count("scf.for") == 2


def test_only_a_loop_that_asks_for_it_is_kept_from_being_unrolled() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Int32, unroll: cute.Constexpr[int | None]):
        for i in cute.range(n, unroll=unroll):
            out[i] = i

    for unroll, stores, pragmas in ((None, 1, 0), (0, 1, 1), (1, 1, 1), (4, 5, 2)):  # the rest of 4 is a loop, too
        out = np.zeros(8, np.int32)
        kernel(out, 7, unroll).launch(grid=1, block=1, device="sim")
        assert out.tolist() == [*range(7), 0]
        ptx = kernel.ptx("sm_80")
        assert (ptx.count("st.global"), ptx.count('.pragma "nounroll"')) == (stores, pragmas)


def test_range_constexpr_refuses_values() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Int32):
        for i in cute.range_constexpr(n):
            out[i] = 1.0

    with pytest.raises(TilefoldError, match="not through values of the kernel"):
        kernel(np.zeros(8, np.float32), 3).launch(grid=1, block=1, device="sim")
