# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of the simulator as words of a command line."""

from tilefold.runtime.options import NUMERICS, SimOptions


def simulation_words(options: SimOptions) -> list[str]:
    """The words by which a command runs the simulator with these options."""
    words = ["--seed", str(options.seed)]
    for name, limit in (("--max-steps", options.max_steps), ("--max-memory", options.max_memory)):
        words += [] if limit is None else [name, str(limit)]
    words += [] if options.races else ["--no-races"]
    words += ["--numbers"] if options.numbers else []
    words += [] if options.resident == 1 else ["--resident", str(options.resident)]
    return words if options.numerics == NUMERICS[0] else [*words, "--numerics", options.numerics]
