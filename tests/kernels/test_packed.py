# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of elements narrower than a byte: arguments, copies, shared memory, multiplications, and what they refuse."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.params import expand
from tilefold.runtime.engine import TensorArgument

from tests.examples import examples
from tests.kernels.harness import MAX_BYTES, STAGES, TARGET, on_gpu, program_of, simulate
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program, load

SOURCE = Path(__file__).with_name("packed.cute")
TYPES = {
    "si4": {"ATOM": '"SM80_16x8x64_S32S4S4S32_TN"'},
    "ui4": {"ATOM": '"SM80_16x8x64_S32U4U4S32_TN_SATURATE"', "LOW": "0"},
    "i4": {"ATOM": '"SM80_16x8x64_S32S4S4S32_TN_SATURATE"'},
    "ui1": {"ATOM": '"SM80_16x8x256_S32U1U1S32_TN_ANDPOPC"', "LOW": "0", "BITS": "1", "K": "512"},
}


def packed(element: str) -> tuple[Program, Launch]:
    found = load(expand(SOURCE.read_text(), SOURCE.name, {"T": element, **TYPES[element]}))
    (launch,) = read_launches(found.module, found.source, Changes())
    return found, launch


@pytest.mark.parametrize("element", TYPES)
def test_through_shared_memory_at_every_stage(element: str) -> None:
    """Of AND and popcount, too, the product of bits is what is summed."""
    found, launch = packed(element)
    for stage in STAGES:
        ran = simulate(found, launch, stage)
        a, b = (ran.array(name).astype(np.int64) for name in "AB")
        assert np.array_equal(ran.array("D"), ran.array("A"))
        assert np.array_equal(ran.array("C"), a @ b.T)
        assert (a.min() < 0) == (element in ("si4", "i4"))


@pytest.mark.gpu
@pytest.mark.parametrize("element", TYPES)
def test_through_shared_memory_on_a_gpu(element: str) -> None:
    from tilefold.runtime.cuda import CudaEngine

    found, launch = packed(element)
    values = on_gpu(found, launch, CudaEngine())
    simulated = simulate(found, launch, "instr")
    for name in "CD":
        assert np.array_equal(values[name], simulated.array(name))


def test_arguments_are_packed() -> None:
    """A byte holds neighbours by their index in the layout, the first in the lowest bits."""
    text = copy("si4", "(4,2):(2,1)", "(4,2):(2,1)").replace('"integers(-8, 8, seed=1)"', '"arange(-3)"')
    found, launch = of(text)
    arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
    given_a = arguments.launchable()["A"]
    assert isinstance(given_a, TensorArgument)
    assert given_a.storage.tobytes() == bytes([0x1D, 0x2E, 0x3F, 0x40])
    ran = simulate(found, launch, "instr")
    assert np.array_equal(ran.array("B"), np.arange(-3, 5).reshape(4, 2, order="F"))


def copy(element: str, source: str, target: str, body: str = "tile.copy %A, %B") -> str:
    """A copy of the whole of A to B by one thread."""
    kinds = [f'!tile.tensor<{element}, gmem, align<16>, "{layout}">' for layout in (source, target)]
    return f"""\
gpu.module @m {{
tile.kernel @k(%A: {kinds[0]}, %B: {kinds[1]}) threads(1) {{
{body}
tile.return
}}
}}
run.launch @m::@k grid(1) {{
  run.arg "A" : {kinds[0]} = "integers({"0, 2" if element == "ui1" else "-8, 8"}, seed=1)"
  run.arg "B" : {kinds[1]} = "0"
  run.check "B == A"
}}
"""


def of(text: str) -> tuple[Program, Launch]:
    found = program_of(text)
    (launch,) = read_launches(found.module, found.source, Changes())
    return found, launch


