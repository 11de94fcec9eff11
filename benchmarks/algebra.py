# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout algebra against pycute, NVIDIA's in Python: `python -m benchmarks.algebra`.

pycute comes with the package nvidia-cutlass, which is no dependency: install it beside tilefold to take these
figures. Each operation runs over distinct random inputs, made before, on which both sides agree; they take turns,
and the fastest of several rounds counts. Nothing is cached between inputs. The results go to benchmarks/results.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from random import Random
from typing import Any

import tilefold.layout as cute
from tilefold.base.errors import Code, LayoutError, TilefoldError
from tilefold.layout.algebra.coordinates import crd2idx, idx2crd
from tilefold.layout.algebra.inttuple import flatten_to_tuple, product

from benchmarks.record import Figure, Record, add_options, circumstances, take_record, this_machine

# pycute has no types; it is loaded when figures are taken.
Pycute = Any
Inputs = list[tuple[Any, ...]]
SEED = 20


@dataclass(frozen=True, slots=True)
class Contest:
    """One operation in both libraries, and how to draw its arguments: shapes, layouts (as shape and stride), ints."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    draw: Callable[[Random], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A layout as drawn, before either library has seen it."""

    shape: Any
    stride: Any


def load_pycute() -> Pycute:
    """The module pycute. TilefoldError if it is not installed."""
    try:
        return import_module("pycute")
    except ImportError:
        hint = "pip install --no-deps nvidia-cutlass"
        raise TilefoldError(Code.CLI_VALUE, "pycute, the peer of these figures, is not installed", hint) from None


def _shape(random: Random, extents: Sequence[int], leaves: int = 4) -> Any:
    """A shape of up to `leaves` extents, nested here and there."""
    modes: list[Any] = []
    while leaves > 0:
        if leaves >= 2 and random.random() < 0.4:
            modes.append((random.choice(extents), random.choice(extents)))
            leaves -= 2
        else:
            modes.append(random.choice(extents))
            leaves -= 1
        if random.random() < 0.25:
            break
    return tuple(modes)


def _compact(random: Random, leaves: int = 4, gap: int = 1) -> Drawn:
    """A layout whose modes, in random order, continue each other, or leave gaps of up to `gap`."""
    shape = _shape(random, (2, 4, 8, 16), leaves)
    flat = flatten_to_tuple(shape)
    strides = [0] * len(flat)
    step = 1
    for i in random.sample(range(len(flat)), len(flat)):
        step *= random.choice((1, 1, gap))
        strides[i] = step
        step *= flat[i]
    return Drawn(shape, _refill(shape, iter(strides)))


def _refill(shape: Any, leaves: Iterator[int]) -> Any:
    return next(leaves) if isinstance(shape, int) else tuple([_refill(s, leaves) for s in shape])


def _flat(random: Random, extent: int = 16) -> Drawn:
    """A layout of one mode."""
    return Drawn(1 << random.randrange(1, extent.bit_length()), 1 << random.randrange(4))


def _coordinate(random: Random, shape: Any) -> Any:
    return random.randrange(shape) if isinstance(shape, int) else tuple([_coordinate(random, s) for s in shape])


