# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures: nothing overlaps or is cut off, large tables are shown by what repeats, and formats agree."""

import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from tilefold.base.errors import TilefoldError
from tilefold.layout.algebra.core import Layout, make_layout
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.drawing.drawings import Cell, Drawn, Table, make_index_table, operand_tables
from tilefold.layout.drawing.excerpt import excerpt
from tilefold.layout.drawing.pictures import draw_mma, draw_tables, picture
from tilefold.layout.drawing.scene import side_by_side, wrap_text
from tilefold.layout.text.layouts import parse_layout
from tilefold.layout.tiling.tiled_copy import make_tiled_copy
from tilefold.layout.tiling.tiled_mma import make_tiled_mma

from tests.layout.strategies import layouts
from tests.layout.svg import Image, cells, read
from tilefold import cute
from tilefold.driver.png import draw_png

WARPS = make_tiled_mma(mma_atom("SM80_16x8x16_F32F16F16F32_TN"), Layout((2, 2, 1), (1, 2, 0)), (32, 32, 16))
DRAWN: dict[str, Drawn] = {
    "one mode": Layout(16, 2),
    "one long mode": Layout(1024, 4),
    "two modes": Layout((8, 8), (8, 1)),
    "nested": parse_layout("((2,4),(4,2)):((1,16),(2,8))"),
    "large": make_layout((128, 64)),
    "a long title": parse_layout("((2,2,2,2),(2,2)):((1000,2000,4000,8000),(16000,32000))"),
    "tiled copy": make_tiled_copy(
        copy_atom("UniversalCopy<uint128_t>", 16), Layout((16, 8), (8, 1)), make_layout((1, 8))
    ),
    "ldmatrix": copy_atom("SM75_U32x4_LDSM_N", 16),
    "one thread's copy": copy_atom("UniversalCopy<uint128_t>", 8),
    "warps": WARPS,
    "narrow": make_tiled_mma(mma_atom("UniversalFMA<float>"), Layout((16, 16, 1), (1, 16, 0))),
    "a large K": mma_atom("SM80_16x8x256_S32U1U1S32_TN_XORPOPC"),
}


