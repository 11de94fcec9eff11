# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel for a GPU whose row was added just before: `python -m tests.project.another_target ROW` prints what the
layers make of it. The row is that of compute capability 8.8, which LLVM has.
"""

import sys

from tests.project.another_type import add_row
from tests.project.tree import ROOT


def main() -> None:
    """Prints one line for each layer."""
    add_row("target", "    for capability in (\n", sys.argv[1])
    from tilefold.base.occupancy import occupancy
    from tilefold.base.target import Target, target_of_device

    import tilefold

    program = tilefold.load(ROOT / "examples" / "transpose.cute")
    print("PTX:", *[line for line in program.ptx("sm_88").splitlines() if line.startswith((".version", ".target"))])
    print("device:", target_of_device(8, 8), Target("sm_88").max_shared_bytes)
    print("occupancy:", occupancy(Target("sm_88"), 128, 32, 0).resident)


if __name__ == "__main__":
    main()
