# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/gemm_scaled.py and gemm_grouped.py: right at every stage and at every edge, and their machine
code has the instructions that it should have.
"""

import importlib
from functools import partial
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target

from tests.kernels.harness import STAGES
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions

SM90A = Target("sm_90a")
BLOCK = 128
SMALL: dict[str, Any] = {"m": 64, "n": 64, "consumers": 1, "stages": 2, "takes_turns": False}


def example(name: str) -> Any:
    """A module of the library's kernels for Hopper."""
    return importlib.import_module(f"tilefold.kernels.sm90.{name}")


def scaled(seed: int, shape: tuple[int, ...], height: int) -> tuple[Any, Any, Any]:
    """Numbers in fp8, a scale for each `height` rows and 128 columns, and what both stand for."""
    random = np.random.default_rng(seed)
    numbers = random.standard_normal(shape, np.float32).astype(float8_e4m3fn)
    *groups, rows, k = shape
    scales = random.uniform(0.5, 2, (*groups, -(-rows // height), k // BLOCK)).astype(np.float32)
    whole = scales.repeat(height, -2)[..., :rows, :].repeat(BLOCK, -1)
    return numbers, scales, numbers.astype(np.float64) * whole


def numbers(dtype: Any, seed: int, shape: tuple[int, ...], _: int) -> tuple[Any, Any, Any]:
    """The same of another type, which has no scales."""
    found = np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)
    return found, None, found.astype(np.float64)


def close(found: Any, wanted: Any, k: int) -> None:
    """Compares D with what NumPy computes."""
    error = 1e-2 if found.dtype == bfloat16 else 2e-3
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=error, atol=error * np.sqrt(k))


def check_scaled(shape: tuple[int, int, int], config: dict[str, Any], dtype: Any = np.float16, **options: Any) -> Any:
    """D, which begins as NaN, against NumPy's."""
    m, n, k = shape
    (A, a, wide_a), (B, b, wide_b) = scaled(0, (m, k), 1), scaled(1, (n, k), BLOCK)
    D = np.full((m, n), np.nan).astype(dtype)
    module = example("gemm_scaled")
    options = {"blocks": 2, "device": "sim", **options}
    module.gemm_fp8_scaled(A, B, a, b, D, module.Config(**{"takes_turns": False, **config}), **options)
    close(D, wide_a @ wide_b.T, k)
    return D


@pytest.mark.parametrize("shape", [(200, 264, 128), (256, 256, 640), (1, 8, 512), (129, 136, 256)], ids=str)
@pytest.mark.sampled(1)
def test_products_with_scales(shape: tuple[int, int, int]) -> None:
    check_scaled(shape, {"stages": 3})


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({"cluster": (2, 1), "stages": 2}, bfloat16), ({"cluster": (1, 2), "stages": 2}, np.float32),
        ({"n": 192, "stages": 4}, np.float16), ({"n": 192, "stages": 3}, np.float32), (SMALL, bfloat16),
    ],
)  # fmt: skip
@pytest.mark.sampled(1)
def test_configurations_and_types_of_products_with_scales(config: dict[str, Any], dtype: Any) -> None:
    check_scaled((200, 264, 256), config, dtype)


@pytest.mark.parametrize("stage", STAGES)
def test_products_with_scales_at_every_stage(stage: str) -> None:
    check_scaled((64, 136, 256), SMALL, stage=stage)


def test_sums_are_those_of_two_levels() -> None:
    """A block whose sum would swallow the others' in one accumulator of few bits does not: scales tell them apart."""
    A, B = np.ones((64, 256), float8_e4m3fn), np.ones((64, 256), float8_e4m3fn)
    a, b = np.array([[2.0**20, 2.0**-3]] * 64, np.float32), np.ones((1, 2), np.float32)
    D, module = np.zeros((64, 64), np.float32), example("gemm_scaled")
    module.gemm_fp8_scaled(A, B, a, b, D, module.Config(**SMALL), device="sim", blocks=1)
    assert (D == 128 * 2.0**20 + 16).all()


