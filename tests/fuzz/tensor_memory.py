# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels that use tensor memory (sm_100a): multiplications of each kind by a block or a pair, with scales too,
and copies in and out by all shapes. Numbers are small integers and powers of two, so that every sum is exact.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.fuzz.problem import Generator, Problem, Tensor
from tests.tcgen05.scaled_kernel import Scaled
from tests.tcgen05.tile_kernels import Tile

TARGET = "sm_100a"
_F8 = {"f8E4M3FN": ("float_e4m3_t", ml_dtypes.float8_e4m3fn), "f8E5M2": ("float_e5m2_t", ml_dtypes.float8_e5m2)}
_INPUTS: dict[str, tuple[tuple[str, str, int, Any], ...]] = {
    "F16BF16": (("half_t", "f16", 16, np.float16), ("bfloat16_t", "bf16", 16, ml_dtypes.bfloat16)),
    "TF32": (("tfloat32_t", "f32", 32, np.float32),),
    "F8F6F4": tuple((cxx, name, 8, dtype) for name, (cxx, dtype) in _F8.items()),
    "S8": (("int8_t", "i8", 8, np.int8),),
}
_SHAPES = {"32dp32b": (32, 1, 128), "16dp64b": (16, 2, 128), "16dp128b": (16, 4, 64), "16dp256b": (16, 8, 32)}
"""By CuTe's words of loads and stores: the lanes, the columns of one, and how many there can be."""
_MOST_COLUMNS = 128


def _access(rng: Random, columns: int, lanes: int = 32) -> str:
    """A shape that moves some of so many columns, and how often."""
    shape = rng.choice([name for name, (of, _, _) in _SHAPES.items() if of <= lanes])
    _, width, most = _SHAPES[shape]
    reached = min(columns, _MOST_COLUMNS)
    fitting = [1 << n for n in range(8) if (width << n) <= reached and columns % (width << n) == 0 and 1 << n <= most]
    return f"{shape}{rng.choice(fitting)}x"


def _argument(values: NDArray[Any], dtype: Any) -> Tensor:
    return Tensor(np.ascontiguousarray(values.astype(dtype)).reshape(-1))


def _result(values: NDArray[Any], dtype: Any) -> Tensor:
    expected = np.ascontiguousarray(values.astype(dtype)).reshape(-1)
    return Tensor(np.full_like(expected, 77), expected, fresh=True)


def _of_launch(text: str) -> str:
    """A program without its launch."""
    return text[: text.index("run.launch")]


