# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.gemm_fit FILE...`: fits the models that choose configurations of GEMMs on Hopper to the times
that `python -m benchmarks.gemm_choice` took, and says how much slower than the fastest the chosen ones are, for the
shapes of the fit and for those kept back.

The constants go to tilefold/kernels/sm90/gemm_model.py and skinny_model.py. They change one by one, by shorter and
shorter steps, as long as the loss falls: the mean of the time lost, that of what is lost beyond 3 %, a part of the
error of the times near the fastest one, and how far the speeds of tiles are from those at the beginning, since few
times may be known of a tile.
"""

import argparse
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.gemm_choice import shapes
from tilefold.kernels.sm90 import gemm_model, skinny_model
from tilefold.kernels.sm90.parts import Config
from tilefold.kernels.sm90.products import USUAL
from tilefold.kernels.sm90.skinny_model import FEW, Skinny

BLOCKS = 132
TRUST = 0.5
"""The weight of the constants of tiles that are there already."""
Shape = tuple[int, int, int]
Points = dict[Shape, dict[Any, float]]
"""The microseconds of each configuration, by shape."""


Times = Callable[[Sequence[Any], Shape], Sequence[float]]
"""The times that a model finds for configurations, for a shape."""


@dataclass(frozen=True)
class Model:
    """The times that a model with constants finds for configurations, the kind of these, and the `spread` and `weight`
    of errors.
    """

    times: Callable[[Any], Times]
    constants: Any
    kind: type
    spread: float
    weight: float


def _usual(constants: Any) -> Times:
    columns: dict[Config, Any] = {}

    def times(configs: Sequence[Config], shape: Shape) -> Sequence[float]:
        for config in configs:
            if config not in columns:
                columns[config] = gemm_model.table_of([config], BLOCKS, constants)
        table = np.concatenate([columns[config] for config in configs], axis=1)
        return gemm_model.times(table, *shape, 1, constants).tolist()

    return times


def _few_rows(constants: Any) -> Times:
    return lambda configs, shape: [skinny_model.microseconds(c, *shape, BLOCKS, 2, constants) for c in configs]


MODELS = {
    "usual": Model(_usual, gemm_model.CONSTANTS, Config, 1.3, 0.15),
    "few rows": Model(_few_rows, skinny_model.CONSTANTS, Skinny, 1.6, 0.08),
}


def values(constants: Any) -> dict[str, Any]:
    """The constants of a model by name."""
    return {each.name: getattr(constants, each.name) for each in fields(constants)}


def points(file: Path) -> Points:
    """The times in a file."""
    content = json.loads(file.read_text(encoding="utf-8"))
    configs: list[Any] = []
    for each in content["configs"]:
        kind = {"Config": Config, "Skinny": Skinny}[each.pop("kind")]
        parts: dict[str, Any] = {
            key: tuple(cast(list[int], x)) if isinstance(x, list) else x for key, x in each.items()
        }
        configs.append(kind(**parts))
    return {(m, n, k): {configs[int(i)]: time for i, time in times.items()} for m, n, k, _, times in content["times"]}


def merged(files: Sequence[Path]) -> Points:
    """The times of several files. Those that a later one adds for a shape are scaled by the times of the configurations
    that an earlier one has too, since clocks differ from run to run.
    """
    first, *others = map(points, files)
    for other in others:
        for shape, times in other.items():
            known = first.setdefault(shape, {})
            ratios = [math.log(known[config] / time) for config, time in times.items() if config in known]
            scale = math.exp(sum(ratios) / len(ratios)) if ratios else 1.0
            known |= {config: scale * time for config, time in times.items() if config not in known}
    return first


def lost(model: Model, some: Sequence[Shape], known: Points, constants: Any) -> tuple[list[float], float]:
    """By what factors the chosen configurations are slower than the fastest, and the error of the times near these."""
    factors, error, count, times = list[float](), 0.0, 0, model.times(constants)
    for shape in some:
        measured = {config: time for config, time in known[shape].items() if isinstance(config, model.kind)}
        given = zip(measured, times(list(measured), shape), strict=True)
        found = {config: time for config, time in given if time < math.inf}
        measured = {config: measured[config] for config in found}
        if not measured:
            continue
        best = min(measured.values())
        factors.append(measured[min(found, key=found.__getitem__)] / best)
        near = [math.log(found[config] / time) ** 2 for config, time in measured.items() if time < model.spread * best]
        error, count = error + sum(near), count + len(near)
    return factors, math.sqrt(error / count)


def fitted(model: Model, some: Sequence[Shape], known: Points, constants: Any) -> Any:
    """The constants of the least loss that is found from these on."""

    def loss(x: Any) -> float:
        factors, error = lost(model, some, known, x)
        return sum(f - 1 + max(0.0, f - 1.03) for f in factors) / len(factors) + model.weight * error + away(x)

    def away(x: Any) -> float:
        changed = [
            math.log(after / before)
            for old, new in zip(values(begin).values(), values(x).values(), strict=True) if isinstance(new, Mapping)
            for before, after in zip(old.values(), cast(Mapping[Any, float], new).values(), strict=True)
        ]  # fmt: skip
        return TRUST * sum(change**2 for change in changed) / max(len(changed), 1)

    begin, drawn, step = constants, random.Random(0), 0.3
    least = loss(constants)
    while step > 0.004:
        names: list[tuple[str, Any]] = []
        for key, x in values(constants).items():
            names += [(key, tile) for tile in cast(Mapping[Any, float], x)] if isinstance(x, Mapping) else [(key, None)]
        drawn.shuffle(names)
        before = least
        for key, tile in names:
            for factor in (1 + step, 1 / (1 + step)):
                x = getattr(constants, key)
                changed = x * factor if tile is None else {**x, tile: x[tile] * factor}
                other = replace(constants, **{key: changed})
                if (now := loss(other)) < least - 1e-7:
                    constants, least = other, now
                    break
        if least == before:
            step /= 1.7
    return constants


def has(known: Points, shape: Shape, kind: type) -> bool:
    """Whether there are times of a kernel for a shape."""
    return any(isinstance(config, kind) for config in known.get(shape, {}))


def _chosen_time(measured: Mapping[Any, float], shape: Shape) -> float:
    """The time of the configuration that the models choose among those that were measured."""
    rated: list[tuple[float, float]] = []
    for model in MODELS.values():
        some = [config for config in measured if isinstance(config, model.kind)]
        found = model.times(model.constants)(some, shape)
        factor = USUAL if model.kind is Config else 1.0
        rated += [(factor * time, measured[config]) for config, time in zip(some, found, strict=True)]
    return min(rated)[1]


def main() -> None:
    """Fits both models and prints the constants."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gemm_fit", description=__doc__)
    parser.add_argument("file", type=Path, nargs="+")
    parser.add_argument("--only", choices=MODELS, help="one of the models")
    parser.add_argument("--keep", action="store_true", help="rate the present constants instead of fitting new ones")
    args = parser.parse_args()
    known, sets = merged(args.file), shapes()
    for name, model in MODELS.items():
        if args.only not in (None, name):
            continue
        constants: Any = model.constants
        parts = {key: [s for s in some if has(known, s, model.kind)] for key, some in sets.items()}
        if not args.keep:
            constants = fitted(model, parts["fit"], known, constants)
            print({key: x if isinstance(x, float) else dict(x) for key, x in values(constants).items()})
        for key, some in parts.items():
            factors, error = lost(model, some, known, constants)
            mean = sum(factors) / len(factors) - 1
            slower = f"slower than the fastest by {mean:.1%}, at most {max(factors) - 1:.1%}"
            print(f"{name}, {len(some)} shapes {key}: {slower}; error of the times {error:.0%}")
    for key, some in sets.items():
        both = [s for s in some if s[0] > FEW and has(known, s, Skinny) and has(known, s, Config)]
        factors = [_chosen_time(known[s], s) / min(known[s].values()) for s in both]
        slower = f"slower than the fastest by {sum(factors) / len(both) - 1:.1%}, at most {max(factors) - 1:.1%}"
        print(f"both kernels by the present constants, {len(both)} shapes {key}: {slower}")


if __name__ == "__main__":
    main()
