# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of a warp on a GPU: what the simulator computes, bit for bit, or within the error that PTX states."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.cuda.harness import artifact
from tests.emit.harness import kernel, parse

pytestmark = pytest.mark.gpu

POINTERS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16, %C: !ptx.ptr<global> align 16"
WARP = LaunchConfig((1, 1, 1), (32, 1, 1))
HEAD = """
%t = ptx.sreg "tid.x"
%c4 = arith.constant 4 : i32
%at = arith.muli %t, %c4 : i32
%pa = ptx.ptr_add %A, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%pb = ptx.ptr_add %B, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%x = ptx.ld %pa align 4 : !ptx.ptr<global> -> i32
%c1 = arith.constant 1 : i32
%zero = arith.constant 0 : i32
"""
STORE = "ptx.st %r, %pb align 4 : i32, !ptx.ptr<global>"


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


def run(engine: CudaEngine, body: str, a: NDArray[Any], places: int = 4) -> None:
    """Runs a kernel on both, with 32 words in %A and zeros in %B and %C; the results must have the same bits."""
    text = kernel(f"{HEAD}{body}", POINTERS, shared=1024)
    found: list[list[NDArray[Any]]] = []
    for on_gpu in (False, True):
        arrays = [a.copy(), np.zeros(32, np.int32), np.zeros(places, np.int32)]
        args = {name: TensorArgument(array) for name, array in zip("ABC", arrays, strict=True)}
        if on_gpu:
            engine.launch(artifact(text, engine.driver.target), WARP, args)
        else:
            SimEngine(sink=lambda _: None).launch(SimProgram(parse(text), "k"), WARP, args)
        found.append(arrays)
    for name, ours, theirs in zip("ABC", *found, strict=True):
        for at in np.flatnonzero(ours != theirs):
            pytest.fail(
                f"%{name}[{at}]: the simulator has {ours[at]:#x}, the GPU {theirs[at]:#x}; %A[{at}] was {a[at]:#x}"
            )


WORDS = np.random.default_rng(5).integers(-(2**31), 2**31, 32).astype(np.int32)
SMALL = (np.arange(32) * 7 % 5).astype(np.int32)


@pytest.mark.parametrize("width", [32, 8])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(engine: CudaEngine, mode: str, width: int) -> None:
    run(engine, f'%r = ptx.shfl.sync "{mode}" %x, %c4 width {width} : i32\n{STORE}', WORDS)
    run(engine, f'%r = ptx.shfl.sync "{mode}" %t, %x width {width} : i32\n{STORE}', SMALL)


@pytest.mark.parametrize("control", [0x1F, 0x181F, 0x1807, 0x1800])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_that_say_whether_the_lane_is_valid(engine: CudaEngine, mode: str, control: int) -> None:
    body = f"""
        %c = arith.constant {control} : i32
        %v, %p = ptx.shfl.sync.valid "{mode}" %t, %x, %c : i32
        %q = arith.extui %p : i1 to i32
        %six = arith.constant 6 : i32
        %high = arith.shli %q, %six : i32
        %r = arith.ori %v, %high : i32
        {STORE}"""
    run(engine, body, SMALL)


@pytest.mark.parametrize("body", [
    *(f'%r = ptx.redux.sync "{kind}" %x : i32' for kind in ("add", "min", "max", "umin", "umax", "and", "or", "xor")),
    *(
        f'%p = arith.cmpi ult, %x, %c4 : i32\n%v = ptx.vote.sync "{mode}" %p : i1\n%r = arith.extui %v : i1 to i32'
        for mode in ("all", "any", "uni")
    ),
    '%p = arith.cmpi ult, %x, %c4 : i32\n%r = ptx.vote.sync "ballot" %p : i32',
    *(
        f'%p = arith.cmpi ult, %x, %c4 : i32\n%v = ptx.bar.red "{kind}" %p, 1 : i1\n%r = arith.extui %v : i1 to i32'
        for kind in ("and", "or")
    ),
    '%p = arith.cmpi ult, %x, %c4 : i32\n%r = ptx.bar.red "popc" %p, 2 threads 32 : i32',
    "%five = arith.constant 5 : i32\n%n = arith.shrui %t, %five : i32\nptx.bar.sync 3 plus %n threads 32\n"
    "ptx.bar.sync 0 plus %n\n%r = arith.addi %x, %n : i32",
    "%r = ptx.match.any.sync %x",
    "%r = ptx.activemask",
    "%r = ptx.prmt %x, %t, %at",
    *(f'%r = ptx.dp4a "{a}.{b}" %x, %at, %t' for a in ("s32", "u32") for b in ("s32", "u32")),
])  # fmt: skip
@pytest.mark.parametrize("words", [WORDS, SMALL], ids=["any", "small"])
def test_words(engine: CudaEngine, body: str, words: NDArray[np.int32]) -> None:
    run(engine, f"{body}\n{STORE}", words)


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("kind", ["add", "min", "max", "umin", "umax", "and", "or", "xor"])
def test_atomic_operations(engine: CudaEngine, kind: str, space: str) -> None:
    """What is left in the end; the order of the lanes is the GPU's own."""
    if space == "global":
        body = f'ptx.red "{kind}" %C, %x : !ptx.ptr<global>, i32'
    else:
        body = f"""
            %s = ptx.smem.addr 0
            %first = arith.cmpi eq, %t, %zero : i32
            scf.if %first {{
              ptx.st %zero, %s align 4 : i32, !ptx.ptr<shared>
            }}
            ptx.bar.sync 0
            %old = ptx.atom "{kind}" %s, %x order "acq_rel" scope "cta" : !ptx.ptr<shared>, i32
            ptx.bar.sync 0
            %r = ptx.ld %s align 4 : !ptx.ptr<shared> -> i32
            {STORE}"""
    run(engine, body, WORDS)