def multiply(seed: int) -> Problem:
    """D = A B^T of one tile whose rows along K have 128 bytes."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    family = rng.choice(tuple(_INPUTS))
    cxx, element, bits, dtype = rng.choice(_INPUTS[family])
    blocks = rng.choice((1, 1, 2))
    m = rng.choice((64, 128)) * blocks
    step = {("S8", 1): 16, ("S8", 2): 32}.get((family, blocks), 8 * blocks)
    n = rng.choice([x for x in range(step, 257, step) if x % 32 == 0 or x <= 64])
    source = rng.choice(("SS", "SS", "TS")) if m == 128 and blocks == 1 and family != "TF32" and n <= 128 else "SS"
    if blocks * 128 // (1024 // bits) > n or n // blocks % 16:
        n = 64 * blocks  # the threads load whole rows
    narrow = family == "F16BF16" and element == "f16" and rng.random() < 0.3
    d_cxx, d, of_d = ("half_t", "f16", np.float16) if narrow else ("float", "f32", np.float32)
    if family == "S8":
        d_cxx, d, of_d = "int32_t", "i32", np.int32
    lanes = 16 if m == 64 and blocks == 1 else 32
    columns = n // 2 if m == 128 and blocks == 2 else n
    load = _access(rng, columns, lanes) + ("_16b" if narrow else "")
    if narrow:
        load = "32dp32b8x_16b" if lanes == 32 else "16dp256b1x_16b"
    tile = Tile(family, cxx, element, bits, m, n, d_cxx, d, blocks, source, load)
    k = 1024 // bits
    a, b = (numbers.integers(-2, 3, (rows, k)) for rows in (m, n))
    arguments = {"A": _argument(a, dtype), "B": _argument(b, dtype), "D": _result(a @ b.T, of_d)}
    text = _of_launch(tile.text).replace("@multiply", "@k")
    size = (blocks, 1, 1)
    return Problem(text, size, (128, 1, 1), arguments, target=TARGET, names=frozenset({"D"}), cluster=size)


_FP4 = ("float_e2m1_t", "f4E2M1FN", 4)
_SCALED = (
    Scaled("MXF8F6F4", "float_e4m3_t", "f8E4M3FN", 8, "float_ue8m0_t", 32, 32),
    Scaled("MXF8F6F4", "float_e5m2_t", "f8E5M2", 8, "float_ue8m0_t", 32, 32),
    Scaled("MXF4", *_FP4, "float_ue8m0_t", 32, 64, "32,"),
    Scaled("MXF4", *_FP4, "float_ue4m3_t", 16, 64, "16,"),
)


def multiply_scaled(seed: int) -> Problem:
    """D = (A SFA) (B SFB)^T of a tile in which a row has four scales: powers of two near 1."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    given = rng.choice(_SCALED)
    k = 4 * given.vector
    a, b = (numbers.integers(-2, 3, (128, k)) for _ in "AB")
    exponents = [numbers.integers(-1, 2, (128, 4)) for _ in "AB"]
    row, factor = np.ogrid[:128, :4]
    codes: list[NDArray[Any]] = []
    for own in exponents:
        block = np.zeros(512, np.uint8)
        block[16 * (row % 32) + 4 * (row // 32) + factor] = own + 127 if "ue8m0" in given.scale else own + 7 << 3
        codes.append(block.view(np.int8))
    scaled = [
        x * np.exp2(own.astype(np.float64)).repeat(given.vector, axis=1)
        for x, own in zip((a, b), exponents, strict=True)
    ]
    dtype = None if given.bits == 4 else _F8[given.element][1]
    arguments = {
        **{name: _packed(x) if given.bits == 4 else _argument(x, dtype) for name, x in (("A", a), ("B", b))},
        "SFA": Tensor(codes[0]), "SFB": Tensor(codes[1]), "D": _result(scaled[0] @ scaled[1].T, np.float32),
    }  # fmt: skip
    text = _of_launch(given.text).replace("@multiply", "@k")
    return Problem(text, (1, 1, 1), (128, 1, 1), arguments, target=TARGET, names=frozenset({"D"}))


def _packed(values: NDArray[Any]) -> Tensor:
    """Numbers of 4 bits, two in a byte."""
    codes = np.ascontiguousarray(values.astype(ml_dtypes.float4_e2m1fn)).view(np.uint8).reshape(-1, 2)
    return Tensor(codes[:, 0] | codes[:, 1] << 4)


def move(seed: int) -> Problem:
    """D = A through tensor memory: stored by one shape and loaded by another."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    columns = rng.choice((8, 16, 32, 64, 128))
    rows = rng.choice((64, 128, 128))
    lanes = 16 if rows == 64 else 32
    element, dtype = rng.choice((("f32", np.float32), ("i32", np.int32)))
    store, load = _access(rng, columns, lanes), _access(rng, columns, lanes)
    whole = f"(({rows},{columns}),1,1):(({columns},1),0,0)"
    cells = f"((({16},4),{columns}),1,1):(((65536,2097152),1),0,0)"
    cells = cells if rows == 64 else f"((128,{columns}),1,1):((65536,1),0,0)"
    first = rng.choice((0, 16, 64))
    text = f"""!X = !tile.tensor<{element}, gmem, align<16>, "{whole}">
gpu.module @kernels {{
  tile.kernel @k(%A: !X, %D: !X) threads(128) {{
    %t = gpu.thread_id x
    %x = tile.tmem_alloc 256 cta_group 1
    %first = arith.constant {first} : i32
    %y = ptx.ptr_add %x, %first : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %c = tile.tensor_at %y : !tile.tensor<{element}, tmem, align<4>, "{cells}">
    %in = tile.tiled_copy #tile.copy_atom<"SM100_TMEM_STORE_{store}", {element}> tmem %c
    %tA = tile.partition_S %in, %A, %t
    %tC = tile.partition_D %in, %c, %t
    %r = tile.make_fragment_like %tA
    tile.copy %tA, %r
    tile.copy %in, %r, %tC
    ptx.tcgen05.wait "st"
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    ptx.tcgen05.fence "after_thread_sync"
    %out = tile.tiled_copy #tile.copy_atom<"SM100_TMEM_LOAD_{load}", {element}> tmem %c
    %uC = tile.partition_S %out, %c, %t
    %uD = tile.partition_D %out, %D, %t
    %s = tile.make_fragment_like %uD
    tile.copy %out, %uC, %s
    ptx.tcgen05.wait "ld"
    tile.copy %s, %uD
    tile.tmem_dealloc %x
    tile.return
  }}
}}
"""
    a = numbers.integers(-1000, 1000, (rows, columns))
    arguments = {"A": _argument(a, dtype), "D": _result(a, dtype)}
    return Problem(text, (1, 1, 1), (128, 1, 1), arguments, target=TARGET, names=frozenset({"D"}))


_COPIES: Mapping[str, tuple[int, int, Callable[[int], tuple[int, ...]]]] = {
    "128x256b": (128, 8, lambda row: (row,)),
    "128x128b": (128, 4, lambda row: (row,)),
    "4x256b": (4, 8, lambda row: (32 * row,)),
    "32x128b.warpx4": (32, 4, lambda row: (row, row + 32, row + 64, row + 96)),
    "64x128b.warpx2::02_13": (64, 4, lambda row: (row, row + 64)),
    "64x128b.warpx2::01_23": (64, 4, lambda row: (row, row + 32) if row < 32 else (row + 32, row + 64)),
}
"""The copies from shared memory: rows of the matrix, columns, and the lanes of a row (PTX ISA, tcgen05.cp)."""


def copy(seed: int) -> Problem:
    """D = the lanes that a copy of a matrix A from shared memory fills; the others of -1, which stay."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    shape = rng.choice(tuple(_COPIES))
    rows, columns, lanes_of = _COPIES[shape]
    rows_in_smem = max(rows, 8)
    parts = columns // 4  # 16 bytes each
    # the distance of the next 16 bytes of a row, and that of the next 8 rows, in units of 16 bytes
    leading, stride = (8, 8 * parts) if rng.random() < 0.5 else (rows_in_smem, 8)
    first, size = rng.choice((0, 4, 24)), rows_in_smem * columns * 4
    text = f"""gpu.module @kernels {{
  ptx.entry @k(%A: !ptx.ptr<global> align 16, %D: !ptx.ptr<global> align 32) threads(128) shared({size + 16}) {{
    %t = ptx.sreg "tid.x"
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sixteen = arith.constant 16 : i32
    %columns = arith.constant 32 : i32
    %s = ptx.smem.addr 0
    %bar = ptx.smem.addr {size}
    %slot = ptx.smem.addr {size + 8}
    %leads = arith.cmpi eq, %t, %zero : i32
    %five = arith.constant 5 : i32
    %warp = arith.shrui %t, %five : i32
    %low = arith.cmpi eq, %warp, %zero : i32
    scf.if %low {{
      ptx.tcgen05.alloc cta_group 1 %slot, %columns
      ptx.tcgen05.relinquish_alloc_permit cta_group 1
    }}
    scf.if %leads {{
      ptx.mbarrier.init %bar, %one
      ptx.fence.mbarrier_init
    }}
    %end = arith.constant {rows_in_smem * parts} : i32
    %threads = arith.constant 128 : i32
    scf.for %unit = %t to %end step %threads : i32 {{
      %o = arith.muli %unit, %sixteen : i32
      %from = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
      %to = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
      %v = ptx.ld %from align 16 : !ptx.ptr<global> -> vector<4xi32>
      ptx.st %v, %to align 16 : vector<4xi32>, !ptx.ptr<shared>
    }}
    ptx.fence.proxy.async
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    ptx.tcgen05.fence "after_thread_sync"
    %number = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32
    %x = ptx.inttoptr %number align 4 : i32 -> !ptx.ptr<tmem>
    %first = arith.constant {first} : i32
    %d = ptx.ptr_add %x, %first : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %c21 = arith.constant 21 : i32
    %lanes = arith.shli %warp, %c21 : i32
    %own = ptx.ptr_add %d, %lanes : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %old = arith.constant dense<-1> : vector<{columns}xi32>
    ptx.tcgen05.st "32x32b" x {columns} %old, %own : vector<{columns}xi32>
    ptx.tcgen05.wait "st"
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    ptx.tcgen05.fence "after_thread_sync"
    %m = ptx.tcgen05.descriptor %s leading {leading} stride {stride} swizzling 0
    scf.if %leads {{
      ptx.tcgen05.cp "{shape}" cta_group 1 %d, %m
      ptx.tcgen05.commit cta_group 1 %bar
    }}
    ptx.mbarrier.wait %bar, %zero
    ptx.tcgen05.fence "after_thread_sync"
    %r = ptx.tcgen05.ld "32x32b" x {columns} %own : vector<{columns}xi32>
    ptx.tcgen05.wait "ld"
    %bytes = arith.constant {4 * columns} : i32
    %o = arith.muli %t, %bytes : i32
    %to = ptx.ptr_add %D, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    ptx.st %r, %to align {4 * columns} : vector<{columns}xi32>, !ptx.ptr<global>
    ptx.tcgen05.fence "before_thread_sync"
    ptx.bar.sync 0
    scf.if %low {{
      ptx.tcgen05.dealloc cta_group 1 %x, %columns
    }}
    ptx.ret
  }}
}}
"""
    units = numbers.integers(0, 1 << 20, (rows_in_smem * parts, 4))
    d = np.full((128, columns), -1)
    for row in range(rows):
        at = [row % 8 + row // 8 * stride + part * leading for part in range(parts)]
        for lane in lanes_of(row):
            d[lane] = units[at].reshape(-1)
    arguments = {"A": _argument(units, np.int32), "D": _result(d, np.int32)}
    return Problem(text, (1, 1, 1), (128, 1, 1), arguments, target=TARGET, names=frozenset({"D"}))


_MAKERS = (multiply, multiply_scaled, move, copy)


def generate(seed: int) -> Problem:
    """A problem of one of the makers in turn."""
    return _MAKERS[seed % len(_MAKERS)](seed)


TENSOR_MEMORY = Generator(generate, on_gpus=False)
