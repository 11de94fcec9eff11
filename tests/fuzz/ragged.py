# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels for matrices whose extents and strides are known at run time: ragged tiles under predicates, and
elements seen as wider or narrower ones.
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from tilefold.layout.algebra.core import Layout
from tilefold.layout.text.layouts import to_text
from tilefold.runtime.arrays.storage import scatter, storage_size

from tests.fuzz.problem import Generator, Problem, Tensor

_TYPES = {"i8": np.int8, "f16": np.float16, "i16": np.int16, "f32": np.float32, "i32": np.int32, "f64": np.float64}


def _problem(
    rng: Random,
    text: str,
    element: str,
    shape: tuple[int, int],
    layouts: Sequence[Layout],
    **launch: tuple[int, int, int],
) -> Problem:
    """B becomes A; what lies between their rows stays."""
    values = np.random.default_rng(rng.randrange(2**32)).integers(-99, 99, shape).astype(_TYPES[element])
    source = np.zeros(storage_size(layouts[0]), values.dtype)
    unwritten = np.full(storage_size(layouts[1]), 77, values.dtype)
    expected = unwritten.copy()
    scatter(values, source, layouts[0])
    scatter(values, expected, layouts[1])
    arguments = {
        "A": Tensor(source, layout=layouts[0]),
        "B": Tensor(unwritten, expected, layout=layouts[1], fresh=True),
    }
    return Problem(text, launch["grid"], launch["block"], arguments)


def generate(seed: int) -> Problem:
    """A copy of tiles of any matrix, by a tiled copy or by elements, straight or through a fragment."""
    rng = Random(seed)
    element = rng.choice(list(_TYPES))
    size = np.dtype(_TYPES[element]).itemsize
    value = rng.choice([each for each in (1, 2, 4, 8, 16) if each * size <= 16])
    threads = rng.choice([(4, 8), (8, 4), (16, 4), (2, 16), (3, 5)])
    repeats = rng.choice([1, 2, 3]), rng.choice([1, 2])
    tile = threads[0] * repeats[0], threads[1] * value * repeats[1]
    rows, columns = rng.randint(1, 3 * tile[0]), value * rng.randint(1, 3 * tile[1] // value)
    by_rows = rng.random() < 0.7
    strides = [value * rng.randint(columns // value, columns // value + 3) for _ in range(2)]
    modes = f"(?,?{{div={value}}})", f"(?{{i64 div={value}}},1)"
    given = [Layout((rows, columns), (stride, 1)) for stride in strides]
    if not by_rows:
        modes = f"(?{{div={value}}},?)", f"(1,?{{i64 div={value}}})"
        given = [Layout((columns, rows), (1, stride)) for stride in strides]
        tile, threads = (tile[1], tile[0]), (threads[1], threads[0])
    shape = f"({tile[0]},{tile[1]})"
    align = min(value * size, 16)
    matrix = f'!tile.tensor<{element}, gmem, align<{max(align, size)}>, "{modes[0]}:{modes[1]}">'
    values = (1, value) if by_rows else (value, 1)
    thread_strides = rng.choice([(1, threads[0]), (threads[1], 1)])
    width = 8 * size * value
    atom = rng.choice([f"UniversalCopy<uint{width}_t>", "AutoVectorizingCopy"])
    copy = (
        f'#tile.copy_atom<"{atom}", {element}>'
        f' thr "{to_text(Layout(threads, thread_strides))}" val "{to_text(Layout(values, values[::-1]))}"'
    )
    body = rng.choice([
        "%fragment = tile.make_fragment_like %a\ntile.copy %copy, %a, %fragment if %inside\n"
        "tile.copy %copy, %fragment, %b if %inside",
        "tile.copy %copy, %a, %b if %inside",
        "tile.copy %a, %b if %inside",
    ])  # fmt: skip
    count = threads[0] * threads[1]
    text = f"""gpu.module @m {{
tile.kernel @k(%A: {matrix}, %B: {matrix}) threads({count}) {{
%t = gpu.thread_id x
%m = gpu.block_id x
%n = gpu.block_id y
%rows = tile.dim %A, 0
%columns = tile.dim %A, 1
%I = tile.identity like %A
%gA = tile.local_tile %A, "{shape}", (%m, %n) ragged
%gB = tile.local_tile %B, "{shape}", (%m, %n) ragged
%gI = tile.local_tile %I, "{shape}", (%m, %n) ragged
%copy = tile.tiled_copy {copy}
%a = tile.partition_S %copy, %gA, %t
%b = tile.partition_D %copy, %gB, %t
%i = tile.partition_S %copy, %gI, %t
%inside = tile.bounds %i, (%rows, %columns)
{body}
return
}}
}}
"""
    extents = (rows, columns) if by_rows else (columns, rows)
    grid = -(-extents[0] // tile[0]), -(-extents[1] // tile[1]), 1
    return _problem(rng, text, element, extents, given, grid=grid, block=(count, 1, 1))


RAGGED = Generator(generate)


def recast(seed: int) -> Problem:
    """A copy of the elements of a matrix seen as elements of another width."""
    rng = Random(seed)
    element = rng.choice(list(_TYPES))
    size = np.dtype(_TYPES[element]).itemsize
    other = rng.choice(["i8", "i16", "i32", "i64"])
    ratio = max(1, int(other[1:]) // 8 // size)
    inner, outer = 4 * ratio * rng.randint(1, 6), rng.choice([1, 2, 3, 5])
    run_time = rng.random() < 0.5
    step = 4 * ratio
    layouts = [Layout((inner, outer), (1, inner + step * rng.choice([0, 1, 3]))) for _ in range(2)]
    texts = [f"({inner},?):(1,?{{div={step}}})" if run_time else to_text(each) for each in layouts]
    kinds = [f'!tile.tensor<{element}, gmem, align<16>, "{text}">' for text in texts]
    threads = rng.choice([1, 7, 32])
    text = f"""gpu.module @m {{
tile.kernel @k(%A: {kinds[0]}, %B: {kinds[1]}) threads({threads}) {{
%t = gpu.thread_id x
%threads = gpu.block_dim x
%a = tile.recast %A, {other}
%b = tile.recast %B, {other}
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%outer = arith.constant {outer} : index
%inner = arith.constant {inner * size * 8 // int(other[1:])} : index
scf.for %j = %zero to %outer step %one {{
scf.for %i = %t to %inner step %threads {{
%x = tile.load %a(%i, %j)
tile.store %x, %b(%i, %j)
}}
}}
return
}}
}}
"""
    return _problem(rng, text, element, (inner, outer), layouts, grid=(1, 1, 1), block=(threads, 1, 1))


RECASTS = Generator(recast)
