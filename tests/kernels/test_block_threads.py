# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of fewer or more threads than a tiled copy or MMA is for: refused where elements would be left out or others
be accessed, and nowhere else.
"""

import numpy as np
import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.kernels.harness import Ran, program_of, simulate
from tilefold import cute
from tilefold.driver.launches import Changes, read_launches

_KERNEL = """\
!a = !tile.tensor<f32, gmem, align<16>, "(8,16):(16,1)">
gpu.module @m {{
  tile.kernel @k(%A: !a, %B: !a) threads({threads}) {{
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %first = arith.cmpi ult, %t, %c32 : index
    %copy = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f32> thr "(4,8):(8,1)" val "(1,1):(1,1)"
    {body}
    return
  }}
}}
run.launch @m::@k grid(1) {{
  run.arg "A" : !a = "arange"
  run.arg "B" : !a = "0"
}}
"""
_PARTS = "%s = tile.partition_S %copy, %A, {0}\n%d = tile.partition_D %copy, %B, {0}\n"
_COPY = "tile.copy %copy, %s, %d\n"


def _run(threads: str, body: str) -> Ran:
    found = program_of(_KERNEL.format(threads=threads, body=body))
    (launch,) = read_launches(found.module, found.source, Changes())
    return simulate(found, launch, "instr")


REFUSED = {
    "fewer": ("16", _PARTS + _COPY, "but the block has 16"),
    "fewer in x": ("16, 2", _PARTS + _COPY, "but the block has 16"),
    "fewer, by elements": ("16", _PARTS + "%v = tile.load %s(0, 0, 0)\ntile.store %v, %d(0, 0, 0)", "the block has 16"),
    "fewer, in a branch": ("16", f"scf.if %first {{\n{_PARTS}{_COPY}}}", "but the block has 16"),
    "more": ("64", _PARTS + _COPY, "but each of the 64 threads"),
    "more, of a view": ("64", _PARTS + "%e = tile.slice %d, (_, 0, 0)\n%r = tile.slice %s, (_, 0, 0)\ntile.copy %r, %e",
                        "but each of the 64 threads"),
    "more, in a loop": ("64", f"{_PARTS}scf.for %i = %c0 to %c32 step %c1 {{\n{_COPY}}}", "each of the 64 threads"),
}  # fmt: skip

ACCEPTED = {
    "as many": ("32", _PARTS.format("%t") + _COPY),
    "the first warp": ("64", _PARTS.format("%t") + f"scf.if %first {{\n{_COPY}}}"),
    "parts of others too": ("16", _PARTS.format("%t") + _COPY + """\
%c16 = arith.constant 16 : index
%u = arith.addi %t, %c16 : index
%s2 = tile.partition_S %copy, %A, %u
%d2 = tile.partition_D %copy, %B, %u
tile.copy %copy, %s2, %d2
"""),
    "a tile for each warp": ("64", """\
%lane = arith.remui %t, %c32 : index
%warp = arith.divui %t, %c32 : index
%gA = tile.local_tile %A, "(8,8)", (0, %warp)
%gB = tile.local_tile %B, "(8,8)", (0, %warp)
%s = tile.partition_S %copy, %gA, %lane
%d = tile.partition_D %copy, %gB, %lane
""" + _COPY),
    "no access": ("16", _PARTS.format("%t") + "tile.copy %A, %B"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    threads, body, said = REFUSED[case]
    with pytest.raises(ProgramError) as caught:
        _run(threads, body.replace("{0}", "%t").replace("{{", "{").replace("}}", "}"))
    first = caught.value.diagnostics[0]
    assert first.code == "E0321"
    assert said in first.message
    assert first.place is not None
    assert "tile.partition_" in first.place.text


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(case: str) -> None:
    threads, body = ACCEPTED[case]
    if case == "no access":  # a copy by one thread, which the others must not race with
        body = (
            body.replace("tile.copy %A", "%one = arith.cmpi eq, %t, %c0 : index\nscf.if %one {\ntile.copy %A") + "\n}"
        )
    ran = _run(threads, body)
    assert (ran.array("A") == ran.array("B")).all()


@cute.kernel
def copied(A: cute.Tensor, B: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4)).get_slice(t)
    copy.partition_D(B).store(copy.partition_S(A).load())


@pytest.mark.parametrize(("block", "code"), [(16, "E0321"), (64, "E0321"), (32, "")])
def test_in_python(block: int, code: str) -> None:
    A, B = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    if code:
        with pytest.raises(ProgramError) as caught:
            copied(A, B).launch(grid=1, block=block, device="sim")
        assert caught.value.diagnostics[0].code == code
        return
    copied(A, B).launch(grid=1, block=block, device="sim")
    assert (A == B).all()
