# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.tensor_map`: tensor maps as arguments of kernels in PTX."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold
from tilefold.commands.cli import main

ARRAY = np.zeros((40, 64), np.float32)
COPY = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry copy(.param .align 64 .b8 from[128], .param .align 64 .b8 to[192])
{
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %d<8>;
    .shared .align 1024 .b8 tile[4096];
    .shared .align 8 .b8 bar[8];
    mov.b64 %d1, from; cvta.param.u64 %d2, %d1;
    mov.b64 %d3, to; cvta.param.u64 %d4, %d3;
    mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, %ctaid.x;
    shl.b32 %r4, %r3, 4; mov.u32 %r5, 0;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d2, {%r5, %r4}], [%r2];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
    @!%p1 bra WAIT;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d4, {%r5, %r4}], [%r1];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""


@pytest.mark.parametrize("swizzle", [0, 128])
def test_copy(swizzle: Any) -> None:
    """Both maps have the same pattern in shared memory, so that the tensor is copied; the last box is cut."""
    a = np.random.default_rng(0).integers(0, 100, (40, 64)).astype(np.float16)
    b = np.zeros_like(a)
    maps = [tilefold.tensor_map(x, (16, 64), swizzle=swizzle) for x in (a, b)]
    tilefold.load_ptx(COPY)["copy"](*maps).launch(grid=3, block=1)
    assert np.array_equal(a, b)
    again = [bytes(given.content) for given in maps]
    call = tilefold.load_ptx(COPY)["copy"](again[0], again[1].ljust(192, b"\0"))
    b[:] = 0
    call.launch(grid=3, block=1, memory=[a, b])
    assert np.array_equal(a, b)


def test_maps_at_an_address_that_is_a_number() -> None:
    """Maps that a kernel finds in global memory by a number, as of an array of descriptors."""
    entry = ".visible .entry copy(.param .align 64 .b8 from[128], .param .align 64 .b8 to[192])"
    text = COPY.replace(entry, ".visible .entry copy(.param .u64 maps)")
    text = text.replace("mov.b64 %d1, from; cvta.param.u64 %d2, %d1;", "ld.param.u64 %d1, [maps]; xor.b64 %d2, %d1, 0;")
    text = text.replace("mov.b64 %d3, to; cvta.param.u64 %d4, %d3;", "add.u64 %d3, %d1, 128; xor.b64 %d4, %d3, 0;")
    a = np.random.default_rng(0).integers(0, 100, (40, 64)).astype(np.float16)
    b = np.zeros_like(a)
    content = b"".join(tilefold.tensor_map(x, (16, 64)).content for x in (a, b))
    room = np.zeros(384, np.uint8)
    maps = room[-room.ctypes.data % 128 :][:256]
    maps[:] = np.frombuffer(content, np.uint8)
    tilefold.load_ptx(text)["copy"](maps.ctypes.data).launch(grid=3, block=1, memory=[maps, a, b])
    assert np.array_equal(a, b)


@pytest.mark.parametrize(("space", "holds"), [("param", 1), ("param::entry", 1), ("global", 0), ("const", 0)])
def test_the_state_space_of_a_map(space: str, holds: int) -> None:
    """A map that is a parameter is in the space of parameters (PTX ISA, isspacep)."""
    text = f""".version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 A)
{{ .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %d<5>;
    mov.b64 %d1, map; cvta.param.u64 %d2, %d1; ld.param.u64 %d3, [A]; cvta.to.global.u64 %d4, %d3;
    prefetch.param.tensormap [%d2]; isspacep.{space} %p1, %d2; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%d4], %r1;
    ret; }}"""
    found = np.full(4, -1, np.int32)
    map = tilefold.tensor_map(np.zeros((40, 64), np.float16), (16, 64))
    tilefold.load_ptx(text)["k"](map, found).launch(grid=1, block=1)
    assert found[0] == holds


def test_bounds_of_the_map() -> None:
    """Copies fill what is outside, and write nothing there."""
    a = np.ones((40, 64), np.float32)
    b = np.zeros((40, 64), np.float32)
    part = tilefold.tensor_map(a[:8, :32], (16, 32), fill="nan")
    tilefold.load_ptx(COPY)["copy"](part, tilefold.tensor_map(b[:32, :32], (16, 32))).launch(grid=1, block=1)
    assert np.isnan(b[8:16, :32]).all()
    assert (b[:8, :32] == 1).all()
    assert (b[16:] == 0).all()
    assert (b[:, 32:] == 0).all()


@pytest.mark.parametrize(
    ("array", "box", "swizzle", "message"),
    [
        (ARRAY, (16,), 0, "E0323: the box .* has 1 modes, the array 2"),
        (ARRAY.T, (16, 16), 0, "E0322: .*last mode has a stride of 256 bytes"),
        (ARRAY[:, 1:], (16, 16), 0, "E0322: .*begins at the address"),
        (ARRAY, (512, 16), 0, "E0323: .*extent 512"),
        (ARRAY, (16, 64), 128, "E0323: .*256 bytes, more than the 128"),
        (ARRAY, (16, 16), 48, "E0323: a tensor map cannot swizzle by 48 bytes"),
    ],
)
def test_refusals(array: Any, box: tuple[int, ...], swizzle: Any, message: str) -> None:
    with pytest.raises(TilefoldError, match=message):
        tilefold.tensor_map(array, box, swizzle=swizzle)


def test_bytes_that_are_no_map() -> None:
    with pytest.raises(TilefoldError, match="E0322"):
        tilefold.load_ptx(COPY)["copy"](bytes(128), bytes(192)).launch(grid=1, block=1)


ARGUMENTS = {"from": "map(A, box=16x64, swizzle=128)", "to": "map(B, box=16x64, swizzle=128)"}


def _run(tmp_path: Path, changed: dict[str, str]) -> int:
    file = tmp_path / "copy.ptx"
    file.write_text(COPY.replace("to[192]", "to[128]"))
    given = {**ARGUMENTS, "A": "f16[40,64]", "B": "f16[40,64]", **changed}
    options = [word for name, value in given.items() for word in ("--arg", f"{name}={value}")]
    return main(["run", str(file), "--grid", "3", "--block", "1", *options, "--fill", "A=normal", "--check", "A == B"])


def test_a_report_in_json_repeats_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "copy.ptx"
    file.write_text(COPY.replace("to[192]", "to[128]"))
    given = {**ARGUMENTS, "A": "f16[40,64]", "B": "f16[40,64]"}
    options = [word for name, value in given.items() for word in ("--arg", f"{name}={value}")]
    assert main(["check", str(file), "--grid", "3", "--block", "1", *options, "--fill", "A=normal", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "clean"


def test_the_command_describes_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, {}) == 0
    assert "A == B: 2560 elements: ok" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        ({"from": "map(A, box=16)"}, "E0322", "no tensor map with the box 16 describes 'A', f16 of (40, 64)"),
        ({"from": "map(A box=16)"}, "E3106", "map(A box=16): not a tensor map"),
        ({"from": "map(A, box=16x64, swizzle=5)"}, "E3106", "not a tensor map"),
        ({"from": "map(A, box=16x65)"}, "E0323", "box"),
        ({"A": "7"}, "E3106", "'A' is not an array"),
        ({"C": "map(A, box=16x64)"}, "E3106", "the kernel has no argument 'C'"),
    ],
)
def test_a_map_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str], code: str, said: str
) -> None:
    assert _run(tmp_path, changed) == 1
    error = capsys.readouterr().err
    assert f"error[{code}]" in error
    assert said in error
