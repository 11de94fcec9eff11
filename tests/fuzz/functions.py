# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of random functions of Python, whose results NumPy knows: the builder, and the text that it gives."""

import linecache
import warnings
from itertools import count
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.compiler.frontend.source import plain_source

from tests.fuzz.function_text import EIGHT_BITS, Function, random_function
from tests.fuzz.numpy_meaning import DTYPES, NAMES, STEPS, is_float, to
from tests.fuzz.problem import Generator, Problem, Tensor
from tilefold import cute
from tilefold.driver.lowering import load

BLOCKS, THREADS = 2, 32
_NUMBERS = count()


def _to(x: Any, dtype: Any) -> Any:
    return x.to(dtype) if hasattr(x, "to") else dtype(x)


def _reduce(x: Any, *args: Any) -> Any:
    return x.reduce(*args)


def _show(x: Any) -> None:
    cute.printf("{}", x)


_OTHERWISE = {"to", "reduce", "show", "range", "maximum", "minimum", *STEPS}
"""Names of a text that `cute` has otherwise."""
_IN_KERNELS: dict[str, Any] = {
    "to": _to, "reduce": _reduce, "show": _show,
    "maximum": cute.math.max, "minimum": cute.math.min,
    **{name: getattr(cute.ReductionOp, name) for name in STEPS},
    **{name: getattr(cute, name) for name in NAMES if name not in _OTHERWISE},
}  # fmt: skip
"""The globals of a random function that becomes a kernel."""


def defined(text: str, names: dict[str, Any]) -> Any:
    """The function of a text, whose source Python can find."""
    file = f"<generated {next(_NUMBERS)}>"
    linecache.cache[file] = (len(text), None, [f"{line}\n" for line in text.splitlines()], file)
    space = {"__name__": "generated", **names}
    exec(compile(text, file, "exec"), space)
    return space["generated"]


@cute.kernel(name="k")
def call(
    function: cute.Constexpr,
    outs: list[cute.Tensor],
    wholes: list[cute.Tensor],
    ins: list[cute.Tensor],
    fragments: list[cute.Tensor],
    n: cute.Int32,
):
    lane, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    t = cute.Int32(block * THREADS + lane)
    rest = (None,) * (len(cute.shape(fragments[0])) - 1) if fragments else ()
    xs = [x[t] for x in ins]
    fs = [x[(t, *rest)].load() for x in fragments]
    results = cute.jit(function)(t, n, xs, fs)
    scalars = [x for x in results if not hasattr(x, "load") and not hasattr(x, "reduce")]
    for out, x in zip(outs, scalars, strict=True):
        out[t] = x
    for out, x in zip(wholes, [x for x in results if hasattr(x, "reduce")], strict=True):
        out[(t, *rest)].store(x)


def inputs(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Numbers of a type, edges among them."""
    dtype = DTYPES[name]
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if not is_float(dtype):
        limits = np.iinfo(dtype)
        small = rng.integers(max(limits.min, -20), 20, shape).astype(dtype)
        wide = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        edges = rng.choice(np.array([limits.min, limits.max, 0, 1], dtype), shape)
        return np.where(rng.random(shape) < 0.6, small, np.where(rng.random(shape) < 0.7, wide, edges))
    numbers = rng.standard_normal(shape) * 4
    edges = rng.choice(np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1e-6, 3e4, 448.0, np.inf, np.nan]), shape)
    return np.asarray(to(np.where(rng.random(shape) < 0.85, numbers, edges), name))


def expected(function: Function, n: int, xs: list[NDArray[Any]], fs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """What each variable that is returned holds, thread by thread."""
    python = defined(function.text, NAMES)
    rows: list[Any] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for t in range(BLOCKS * THREADS):
            rows.append(python(np.int32(t), np.int32(n), [x[t] for x in xs], [np.array(f[t]) for f in fs]))
    found: list[NDArray[Any]] = []
    for index, variable in enumerate(function.returned):
        whole = [np.broadcast_to(np.asarray(row[index]), function.shape if variable.whole else ()) for row in rows]
        column = np.stack(whole)
        assert column.dtype == DTYPES[variable.type], f"{variable} became {column.dtype}"
        found.append(np.ascontiguousarray(column))
    return found


def generate(seed: int) -> Problem:
    """The kernel of a seed. AssertionError where its text is not what it was made of."""
    rng = Random(seed)
    function = random_function(rng)
    try:
        return _problem(rng, function)
    except Exception as error:
        error.add_note(function.text)
        raise


def _problem(rng: Random, function: Function) -> Problem:
    numbers, threads, n = np.random.default_rng(rng.randrange(2**32)), BLOCKS * THREADS, rng.randrange(4)
    xs = [inputs(numbers, name, (threads,)) for name in function.scalars]
    fs = [inputs(numbers, name, (threads, *function.shape)) for name in function.fragments]
    wanted = expected(function, n, xs, fs)
    scalars = [x for x, each in zip(wanted, function.returned, strict=True) if not each.whole]
    wholes = [x for x, each in zip(wanted, function.returned, strict=True) if each.whole]
    empty = [[np.zeros_like(x) for x in group] for group in (scalars, wholes)]
    built = call(defined(function.text, _IN_KERNELS), *empty, xs, fs, n).build((THREADS, 1, 1))
    text = built.to_cute()
    again = load(plain_source(text, "again.cute"))
    assert again.module.is_structurally_equivalent(built.program.module), "the text is another program"
    storage = [Tensor(np.zeros_like(x), x, fresh=True) for x in map(_storage, (*scalars, *wholes))]
    storage += [Tensor(x) for x in map(_storage, (*xs, *fs))]
    names = built.program.tensors("k")
    arguments: dict[str, Any] = {**dict(zip(names, storage, strict=True)), "n": np.int32(n)}
    eight = any(name in (*function.scalars, *function.fragments) or name in function.text for name in EIGHT_BITS)
    target = "sm_90" if eight else rng.choice(("sm_80", "sm_80", "sm_90", "sm_100"))
    return Problem(text, (BLOCKS, 1, 1), (THREADS, 1, 1), arguments, target=target, source=function.text)


def _storage(array: NDArray[Any]) -> NDArray[Any]:
    """The elements as they lie in memory, where a predicate is a byte."""
    flat = array.reshape(-1)
    return flat.view(np.int8) if flat.dtype == np.bool_ else flat


FUNCTIONS = Generator(generate)
