# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator's options, which a launch and the command have alike, and the target that it runs a kernel for."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.commands.cli import main

Capture = pytest.CaptureFixture[str]


@cute.kernel
def race(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    out[t % 32] = cute.Float32(t)


@cute.kernel
def rows_of_matrices(out: cute.Tensor):
    """Stores a fragment by stmatrix, which sm_80 does not have."""
    t, _, _ = cute.arch.thread_idx()
    mma = cute.make_tiled_mma(cute.make_mma_atom("SM80_16x8x16_F16F16F16F16_TN"))
    store = cute.make_tiled_copy_C(cute.make_copy_atom("SM90_U32x2_STSM_N", cute.Float16), mma).get_slice(t)
    tile = cute.make_smem_tensor(cute.make_layout((16, 8), stride=(8, 1)), cute.Float16)
    values = mma.make_fragment_C(mma.get_slice(t).partition_C(tile))
    values.fill(1.5)
    cute.copy(store, store.retile(values), store.partition_D(tile))
    cute.arch.sync_threads()
    for i in range(4):
        out[t // 2, t % 2 * 4 + i] = tile[t // 2, t % 2 * 4 + i]


@cute.autotune(configs=[{"N": 32}], grid=1, block=64)
@cute.kernel
def tuned_race(out: cute.Tensor, N: cute.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    out[t % N] = cute.Float32(t)


def launched(kernel: cute.CompiledKernel, check: str = "") -> str:
    """A `.cute` file that launches a kernel with one argument on one block."""
    checked = f'  run.check "{check}"\n' if check else ""
    text = kernel.to_cute()
    (type,) = re.findall(r'%out: (!tile\.tensor<.*?">)', text)
    run = f'run.launch @kernels::@{kernel.name} grid(1) {{\n  run.arg "out" : {type} = "poison"\n{checked}}}\n'
    return text.rstrip().removesuffix("}") + run + "}\n"


def simulate(**options: Any) -> None:
    race(np.empty(64, np.float32)).launch(grid=1, block=64, device="sim", **options)


def test_a_launch_leaves_the_race_check_out() -> None:
    with pytest.raises(TilefoldError) as caught:
        simulate()
    assert caught.value.code == "E3205"
    for stage in (None, "cute"):
        simulate(races=False, stage=stage)
    with pytest.raises(TilefoldError, match="E3205"):
        tuned_race(np.empty(64, np.float32)).launch(device="sim")
    tuned_race(np.empty(64, np.float32)).launch(device="sim", races=False)


def test_the_limits_of_a_launch_and_what_their_errors_advise() -> None:
    with pytest.raises(TilefoldError) as caught:
        simulate(max_steps=3, races=False)
    assert caught.value.code == "E3210"
    assert "launch(..., max_steps=...)" in str(caught.value)
    large = np.zeros(1 << 16, np.float32)
    with pytest.raises(TilefoldError) as caught:
        race(large).launch(grid=1, block=32, device="sim", max_memory=1)
    assert caught.value.code == "E3211"
    assert "launch(..., max_memory=...)" in str(caught.value)
    assert "launch(..., races=False)" in str(caught.value)
    race(large).launch(grid=1, block=32, device="sim", max_memory=1, races=False)
    race(large).launch(grid=1, block=32, device="sim", max_memory=16)


@cute.kernel
def order_of_warps(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    if t % 32 == 0:
        out[t // 32] = cute.arch.atomic_add(out.ptr(32), 1)


def test_the_seed_of_a_launch_chooses_the_order_of_warps() -> None:
    def launched(**options: Any) -> list[int]:
        out = np.zeros(33, np.int32)
        order_of_warps(out).launch(grid=1, block=1024, device="sim", **options)
        return out[:32].tolist()

    assert launched() == launched(seed=0) == [*range(32)]
    assert launched(seed=5) == launched(seed=5) != launched(seed=6)
    assert sorted(launched(seed=5)) == [*range(32)]


@pytest.mark.parametrize("option", [{"races": 1}, {"max_steps": 0}, {"max_memory": "1"}, {"seed": 0.5}])
def test_options_that_are_none(option: dict[str, Any]) -> None:
    with pytest.raises(TilefoldError, match=f"E3105: {next(iter(option))} is"):
        simulate(**option)


def test_the_command_has_the_same_options(tmp_path: Path, capsys: Capture) -> None:
    out = np.empty(64, np.float32)
    kernel = race(out).build(64)
    file = tmp_path / "race.cute"
    file.write_text(launched(kernel))
    assert main(["run", str(file), "--device", "sim"]) == 1
    assert "error[E3205]" in capsys.readouterr().err
    assert main(["run", str(file), "--device", "sim", "--no-races"]) == 0
    assert main(["run", str(file), "--device", "sim", "--max-steps", "3"]) == 1
    assert "by --max-steps" in capsys.readouterr().err


def test_a_program_is_simulated_for_a_target_that_has_what_it_uses(tmp_path: Path, capsys: Capture) -> None:
    out = np.zeros((16, 8), np.float16)
    call = rows_of_matrices(out)
    call.launch(grid=1, block=32, device="sim")
    assert (out == 1.5).all()
    file = tmp_path / "stmatrix.cute"
    file.write_text(launched(call.build(32), "out == 1.5"))
    assert main(["run", str(file), "--device", "sim", "--stage", "all", "--remarks"]) == 0
    assert capsys.readouterr().out.count("ok") == 6
    assert main(["run", str(file), "--device", "sim", "--target", "sm_80"]) == 1
    assert "error[E2102]" in capsys.readouterr().err


def test_the_result_of_a_launch_is_one_line() -> None:
    x = np.arange(64, dtype=np.float32)

    @cute.kernel
    def doubled(A: cute.Tensor, B: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        for n in cute.range_constexpr(2):
            B[t + 32 * n] = A[t + 32 * n] * 2.0

    run = doubled(x, np.zeros_like(x)).launch(grid=1, block=32, device="sim")
    assert re.fullmatch(r"<launch of \S+ ms: 5 instructions of warps, 16 sectors>", repr(run))
    assert len(run.counters.accesses) == 4
    loads, stores = run.counters.by_place()
    assert (loads.requests, loads.transactions, stores.transactions) == (2, 8, 8)
