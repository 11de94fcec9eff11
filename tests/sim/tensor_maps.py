# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that copy a tensor map to memory, change it there, and copy a box by it; and what must come of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ARGS = (
    "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16, %W: !ptx.ptr<global> align 128, %n: i32, %d: i64, "
    '%m: !ptx.tensor_map of "f32 A dims (32, 8) strides (128) box (32, 4) swizzle 128B"'
)
SETUP = """
%t = ptx.sreg "tid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%four = arith.constant 4 : i32
%eight = arith.constant 8 : i32
%sixteen = arith.constant 16 : i32
%bytes = arith.constant 512 : i32
%thirtytwo = arith.constant 32 : i32
%bar = ptx.smem.addr 2048
%s = ptx.smem.addr 0
%own = ptx.smem.addr 1024
%leads = arith.cmpi eq, %t, %zero : i32
%second = arith.cmpi eq, %t, %thirtytwo : i32
%first = arith.cmpi ult, %t, %thirtytwo : i32
%map = ptx.cvta.tensor_map %W
scf.if %leads {
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
}
ptx.bar.sync 0
"""
COPY = "ptx.tensormap.copy %m, %W\n"
REPLACE = 'ptx.tensormap.replace "global_dim" at 1 %W, %n : i32\n'
RELEASE = "ptx.fence.proxy.tensormap.release\n"
ACQUIRE = "ptx.fence.proxy.tensormap.acquire %W\n"
LOAD = (
    "ptx.mbarrier.arrive.expect_tx %bar, %bytes\n"
    "ptx.cp.async.bulk.tensor.load %map[%zero, %zero], %s, %bar\nptx.mbarrier.wait %bar, %zero\n"
    "ptx.cp.async.bulk.store %B, %s, %bytes\n"
    "ptx.cp.async.bulk.commit_group\nptx.cp.async.bulk.wait_group 0\n"
)
SYNC = "ptx.bar.sync 0\n"
IN_SHARED = "ptx.tensormap.copy %m, %own\n" + REPLACE.replace("%W", "%own")
PUBLISH = "ptx.tensormap.cp_fenceproxy %W, %own\n"


def lead(*lines: str, who: str = "leads") -> str:
    """Lines that one thread executes."""
    return f"scf.if %{who} {{\n{''.join(lines)}}}\n"


def field(name: str, value: str = "", at: int | None = None, word: str = "") -> str:
    """A line that changes a field of the map."""
    where = "" if at is None else f" at {at}"
    return f'ptx.tensormap.replace "{name}"{where}{word and f" {word!r}".replace(chr(39), chr(34))} %W{value}\n'


def unswizzled(b: NDArray[Any]) -> NDArray[Any]:
    rows = b.reshape(4, 8, 4)
    return np.stack([rows[row][np.arange(8) ^ row] for row in range(4)]).reshape(4, 32)


A = np.arange(512, dtype=np.float32)
ROWS = A[:128].reshape(4, 32)
WIDE = A[:256].reshape(4, 64)[:, :32]
_PLAIN = field("swizzle_mode", word="none")
_FLAT = LOAD.replace("%map[%zero, %zero]", "%map[%zero]").replace("%bytes", "%row")
_SHARED = lead(IN_SHARED) + f"scf.if %first {{\nptx.bar.warp.sync -1\n{PUBLISH}}}\n" + SYNC


def _cut(rows: NDArray[Any], beyond: float) -> NDArray[Any]:
    """The tensor of two rows: those of the box, with what stands for the rest."""
    cut = rows.copy()
    cut[2:] = beyond
    return cut


def _swizzled(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows of 128 bytes as a swizzle of 128 bytes places them."""
    return np.stack([row.reshape(8, 4)[np.arange(8) ^ number] for number, row in enumerate(rows)])


def _loaded(*lines: str, load: str = LOAD) -> str:
    return lead(COPY, *lines, RELEASE, ACQUIRE, load)


CHANGES: dict[str, tuple[str, NDArray[Any]]] = {
    "as it was": (_loaded(), _swizzled(ROWS)),
    "an extent": (_loaded(REPLACE), _swizzled(_cut(ROWS, 0))),
    "by shared memory, for another warp": (_SHARED + lead(ACQUIRE, LOAD, who="second"), _swizzled(_cut(ROWS, 0))),
    "swizzle": (_loaded(_PLAIN), ROWS),
    "stride": (_loaded(_PLAIN, field("global_stride", ", %d : i64", 0)), WIDE),
    "fill": (_loaded(_PLAIN, field("fill_mode", word="nan"), REPLACE), _cut(ROWS, np.nan)),
    "box": (
        _loaded(_PLAIN, field("box_dim", ", %sixteen : i32", 0), field("box_dim", ", %eight : i32", 1)),
        A[:256].reshape(8, 32)[:, :16],
    ),
    "elements": (
        _loaded(_PLAIN, field("elemtype", word="u16"), field("box_dim", ", %eight : i32", 1)),
        np.ascontiguousarray(A[:256].view(np.uint16).reshape(8, 64)[:, :32]).view(np.float32),
    ),
    "rank": (
        "%row = arith.constant 128 : i32\n" + _loaded(_PLAIN, field("rank", ", %zero : i32"), load=_FLAT), ROWS[:1],
    ),
    "element stride and interleave": (
        _loaded(_PLAIN, field("element_stride", ", %one : i32", 1), field("interleave_layout", word="none")), ROWS,
    ),
    "address": (
        "%at = ptx.ptr_add %A, %bytes : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
        + _loaded(_PLAIN, field("global_address", ", %at : !ptx.ptr<global>")), A[128:256].reshape(4, 32),
    ),
}  # fmt: skip
"""By the field that a kernel changes: the kernel, for n = 2 and d = 256, and the floats with which B begins after it.
"""
