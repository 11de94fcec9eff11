# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every example, on the GPU where there is one and else on the simulator, and says which checks hold.

    python -m examples
"""

import sys
from pathlib import Path

from tilefold.cli import main


def run_all() -> int:
    """Runs the examples in the order of their names; the exit status is that of the first failure, 0 if all hold."""
    status = 0
    files = sorted(Path(__file__).parent.glob("*.cute"))
    for file in files:
        print(f"$ tilefold run {file.name}", flush=True)
        failed = main(["run", str(file)])
        status = status or failed
        print(flush=True)
    print(f"{len(files)} examples: {'a check failed' if status else 'all checks hold'}")
    return status


if __name__ == "__main__":
    sys.exit(run_all())
