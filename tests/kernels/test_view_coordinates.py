# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views at coordinates that their tensor does not have: a fault of who accesses one, at every stage, and of nobody
else.
"""

import re

import pytest
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import STAGES, Ran, program_of, simulate
from tilefold.driver.launches import Changes, read_launches

_KERNEL = """\
!a = !tile.tensor<f32, gmem, align<16>, "{layout}">
!b = !tile.tensor<f32, gmem, align<16>, "16:1">
gpu.module @m {{
  tile.kernel @k(%A: !a, %B: !b) threads(1) {{
    %n = gpu.block_id x
    %limit = arith.constant {limit} : index
    %ok = arith.cmpi slt, %n, %limit : index
    {view}
    {access}
    return
  }}
}}
run.launch @m::@k grid({grid}) {{
  run.arg "A" : !tile.tensor<f32, gmem, align<16>, "(8,8):(8,1)"> = "arange"
  run.arg "B" : !b = "0"
}}
"""
_STATIC, _DYNAMIC = "(8,8):(8,1)", "(?{div=4},8):(8,1)"
_COPY = '%c = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f32> thr "(2,2):(1,2)" val "(1,1):(1,1)"\n'
_MMA = '%c = tile.tiled_mma #tile.mma_atom<"UniversalFMA<float>"> atoms "(2,2,1):(1,2,0)"\n'
_SWIZZLED = """\
%s = tile.alloc : !tile.tensor<f32, smem, align<128>, "S<2,0,3> o 0 o (8,8):(8,1)">
tile.copy %A, %s
"""

VIEWS = {
    "tile": ('%v = tile.local_tile %A, "(4,4)", (%n, 1)\n%e = tile.load %v(1, 0)', 2),
    "tile of a swizzled tensor": (_SWIZZLED + '%v = tile.local_tile %s, "(4,4)", (%n, 1)\n%e = tile.load %v(1, 0)', 2),
    "ragged tile": ('%v = tile.local_tile %A, "(3,3)", (%n, 0) ragged\n%e = tile.load %v(0, 0)', 3),
    "tile and part": ('%u = tile.local_tile %A, "(4,8)", (%n, 0)\n%v = tile.slice %u, (1, _)\n%e = tile.load %v(2)', 2),
    "row": ("%v = tile.slice %A, (%n, _)\n%e = tile.load %v(1)", 8),
    "tile of a divide": ('%d = tile.zipped_divide %A, "(4,4)"\n%v = tile.slice %d, ((_,_), (1, %n))\n'
                         "%e = tile.load %v(1, 0)", 2),
    "number of a tile": ('%d = tile.zipped_divide %A, "(4,4)"\n%v = tile.slice %d, ((_,_), %n)\n'
                         "%e = tile.load %v(1, 0)", 4),
    "part of a copy": (_COPY + "%v = tile.partition_S %c, %A, %n\n%e = tile.load %v(0, 1, 1)", 4),
    "part of an mma": (_MMA + "%v = tile.partition_C %c, %A, %n\n%e = tile.load %v(0, 1, 1)", 4),
    "element": ("%e = tile.load %A(%n, 1)", 8),
    "pointer": ("%v = tile.ptr %A(%n, 1)\n%e = ptx.ld %v align 4 : !ptx.ptr<global> -> f32", 8),
}  # fmt: skip
"""What takes a view at `%n` and loads an element `%e` of it, and how many coordinates there are."""
_CASES = [
    (view, layout)
    for view in VIEWS
    for layout in (_STATIC, _DYNAMIC)
    if "%s" not in VIEWS[view][0] or layout == _STATIC
]


def _run(layout: str, view: str, limit: int, access: str, grid: int, stage: str) -> Ran:
    text = _KERNEL.format(layout=layout, view=view, limit=limit, access=access, grid=grid)
    found = program_of(text)
    (launch,) = read_launches(found.module, found.source, Changes())
    return simulate(found, launch, stage)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("view", "layout"), _CASES)
@pytest.mark.sampled(27)
def test_an_access_outside_is_a_fault(view: str, layout: str, stage: str) -> None:
    text, limit = VIEWS[view]
    body = text + "\ntile.store %e, %B(%n)"
    assert _run(layout, body, limit, "", limit, stage)
    with pytest.raises(SimulationError) as caught:
        _run(layout, body, limit, "", limit + 1, stage)
    assert (caught.value.code, caught.value.block) == ("E3202", (limit, 0, 0))
    if "tile.load %A" not in text and not ("ragged" in text and stage == "cute"):  # those say it in their own words
        said = re.search(
            rf"the view of (\w+) at test.cute:\d+:\d+, whose coordinate .*\b{limit}\b.* is out of range for "
            rf"(?:extent|shape) .*\b{limit}\b",
            caught.value.message,
        )
        assert said is not None, caught.value.message
        assert said[1] == ("s" if "%s" in text else "A")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.sampled(14)
def test_a_view_outside_that_is_not_accessed_is_none(view: str, stage: str) -> None:
    text, limit = VIEWS[view]
    *taken, load = text.split("\n")
    access = f"scf.if %ok {{\n{load}\ntile.store %e, %B(%n)\n}}"
    inside = _run(_STATIC, text + "\ntile.store %e, %B(%n)", limit, "", limit, stage).array("B")
    assert (_run(_STATIC, "\n".join(taken), limit, access, limit + 2, stage).array("B") == inside).all()
