# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/gemm.py: right in every configuration at every stage, without a fault of the simulator, and its
machine code has the instructions that it should have.
"""

import importlib
import math
import re
import sys
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target

from tests.kernels.gemm_sm90 import TYPES, operands, product
from tests.kernels.harness import STAGES
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions
from tilefold import cute

SM90A = Target("sm_90a")
SMALL: dict[str, Any] = {"m": 64, "n": 64, "consumers": 1, "stages": 2, "takes_turns": False}
SHARED: dict[str, Any] = {"takes_turns": False}
CONFIGS: dict[str, dict[str, Any]] = {
    "one consumer": SMALL,
    "two consumers": {**SHARED, "n": 256, "stages": 4},
    "two rows of instructions": {**SHARED, "m": 256, "stages": 3},
    "taking turns": {},
    "cluster along M": {**SHARED, "stages": 3, "cluster": (2, 1)},
    "cluster along N": {**SHARED, "m": 256, "stages": 2, "cluster": (1, 2)},
    "cluster of four": {**SHARED, "stages": 2, "cluster": (2, 2)},
    "taking turns in a cluster": {"stages": 3, "cluster": (2, 1)},
    "a half chunk over": {**SHARED, "m": 256, "n": 96, "stages": 2, "cluster": (1, 2)},
    "a half chunk over, in turns": {"n": 160, "stages": 3},
    "three quarters of a chunk over": {"m": 64, "n": 112, "stages": 3},
    "cluster of four along M": {"m": 64, "n": 192, "stages": 3, "cluster": (4, 1)},
}


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example."""
    return importlib.import_module("tilefold.kernels.sm90.gemm")


def check(
    module: Any,
    config: dict[str, Any],
    shape: tuple[int, ...],
    blocks: int,
    types: tuple[Any, Any, str] = TYPES[0],
    **options: Any,
) -> None:
    """D against NumPy's; the shape is that of M, N, K and for a batch its layers."""
    m, n, k, *layers = shape
    A, B, D = operands(m, n, k, types, *layers)
    module.gemm(A, B, D, module.Config(**config), device="sim", blocks=blocks, **options)
    np.testing.assert_array_equal(D, product(A, B, D))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.sampled(2)
def test_several_tiles_of_a_block(module: Any, config: dict[str, Any]) -> None:
    check(module, config, (512, 256, 192), blocks=4)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.sampled(2)
def test_types_and_orders(module: Any, types: tuple[Any, Any, str]) -> None:
    check(module, {"m": 64, "n": 64, "stages": 2}, (128, 128, 272), 1, types)


@pytest.mark.parametrize("cluster", [(2, 1), (1, 2)])
@pytest.mark.sampled(1)
def test_operands_by_m_and_by_n_in_clusters(module: Any, cluster: tuple[int, int]) -> None:
    check(module, {"stages": 3, "cluster": cluster}, (256, 256, 72), 2, TYPES[4])


def relu(x: cute.TensorSSA) -> cute.TensorSSA:
    """Nothing below zero."""
    return cute.math.max(x, 0.0)


