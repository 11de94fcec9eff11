# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchange between lanes, against the pseudocode of the PTX ISA written out for one lane."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.sim.harness import compute, entry, fault, launch

LANES = np.arange(32, dtype=np.int32)


def on_lanes(body: str, result: str = "i32", dtype: Any = np.int32, **inputs: Any) -> NDArray[Any]:
    """What a warp computes as %r; inputs are i32 arrays, one number a lane."""
    given = {name: ("i32", np.asarray(values, np.int32)) for name, values in inputs.items()}
    return compute(body, result, dtype, given)


def source_of(mode: str, lane: int, b: int, width: int) -> int:
    """The pseudocode of shfl.sync (PTX ISA, section shfl.sync): where a lane's value comes from."""
    c = (32 - width) << 8 | (0 if mode == "up" else 31)
    bval, cval, mask = b & 31, c & 31, c >> 8 & 31
    max_lane, min_lane = (lane & mask) | (cval & ~mask), lane & mask
    if mode == "up":
        j, inside = lane - bval, lane - bval >= max_lane
    elif mode == "down":
        j, inside = lane + bval, lane + bval <= max_lane
    elif mode == "bfly":
        j, inside = lane ^ bval, lane ^ bval <= max_lane
    else:
        j = min_lane | (bval & ~mask)
        inside = j <= max_lane
    return j if inside else lane


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["up", "down", "bfly", "idx"]),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.one_of(st.integers(-40, 40), st.lists(st.integers(-3, 40), min_size=32, max_size=32)),
)
def test_shuffles_follow_the_pseudocode(mode: str, width: int, b: int | list[int]) -> None:
    each = np.broadcast_to(np.asarray(b), (32,))
    values = LANES * 3 + 1
    got = on_lanes(f'%r = ptx.shfl.sync "{mode}" %v, %b width {width} : i32', v=values, b=each)
    assert got.tolist() == [values[source_of(mode, lane, int(each[lane]), width)] for lane in range(32)]


def test_shuffles_move_any_32_bits() -> None:
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    got = compute(
        '%c = arith.constant 1 : i32\n%r = ptx.shfl.sync "bfly" %x, %c : f32', "f32", np.float32, {"x": ("f32", x)}
    )
    assert np.array_equal(got, x[LANES ^ 1])
    body = """
        %one = arith.constant 1 : i32
        %p = vector.bitcast %w : vector<1xi32> to vector<2xf16>
        %s = ptx.shfl.sync "down" %p, %one : vector<2xf16>
        %h = vector.extract %s[1] : f16 from vector<2xf16>
        %r = arith.extf %h : f16 to f32"""
    halves = np.arange(64, dtype=np.float16).reshape(32, 2)
    words = np.ascontiguousarray(halves).view(np.int32)[:, 0]
    text = "%w = vector.broadcast %v : i32 to vector<1xi32>\n" + body
    got = compute(text, "f32", np.float32, {"v": ("i32", words)})
    assert got.tolist() == [*halves[1:, 1].tolist(), halves[31, 1]]


@pytest.mark.parametrize("control", [0x1F, 0, 0x181F, 0x1807, 0x1800])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_by_operand_c_say_whether_the_lane_is_valid(mode: str, control: int) -> None:
    """Against the pseudocode of the PTX ISA, shfl.sync."""
    distances = (LANES * 5 % 9).astype(np.int32)
    body = f"""
        %c = arith.constant {control} : i32
        %w, %has = ptx.shfl.sync.valid "{mode}" %v, %d, %c : i32
        %bit = arith.extui %has : i1 to i32
        %n = arith.constant 64 : i32
        %high = arith.muli %bit, %n : i32
        %r = arith.ori %w, %high : i32"""
    expected: list[int] = []
    for lane, b in zip(LANES.tolist(), distances.tolist(), strict=True):
        segment = control >> 8 & 31
        most, least = lane & segment | control & 31 & ~segment, lane & segment
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | b & ~segment}[mode]
        valid = j >= most if mode == "up" else j <= most
        expected.append((j if valid else lane) | 64 * valid)
    assert on_lanes(body, v=LANES, d=distances).tolist() == expected


def test_a_butterfly_sums_a_warp() -> None:
    steps = "\n".join(
        f'%d{d} = arith.constant {d} : i32\n%o{d} = ptx.shfl.sync "bfly" %s{2 * d}, %d{d} : i32\n'
        f"%s{d} = arith.addi %s{2 * d}, %o{d} : i32"
        for d in (16, 8, 4, 2, 1)
    )
    got = on_lanes(
        f"%z = arith.constant 0 : i32\n%s32 = arith.addi %v, %z : i32\n{steps}\n%r = arith.addi %s1, %z : i32",
        v=LANES**2,
    )
    assert got.tolist() == [int((LANES**2).sum())] * 32


