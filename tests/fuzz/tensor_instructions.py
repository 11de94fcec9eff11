# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of single instructions on tensor memory (sm_100a): `.ws` multiplications, loads and stores that pack
and unpack or have two halves, shifts, scales of pairs, and commits to several blocks. What comes of them is computed
from the tables of the PTX ISA (tcgen05), in NumPy. Numbers are small integers, so that every sum is exact.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.fuzz.problem import Generator, Problem, Tensor
from tests.fuzz.tensor_memory import TARGET

_BEGIN = """    %t = ptx.sreg "tid.x"
    %rank = ptx.sreg "cluster_ctarank"
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %five = arith.constant 5 : i32
    %c21 = arith.constant 21 : i32
    %sixteen = arith.constant 16 : i32
    %threads = arith.constant 128 : i32
    %columns = arith.constant @COLUMNS@ : i32
    %number_of_threads = arith.muli %rank, %threads : i32
    %thread = arith.addi %number_of_threads, %t : i32
    %s = ptx.smem.addr 0
    %bar = ptx.smem.addr @SIZE@
    %slot = ptx.smem.addr @SLOT@
    %leads = arith.cmpi eq, %t, %zero : i32
    %warp = arith.shrui %t, %five : i32
    %low = arith.cmpi eq, %warp, %zero : i32
    scf.if %low {
      ptx.tcgen05.alloc cta_group @GROUP@ %slot, %columns
      ptx.tcgen05.relinquish_alloc_permit cta_group @GROUP@
    }
@COUNT@    scf.if %leads {
      ptx.mbarrier.init %bar, %count
      ptx.fence.mbarrier_init
    }
"""
_LOADED = """    %units = arith.constant @UNITS@ : i32
    %of_block = arith.muli %rank, %units : i32
    scf.for %unit = %t to %units step %threads : i32 {
      %number = arith.addi %of_block, %unit : i32
      %i = arith.muli %number, %sixteen : i32
      %j = arith.muli %unit, %sixteen : i32
      %from = ptx.ptr_add %A, %i : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
      %to = ptx.ptr_add %s, %j : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
      %v = ptx.ld %from align 16 : !ptx.ptr<global> -> vector<4xi32>
      ptx.st %v, %to align 16 : vector<4xi32>, !ptx.ptr<shared>
    }
    ptx.fence.proxy.async
"""
_MEET = '    ptx.tcgen05.fence "before_thread_sync"\n    ptx.bar.sync 0\n    ptx.tcgen05.fence "after_thread_sync"\n'
_CLUSTER = "    ptx.barrier.cluster.arrive aligned\n    ptx.barrier.cluster.wait aligned\n"
_PLACED = """    %place = ptx.ld %slot align 4 : !ptx.ptr<shared> -> i32
    %x = ptx.inttoptr %place align 4 : i32 -> !ptx.ptr<tmem>
    %lanes = arith.shli %warp, %c21 : i32
    %own = ptx.ptr_add %x, %lanes : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
"""
_DONE = '    ptx.mbarrier.wait %bar, %zero@SCOPE@\n    ptx.tcgen05.fence "after_thread_sync"\n'
_END = """    scf.if %low {
      ptx.tcgen05.dealloc cta_group @GROUP@ %x, %columns
    }
"""
_ONE = "    %count = arith.addi %one, %zero : i32\n"