def test_scales_in_any_order() -> None:
    (A, a, wide_a), (B, b, wide_b) = scaled(0, (64, 256), 1), scaled(1, (64, 256), BLOCK)
    D, module = np.zeros((64, 64), np.float16), example("gemm_scaled")
    scales = np.asfortranarray(a), np.asfortranarray(b)
    module.gemm_fp8_scaled(A, B, *scales, D, module.Config(**SMALL), device="sim", blocks=1)
    close(D, wide_a @ wide_b.T, 256)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k": 192}, "K = 192 is not a multiple of 128"),
        ({"k": 0}, "K = 0 is not a multiple of 128"),
        ({"a": (64, 1)}, r"scale_a has the shape \(64, 1\); .*: \(64, 2\)"),
        ({"b": (2, 2)}, r"scale_b has the shape \(2, 2\); .*: \(1, 2\)"),
        ({"config": {"n": 256}}, "at most 192 columns"),
        ({"config": {"takes_turns": True}}, "consumers share a tile"),
    ],
)
def test_problems_that_have_no_product_with_scales(change: dict[str, Any], said: str) -> None:
    k, module = change.get("k", 256), example("gemm_scaled")
    A, D = np.zeros((64, k), float8_e4m3fn), np.zeros((64, 64), np.float16)
    a, b = (np.ones(change.get(name, shape), np.float32) for name, shape in (("a", (64, 2)), ("b", (1, 2))))
    with pytest.raises(TilefoldError, match=said):
        module.gemm_fp8_scaled(A, A, a, b, D, module.Config(**{**SMALL, **change.get("config", {})}), device="sim")


def check_grouped(
    counts: list[int], size: tuple[int, int, int], is_masked: bool, config: dict[str, Any], dtype: Any, **options: Any
) -> None:
    """The rows of each group of D against NumPy's; rows of other tiles stay as they were."""
    m, n, k = size
    module = example("gemm_grouped")
    made, groups = module.Config(**{"takes_turns": False, **config}), len(counts)
    high = [-(-count // made.m) * made.m for count in counts]
    firsts = [sum(high[:g]) for g in range(groups)]
    lead = (groups, m) if is_masked else (max(sum(high), made.m),)
    random = scaled if dtype is float8_e4m3fn else partial(numbers, dtype)
    (A, a, wide_a), (B, b, wide_b) = random(0, (*lead, k), 1), random(1, (groups, n, k), BLOCK)
    D = np.full((*lead, n), np.nan).astype(np.float16 if dtype is float8_e4m3fn else dtype)
    module.gemm_grouped(A, B, np.array(counts, np.int32), D, a, b, made, **{"blocks": 2, "device": "sim", **options})
    for g, (count, first) in enumerate(zip(counts, firsts, strict=True)):
        part = (g, slice(count)) if is_masked else slice(first, first + count)
        close(D[part], wide_a[part] @ wide_b[g].T, k)
        if is_masked:
            assert np.isnan(D[g, high[g] :].astype(np.float32)).all()


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, float8_e4m3fn])
@pytest.mark.parametrize("is_masked", [True, False], ids=["masked", "contiguous"])
@pytest.mark.sampled(1)
def test_groups(is_masked: bool, dtype: Any) -> None:
    check_grouped([130, 0, 128, 1, 0], (256, 136, 256), is_masked, {"n": 128, "stages": 2}, dtype)


@pytest.mark.parametrize("is_masked", [True, False], ids=["masked", "contiguous"])
@pytest.mark.parametrize("counts", [[0, 0], [0, 64], [65, 3]], ids=str)
@pytest.mark.sampled(2)
def test_groups_without_rows_and_with_few(is_masked: bool, counts: list[int]) -> None:
    check_grouped(counts, (72, 72, 72), is_masked, SMALL, np.float16, blocks=3)


@pytest.mark.parametrize("stage", STAGES)
def test_groups_at_every_stage(stage: str) -> None:
    check_grouped([64, 1], (64, 64, 128), True, SMALL, np.float16, blocks=1, stage=stage)


def test_groups_by_the_default_configurations() -> None:
    module = example("gemm_grouped")
    A, B, rows = np.ones((2, 128, 64), np.float16), np.ones((2, 256, 64), np.float16), np.array([128, 5], np.int32)
    D = np.zeros((2, 128, 256), np.float16)
    module.gemm_grouped(A, B, rows, D, device="sim", blocks=1)
    assert (D == 64).all()


