# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of the PTX with their operands, and registers in their order."""

import re

import pytest
from tilefold.base.target import Target

from tests.emit.harness import kernel, ptx_of

SM90 = Target("sm_90a")


def lines_of(body: str) -> list[str]:
    """The instructions of a kernel, one blank between words."""
    text = ptx_of(kernel(body, "%A: !ptx.ptr<global> align 16, %n: i32", shared=1024), SM90)
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


@pytest.mark.parametrize(("body", "expected"), [
    ("ptx.cp.async.commit_group", "cp.async.commit_group;"),
    ("ptx.cp.async.wait_group 3", "cp.async.wait_group 3;"),
    ("ptx.cp.async.bulk.wait_group 1", "cp.async.bulk.wait_group 1;"),
    ("ptx.bar.sync 0", "bar.sync 0;"),
    ("ptx.bar.sync 7", "bar.sync 7;"),
    ("ptx.bar.sync 0 plus %n threads 64", "bar.sync %r1, 64;"),
    ("ptx.bar.arrive 0 plus %n threads 64", "bar.arrive %r1, 64;"),
    ("ptx.bar.sync 3 unaligned", "barrier.sync 3;"),
    ("ptx.bar.sync 3 threads 64 unaligned", "barrier.sync 3, 64;"),
    ("ptx.bar.arrive 3 threads 64 unaligned", "barrier.arrive 3, 64;"),
    ("ptx.bar.warp.sync 65535", "bar.warp.sync 65535;"),
    ("%s = ptx.smem.addr 0\nptx.mbarrier.wait %s, %n", "mbarrier.try_wait.parity.shared.b64 done, [%r1], %r2;"),
    ('ptx.fence "acq_rel" scope "gpu"', "fence.acq_rel.gpu;"),
])  # fmt: skip
def test_the_number_of_an_instruction_is_that_of_the_operation(body: str, expected: str) -> None:
    assert lines_of(body).count(expected) == 1


@pytest.mark.parametrize("trans", ["", " trans"])
def test_matrices_are_stored_as_they_are_loaded(trans: str) -> None:
    lines = lines_of(
        f"%s = ptx.smem.addr 0\n%r = ptx.ldmatrix x 4{trans} %s : vector<4xi32>\n"
        "ptx.st %r, %A align 16 : vector<4xi32>, !ptx.ptr<global>"
    )
    name = f"ldmatrix.sync.aligned.m8n8.x4{trans.replace(' ', '.')}.shared.b16"
    loaded = next(match for line in lines if (match := re.match(rf"{name} \{{(.*)\}},", line)))
    assert any(re.match(rf"st\.global\.v4\.b32 \[.*\], \{{{loaded[1]}\}};", line) for line in lines)
