# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random floating-point kernels as problems, with exact results: see `tests.emit.float_programs`."""

import numpy as np

from tests.emit.float_kernels import Kernel
from tests.emit.float_programs import generate
from tests.fuzz.problem import Generator, Problem, Tensor


def problem_of(kernel: Kernel, kept: list[str]) -> Problem:
    """A kernel that stores the values `kept`, whose PTX is interpreted for every kind of target that has it."""
    storage = {name: kernel.stored(name) for name in (*kernel.inputs, *kept)}
    arguments = {
        f"{name}t".removeprefix("%"): Tensor(np.zeros_like(array), array, fresh=True) if name in kept else Tensor(array)
        for name, array in storage.items()
    }
    grid, block = (kernel.blocks, 1, 1), (kernel.threads, 1, 1)
    return Problem(kernel.text(kept), grid, block, arguments, target="sm_90a", interpreted=tuple(kernel.targets()))


FLOATS = Generator(lambda seed: problem_of(*generate(seed)))
