# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words that name the operands of tcgen05.mma, against values from CuTe and from the tables of the PTX ISA."""

import pytest
from tilefold.layout.atoms.umma_descriptors import InstructionDescriptor, MmaKind, SmemDescriptor, sizes


def test_a_known_word() -> None:
    """f16 to f32, K-major, 128x256 (PTX ISA, Instruction descriptor)."""
    given = InstructionDescriptor(MmaKind.F16, 128, 256)
    assert given.value == 0x8400010
    assert InstructionDescriptor.decode(MmaKind.F16, 0x8400010) == given
    assert list(given.problems(1)) == []
    assert given.types == ("f32", "f16", "f16")


@pytest.mark.parametrize("kind", list(MmaKind))
def test_words_decode_to_what_was_encoded(kind: MmaKind) -> None:
    code = next(iter(kind.inputs))
    fields = {"a": code, "b": code, "negate_a": True, "sparse": True, "selector": 2}
    more = {"a_scale": 3, "b_scale": 2, "is_k96": True} if kind.is_scaled else {"shift": 3}
    given = InstructionDescriptor(kind, 128, 64, **fields, **more)  # pyright: ignore[reportArgumentType]
    assert InstructionDescriptor.decode(kind, given.value) == given
    assert given.value < 1 << 32


@pytest.mark.parametrize(
    ("given", "group", "text"),
    [
        (InstructionDescriptor(MmaKind.F16, 128, 24), 2, "N = 24; kind::f16 of a pair with M = 128 has 16 to 256 in"),
        (InstructionDescriptor(MmaKind.F16, 256, 64), 1, "M = 256; kind::f16 of one block has 64, 128"),
        (InstructionDescriptor(MmaKind.F16, 128, 64, a=2, b=2), 1, "the type of A has code 2; kind::f16 has 0 (f16)"),
        (InstructionDescriptor(MmaKind.F16, 128, 64, d=0, a=1, b=1), 1, "D is f16, and A or B is not"),
        (InstructionDescriptor(MmaKind.TF32, 128, 64, d=0, a=2, b=2), 1, "the type of D has code 0; kind::tf32 has 1"),
        (InstructionDescriptor(MmaKind.I8, 128, 40, d=2), 1, "N = 40"),
        (InstructionDescriptor(MmaKind.I8, 128, 48, d=2, negate_a=True), 1, "integers cannot be negated"),
        (InstructionDescriptor(MmaKind.F8F6F4, 128, 64, a=5, a_is_mn=True), 1, "which are K-major"),
        (InstructionDescriptor(MmaKind.MXF4, 64, 64, a=1, b=1), 1, "M = 64; kind::mxf4 of one block has 128"),
        (InstructionDescriptor(MmaKind.MXF4, 128, 64, a=1, b=1, scale_type=0), 1, "the scales are ue4m3"),
        (InstructionDescriptor(MmaKind.F16, 128, 64, sparse=True), 1, "bit 2 says sparse"),
        (InstructionDescriptor(MmaKind.F16, 128, 64, reserved=0x800000), 1, "bits 0x800000 are set"),
        (InstructionDescriptor(MmaKind.F16, 128, 64, shift=1), 1, "which only .ws has"),
        (InstructionDescriptor(MmaKind.F16, 128, 64, saturate=True), 1, "only integers saturate"),
    ],
)
def test_problems(given: InstructionDescriptor, group: int, text: str) -> None:
    assert text in next(given.problems(group))


def test_shapes_of_weight_stationary_instructions() -> None:
    assert set(sizes(MmaKind.F16, 1, ws=True)) == {32, 64, 128}
    assert not sizes(MmaKind.F16, 2, ws=True)
    assert list(InstructionDescriptor(MmaKind.F16, 64, 96).problems(1, ws=True)) == [
        "N = 96; kind::f16 of one block with .ws with M = 64 has 64, 128, 256"
    ]


def test_descriptors_of_shared_memory() -> None:
    given = SmemDescriptor(0x123, 1, 64, 2, base_offset=3)
    assert SmemDescriptor.decode(given.value) == given
    assert given.value >> 46 & 7 == 1
    assert list(given.problems()) == []


def test_a_descriptor_of_wgmma_is_none_of_these() -> None:
    problems = list(SmemDescriptor.decode(1 << 62 | 64 << 32 | 1 << 16).problems())
    assert problems == ["version 0 in bits 46 to 48, which are 1; wgmma's descriptors have 0"]
    assert "is not a swizzle" in next(SmemDescriptor(0, 1, 64, 3).problems())
    assert "bits 53 to 60" in next(SmemDescriptor(0, 1, 64, 2, reserved=1).problems())