@pytest.mark.parametrize(("n", "dtype"), [(128, np.float16), (72, np.float16), (200, np.float32)])
@pytest.mark.sampled(2)
def test_a_bias_and_an_activation(module: Any, n: int, dtype: Any) -> None:
    A, B, D = operands(128, n, 72, TYPES[0])
    bias = (np.arange(n) - n // 2).astype(dtype)
    module.gemm(A, B, D, module.Config(m=64, n=64, stages=2), device="sim", blocks=1, bias=bias, activation=relu)
    np.testing.assert_array_equal(D, np.maximum(product(A, B, D) + bias, 0))


@pytest.mark.parametrize("shared", ["", "A", "AB"])
@pytest.mark.sampled(1)
def test_a_batch(module: Any, shared: str) -> None:
    """An operand with a stride of 0 along the batch is that of every product."""
    a, b, D = operands(136, 72, 40, TYPES[0], 3)
    A, B = (np.broadcast_to(x[:, :, :1], x.shape) if name in shared else x for name, x in (("A", a), ("B", b)))
    module.gemm(A, B, D, module.Config(m=64, n=64, stages=2, cluster=(2, 1)), device="sim", blocks=2)
    np.testing.assert_array_equal(D, product(A, B, D))


@pytest.mark.parametrize("shape", [(0, 8, 8), (8, 0, 8), (0, 0, 0), (8, 200, 0), (8, 8, 0, 3)], ids=str)
def test_empty_products(module: Any, shape: tuple[int, ...]) -> None:
    check(module, {}, shape, 1, TYPES[7])


def test_an_empty_product_has_its_bias_and_its_activation(module: Any) -> None:
    A, B, D = operands(3, 200, 0, TYPES[0])
    bias = (np.arange(200) - 100).astype(np.float16)
    module.gemm(A, B, D, device="sim", bias=bias, activation=relu)
    np.testing.assert_array_equal(D, np.broadcast_to(np.maximum(bias, 0), D.shape))


def test_rows_that_no_map_describes_are_refused(module: Any) -> None:
    A, B, _ = operands(64, 129, 64, TYPES[0])
    with pytest.raises(TilefoldError, match="258 bytes") as raised:
        module.gemm(A, B, np.zeros((64, 129), np.float16), module.Config(), device="sim")
    assert raised.value.code is Code.TENSOR_MAP


@pytest.mark.parametrize("swaps", [False, True])
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage(module: Any, stage: str, swaps: bool) -> None:
    check(module, {**SMALL, "swaps": swaps}, (128, 64, 128), blocks=1, stage=stage)


@pytest.mark.parametrize("shape", [(136, 72, 72), (65, 8, 64), (1, 264, 8), (63, 72, 63), (65, 64, 1)], ids=str)
@pytest.mark.parametrize("config", ["one consumer", "taking turns in a cluster"])
@pytest.mark.sampled(2)
def test_tiles_that_reach_beyond_the_matrices(module: Any, config: str, shape: tuple[int, int, int]) -> None:
    check(module, CONFIGS[config], shape, blocks=2)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.sampled(1)
def test_every_order_of_the_warps(module: Any, seed: int) -> None:
    check(module, {"m": 64, "n": 64, "stages": 2}, (256, 128, 128), blocks=1, seed=seed)


def ptx_of(module: Any, config: dict[str, Any]) -> str:
    """The PTX for matrices of 4096 rows and columns."""
    A, B, D = (np.empty((4096, 4096), np.float16) for _ in range(3))
    made = module.Config(**config)
    return module.gemm_kernel(A, B, D, made).build(made.threads).ptx("sm_90a")


def test_stages_are_released_without_waiting_for_writes(module: Any) -> None:
    """At the own block by a local arrival, at a peer by one that orders no writes: neither needs a memory barrier."""
    assert "mbarrier.arrive.shared.b64" in ptx_of(module, CONFIGS["two consumers"])
    text = ptx_of(module, CONFIGS["cluster along M"])
    assert "mbarrier.arrive.shared::cluster.b64 _" in text
    assert "release.cluster" not in re.sub(r"fence\.mbarrier_init\.release\.cluster", "", text)
    assert "fence.proxy.async.shared::cta" in text
    assert "fence.proxy.async;" not in text


@needs_ptxas
@pytest.mark.parametrize(
    ("config", "multiplications"),
    [("two consumers", 4), ("taking turns in a cluster", 8), ("two rows of instructions", 8)],
)
@pytest.mark.sampled(2)
def test_machine_code(module: Any, config: str, multiplications: int) -> None:
    """A loop of so many wgmma, fed by TMA copies; registers are handed over, and none is spilled."""
    found = installed()
    assert found is not None
    cubin = found.assemble(ptx_of(module, CONFIGS[config]), SM90A)
    used = cubin.kernels["gemm_kernel"]
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    counts = instructions(cubin.code)["gemm_kernel"]
    assert (counts["HGMMA"], counts["UTMALDG"], counts["USETMAXREG"]) == (multiplications, 2, 2)
    assert counts["UTMASTG"] > 0
    assert counts["LDL"] == counts["STL"] == 0


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((4096, 4096), {}),
        ((8192, 8192), {"n": 192, "stages": 4}),
        ((1024, 1024), {"n": 64, "stages": 8, **SHARED}),
        ((4000, 4008), {"cluster": (1, 2), "group": 16}),
    ],
)
def test_the_configuration_that_is_chosen_for_other_types(
    module: Any, shape: tuple[int, int], config: dict[str, Any]
) -> None:
    assert module.chosen_config(*shape, 1024, 132, itemsize=1) == module.Config(**config)
    assert module.chosen_config(4096, 4096, 1024, 132, itemsize=4) == module.Config(**CONFIGS["two consumers"])