@dataclass(frozen=True)
class _Frame:
    """The blocks of a kernel's cluster, the columns that it allocates, and the 16-byte units of its shared memory."""

    columns: int
    units: int = 0
    blocks: int = 1
    group: int = 1
    count: str = _ONE
    parameters: tuple[str, ...] = ()

    def text(self, body: str) -> str:
        """The kernel around its body."""
        size = max(16 * self.units, 16)
        meet = _MEET + (_CLUSTER + '    ptx.tcgen05.fence "after_thread_sync"\n' if self.blocks > 1 else "")
        parts = _BEGIN, _LOADED if self.units else "", meet, _PLACED, body, meet, _END
        values = {
            "COLUMNS": self.columns, "SIZE": size, "SLOT": size + 8, "GROUP": self.group, "COUNT": self.count,
            "UNITS": self.units, "SCOPE": ' scope "cluster"' if self.blocks > 1 else "",
        }  # fmt: skip
        names = ", ".join(f"%{name}: !ptx.ptr<global> align 32" for name in ("A", *self.parameters, "D"))
        cluster = f" cluster({self.blocks})" if self.blocks > 1 else ""
        text = f"gpu.module @kernels {{\n  ptx.entry @k({names}) threads(128){cluster} shared({size + 16}) {{\n"
        text += "".join(parts) + "    ptx.ret\n  }\n}\n"
        for name, value in values.items():
            text = text.replace(f"@{name}@", str(value))
        return text

    def problem(self, body: str, given: dict[str, NDArray[Any]], d: NDArray[Any]) -> Problem:
        """The problem of a kernel with this body, which leaves the words `d`."""
        words = np.ascontiguousarray(d).view(np.int32).reshape(-1)
        arguments = {name: Tensor(_words(value)) for name, value in given.items()}
        arguments["D"] = Tensor(np.full_like(words, 77), words, fresh=True)
        size = (self.blocks, 1, 1)
        names = frozenset({"D"})
        return Problem(self.text(body), size, (128, 1, 1), arguments, target=TARGET, names=names, cluster=size)


