# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies of four rows by their numbers (PTX ISA, cp.async.bulk.tensor: tile::gather4 and tile::scatter4)."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

import tilefold

KERNEL = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry copy(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .b32 column)
{{
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %d<8>;
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b8 bar[8];
    mov.b64 %d1, from; cvta.param.u64 %d2, %d1;
    mov.b64 %d3, to; cvta.param.u64 %d4, %d3;
    mov.u32 %r1, tile; mov.u32 %r2, bar; ld.param.b32 %r5, [column];
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {bytes};
    cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes
        [%r1], [%d2, {{%r5, {rows}}}], [%r2];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
    @!%p1 bra WAIT;
    cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%d4, {{%r5, {to}}}], [%r1];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}}
"""
WIDTH = 32


def copied(rows: str, to: str, swizzle: Any = 0, column: int = 0, box: tuple[int, int] = (1, WIDTH)) -> NDArray[Any]:
    """A matrix of zeros after the copy of four rows of a matrix of numbers, parts of them from a column on."""
    b = np.zeros((40, 64), np.float32)
    maps = [tilefold.tensor_map(x, box, swizzle=swizzle) for x in (numbers(), b)]
    text = KERNEL.format(bytes=4 * 4 * WIDTH, rows=rows, to=to)
    tilefold.load_ptx(text)["copy"](*maps, column).launch(grid=1, block=1)
    return b


def numbers() -> NDArray[Any]:
    return np.arange(1, 40 * 64 + 1, dtype=np.float32).reshape(40, 64)


@pytest.mark.parametrize("swizzle", [0, 128])
def test_rows_come_and_go_by_their_numbers(swizzle: Any) -> None:
    got = copied("3, 39, 3, 0", "7, 1, 0, 20", swizzle, column=16)
    expected = np.zeros_like(got)
    expected[[7, 1, 0, 20], 16:48] = numbers()[[3, 39, 3, 0], 16:48]
    assert np.array_equal(got, expected)


def test_what_is_outside_the_matrix_is_zero_and_stays() -> None:
    got = copied("40, -1, 5, 6", "1, 2, 3, 40", column=48)
    expected = np.zeros_like(got)
    expected[3, 48:] = numbers()[5, 48:]
    assert np.array_equal(got, expected)


def test_a_map_has_boxes_of_one_row() -> None:
    with pytest.raises(TilefoldError, match=r"E3226.*boxes of one row, not boxes \(32, 4\)"):
        copied("0, 1, 2, 3", "0, 1, 2, 3", box=(4, WIDTH))


def test_a_copy_names_four_rows() -> None:
    with pytest.raises(TilefoldError, match="4 rows are named by a column and their numbers, not by 4"):
        copied("0, 1, 2", "0, 1, 2, 3")