def test_compare_and_exchange_and_added_floats(engine: CudaEngine) -> None:
    run(
        engine,
        f"%old = ptx.atom.cas %C, %zero, %c4 : !ptx.ptr<global>, i32\n%r = arith.ori %zero, %c4 : i32\n{STORE}",
        WORDS,
    )
    whole = "%n = arith.remui %t, %c4 : i32\n"
    for type in ("f32", "f16", "bf16") if engine.driver.target.sm >= 90 else ("f32", "f16"):
        run(
            engine,
            f'{whole}%f = arith.sitofp %n : i32 to {type}\nptx.red "add" %C, %f : !ptx.ptr<global>, {type}',
            WORDS,
        )
    if engine.driver.target.sm >= 90:
        vector = "%f = arith.sitofp %n : i32 to f32\n%v = vector.broadcast %f : f32 to vector<4xf32>\n"
        run(engine, f'{whole}{vector}ptx.red "add" %C, %v : !ptx.ptr<global>, vector<4xf32>', WORDS)


def test_elect_chooses_one_lane(engine: CudaEngine) -> None:
    if engine.driver.target.sm < 90:
        pytest.skip("elect.sync needs sm_90")
    text = kernel(f"{HEAD}%e = ptx.elect.sync\n%r = arith.extui %e : i1 to i32\n{STORE}", POINTERS)
    chosen = np.zeros(32, np.int32)
    args = {"A": TensorArgument(WORDS.copy()), "B": TensorArgument(chosen), "C": TensorArgument(np.zeros(4, np.int32))}
    engine.launch(artifact(text, engine.driver.target), WARP, args)
    assert sorted(chosen.tolist()) == [0] * 31 + [1]