@pytest.mark.parametrize("blocks", [78, 132])
@pytest.mark.parametrize("shape", [(1536, 1536, 1536), (512, 4096, 4096), (4000, 4008, 4016), (72, 8, 1)])
def test_the_configuration_that_the_model_chooses_is_its_fastest(
    module: Any, shape: tuple[int, int, int], blocks: int
) -> None:
    model = importlib.import_module("tilefold.kernels.sm90.gemm_model")
    alone = [c for c in model.candidates() if c.splits == 1]
    times = dict(zip(alone, model.times(model.table_of(alone, blocks), *shape), strict=True))
    assert times[module.chosen_config(*shape, blocks)] == pytest.approx(min(times.values()), abs=1e-3)


def microseconds(config: Any, m: int, n: int, k: int, blocks: int) -> float:
    """The time that the model finds."""
    model = importlib.import_module("tilefold.kernels.sm90.gemm_model")
    return float(model.times(model.table_of([config], blocks), m, n, k)[0])


def test_clusters_and_waves_in_the_model(module: Any) -> None:
    """A product of one wave is not made slower by more blocks, one of two waves is by fewer. Clusters of four serve one
    wave alone: parts of a GPU have multiprocessors left over.
    """
    config, begin = module.Config(), importlib.import_module("tilefold.kernels.sm90.gemm_model").CONSTANTS.begin
    one, two = (microseconds(config, 1024, 1024, 4096, blocks) for blocks in (64, 63))
    assert microseconds(config, 1024, 1024, 4096, 132) == one
    assert two - begin > 1.8 * (one - begin)
    assert microseconds(module.Config(cluster=(1, 2)), 4096, 4096, 4096, 132) < microseconds(
        config, 4096, 4096, 4096, 132
    )
    lines, sectors, beside = (microseconds(config, 4096, 4096, k, 132) / k for k in (4096, 4112, 4104))
    assert lines < sectors < beside
    four = module.Config(cluster=(2, 2))
    assert microseconds(four, 30 * 256, 256, 4096, 132) < microseconds(config, 30 * 256, 256, 4096, 132)
    assert microseconds(four, 31 * 256, 256, 4096, 132) == float("inf")


def test_blocks_that_share_k(module: Any) -> None:
    """Each adds its part in the order of K, and leaves the memory as it was for the next launch."""
    products = importlib.import_module("tilefold.kernels.sm90.products")
    config = module.Config(n=64, stages=2, splits=3, **SHARED)
    A, B, D = operands(120, 64, 192, TYPES[0])
    plan = products.plan_usual(config, 120, 64, 132)
    sums, ready = np.full(3 * 128 * 64, np.nan, np.float32), np.zeros(3, np.int32)
    call = module.gemm_kernel(A, B, D, config, *[None] * 6, sums, ready)
    report = call.check(plan.grid, plan.threads, outputs=["mD"])
    assert report.passed, str(report)
    call = module.gemm_kernel(A, B, D, config, *[None] * 6, sums, ready)
    call.launch(plan.grid, plan.threads, device="sim", use_pdl=True)
    np.testing.assert_array_equal(D, product(A, B, D))
    assert not ready.any()
    with pytest.raises(TilefoldError, match="memory, which tilefold"):
        module.gemm(A, B, D, config, device="sim")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("config", "shape", "blocks"),
    [
        ({"n": 64, "stages": 2, "splits": 2}, (136, 136, 128), 4),
        ({"m": 192, "consumers": 3, "stages": 2, "buffers": 1, "splits": 2}, (200, 200, 136), 3),
        ({"m": 192, "consumers": 3, "stages": 2, "buffers": 1}, (200, 136, 136), 3),
    ],
)
def test_blocks_share_k_of_the_tiles_that_fill_no_wave(
    module: Any, config: dict[str, Any], shape: tuple[int, int, int], blocks: int
) -> None:
    products = importlib.import_module("tilefold.kernels.sm90.products")
    A, B, D = operands(*shape, TYPES[0])
    plan = products.plan_usual(module.Config(**config, **SHARED), *shape[:2], blocks)
    assert plan.grid == (1, 1, blocks)
    products.launch_of(D, A, B, plan).run(A, "sim")
    np.testing.assert_array_equal(D, product(A, B, D))


