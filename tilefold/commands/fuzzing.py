# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold check --fuzz N`: launches of a file with arguments that are drawn at random."""

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilefold.base.errors import Code, TilefoldError
from tilefold.commands.launching import run_options
from tilefold.commands.options import parse_pairs
from tilefold.dialects.kernel import KernelOp
from tilefold.dialects.tile import TensorType
from tilefold.driver.filled_arguments import Arguments, prepare
from tilefold.driver.launches import Argument, Launch
from tilefold.driver.lowering import Program
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.inttuple import leaves
from tilefold.runtime.check import Filled
from tilefold.tools.checking.draws import Draw, Geometry

_RANGE = re.compile(r"(-?\d{1,18}):(-?\d{1,18})(?::(\d{1,18}))?")
_ALLOCATION = 256


@dataclass(frozen=True)
class Drawn:
    """A launch with drawn arguments, which `words` describe. Special values may break its conditions."""

    launch: Launch
    arguments: Arguments
    words: str
    is_special: bool


def draws(args: argparse.Namespace, program: Program, launch: Launch) -> Iterator[Drawn]:
    """The launches that `--fuzz` asks for. TilefoldError (E4003) for a malformed `--range`."""
    ranges = _ranges(args)
    for number in range(args.fuzz):
        draw = Draw(np.random.Generator(np.random.PCG64([abs(args.seed), number])), ranges)
        yield _drawn(args, program.kernels[launch.kernel], launch, draw, number)


def _ranges(args: argparse.Namespace) -> dict[str, range]:
    found: dict[str, range] = {}
    for name, text in parse_pairs(args.range, "--range").items():
        match = _RANGE.fullmatch(text)
        made = range(0) if match is None else range(int(match[1]), int(match[2]) + 1, int(match[3] or 1) or 1)
        if not 0 < len(made) < 1 << 24:
            raise TilefoldError(Code.CLI_VALUE, f"--range {name}={text[:40]}: not LOW:HIGH or LOW:HIGH:STEP")
        found[name] = made
    return found


def _drawn(args: argparse.Namespace, kernel: KernelOp, launch: Launch, draw: Draw, number: int) -> Drawn:
    files = parse_pairs(args.arg, "--arg")
    arrays = dict[str, Geometry]() if files else _geometries(kernel, launch)
    draw.begin(list(arrays.values()))
    arguments: list[Argument] = []
    for argument in launch.arguments:
        if argument.name in arrays and isinstance(argument.type, TensorType):
            shape, strides = draw.layout(argument.name, arrays[argument.name])
            layout = argument.type.layout.data
            layout = Layout(shape, strides) if isinstance(layout.shape, tuple) else Layout(shape[0], strides[0])
            argument = replace(argument, type=argument.type.with_layout(layout, argument.type.align.data))
        arguments.append(argument)
    chosen = replace(launch, arguments=tuple(arguments))
    limit = run_options(args).limits.bytes
    prepared = prepare(chosen, files, seed=args.seed + number + 1, max_bytes=limit)
    filled: dict[str, Filled] = {}
    offsets: dict[str, int] = {}
    for argument in chosen.arguments:
        given = prepared.filled[argument.name]
        if isinstance(argument.type, TensorType):
            align = argument.type.align.data
            offsets[argument.name] = align if align < _ALLOCATION else 0
            values = draw.values(argument.name, given.values) if given.initialised else given.values
        else:
            scalar = given.values.reshape(-1)[0]
            values = np.array(draw.number(argument.name, scalar), given.values.dtype).reshape(given.values.shape)
        filled[argument.name] = Filled(values, given.initialised)
    words = f"draw {number}: {', '.join(draw.words) or 'other values'}"
    return Drawn(chosen, Arguments(prepared.types, filled, offsets), words, draw.is_special)


def _geometries(kernel: KernelOp, launch: Launch) -> Mapping[str, Geometry]:
    """The sizes of the tensors of a launch, beside those of the parameters; without those of nested layouts."""
    expected = {parameter.name: parameter.layout for parameter in kernel.parameters()}
    found: dict[str, Geometry] = {}
    for argument in launch.arguments:
        wanted = expected.get(argument.name)
        if not isinstance(argument.type, TensorType) or not isinstance(wanted, Layout) or argument.values is not None:
            continue
        layout = argument.type.layout.data
        if not isinstance(layout, Layout):
            continue
        shape, strides = tuple(leaves(layout.shape)), tuple(leaves(layout.stride))
        extents, steps = tuple(leaves(wanted.shape)), tuple(leaves(wanted.stride))
        if layout.shape in (shape, shape[0]) and len(extents) == len(shape):
            found[argument.name] = Geometry(shape, strides, extents, steps, argument.type.align.data)
    return found
