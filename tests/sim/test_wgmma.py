# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a mistake and its cure stand on one line
"""Multiplications by warpgroups: their results, and the mistakes with them, each with its cure."""

import numpy as np
import pytest
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.sim_engine import SimEngine

from tests import warp_specialised
from tests.sim.harness import entry, launch_on, seeded
from tests.warpgroups import Problem

MODES = (("INTER", 2), ("SW32", 2), ("SW64", 2), ("SW128", 4))
FORMS = (
    *(f"F32F16F16_SS<Major::{a},Major::{b}>" for a in ("K", "MN") for b in ("K", "MN")),
    *("F16F16F16_SS<Major::MN,Major::K>", "F32BF16BF16_RS<Major::K,Major::MN>", "F16F16F16_RS<Major::K,Major::K>"),
)
PROBLEMS = [
    *(Problem(f"SM90_64x64x16_{form}", mode, blocks) for form in FORMS for mode, blocks in MODES),
    *(Problem(f"SM90_64x24x{k}_{types}_{space}_TN", mode, blocks)
      for k, types in ((8, "F32TF32TF32"), (32, "F32E4M3E5M2"), (32, "F16E5M2E5M2"), (32, "S32S8U8"), (32, "S32U8S8"))
      for space in ("SS", "RS") for mode, blocks in MODES[1::2]),
    Problem("SM90_64x256x16_F32F16F16_SS<Major::K,Major::MN>", "SW128", 4),
    Problem("SM90_64x8x32_S32U8U8_RS_TN_SATURATE", "SW32", 2),
    Problem("SM90_64x8x16_F32F16F16_SS<Major::K,Major::K>", "SW64", 2, "negate_a"),
]  # fmt: skip


def computed(problem: Problem, a: np.ndarray, b: np.ndarray, seed: int | None = None) -> np.ndarray:
    """D as a matrix."""
    given, out = problem.given(a, b), problem.output()
    args = {"A": given[0], "B": given[1], "C": out}
    launch_on(problem.text(), args, block=(128, 1, 1), engine=SimEngine(seeded(seed)))
    return problem.matrix(out)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"{p.name} {p.mode}")
@pytest.mark.sampled(13)
def test_results(problem: Problem) -> None:
    a, b = problem.elements(seed=1, exact=True)
    sign = -1 if problem.flags else 1
    np.testing.assert_array_equal(
        computed(problem, a, b).astype(np.float64), sign * a.astype(np.float64) @ b.astype(np.float64).T
    )


@pytest.mark.parametrize("seed", range(3))
def test_results_do_not_depend_on_the_order_of_warps(seed: int) -> None:
    problem = PROBLEMS[0]
    a, b = problem.elements(seed=1, exact=True)
    np.testing.assert_array_equal(computed(problem, a, b, seed=seed), computed(problem, a, b))


def test_each_instruction_rounds_once() -> None:
    """1 + 2^-24 + 2^-24 is 1 where each is added by an instruction of its own, and 1 + 2^-23 where one adds them."""
    problem = Problem("SM90_64x8x16_F32F16F16_SS<Major::K,Major::K>", "INTER", 2)
    a, b = np.zeros((64, 32), np.float16), np.zeros((8, 32), np.float16)
    a[:, 0], b[:, 0] = 1, 1
    a[:, 16:18] = b[:, 16:18] = 2.0**-12
    assert (computed(problem, a, b) == np.float32(1 + 2.0**-23)).all()
    a[:, 1], b[:, 1], a[:, 17] = 2.0**-12, 2.0**-12, 0
    assert (computed(problem, a, b) == 1).all()