Words = NDArray[np.int32]
REDUCTIONS: dict[str, Callable[[Words], Any]] = {
    "add": lambda x: x.sum(dtype=np.int64),
    "min": np.min,
    "max": np.max,
    "umin": lambda x: x.view(np.uint32).min(),
    "umax": lambda x: x.view(np.uint32).max(),
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_redux_reduces_over_the_warp(kind: str) -> None:
    x = np.random.default_rng(1).integers(-(2**31), 2**31, 32).astype(np.int32)
    expected = np.array(int(REDUCTIONS[kind](x)) & 0xFFFFFFFF, np.uint32).astype(np.int32)
    assert on_lanes(f'%r = ptx.redux.sync "{kind}" %v : i32', v=x).tolist() == [int(expected)] * 32


def test_redux_of_floats_passes_over_nan() -> None:
    x = np.where(LANES % 3 == 0, np.nan, LANES - 7.5).astype(np.float32)
    for kind, expected in (("min", -6.5), ("max", 23.5)):
        got = compute(f'%r = ptx.redux.sync "{kind}" %x : f32', "f32", np.float32, {"x": ("f32", x)})
        assert got.tolist() == [expected] * 32
    for kind, expected in (("min.abs", 0.5), ("max.abs", 23.5)):
        got = compute(f'%r = ptx.redux.sync "{kind}" %x : f32', "f32", np.float32, {"x": ("f32", x)})
        assert got.tolist() == [expected] * 32
    got = compute('%r = ptx.redux.sync "max.abs.NaN" %x : f32', "f32", np.float32, {"x": ("f32", x)})
    assert np.isnan(got).all()


def test_votes_ballots_and_matches() -> None:
    odd = "%one = arith.constant 1 : i32\n%b = arith.andi %v, %one : i32\n%p = arith.cmpi eq, %b, %one : i32\n"
    assert set(on_lanes(odd + '%r = ptx.vote.sync "ballot" %p : i32', v=LANES).view(np.uint32).tolist()) == {0xAAAAAAAA}
    for mode, values, expected in (
        ("all", LANES, 0), ("all", LANES * 2 + 1, 1), ("any", LANES, 1), ("any", LANES * 2, 0),
        ("uni", LANES, 0), ("uni", LANES * 2, 1), ("uni", LANES * 2 + 1, 1),
    ):  # fmt: skip
        text = f'{odd}%c = ptx.vote.sync "{mode}" %p : i1\n%r = arith.extui %c : i1 to i32'
        assert on_lanes(text, v=values).tolist() == [expected] * 32, mode
    got = on_lanes("%r = ptx.match.any.sync %v", v=LANES % 5)
    assert got.view(np.uint32).tolist() == [sum(1 << j for j in range(32) if j % 5 == i % 5) for i in range(32)]


def test_masks_name_the_lanes_of_a_branch() -> None:
    body = """
        %eight = arith.constant 8 : i32
        %low = arith.cmpi ult, %v, %eight : i32
        %r = scf.if %low -> (i32) {
          %m = ptx.activemask
          %s = ptx.redux.sync "add" %v mask %m : i32
          scf.yield %s : i32
        } else {
          %m = arith.constant -256 : i32
          %e = ptx.elect.sync mask %m
          %s = arith.extui %e : i1 to i32
          scf.yield %s : i32
        }"""
    assert on_lanes(body, v=LANES).tolist() == [28] * 8 + [1] + [0] * 23


def test_groups_of_one_instruction() -> None:
    masks = np.where(LANES < 16, 0xFFFF, 0xFFFF << 16).astype(np.uint32).astype(np.int32)
    got = on_lanes('%r = ptx.redux.sync "add" %v mask %m : i32', v=LANES, m=masks)
    assert got.tolist() == [120] * 16 + [376] * 16


IN_HALF = """
%t = gpu.thread_id x
%i = arith.index_cast %t : index to i32
%sixteen = arith.constant 16 : i32
%c = arith.cmpi ult, %i, %sixteen : i32
scf.if %c {{
  {body}
}}
"""


@pytest.mark.parametrize(
    ("body", "thread", "said"),
    [
        ('%r = ptx.shfl.sync "up" %i, %i : i32', 0, "names lanes that do not execute it (lane 16)"),
        ('%m = arith.constant 255 : i32\n%r = ptx.redux.sync "add" %i mask %m : i32', 8, "lacks this lane"),
        (
            '%m = arith.constant 65535 : i32\n%r = ptx.shfl.sync "bfly" %i, %sixteen mask %m : i32',
            0,
            "comes from lane 16",
        ),
        ("%r = ptx.match.any.sync %i mask %i", 0, "lacks this lane"),
    ],
)
def test_lanes_that_are_missing(body: str, thread: int, said: str) -> None:
    error = fault(entry(IN_HALF.format(body=body)), "E3208")
    assert said in error.message
    assert error.thread == (thread, 0, 0)


def test_lanes_that_disagree_about_the_mask() -> None:
    body = """
        %t = gpu.thread_id x
        %i = arith.index_cast %t : index to i32
        %sixteen = arith.constant 16 : i32
        %low = arith.constant 65535 : i32
        %all = arith.constant -1 : i32
        %c = arith.cmpi ult, %i, %sixteen : i32
        %m = arith.select %c, %low, %all : i32
        %v = ptx.match.any.sync %i mask %m"""
    error = fault(entry(body), "E3208")
    assert "lanes of its mask pass a different mask" in error.message
    assert error.thread == (16, 0, 0)


def test_a_block_of_less_than_a_warp_may_name_all_lanes() -> None:
    body = '%t = gpu.thread_id x\n%i = arith.index_cast %t : index to i32\n%r = ptx.redux.sync "add" %i : i32'
    result = launch(entry(body, "", "20"), block=(20, 1, 1))
    assert result.counters.instructions["redux.sync.add.s32"].warps == 1
