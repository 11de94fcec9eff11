# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remarks on the limits of kernels for tensor memory: clocks, shared memory, columns, waves, exponentials."""

import pytest
from tilefold.base.target import Target

from tests.kernels.harness import changed_program

SM100A = Target("sm_100a")
GEMM = "gemm_sm100"


def said(name: str, **changed: object) -> dict[str, list[str]]:
    """The remarks of a program by operation."""
    found: dict[str, list[str]] = {}
    for remark in changed_program(name, **{key: str(value) for key, value in changed.items()}).remarks(SM100A):
        found.setdefault(remark.op, []).append(remark.text)
    return found


@pytest.mark.parametrize(("pair", "columns", "expected"), [
    (1, 256, "128 clocks, and 12288 bytes of shared memory, 96 a clock of 128: the tensor core bounds it"),
    (1, 128, "64 clocks, and 8192 bytes of shared memory, 128 a clock of 128: both bound it"),
    (1, 64, "32 clocks, and 6144 bytes of shared memory, 192 a clock of 128: shared memory bounds it: 48 clocks"),
    (2, 256, "128 clocks, and 8192 bytes of shared memory, 64 a clock of 128: the tensor core bounds it"),
])  # fmt: skip
def test_multiplications(pair: int, columns: int, expected: str) -> None:
    found = said(GEMM, M=512, N=512, PAIR=pair, TILE_N=columns)
    assert found["ptx.tcgen05.mma"] == [f"{expected} (model of a B200, not measured)"]
    share = "one block fits" if columns == 256 else f"at most {256 // columns} blocks fit"
    assert found["ptx.tcgen05.alloc"] == [f"{2 * columns} of 512 columns of tensor memory: {share} on a multiprocessor"]


@pytest.mark.parametrize(("blocks", "expected"), [
    (1, "1 block for 148 multiprocessors: one wave, 147 idle"),
    (256, "256 blocks for 148 multiprocessors: 2 waves, the last of 108"),
])  # fmt: skip
def test_waves(blocks: int, expected: str) -> None:
    found = said(GEMM, M=2048, N=2048, TILE_N=128, BLOCKS=blocks)
    assert found["run.launch"] == [f"{expected} (model of a B200, not measured)"]


def test_exponentials_and_operands_in_tensor_memory() -> None:
    found = said("attention_sm100")
    assert all(text.startswith("2 clocks each time a warp executes it") for text in found["ptx.ex2.approx"])
    assert any(text.startswith("32 clocks, and 2048 bytes of shared memory, 64") for text in found["ptx.tcgen05.mma"])


def test_other_kernels_have_none() -> None:
    assert not any("B200" in text for texts in said("softmax").values() for text in texts)
