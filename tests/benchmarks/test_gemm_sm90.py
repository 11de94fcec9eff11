# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The configurations of the GEMM for Hopper that are measured: a launch leaves them to the driver, and their inner loop
multiplies and moves nothing.
"""

import re
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.ptxas import needs_whole_program

from benchmarks.gemm_sm90 import CONTESTS, OTHERWISE, Options
from benchmarks.gemms import ACCURATE, FAST, Operands
from benchmarks.in_python import sm90
from tests.ptxas import needs_ptxas
from tests.sass import disassemble

SM90A = Target("sm_90a")
OPTIONS: dict[str, Options] = {str(options): options for contest in CONTESTS for options in contest.configurations}


@cache
def _built(name: str) -> Any:
    """The kernel in a configuration, and the configuration."""
    module = sm90("gemm")
    config = module.Config(**OPTIONS[name])
    A, B, D = (np.zeros(shape, np.float16) for shape in ((512, 128), (512, 128), (512, 512)))
    return module.gemm_kernel(A, B, D, config).build(config.threads), config


def _loop(text: str) -> str:
    """The lines of the innermost loop with the first multiplication, from its label to the branch back."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if "HGMMA" in line)
    for begin in range(at, -1, -1):
        if (label := re.match(r"(\.L_x_\d+):", lines[begin])) is not None:
            for end in range(at, len(lines)):
                if re.search(rf"BRA `\({re.escape(label[1])}\)", lines[end]):
                    return "\n".join(lines[begin : end + 1])
    raise AssertionError("there is no loop")


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.sampled(2)
def test_launches_leave_the_kernel_to_the_driver(name: str) -> None:
    kernel, _ = _built(name)
    build = kernel.program.build(SM90A)
    assert needs_whole_program(build.ptx)
    assert build.artifacts[0].code == build.ptx


@needs_ptxas
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.sampled(2)
def test_the_loop_multiplies_and_moves_nothing(name: str) -> None:
    kernel, config = _built(name)
    build = kernel.program.machine_build(SM90A)
    assert "C75" not in build.log
    (used,) = kernel.program.cubin(SM90A).kernels.values()
    assert used.registers * config.threads <= 65536
    assert (used.spill_stores, used.stack) == (0, 0)
    loop = _loop(disassemble(build.cubin))
    steps = 4  # of 16 elements, in the 128 bytes of a row of a stage
    rows = config.m // config.sharing // 64  # of instructions that a warpgroup needs for its rows
    assert loop.count("HGMMA") == steps * rows
    assert not re.search(r"\b(?:MOV|IMAD\.MOV\S*|CS2R|SHFL|LDS|STS)\b", loop)


class _Torch:
    """Notes how the products in fp8 are asked for."""

    float32, float64 = "f32", "f64"
    nn = SimpleNamespace(functional=None)

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def _scaled_mm(self, *_: Any, **options: Any) -> None:
        self.asked.append(options)

    def ones(self, *_: Any, **__: Any) -> float:
        return 1.0


@pytest.mark.parametrize("out", ["f32", "bf16"])
def test_products_in_fp8_are_compared_with_those_that_add_alike(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuBLAS adds in the tensor core only where it is asked to, which is faster and less accurate."""

    def made(self: Any, torch: Any, gemm: Any) -> None:
        self._torch, self._gemm, self.bias = torch, gemm, None
        self.a = self.b = self.d = SimpleNamespace(T=None, dtype=out)

    monkeypatch.setattr(Operands, "__init__", made)
    torch: Any = _Torch()
    (gemm,) = [each.gemm for each in CONTESTS if each.gemm.name == f"fp8 GEMM 4096^3, D in {out}"]
    peers = Operands(torch, gemm).peers()
    assert list(peers) == [f"cuBLAS ({FAST})", f"cuBLAS ({ACCURATE})"]
    for run in peers.values():
        run()
    assert [options["use_fast_accum"] for options in torch.asked] == [True, False]
    assert {options["out_dtype"] for options in torch.asked} == {out}
    assert peers.keys() & OTHERWISE == {f"cuBLAS ({ACCURATE})"}
