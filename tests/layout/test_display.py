# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What layouts, tiled copies and tiled MMAs show in a notebook, and the tables behind it."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import ComposedLayout, Layout, make_identity_layout, make_layout
from tilefold.layout.algebra.integers import ScaledBasis, Unknown
from tilefold.layout.algebra.swizzle import Swizzle
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.drawing.drawings import make_index_table, make_text_table, make_thread_value_table, operand_tables
from tilefold.layout.tiling.tiled_copy import make_tiled_copy
from tilefold.layout.tiling.tiled_mma import make_tiled_mma

from tests.layout.strategies import layouts
from tests.layout.svg import cells

COPY = make_tiled_copy(copy_atom("UniversalCopy<uint32_t>", 16), Layout((4, 2), (2, 1)), Layout(2, 1))
MMA = make_tiled_mma(mma_atom("SM80_16x8x8_F32F16F16F32_TN"))


def shown(x: object, form: str) -> Any:
    """What IPython gets for `x` as "html" or "svg"."""
    return getattr(x, f"_repr_{form}_")()


@given(layouts())
def test_the_picture_of_a_layout_holds_every_index(layout: Layout) -> None:
    svg = shown(layout, "svg")
    rows = make_index_table(layout).rows
    assert [cell.text for row in zip(*rows, strict=True) for cell in row] == [
        str(layout(i)) for i in range(layout.size)
    ]
    if max(len(rows), len(rows[0])) <= 32:
        assert sorted(cells(svg)) == sorted(str(layout(i)) for i in range(layout.size))
    assert str(layout) in shown(layout, "html")


def test_swizzles_copies_and_mmas_show_their_tables() -> None:
    swizzled = ComposedLayout(Swizzle(1, 0, 1), 0, Layout((2, 2), (2, 1)))
    assert cells(shown(swizzled, "svg")) == ["0", "1", "3", "2"]
    assert "S&lt;1,0,1&gt; o 0 o (2,2):(2,1)" in shown(swizzled, "html")
    assert cells(shown(COPY, "svg")).count("T1V1") == 2
    assert shown(COPY, "html").startswith("<pre>TiledCopy\n")
    assert cells(shown(MMA, "svg")).count("T31V3") == 2  # A and C have four values a thread, B has two
    assert shown(MMA, "html").startswith("<pre>TiledMMA\n  ThrLayoutVMNK:  (32,1,1,1):(1,0,0,0)\n")


@pytest.mark.parametrize("layout", [Layout((8, Unknown()), (1, 8)), make_layout((1024, 32))])
def test_what_has_no_picture_shows_its_notation(layout: Layout) -> None:
    assert shown(layout, "svg") is None
    assert shown(layout, "html") == f"<pre>{layout}</pre>"


def test_every_place_of_an_operand_has_the_thread_that_the_ptx_isa_names() -> None:
    a, b, c = operand_tables(MMA)
    assert [len(t.rows) for t in (a, b, c)] == [16, 8, 16]
    for m in range(16):
        for n in range(8):  # PTX ISA, mma.m16n8k8: row = lane / 4 (+ 8), column = lane % 4 * 2 (+ 1)
            thread = m % 8 * 4 + n // 2
            assert c.rows[m][n].text == f"T{thread}V{n % 2 + m // 8 * 2}"
            assert a.rows[m][n].text == f"T{thread}V{n % 2 + m // 8 * 2}"


def test_places_may_be_coordinates_or_integers() -> None:
    by_coordinate = make_thread_value_table("", Layout((2, 3), (ScaledBasis(1, (0,)), ScaledBasis(1, (1,)))))
    by_integer = make_thread_value_table("", Layout((2, 3), (1, 2)), (2, 3))
    assert by_coordinate == by_integer
    assert [cell.text for cell in by_integer.rows[1]] == ["T1V0", "T1V1", "T1V2"]
    assert len(make_thread_value_table("", Layout((2, 3), (1, 2))).rows) == 6


@pytest.mark.parametrize(
    ("layout", "shape", "code"),
    [
        (Layout((2, 2, 2), (1, 2, 4)), None, Code.RANK_MISMATCH),
        (Layout((2, Unknown()), (1, 2)), None, Code.DYNAMIC_UNSUPPORTED),
        (Layout((2, 2), (1, Unknown())), None, Code.DYNAMIC_UNSUPPORTED),
        (Layout((2, 2), (1, 2)), (2, Unknown()), Code.DYNAMIC_UNSUPPORTED),
        (Layout((300, 300), (0, 0)), None, Code.RESULT_TOO_LARGE),
        (Layout((2, 2), (1, 1 << 40)), None, Code.RESULT_TOO_LARGE),
        (Layout((2, 4), (1, 2)), (2, 3), Code.BAD_ARGUMENT),
        (Layout((2, 2), (1, -2)), (2, 2), Code.BAD_ARGUMENT),
    ],
)
def test_layouts_without_a_thread_value_table(layout: Layout, shape: Any, code: Code) -> None:
    with pytest.raises(LayoutError) as caught:
        make_thread_value_table("", layout, shape)
    assert caught.value.code == code.id


def test_identity_layouts_show_coordinates() -> None:
    assert [cell.text for cell in make_index_table(make_identity_layout((2, 2))).rows[1]] == ["(1,0)", "(1,1)"]


def test_colours_surround_the_cells_of_a_terminal() -> None:
    table = make_index_table(Layout((2, 2), (0, 1)))
    coloured = make_text_table(table, colour=True)
    assert coloured.count("\x1b[30;48;2;") == coloured.count("\x1b[0m") == 4
    assert len({line.split("m ")[0] for line in coloured.splitlines() if "\x1b" in line}) == 2  # by row's edge
    assert "\x1b" not in make_text_table(table)


def test_the_algebra_is_imported_without_the_drawings() -> None:
    code = "import sys, tilefold.layout; print('tilefold.layout.drawing.drawings' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
