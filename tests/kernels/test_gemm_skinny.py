# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/gemm_skinny.py: right for any number of rows, in clusters that share K, at every stage; and the
entry `gemm` takes it for products with few rows or few tiles.
"""

import importlib
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.kernels.gemm_sm90 import TYPES, operands, product
from tests.kernels.harness import STAGES
from tilefold import cute


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example."""
    return importlib.import_module("tilefold.kernels.sm90.gemm_skinny")


def check(module: Any, shape: tuple[int, int, int], type: int, *config: int, **options: Any) -> None:
    """D against NumPy's, by the chosen configuration or a given one."""
    A, B, D = operands(*shape, TYPES[type])
    module.skinny_gemm(A, B, D, module.Skinny(*config) if config else None, device="sim", **options)
    np.testing.assert_array_equal(D, product(A, B, D))


@pytest.mark.parametrize(
    ("shape", "type", "config"),
    [
        ((5, 72, 200), 0, (8, 64, 3, 2)),  # N and K end within a tile
        ((33, 130, 272), 0, (64, 128, 3, 4)),  # rows of D that begin anywhere
        ((17, 71, 1024), 1, ()),  # 8 blocks share K
        ((8, 72, 272), 9, (8, 64, 4, 1)),
        ((16, 64, 512), 5, (16, 64, 2, 2)),
        ((16, 136, 512), 7, (16, 64, 2, 4)),
        ((130, 136, 264), 0, (128, 64, 3, 2)),  # several tiles of A
    ],
    ids=str,
)
@pytest.mark.sampled(2)
def test_extents_and_types(module: Any, shape: tuple[int, int, int], type: int, config: tuple[int, ...]) -> None:
    check(module, shape, type, *config)


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.sampled(1)
def test_sums_in_f32_of_each_strip(module: Any, splits: int) -> None:
    """Strips are multiplied four at a time, and then one by one."""
    A, B, D = operands(9, 72, 1400, TYPES[5])
    config = module.Skinny(16, 64, 3, splits, accurate=True)
    module.skinny_gemm(A, B, D, config, device="sim")
    np.testing.assert_array_equal(D, product(A, B, D))


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage(module: Any, stage: str) -> None:
    check(module, (9, 64, 256), 0, 16, 64, 2, 2, stage=stage)


def relu(x: cute.TensorSSA) -> cute.TensorSSA:
    """Nothing below zero."""
    return cute.math.max(x, 0.0)


def test_a_bias_and_an_activation(module: Any) -> None:
    A, B, D = operands(9, 72, 136, TYPES[0])
    bias = (np.arange(72) - 36).astype(np.float16)
    module.skinny_gemm(A, B, D, module.Skinny(16, 64, 2, 2), device="sim", bias=bias, activation=relu)
    np.testing.assert_array_equal(D, np.maximum(product(A, B, D) + bias, 0))


def test_more_blocks_than_strips_of_k_are_refused(module: Any) -> None:
    with pytest.raises(TilefoldError, match="8 blocks share K = 200"):
        check(module, (9, 64, 200), 0, 16, 64, 2, 8)


def test_the_choice_is_the_fastest_of_the_model_and_looks_at_few_configurations() -> None:
    model = importlib.import_module("tilefold.kernels.sm90.skinny_model")
    for shape in ((1, 4096, 4096), (16, 1024, 8192), (64, 10240, 8192)):
        found = list(model.skinny_candidates(*shape, 132))
        times = [model.microseconds(config, *shape, 132) for config in found]
        assert model.chosen_skinny(*shape, 132, streams=True) == found[times.index(min(times))]
        assert len(found) <= 20


def test_few_tiles_get_a_cluster_and_uneven_ones_a_stream(module: Any) -> None:
    products = importlib.import_module("tilefold.kernels.sm90.products")
    assert module.chosen_skinny(16, 1024, 8192, 132).splits > 1
    stream = products.plan_of(64, 10240, 8192, 2, True, 132)
    assert (stream.config.stream, stream.config.pair, stream.cluster) == (132, 2, (2, 1, 1))


