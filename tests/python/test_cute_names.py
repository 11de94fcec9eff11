# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names and forms of CuTe: pointers that move, tensors seen from a coordinate, the elected lane, whole tensors."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.source import plain_source

from tilefold import cute
from tilefold.driver.lowering import load

STAGES = ["cute", "folded", "atoms", "index", "instr"]


@cute.kernel
def moved(A: cute.Tensor, out: cute.Tensor, n: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    pair = cute.make_layout((2,))
    if t == 0:
        out[0] = cute.make_tensor(A.iterator + 5, pair)[1]
        out[1] = cute.make_tensor(A.iterator + n, pair)[1]
        out[2] = cute.make_tensor(4 + (A.iterator + 4 * n), pair)[0]
        s = cute.make_smem_tensor((16,), cute.Float32)
        s[n + 2] = 7.0
        out[3] = cute.make_tensor(s.iterator + (n + 1), pair)[1]
        r = cute.make_rmem_tensor((8,), cute.Float32)
        r.fill(2.5)
        out[4] = cute.make_tensor(r.iterator + 4, (4,))[3]
        out[5] = cute.domain_offset((1, n), A)[1, 2]
        out[6] = cute.domain_offset(A, (1, n))[1, 2]
        out[7] = A[None][2, 1]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("is_static", [True, False])
def test_pointers_move_and_tensors_are_seen_from_a_coordinate(stage: str, is_static: bool) -> None:
    A, out = np.arange(64, dtype=np.float32).reshape(4, 16), np.zeros(8, np.float32)
    moved(A if is_static else cute.dynamic(A), out, 3).launch(grid=1, block=32, device="sim", stage=stage)
    assert out.tolist() == [6, 4, 16, 7, 2.5, A[2, 5], A[2, 5], A[2, 1]]


def test_a_moved_pointer_promises_no_more_than_it_holds() -> None:
    """4 elements of 4 bytes further on, 16 bytes are still aligned; 1 element further on, 4 are; at n, 4 are."""

    @cute.kernel
    def aligned(A: cute.Tensor, n: cute.Int32):
        for distance, expected in ((4, 16), (2, 8), (1, 4), (n, 4), (n * 4, 16)):
            assert (A.iterator + distance).alignment == expected
            assert cute.make_tensor(A.iterator + distance, (2,)).iterator.max_alignment == expected

    aligned(np.zeros(64, np.float32), 1).build(1)


def test_a_pointer_beyond_its_tensor_is_a_fault_where_it_is_read() -> None:
    @cute.kernel
    def beyond(A: cute.Tensor, n: cute.Int32):
        A[0] = cute.make_tensor(A.iterator + n, (4,))[0]

    beyond(np.zeros(8, np.float32), 7).launch(grid=1, block=1, device="sim")
    with pytest.raises(TilefoldError) as caught:
        beyond(np.zeros(8, np.float32), 8).launch(grid=1, block=1, device="sim")
    assert caught.value.code == "E3202"


@cute.kernel
def elected(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    count = 0
    with cute.arch.elect_one():
        count = 1
        out[32] = cute.Float32(t)
    out[t] = cute.Float32(count)


@cute.kernel
def leaving(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    with cute.arch.elect_one():
        return
    out[t] = 3.0


@pytest.mark.parametrize("stage", STAGES)
def test_with_elect_one_is_a_branch(stage: str) -> None:
    """What is assigned, and left, within is so for the elected lane alone."""
    out = np.zeros(33, np.float32)
    elected(out).launch(grid=1, block=32, device="sim", stage=stage)
    assert out[:32].sum() == 1
    assert out[int(out[32])] == 1
    left = np.zeros(32, np.float32)
    leaving(left).launch(grid=1, block=32, device="sim", stage=stage)
    assert sorted(left) == [0] + [3] * 31


def test_with_on_anything_else_is_pythons_or_refused() -> None:
    @cute.kernel
    def on_a_value(n: cute.Int32):
        with n > 1:  # pyright: ignore[reportGeneralTypeIssues, reportAttributeAccessIssue]
            pass

    def elect_one() -> Any:
        return open(__file__)

    @cute.kernel
    def on_a_file(n: cute.Int32):
        with elect_one():
            pass

    for kernel, code, said in ((on_a_value, "E5002", "'Bool' object"), (on_a_file, "E5005", "is on a TextIOWrapper")):
        with pytest.raises(TilefoldError, match=said) as caught:
            kernel(1).build(32)
        assert caught.value.code == code
        assert str(caught.value).startswith(f"{__file__}:")


def test_a_whole_tensor_as_text() -> None:
    """`A[None]` is a slice by `_` alone, whose text reads back as it was."""

    @cute.kernel
    def whole(A: cute.Tensor):
        cute.print_tensor(A[None])

    text = whole(np.zeros((4, 2), np.float32)).build(1).to_cute()
    assert "tile.slice %A, _ :" in text
    program = load(plain_source(text, "whole.cute"))
    assert str(program.module) == str(load(plain_source(str(program.module), "again.cute")).module)


def test_a_function_of_the_host_takes_what_is_dynamic() -> None:
    @cute.kernel
    def scale(A: cute.Tensor, alpha: cute.Float32):
        t, _, _ = cute.arch.thread_idx()
        A[t] = alpha * A[t]

    @cute.jit
    def run(A: Any, alpha: float) -> Any:
        assert A.shape == (len(array),)
        assert (A.element_type, A.stride) == (cute.Float32, (1,))
        scale(A, alpha).launch(grid=1, block=A.shape[0], device="sim")
        return A.layout

    for size in (8, 16):
        array = np.ones(size, np.float32)
        run(cute.dynamic(array), 2.0)
        assert (array == 2).all()
    assert 'tensor<f32, gmem, align<16>, "(?):(1)">' in scale.to_cute()


@pytest.mark.parametrize("stage", STAGES)
def test_coordinates_of_a_shape_of_run_time(stage: str) -> None:
    """An identity tensor of values, tiled and with another layout from its start."""

    @cute.kernel
    def coordinates(out: cute.Tensor, m: cute.Int32, n: cute.Int32):
        t, _, _ = cute.arch.thread_idx()
        whole = cute.make_identity_tensor((m, (cute.assume(n, divby=2), 4)))
        assert cute.rank(whole) == 2
        out[t, 0] = cute.size(whole, mode=[0]) + 100 * cute.size(whole, mode=[1])
        i, (j, k) = cute.local_tile(whole, (4, 2), (t, 1))[3, 1]
        out[t, 1] = i + 100 * j + 10000 * k
        tile = cute.local_tile(cute.make_identity_tensor((m, n)), (4, 4), (t, 1))
        turned = cute.make_tensor(tile.iterator, cute.composition(tile.layout, cute.make_layout((4, 4), stride=(4, 1))))
        row, column = turned[1, 2]
        out[t, 2] = row + 100 * column
        grouped = cute.flatten(cute.group_modes(tile, 0, 2))
        out[t, 3] = grouped[1, 2][0] + 100 * grouped[1, 2][1]

    out = np.zeros((2, 4), np.int32)
    coordinates(out, 8, 6).launch(grid=1, block=2, device="sim", stage=stage)
    flat = [4 * t + 3 + 100 * 3 for t in range(2)]
    assert out.tolist() == [[8 + 2400, flat[t], 4 * t + 2 + 100 * 5, 4 * t + 1 + 100 * 6] for t in range(2)]
