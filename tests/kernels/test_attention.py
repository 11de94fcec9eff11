# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/attention.cute: what it computes for every kind of parameters, and what its main loop consists of."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.runtime.cuda import CudaEngine

from tests.kernels.harness import STAGES, assert_checks_hold, example, on_gpu, simulate
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program, load

PATH = example("attention")


@cache
def attention(given: str) -> tuple[Program, Launch]:
    """The example with parameters, `S=64 D=128`, and its launch."""
    params = dict(each.split("=") for each in given.split())
    found = load(expand(PATH.read_text(), PATH.name, params))
    (launch,) = read_launches(found.module, found.source, Changes())
    return found, launch


def one_head(given: str) -> str:
    """Parameters of one head in small tiles, and others."""
    return f"HEADS=1 TILE_Q=32 WARPS=1 {given}"


@pytest.mark.parametrize("given", [
    one_head("S=64 CAUSAL=1"),
    one_head("S=40 D=128 TILE_K=16 STAGES=1"),  # neither rows nor keys fill the last tile
    "HEADS=1 TILE_Q=64 S=72 CAUSAL=1 T=bf16",
])  # fmt: skip
@pytest.mark.sampled(2)
def test_every_stage_agrees_with_numpy(given: str) -> None:
    found, launch = attention(given)
    first = simulate(found, launch, STAGES[0])
    assert_checks_hold(launch, first.after)
    for stage in STAGES[1:]:
        assert simulate(found, launch, stage).array("O").tobytes() == first.array("O").tobytes(), stage


@pytest.mark.parametrize("given", [
    "HEADS=3 BATCH=2 S=32 TILE_Q=32 TILE_K=32 WARPS=1 GROUP=4",  # the last group has two heads
    one_head("S=16 CAUSAL=1"),  # less than a tile
    one_head("S=80 CAUSAL=1 TILE_K=64 STAGES=2"),  # tiles of keys that are larger than those of rows
    one_head("S=96 STAGES=3 PREFETCH=4 D=128 T=bf16"),
    one_head("S=96 STAGES=1 KEEP_Q=1 CAUSAL=1"),
    one_head("S=33 STAGES=2 KEEP_Q=1 PREFETCH=2"),
    one_head("S=72 LAZY=1 TILE_K=16 CAUSAL=1"),
])  # fmt: skip
@pytest.mark.sampled(2)
def test_parameters(given: str) -> None:
    found, launch = attention(given)
    assert_checks_hold(launch, simulate(found, launch, "instr").after)


@pytest.mark.parametrize("given", ["", "LAZY=8"])
def test_scores_may_be_large(given: str) -> None:
    """Differences of thousands: nearly all weight is on one key, and the exponential of a score itself is infinite."""
    found, _ = attention(one_head(f"S=48 {given}"))
    fills = {"Q": "normal(seed=0) * 20", "K": "normal(seed=1) * 20"}
    (launch,) = read_launches(found.module, found.source, Changes(fills=fills))
    ran = simulate(found, launch, "instr")
    scores = np.einsum("sdhb,tdhb->st", *(np.asarray(ran.before[name], np.float64) for name in "QK")) / 8
    assert scores.max() > 1000
    assert_checks_hold(launch, ran.after)


@pytest.mark.parametrize(("given", "message"), [
    ("D=96", "D is 64 or 128"),
    ("TILE_Q=48", "TILE_Q is a multiple of 32"),
    ("TILE_K=24", "TILE_K is a multiple of 16"),
    ("T=f32", "T is f16 or bf16"),
    ("LAZY=20", "LAZY is 0 to 12"),
    ("TILE_K=16 WARPS=8 TILE_Q=128", "no multiple of 16 bytes a thread"),
])  # fmt: skip
def test_what_it_does_not_take(given: str, message: str) -> None:
    with pytest.raises(TilefoldError, match=message):
        attention(given)


def test_the_main_loop_is_products_and_exponentials() -> None:
    """Of 128 rows by 64 keys with D = 128, by eight warps."""
    found, _ = attention("S=4096 D=128 HEADS=32 BATCH=4 TILE_Q=128 TILE_K=64 WARPS=8 STAGES=1 KEEP_Q=1")
    ptx = found.ptx(Target("sm_90a"))
    assert ".local" not in ptx
    assert "cvt.rn.f16.f32" not in ptx  # P, and O at the end, are converted by pairs
    lines = [line.strip() for line in ptx[ptx.index("$L") :].splitlines()]
    last = max(i for i, line in enumerate(lines) if "bra" in line)
    loop = [re.sub(r"^@\S+\s+", "", line) for line in lines[: last + 1] if line.endswith(";")]
    names = Counter(line.split(None, 1)[0].rstrip(";") for line in loop)
    expected = {
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 128,
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16": 32,
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16": 32,
        "cp.async.cg.shared.global": 8,
        "fma.rn.f32": 32,
        "ex2.approx.ftz.f32": 34,  # also of what the sum and the output so far are multiplied by
        "cvt.rn.f16x2.f32": 16,
        "shfl.sync.bfly.b32": 4,
    }
    assert {name: names.pop(name) for name in expected} == expected
    arithmetic = {"max.f32": 36, "add.rn.f32": 32, "mul.rn.f32": 70, "sub.rn.f32": 2}
    for name, most in arithmetic.items():
        assert names.pop(name) <= most, name
    assert names.total() <= 32, names
    # Every matrix is at an immediate distance from one of four addresses of keys, or of values.
    sums = dict(re.findall(r"add\.s32 +\t?(%r\d+), (%r\d+), \d+;", ptx))
    loaded = [match[1] for line in loop if (match := re.search(r"ldmatrix.*\[(%r\d+)(?:\+\d+)?\];", line))]
    assert len({sums.get(base, base) for base in loaded}) <= 8


CASES = [
    f"S={length} D={depth} HEADS=3 BATCH=2 T={type} CAUSAL={causal} TILE_Q=128 TILE_K=64 {tiles}"
    for length, depth, type, causal, tiles in [
        (1024, 128, "f16", 0, "WARPS=4 STAGES=1"),
        (1024, 128, "f16", 1, "WARPS=8 STAGES=2 KEEP_Q=1"),
        (1000, 128, "bf16", 1, "WARPS=4 STAGES=2"),
        (777, 64, "f16", 0, "WARPS=4 STAGES=2 GROUP=2 LAZY=8"),
        (513, 64, "bf16", 1, "WARPS=8 STAGES=3 KEEP_Q=1"),
    ]
]


@pytest.mark.gpu
@pytest.mark.parametrize("given", CASES)
def test_on_a_gpu(given: str) -> None:
    engine = CudaEngine()
    found, launch = attention(given)
    assert_checks_hold(launch, on_gpu(found, launch, engine))
