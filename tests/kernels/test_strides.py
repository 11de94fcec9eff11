# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One copy in four ways compiles to the same instructions, whatever the strides are."""

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tilefold.compiler.reports.kernel_report import count_instructions

from tests.kernels.harness import TARGET, program_of
from tests.kernels.test_ptx import FOUR_WAYS

_TEXT = """
!g = !tile.tensor<f32, gmem, align<16>, "({rows},{columns}):({pitch},{step})">
!frag = !tile.tensor<f32, rmem, align<16>, "{values}:1">
gpu.module @m {{
  tile.kernel @index_arithmetic(%A: !g, %B: !g) threads({threads}) {{
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %values = arith.constant {values} : index
    %across = arith.constant {across} : index
    %m = arith.divui %t, %across : index
    %column = arith.remui %t, %across : index
    %k = arith.muli %column, %values : index
    %r = tile.alloc : !frag
    scf.for %i = %c0 to %values step %c1 {{
      %ki = arith.addi %k, %i : index
      %a = tile.load %A(%m, %ki)
      tile.store %a, %r(%i)
    }} {{unroll}}
    scf.for %i = %c0 to %values step %c1 {{
      %ki = arith.addi %k, %i : index
      %a = tile.load %r(%i)
      tile.store %a, %B(%m, %ki)
    }} {{unroll}}
    return
  }}
  tile.kernel @layout_algebra(%A: !g, %B: !g) threads({threads}) {{
    %t = gpu.thread_id x
    %tilesA = tile.flat_divide %A, "(1,{values})"
    %orderedA = tile.select %tilesA, [0, 1, 3, 2]
    %groupedA = tile.group_modes %orderedA, [2, 4]
    %a = tile.slice %groupedA, (0, _, %t)
    %tilesB = tile.flat_divide %B, "(1,{values})"
    %orderedB = tile.select %tilesB, [0, 1, 3, 2]
    %groupedB = tile.group_modes %orderedB, [2, 4]
    %b = tile.slice %groupedB, (0, _, %t)
    %r = tile.alloc : !frag
    tile.copy %a, %r
    tile.copy %r, %b
    return
  }}
  tile.kernel @tv_composition(%A: !g, %B: !g) threads({threads}) {{
    %t = gpu.thread_id x
    %tvA = tile.composition %A, "{tv}"
    %a = tile.slice %tvA, (%t, _)
    %tvB = tile.composition %B, "{tv}"
    %b = tile.slice %tvB, (%t, _)
    %r = tile.alloc : !frag
    tile.copy %a, %r
    tile.copy %r, %b
    return
  }}
  tile.kernel @tiled_copy(%A: !g, %B: !g) threads({threads}) {{
    %t = gpu.thread_id x
    %copy = tile.tiled_copy #tile.copy_atom<"AutoVectorizingCopy", f32> tv "{tv}" tiler "({rows},{columns})"
    %a = tile.partition_S %copy, %A, %t
    %b = tile.partition_D %copy, %B, %t
    %r = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((1,{values}),1,1):((0,1),0,0)">
    tile.copy %copy, %a, %r
    tile.copy %copy, %r, %b
    return
  }}
}}
"""


def four_ways(across: int, rows: int, values: int, step: int, gap: int) -> list[Counter[str]]:
    """The instructions of each kernel: `across` threads share a row, which ends `gap` elements before the next one."""
    columns = across * values
    tv = f"(({across},{rows}),{values}):(({rows * values},1),{rows})"
    sizes = {"rows": rows, "columns": columns, "values": values, "across": across, "threads": across * rows}
    text = _TEXT.format(**sizes, pitch=columns * step + gap, step=step, tv=tv)
    counts = count_instructions(program_of(text).ptx(TARGET))
    wide = {"ld.global.b64": "ld.global.v2.b32", "st.global.b64": "st.global.v2.b32"}  # the same instruction of a GPU
    return [_multiplied(Counter({wide.get(name, name): n for name, n in counts[way].items()})) for way in FOUR_WAYS]


