# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps of tensors become arguments that launches make by recipes; copies become instructions on boxes."""

import re

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.passes.harness import lowered, printed

HEAD = """
!dyn = !tile.tensor<f16, gmem, align<16>, "(?,?,?):(?{div=8},1,?{div=8})">
gpu.module @m {
tile.kernel @k(%A: !dyn, %n: i32) threads(32) {
%x = gpu.block_id x
%t = gpu.thread_id x
"""
TAIL = "tile.return\n}\n}\n"
SMEM = 'smem "S<3,3,3> o 0 o (64,64):(64,1)" tiler "(64,64)"'


def recipes(body: str) -> list[str]:
    """The recipes of the maps of a kernel."""
    text = printed(lowered(HEAD + body + TAIL, "index", "sm_90"))
    return re.findall(r'!ptx.tensor_map of "([^"]*)"', text)


def test_a_map_of_an_argument_has_its_extents_and_strides() -> None:
    body = f'%a = tile.tensor_map "SM90_TMA_LOAD" %A {SMEM}\ntile.prefetch %a\n'
    (recipe,) = recipes(body)
    assert recipe == "f16 A dims (A_2, A_1, A_3) strides (A_4 * 2, A_5 * 2) box (64, 64, 1) swizzle 128B"


def test_the_coordinates_of_a_copy_keep_their_order() -> None:
    body = f'%a = tile.tensor_map "SM90_TMA_LOAD" %A {SMEM}\ntile.tma_call %a(%x, %t, %t)\n'
    text = printed(lowered(HEAD + body + TAIL, "index", "sm_90"))
    place = re.search(r"prefetch %A_map\[(%\w+), (%\w+), (%\w+)\]", text)
    assert place is not None, text
    coordinates = dict(re.findall(r"(%\w+) = arith.index_cast %(\w)\b", text))
    assert [coordinates[name] for name in place.groups()] == ["x", "t", "t"]


def test_equal_maps_are_one_argument() -> None:
    one = '%{0} = tile.tensor_map "SM90_TMA_LOAD" %A ' + SMEM + "\ntile.prefetch %{0}\n"
    assert len(recipes(one.format("a") + one.format("b"))) == 1
    other = one.format("b").replace("(64,64)", "(32,64)")
    assert len(recipes(one.format("a") + other)) == 2


def test_a_map_of_a_view_begins_where_the_view_does() -> None:
    body = f"""
%v = tile.slice %A, (_, _, 5)
%a = tile.tensor_map "SM90_TMA_LOAD" %v {SMEM}
tile.prefetch %a
"""
    (recipe,) = recipes(body)
    assert recipe == "f16 A + 5 * A_5 * 2 dims (A_2, A_1) strides (A_4 * 2) box (64, 64) swizzle 128B"


def test_a_map_of_a_view_may_depend_on_integer_arguments() -> None:
    body = f"""
%i = arith.index_cast %n : i32 to index
%k = arith.constant 3 : index
%j = arith.addi %i, %k : index
%v = tile.slice %A, (_, _, %j)
%w = tile.make_tensor %v, "(?,64):(64,1)" (%i)
%a = tile.tensor_map "SM90_TMA_LOAD" %w {SMEM}
tile.prefetch %a
"""
    (recipe,) = recipes(body)
    assert recipe == "f16 A + (n + 3) * A_5 * 2 dims (64, n) strides (128) box (64, 64) swizzle 128B"


def test_a_map_that_depends_on_the_block_is_refused() -> None:
    body = f"""
%v = tile.slice %A, (_, _, %x)
%a = tile.tensor_map "SM90_TMA_LOAD" %v {SMEM}
tile.prefetch %a
"""
    with pytest.raises(ProgramError, match="depends on values of the kernel") as caught:
        recipes(body)
    assert caught.value.code == "E0322"
    assert caught.value.diagnostics[0].place is not None
    assert "take tiles of tile.tma_tensor at run-time coordinates" in caught.value.diagnostics[0].hint


def test_control_flow_carries_no_maps() -> None:
    type = (
        '!tile.tma<"SM90_TMA_LOAD", f16, "(?,?,?):(?{div=8},1,?{div=8})", "S<3,3,3> o 0 o (64,64):(64,1)", "(64,64)">'
    )
    body = f"""
%a = tile.tensor_map "SM90_TMA_LOAD" %A {SMEM}
%c = arith.constant 1 : i1
%b = scf.if %c -> ({type}) {{
scf.yield %a : {type}
}} else {{
scf.yield %a : {type}
}}
tile.prefetch %b
"""
    with pytest.raises(ProgramError) as caught:
        recipes(body)
    assert caught.value.code == "E2004"


@pytest.mark.parametrize(
    ("smem", "said"),
    [
        ("S<3,3,3> o 0 o ((64,2),(8,8)):((1,512),(64,1024))", "16 instructions of (64,8) a tile, where 2 would do"),
        ("S<3,3,3> o 0 o ((64,2),64):((1,4096),64)", 'SM90_TMA_LOAD: 2 instructions of (64,64) a tile"'),
    ],
)
def test_a_remark_says_where_fewer_instructions_would_do(smem: str, said: str) -> None:
    text = f"""
gpu.module @m {{
tile.kernel @k(%A: !tile.tensor<f16, gmem, align<16>, "(4096,2048):(1,4096)">) threads(32) {{
%a = tile.tensor_map "SM90_TMA_LOAD" %A smem "{smem}" tiler "(128,64)"
%c = tile.tma_tensor %a
%g = tile.local_tile %c, "(128,64)", (0, 0)
%h = tile.group_modes %g, [0, 2]
%p = tile.tma_partition %a, %h, 0 in "1:0"
tile.prefetch %a, %p
tile.return
}}
}}
"""
    assert said in printed(lowered(text, "atoms", "sm_90"))
