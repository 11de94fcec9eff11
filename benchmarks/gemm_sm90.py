# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products by the instructions of Hopper (`tilefold/kernels/sm90/gemm.py`), against cuBLAS and Triton, and
CUTLASS where the environment names it (`benchmarks/cutlass_peer.py`).

D = A * B^T of the same tensors of N(0,1), in turns; each contender first writes onto a poisoned D, which is compared
with the product in f32. A sample is a graph of several products, as in a network, so that launches may overlap.

The error of each contender against the product in f64 is beside its speed. Sums with fewer bits are less work, so a
product in fp8 is compared with the one of cuBLAS that adds as our kernel does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn

from benchmarks import cutlass_peer
from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.gemms import ACCURATE, Gemm, Operands
from benchmarks.in_python import sm90
from benchmarks.record import Figure
from benchmarks.timing import Run
from tilefold import cute

_SAMPLE = 3e12
"""The operations of a sample, some milliseconds of them: as many products as these are, in a graph."""
Options = Mapping[str, Any]
IN_TURNS: Options = {}
"""Tiles of 128 x 128, of which each of two warpgroups computes its own, the default of the example."""
IN_CLUSTERS: Options = {"cluster": (2, 1)}
"""The same, but two blocks share tiles of B."""
IN_PAIRS: Options = {"cluster": (1, 2), "group": 16}
"""The same, but two blocks share tiles of A, and groups of tiles are larger."""
FLAT: Options = {"m": 64, "n": 256, "stages": 4}
WIDE: Options = {"n": 256, "stages": 4, "takes_turns": False}
"""Tiles of 128 x 256 that two warpgroups share."""
WIDER: Options = {"n": 192, "stages": 4}
"""Tiles of 128 x 192, of which each of two warpgroups computes its own."""
SMALL: Options = {"n": 64, "stages": 8, "takes_turns": False}
SMALL_IN_TURNS: Options = {"m": 64, "stages": 8}
_TYPES: Mapping[str, tuple[Any, Any]] = {
    "f16": (np.float16, np.float16), "bf16": (bfloat16, bfloat16), "tf32": (np.float32, np.float32),
    "s8": (np.int8, np.int32), "u8": (np.uint8, np.int32), "fp8": (float8_e4m3fn, np.float32),
}  # fmt: skip
"""The types of A and B, and of D, in NumPy."""
_OUT: Mapping[str, Any] = {"f32": np.float32, "bf16": bfloat16}
"""Types of D that a problem chooses, in NumPy."""
OTHERWISE = frozenset({f"cuBLAS ({ACCURATE})"})
"""Peers that add more accurately than our kernels: their figures are no base of a ratio."""


@dataclass(frozen=True, slots=True)
class Contest:
    """A product, the least that its speed is to be of that of each peer, and the configurations that are tried."""

    gemm: Gemm
    target: float
    configurations: Sequence[Options] = (IN_TURNS, IN_CLUSTERS, WIDE)

    @property
    def name(self) -> str:
        """The product, and the kernel."""
        return f"{self.gemm.name}, by wgmma"


CONTESTS = (
    Contest(Gemm("f16", 2048, 2048, 2048), 1.0, (IN_TURNS, IN_CLUSTERS, FLAT)),
    Contest(Gemm("f16", 4096, 4096, 4096), 1.0),
    Contest(Gemm("f16", 8192, 8192, 8192), 1.06, (IN_TURNS, WIDER)),
    Contest(Gemm("f16", 1024, 1024, 1024), 1.0, (SMALL, SMALL_IN_TURNS)),
    Contest(Gemm("f16", 4000, 4008, 4016), 1.0, (IN_PAIRS, WIDE)),
    Contest(Gemm("f16", 8192, 8192, 512), 1.0),
    Contest(Gemm("f16", 4096, 4096, 4096, a_major="M"), 1.0),
    Contest(Gemm("f16", 4096, 4096, 4096, b_major="N"), 1.0),
    Contest(Gemm("f16", 4096, 4096, 4096, a_major="M", b_major="N"), 1.0),
    Contest(Gemm("f16", 4096, 4096, 4096, gelu=True), 1.05),
    *(Contest(Gemm(type, 4096, 4096, 4096, triton=type != "u8"), 1.0) for type in ("bf16", "tf32", "s8", "u8")),
    *(
        Contest(Gemm("fp8", m, n, k, out=out), 1.0)
        for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), (2048, 7168, 4096))
        for out in ("f32", "bf16")
    ),
)