def test_the_model_rates_all_configurations_at_once() -> None:
    """A choice calls few functions, and as many for any number of configurations."""
    model = importlib.import_module("tilefold.kernels.sm90.gemm_model")
    model.ranked(4096, 4096, 4096, 132, 1, 1, True)
    calls = list[str]()

    def called(frame: Any, event: str, _: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    sys.setprofile(called)
    model.ranked(5064, 5304, 7536, 132, 1, 1, True)
    sys.setprofile(None)
    assert calls.count("times") == 1
    assert "_parts" not in calls
    assert len(calls) <= 24, calls


@pytest.mark.sampled(2)
@pytest.mark.parametrize("types", [TYPES[1], TYPES[2], TYPES[4]])
@pytest.mark.parametrize(
    "config",
    [
        {"m": 256, "n": 144, "stages": 2, "buffers": 1, **SHARED},
        {"m": 128, "n": 80, "stages": 2, "cluster": (2, 1)},
        {"m": 128, "n": 48, "stages": 2, "cluster": (1, 2), **SHARED},
    ],
    ids=str,
)
def test_operands_that_change_places(module: Any, config: dict[str, Any], types: tuple[Any, Any, str]) -> None:
    check(module, {"swaps": True, **config}, (136, 264, 72), 2, types)


def test_an_epilogue_where_operands_change_places(module: Any) -> None:
    """Every part of it, and tiles that reach beyond the ends; `check` finds no fault."""
    (m, n), random = (40, 136), np.random.default_rng(0)
    A, B, D = operands(m, n, 72, TYPES[0])
    bias, scale_m, scale_n = (random.integers(1, 4, count).astype(np.float32) for count in (n, m, n))
    gate, residual = (random.integers(-3, 4, (m, n)).astype(np.float16) for _ in range(2))
    config = module.Config(m=128, n=32, stages=2, swaps=True, **SHARED)
    given = A, B, D, config, bias, relu, scale_m, scale_n, gate, residual
    grid = 1, 1, math.prod(config.tiles(m, n))
    assert grid[2] == 4
    report = module.gemm_kernel(*given).check(grid, config.threads, outputs=["mD"])
    assert report.passed, str(report)
    module.gemm_kernel(*given).launch(grid, config.threads, device="sim", use_pdl=True)
    sums = A.astype(np.float32) @ B.astype(np.float32).T * scale_m[:, None] * scale_n + bias
    np.testing.assert_array_equal(D, (np.maximum(sums, 0) * gate + residual).astype(np.float16))


def test_operands_change_places_where_their_tiles_fill_more_of_a_wave() -> None:
    products = importlib.import_module("tilefold.kernels.sm90.products")
    plan = products.plan_of(840, 5128, 6608, 2, True, 132)
    assert plan.config.swaps
    assert np.prod(plan.grid) == 126
    assert not products.plan_of(4096, 4096, 4096, 2, True, 132).config.swaps


def test_blocks_share_k_where_the_model_finds_it_faster() -> None:
    products = importlib.import_module("tilefold.kernels.sm90.products")
    assert products.plan_of(256, 1024, 8192, 2, True, 132).config.splits > 1
    assert products.plan_of(4096, 4096, 4096, 2, True, 132).config.splits == 1


@pytest.mark.parametrize("config", [{"m": 96}, {"n": 88}, {"consumers": 3}])
def test_tiles_that_are_refused(module: Any, config: dict[str, Any]) -> None:
    with pytest.raises(TilefoldError, match="64 rows for each consumer"):
        module.Config(**config)