def test_integers_wrap_or_are_clamped() -> None:
    for ending, expected in (("", -(2**31)), ("_SATURATE", 2**31 - 1)):
        problem = Problem(f"SM90_64x8x32_S32S8S8_SS_TN{ending}", "SW32", 1)
        text = problem.text().replace("%more0 = arith.constant false", "%more0 = arith.constant true").replace(
            "ptx.wgmma.fence",
            "%most = arith.constant 2147483647 : i32\n"
            + "".join(
                f"%i{n} = arith.constant {4 * n} : i32\n%e{n} = ptx.ptr_add %d, %i{n} : !ptx.ptr<local>, i32 -> "
                f"!ptx.ptr<local>\nptx.st %most, %e{n} align 4 : i32, !ptx.ptr<local>\n"
                for n in range(4)
            )
            + "ptx.wgmma.fence",
        )  # fmt: skip
        a, b = np.zeros((64, 32), np.int8), np.zeros((8, 32), np.int8)
        a[:, 0] = b[:, 0] = 1
        given, out = problem.given(a, b), problem.output()
        launch_on(text, {"A": given[0], "B": given[1], "C": out}, block=(128, 1, 1))
        assert (problem.matrix(out) == expected).all()


ATOM = "SM90_64x8x16_F32F16F16_SS<Major::K,Major::K>"
WIDER = "SM90_64x16x16_F32F16F16_SS<Major::K,Major::K>"
OF_REGISTERS = "SM90_64x8x16_F32F16F16_RS<Major::K,Major::K>"
POINTERS = "%A: !ptx.ptr<global> align 16, %C: !ptx.ptr<global> align 16"
SETUP = """
%t = ptx.sreg "tid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%five = arith.constant 5 : i32
%sixteen = arith.constant 16 : i32
%bytes = arith.constant 2048 : i32
%false = arith.constant false
%true = arith.constant true
%x = arith.constant 1.0 : f32
%s = ptx.smem.addr 0
%bar = ptx.smem.addr 8192
%leads = arith.cmpi eq, %t, %zero : i32
%warp = arith.shrui %t, %five : i32
%o = arith.muli %t, %sixteen : i32
%p = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%q = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%c = ptx.ptr_add %C, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%v = ptx.ld %p align 16 : !ptx.ptr<global> -> vector<4xi32>
%d = ptx.local.alloc 32 align 16
%r = ptx.local.alloc 16 align 16
%a = ptx.wgmma.descriptor %s leading 64 stride 8 swizzle 0
%b = ptx.wgmma.descriptor %s leading 64 stride 8 swizzle 0
"""
"""A is 64 x 16 in 2048 bytes of shared memory, of which B is the first 8 rows; each thread has 16 bytes of them."""

FILL = "ptx.st %v, %q align 16 : vector<4xi32>, !ptx.ptr<shared>\n"
PROXY = "ptx.fence.proxy.async\n"
SYNC = "ptx.bar.sync 0\n"
FENCE = "ptx.wgmma.fence\n"
MULTIPLY = f'ptx.wgmma.mma_async "{ATOM}" %d, %a, %b, %false : i64\n'
ADD = MULTIPLY.replace("%false", "%true")
OTHER = f'ptx.wgmma.mma_async "{WIDER}" %d, %a, %b, %false : i64\n'
BY_REGISTERS = f'ptx.wgmma.mma_async "{OF_REGISTERS}" %d, %r, %b, %false : !ptx.ptr<local>\n'
SET = "ptx.st %v, %r align 16 : vector<4xi32>, !ptx.ptr<local>\n"
TOUCH = "ptx.st %x, %d align 4 : f32, !ptx.ptr<local>\n"
COMMIT = "ptx.wgmma.commit_group\n"
WAIT = "ptx.wgmma.wait_group 0\n"
USE = (
    "%w = ptx.ld %d align 16 : !ptx.ptr<local> -> vector<4xf32>\n"
    "ptx.st %w, %c align 16 : vector<4xf32>, !ptx.ptr<global>\n"
)
FILLED = FILL + PROXY + SYNC
RIGHT = FILLED + FENCE + MULTIPLY + COMMIT + WAIT + USE
REGISTERS = FILLED + SET + FENCE + BY_REGISTERS + COMMIT + WAIT + USE
INIT = "scf.if %leads {\nptx.mbarrier.init %bar, %one\nptx.fence.mbarrier_init\n}\n" + SYNC
LOAD = (
    "scf.if %leads {\nptx.mbarrier.arrive.expect_tx %bar, %bytes\nptx.cp.async.bulk.load %s, %A, %bytes, %bar\n}\n"
    "ptx.mbarrier.wait %bar, %zero\n"
)
ONE_WARP = "%first = arith.cmpi eq, %warp, %zero : i32\n"


