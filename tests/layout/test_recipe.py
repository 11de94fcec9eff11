# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of tensor maps: their text, their integers, and the maps that launches make of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError, LayoutSyntaxError
from tilefold.layout.tma.launch_int import LaunchInt, LaunchValue, names_of, renamed, value_for
from tilefold.layout.tma.recipe import MAP_ELEMENTS, PROMOTIONS, REDUCTIONS, MapRecipe
from tilefold.layout.tma.recipe_text import parse_recipe, print_recipe

F16 = MAP_ELEMENTS["f16"]
NAMES = ("n", "m", "A_0")
VALUES = {"n": 7, "m": 12, "A_0": 5}


def integers() -> st.SearchStrategy[LaunchValue]:
    leaves = st.integers(0, 9) | st.sampled_from(NAMES).map(LaunchInt)
    return st.recursive(leaves, _operations, max_leaves=6)


def _operations(operands: st.SearchStrategy[LaunchValue]) -> st.SearchStrategy[LaunchValue]:
    return st.builds(LaunchInt, operands, st.sampled_from(("+", "-", "*", "//", "%")), operands)


@given(integers())
def test_integers_are_those_of_python(value: LaunchValue) -> None:
    text = str(value)
    recipe = MapRecipe("A", F16, (64,), (), (64,), offset=value)
    try:
        expected = eval(text, {}, VALUES)
    except ZeroDivisionError:
        with pytest.raises(LayoutError, match="divide by 0"):
            recipe.place(0, VALUES)
        return
    assert value_for(value, VALUES) == expected
    assert parse_recipe(print_recipe(recipe)) == recipe
    assert names_of(value) <= set(NAMES)
    assert value_for(renamed(value, {name: name.upper() for name in NAMES}), {"N": 7, "M": 12, "A_0": 5}) == expected


