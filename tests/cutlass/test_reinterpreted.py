# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bits as another type, pointers as numbers, and options and pipelines that public programs use beside them."""

import argparse

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cute import pipeline, testing
from tilefold.cutlass.experimental import primitives

THREAD = pipeline.Agent.Thread


@cute.kernel
def bits(A: cute.Tensor, B: cute.Tensor) -> None:
    halves = A.load()
    cutlass.print_nd_vector(halves)
    words = halves.bitcast(cute.Int32)
    pointer = cute.make_ptr(cute.Int32, B.iterator.raw_ptr(), cute.AddressSpace.gmem)
    target = cute.make_tensor(pointer, cute.make_layout(2))
    target.store(words.ir_value())


def test_bits_of_a_vector(capfd: pytest.CaptureFixture[str]) -> None:
    a, b = np.array([1, 2, -3, 0.5], np.float16), np.zeros(2, np.int32)
    bits(a, b).launch(grid=1, block=1, device="sim")
    np.testing.assert_array_equal(b, a.view(np.int32))
    assert "-3" in capfd.readouterr().out


def test_a_wait_by_its_name() -> None:
    assert primitives.Tcgen05Wait("load") is primitives.Tcgen05Wait.LOAD
    with pytest.raises(ValueError, match="'others' is not a valid"):
        primitives.Tcgen05Wait("others")


def test_operands_of_float32_are_of_tf32() -> None:
    made = [primitives.Tcgen05InstrDesc.build(a_dtype=x, b_dtype=x, n_dim=64, m_dim=128).value for x in (
        cute.Float32, cutlass.TFloat32,
    )]  # fmt: skip
    assert made[0] == made[1]


@pytest.mark.parametrize(("given", "mean"), [([], 0.0), (["--init_normal", "--normal_mean", "2"], 2.0)])
def test_options_for_the_numbers_of_tensors(given: list[str], mean: float) -> None:
    parser = argparse.ArgumentParser()
    testing.add_tensor_init_args(parser, supports_int_dtypes=True)
    args = parser.parse_args(given)
    testing.validate_tensor_init_args(args, parser)
    assert (args.init_normal, args.normal_mean, args.normal_std) == (bool(given), mean, 1.0)


@pytest.mark.parametrize("given", [["--normal_std", "0", "--init_normal"], ["--normal_mean", "1"]])
def test_options_without_a_meaning(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    testing.add_tensor_init_args(parser)
    with pytest.raises(SystemExit):
        testing.validate_tensor_init_args(parser.parse_args(given), parser)
    assert "--normal_std" in capsys.readouterr().err


@pytest.mark.parametrize("of_each", [False, True])
def test_both_groups_of_consumers_release_a_stage(of_each: bool) -> None:
    groups = [pipeline.CooperativeGroup(THREAD, size) for size in (1, 64)]

    @cute.kernel
    def kernel(A: cute.Tensor) -> None:
        stages = pipeline.PipelineTmaMultiConsumersAsync.create(
            num_stages=2, producer_group=pipeline.CooperativeGroup(THREAD), consumer_group_umma=groups[0],
            consumer_group_async=groups[1], tx_count=1024,
        )  # fmt: skip
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2)
        stages.consumer_release(state, pipeline.PipelineOp.TCGen05Mma)
        stages.consumer_release(state, pipeline.PipelineOp.AsyncThread if of_each else pipeline.PipelineOp.TmaLoad)

    given = np.zeros(1, np.float32)
    if of_each:
        text = kernel(given).build(96).text
        assert "ptx.tcgen05.commit" in text
        assert "arith.constant 65" in text
    else:
        with pytest.raises(TilefoldError, match="does not consume these stages"):
            kernel(given).build(96)
