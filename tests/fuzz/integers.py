# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random integer programs as problems: see `.integer_programs`, which computes their results without NumPy's types."""

from itertools import count
from typing import Any

import numpy as np

from tests.fuzz import integer_programs
from tests.fuzz.problem import INTERPRETED, Generator, Problem, Tensor

_NEXT = 1_000_003  # from a seed whose program has no result to the next


def generate(seed: int) -> Problem:
    """The program of a seed, or of the first after it that has a result."""
    made = next(each for step in count() if (each := integer_programs.generate(seed + step * _NEXT)) is not None)
    expected = made.expected.reshape(-1)
    arguments: dict[str, Any] = dict(made.arguments)
    for name, value in made.arguments.items():
        if hasattr(value, "reshape") and np.ndim(value):
            arguments[name] = Tensor(np.asarray(value))
    arguments["B"] = Tensor(np.zeros_like(expected), expected, fresh=True)
    return Problem(
        made.text,
        (made.grid, 1, 1),
        (made.threads, 1, 1),
        arguments,
        costs=True,
        interpreted=INTERPRETED,
        names=frozenset({"B"}),
    )


INTEGERS = Generator(generate)
