# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies: their bytes and where they land, their counters, and the mistakes with them, each with its cure."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.layout.algebra.core import Layout
from tilefold.runtime.engine import TensorArgument
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import Completion

from tests.sim.harness import SimEngine, entry, launch, launch_on, seeded
from tests.sim.tma import CASES, STORED, Case, argument, load_kernel, numbers, store_kernel

NAMES = [f"{case.element} {len(case.box)}d {case.swizzle}".strip() for case in CASES]


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_loads(case: Case, completion: Completion) -> None:
    text, values = load_kernel(case, case.bytes)
    a, r = case.tensor(), np.full(case.bytes, 255, np.uint8)
    launch_on(text, {"A": argument(a), "R": argument(r), **values}, engine=SimEngine(completion=completion))
    np.testing.assert_array_equal(r, case.loaded(a))


@pytest.mark.parametrize("case", STORED)
def test_stores(case: Case) -> None:
    text, values = store_kernel(case)
    a, r = case.tensor(), numbers(np.random.default_rng(1), "uint8", case.bytes)
    expected = a.copy()
    for number, element in case.indices():
        if element is not None:
            expected[element] = r[case.place(number) :][: case.size].view(case.dtype)[0]
    launch_on(text, {"A": argument(a), "R": argument(r), **values})
    np.testing.assert_array_equal(a.view(np.uint8), expected.view(np.uint8))


REDUCTIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "element", "dtype"), [
    *((kind, element, dtype) for kind in REDUCTIONS for element, dtype in (("u32", "uint32"), ("s32", "int32"))),
    ("add", "f16", "float16"), ("min", "f16", "float16"), ("add", "f32", "float32"), ("add", "f64", "float64"),
    ("add", "u64", "uint64"), ("max", "s64", "int64"), ("xor", "u64", "uint64"),
])  # fmt: skip
def test_reductions(kind: str, element: str, dtype: str) -> None:
    case = Case(element, dtype, (24, 5), (1, 24), (16, 4), (16, 2))
    text, values = store_kernel(case, f'ptx.cp.reduce.async.bulk.tensor "{kind}"')
    rng = np.random.default_rng(2)
    a, given = numbers(rng, dtype, 24 * 5), numbers(rng, dtype, 64)
    if np.dtype(dtype).kind == "i":
        a[::2] *= -1
    expected = a.copy()
    for number, at in case.indices():
        if at is not None:
            expected[at] = REDUCTIONS[kind](a[at], given[number])
    launch_on(text, {"A": argument(a), "R": argument(given.view(np.uint8)), **values})
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("kind", ["inc", "dec"])
def test_counting_reductions(kind: str) -> None:
    """Up to a limit and then from 0, and down to 0 and then from the limit."""
    case = Case("u32", "uint32", (8,), (1,), (8,), (0,))
    text, values = store_kernel(case, f'ptx.cp.reduce.async.bulk.tensor "{kind}"')
    a, limits = np.array([0, 1, 5, 9, 7, 0, 3, 8], np.uint32), np.array([4, 1, 9, 5, 7, 0, 8, 3], np.uint32)
    up, down = np.where(a >= limits, 0, a + 1), np.where((a == 0) | (a > limits), limits, a - 1)
    launch_on(text, {"A": argument(a), "R": argument(limits.view(np.uint8)), **values})
    np.testing.assert_array_equal(a, up if kind == "inc" else down)


