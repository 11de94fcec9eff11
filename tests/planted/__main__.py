# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks each planted kernel, and prints those whose fault is not found, and the false alarms."""

import sys
import time
from collections import Counter

from tests.planted import python_pipelines as python_pipelines
from tests.planted import python_turns as python_turns
from tests.planted.judging import judged, judged_call
from tests.planted.planting import planted
from tests.planted.python_kernels import CALLS, PROTOCOLS


def main() -> int:
    """1 if a fault is not found, or a correct kernel is reported."""
    counts: Counter[str] = Counter()
    wanted = sys.argv[1:]
    begin = time.process_time()
    cases = [(f"{kernel.table}: {kernel.title}", judged(kernel)) for kernel in planted()]
    cases += [(f"Python: {title}", judged_call(call)) for title, call in (CALLS | PROTOCOLS).items()]
    for title, outcomes in cases:
        if wanted and not any(word in title for word in wanted):
            continue
        for outcome in outcomes:
            counts[outcome.kind] += 1
            if outcome.problem:
                print(f"{outcome.kind}: {title}: {outcome.problem}")
                if wanted:
                    print(outcome.report)
    print(", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
    print(f"{time.process_time() - begin:.1f} s")
    return int(bool(counts["not found"] or counts["false alarm"] or counts["badly told"]))


if __name__ == "__main__":
    sys.exit(main())
