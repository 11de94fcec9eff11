# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.gemm_choice`: times of products in bf16 by every configuration, for the model that chooses one
(tilefold/kernels/sm90/gemm_model.py, skinny_model.py), on the GPU at hand. gemm_fit.py fits the model to them.

The shapes are those of library.py, and others that are kept back from the fit. A configuration is compiled once, for
any extents. Each result is compared with that of torch.mm. Times are the least of some graphs, taken in turns. With up
to 256 rows of A, each product of a graph takes another B, so that the L2 cache holds none.
"""

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from tilefold.runtime.arrays.signature import Dynamic, Marked

from benchmarks.contest import MORE_THAN_A_CACHE, in_turn
from benchmarks.library import LAYERS, TOKENS, build, without_memory
from benchmarks.record import ROOT, circumstances
from benchmarks.timing import Run, load_torch, repeated
from benchmarks.workloads import compile_ahead
from tilefold.kernels.replay import Launch
from tilefold.kernels.sm90.gemm_model import candidates, ranked, table_of, times
from tilefold.kernels.sm90.products import Plan, launch_of, plan_skinny, plan_usual
from tilefold.kernels.sm90.skinny_model import FEW, is_small, skinny_candidates

SAMPLE, MOST, ROUNDS = 250.0, 12, 4
"""Microseconds of a graph, about; the most products of one; the graphs of each configuration."""
AHEAD = 100_000
"""Cycles that the GPU waits before a graph, so that its launch is no part of the time."""
MORE = ((18944, 3584), (12288, 4096))
"""N and K of layers for the fit, beside those of the benchmark."""
OTHERS = ((3072, 3072), (11008, 4096), (7168, 2048), (2048, 7168), (3584, 18944))
"""N and K of layers that are kept back."""
Shape = tuple[int, int, int]


def shapes() -> dict[str, list[Shape]]:
    """The shapes of the fit, and those kept back, which decide nothing."""
    chosen = random.Random(0)
    drawn = [(8 * chosen.randint(8, 1024), 8 * chosen.randint(8, 1024), 8 * chosen.randint(8, 1024)) for _ in range(64)]
    small = [(_extent(chosen), _extent(chosen), _extent(chosen)) for _ in range(48)]
    long = [(8 * chosen.randint(9, 96), 8 * chosen.randint(9, 96), 8 * chosen.randint(64, 1024)) for _ in range(24)]
    layers = [(m, n, k) for n, k in LAYERS for m in TOKENS]
    more, others = (
        [(m, n, k) for n, k in some for m in random.Random(n).sample((1, 8, 32, 64, 128, 512, 1024, 4096), 4)]
        for some in (MORE, OTHERS)
    )
    return {
        "fit": [*layers, *more, *drawn[:40], *small[:32], *long[:14]],
        "kept back": [*others, *drawn[40:], *small[32:], *long[14:]],
    }


def _extent(chosen: random.Random) -> int:
    """An extent of a product; those of 64 to 128 are as likely as those of 4096 to 8192."""
    return 8 * round(2 ** chosen.uniform(3, 10))


def near(m: int, n: int, k: int, blocks: int, factor: float) -> list[Plan]:
    """The launches of the usual kernel whose times the model finds within a factor of the shortest: of a tile at most
    one without a cluster, one with a cluster of two blocks, and one with more.
    """
    found: dict[Any, tuple[float, Plan]] = {}
    configs = ranked(m, n, k, blocks, 1, len(candidates()), True)
    for config, time in zip(configs, times(table_of(configs, blocks), m, n, k).tolist(), strict=True):
        key = config.m, config.n, config.takes_turns, config.swaps, min(math.prod(config.cluster), 3)
        found.setdefault(key, (time, plan_usual(config, m, n, blocks)))
    least = min(time for time, _ in found.values())
    return [plan for time, plan in found.values() if time <= factor * least]


def plans(m: int, n: int, k: int, blocks: int) -> Iterator[Plan]:
    """The launches by all configurations that come into question."""
    if m > FEW:
        for config in ranked(m, n, k, blocks, 1, len(candidates()), True):
            yield plan_usual(config, m, n, blocks)
    if is_small(m, n, blocks) or m <= FEW:
        for config in skinny_candidates(m, n, k, blocks):
            yield plan_skinny(config, m, n)


def few(m: int, n: int, k: int, blocks: int) -> list[Plan]:
    """The launches of the kernel for few rows, and those of the usual kernel whose times the model finds shortest."""
    if m > FEW and not is_small(m, n, blocks):
        return []
    usual = ranked(m, n, k, blocks, 1, 3, True) if m > FEW else ()
    found = [plan_skinny(config, m, n) for config in skinny_candidates(m, n, k, blocks)]
    return found + [plan_usual(config, m, n, blocks) for config in usual]


def launch_for(d: Any, a: Any, b: Any, plan: Plan, sums: Any, ready: Any) -> Launch:
    """A launch whose kernel takes any extents, with memory for sums."""
    launch = launch_of(d, a, b, plan)
    rule = Dynamic(modes=(0, 1), divisibility={1: 8})
    given = list(launch.args)
    given[:3] = (Marked(x, rule) for x in (a, b, d))
    if given[-1] is not None:
        given[-2:] = sums, ready
    return replace(launch, args=tuple(given))


def _compile(shape: Shape, plan: Plan) -> None:
    m, n, k = shape
    a, b, d = (without_memory(extents, "bfloat16") for extents in ((m, k), (n, k), (m, n)))
    build(iter([launch_for(d, a, b, plan, without_memory((SUMS,), "float32"), without_memory((READY,), "int32"))]))


def _call(run: Run) -> None:
    run()


SUMS, READY = 264 * 256 * 192, 264
"""The memory for sums, in numbers."""


def measure(
    blocks: int, budget: float, most: int, factor: float | None, commit: str, only_few: bool = False
) -> dict[str, Any]:
    """The times by shape and configuration, with that of cuBLAS; with a factor, of those near the shortest; or of the
    kernel for few rows.
    """
    torch, began = load_torch(), perf_counter()
    taken = sorted((shape for some in shapes().values() for shape in some if shape[0] <= most), key=math.prod)
    if only_few:
        wanted = {shape: found for shape in taken if (found := few(*shape, blocks))}
    elif factor is None:
        wanted = {shape: list(plans(*shape, blocks)) for shape in taken}
    else:
        wanted = {shape: near(*shape, blocks, factor) for shape in taken if shape[0] > FEW}
    kernels = {plan.config: (shape, plan) for shape, found in wanted.items() for plan in found}
    compile_ahead([partial(_compile, *each) for each in kernels.values()])
    print(f"{len(kernels)} kernels in {perf_counter() - began:.0f} s", flush=True)
    like = {"device": "cuda", "dtype": torch.bfloat16}
    memory = torch.empty(SUMS, device="cuda"), torch.zeros(READY, device="cuda", dtype=torch.int32)
    times: list[tuple[Any, ...]] = []
    for shape, found in wanted.items():
        if perf_counter() - began > budget:
            print("no time for", shape, flush=True)
            continue
        m, n, k = shape
        copies = 1 + int(MORE_THAN_A_CACHE // (2 * n * k)) if m <= 256 else 1
        a, weights = torch.randn(m, k, **like), [torch.randn(n, k, **like) for _ in range(min(copies, MOST))]
        d, expected = torch.empty(m, n, **like), a @ weights[0].T
        least = max(m * n * k / 3.6e8, n * k / 2e6, 4)
        count = max(1, min(MOST, round(SAMPLE / least)))

        makes: dict[Any, Any] = {
            "torch.mm(a, b.T)": [partial(torch.mm, a, b.T) for b in weights],
            "torch.mm(b, a.T).T": [partial(torch.mm, b, a.T) for b in weights],
        }
        for plan in found:
            launches = [launch_for(d, a, b, plan, *memory) for b in weights]
            d.fill_(7)
            launches[0].run(a, "auto")
            wrong = float((d.float() - expected.float()).abs().max()) / k**0.5
            if wrong < 0.05:
                makes[plan.config] = [partial(launch.run, a, "auto") for launch in launches]
            else:
                print(shape, plan.config, "is wrong by", wrong, flush=True)
        graphs = {name: repeated(torch, in_turn(_call, runs), count) for name, runs in makes.items()}
        best = dict.fromkeys(graphs, float("inf"))
        for _ in range(ROUNDS):
            for name, graph in graphs.items():
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.cuda._sleep(AHEAD)
                start.record()
                graph()
                end.record()
                end.synchronize()
                best[name] = min(best[name], float(start.elapsed_time(end)) * 1e3 / count)
        peer = min(time for name, time in best.items() if isinstance(name, str))
        ours = {name: round(time, 2) for name, time in best.items() if not isinstance(name, str)}
        times.append((*shape, round(peer, 2), ours))
        del graphs
        fastest = sorted((time, str(name)) for name, time in ours.items())[:2]
        print(*shape, f"{peer:.1f}", *(f"{peer / time:.3f} {name}" for time, name in fastest), flush=True)
    facts = circumstances(str(torch.cuda.get_device_name()), torch=str(torch.__version__), commit=commit)
    number = {config: i for i, config in enumerate(kernels)}
    configs = [{"kind": type(config).__name__, **asdict(config)} for config in kernels]
    numbered = [(*rest, {number[config]: time for config, time in ours.items()}) for *rest, ours in times]
    return {"circumstances": facts, "configs": configs, "times": numbered}


def text_of(found: dict[str, Any]) -> str:
    """The record as JSON, a line for each shape."""
    head = json.dumps({key: found[key] for key in ("circumstances", "configs")})[:-1]
    return head + ', "times": [\n' + ",\n".join(map(json.dumps, found["times"])) + "\n]}\n"


def main() -> int:
    """Takes the times and keeps them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gemm_choice", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "points")
    parser.add_argument("--seconds", type=float, default=450.0)
    parser.add_argument("--rows", type=int, default=1 << 20, help="the most rows of A of the products that are taken")
    parser.add_argument("--near", type=float, help="only those whose times the model finds within this factor")
    parser.add_argument("--few", action="store_true", help="the kernel for few rows, where it comes into question")
    parser.add_argument("--commit", default="", help="that of the sources, where they are no checkout")
    args = parser.parse_args()
    found = measure(132, args.seconds, args.rows, args.near, args.commit, args.few)
    (args.out / "gemm.json").write_text(text_of(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