def cases(multiprocessors: int) -> list[Case]:
    """Every product of `CONTESTS`, by as many persistent blocks as there are multiprocessors."""
    return [
        Case(
            contest.name,
            (),
            partial(_measure, contest=contest, blocks=multiprocessors),
            contest.target,
            partial(_compile, contest),
        )
        for contest in CONTESTS
    ]


def _compile(contest: Contest) -> None:
    """Compiles the kernels of a contest, for arrays that nobody fills."""
    module, gemm, (inner, outer) = sm90("gemm"), contest.gemm, _TYPES[contest.gemm.type]
    A = np.empty((gemm.m, gemm.k), inner, "C" if gemm.a_major == "K" else "F")
    B = np.empty((gemm.n, gemm.k), inner, "C" if gemm.b_major == "K" else "F")
    outer = _OUT.get(gemm.out, outer)
    epilogue = (np.empty(gemm.n, np.float16), _gelu) if gemm.gelu else ()
    for options in contest.configurations:
        config = module.Config(**options)
        call = module.gemm_kernel(A, B, np.empty((gemm.m, gemm.n), outer), config, *epilogue)
        call.build(config.threads).artifact("sm_90a")


def _measure(bench: Bench, contest: Contest, blocks: int) -> list[Figure]:
    gemm, operands = contest.gemm, Operands(bench.torch, contest.gemm)
    matmul = bench.torch.backends.cuda.matmul
    before, matmul.allow_tf32 = matmul.allow_tf32, gemm.type == "tf32"
    try:
        return _figures(bench, contest, blocks, operands)
    finally:
        matmul.allow_tf32 = before


def _figures(bench: Bench, contest: Contest, blocks: int, operands: Operands) -> list[Figure]:
    gemm = contest.gemm
    inputs, expected, allowed = (operands.a, operands.b), operands.expected, operands.allowed
    ours = {_spelled(options): _run(operands, options, blocks) for options in contest.configurations}
    bench.check(ours, operands.d, expected, inputs, atol=allowed)
    of_cutlass = {} if gemm.gelu else cutlass_peer.peers(bench.torch, operands.a, operands.b, operands.d, blocks)
    peers = bench.right({**operands.peers(), **of_cutlass}, operands.d, expected, inputs, atol=allowed)
    errors: dict[str, float | None] = {}
    if gemm.type not in ("s8", "u8"):  # whose results are exact
        errors |= bench.errors({**ours, **peers}, operands.d, operands.exact)
    count = max(4, round(_SAMPLE / gemm.operations))
    ours, peers = bench.repeated(ours, count), bench.repeated(peers, count)
    times = dict(bench.time({**ours, **peers}))
    chosen = min(ours, key=lambda name: times[name].median)
    times = {"tilefold": times[chosen], **{name: times[name] for name in peers}}
    errors["tilefold"] = errors.get(chosen)
    work, unit = gemm.operations * count, "TOP/s" if gemm.type in ("s8", "u8") else "TFLOP/s"
    notes = {"tilefold": chosen}
    figures = {
        name: rate(f"{contest.name}, {name}", work, timed, unit, notes.get(name, ""), errors.get(name))
        for name, timed in times.items()
    }
    best = figures.pop("tilefold")
    targets = dict.fromkeys(of_cutlass, min(contest.target, 1.0))
    ratios = [
        ratio(best, peer, targets.get(name, contest.target)) for name, peer in figures.items() if name not in OTHERWISE
    ]
    return [*figures.values(), *ratios]


def _run(operands: Operands, options: Options, blocks: int) -> Run:
    module = sm90("gemm")
    given = operands.a, operands.b, operands.d, module.Config(**options)
    epilogue = {} if operands.bias is None else {"bias": operands.bias, "activation": _gelu}
    return partial(module.gemm, *given, device="cuda", blocks=blocks, **epilogue)


def _gelu(x: Any) -> Any:
    """GELU as PyTorch's fused path computes it, by the tanh of the GPU."""
    return 0.5 * x * (1.0 + cute.arch.approx("tanh", 0.7978845608 * (x + 0.044715 * x * x * x)))


def _spelled(options: Options) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items()) or "defaults"