def check(image: Image) -> None:
    """Everything is within the image, texts are within their cells, and no two texts or cells overlap."""
    for each in (*image.boxes, *image.texts):
        assert image.view.holds(each), each
    rows: dict[int, list[tuple[bool, int]]] = {}
    everything = [(True, box) for box in image.boxes] + [(False, text) for text in image.texts]
    for at, (_, each) in enumerate(everything):
        for row in range(int(each.top) // 32, int(each.bottom) // 32 + 1):
            rows.setdefault(row, []).append((everything[at][0], at))
    for row in rows.values():
        for (one_is_box, one), (other_is_box, other) in combinations(row, 2):
            a, b = everything[one][1], everything[other][1]
            if a.overlaps(b):
                assert one_is_box != other_is_box, (a, b)
                box, text = (a, b) if one_is_box else (b, a)
                assert box.holds(text), (box, text)


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_overlaps_or_is_cut_off(name: str) -> None:
    check(read(picture(DRAWN[name]).svg()))


@pytest.mark.parametrize("name", MMA_ATOMS)
@pytest.mark.sampled(15)
def test_every_multiplication_has_a_picture(name: str) -> None:
    check(read(picture(mma_atom(name)).svg()))


@given(layouts())
@settings(max_examples=30)
def test_any_layout_fits_its_picture(layout: Layout) -> None:
    check(read(picture(layout).svg()))


def test_titles_of_any_characters() -> None:
    title = 'a <b> & "c" \x00\x1b\ud800 \N{SNOWMAN} ' + "w" * 300
    table = Table(title, ((Cell("<&>\x07", (1,)), Cell("]]>", (2,))),))
    image = read(draw_tables((table, table)).svg())
    check(image)
    shown = "".join(text.text for text in image.texts)
    assert [shown.count(escape) for escape in (r"\x00", r"\x1b", r"\ud800", r"\x07")] == [2] * 4
    assert "".join(wrap_text(title, 12, 100)).replace(" ", "") == title.replace(" ", "")


def test_a_multiplication_stands_as_in_textbooks() -> None:
    """A to the left of C, B above it, in square cells, whose rows and columns are in line."""
    boxes = read(draw_mma(make_tiled_mma(mma_atom("SM80_16x8x8_F32F16F16F32_TN"))).svg()).boxes
    a, b, c = boxes[: 16 * 8], boxes[16 * 8 : 16 * 8 + 8 * 8], boxes[16 * 8 + 8 * 8 :]
    assert len(c) == 16 * 8
    assert {round(box.right - box.left, 2) for box in boxes} == {round(box.bottom - box.top, 2) for box in boxes}
    assert {box.top for box in a} == {box.top for box in c}
    assert {box.left for box in b} == {box.left for box in c}
    assert max(box.right for box in a) < min(box.left for box in c)
    assert max(box.bottom for box in b) < min(box.top for box in c)


def test_elements_that_several_warps_hold_are_marked() -> None:
    svg = picture(WARPS).svg()
    marks = len(list(ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}polygon")))
    assert marks == 32 * 16 + 16 * 32  # all of A and of B
    assert "A: each element is held by 2 warps, in T and T+64" in svg
    assert "B: each element is held by 2 warps, in T and T+32" in svg
    assert "C: " not in svg
    a, _, c = operand_tables(WARPS)
    assert a.rows[0][0].also == ((64, 0),)
    assert c.rows[0][0].also == ()
    quads = operand_tables(make_tiled_mma(mma_atom("SM70_8x8x4_F32F16F16F32_NT")))
    assert not any(cell.also for table in quads for row in table.rows for cell in row)


@pytest.mark.parametrize(
    ("layout", "shown", "caption"),
    [
        ("(128,64):(1,128)", (9, 9), ("rows: +1 each", "columns: +128 each")),
        ("(64,64):(64,1)", (9, 9), ("rows: +64 each", "columns: +1 each")),
        ("((8,16),8):((1,512),8)", (9, 8), ("rows: +512 every 8",)),
        ("S<3,0,3> o 0 o (64,8):(8,1)", (9, 8), ("rows: +64 every 8",)),
        ("(32,32):(1,32)", (32, 32), ()),
        ("1024:4", (1, 9), ("values: +4 each",)),
        ("S<5,0,5> o 0 o (32,100):(1,32)", (32, 32), ("columns: nothing repeats",)),
    ],
)
def test_large_tables_are_shown_by_their_period(layout: str, shown: tuple[int, int], caption: tuple[str, ...]) -> None:
    parsed = parse_layout(layout)
    svg = picture(parsed).svg()
    image = read(svg)
    assert (len({box.top for box in image.boxes}), len({box.left for box in image.boxes})) == shown
    assert str(make_index_table(parsed).rows[-1][-1].text) == cells(svg)[-1]
    for each in caption:
        assert each in svg
    assert ("rows:" in svg or "columns:" in svg or "values:" in svg) == bool(caption)


@given(layouts())
def test_what_is_said_to_repeat_repeats(layout: Layout) -> None:
    long = make_layout(Layout(layout.shape, layout.stride), Layout(64, 3))
    lines = [[cell.numbers for cell in column] for column in zip(*make_index_table(long).rows, strict=True)]
    for repetition in excerpt([lines]).repetitions:
        (step,) = repetition.steps
        for n in range(repetition.extent - repetition.period):
            for before, after in zip(lines[n], lines[n + repetition.period], strict=True):
                assert before is not None
                assert after == tuple(a + b for a, b in zip(before, step, strict=True))


def test_png_beside_svg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image as Images

    both = side_by_side([picture(DRAWN["nested"]), picture(WARPS)])
    (tmp_path / "both.png").write_bytes(draw_png(both))
    with Images.open(tmp_path / "both.png") as image:
        assert image.size == (round(2 * both.width), round(2 * both.height))
        colours = {colour for _, colour in image.getcolors(1 << 24) or ()}
    for fill in {cell.colour for row in make_index_table(make_layout((2, 2))).rows for cell in row}:
        assert tuple(int(fill[at : at + 2], 16) for at in (1, 3, 5)) in colours
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(TilefoldError, match="E4004: PNG images need the package 'pillow'\n  hint: pip install"):
        draw_png(both)


def test_pictures_are_saved_by_name(tmp_path: Path) -> None:
    mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32))
    atom = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.Float16)
    for number, each in enumerate((make_layout((8, 8)), mma, atom, cute.make_mma_atom("UniversalFMA<float>"))):
        cute.save_picture(each, tmp_path / f"{number}.svg")
        cute.save_picture(each, str(tmp_path / f"{number}.PNG"))
        check(read((tmp_path / f"{number}.svg").read_text()))
        assert (tmp_path / f"{number}.PNG").read_bytes().startswith(b"\x89PNG")
    for wrong, path, code in ((3, "a.svg", "E5002"), (mma, "a.pdf", "E4003"), (mma, "no/a.svg", "E4002")):
        with pytest.raises(TilefoldError) as caught:
            cute.save_picture(wrong, tmp_path / path)  # pyright: ignore[reportArgumentType]
        assert caught.value.code == code