Reference = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _inverse(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / x


def _inverse_root(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / np.sqrt(x)


APPROXIMATE: list[tuple[str, Reference, float, float, float, float]] = [
    ("ex2", np.exp2, -20, 20, 2**-22, 0), ("lg2", np.log2, 0.01, 100, 2**-22, 2**-21),
    ("rcp", _inverse, 0.1, 90, 2**-22.9, 0), ("rsqrt", _inverse_root, 0.1, 90, 2**-22, 0),
    ("sqrt", np.sqrt, 0.1, 90, 2**-22, 0), ("sin", np.sin, -3.1, 3.1, 0, 2**-20),
    ("cos", np.cos, -3.1, 3.1, 0, 2**-20), ("tanh", np.tanh, -4, 4, 2**-10.9, 0),
]  # fmt: skip
"""Function, reference, range, and the greatest relative and absolute error."""


def function_of(engine: CudaEngine, op: str, type: str, x: NDArray[Any]) -> NDArray[np.float64]:
    """What a GPU computes of 32 numbers."""
    size = x.itemsize
    text = kernel(
        f"""
        %t = ptx.sreg "tid.x"
        %size = arith.constant {size} : i32
        %at = arith.muli %t, %size : i32
        %pa = ptx.ptr_add %A, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        %pb = ptx.ptr_add %B, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        %x = ptx.ld %pa align {size} : !ptx.ptr<global> -> {type}
        %r = {op} %x : {type}
        ptx.st %r, %pb align {size} : {type}, !ptx.ptr<global>""",
        POINTERS,
    )
    out = np.zeros_like(x)
    args = {"A": TensorArgument(x), "B": TensorArgument(out), "C": TensorArgument(np.zeros(4, np.int32))}
    engine.launch(artifact(text, engine.driver.target), WARP, args)
    return out.astype(np.float64)


@pytest.mark.parametrize("ftz", ["", " ftz"])
@pytest.mark.parametrize(
    ("name", "reference", "low", "high", "rtol", "atol"), APPROXIMATE, ids=[c[0] for c in APPROXIMATE]
)
def test_approximations_are_as_near_as_ptx_says(
    engine: CudaEngine, name: str, reference: Reference, low: float, high: float, rtol: float, atol: float, ftz: str
) -> None:
    if name == "tanh" and ftz:
        return
    for seed in range(8):
        x = np.random.default_rng(seed).uniform(low, high, 32).astype(np.float32)
        got = function_of(engine, f"ptx.{name}.approx{ftz}", "f32", x)
        np.testing.assert_allclose(got, reference(x.astype(np.float64)), rtol=rtol + 2**-24, atol=atol)


@pytest.mark.parametrize(("type", "dtype", "error", "sm"), [
    ("f16", np.float16, 2**-9.5, 75), ("bf16", ml_dtypes.bfloat16, 2**-6.9, 90),
])  # fmt: skip
def test_approximations_of_16_bits(engine: CudaEngine, type: str, dtype: Any, error: float, sm: int) -> None:
    if engine.driver.target.sm < sm:
        pytest.skip(f"needs sm_{sm}")
    x = np.linspace(-4, 4, 32).astype(dtype)
    for name, reference in (("ex2", np.exp2), ("tanh", np.tanh)):
        got = function_of(engine, f"ptx.{name}.approx", type, x)
        np.testing.assert_allclose(got, reference(x.astype(np.float64)), rtol=error, atol=error)


@pytest.mark.parametrize("pair", ["e4m3x2", "e5m2x2"])
@pytest.mark.parametrize("relu", ["", ".relu"])
def test_conversions_of_pairs(engine: CudaEngine, pair: str, relu: str) -> None:
    if engine.driver.target.sm < 89:
        pytest.skip("8-bit floats need sm_89")
    numbers = np.random.default_rng(3).standard_normal(32).astype(np.float32) * np.float32(100)
    numbers[:4] = [0.0, -0.0, 1e6, -1e6]
    body = f"""
        %f = arith.bitcast %x : i32 to f32
        %n = arith.negf %f : f32
        %e = ptx.cvt "rn.satfinite{relu}.{pair}.f32" %f, %n : (f32, f32) -> i16
        %h = ptx.cvt "rn{relu}.f16x2.{pair}" %e : (i16) -> vector<2xf16>
        %b = ptx.cvt "rn.satfinite{relu}.{pair}.f16x2" %h : (vector<2xf16>) -> i16
        %s = ptx.shfl.sync "bfly" %h, %c1 : vector<2xf16>
        %v = vector.bitcast %s : vector<2xf16> to vector<1xi32>
        %w = vector.extract %v[0] : i32 from vector<1xi32>
        %y = arith.extui %b : i16 to i32
        %r = arith.xori %w, %y : i32
        {STORE}"""
    run(engine, body, numbers.view(np.int32))


@pytest.mark.parametrize("pair", ["f16x2", "bf16x2"])
@pytest.mark.parametrize("relu", ["", ".relu"])
def test_conversions_to_16_bits_and_tf32(engine: CudaEngine, pair: str, relu: str) -> None:
    numbers = np.random.default_rng(4).standard_normal(32).astype(np.float32)
    type = f"vector<2x{pair.removesuffix('x2')}>"
    body = f"""
        %f = arith.bitcast %x : i32 to f32
        %n = arith.negf %f : f32
        %h = ptx.cvt "rn{relu}.{pair}.f32" %f, %n : (f32, f32) -> {type}
        %v = vector.bitcast %h : {type} to vector<1xi32>
        %w = vector.extract %v[0] : i32 from vector<1xi32>
        %q = ptx.cvt "rna.tf32.f32" %f : (f32) -> f32
        %y = arith.bitcast %q : f32 to i32
        %r = arith.xori %w, %y : i32
        {STORE}"""
    run(engine, body, numbers.view(np.int32))


def test_a_semaphore_between_blocks(engine: CudaEngine) -> None:
    """Blocks take turns at adding to the same elements without atomic additions."""
    body = """
        %b = ptx.sreg "ctaid.x"
        scf.while () : () -> () {
          %v = ptx.ld.acquire %C : !ptx.ptr<global> -> i32
          %more = arith.cmpi ne, %v, %b : i32
          scf.condition(%more)
        } do {
          ptx.nanosleep %c4
          scf.yield
        }
        ptx.bar.sync 0
        %old = ptx.ld %pb align 4 : !ptx.ptr<global> -> i32
        %new = arith.addi %old, %x : i32
        ptx.st %new, %pb align 4 : i32, !ptx.ptr<global>
        ptx.bar.sync 1 threads 32
        %first = arith.cmpi eq, %t, %zero : i32
        scf.if %first {
          ptx.fence "acq_rel"
          %next = arith.addi %b, %c1 : i32
          ptx.st.release %next, %C : i32, !ptx.ptr<global>
        }"""
    text = kernel(f"{HEAD}{body}", POINTERS)
    out, turn = np.zeros(32, np.int32), np.zeros(1, np.int32)
    args = {"A": TensorArgument(SMALL.copy()), "B": TensorArgument(out), "C": TensorArgument(turn)}
    engine.launch(artifact(text, engine.driver.target), LaunchConfig((64, 1, 1), (32, 1, 1)), args)
    assert turn[0] == 64
    assert out.tolist() == (SMALL * 64).tolist()
