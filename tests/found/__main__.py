# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks all faults of public kernels, prints those that are not found or not well told, and false alarms; with
`--write` it writes their table to the page.
"""

import re
import sys

from tests.found.cases import PAGE, found, table
from tests.planted.judging import judged

_TABLE = re.compile(r"^\| report \|.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def main() -> int:
    """1 if a fault is not found, or a fixed kernel is reported."""
    if "--write" in sys.argv[1:]:
        PAGE.write_text(_TABLE.sub(lambda _: table(), PAGE.read_text()).rstrip() + "\n")
        return 0
    problems = [
        f"{outcome.kind}: {case.kernel.title}: {outcome.problem}"
        for case in found()
        for outcome in judged(case.kernel)
        if outcome.problem
    ]
    print("\n".join([*problems, f"{len(tuple(found()))} faults, {len(problems)} problems"]))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
