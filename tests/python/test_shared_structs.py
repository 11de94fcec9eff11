# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared memory as CuTe programs allocate it: structures, swizzled pointers, memory that is used again."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute import utils

STAGES = ["cute", "instr"]


@cute.struct
class Pair:
    first: cute.Float32
    second: cute.Int8


@cute.struct
class Storage:
    values: cute.struct.MemRange[cute.Float32, 32]
    count: cute.Int64
    pair: Pair  # pyright: ignore[reportGeneralTypeIssues]
    rows: cute.struct.Align[cute.struct.MemRange[cute.Float16, 64], 128]
    last: cute.struct.Align[Pair, 16]


def value_of(member: Any) -> Any:
    return member.ptr.load()


def test_structures_are_placed_as_in_c() -> None:
    assert Pair.size_in_bytes() == 8
    assert Storage.size_in_bytes() == 128 + 8 + 8 + 112 + 128 + 128
    assert {name: member.offset for name, member in Storage.members.items()} == {
        "values": 0, "count": 128, "pair": 136, "rows": 256, "last": 384,
    }  # fmt: skip


def test_annotations_that_are_texts_name_what_the_function_has() -> None:
    rows, dtype = 5, cute.Float16

    @cute.struct
    class Texts:
        first: "cute.struct.MemRange[dtype, rows]"
        last: "cute.struct.Align[(lambda: dtype)(), 16]"

    assert (Texts.size_in_bytes(), Texts.members["last"].offset, dtype.width * rows) == (32, 16, 80)


