# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions: what they mean, and that every operation of the algebra can be called in them."""

from collections.abc import Callable

import pytest
import tilefold.layout as cute
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import LayoutError
from tilefold.layout.algebra.core import ComposedLayout, Layout
from tilefold.layout.text.evaluate import Evaluator
from tilefold.layout.text.layouts import parse_any, to_cxx, to_text
from tilefold.layout.text.operations import OPERATIONS

from tests.layout.strategies import gapped_layouts, layouts
from tests.layout_command.harness import text_of


@given(layouts(), st.integers(0, 100))
def test_a_layout_means_itself(layout: Layout, offset: int) -> None:
    for value in (layout, ComposedLayout(cute.Swizzle(2, 1, 3), offset, layout), ComposedLayout(layout, 3, layout)):
        assert Evaluator().run(to_text(value))[0].value == value
        assert Evaluator().run(to_cxx(value))[0].value == value


@pytest.mark.parametrize(
    "text",
    [
        "8",
        "-3",
        "(8,(2,?))",
        "?{i64 div=8}",
        "(1@0,2@1@0)",
        "(_,3)",
        "[4:1;_]",
        "<4:1;8>",
        "S<3,4,3>",
        "()",
        "(8)",
        "_",
    ],
)
def test_other_texts_mean_themselves(text: str) -> None:
    assert Evaluator().run(text)[0].value == parse_any(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("raked_product((8,4):(1,8), 8:1)", "((8,8),(1,4)):((32,1),(0,8))"),
        ("A=(8,4):(1,8); B=complement(A,64); logical_divide(B,4)", "(4,1):(32,0)"),
        ("(8,4):(1,8)(3,1)", "11"),
        ("A=(8,4):(1,8); A(11)", "11"),
        ("A=(8,4):(1,8); A((3,1))", "11"),
        ("A=(8,4):(1,8); A(_,1)", "(8):(1)"),
        ("A=(8,4):(1,8); A[1]", "4:8"),
        ("A=((2,4),8):((8,1),16); A[0][1]", "4:1"),
        ("(3,(4,5))[1][0]", "4"),
        ("M=8; N=M; (M,4):(1,N)", "(8,4):(1,8)"),
        ("A=(8,4); A:(4,1)", "(8,4):(4,1)"),
        ("shape((8,4):(4,1)):stride((8,4):(1,8))", "(8,4):(1,8)"),
        ("shape((8,4):(4,1)):(1,8)(3,1)", "11"),
        ("(8,4):(4,1) o 4:2", "4:8"),
        ("((8,4):(4,1) o 4:2)(1)", "8"),
        ("4:1 o 4:1 o 2:2", "2:2"),
        ("S<2,0,3> o (8,8):(8,1)", "S<2,0,3> o 0 o (8,8):(8,1)"),
        ("S<2,0,3>(9)", "8"),
        ("8:1 o 3 o 4:1", "8:1 o 3 o 4:1"),
        ("size<0>((8,4):(1,8))", "8"),
        ("size((8,4):(1,8))", "32"),
        ("get<1,0>((8,(4,2)))", "4"),
        ("shape<1>((8,(4,2)):(1,(8,32)))", "(4,2)"),
        ("group_modes<0,2>((2,3,4):(1,2,6))", "((2,3),4):((1,2),6)"),
        ("logical_divide((8,4):(1,8), (2:4, _))", "((2,4),4):((4,1),8)"),
        ("logical_divide((8,4):(1,8), [2:4; _])", "((2,4),4):((4,1),8)"),
        ("make_layout(2:1, 3:2)", "(2,3):(1,2)"),
        ("make_layout((2,3))", "(2,3):(1,2)"),
        ("congruent((2,(3,4)), (1,(1,1)):(0,(0,0)))", "true"),
        ("compatible((2,12), (2,(3,5)))", "false"),
        ("local_tile((16,8):(8,1), (4,4,2), (1,0,0), (1,1,X))", "[(4,4):(8,1);32]"),
        ("crd2idx((3,1), (8,4):(1,8))", "11"),
        ("crd2idx((3,1), (8,4), (4,1))", "13"),
        ("idx2crd(11, (8,4))", "(3,1)"),
        ("complement((?,4):(1,?), 64)", None),
        ("filter((2,3):(0,5))", "3:5"),
        ("zip_layout(slice(3, (2,2):(1,2)))", "(()):(())"),
        ("zip_layout(((2,3),(4,5)):((1,2),(6,24)))", "((2,4),(3,5)):((1,6),(2,24))"),
        ("cosize((8,8):(1048576,1073741824))", "7523532801"),
        (
            "partition_S(make_tiled_copy(copy_atom('UniversalCopy<uint32_t>',16),(8,4):(1,8),2:1),(64,32):(1,64),3)",
            "[((2,1),4,8):((1,0),16,256);6]",
        ),
        (
            'partition_C(make_tiled_mma(mma_atom("SM80_16x8x8_F32F16F16F32_TN")),(16,8):(8,1),5)',
            "[((2,2),1,1):((1,64),0,0);10]",
        ),
    ],
)
def test_expressions(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(LayoutError):
            text_of(text)
    else:
        assert text_of(text) == value


OPERATIONS_OF_TWO = ("logical_product", "raked_product", "composition", "logical_divide", "max_common_vector")


@pytest.mark.parametrize("name", OPERATIONS_OF_TWO)
@given(gapped_layouts(), gapped_layouts(2))
def test_an_operation_is_the_function_of_its_name(name: str, a: Layout, b: Layout) -> None:
    assert outcome(lambda: text_of(f"{name}({a}, {b})")) == outcome(lambda: to_text(getattr(cute, name)(a, b)))


def outcome(evaluate: Callable[[], str]) -> tuple[str, ...]:
    """What a function returns, or the code and the message of its error."""
    try:
        return (evaluate(),)
    except LayoutError as error:
        return error.code, error.message


def test_every_operation_of_the_algebra_can_be_called() -> None:
    types = {"ComposedLayout", "Layout", "LayoutLike", "Swizzle", "Tiler"}
    assert {name.rstrip("_") for name in set(cute.__all__) - types} <= set(OPERATIONS)
