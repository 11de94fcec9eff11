# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sample of the recorded results of CuTe C++."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import ScaledBasis
from tilefold.layout.algebra.scalars import RunTimeInt

from tests.oracle.judge import judge, normal
from tests.oracle.record import Case, load, show

CASES = [case for file in sorted((Path(__file__).parent.parent / "oracle/data").glob("*.json")) for case in load(file)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.sampled(95)
def test_recorded_case(case: Case) -> None:
    verdict = judge(case)
    assert verdict.passed, verdict.message


def test_a_wrong_result_is_noticed() -> None:
    case = next(c for c in CASES if c.op == "coalesce" and c.outputs)
    wrong = Case(case.op, case.id, case.inputs, {"result": "(7,11):(13,17)"}, True, case.dynamic)
    assert not judge(wrong).passed
    refused = next(c for c in CASES if c.outputs is None)
    assert not judge(Case("flatten", "x", {"layout": "4:1"}, None, True, False)).passed
    assert not judge(Case("no_such_operation", "x", refused.inputs, None, True, False)).passed


def _tma(type: str) -> Case:
    return next(c for c in CASES if c.op == "tma_map" and c.trusted and c.outputs and c.inputs["type"] == type)


@pytest.mark.parametrize(
    ("like", "type", "number", "name"),
    [
        ("double", "int64_t", 5, "INT64"),
        ("float_e4m3_t", "float_e5m2_t", 0, "UINT8"),
        ("half_t", "uint16_t", 1, "UINT16"),
    ],
)
def test_types_of_tensor_maps(like: str, type: str, number: int, name: str) -> None:
    case = _tma(like)
    assert case.outputs is not None
    outputs = {**case.outputs, "encode": {**case.outputs["encode"], "type": number, "type_name": name}}
    assert judge(replace(case, inputs={**case.inputs, "type": type}, outputs=outputs)).passed
    assert not judge(replace(case, inputs={**case.inputs, "type": "bool"}, outputs=outputs)).passed


@pytest.mark.parametrize("offset", ["0", "smem_ptr[16b](unset)"])
def test_parts_of_shared_memory_with_the_swizzle_in_their_text(offset: str) -> None:
    case = next(
        c for c in CASES if c.op == "tma_map" and c.outputs and c.inputs["smem"].startswith("Sw<3,4,3> o smem_ptr[16b]")
    )
    assert case.outputs is not None
    side = "partition_D" if case.inputs["kind"].startswith("load") else "partition_S"
    for swizzle, passes in (("Sw<3,4,3>", True), ("Sw<2,4,3>", False)):
        slices = [
            {**part, side: {**part[side], "layout": f"{swizzle} o {offset} o {part[side]['layout']}"}}
            for part in case.outputs["slices"]
        ]
        assert judge(replace(case, outputs={**case.outputs, "slices": slices})).passed == passes


def _layout(shape: Any, stride: Any) -> Layout:
    return Layout(shape, stride)


def test_strides_of_extents_of_one_also_at_run_time() -> None:
    one = RunTimeInt(1)
    strides: list[Any] = [0, 5, RunTimeInt(3), ScaledBasis(1, (1,))]
    layouts = [_layout((RunTimeInt(8), one), (1, stride)) for stride in strides]
    assert {show(normal(layout), False) for layout in layouts} == {"(8,1):(1,0)"}
    assert show(normal(_layout((8, RunTimeInt(2)), (1, 5))), False) == "(8,2):(1,5)"


@pytest.mark.parametrize(
    ("atom", "A", "B"),
    [
        ("SM80_8x8x128_S32U1U1S32_TN_XORPOPC", "((4,8),32):((256,1),8)", "((4,8),32):((256,1),8)"),
        ("SM80_8x8x128_S32U1U1S32_TN_ANDPOPC", "((4,8),32):((256,1),8)", "((4,8),32):((256,1),8)"),
        # CuTe's stride has another profile than the shape
        ("SM80_16x8x128_S32U1U1S32_TN_XORPOPC", "((4,8),(32,2)):((512,1),((16,8)))", "((4,8),32):((256,1),8)"),
        ("SM80_16x8x256_S32U1U1S32_TN_XORPOPC", "((4,8),(32,2,2)):((512,1),(16,8,2048))",
         "((4,8),(32,2)):((256,1),(8,1024))"),
        ("SM80_8x8x32_S32S4S4S32_TN", "((4,8),(8)):((64,1),(8))", "((4,8),(8)):((64,1),(8))"),
    ],
)  # fmt: skip
def test_profiles_of_the_atoms_of_bits(atom: str, A: str, B: str) -> None:
    assert judge(Case("mma_atom", atom, {"mma": atom}, {"LayoutA_TV": A, "LayoutB_TV": B}, True, False)).passed


@pytest.mark.parametrize(
    ("block", "target", "order", "result"),
    [
        ("2:3", "(4,6)", None, "((2,2),(1,(2,3))):((3,1),(0,(2,6)))"),
        ("(2,8):(144,3)", "(4,32)", None, "((2,2),(8,(2,2))):((144,1),(3,(2,24)))"),
        ("(8,3,2):(8,64,4)", "(24,12,4)", "(0,1,2)", "((8,3),(3,(2,2)),(2,2)):((8,1),(64,(3,192)),(4,576))"),
    ],
)
def test_a_product_in_which_copies_meet_is_refused(block: str, target: str, order: str | None, result: str) -> None:
    """CuTe computes these products, in which two elements have one index."""
    inputs = {"layout": block, "target": target} | ({"order": order} if order else {})
    assert judge(Case("tile_to_shape", "x", inputs, {"result": result}, True, False)).passed
    assert not judge(Case("tile_to_shape", "x", inputs, {"result": "24:1"}, True, False)).passed
