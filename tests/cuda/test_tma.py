# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies on a GPU: the bytes that the tests' own formula says, and launches that encode maps."""

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.errors import LaunchError

from tests.cuda.harness import artifact
from tests.sim import test_multicast as multicast
from tests.sim import test_tma as single
from tests.sim.harness import entry
from tests.sim.tma import CASES, STORED, Case, argument, load_kernel, numbers, store_kernel

pytestmark = pytest.mark.gpu
SM90A = Target("sm_90a")
ONE_WARP = LaunchConfig((1, 1, 1), (32, 1, 1))


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of a GPU with TMA copies."""
    engine = CudaEngine()
    if engine.driver.capability[0] < 9:
        pytest.skip("TMA copies need sm_90")
    return engine


def _run(engine: CudaEngine, kernel: tuple[str, dict[str, int]], a: np.ndarray, r: np.ndarray) -> None:
    text, values = kernel
    code = artifact(text, engine.driver.target)
    engine.launch(code, ONE_WARP, {"A": argument(a), "R": argument(r), **values})


@pytest.mark.parametrize("case", CASES, ids=single.NAMES)
def test_loads(engine: CudaEngine, case: Case) -> None:
    """Of 1 to 5 dimensions, with every swizzle, and boxes that reach beyond the tensor on any side."""
    a, r = case.tensor(), np.full(case.bytes, 255, np.uint8)
    _run(engine, load_kernel(case, case.bytes), a, r)
    np.testing.assert_array_equal(r, case.loaded(a))


@pytest.mark.parametrize("case", STORED)
def test_stores(engine: CudaEngine, case: Case) -> None:
    a, r = case.tensor(), numbers(np.random.default_rng(1), "uint8", case.bytes)
    expected = a.copy()
    for number, element in case.indices():
        if element is not None:
            expected[element] = r[case.place(number) :][: case.size].view(case.dtype)[0]
    _run(engine, store_kernel(case), a, r)
    np.testing.assert_array_equal(a.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize(("kind", "element", "dtype"), [
    *((kind, element, dtype) for kind in single.REDUCTIONS for element, dtype in (("u32", "uint32"), ("s32", "int32"))),
    ("add", "f16", "float16"), ("min", "f16", "float16"), ("max", "f16", "float16"), ("add", "f32", "float32"),
    ("add", "f64", "float64"), ("add", "u64", "uint64"), ("max", "s64", "int64"), ("min", "u64", "uint64"),
    ("xor", "u64", "uint64"), ("or", "u64", "uint64"), ("min", "s64", "int64"),
])  # fmt: skip
def test_reductions(engine: CudaEngine, kind: str, element: str, dtype: str) -> None:
    case = Case(element, dtype, (24, 5), (1, 24), (16, 4), (16, 2))
    rng = np.random.default_rng(2)
    a, given = numbers(rng, dtype, 24 * 5), numbers(rng, dtype, 64)
    if np.dtype(dtype).kind == "i":
        a[::2] *= -1
    expected = a.copy()
    for number, at in case.indices():
        if at is not None:
            expected[at] = single.REDUCTIONS[kind](a[at], given[number])
    _run(engine, store_kernel(case, f'ptx.cp.reduce.async.bulk.tensor "{kind}"'), a, given.view(np.uint8))
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("kind", ["inc", "dec"])
def test_counting_reductions(engine: CudaEngine, kind: str) -> None:
    """Up to a limit and then from 0, and down to 0 and then from the limit."""
    case = Case("u32", "uint32", (8,), (1,), (8,), (0,))
    a, limits = np.array([0, 1, 5, 9, 7, 0, 3, 8], np.uint32), np.array([4, 1, 9, 5, 7, 0, 8, 3], np.uint32)
    up, down = np.where(a >= limits, 0, a + 1), np.where((a == 0) | (a > limits), limits, a - 1)
    _run(engine, store_kernel(case, f'ptx.cp.reduce.async.bulk.tensor "{kind}"'), a, limits.view(np.uint8))
    np.testing.assert_array_equal(a, up if kind == "inc" else down)


@pytest.mark.parametrize(("element", "dtype"), [("f16", "float16"), ("f32", "float32"), ("f64", "float64")])
def test_elements_outside_are_nan_where_the_map_says_so(engine: CudaEngine, element: str, dtype: str) -> None:
    case = Case(element, dtype, (10, 3), (1, 16), (8, 4), (8, 1), nan=True)
    a, r = case.tensor(), np.zeros(case.bytes, np.uint8)
    _run(engine, load_kernel(case, case.bytes), a, r)
    outside = [place // case.size for place in case.outside()]
    loaded = r.view(dtype).copy()
    assert np.isnan(loaded[outside]).all()
    loaded[outside] = 0
    np.testing.assert_array_equal(loaded, case.loaded(a).view(dtype))


def test_tf32_rounds_to_the_nearest(engine: CudaEngine) -> None:
    case = Case("tf32", "float32", (256,), (1,), (256,), (0,))
    a, r = np.random.default_rng(0).standard_normal(256).astype(np.float32), np.zeros(1024, np.uint8)
    _run(engine, load_kernel(case, case.bytes), a, r)
    loaded = r.view(np.float32)
    assert not (r.view(np.uint32) & 0x1FFF).any()
    np.testing.assert_allclose(loaded, a, rtol=2**-11)


def test_a_tile_goes_in_and_out_by_one_swizzle(engine: CudaEngine) -> None:
    body = single.INIT + single.one(
        single.EXPECT, single.LOAD, single.WAIT, single.STORE, single.COMMIT, single.REDUCE, single.COMMIT,
        single.WAIT_GROUP,
    )  # fmt: skip
    a, b = np.arange(256, dtype=np.float32), np.ones(256, np.float32)
    code = artifact(entry(single.SETUP + body, single.ARGS, "64", shared=4112), engine.driver.target)
    engine.launch(code, LaunchConfig((1, 1, 1), (64, 1, 1)), {"A": TensorArgument(a), "B": TensorArgument(b)})
    np.testing.assert_array_equal(b, 2 * a)


def test_blocks_add_to_one_tensor(engine: CudaEngine) -> None:
    a, b = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    body = single.SETUP + single.INIT + single.one(
        single.EXPECT, single.LOAD, single.WAIT, single.REDUCE, single.COMMIT, single.WAIT_READ
    )  # fmt: skip
    code = artifact(entry(body, single.ARGS, "64", shared=4112), engine.driver.target)
    engine.launch(code, LaunchConfig((300, 1, 1), (64, 1, 1)), {"A": TensorArgument(a), "B": TensorArgument(b)})
    np.testing.assert_array_equal(b, 300 * a)


def test_multicast_in_a_cluster_of_two(engine: CudaEngine) -> None:
    text = entry(multicast.SETUP + multicast.KERNEL, multicast.ARGS, "64", shared=4112)
    code = artifact(text.replace("threads(64)", "threads(64) cluster(2)"), SM90A)
    a, b = np.arange(256 * multicast.STAGES, dtype=np.float32), np.zeros(512 * multicast.STAGES, np.float32)
    engine.launch(code, LaunchConfig((2, 1, 1), (64, 1, 1)), {"A": TensorArgument(a), "B": TensorArgument(b)})
    expected = np.broadcast_to(a.reshape(-1, 1, 256), (multicast.STAGES, 2, 256))
    np.testing.assert_array_equal(b.reshape(expected.shape), expected)


def test_each_launch_has_the_maps_of_its_tensors(engine: CudaEngine) -> None:
    """One kernel on tensors of several shapes, of which some come again."""
    cases = [Case("f32", "float32", (width, rows), (1, pitch), (32, 8), (4, 2))
             for width, rows, pitch in ((40, 12, 44), (36, 9, 36), (100, 30, 128), (40, 12, 44))]  # fmt: skip
    for number, case in enumerate(cases):
        a, r = case.tensor(number), np.zeros(case.bytes, np.uint8)
        _run(engine, load_kernel(case, case.bytes), a, r)
        np.testing.assert_array_equal(r, case.loaded(a))


def test_what_no_map_describes_is_refused(engine: CudaEngine) -> None:
    case = Case("f32", "float32", (40, 20), (1, 41), (32, 8), (0, 0))
    with pytest.raises(LaunchError, match=r"argument 'A': .* stride of 164 bytes"):
        _run(engine, load_kernel(case, case.bytes), case.tensor(), np.zeros(case.bytes, np.uint8))
