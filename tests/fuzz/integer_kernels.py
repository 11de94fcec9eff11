# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions on integers of all types as kernels in Python: see `.integer_functions` for their text, and
`.wrapping` for what it means.
"""

from itertools import count
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.builder.scalars.dtypes import DTYPES

from tests.fuzz.functions import defined
from tests.fuzz.integer_functions import PARAMETERS, text_of
from tests.fuzz.problem import INTERPRETED, Generator, Problem, Tensor
from tests.fuzz.wrapping import INTEGERS, NAMES, TYPES, UndefinedError
from tilefold import cute

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

GRID, THREADS = 2, 5
_NEXT = 1_000_003  # from a seed whose function has no result to the next
_IN_KERNELS: dict[str, Any] = {
    **{name: DTYPES[name] for name in (*INTEGERS, "Boolean")},
    **{"where": cute.where, "minimum": cute.math.min, "maximum": cute.math.max, "ceil_div": cute.ceil_div},
}
"""What the names in a text are in a kernel."""


@cute.kernel
def k(function: cute.Constexpr, n, m, u, A8, A16, A32, A64, U8, U16, U32, U64, out):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    elements = [tensor[t] for tensor in (A8, A16, A32, A64, U8, U16, U32, U64)]
    results = cute.jit(function)(t, b, n, m, u, *elements)
    for number in cute.range_constexpr(len(results)):
        out[b, t, number] = results[number]


def _arrays(random: Random) -> dict[str, NDArray[Any]]:
    """The tensors that are read, by their names."""
    made: dict[str, NDArray[Any]] = {}
    for name in (each for each in PARAMETERS if each[1:].isdigit()):
        type = TYPES[PARAMETERS[name]]
        greatest = type.least + (1 << type.bits) - 1
        edges = [0, 1, type.least, greatest, greatest - 1]
        numbers = [random.choice([*edges, *[type.reduced(random.getrandbits(64))] * 5]) for _ in range(THREADS)]
        made[name.upper()] = np.array(numbers, type.name.lower())
    return made


def generate(seed: int) -> Problem:
    """The kernel of a seed, or of the first after it whose results are defined."""
    return next(made for step in count() if (made := _generate(seed + step * _NEXT)) is not None)


def _generate(seed: int) -> Problem | None:
    random, text = Random(seed), text_of(seed)
    arrays = _arrays(random)
    scalars = {
        "n": np.int32(random.getrandbits(31) - (1 << 30)),
        "m": np.int64(random.getrandbits(62)),
        "u": np.uint32(2**32 - 5),
    }
    of_python = defined(text, dict(NAMES))
    rows: list[list[int]] = []
    try:
        for block in range(GRID):
            for thread in range(THREADS):
                values = (thread, block, *scalars.values(), *(array[thread] for array in arrays.values()))
                given = [TYPES[type](int(x)) for type, x in zip(PARAMETERS.values(), values, strict=True)]
                rows.append([result.value for result in of_python(*given)])
    except UndefinedError:
        return None
    expected = np.array(rows, np.int64)
    out = np.zeros((GRID, THREADS, expected.shape[1]), np.int64)
    try:
        built = k(defined(text, _IN_KERNELS), *scalars.values(), *arrays.values(), out).build((THREADS, 1, 1))
    except Exception as error:
        error.add_note(text)
        raise
    arguments: dict[str, Any] = {**scalars, **{name: Tensor(array) for name, array in arrays.items()}}
    arguments["out"] = Tensor(out.reshape(-1), expected.reshape(-1), fresh=True)
    return Problem(
        built.to_cute(),
        (GRID, 1, 1),
        (THREADS, 1, 1),
        arguments,
        interpreted=INTERPRETED,
        source=text,
        names=frozenset({"out"}),
    )


INTEGER_KERNELS = Generator(generate)