def test_bf16_is_added_with_one_rounding() -> None:
    dtypes = pytest.importorskip("ml_dtypes")
    case = Case("bf16", "uint16", (8,), (1,), (8,), (0,))
    text, values = store_kernel(case, 'ptx.cp.reduce.async.bulk.tensor "add"')
    a = np.array([1, 2, 3, 1e30, 256, -1, 0.5, 7], dtypes.bfloat16)
    b = np.array([1 / 128, 1 / 64, 5, 1e30, 1, 1, 0.25, -7], dtypes.bfloat16)
    expected = (a.astype(np.float32) + b.astype(np.float32)).astype(dtypes.bfloat16)
    launch_on(text, {"A": argument(a.view(np.uint16)), "R": argument(b.view(np.uint8)), **values})
    np.testing.assert_array_equal(a.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize(("element", "dtype"), [("f16", "float16"), ("f32", "float32"), ("f64", "float64")])
def test_elements_outside_are_nan_where_the_map_says_so(element: str, dtype: str) -> None:
    case = Case(element, dtype, (10, 3), (1, 16), (8, 4), (8, 1), nan=True)
    text, values = load_kernel(case, case.bytes)
    a, r = case.tensor(), np.zeros(case.bytes, np.uint8)
    launch_on(text, {"A": argument(a), "R": argument(r), **values})
    outside = [place // case.size for place in case.outside()]
    loaded = r.view(dtype).copy()
    assert np.isnan(loaded[outside]).all()
    loaded[outside] = 0
    np.testing.assert_array_equal(loaded, case.loaded(a).view(dtype))


def test_tf32_rounds_to_the_nearest() -> None:
    case = Case("tf32", "float32", (8,), (1,), (8,), (0,))
    text, values = load_kernel(case, case.bytes)
    a = np.array([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-20, -3.3, np.inf, 1e-3, 0], np.float32)
    r = np.zeros(32, np.uint8)
    launch_on(text, {"A": argument(a), "R": argument(r), **values})
    loaded = r.view(np.float32)
    assert loaded[:4].tolist() == [1 + 2**-10, 1, 1 + 2**-9, 1 + 2**-10]
    assert loaded[5] == np.inf
    assert not (r.view(np.uint32) & 0x1FFF).any()
    np.testing.assert_allclose(loaded, a, rtol=2**-11)


def test_counters() -> None:
    """A box of 16 rows of 128 bytes, of which the last 4 lie beyond the tensor."""
    case = Case("f32", "float32", (64, 12), (1, 64), (32, 16), (0, 0), "128B")
    text, values = load_kernel(case, case.bytes)
    a, r = case.tensor(), np.zeros(case.bytes, np.uint8)
    counters = launch_on(text, {"A": argument(a), "R": argument(r), **values}).counters
    name = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    assert counters.instructions[name].threads == 1
    outer, inner = (access for access in counters.accesses if access.op == "ptx.cp.async.bulk.tensor.load")
    assert (outer.space, outer.requests, outer.threads, outer.transactions, outer.minimum) == ("global", 1, 96, 48, 48)
    assert (inner.space, inner.requests, inner.threads, inner.transactions, inner.minimum) == ("shared", 1, 128, 16, 16)


ARGS = (
    "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16, "
    '%m: !ptx.tensor_map of "f32 A dims (32, 8) strides (128) box (32, 8) swizzle 128B", '
    '%w: !ptx.tensor_map of "f32 B dims (32, 8) strides (128) box (32, 8) swizzle 128B", '
    '%plain: !ptx.tensor_map of "f32 B dims (32, 8) strides (128) box (32, 8)"'
)
SETUP = """
%t = ptx.sreg "tid.x"
%sixteen = arith.constant 16 : i32
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%bytes = arith.constant 1024 : i32
%half = arith.constant 512 : i32
%more = arith.constant 2048 : i32
%odd = arith.constant 1 : i32
%bar = ptx.smem.addr 4096
%s = ptx.smem.addr 0
%leads = arith.cmpi eq, %t, %zero : i32
%o = arith.muli %t, %sixteen : i32
%mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%a = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%b = ptx.ptr_add %B, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
"""
"""Each of 64 threads has 16 of 1024 bytes."""
INIT = "scf.if %leads {\nptx.mbarrier.init %bar, %one\nptx.fence.mbarrier_init\n}\nptx.bar.sync 0\n"
EXPECT = "ptx.mbarrier.arrive.expect_tx %bar, %bytes\n"
LOAD = "ptx.cp.async.bulk.tensor.load %m[%zero, %zero], %s, %bar\n"
WAIT = "ptx.mbarrier.wait %bar, %zero\n"
COPY = "%v = ptx.ld %mine align 16 : !ptx.ptr<shared> -> vector<4xf32>\n"
USE = COPY + "ptx.st %v, %b align 16 : vector<4xf32>, !ptx.ptr<global>\n"
FILL = (
    "%f = ptx.ld %a align 16 : !ptx.ptr<global> -> vector<4xf32>\n"
    "ptx.st %f, %mine align 16 : vector<4xf32>, !ptx.ptr<shared>\n"
)
FENCE = "ptx.fence.proxy.async\n"
SYNC = "ptx.bar.sync 0\n"
STORE = "ptx.cp.async.bulk.tensor.store %w[%zero, %zero], %s\n"
REDUCE = 'ptx.cp.reduce.async.bulk.tensor "add" %w[%zero, %zero], %s\n'
COMMIT = "ptx.cp.async.bulk.commit_group\n"
WAIT_READ = "ptx.cp.async.bulk.wait_group 0 read\n"
WAIT_GROUP = "ptx.cp.async.bulk.wait_group 0\n"


def one(*lines: str) -> str:
    """Lines that one thread executes."""
    return f"scf.if %leads {{\n{''.join(lines)}}}\n"


def run(body: str, seed: int | None = None, completion: Completion = Completion.LATE) -> NDArray[Any]:
    """What a kernel leaves in B, which begins as ones."""
    a, b = np.arange(256, dtype=np.float32), np.ones(256, np.float32)
    engine = SimEngine(seeded(seed), completion=completion)
    launch(entry(SETUP + body, ARGS, "64", shared=4112), block=(64, 1, 1), engine=engine, A=a, B=b)
    return b


def refused(body: str, code: str, completion: Completion = Completion.LATE) -> str:
    """The message of the error that a kernel raises."""
    with pytest.raises(SimulationError) as caught:
        run(body, completion=completion)
    assert caught.value.code == code, str(caught.value)
    assert re.match(r".*test\.cute:\d+:1", str(caught.value))
    return str(caught.value)


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("seed", [None, *range(3)])
def test_in_and_out_again(seed: int | None, completion: Completion) -> None:
    a = np.arange(256, dtype=np.float32)
    swizzled = run(INIT + one(EXPECT, LOAD) + WAIT + USE, seed, completion).reshape(8, 8, 4)
    rows = a.reshape(8, 8, 4)
    for row in range(8):
        np.testing.assert_array_equal(swizzled[row], rows[row][np.arange(8) ^ row])
    direct = INIT + one(EXPECT, LOAD, WAIT, STORE, COMMIT, WAIT_READ)
    np.testing.assert_array_equal(run(direct, seed, completion), a)
    by_threads = FILL + FENCE + SYNC + one(STORE, COMMIT, WAIT_READ)
    assert sorted(run(by_threads, seed, completion).tolist()) == a.tolist()
    summed = INIT + one(EXPECT, LOAD, WAIT, REDUCE, REDUCE, COMMIT, REDUCE, COMMIT, WAIT_READ)
    np.testing.assert_array_equal(run(summed, seed, completion), 3 * a + 1)


# Each mistake: the kernel with it, the code, words of the message, and the cure: a text instead of another.
MISTAKES = {
    "no proxy fence before a reduction": (
        FILL + SYNC + one(REDUCE, COMMIT, WAIT_READ), "E3216", "fence.proxy.async between them", (SYNC, FENCE + SYNC),
    ),
    "exit with a reduction that is not committed": (
        FILL + FENCE + SYNC + one(REDUCE, WAIT_READ), "E3217", "ends while its bulk copy may still read",
        (REDUCE, REDUCE + COMMIT),
    ),
    "exit before bytes come": (
        INIT + one(EXPECT, LOAD) + FILL.replace("%mine", "%b").replace("<shared>", "<global>"), "E3217",
        "the block ends while the copy may still write", (one(EXPECT, LOAD), one(EXPECT, LOAD) + WAIT),
    ),
    "stored by another swizzle than loaded": (
        INIT + one(EXPECT, LOAD, WAIT, STORE.replace("%w", "%plain"), COMMIT, WAIT_READ), "E3226",
        "by no swizzle, where a TMA copy has written by a swizzle of 128 bytes", ("%plain", "%w"),
    ),
    "stage loaded over what threads still read": (
        INIT + one(EXPECT, LOAD) + WAIT + USE
        + one(EXPECT, LOAD) + WAIT.replace("%zero", "%odd"),
        "E3205", "thread (1,0,0) read", (USE, USE + SYNC),
    ),
    "misaligned box": (
        "%s16 = ptx.smem.addr 16\n" + INIT + one(EXPECT, LOAD.replace("%s", "%s16")) + WAIT + USE,
        "E3203", "of a TMA copy is not a multiple of 128 bytes", ("%s16, %bar", "%s, %bar"),
    ),
    "not an mbarrier": (
        INIT + one(EXPECT, LOAD.replace("%bar", "%s")) + WAIT + USE, "E3215", "there is no mbarrier",
        ("%s, %s", "%s, %bar"),
    ),
    "a block that the cluster lacks": (
        "%mask = arith.constant 4 : i16\n"
        + INIT + one(EXPECT, LOAD.replace("%bar", "%bar multicast %mask")) + WAIT + USE,
        "E3202", "the mask 0x0004 names rank 2; the cluster has 1 blocks", ("constant 4", "constant 1"),
    ),
    "no block": (
        "%mask = arith.constant 0 : i16\n"
        + INIT + one(EXPECT, LOAD.replace("%bar", "%bar multicast %mask")) + WAIT + USE,
        "E3202", "the mask 0x0000 names no block", ("constant 0 : i16", "constant 1 : i16"),
    ),
    "undefined bytes": (
        FENCE + SYNC + one(STORE, COMMIT, WAIT_READ), "E3204", "undefined bytes", (FENCE, FILL + FENCE),
    ),
    "read before the reduction is complete": (
        FILL + FENCE + SYNC + one(
            REDUCE, COMMIT, WAIT_READ,
            "%x = ptx.ld %b align 4 : !ptx.ptr<global> -> f32\nptx.st %x, %s align 4 : f32, !ptx.ptr<shared>\n",
        ),
        "E3206", "is still writing it", ("wait_group 0 read", "wait_group 0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    body, code, said, (wrong, right) = MISTAKES[mistake]
    assert said in refused(body, code)
    assert body.count(wrong) == 1
    run(body.replace(wrong, right))


def test_reductions_and_other_writes_need_an_order() -> None:
    write = "ptx.st %f, %b align 16 : vector<4xf32>, !ptx.ptr<global>\n"
    assert "is still writing it" in refused(FILL + FENCE + SYNC + one(REDUCE, COMMIT) + write + one(WAIT_READ), "E3206")
    early = FILL + FENCE + SYNC + one(REDUCE, COMMIT, WAIT_GROUP) + write
    assert "race: writes global" in refused(early, "E3205")
    run(early.replace(write, SYNC + write))


def test_reductions_of_several_blocks_have_one_sum() -> None:
    a, b = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    body = SETUP + INIT + one(EXPECT, LOAD, WAIT, REDUCE, COMMIT, WAIT_READ)
    launch(entry(body, ARGS, "64", shared=4112), (5, 1, 1), (64, 1, 1), A=a, B=b)
    np.testing.assert_array_equal(b, 5 * a)


def test_tensors_without_a_map() -> None:
    case = Case("f32", "float32", (40, 20), (1, 41), (32, 8), (0, 0))
    text, values = load_kernel(case, case.bytes)
    given = {"A": argument(case.tensor()), "R": argument(np.zeros(case.bytes, np.uint8)), **values}
    with pytest.raises(LaunchError, match=r"argument 'A': no tensor map .* stride of 164 bytes, which is S1") as caught:
        launch_on(text, given)
    assert caught.value.code == "E0322"
    with pytest.raises(LaunchError, match=r"dimension 1 has the extent 0, which is E1"):
        launch_on(text, {**given, "S1": 44, "E1": 0})


def test_the_mode_of_a_tensor_without_a_map() -> None:
    arguments = (
        '%A: !ptx.ptr<global> align 16 layout "(?,(8,?)):(?,(1,8))", %A_0: i32, %A_1: i32, %A_2: i32, '
        '%m: !ptx.tensor_map of "f16 A dims (8, A_1, A_0) strides (16, A_2 * 2) box (8, 1, 1)"'
    )
    storage = TensorArgument(np.zeros(600, np.float16), Layout((5, (8, 3)), (37, (1, 8))))
    with pytest.raises(LaunchError, match=r"'A': .* a stride of 74 bytes, which is the stride of mode 0 \* 2"):
        launch_on(entry("", arguments), {"A": storage})


@pytest.mark.parametrize(("wrong", "right", "said"), [
    (Case("f32", "float32", (40, 20), (1, 44), (16, 8), (1, 4)),
     Case("f32", "float32", (40, 20), (1, 44), (16, 8), (4, 4)),
     r"begins 4 bytes from the start of a row, which is not a multiple of 16(.|\n)*a multiple of 4 elements"),
    (Case("f32", "float32", (40, 20), (1, 44), (16, 8), (4, -4)),
     Case("f32", "float32", (40, 20), (1, 44), (16, 8), (4, 0)),
     r"stored box begins at the coordinates \(4,-4\), before the tensor"),
    (Case("u16", "uint16", (33, 20), (1, 40), (16, 16), (24, 8)),
     Case("u16", "uint16", (32, 20), (1, 40), (16, 16), (24, 8)),
     r"ends the rows of the tensor, of 66 bytes(.|\n)*GPUs write the 14 bytes after them too"),
])  # fmt: skip
@pytest.mark.parametrize("operation", ["ptx.cp.async.bulk.tensor.store", 'ptx.cp.reduce.async.bulk.tensor "add"'])
def test_stores_that_gpus_do_otherwise_are_refused(wrong: Case, right: Case, said: str, operation: str) -> None:
    if "reduce" in operation and wrong.element == "u16":
        wrong, right = (replace(case, element="f16", dtype="float16") for case in (wrong, right))
    for case in (right, wrong):
        text, values = store_kernel(case, operation)
        a, r = case.tensor(), np.zeros(case.bytes, np.uint8)
        arguments = {"A": argument(a), "R": argument(r), **values}
        if case is right:
            launch_on(text, arguments)
        else:
            with pytest.raises(SimulationError, match=said):
                launch_on(text, arguments)


@pytest.mark.parametrize("first", [4, 3])
def test_loads_begin_at_16_bytes(first: int) -> None:
    case = Case("f32", "float32", (40, 20), (1, 44), (16, 8), (first, -4))
    text, values = load_kernel(case, case.bytes)
    arguments = {"A": argument(case.tensor()), "R": argument(np.zeros(case.bytes, np.uint8)), **values}
    if first % 4 == 0:
        launch_on(text, arguments)
    else:
        with pytest.raises(SimulationError, match=r"begins 12 bytes from the start of a row"):
            launch_on(text, arguments)
