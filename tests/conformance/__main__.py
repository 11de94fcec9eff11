# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.conformance SUITE`: runs the lit tests of the public CuTe IR, found under the folder SUITE.

SUITE is a copy of `cutlass_compiler/` of NVIDIA/cutlass (or a part of it), whose RUN lines call `cute-opt` and
`FileCheck`. Prints how many files of each folder passed, writes why the others failed to a file, and exits
with 1 unless all passed.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from .run_lines import UnsupportedError, run_line, run_lines


def run_file(file: Path, scratch: Path, device: str = "sim") -> str:
    """Runs every RUN line of a test; returns what failed first, or nothing."""
    lines = run_lines(file.read_text())
    if not lines:
        return "no RUN line"
    for line in lines:
        try:
            if failure := run_line(line, file, scratch, device):
                return failure
        except UnsupportedError as error:
            return f"this runner does not know the {error}"
    return ""


def main(argv: list[str]) -> int:
    """Runs the tests and prints the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suite", type=Path, help="the folder that holds the tests")
    parser.add_argument("--only", default="", help="run the files whose path contains this text")
    parser.add_argument(
        "--device", choices=("sim", "cuda"), default="sim", help="where programs that launch kernels run (default: sim)"
    )
    parser.add_argument(
        "--failures", type=Path, default=Path("build/conformance-failures.txt"), help="where to write why files failed"
    )
    options = parser.parse_args(argv)
    files = [file for file in sorted(options.suite.rglob("*.mlir")) if options.only in str(file)]
    if not files:
        print(f"no tests in {options.suite}", file=sys.stderr)
        return 2
    passed: Counter[Path] = Counter()
    total: Counter[Path] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for file in files:
            name = file.relative_to(options.suite)
            failure = run_file(file, Path(scratch), options.device)
            total[name.parent] += 1
            passed[name.parent] += not failure
            if failure:
                failures.append(f"==== {name}\n{failure.strip()}\n")
    for folder, count in total.items():
        print(f"{folder!s:60} {passed[folder]:4} of {count:4}")
    print(f"{sum(passed.values())} passed, {len(failures)} failed, of {len(files)}; {options.failures} says why")
    options.failures.parent.mkdir(parents=True, exist_ok=True)
    options.failures.write_text("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