def test_small_products_with_a_long_k_share_it_in_clusters(module: Any) -> None:
    products = importlib.import_module("tilefold.kernels.sm90.products")
    for shape in ((144, 88, 1928), (896, 120, 2584), (72, 2496, 7440)):
        config = products.plan_of(*shape, 2, True, 132).config
        assert isinstance(config, module.Skinny), shape
        assert config.splits > 1, shape
    assert not isinstance(products.plan_of(256, 1024, 8192, 2, True, 132).config, module.Skinny)


def streamed(shape: tuple[int, int, int], config: Any, type: int = 0) -> tuple[Any, Any]:
    """The launch of a stream, and its results' place."""
    products = importlib.import_module("tilefold.kernels.sm90.products")
    A, B, D = operands(*shape, TYPES[type])
    return products.launch_of(D, A, B, products.plan_skinny(config, *shape[:2])), (A, B, D)


@pytest.mark.parametrize(
    ("shape", "type", "config"),
    [
        ((5, 200, 512), 0, (8, 64, 3, 1, 4, 3)),  # a block has parts of two tiles
        ((17, 130, 640), 0, (16, 64, 3, 1, 1, 5)),
        ((9, 64, 1024), 0, (16, 64, 3, 1, 4, 4)),  # four blocks share a tile
        ((130, 72, 264), 0, (128, 64, 3, 1, 4, 3)),  # two tiles of A
        ((5, 200, 512), 5, (8, 64, 3, 1, 4, 3, True)),
        ((5, 200, 512), 0, (16, 64, 3, 1, 4, 4, False, 2)),  # a pair of blocks has a tile more than B
        ((9, 128, 1024), 0, (16, 64, 3, 1, 4, 4, False, 2)),  # both pairs share the tiles
    ],
    ids=str,
)
@pytest.mark.sampled(2)
def test_streams(module: Any, shape: tuple[int, int, int], type: int, config: tuple[int, ...]) -> None:
    launch, (A, B, D) = streamed(shape, module.Skinny(*config), type)
    launch.run(A, "sim")
    np.testing.assert_array_equal(D, product(A, B, D))


def test_two_blocks_load_tiles_of_a_together(module: Any) -> None:
    check(module, (17, 200, 264), 0, 32, 64, 3, 1, 4, 0, 0, 2)


@pytest.mark.parametrize("config", [{"splits": 2}, {"m": 8, "splits": 1}, {"splits": 1, "stream": 3}], ids=str)
def test_pairs_that_are_refused(module: Any, config: dict[str, int]) -> None:
    with pytest.raises(TilefoldError, match="pair"):
        module.Skinny(pair=2, **config)


def test_a_stream_needs_memory_and_no_cluster(module: Any) -> None:
    with pytest.raises(TilefoldError, match="need memory for sums"):
        check(module, (9, 64, 256), 0, 16, 64, 2, 1, 4, 2)
    with pytest.raises(TilefoldError, match="in no clusters"):
        module.Skinny(splits=2, stream=4)


@pytest.mark.parametrize(
    ("m", "n", "types", "is_taken"),
    [(64, 28672, 0, True), (128, 1024, 0, True), (128, 4096, 0, False), (16, 128, 4, False)],
)
def test_the_entry_takes_it_for_few_rows_or_few_tiles(
    module: Any, monkeypatch: pytest.MonkeyPatch, m: int, n: int, types: int, is_taken: bool
) -> None:
    """Operands whose columns are contiguous go to the other kernel."""
    taken: list[str] = []
    entry = importlib.import_module("tilefold.kernels.sm90.gemm")

    def skinny(*_: object) -> None:
        taken.append("skinny")

    def usual(*_: object) -> Launched:
        return Launched(taken)

    monkeypatch.setattr(entry, "skinny_gemm", skinny)
    monkeypatch.setattr(entry, "gemm_kernel", usual)
    A, B, D = operands(m, n, 64, TYPES[types])
    entry.gemm(A, B, D, device="sim")
    assert taken == ["skinny" if is_taken else "usual"]


class Launched:
    """A call whose launch is noted."""

    def __init__(self, taken: list[str]) -> None:
        self.taken = taken

    def launch(self, *_: Any, **__: Any) -> None:
        """Notes the launch."""
        self.taken.append("usual")