@pytest.mark.parametrize(
    ("shapes", "config", "said"),
    [
        (((2, 64, 64), (3, 64, 64), 3), SMALL, "3 groups of B"),
        (((2, 64, 64), (2, 64, 64), 3), SMALL, "2 groups of B"),
        (((100, 64), (2, 64, 64), 2), SMALL, "M = 100 is not a multiple"),
        (((2, 64, 64), (2, 64, 64), 2), {**SMALL, "cluster": (2, 1)}, "in no clusters"),
        (((2, 64, 0), (2, 64, 0), 2), SMALL, "K is 0"),
    ],
)
def test_groups_that_do_not_fit(shapes: tuple[Any, Any, int], config: dict[str, Any], said: str) -> None:
    module = example("gemm_grouped")
    A, B = (np.zeros(shape, np.float16) for shape in shapes[:2])
    with pytest.raises(TilefoldError, match=said):
        module.gemm_grouped(A, B, np.zeros(shapes[2], np.int32), A, config=module.Config(**config), device="sim")


def test_groups_with_scales_that_do_not_fit() -> None:
    module, A = example("gemm_grouped"), np.zeros((2, 64, 256), float8_e4m3fn)
    rows, D, a = np.zeros(2, np.int32), np.zeros((2, 64, 64), np.float16), np.zeros((2, 64, 2), np.float32)
    with pytest.raises(TilefoldError, match=r"scale_b has the shape None; .*: \(2, 1, 2\)"):
        module.gemm_grouped(A, A, rows, D, a, device="sim")
    with pytest.raises(TilefoldError, match=r"scale_b has the shape \(2, 64, 2\); .*: \(2, 1, 2\)"):
        module.gemm_grouped(A, A, rows, D, a, a, device="sim")
    with pytest.raises(TilefoldError, match="at most 192 columns"):
        module.gemm_grouped(A, A, rows, D, a, a[:, :1], module.DEFAULT, "sim")


def test_products_without_rows() -> None:
    empty = np.zeros((0, 256), float8_e4m3fn), np.zeros((64, 256), float8_e4m3fn)
    scales, D = (np.zeros((rows, 2), np.float32) for rows in (0, 1)), np.zeros((0, 64), np.float16)
    example("gemm_scaled").gemm_fp8_scaled(*empty, *scales, D, device="sim")
    A, B, rows = np.zeros((2, 0, 64), np.float16), np.zeros((2, 64, 64), np.float16), np.zeros(2, np.int32)
    example("gemm_grouped").gemm_grouped(A, B, rows, A, device="sim")


def machine_code(kernel: Any, config: Any, *arrays: Any) -> tuple[Any, Any]:
    """What a thread uses, and how often each instruction occurs."""
    found = installed()
    assert found is not None
    cubin = found.assemble(kernel(*arrays, config).build(config.threads).ptx("sm_90a"), SM90A)
    assert "C75" not in cubin.log
    ((name, used),) = cubin.kernels.items()
    return used, instructions(cubin.code)[name]


@needs_ptxas
@pytest.mark.parametrize(("config", "blocks"), [({}, 4), ({"n": 192, "stages": 4}, 1)], ids=str)
@pytest.mark.sampled(1)
def test_the_machine_code_scales_sums_once_a_block(config: dict[str, Any], blocks: int) -> None:
    """Of 128 of K: four multiplications for each of the blocks in a loop, and an addition for each sum, without spills.
    Multiplications overlap.
    """
    module = example("gemm_scaled")
    made = module.Config(**{"takes_turns": False, **config})
    A, a, D = np.empty((4096, 4096), float8_e4m3fn), np.empty((4096, 32), np.float32), np.empty((4096, 4096), bfloat16)
    used, counts = machine_code(module.gemm_fp8_scaled_kernel, made, A, A, a, a[:32], D)
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    assert (counts["QGMMA"], counts["UTMALDG"], counts["USETMAXREG"]) == (4 * blocks, 2, 2)
    assert counts["FFMA"] == made.n // 2 * blocks
    assert counts["LDL"] == counts["STL"] == 0


@needs_ptxas
@pytest.mark.parametrize("shape", [(4, 1024), (4096,)], ids=["masked", "contiguous"])
@pytest.mark.sampled(1)
def test_the_machine_code_of_groups(shape: tuple[int, ...]) -> None:
    """The sizes of groups are read on the GPU, by both kinds of warps; multiplications are those of one product."""
    module = example("gemm_grouped")
    A, B = np.empty((*shape, 4096), bfloat16), np.empty((4, 4096, 4096), bfloat16)
    used, counts = machine_code(module.gemm_grouped_kernel, module.DEFAULT, A, B, np.zeros(4, np.int32), A)
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    assert (counts["HGMMA"], counts["UTMALDG"], counts["USETMAXREG"]) == (4, 2, 2)
    assert counts["LDL"] == counts["STL"] == 0