def _multiplied(counts: Counter[str]) -> Counter[str]:
    """The instructions, with a multiplication for each shift and sum, and for each that adds as well: LLVM writes that
    by 5 in either form, and subtracts before or after it multiplies.
    """
    both, adding = min(counts["shl.b32"], counts["add.s32"]), counts["mad.lo.s32"]
    shorter = counts - Counter({"shl.b32": both, "add.s32": both, "mad.lo.s32": adding})
    shorter["mul.lo.s32"] += both + adding
    return +shorter


@given(st.integers(2, 20), st.integers(2, 12), st.integers(1, 8), st.sampled_from([1, 2, 3, 7, 64]), st.integers(0, 9))
@settings(max_examples=20)
@example(12, 3, 3, 1, 3)
def test_four_ways_take_the_same_instructions(across: int, rows: int, values: int, step: int, gap: int) -> None:
    first, *others = four_ways(across, rows, values, step, gap)
    assert others == [first] * 3


@given(st.integers(2, 20), st.integers(2, 12), st.integers(1, 8), st.sampled_from([1, 2, 3, 7, 64]))
@settings(max_examples=10)
def test_rows_that_follow_each_other_take_one_multiplication(across: int, rows: int, values: int, step: int) -> None:
    least = Counter({"ld.param.b64": 2, "mov.u32": 1, "mul.wide.u32": 1, "add.s64": 2, "ret": 1})
    for counts in four_ways(across, rows, values, step, 0):
        assert Counter({name: n for name, n in counts.items() if ".global." not in name}) == least


_TILE = """
!g = !tile.tensor<f32, gmem, align<16>, "{layout}">
gpu.module @m {{
  tile.kernel @k(%A: !g, %B: !g) threads(64) {{
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %c0 = arith.constant 0 : index
    {coordinate}
    %a = tile.slice %A, (%at, _)
    %v = tile.load %a(%c0)
    %d = tile.slice %B, (%at, _)
    tile.store %v, %d(%c0)
    return
  }}
}}
"""
_THREAD = "%at = arith.addi %t, %c0 : index"
_BLOCK = "%n = arith.constant 64 : index\n%at = arith.remui %b, %n : index"


@pytest.mark.parametrize(("layout", "coordinate", "divided"), [
    ("((16,4),8):((6,96),1000)", _THREAD, 0),
    ("((2,2,4,4),8):((5,10,20,80),1000)", _THREAD, 0),
    ("((16,2,2),8):((6,96,1000),3000)", _THREAD, 1),
    ("((16,4),8):((6,96),1000)", _BLOCK, 1),  # the block's number modulo 64
    ("((4,16),8):((0,6),1000)", _THREAD, 1),
])  # fmt: skip
def test_an_integer_is_divided_only_where_strides_end(layout: str, coordinate: str, divided: int) -> None:
    counts = count_instructions(program_of(_TILE.format(layout=layout, coordinate=coordinate)).ptx(TARGET))["k"]
    assert counts.get("shr.u32", 0) == (divided if coordinate is _THREAD else 0)
    assert counts.get("and.b32", 0) <= divided


def test_run_time_strides_that_follow_each_other_take_one_multiplication() -> None:
    """Of a row of 64 columns, threads (16,4):(1,16) have strides ld and 16 * ld."""
    text = """
        !g = !tile.tensor<f32, gmem, align<16>, "(8,64):(1,?)">
        gpu.module @m {
          tile.kernel @k(%A: !g, %B: !g) threads(64) {
            %t = gpu.thread_id x
            %a = tile.composition %A, "((16,4),8):((8,128),1)"
            %x = tile.slice %a, (%t, _)
            %b = tile.composition %B, "((16,4),8):((8,128),1)"
            %y = tile.slice %b, (%t, _)
            tile.copy %x, %y
            return
          }
        }
    """
    counts = count_instructions(program_of(text).ptx(TARGET))["k"]
    assert not {name for name in counts if name.startswith(("shr", "and", "bfe", "div", "rem"))}
    assert counts["mad.lo.s64"] == 2
