# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches and loops carry views, layouts and the parts of threads."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.runtime import from_dlpack

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

A = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)


def run(kernel: Any, *arguments: Any) -> Any:
    out = np.zeros(32, np.float32)
    kernel(A, out, *arguments).launch(grid=1, block=32, device="sim")
    return out


def test_a_loop_carries_a_view() -> None:
    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        mine = cute.local_tile(A, (1, 8), (t, None))
        row, total = mine[None, None, 0], cute.Float32(0)
        for i in cute.range(n):
            total += row[0, 1]
            row = mine[None, None, i + 1]
        out[t] = total + row[0, 0]

    assert run(kernel, 3).tolist() == (A[:, 1] + A[:, 9] + A[:, 17] + A[:, 24]).tolist()
    assert run(kernel, 0).tolist() == A[:, 0].tolist()


def test_a_branch_in_a_loop_carries_views_in_containers() -> None:
    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        mine = cute.local_tile(A, (1, 8), (t, None))
        held = {"pair": (mine[None, None, 0], cute.Int32(0))}
        for i in cute.range(n):
            if i % 2 == 1:
                held["pair"] = (mine[None, None, i], i)
        view, place = held["pair"]
        out[t] = view[0, 2] + place

    assert run(kernel, 5).tolist() == (A[:, 26] + 3).tolist()


def test_a_while_loop_carries_a_tile_of_shared_memory() -> None:
    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, cute.make_layout((32, 4)))
        shared = cute.make_smem_tensor(layout, cute.Float32)
        for i in range(4):
            shared[t, i] = A[t, i]
        stage = shared[None, 0]
        i = 0
        while i < n:
            i += 1
            stage = shared[None, i]
        out[t] = stage[t]

    assert run(kernel, 2).tolist() == A[:, 2].tolist()


def test_a_pipeline_of_stages_reads_the_view_of_the_iteration_before() -> None:
    """As in GEMMs: the last step of a loop that is unrolled turns to the next stage."""

    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        stages = cute.local_tile(A, (1, 4), (t, None))
        fragment = cute.make_rmem_tensor((4,), cute.Float32)
        now, total = stages[None, None, 0], cute.Float32(0)
        fragment[0] = now[0, 0]
        for i in cute.range(n):
            for k in cute.range(4, unroll_full=True):
                if k == 3:
                    now = stages[None, None, i + 1]
                fragment[(k + 1) % 4] = now[0, (k + 1) % 4]
                total += fragment[k]
        out[t] = total

    assert run(kernel, 3).tolist() == A[:, :12].sum(1).tolist()


def test_views_in_a_branch_are_of_the_thread_that_it_chooses() -> None:
    @cute.kernel
    def kernel(A, out):
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=32)
        tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 1)), cute.make_layout((1, 2)))
        part, coords = tiled.get_slice(t), cute.make_identity_tensor(A)[None, t]
        if t > 7:
            part, coords = tiled.get_slice(31 - t), cute.make_identity_tensor(A)[None, 5]
        out[t] = part.partition_S(A)[1] + 1000 * coords[3][1]

    t = np.arange(32)
    expected = A[np.where(t > 7, 31 - t, t), 1] + 1000 * np.where(t > 7, 5, t)
    assert run(kernel).tolist() == expected.tolist()


def test_layouts_and_pointers_hold_values() -> None:
    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        layout, start = cute.make_layout((4, 2), stride=(1, 64)), cute.local_tile(A, (1, 8), (0, 0)).iterator
        for i in cute.range(n):
            layout = cute.make_layout((4, 2), stride=(i + 1, 64))
            start = cute.local_tile(A, (1, 8), (t % 16, i)).iterator
        out[t] = cute.make_tensor(start, layout)[3, 1]

    assert run(kernel, 2).tolist() == A[np.arange(32) % 16 + 1, 8 + 3 * 2].tolist()


def test_a_view_moves_by_itself() -> None:
    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        row, total = cute.local_tile(A, (1, 4), (t, 0)), cute.Float32(0)
        start = A.iterator + t * 64
        for i in cute.range(n):
            total += row[0, 1] + 1000 * cute.make_tensor(start, (4,))[2]
            row = cute.make_tensor(row.iterator + 8, row.layout)
            if i % 2 == 0:
                start = start + 4
        while row[0, 0] < 20:
            row = cute.domain_offset((0, 2), row)
        out[t] = total + row[0, 0]

    t = np.arange(32)
    expected = A[:, 1] + A[:, 9] + A[:, 17] + 1000 * (A[:, 2] + 2 * A[:, 6]) + A[:, 24]
    assert run(kernel, 3).tolist() == expected[t].tolist()


def test_a_branch_chooses_between_views_of_other_kinds() -> None:
    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        row = cute.local_tile(A, (1, 4), (t, 0))[0, None]
        if t > n:
            row = cute.make_tensor(A.iterator + 4 * t, (4,))
        out[t] = row[3]

    t = np.arange(32)
    assert run(kernel, 7).tolist() == np.where(t > 7, A.reshape(-1)[4 * t + 3], A[:, 3]).tolist()


def test_views_of_different_tensors_have_no_common_one() -> None:
    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        view = cute.local_tile(out, (4,), (0,))
        if t < n:
            view = cute.make_rmem_tensor((4,), cute.Float32)
        out[t] = view[0]

    with pytest.raises(TilefoldError, match="a Tensor on one path and another Tensor on the other"):
        run(kernel, 2)