def run(body: str, threads: int = 128, seed: int | None = None) -> np.ndarray:
    """The accumulators that a kernel writes."""
    a, out = np.ones(4 * threads, np.float32).view(np.uint8), np.zeros(4 * threads, np.float32)
    text = entry(SETUP + body, POINTERS, str(threads), shared=8448)
    launch_on(text, {"A": a, "C": out}, block=(threads, 1, 1), engine=SimEngine(seeded(seed)))
    return out


def refused(body: str, code: str, threads: int = 128, seed: int | None = None) -> SimulationError:
    """The error that a kernel raises."""
    with pytest.raises(SimulationError) as caught:
        run(body, threads, seed)
    assert caught.value.code == code, str(caught.value)
    return caught.value


MISTAKES = {
    "no barrier": (RIGHT.replace(SYNC, ""), "E3205", "with no barrier in between", (PROXY, PROXY + SYNC)),
    "shared memory overwritten": (
        FILLED + FENCE + MULTIPLY + COMMIT + FILL + WAIT + USE, "E3206",
        "while ptx.wgmma.mma_async at test.cute:30:1 of warps 0 to 3 is still reading it",
        (FILL + WAIT, WAIT + SYNC + FILL),
    ),
    "a group too few": (
        FILLED + INIT + FENCE + MULTIPLY + COMMIT + "ptx.wgmma.wait_group 1\n" + SYNC + LOAD + WAIT + USE, "E3206",
        "is still reading it", ("wait_group 1", "wait_group 0"),
    ),
    "accumulators written before the wait": (
        FILLED + FENCE + MULTIPLY + COMMIT + TOUCH + WAIT + USE, "E3206", "is still writing it",
        (TOUCH + WAIT, WAIT + TOUCH),
    ),
    "no fence after accumulators were written": (
        FILLED + FENCE + TOUCH + MULTIPLY + COMMIT + WAIT + USE, "E3225", "the thread has used since the last ptx.wgmma.fence",
        (FENCE + TOUCH, TOUCH + FENCE),
    ),
    "no fence after accumulators were read": (
        FILLED + FENCE + MULTIPLY + COMMIT + WAIT + USE + ADD + COMMIT + WAIT, "E3225", "multiplies with accumulators",
        (USE + ADD, USE + FENCE + ADD),
    ),
    "no fence after registers of A were written": (
        FILLED + FENCE + SET + BY_REGISTERS + COMMIT + WAIT + USE, "E3225", "multiplies with registers of A",
        (FENCE + SET, SET + FENCE),
    ),
    "no fence before another shape": (
        FILLED + FENCE + MULTIPLY + COMMIT + WAIT + OTHER + COMMIT + WAIT + USE, "E3225", "a multiplication of another shape has changed",
        (WAIT + OTHER, WAIT + FENCE + OTHER),
    ),
    "another shape in flight": (
        FILLED + FENCE + MULTIPLY + COMMIT + FENCE + OTHER + COMMIT + WAIT + USE, "E3206", "of another shape",
        (COMMIT + FENCE, COMMIT + WAIT + FENCE),
    ),
    "no wait": (FILLED + FENCE + MULTIPLY + COMMIT, "E3217", "ends while ptx.wgmma.mma_async at", (COMMIT, COMMIT + WAIT)),
    "no commit at the end": (
        FILLED + FENCE + MULTIPLY + WAIT, "E3217", "which is in no group yet, still runs", (MULTIPLY, MULTIPLY + COMMIT),
    ),
    "accumulators without contents": (
        RIGHT.replace("%false", "%true"), "E3204", "reads byte 0 of fragment %d", ("%true", "%false"),
    ),
    "unwritten shared memory": (RIGHT.replace(FILL, ""), "E3204", "which is unwritten", (PROXY, FILL + PROXY)),
    "an address outside": (
        "%far = ptx.smem.addr 7936\n%a2 = ptx.wgmma.descriptor %far leading 64 stride 8 swizzle 0\n"
        + RIGHT.replace("%a,", "%a2,"), "E3226", "outside the block's shared memory", ("addr 7936", "addr 0"),
    ),
    "an address too large": (
        "%far = arith.constant 16300 : i64\n%a2 = arith.addi %a, %far : i64\n" + RIGHT.replace("%a,", "%a2,"), "E3226",
        "it has meaningless bits set", ("constant 16300", "constant 0"),
    ),
    "a tile misaligned for its swizzle": (
        "%off = ptx.smem.addr 128\n%a2 = ptx.wgmma.descriptor %off leading 1 stride 8 swizzle 3\n"
        + RIGHT.replace("%a,", "%a2,"), "E3226", "begins in row 1 of the pattern of its swizzle",
        ("%off leading 1 stride 8 swizzle 3", "%s leading 64 stride 8 swizzle 0"),
    ),
    "one warp alone": (
        ONE_WARP + FILLED + "scf.if %first {\n" + FENCE + MULTIPLY + COMMIT + WAIT + USE + "}\n", "E3208",
        "which warp 1, 2, 3 has not executed", ("scf.if %first {", "scf.if %true {"),
    ),
    "different matrices": (
        "%w1 = arith.extui %warp : i32 to i64\n%a2 = arith.addi %a, %w1 : i64\n" + RIGHT.replace("%a,", "%a2,"),
        "E3208", "where warp 0 of its warpgroup starts", ("extui %warp", "extui %zero"),
    ),
    "different matrices in a warp": (
        "%t1 = arith.extui %t : i32 to i64\n%a2 = arith.addi %a, %t1 : i64\n" + RIGHT.replace("%a,", "%a2,"),
        "E3208", "the lanes of a warp pass different descriptors of A", ("extui %t ", "extui %zero "),
    ),
    "some lanes accumulate": (
        RIGHT.replace("%false", "%leads"), "E3208", "the lanes of a warp pass different values of scale_d",
        ("%leads", "%false"),
    ),
    "some warps commit": (
        ONE_WARP + FILLED + FENCE + MULTIPLY + "scf.if %first {\n" + COMMIT + "}\n" + ADD + COMMIT + WAIT + USE, "E3208",
        "in group 0, where warp 0 of its warpgroup starts", ("scf.if %first {", "scf.if %true {"),
    ),
    "registers given back that it lacks": (
        RIGHT + "ptx.setmaxnreg inc 240\nptx.setmaxnreg inc 200\n", "E3227",
        "inc to 200 registers a thread, where it has 240", ("ptx.setmaxnreg inc 200\n", "ptx.setmaxnreg dec 200\n"),
    ),
    "registers asked for by dec": (
        RIGHT + "ptx.setmaxnreg dec 40\nptx.setmaxnreg dec 64\n", "E3227", "dec to 64 registers a thread, where it has 40",
        ("dec 64", "inc 64"),
    ),
    "warps of a warpgroup ask for different registers": (
        ONE_WARP + RIGHT + "scf.if %first {\nptx.setmaxnreg dec 40\n} else {\nptx.setmaxnreg dec 48\n}\n", "E3227",
        "asks for 40 registers a thread, another warp of its warpgroup for 48", ("dec 48", "dec 40"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found_and_cured(name: str) -> None:
    body, code, said, (wrong, right) = MISTAKES[name]
    assert said in str(refused(body, code))
    assert body.replace(wrong, right) != body
    run(body.replace(wrong, right))


def test_the_result_of_the_right_kernels() -> None:
    """Ones as f32 are f16 numbers 0 and 1.875 in turn."""
    assert (run(RIGHT) == 8 * 1.875**2).all()
    assert (run(REGISTERS) == 8 * 1.875**2).all()


@pytest.mark.parametrize("threads", [64, 96, 160])
def test_a_block_without_whole_warpgroups(threads: int) -> None:
    filled = RIGHT if threads > 128 else FENCE
    error = refused(filled, "E3208", threads)
    assert f"the block has {threads} threads" in str(error)
    assert "a multiple of 128 threads" in error.hint


def test_the_last_warps_of_a_block_change_their_registers() -> None:
    """The fifth warp loads for the others, as programs for sm_120 have it; the block begins with 232 for each thread."""
    roles = "%loads = arith.cmpi uge, %t, %step : i32\nscf.if %loads {\nptx.setmaxnreg dec 40\n} else {\n"
    run("%step = arith.constant 128 : i32\n" + roles + "ptx.setmaxnreg inc 232\n}\n", 160)
    text = roles.replace("dec 40", "inc 40") + "ptx.setmaxnreg inc 232\n}\n"
    error = refused("%step = arith.constant 128 : i32\n" + text, "E3227", 160)
    assert "inc to 40 registers a thread, where it has 232" in str(error)


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_some_warps_wait_between_two_multiplications(seed: int | None) -> None:
    between = "scf.if %first {\n" + WAIT + "}\n"
    assert (run(ONE_WARP + RIGHT.replace(COMMIT, COMMIT + between + ADD + COMMIT), seed=seed) == 16 * 1.875**2).all()


def test_threads_that_have_waited_may_overwrite_and_others_after_a_barrier() -> None:
    """The multiplication has ended for the whole warpgroup when one of its warps has waited."""
    run(RIGHT + FILL)
    second = "%four = arith.constant 4 : i32\n%ours = arith.cmpi ult, %warp, %four : i32\n"
    multiplied = second + FILLED + "scf.if %ours {\n" + FENCE + MULTIPLY + COMMIT + WAIT + USE + "}\n"
    theirs = "scf.if %ours {\n} else {\nptx.st %v, %s align 16 : vector<4xi32>, !ptx.ptr<shared>\n}\n"
    theirs = theirs.replace("} else {\n", "} else {\n%late = arith.cmpi eq, %t, %step : i32\nscf.if %late {\n") + "}\n"
    text = "%step = arith.constant 128 : i32\n" + multiplied + theirs
    assert "which a multiplication by warps 0 to 3 read" in str(refused(text, "E3205", 256))
    run(text.replace(theirs, SYNC + theirs), 256)


POOL = """
%group = arith.shrui %t, %seven : i32
%producer = arith.cmpi eq, %group, %zero : i32
scf.if %producer {
ptx.setmaxnreg dec 40
} else {
ptx.setmaxnreg inc 232
}
"""


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_registers_move_between_warpgroups(seed: int | None) -> None:
    """384 threads begin with 168 registers each: 40 + 2 * 232 are as many as 3 * 168."""
    pool = "%seven = arith.constant 7 : i32\n" + POOL
    run(FILL + pool, 384, seed)
    error = refused(FILL + pool.replace("232", "240"), "E3227", 384, seed)
    assert "waits at 240 registers a thread forever" in str(error)
    assert "warp 0 has 40 a thread" in str(error)
    refused(FILL + pool.replace("dec 40", "dec 48"), "E3227", 384, seed)
    run(FILL + pool.replace("dec 40", "dec 24").replace("232", "240"), 384, seed)


def multiplied(
    text: str, seed: int | None = None, completion: Completion = Completion.LATE
) -> tuple[np.ndarray, np.ndarray]:
    """D (128, 256) of six stages of K as the kernel of three warpgroups computes it, and as it is."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, (rows, 384)).astype(np.float16) for rows in (128, 256))
    out = np.zeros(256 * 128, np.float32)
    args = {"A": warp_specialised.stages_of(a), "B": warp_specialised.stages_of(b), "C": out, "n": 6}
    launch_on(text, args, block=(384, 1, 1), engine=SimEngine(seeded(seed), completion=completion))
    return warp_specialised.result(out), a.astype(np.float32) @ b.astype(np.float32).T


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("running", [0, 1])
def test_a_ring_of_three_warpgroups(running: int, completion: Completion) -> None:
    got, expected = multiplied(warp_specialised.text(running), 1, completion)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("seed", range(3))
def test_a_stage_released_while_it_is_read(seed: int) -> None:
    """The group of this stage may still run; that of the stage before has ended."""
    early = warp_specialised.text()
    for before, after in (
        ("%before = arith.subi %i, %one", "%before = arith.addi %i, %zero"),
        ("%leads, %later", "%leads, %true"),
    ):
        assert before in early
        early = early.replace(before, after)
    with pytest.raises(
        SimulationError, match=r"while ptx.wgmma.* is still reading it|a multiplication by warps .* read"
    ):
        multiplied(early, seed, Completion.EARLY)


def test_a_multiplication_is_counted() -> None:
    """A of 64 x 16 and B of 8 x 16 are read in units of 16 bytes, 8 of which a wavefront moves."""
    args = {"A": np.ones(512, np.float32).view(np.uint8), "C": np.zeros(512, np.float32)}
    counters = launch_on(entry(SETUP + RIGHT, POINTERS, "128", shared=8448), args, block=(128, 1, 1)).counters
    assert counters.instructions["wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"].warps == 4
    (access,) = [access for access in counters.accesses if access.op == "ptx.wgmma.mma_async"]
    assert (access.requests, access.threads, access.transactions, access.minimum) == (2, 128 + 16, 18, 18)


SWIZZLE = "leading 1 stride 16 swizzle 1"
SWIZZLED = f"""
%tile = ptx.smem.addr 4096
{INIT}
scf.if %leads {{
ptx.mbarrier.arrive.expect_tx %bar, %bytes
ptx.cp.async.bulk.tensor.load %m[%zero, %zero], %tile, %bar
}}
ptx.mbarrier.wait %bar, %zero
%b2 = ptx.wgmma.descriptor %tile {SWIZZLE}
{(FENCE + MULTIPLY + COMMIT + WAIT + USE).replace("%a, %b", "%b2, %b2")}
"""
"""A tile that a TMA copy has loaded is multiplied with itself."""


def run_swizzled(body: str, of_map: str = " swizzle 32B", seed: int | None = None) -> None:
    """Runs a kernel that multiplies ones of a tensor map."""
    pointers = f'{POINTERS}, %m: !ptx.tensor_map of "f16 A dims (16, 64) strides (32) box (16, 64){of_map}"'
    args = {"A": np.ones(1024, np.float16), "C": np.zeros(512, np.float32)}
    text = entry(SETUP + body, pointers, "128", shared=8448)
    launch_on(text, args, block=(128, 1, 1), engine=SimEngine(seeded(seed)))
    assert (args["C"] == 16).all() or "%own" in body


def test_tma_copies_and_descriptors_agree_on_the_swizzle() -> None:
    """What threads write there themselves may have any order."""
    said = "by a swizzle of 32 bytes, where a TMA copy has written by no swizzle"
    with pytest.raises(SimulationError, match=said) as caught:
        run_swizzled(SWIZZLED, "")
    assert caught.value.code == "E3226"
    own = FILL.replace("%q", "%own") + PROXY + SYNC
    written = "%own = ptx.ptr_add %tile, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>\n" + SYNC + own
    run_swizzled(SWIZZLED.replace(FENCE, written + FENCE), "")
