# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments stay in registers, whatever control flow assigns them, of every element type and from 1 to 64 bytes."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble

from tilefold import cute

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
TYPES = (
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    *(np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64),
)
ROWS = 40


def changed(v: Any, by: int) -> Any:
    """A fragment of the same type with other elements."""
    if v.dtype == cute.Boolean:
        return ~v if by == 2 else v | (v ^ True)
    if v.dtype.kind == "float" and v.dtype.bits == 8:
        return (v.to(cute.Float32) * float(by)).to(v.dtype)
    return (v * by).to(v.dtype)


@cute.jit
def assigned_in_an_if(a: Any, b: Any, t: Any, n: Any) -> Any:
    v = changed(a.load(), 2)
    if n > 3:
        v = changed(a.load(), 3)
    return v


@cute.jit
def assigned_on_both_paths(a: Any, b: Any, t: Any, n: Any) -> Any:
    if n > 3:  # noqa: SIM108
        v = changed(a.load(), 2)
    else:
        v = changed(b.load(), 3)
    return v


@cute.jit
def chosen(a: Any, b: Any, t: Any, n: Any) -> Any:
    v, w = a.load(), b.load()
    if n > 3:
        v = w
    return changed(v, 2)


@cute.jit
def nested(a: Any, b: Any, t: Any, n: Any) -> Any:
    v = changed(a.load(), 2)
    if n > 3:
        if n > 5:  # noqa: SIM108
            v = changed(a.load(), 3)
        else:
            v = changed(v, 2)
        if t > 3:
            v = changed(b.load(), 2)
    elif n > 2:
        v = changed(v, 3)
    return v


@cute.jit
def carried_by_a_loop(a: Any, b: Any, t: Any, n: Any) -> Any:
    v = a.load()
    for _ in range(n):
        v = changed(v, 3)
    return v


@cute.jit
def loaded_in_a_loop(a: Any, b: Any, t: Any, n: Any) -> Any:
    v = changed(a.load(), 2)
    for _ in range(n):
        v = changed(b.load(), 3)
    return v


@cute.jit
def exchanged_in_a_loop(a: Any, b: Any, t: Any, n: Any) -> Any:
    v, w = changed(a.load(), 2), changed(b.load(), 3)
    for _ in range(n):
        v, w = w, v
    return v


@cute.jit
def loaded_ahead(a: Any, b: Any, t: Any, n: Any) -> Any:
    v = a.load()
    for _ in range(n):
        following = b.load()
        b.store(changed(v, 2))
        v = following
    return v


@cute.jit
def carried_by_a_while(a: Any, b: Any, t: Any, n: Any) -> Any:
    v, left = changed(a.load(), 2), n
    while left > 0:
        v = changed(v, 3)
        left -= 1
    return v


@cute.jit
def assigned_in_an_if_in_a_loop(a: Any, b: Any, t: Any, n: Any) -> Any:
    v = changed(a.load(), 2)
    for i in range(4):
        if n > i:
            v = changed(v, 3)
            if t > 3:
                continue
        v = changed(v, 2)
    return v


@cute.jit
def carried_by_a_loop_in_an_if(a: Any, b: Any, t: Any, n: Any) -> Any:
    v = changed(a.load(), 2)
    if t < 5:
        for _ in range(n):
            v = changed(v, 3)
    else:
        while n > t:
            v = changed(v, 2)
            n -= 1
    return v


@cute.jit
def elements_by_a_condition(a: Any, b: Any, t: Any, n: Any) -> Any:
    v, w = a.load(), b.load()
    count = cute.size(v)
    for i in cute.range(count, unroll_full=True):
        x = v[i]
        if n > i:
            x = w[i]
        b[i] = x
    last = v[0]
    if n > 3:
        last = w[count - 1]
    a[0] = last
    return changed(v, 2)


@cute.jit
def registers_written_on_both_paths(a: Any, b: Any, t: Any, n: Any) -> Any:
    r = cute.make_fragment_like(a)
    cute.autovec_copy(a, r)
    if n > 3:
        r.store(changed(r.load(), 2))
        r[0] = r[cute.size(r) - 1]
    else:
        cute.autovec_copy(b, r)
    for _ in range(n):
        r.store(changed(r.load(), 3))
    return r.load()


FORMS: tuple[Callable[[Any, Any, Any, Any], Any], ...] = (
    assigned_in_an_if, assigned_on_both_paths, chosen, nested, carried_by_a_loop, loaded_in_a_loop,
    exchanged_in_a_loop, loaded_ahead, carried_by_a_while, assigned_in_an_if_in_a_loop, carried_by_a_loop_in_an_if,
    elements_by_a_condition, registers_written_on_both_paths,
)  # fmt: skip


@cute.kernel
def each_size(
    inputs: list[cute.Tensor], outputs: list[cute.Tensor], n: cute.Int32, form: cute.Constexpr[Callable[..., Any]]
):
    t = cute.arch.thread_idx()[0]
    for whole, results in zip(inputs, outputs, strict=True):
        row = results[t, None]
        row.store(form(whole[t, None], row, t, n))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.sampled(2)
def test_no_fragment_is_in_local_memory(form: Callable[..., Any], dtype: Any) -> None:
    _check(form, dtype)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.sampled(3)
def test_no_fragment_of_halves_is_in_local_memory(form: Callable[..., Any]) -> None:
    _check(form, np.float16)


def _check(form: Callable[..., Any], dtype: Any) -> None:
    """In the PTX, and in machine code."""
    width = np.dtype(dtype).itemsize
    rows = [np.ones((ROWS, size // width), dtype) for size in SIZES if size % width == 0]
    built = each_size(rows, [row.copy() for row in rows], 5, form).build(32)
    target = Target("sm_90a")
    ptx = built.ptx(target.arch)
    assert ".local" not in ptx
    (resources,) = assemble(ptx, target).kernels.values()
    assert resources.stack == 0
    assert not [remark for remark in built.program.remarks(target, compiled=True) if remark.op == "fragment"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.sampled(3)
def test_what_the_fragments_hold_is_the_same_at_each_stage(form: Callable[..., Any]) -> None:
    results: list[Any] = []
    for stage in ("cute", "instr"):
        shapes = [(ROWS, size // 4) for size in SIZES if size % 4 == 0]
        rows = [np.arange(rows * columns, dtype=np.int32).reshape(rows, columns) for rows, columns in shapes]
        outputs = [row + 7 for row in rows]
        each_size(rows, outputs, 5, form).launch(grid=1, block=32, device="sim", stage=stage)
        results.append(outputs)
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)