@pytest.mark.parametrize("stage", ["cute", "instr", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_buffers_are_swapped(stage: str) -> None:
    """In loops, branches and tuples, with swizzles, and as views."""

    @cute.kernel
    def kernel(A, out, n, m):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_composed_layout(cute.make_swizzle(2, 2, 3), 0, cute.make_layout((32, 8), stride=(8, 1)))
        a, b, c = [cute.make_smem_tensor(layout, cute.Float32) for _ in range(3)]
        for place, tensor in enumerate((a, b, c)):
            tensor[t, None].store(A[t, None].load() + place)
        for _ in range(n):
            b[t, None].store(a[t, None].load() + b[t, None].load())
            a, b, c = b, c, a
            for i in range(m):
                if i % 2 == 0:
                    a, b = b, a
                else:
                    a[t, i] = a[t, i] + 1
        pair, count = (a, b), cute.Int32(0)
        while count < m:
            pair = pair[1], pair[0]
            count += 1
        mine, other = pair[0][t, None], pair[1][t, None]
        for _ in range(n):
            mine, other = other, mine
            mine[1] = mine[1] + 3
        for place, tensor in enumerate((*pair, c)):
            out[place, t, None].store(tensor[t, None].load())

    def expected(a, n, m):
        a, b, c = a.copy(), a + 1, a + 2
        for _ in range(n):
            b += a
            a, b, c = b, c, a
            for i in range(m):
                if i % 2 == 0:
                    a, b = b, a
                else:
                    a[:, i] += 1
        pair = (a, b)[:: 1 - m % 2 * 2]
        mine, other = pair
        for _ in range(n):
            mine, other = other, mine
            mine[:, 1] += 3
        return np.array([*pair, c])

    where = {"device": "cuda"} if stage == "cuda" else {"device": "sim", "stage": stage}
    for n, m in ((0, 1), (1, 0), (3, 3), (4, 2)):
        out = np.zeros((3, 32, 8), np.float32)
        kernel(A[:, :8].copy(), out, n, m).launch(grid=1, block=32, **where)
        assert (out == expected(A[:, :8], n, m)).all()


def test_tensors_of_arguments_and_fragments_are_swapped() -> None:
    @cute.kernel
    def kernel(A, out, n):
        t, _, _ = cute.arch.thread_idx()
        now, later, total = *[cute.make_rmem_tensor(2, cute.Float32) for _ in range(2)], cute.Float32(0)
        now.store(A[t, 0:2].load())
        for i in range(n):
            later.store(A[t, 2:4].load() * (i + 1))
            total += now[0]
            now, later = later, now
        source, target = A, out
        if n > 3:
            source, target = out, A
        target[t, 5] = source[t, 6] + total

    for n in (2, 5):
        a, out = A[:, :8].copy(), A[:, 8:16].copy()
        kernel(a, out, n).launch(grid=1, block=32, device="sim")
        source, target, other = (A[:, 8:16], a, out) if n > 3 else (A[:, :8], out, a)
        total = A[:, 0] + A[:, 2] * sum(range(1, n))
        assert (target[:, 5] == source[:, 6] + total).all()
        assert (other == source).all()


def test_tensors_at_addresses_that_a_loop_reads() -> None:
    @cute.kernel
    def kernel(addresses: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
        def at(i: object):
            pointer = cute.make_ptr(cute.Float32, addresses[i], mem_space=cute.AddressSpace.gmem, assumed_align=4)
            return cute.make_tensor(pointer, cute.make_layout((4, 2), stride=(2, 1)))

        column = at(0)[None, 0]
        for i in range(n):
            out[i] = column[3]
            if i % 2 == 0:
                column = at(i + 1)[None, 1]
        out[n] = column[2]

    given = [np.arange(8 * i, 8 * i + 8, dtype=np.float32) for i in range(4)]
    for array in given:
        from_dlpack(array)
    addresses, out = np.array([array.ctypes.data for array in given]), np.zeros(5, np.float32)
    kernel(addresses, out, 4).launch(grid=1, block=1, device="sim")
    assert out.tolist() == [6, 15, 15, 31, 29]


def test_tensors_that_differ_cannot_be_swapped() -> None:
    @cute.kernel
    def layouts(A, out, n):
        a, b = cute.make_smem_tensor((32, 4), cute.Float32), cute.make_smem_tensor((4, 32), cute.Float32)
        for _ in range(n):
            a, b = b, a
        out[0] = a[0]

    @cute.kernel
    def types(A, out, n):
        a, b = cute.make_smem_tensor(32, cute.Int32), cute.make_smem_tensor(32, cute.Uint32)
        for _ in range(n):
            a, b = b, a
        out[0] = a[0]

    @cute.kernel
    def made_within(A, out, n):
        a = cute.make_rmem_tensor(4, cute.Float32)
        for _ in range(n):
            a = cute.make_rmem_tensor(4, cute.Float32)
        out[0] = a[0]

    for kernel in (layouts, types, made_within):
        with pytest.raises(
            TilefoldError,
            match=r"has no value here: it is a Tensor before the loop[^\0]*its layout that is made before",
        ) as error:
            run(kernel, 3)
        assert error.value.code == "E5007"