def contests(pycute: Pycute) -> Iterator[Contest]:
    """Every operation that both libraries have."""

    def layout(random: Random) -> tuple[Any, ...]:
        return (_compact(random, gap=2),)

    def layout_and_tile(random: Random) -> tuple[Any, ...]:
        return _compact(random), _flat(random, 8)

    def shape(random: Random) -> tuple[Any, ...]:
        return (_shape(random, (2, 3, 4, 8)),)

    def at(random: Random) -> tuple[Any, ...]:
        drawn = _compact(random, gap=2)
        return drawn, _coordinate(random, drawn.shape)

    def at_index(random: Random) -> tuple[Any, ...]:
        drawn = _compact(random, gap=2)
        return drawn, random.randrange(product(drawn.shape))

    def sliced(random: Random) -> tuple[Any, ...]:
        drawn = _compact(random, gap=2)
        return drawn, tuple([None if random.random() < 0.5 else _coordinate(random, s) for s in drawn.shape])

    def call(f: Any, coord: Any) -> Any:
        return f(coord)

    def parts(random: Random) -> tuple[Any, ...]:
        drawn = _compact(random, gap=2)
        return drawn.shape, drawn.stride

    def bounded(random: Random) -> tuple[Any, ...]:
        return _compact(random, 3, gap=2), 1 << random.randrange(4, 20)

    # Ours are immutable and hashable, which costs more than pycute's plain objects when they are made.
    yield Contest("Layout(shape, stride)", cute.Layout, pycute.Layout, parts)
    yield Contest("make_layout(shape)", cute.make_layout, pycute.Layout, shape)
    yield Contest(
        "make_layout(layouts)", cute.make_layout, pycute.make_layout, lambda r: (_compact(r), _compact(r), _flat(r))
    )
    for name in ("size", "cosize", "coalesce", "filter", "right_inverse", "left_inverse"):
        yield Contest(name, getattr(cute, name), getattr(pycute, name), layout)
    yield Contest("layout(coordinate)", call, call, at)
    yield Contest("layout(index)", call, call, at_index)
    yield Contest("layout(coordinate with _)", call, call, sliced)
    yield Contest("crd2idx", crd2idx, pycute.crd2idx, lambda r: (_coordinate(r, p := _shape(r, (2, 3, 8))), p, p))
    yield Contest("idx2crd", idx2crd, pycute.idx2crd, lambda r: (r.randrange(64), _shape(r, (2, 3, 8))))
    yield Contest("complement", cute.complement, pycute.complement, bounded)
    yield Contest("composition", cute.composition, pycute.composition, lambda r: (_compact(r), _compact(r, 3)))
    for form in ("logical_divide", "zipped_divide", "tiled_divide"):
        yield Contest(form, getattr(cute, form), getattr(pycute, form), layout_and_tile)
    for form in ("logical_product", "zipped_product", "tiled_product"):
        yield Contest(form, getattr(cute, form), getattr(pycute, form), layout_and_tile)


def inputs(contest: Contest, pycute: Pycute, count: int) -> tuple[Inputs, Inputs]:
    """`count` distinct arguments for both sides, on which they give one result."""
    random = Random(f"{SEED} {contest.name}")
    ours: Inputs = []
    theirs: Inputs = []
    seen: set[tuple[Any, ...]] = set()
    for _ in range(count * 50):
        drawn = contest.draw(random)
        if drawn in seen:
            continue
        seen.add(drawn)
        a = tuple([cute.Layout(x.shape, x.stride) if isinstance(x, Drawn) else x for x in drawn])
        b = tuple([pycute.Layout(x.shape, x.stride) if isinstance(x, Drawn) else x for x in drawn])
        with suppress(LayoutError, AssertionError):  # each side's way to refuse
            if _same(contest.ours(*a), contest.theirs(*b)):
                ours.append(a)
                theirs.append(b)
        if len(ours) == count:
            break
    return ours, theirs


def _same(a: Any, b: Any) -> bool:
    return (a.shape, a.stride) == (b.shape, b.stride) if isinstance(a, cute.Layout) else bool(a == b)


def _round(f: Callable[..., Any], arguments: Inputs) -> float:
    """Microseconds a call."""
    began = time.perf_counter()
    for argument in arguments:
        f(*argument)
    return (time.perf_counter() - began) * 1e6 / len(arguments)


def measure(repeat: int = 15, count: int = 1000, commit: str = "") -> Record:
    """Times every contest: the fastest of `repeat` rounds over up to `count` inputs."""
    pycute = load_pycute()
    figures: list[Figure] = []
    for contest in contests(pycute):
        ours, theirs = inputs(contest, pycute, count)
        rounds = [(_round(contest.ours, ours), _round(contest.theirs, theirs)) for _ in range(repeat)]
        mine, other = min(a for a, _ in rounds), min(b for _, b in rounds)
        note = f"{len(ours)} inputs"
        figures.append(Figure(contest.name, mine, "us", f"pycute {other:.4g} us", other / mine, target=1.0, note=note))
    facts = circumstances(f"{this_machine()} algebra", python=sys.version.split()[0], commit=commit)
    return Record("layout algebra, time of a call", facts, tuple(figures))


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints and keeps the figures; 1 where pycute is missing or, with --strict, is faster at something."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.algebra", description=__doc__, allow_abbrev=False)
    parser.add_argument("--repeat", type=int, default=15, metavar="N", help="rounds of each side (default: 15)")
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="inputs of each operation (default: 1000)")
    add_options(parser)
    parser.add_argument("--strict", action="store_true", help="fail where pycute is faster")
    args = parser.parse_args(arguments)
    if args.repeat < 1 or args.count < 1:
        parser.error("--repeat and --count must be at least 1")
    return take_record(lambda: measure(args.repeat, args.count, args.commit), args.out, strict=args.strict)


if __name__ == "__main__":
    sys.exit(main())
