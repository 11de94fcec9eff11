# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of kernels in Python as files: the kernel with its launch as text, and its arguments as arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, SymbolRefAttr, i64
from xdsl.ir import Attribute, Block, Region

from tilefold.compiler.frontend.program import print_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.dialects.kernel import KernelOp
from tilefold.dialects.run import ArgOp, LaunchOp
from tilefold.dialects.tile import TensorType
from tilefold.driver.filled_arguments import unpacked
from tilefold.driver.output import write_output
from tilefold.runtime.arrays.storage import read_logical_array
from tilefold.runtime.engine import Argument, LaunchConfig, TensorArgument
from tilefold.runtime.options import SimOptions
from tilefold.tools.reproduction.folder import PROGRAM, Reproduction, Values, simulation_options

if TYPE_CHECKING:
    from .compiled_kernel import CompiledKernel


def reproduction(
    built: "CompiledKernel", config: LaunchConfig, arguments: Mapping[str, Argument], options: SimOptions, command: str
) -> Reproduction:
    """The files that repeat a launch by a command on its text; arguments without values stay so."""
    module = built.traced.module.clone()
    kernel = next(op for op in module.walk() if isinstance(op, KernelOp) and op.symbol == built.symbol)
    if config.cluster != (1, 1, 1):
        kernel.cluster = DenseArrayBase.from_list(i64, config.cluster)
    types = {parameter.name: parameter.type for parameter in kernel.parameters()}
    launch = _launch(module, built.symbol, config, types, arguments)
    arrays = {
        name: read_logical_array(unpacked(value.storage, launch[name]), value.layout)
        for name, value in arguments.items()
        if isinstance(value, TensorArgument) and value.initialised and value.layout is not None
    }
    words = [command, PROGRAM, *simulation_options(options)]
    text = print_program(module, locations=True, header=True)
    return Reproduction(text, words, [Values((), arrays)])


def _launch(
    module: ModuleOp,
    symbol: str,
    config: LaunchConfig,
    types: Mapping[str, Attribute],
    arguments: Mapping[str, Argument],
) -> dict[str, Attribute]:
    """Adds a launch to a module; the types of its arguments."""
    ops = [_argument(name, type, arguments[name]) for name, type in types.items()]
    outer, name = symbol.split("::")
    region = Region(Block(ops))
    module.body.block.add_op(LaunchOp(SymbolRefAttr(outer, [name]), config.grid, None, region, name))
    return {op.arg_name.data: op.arg_type for op in ops}


def _argument(name: str, type: Attribute, value: Argument) -> ArgOp:
    if not isinstance(value, TensorArgument):
        return ArgOp(name, type, repr(value.item() if isinstance(value, np.generic) else value))
    assert isinstance(type, TensorType)
    assert value.layout is not None
    fill = "zeros" if value.initialised else "poison"
    return ArgOp(name, type.with_layout(value.layout, type.align.data), fill)


def reduce_folder(folder: Path, repeated: Reproduction, options: SimOptions, seconds: float) -> str:
    """Writes a reproduction whose program is shrunk while it fails in the same way; the text of that program.

    Raises TilefoldError (E4003) for one that does not fail.
    """
    from tilefold.tools.joined import Bisection
    from tilefold.tools.reduction.failure import Conditions
    from tilefold.tools.reduction.reduce import reduced

    repeated.write(folder)
    source = plain_source(repeated.text, PROGRAM)
    conditions = Conditions(
        Bisection(), files={name: str(folder / f"{name}.npy") for name in repeated.launches[0].arrays}, options=options
    )
    text = reduced(source, conditions.interest(source, lambda line: None), seconds)
    write_output(text, str(folder / PROGRAM))
    return text
