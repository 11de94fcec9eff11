# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples for Hopper on the simulator where asynchronous copies complete late, early or at random times, and warps
take turns in other orders: `python -m tests.kernels.policies --count 20`, or `make policies`.
"""

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import numpy as np
from tilefold.runtime.engine import RunResult
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.kernels.attention_decode import Problem
from tests.kernels.gemm_sm90 import TYPES, operands, product
from tests.project.tree import ROOT
from tilefold.commands.cli import main as tilefold


@contextmanager
def policy(completion: Completion, seed: int | None) -> Generator[None]:
    """Copies complete so in all launches on the simulator, and warps take turns by the seed."""
    launch = SimEngine.launch

    def completing(engine: SimEngine, *args: Any) -> RunResult:
        options = replace(engine.options, seed=seed or 0)
        return launch(replace(engine, options=options, completion=completion), *args)

    with patch.object(SimEngine, "launch", completing):
        yield


def _module(name: str) -> Any:
    folder = str(ROOT / "examples" / "python")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def _python(name: str, arguments: str) -> None:
    """Runs an example in Python, which compares its results itself."""
    _module(name).main(["--device", "sim", *arguments.split()])


def _text(name: str, **parameters: object) -> None:
    """Runs an example in text, whose checks compare its results."""
    given = [f"-D{name}={value}" for name, value in parameters.items()]
    assert tilefold(["run", str(ROOT / "examples" / f"{name}.cute"), "--device", "sim", *given]) == 0


def _gemm(**config: Any) -> None:
    """A product by a configuration of the GEMM, whose sums are exact."""
    module, (A, B, D) = importlib.import_module("tilefold.kernels.sm90.gemm"), operands(200, 264, 200, TYPES[0])
    module.gemm(A, B, D, module.Config(**config), device="sim", blocks=4)
    np.testing.assert_array_equal(D, product(A, B, D))


def _decode(*config: int) -> None:
    """Attention for few rows of Q by a configuration."""
    Problem(2, 200, shared=4, causal=True).check(
        importlib.import_module("tilefold.kernels.sm90.attention_decode").Decode(*config)
    )


KERNELS: Mapping[str, Callable[[], None]] = MappingProxyType({
    "tma_copy": partial(_text, "tma_copy"),
    "tma_copy.py": partial(_python, "tma_copy", ""),
    "gemm_sm90": partial(_text, "gemm_sm90", M=136, N=136, K=200),
    "gemm_sm90.py, in turns": partial(_gemm, n=64, m=64, stages=3),
    "gemm_sm90.py, shared": partial(_gemm, takes_turns=False, stages=2),
    "gemm_sm90.py, clusters": partial(_gemm, m=64, n=64, stages=3, cluster=(2, 2)),
    "gemm_fp8_scaled": partial(_text, "gemm_fp8_scaled", M=136, N=136),
    "gemm_fp8_scaled.py": partial(_python, "gemm_fp8_scaled", "--m 136 --n 136 --k 256"),
    "gemm_grouped": partial(_text, "gemm_grouped", N=136),
    "gemm_grouped.py": partial(_python, "gemm_grouped", "--groups 2 --m 136 --n 136 --k 136"),
    "gemm_sm100": partial(_text, "gemm_sm100", K=384),
    "gemm_sm100.py": partial(_python, "gemm_sm100", "--pair 2 --m 512 --k 256"),
    "gemm_sm100_dynamic": partial(_text, "gemm_sm100_dynamic", PAIR=2, M=512, K=192),
    "gemm_blockscaled": partial(_text, "gemm_blockscaled", KIND="mxf4", K=1024, STAGES=2),
    "gemm_blockscaled.py": partial(_python, "gemm_blockscaled", "--kind mxf8"),
    "gemm_sm120": partial(_text, "gemm_sm120", K=384),
    "gemm_sm120.py": partial(_python, "gemm_sm120", "--k 384 --scaled 32"),
    "attention_sm100": partial(_text, "attention_sm100", SLACK=1),
    "attention_sm100.py": partial(_python, "attention_sm100", "--length 384 --slack 1"),
    "attention_sm90": partial(_text, "attention_sm90", S=100, CAUSAL=1, HEADS=1),
    "attention_sm90.py": partial(_python, "attention_sm90", ""),
    "attention_decode.py": partial(_decode, 32, 2, 1, 2, 2),
})  # fmt: skip
"""Runs of each kernel; what fails is an error."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs all kernels under each policy; 1 where one of them is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.policies", description=(__doc__ or "").strip())
    parser.add_argument("--count", type=int, default=10, help="how many seeds (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    options, failed = parser.parse_args(arguments), 0
    for name, run in KERNELS.items():
        began = time.monotonic()
        for completion in Completion:
            for seed in (None, *range(options.seed, options.seed + options.count)):
                try:
                    with policy(completion, seed):
                        run()
                except Exception as error:  # a fault, a wrong result, or a refusal: the others go on
                    failed += 1
                    print(f"--- {name}, {completion.name}, seed {seed}: {error}", flush=True)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