def test_arithmetic_of_the_algebra() -> None:
    n = LaunchInt("n")
    values = [n + 1, 1 + n, n - 1, 9 - n, n * 2, 2 * n, n // 2, 50 // n, n % 4, 50 % n]
    assert [value_for(x, {"n": 7}) for x in values] == [8, 8, 6, 2, 14, 14, 3, 7, 3, 1]
    assert str((n - 1) * 8 - (n - (n + 2))) == "(n - 1) * 8 - (n - (n + 2))"


@pytest.mark.parametrize("text", [
    "f16 A dims (64) box (64)",
    "tf32 A + n * 4 dims (A_1, A_0) strides (A_2 * 4) box (32, 128) swizzle 128B fill nan promotion 0B",
    "f16 A dims (n) box (64) stored",
    "u8 A dims (A_1, A_0, 1, n, m) strides (16, 32, 48, 64) box (16, 256, 1, 1, 1) swizzle 32B promotion 64B",
])  # fmt: skip
def test_text(text: str) -> None:
    assert print_recipe(parse_recipe(text)) == text
    spaced = text.replace(" ", "  ").replace("(", "( ")
    assert print_recipe(parse_recipe(f" {spaced} ")) == text


@pytest.mark.parametrize(("text", "said"), [
    ("", "expected one of u8, u16"),
    ("f8 A dims (64) box (64)", "expected one of u8, u16"),
    ("f16 dims (64) box (64)", "expected 'dims'"),
    ("f16 4 dims (64) box (64)", "expected the name of a tensor"),
    ("f16 A dims 64 box (64)", r"expected '\('"),
    ("f16 A dims (64, ) box (64)", "expected an integer or the name"),
    ("f16 A dims (64 box (64)", r"expected '\)'"),
    ("f16 A dims (64)", "expected 'box'"),
    ("f16 A dims (n) box (n)", "the extents of a box are numbers"),
    ("f16 A dims (64) box (64) swizzle 16B", "expected one of NONE, 32B"),
    ("f16 A dims (64) box (64) fill zero", "expected one of nan"),
    ("f16 A dims (64) box (64) promotion 32B", "expected one of 0B, 64B"),
    ("f16 A dims (64) box (64) 3", "unexpected text after the end"),
    (f"f16 A dims ({'(' * 40}n) box (64)", "more than 32 parentheses"),
    (f"f16 A dims ({'n + ' * 40}n) box (64)", "more than 32 operators"),
    (f"f16 A dims ({'1, ' * 40}1) box (64)", "more than 16 integers"),
    ("f16 A dims (64, 64) box (64, 64)", "it has 2 extents, 0 strides"),
    ("f16 A dims (64, 64) strides (24) box (64, 64)", "a stride of 24 bytes"),
    ("f16 A dims (0) box (64)", "dimension 0 has the extent 0"),
    ("f16 A dims (64) box (512)", "has the extent 512"),
    ("s32 A dims (64) box (64) fill nan", "elements of s32 cannot be NaN"),
])  # fmt: skip
def test_what_is_no_recipe(text: str, said: str) -> None:
    with pytest.raises(LayoutSyntaxError, match=said):
        parse_recipe(text)


def test_a_launch_places_the_map() -> None:
    recipe = parse_recipe("bf16 A + 32 dims (A_1, A_0) strides (A_2 * 2) box (64, 128) swizzle 128B fill nan")
    assert recipe.names == {"A_0", "A_1", "A_2"}
    placed = recipe.place(4096, {"A_0": 100, "A_1": 72, "A_2": 80})
    assert (placed.address, placed.element.number, placed.nan_fill, placed.promotion) == (4128, 9, True, 0)
    assert (placed.map.dims, placed.map.strides, placed.map.bytes) == ((72, 100), (160,), 64 * 128 * 2)
    for values, address, said in (
        ({"A_0": 100, "A_1": 72, "A_2": 81}, 4096, "dimension 1 has a stride of 162 bytes"),
        ({"A_0": 0, "A_1": 72, "A_2": 80}, 4096, "dimension 1 has the extent 0"),
        ({"A_0": 100, "A_1": -1, "A_2": 80}, 4096, "dimension 0 has the extent -1"),
        ({"A_0": 100, "A_1": 72, "A_2": 80}, 4100, "it begins at the address 0x1024"),
    ):
        with pytest.raises(LayoutError, match=said) as caught:
            recipe.place(address, values)
        assert caught.value.code is Code.TENSOR_MAP
        assert caught.value.hint


def test_a_mode_of_extent_1_may_have_any_stride() -> None:
    recipe = parse_recipe("bf16 A dims (64, A_0, A_1) strides (A_2 * 2, A_3 * 2) box (64, 32, 1)")
    placed = recipe.place(4096, {"A_0": 32, "A_1": 1, "A_2": 128, "A_3": 1})
    assert (placed.map.strides, placed.promotion) == ((256, 256), 256)
    with pytest.raises(LayoutError, match="dimension 2 has a stride of 2 bytes"):
        recipe.place(4096, {"A_0": 32, "A_1": 2, "A_2": 128, "A_3": 1})


def test_what_no_launch_can_make() -> None:
    with pytest.raises(LayoutError, match="does not fetch 32 bytes"):
        MapRecipe("A", F16, (64,), (), (64,), promotion=32)
    assert PROMOTIONS[-1] == MapRecipe("A", F16, (64,), (), (64,)).promotion


def test_padded_elements_of_6_bits() -> None:
    placed = parse_recipe("b6x16_p32 A dims (256, 8) strides (192) box (128, 8) swizzle 128B").place(64, {})
    assert (placed.map.bytes, placed.map.shared_bytes) == (96 * 8, 128 * 8)
    with pytest.raises(LayoutError, match="cannot be NaN"):
        parse_recipe("b6x16_p32 A dims (256, 8) strides (192) box (128, 8) fill nan")


def test_padded_elements() -> None:
    """CUDA Driver API, cuTensorMapEncodeTiled: CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B."""
    text = "b4x16_p64 A dims (256, n) strides (128) box (128, 8) swizzle 128B"
    recipe = parse_recipe(text)
    assert print_recipe(recipe) == text
    placed = recipe.place(96, {"n": 9})
    assert (placed.element.number, placed.map.bytes, placed.map.shared_bytes) == (14, 512, 1024)
    for changed, address, message in (
        (text.replace("256", "192"), 0, "its rows have 192 elements"),
        (text.replace("(128)", "(144)"), 0, "dimension 1 has a stride of 144 bytes"),
        (text.replace("box (128", "box (64"), 0, "have 64 padded elements"),
        (text.replace("128B", "64B"), 0, "do not swizzle by 64B"),
        (text, 16, "it begins at the address 0x10"),
    ):
        with pytest.raises(LayoutError, match=message):
            parse_recipe(changed).place(address, {"n": 9})


@pytest.mark.parametrize(("text", "strides", "fetched"), [
    ("", (512,), 256), ("", (384,), 128), ("", (512, 8256), 64), ("", (8032,), 0), ("promotion 128B", (512,), 128),
    ("promotion 128B", (64,), 64), ("promotion 0B", (512,), 0), ("", (), 256),
])  # fmt: skip
def test_the_cache_fetches_what_rows_are_multiples_of(text: str, strides: tuple[int, ...], fetched: int) -> None:
    modes = f"dims ({', '.join(['64'] * (len(strides) + 1))})"
    modes += f" strides ({', '.join(map(str, strides))})" if strides else ""
    box = ", ".join(["32"] + ["1"] * len(strides))
    assert parse_recipe(f"f16 A {modes} box ({box}) {text}".rstrip()).place(0, {}).promotion == fetched


def test_elements() -> None:
    assert [element.number for element in MAP_ELEMENTS.values()] == [*range(10), 11, 13, 14, 15]  # CUtensorMapDataType
    assert {name: element.type.bits for name, element in MAP_ELEMENTS.items()} == {
        "u8": 8, "u16": 16, "u32": 32, "s32": 32, "u64": 64, "s64": 64, "f16": 16, "f32": 32, "f64": 64, "bf16": 16,
        "tf32": 32, "e2m1": 4, "b4x16_p64": 4, "b6x16_p32": 6,
    }  # fmt: skip
    names = {"e2m1": "16U4_ALIGN8B", "b4x16_p64": "16U4_ALIGN16B", "b6x16_p32": "16U6_ALIGN16B"}  # cuda.h
    assert {name: MAP_ELEMENTS[name].driver_name for name in names} == names
    for element in MAP_ELEMENTS.values():
        assert set(element.reductions) <= set(REDUCTIONS)


@pytest.mark.parametrize("columns", [72, 68])
def test_rows_that_copies_store_are_whole_units(columns: int) -> None:
    """Whether known or of a launch: GPUs write the rest of 16 bytes behind a row."""
    text = "f16 A dims (n, m) strides (160) box (64, 8)"
    parse_recipe(text).place(1024, {"n": columns, "m": 8})
    parse_recipe(text.replace("(n, m)", f"({columns}, m)"))
    stored, known = f"{text} stored", f"{text} stored".replace("(n, m)", f"({columns}, m)")
    if columns == 72:
        parse_recipe(stored).place(1024, {"n": columns, "m": 8})
        parse_recipe(known)
        return
    with pytest.raises(LayoutError, match="it is stored, and its rows have 136 bytes; GPUs write") as caught:
        parse_recipe(stored).place(1024, {"n": columns, "m": 8})
    assert caught.value.code == "E0322"
    assert str(parse_recipe(stored).cause({"n": columns, "m": 8})) == "n"
    with pytest.raises(LayoutError, match="136 bytes"):
        parse_recipe(known)
