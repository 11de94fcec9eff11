# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of a run, so that a program from anywhere can be run."""

from dataclasses import dataclass, field
from math import inf
from time import monotonic


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run; beyond them it ends with an error.

    `steps` are operations executed by warps, `bytes` the memory of the arguments and of the block, also of each
    expression that fills or checks them, `characters` the text that the kernel prints, `seconds` the time since the
    run, or the command of which it is part, has `began`.
    """

    steps: int = 100_000_000
    bytes: int = 4 << 30
    characters: int = 16 << 20
    seconds: float = inf
    began: float = field(default_factory=monotonic, compare=False)


DEFAULT_LIMITS = Limits()
"""The limits of a launch that names none."""
COMMAND_SECONDS = 600.0
"""The default of `--max-seconds`."""