def test_members_for_tma_copies_begin_at_a_period_of_their_swizzle() -> None:
    @cute.struct
    class Tiles:
        full: cute.Int64
        small: cute.struct.Align[cute.struct.MemRange[cute.Float16, 64], 128]
        large: cute.struct.Align[cute.struct.MemRange[cute.Float16, 512], 128]
        plain: cute.struct.Align[cute.struct.MemRange[cute.Float16, 512], 16]

    assert {name: member.offset for name, member in Tiles.members.items()} == {
        "full": 0, "small": 128, "large": 1024, "plain": 2048,
    }  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_members_of_a_structure(stage: str) -> None:
    @cute.kernel
    def members(A: cute.Tensor, out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        allocator = utils.SmemAllocator()
        single = allocator.allocate(cute.Int32)
        assert single.dtype == cute.Int32
        storage = allocator.allocate(Storage)
        if t == 0:
            storage.count = 40
            storage.pair.first = 1.5
            storage.last.second = 7
            single.store(3)
        storage.values[t] = A[t]
        rows = storage.rows.get_tensor(cute.make_layout((8, 8), stride=(8, 1)))
        rows[t // 8, t % 8] = t
        rows[t // 8 + 4, t % 8] = t + 32
        cute.arch.sync_threads()
        total = value_of(storage.pair.first) + value_of(storage.last.second) + single.load()
        out[t] = storage.values[31 - t] + rows[t % 8, t // 8] + value_of(storage.count) + total
        assert storage.values.data_ptr().alignment == 128
        assert storage.values._size == 32
        assert allocator.allocate_tensor(cute.Int64, 2, byte_alignment=4).iterator.alignment == 8

    a, out = np.arange(32, dtype=np.float32) * 100, np.zeros(32, np.float32)
    members(a, out).launch(grid=1, block=32, device="sim", stage=stage)
    square = np.arange(64).reshape(8, 8)
    assert out.tolist() == [a[31 - t] + square[t % 8, t // 8] + 40 + 1.5 + 7 + 3 for t in range(32)]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("base", [3, 4])
def test_a_swizzle_counts_elements_or_bytes(stage: str, base: int) -> None:
    """Memory is written through a swizzled pointer, used again for another type, and read as it lies."""

    @cute.kernel
    def swizzled(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        allocator = utils.SmemAllocator()
        swizzle = cute.make_swizzle(3, base, 3)
        layout = cute.make_layout((8, 64), stride=(64, 1))
        whole: Any = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, layout)
        assert (whole.inner, whole.outer) == (cute.make_swizzle(3, 3, 3), layout)
        sA = allocator.allocate_tensor(A.element_type, layout, byte_alignment=1024, swizzle=swizzle)
        plain = cute.make_tensor(cute.recast_ptr(sA.iterator, cute.make_swizzle(0, 4, 3)), layout)
        part = cute.local_tile(A, (1, 16), (t // 4, t % 4))
        cute.autovec_copy(part, cute.local_tile(sA, (1, 16), (t // 4, t % 4)))
        cute.arch.sync_threads()
        cute.autovec_copy(
            cute.local_tile(plain, (1, 16), (t // 4, t % 4)), cute.local_tile(B, (1, 16), (t // 4, t % 4))
        )
        cute.arch.sync_threads()
        words = cute.make_tensor(cute.recast_ptr(sA.iterator, cute.make_swizzle(3, 4, 3), dtype=cute.Float32), (8, 8))
        words[t % 8, t // 8] = t
        words[t % 8, t // 8 + 4] = t + 32
        cute.arch.sync_threads()
        C[t] = words[t // 8, t % 8] + words[t // 8 + 4, t % 8]

    a = np.arange(512, dtype=np.float16).reshape(8, 64)
    b, c = np.zeros_like(a), np.zeros(32, np.float32)
    swizzled(a, b, c).launch(grid=1, block=32, device="sim", stage=stage)
    row, chunk = np.divmod(np.arange(64), 8)
    assert b.reshape(64, 8)[:, 0].tolist() == a.reshape(64, 8)[row * 8 + (chunk ^ row), 0].tolist()

    def where(i: int, j: int) -> int:
        return i + 8 * (j % 4) + 32 * (j // 4)

    assert c.tolist() == [float(where(i // 8, i % 8) + where(i // 8 + 4, i % 8)) for i in range(32)]


@pytest.mark.parametrize("stage", STAGES)
def test_bytes_of_shared_memory_as_several_structures(stage: str) -> None:
    """One block of bytes holds what is needed first, and later something else."""

    @cute.struct
    class First:
        a: cute.struct.MemRange[cute.Float32, 32]

    @cute.struct
    class Second:
        b: cute.struct.MemRange[cute.Float16, 64]

    @cute.kernel
    def twice(A: cute.Tensor, B: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        allocator = cute.utils.SmemAllocator()
        memory = allocator.allocate(max(First.size_in_bytes(), Second.size_in_bytes()), byte_alignment=16)
        a, b = First(memory).a, Second(memory).b.get_tensor((2, 32))
        a[t] = A[t]
        cute.arch.sync_threads()
        x = a[31 - t]
        cute.arch.sync_threads()
        b[0, t] = x.to(cute.Float16)
        b[1, t] = (x * 2).to(cute.Float16)
        cute.arch.sync_threads()
        B[t] = (b[0, 31 - t] + b[1, 31 - t]).to(cute.Float32)

    a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    twice(a, b).launch(grid=1, block=32, device="sim", stage=stage)
    assert b.tolist() == (3 * a).tolist()


def test_small_functions_of_layouts_and_integers() -> None:
    assert cute.size_in_bytes(cute.Float16, cute.make_layout((8, 64), stride=(72, 1))) == 2 * (7 * 72 + 64)
    assert cute.size_in_bytes(cute.Float16, None) == 0
    assert (cute.round_up(33, 16), cute.round_up((33, 5, 2), (16, 4))) == (48, (48, 8, 2))
    assert cute.repeat_like(None, (2, (3, 4))) == (None, (None, None))
    assert (cute.repeat(1, 3), cute.repeat(1, 1), cute.repeat_as_tuple(1, 1)) == ((1, 1, 1), 1, (1,))
    assert cute.assume(24, divby=8) == 24
    with pytest.raises(TilefoldError, match="25 is not a multiple of 8"):
        cute.assume(25, divby=8)


def test_an_assumed_divisor_makes_accesses_wide() -> None:
    @cute.kernel
    def moved(A: cute.Tensor, B: cute.Tensor, n: cute.Int32):
        start = (A.iterator + cute.assume(n, divby=4)).align(16)
        cute.autovec_copy(cute.make_tensor(start, 4), B)

    a, b = np.arange(64, dtype=np.float32), np.zeros(4, np.float32)
    moved(a, b, 12).launch(grid=1, block=1, device="sim")
    assert b.tolist() == [12, 13, 14, 15]
    assert "ld.global.v4" in moved.ptx("sm_80")


def _unknown_member(storage: Any) -> None:
    storage.nothing.ptr.load()


def _not_a_scalar(storage: Any) -> None:
    storage.values = 3


def _operand(storage: Any) -> None:
    storage.last.first = storage.count + 1


def _compared(storage: Any) -> None:
    storage.count = storage.pair.first == 0


def _condition(storage: Any) -> None:
    storage.count = not storage.count


def _too_large(storage: Any) -> None:
    storage.values.get_tensor((16, 16))


@pytest.mark.parametrize(
    ("mistake", "code", "words"),
    [
        (_unknown_member, "E5009", "has no member 'nothing'"),
        (_not_a_scalar, "E5002", "'values' is not a scalar"),
        (_operand, "E5002", "a member of a structure is a place in memory, not a value of type Int64"),
        (_compared, "E5002", "not a value of type Float32"),
        (_condition, "E5002", "not a value of type Int64"),
        (_too_large, "E1003", "occupies bytes 0 to 1024 of memory that has 512"),
    ],
)
def test_mistakes(mistake: Any, code: str, words: str) -> None:
    @cute.kernel
    def wrong(A: cute.Tensor):
        mistake(utils.SmemAllocator().allocate(Storage))

    with pytest.raises(TilefoldError) as caught:
        wrong(np.zeros(1, np.float32)).build(1)
    assert caught.value.code == code
    assert words in caught.value.message


def test_a_tensor_may_take_the_members_that_follow() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        storage = utils.SmemAllocator().allocate(Storage)
        values = storage.values.get_tensor(64)  # 32 in the member, 2 in the count
        values.fill(2.0)
        storage.count = 0
        for i in cute.range_constexpr(4):
            out[i] = values[31 + i]

    out = np.zeros(4, np.float32)
    kernel(out).launch(grid=1, block=1, device="sim")
    assert out.tolist() == [2, 0, 0, 2]


def test_members_that_are_no_types_are_refused() -> None:
    with pytest.raises(TilefoldError, match="member 'x' of a structure is 3"):
        cute.struct(type("Wrong", (), {"__annotations__": {"x": 3}}))
    with pytest.raises(TilefoldError, match="MemRange has a type and a number"):
        cute.struct.MemRange[cute.Float32]
    with pytest.raises(TilefoldError, match="power of two"):
        cute.struct.Align[cute.Float32, 12]


def test_a_member_of_one_element_is_a_pointer_to_programs() -> None:
    @cute.kernel
    def look(x: cute.Tensor) -> None:
        s: Any = utils.SmemAllocator().allocate(Storage)
        assert s.count.llvm_ptr.dtype == cute.Int64
        x[0] = s.count.toint() - s.values.data_ptr().toint()

    x = np.zeros(1, np.int32)
    look(x).launch(grid=1, block=1)
    assert x[0] == 128