@settings(max_examples=examples(12), deadline=None)
@given(
    st.sampled_from(["si4", "ui1"]),
    st.permutations([8, 2, 4]),
    st.permutations([8, 2, 4]),
    st.sampled_from([0, 8, 16]),
)
def test_copies_between_layouts(element: str, first: list[int], second: list[int], pad: int) -> None:
    """Layouts of the modes 8, 2 and 4, the 8 contiguous, in any order of memory and with any padding by bytes."""

    def layout(order: list[int]) -> str:
        strides, step = {8: 1}, 8
        for extent in order:
            if extent != 8:
                strides[extent] = step
                step = step * extent + pad
        return f"(8,2,4):({strides[8]},{strides[2]},{strides[4]})"

    found, launch = of(copy(element, layout(first), layout(second)))
    for stage in STAGES:
        ran = simulate(found, launch, stage)
        assert np.array_equal(ran.array("B"), ran.array("A"))


@pytest.mark.parametrize(
    ("source", "target"),
    [("(4,4):(1,4)", "(4,4):(4,1)"), ("(4,4):(1,5)", "(4,4):(1,5)"), ("(3,4):(1,4)", "(3,4):(1,4)")],
)
def test_copies_that_would_take_a_byte_apart(source: str, target: str) -> None:
    found, launch = of(copy("si4", source, target))
    with pytest.raises(TilefoldError) as simulated:
        simulate(found, launch, "cute")
    assert simulated.value.code == Code.PACKED_ELEMENTS.id
    with pytest.raises(ProgramError) as refused:
        found.ptx(TARGET)
    assert Code.PACKED_ELEMENTS.id in str(refused.value)


RUN_TIME = """\
!g = !tile.tensor<ui4, gmem, align<16>, "(?,64):(?{div=32},1)">
!given = !tile.tensor<ui4, gmem, align<16>, "(64,64):(96,1)">
gpu.module @m {
tile.kernel @k(%A: !g, %B: !g) threads(32) {
%t = gpu.thread_id x
%b = gpu.block_id x
%gA = tile.local_tile %A, "(16,64)", (%b, 0) ragged
%gB = tile.local_tile %B, "(16,64)", (%b, 0) ragged
%copy = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", ui4> thr "(16,2):(2,1)" val "(1,32):(0,1)"
%x = tile.partition_S %copy, %gA, %t
%y = tile.partition_D %copy, %gB, %t
tile.copy %copy, %x, %y
tile.return
}
}
run.launch @m::@k grid(4) {
  run.arg "A" : !given = "integers(0, 16, seed=0)"
  run.arg "B" : !given = "poison"
}
"""


def test_run_time_strides() -> None:
    found, launch = of(RUN_TIME)
    for stage in STAGES:
        ran = simulate(found, launch, stage)
        assert np.array_equal(ran.array("B"), ran.array("A"))
    with pytest.raises(ProgramError) as refused:
        of(RUN_TIME.replace("?{div=32}", "?"))
    assert "E0319" in str(refused.value)


def test_a_fill_that_does_not_fit_is_shown_where_it_stands() -> None:
    _, launch = of(copy("si4", "8:1", "8:1").replace("integers(-8, 8,", "integers(-8, 9,"))
    with pytest.raises(ProgramError) as refused:
        prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
    (found,) = refused.value.diagnostics
    assert found.code == "E3106"
    assert found.place is not None
    assert found.place.text[found.place.column - 1 : found.place.end - 1] == "integers(-8, 9, seed=1)"


def test_views_that_would_begin_within_a_byte() -> None:
    body = "%c = arith.constant 1 : index\n%v = tile.slice %A, (%c, _)\ntile.copy %v, %v"
    with pytest.raises(ProgramError) as refused:
        of(copy("si4", "(4,4):(1,4)", "(4,4):(1,4)", body))
    assert "within a byte" in str(refused.value)


def test_a_fill_must_fit() -> None:
    found, launch = of(copy("si4", "8:1", "8:1").replace("-8, 8", "0, 16"))
    with pytest.raises(TilefoldError) as refused:
        simulate(found, launch, "instr")
    assert refused.value.code == Code.RUN_ARGUMENT.id
    assert "holds si4" in str(refused.value)