def _words(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(values).reshape(-1).view(np.int32)


def _stored(name: str, number: int, count: int, blocks: int = 1) -> str:
    """Stores a thread's vector of words as the `number`th of all threads to D."""
    return f"""    %o{number} = arith.constant {number * blocks * 128 * count * 4} : i32
    %p{number} = arith.constant {4 * count} : i32
    %q{number} = arith.muli %thread, %p{number} : i32
    %r{number} = arith.addi %o{number}, %q{number} : i32
    %to{number} = ptx.ptr_add %D, %r{number} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    ptx.st {name}, %to{number} align {4 * count} : vector<{count}xi32>, !ptx.ptr<global>
"""


def _at(name: str, base: str, lane: int, column: int) -> str:
    """The place so many lanes and columns after another."""
    return f"""    %d_{name} = arith.constant {lane << 16 | column} : i32
    %{name} = ptx.ptr_add {base}, %d_{name} : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
"""


def _all_cells(columns: int, blocks: int = 1) -> str:
    """Stores the first columns of tensor memory, (columns / 8, threads of all blocks, 8), to D."""
    text = ""
    for number in range(columns // 8):
        text += _at(f"cell{number}", "%own", 0, 8 * number)
        text += f'    %v{number} = ptx.tcgen05.ld "32x32b" x 8 %cell{number} : vector<8xi32>\n'
        text += '    ptx.tcgen05.wait "ld"\n' + _stored(f"%v{number}", number, 8, blocks)
    return text


def _by_eights(cells: NDArray[Any]) -> NDArray[Any]:
    """Cells (lanes of all blocks, columns) in the order of `_all_cells`."""
    return cells.reshape(len(cells), -1, 8).transpose(1, 0, 2)


def _rows(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Rows of 32 bytes as two halves of all rows, one after the other: leading is their number, stride is 8."""
    return np.ascontiguousarray(values.view(np.uint8).reshape(len(values), 2, 16).transpose(1, 0, 2)).reshape(-1, 16)


_PLAIN: dict[str, tuple[tuple[int, Any], ...]] = {
    "f16": ((0, np.float16), (1, ml_dtypes.bfloat16)),
    "tf32": ((2, np.float32),),
    "f8f6f4": ((0, ml_dtypes.float8_e4m3fn), (1, ml_dtypes.float8_e5m2)),
    "i8": ((0, np.uint8), (1, np.int8)),
}
"""The types of a kind by their codes in instruction descriptors."""


def multiply_stationary(seed: int) -> Problem:
    """D = A B^T, or twice that, by tcgen05.mma.ws: 128 / M parts of N are in lanes one behind the other."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    kind = rng.choice(tuple(_PLAIN))
    m, n, times = rng.choice((32, 64, 128)), rng.choice((64, 128, 256)), rng.choice((1, 2))
    (code_a, of_a), (code_b, of_b) = [rng.choice(_PLAIN[kind])] * 2 if kind in ("f16", "tf32") else (
        rng.choice(_PLAIN[kind]), rng.choice(_PLAIN[kind])
    )  # fmt: skip
    k = 32 // np.dtype(of_a).itemsize
    a, b = (numbers.integers(0 if of is np.uint8 else -2, 3, (rows, k)) for rows, of in ((m, of_a), (n, of_b)))
    d_code, of_d = (2, np.int32) if kind == "i8" else (1, np.float32)
    idesc = d_code << 4 | code_a << 7 | code_b << 10 | n // 8 << 17 | m // 16 << 24
    columns = n * m // 128
    body = f"""    %idesc = arith.constant {idesc:#x} : i32
    %of_b = arith.constant {32 * m} : i32
    %sb = ptx.ptr_add %s, %of_b : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %da = ptx.tcgen05.descriptor %s leading {m} stride 8 swizzling 0
    %db = ptx.tcgen05.descriptor %sb leading {n} stride 8 swizzling 0
    %fresh = arith.constant false
    %more = arith.constant true
    scf.if %leads {{
      ptx.tcgen05.mma.ws "{kind}" cta_group 1 %x, %da, %db, %idesc, %fresh : i64
"""
    body += f'      ptx.tcgen05.mma.ws "{kind}" cta_group 1 %x, %da, %db, %idesc, %more : i64\n' * (times - 1)
    body += "      ptx.tcgen05.commit cta_group 1 %bar\n    }\n" + _DONE + _all_cells(columns)
    d = (times * (a @ b.T)).astype(of_d)
    cells = np.concatenate(np.split(d, 128 // m, axis=1))
    frame = _Frame(max(columns, 32), 2 * (m + n))
    return frame.problem(body, {"A": np.concatenate([_rows(a.astype(of_a)), _rows(b.astype(of_b))])}, _by_eights(cells))


_MOST = 8
"""The registers that one access to global memory moves."""


@dataclass(frozen=True)
class _Access:
    """Loads or stores by one shape of all of so many columns: the registers of a thread in each instruction."""

    shape: str
    times: int
    packs: bool
    columns: int

    @property
    def registers(self) -> int:
        """The registers of one instruction."""
        return self.times * {"16x128b": 2, "16x256b": 4}.get(self.shape, 1)

    def starts(self) -> list[tuple[int, int]]:
        """The lane and the column where each instruction begins."""
        reach = self.times * {"16x64b": 2, "16x128b": 4, "16x256b": 8}.get(self.shape, 1) * (1 + self.packs)
        within = self.columns // 2 if self.shape == "16x32bx2" else self.columns
        halves = (0,) if self.shape == "32x32b" else (0, 16)
        return [(lane, column) for lane in halves for column in range(0, within, reach)]

    def cells(self, start: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lane and the column of each register (128 threads, registers); with `packs` its first of two columns."""
        thread, j = np.ogrid[:128, : self.registers]
        warp, t = 32 * (thread // 32), thread % 32
        step = 1 + self.packs
        match self.shape:
            case "32x32b":
                lane, column = t, j
            case "16x64b":
                lane, column = 8 * (t & 1) + (t >> 2), 2 * j + (t >> 1 & 1)
            case "16x128b":
                lane, column = (t >> 2) + 8 * (j & 1), 4 * (j >> 1) + (t & 3)
            case "16x256b":
                lane, column = (t >> 2) + 8 * (j >> 1 & 1), 8 * (j >> 2) + 2 * (t & 3) + (j & 1)
            case _:
                lane, column = t % 16, j
        far = self.columns // 2 * (t // 16) if self.shape == "16x32bx2" else 0 * t
        lanes, columns = np.broadcast_arrays(warp + lane + start[0], step * column + start[1] + far)
        return lanes, columns

    @property
    def offset(self) -> str:
        """The text of the second half's column."""
        return f" offset {self.columns // 2}" if self.shape == "16x32bx2" else ""


def _access(rng: Random, columns: int, packs: bool) -> _Access:
    while True:
        shape = rng.choice(("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"))
        times = rng.choice((1, 2, 4, 8, 16))
        reach = times * {"16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 2}.get(shape, 1) * (1 + packs)
        access = _Access(shape, times, packs, columns)
        if reach <= columns and access.registers <= _MOST:
            return access


def move_packed(seed: int) -> Problem:
    """D = the registers that loads of one shape find, with or without packing, after stores of another."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    columns = rng.choice((8, 16, 32))
    unpacks = rng.random() < 0.5
    store = _access(rng, columns, unpacks)
    load = _access(rng, columns, unpacks or rng.random() < 0.5)
    count, cells = store.registers, np.zeros((128, columns), np.uint32)
    given = numbers.integers(0, 1 << 32, (len(store.starts()), 128, count), np.uint32)
    body, words = "", f'"{store.shape}" x {store.times}{" unpack" if unpacks else ""}'
    for number, start in enumerate(store.starts()):
        lanes, at = store.cells(start)
        if unpacks:
            cells[lanes, at], cells[lanes, at + 1] = given[number] & 0xFFFF, given[number] >> 16
        else:
            cells[lanes, at] = given[number]
        body += (
            _at(f"b{number}", "%own", *start)
            + f"""    %f{number} = arith.constant {number * 128 * count * 4} : i32
    %g{number} = arith.constant {4 * count} : i32
    %h{number} = arith.muli %t, %g{number} : i32
    %i{number} = arith.addi %f{number}, %h{number} : i32
    %from{number} = ptx.ptr_add %A, %i{number} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %w{number} = ptx.ld %from{number} align {4 * count} : !ptx.ptr<global> -> vector<{count}xi32>
    ptx.tcgen05.st {words} %w{number}, %b{number}{store.offset} : vector<{count}xi32>
"""
        )
    body += '    ptx.tcgen05.wait "st"\n' + _MEET
    found: list[NDArray[Any]] = []
    for number, start in enumerate(load.starts()):
        lanes, at = load.cells(start)
        low = cells[lanes, at]
        found.append((low & 0xFFFF | cells[lanes, at + 1] << 16) if load.packs else low)
        body += _at(f"cell{number}", "%own", *start)
        words = f'"{load.shape}" x {load.times}{" pack" if load.packs else ""}'
        body += f"    %v{number} = ptx.tcgen05.ld {words} %cell{number}{load.offset} : vector<{load.registers}xi32>\n"
        body += '    ptx.tcgen05.wait "ld"\n'
        body += _stored(f"%v{number}", number, load.registers)
    return _Frame(32).problem(body, {"A": given}, np.stack(found))


def shift(seed: int) -> Problem:
    """D = lanes that have moved down by one from some lane on, in 8 columns; the last stays."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    first, column, times = rng.choice((0, 32, 64, 96)), rng.choice((0, 8)), rng.choice((1, 2, 3))
    cells = numbers.integers(0, 1 << 32, (128, 16), np.uint32)
    moved = cells.copy()
    for _ in range(times):
        moved[first:127, column : column + 8] = moved[first + 1 :, column : column + 8]
    issue = "      ptx.tcgen05.shift cta_group 1 %from\n      ptx.tcgen05.commit cta_group 1 %bar\n"
    body = """    %row = arith.constant 64 : i32
    %half = arith.constant 32 : i32
    %eight = arith.constant 8 : i32
    %o = arith.muli %t, %row : i32
    %in = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %in_high = ptx.ptr_add %in, %half : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %own_high = ptx.ptr_add %own, %eight : !ptx.ptr<tmem>, i32 -> !ptx.ptr<tmem>
    %w = ptx.ld %in align 32 : !ptx.ptr<global> -> vector<8xi32>
    %w_high = ptx.ld %in_high align 32 : !ptx.ptr<global> -> vector<8xi32>
    ptx.tcgen05.st "32x32b" x 8 %w, %own : vector<8xi32>
    ptx.tcgen05.st "32x32b" x 8 %w_high, %own_high : vector<8xi32>
    ptx.tcgen05.wait "st"
"""
    body += _MEET + _at("from", "%x", first, column)
    for number in range(times):
        phase = "%one" if number % 2 else "%zero"
        body += _MEET if number else ""
        body += f"    scf.if %leads {{\n{issue}    }}\n    ptx.mbarrier.wait %bar, {phase}\n"
        body += '    ptx.tcgen05.fence "after_thread_sync"\n'
    return _Frame(32).problem(body + _all_cells(16), {"A": cells}, _by_eights(moved))


def multiply_scaled_pair(seed: int) -> Problem:
    """D = (A SFA) (B SFB)^T by a pair: each block has half of A with its scales, half of B, and all scales of B."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    name, k, factors, is_ue8m0 = rng.choice((("mxf8f6f4", 32, 1, 1), ("mxf4", 64, 2, 1), ("mxf4nvf4", 64, 4, 0)))
    n = rng.choice((32, 64, 128, 256))
    which = [rng.choice({1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}[factors]) for _ in "AB"]
    codes = (1, 1) if k == 64 else tuple(rng.choice((0, 1)) for _ in "AB")
    a, b = (numbers.integers(-2, 3, (rows, k)) for rows in (256, n))
    exponents = [numbers.integers(-1, 2, (rows, 4)) for rows in (256, max(n, 128))]
    images: list[NDArray[Any]] = []
    for values, code in ((a, codes[0]), (b, codes[1])):
        if k == 64:
            nibbles = values.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
            images.append(nibbles[:, ::2] | nibbles[:, 1::2] << 4)
        else:
            images.append(values.astype((ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)[code]).view(np.uint8))
    blocks: list[list[NDArray[Any]]] = []
    for own in exponents:
        of_rows: list[NDArray[Any]] = []
        for first in range(0, len(own), 128):
            block, (row, factor) = np.zeros(512, np.uint8), np.ogrid[:128, :4]
            part = own[first : first + 128]
            block[16 * (row % 32) + 4 * (row // 32) + factor] = part + 127 if is_ue8m0 else part + 7 << 3
            of_rows.append(block.reshape(-1, 16))
        blocks.append(of_rows)
    scaled = [
        x * np.exp2(e[: len(x), w : w + factors].astype(np.float64)).repeat(k // factors, axis=1)
        for x, e, w in zip((a, b), exponents, which, strict=True)
    ]
    half = n // 2
    whole = [
        np.concatenate([
            _rows(images[0][128 * rank : 128 * rank + 128]), _rows(images[1][half * rank : half * rank + half]),
            blocks[0][rank], *blocks[1],
        ])
        for rank in range(2)
    ]  # fmt: skip
    idesc = which[1] << 4 | codes[0] << 7 | codes[1] << 10 | n // 8 << 17 | is_ue8m0 << 23 | 16 << 24 | which[0] << 29
    idesc -= 1 << 32 if idesc >> 31 else 0
    scales = 32 * (128 + half)
    body = f"""    %idesc = arith.constant {idesc} : i32
    %fresh = arith.constant false
    %both = arith.constant 3 : i16
    %is_even = arith.cmpi eq, %rank, %zero : i32
    %issues = arith.andi %leads, %is_even : i1
    %at_b = arith.constant {32 * 128} : i32
    %sb = ptx.ptr_add %s, %at_b : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %da = ptx.tcgen05.descriptor %s leading 128 stride 8 swizzling 0
    %db = ptx.tcgen05.descriptor %sb leading {half} stride 8 swizzling 0
"""
    copies = ""
    for number in range(1 + len(blocks[1])):
        body += _at(f"f{number}", "%x", 0, 256 + 4 * number)
        body += f"""    %a{number} = arith.constant {scales + 512 * number} : i32
    %e{number} = ptx.ptr_add %s, %a{number} : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %m{number} = ptx.tcgen05.descriptor %e{number} leading 8 stride 8 swizzling 0
"""
        copies += f'      ptx.tcgen05.cp "32x128b.warpx4" cta_group 2 %f{number}, %m{number}\n'
    word = ' scale "block16"' if factors == 4 else ""
    body += f"""    scf.if %issues {{
{copies}      ptx.tcgen05.mma.block_scale "{name}" cta_group 2{word} %x, %da, %db, %idesc, %fresh, %f0, %f1 : i64
      ptx.tcgen05.commit cta_group 2 %bar multicast %both
    }}
"""
    body += _DONE.replace("@SCOPE@", "") + _all_cells(n, 2)
    d = (scaled[0] @ scaled[1].T).astype(np.float32)
    frame = _Frame(512, len(whole[0]), 2, 2)
    return frame.problem(body, {"A": np.concatenate(whole)}, _by_eights(d))


def commit_to_several(seed: int) -> Problem:
    """D = A B^T in each block of a cluster, which waits for the multiplications of the blocks whose masks name it."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    blocks, n = rng.choice((2, 4)), rng.choice((32, 64))
    masks = np.array([rng.randrange(1 << blocks) | 1 << rank for rank in range(blocks)], np.int32)
    counts = np.array([sum(mask >> rank & 1 for mask in masks.tolist()) for rank in range(blocks)], np.int32)
    a, b = (numbers.integers(-2, 3, (blocks, rows, 16)).astype(np.float16) for rows in (128, n))
    whole = np.concatenate([np.concatenate([_rows(x), _rows(y)]) for x, y in zip(a, b, strict=True)])
    taken = "".join(f"""    %{name}_at = ptx.ptr_add %{argument}, %word : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %{name} = ptx.ld %{name}_at align 4 : !ptx.ptr<global> -> i32
""" for name, argument in (("count", "Counts"), ("mask32", "Masks")))  # fmt: skip
    count = "    %four = arith.constant 4 : i32\n    %word = arith.muli %rank, %four : i32\n" + taken
    body = f"""    %mask = arith.trunci %mask32 : i32 to i16
    %idesc = arith.constant {1 << 4 | n // 8 << 17 | 8 << 24:#x} : i32
    %of_b = arith.constant {32 * 128} : i32
    %sb = ptx.ptr_add %s, %of_b : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %da = ptx.tcgen05.descriptor %s leading 128 stride 8 swizzling 0
    %db = ptx.tcgen05.descriptor %sb leading {n} stride 8 swizzling 0
    %fresh = arith.constant false
    scf.if %leads {{
      ptx.tcgen05.mma "f16" cta_group 1 %x, %da, %db, %idesc, %fresh : i64
      ptx.tcgen05.commit cta_group 1 %bar multicast %mask
    }}
"""
    body += _DONE + _all_cells(n, blocks)
    d = np.einsum("bmk,bnk->bmn", a.astype(np.float32), b.astype(np.float32)).reshape(blocks * 128, -1)
    frame = _Frame(64, 2 * (128 + n), blocks, count=count, parameters=("Counts", "Masks"))
    given = {"A": whole, "Counts": counts, "Masks": masks}
    return frame.problem(body, given, _by_eights(d))


_MAKERS = (multiply_stationary, move_packed, shift, multiply_scaled_pair, commit_to_several)


def generate(seed: int) -> Problem:
    """A problem of one of the makers in turn."""
    return _MAKERS[seed % len(_MAKERS)](seed)


TENSOR_INSTRUCTIONS = Generator(generate, on_gpus=False)
