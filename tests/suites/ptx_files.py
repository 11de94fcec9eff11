# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.suites.ptx_files FOLDER`: reads each kernel of the PTX files below a folder as operations.

Prints a line for each kernel that is refused, with the reason, and the number of those that are read.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from tilefold.compiler.ptx.registers import type_of
from tilefold.compiler.ptx.syntax import Function, Parameter, PtxError
from tilefold.dialects.ptx.base import GLOBAL, MAP
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from tilefold.driver.ptx_module import PtxModule

SHARED = 48 << 10
"""The bytes of a shared array without a size."""


def main(folder: Path) -> int:
    """Reads the files; the exit status."""
    read, refused, files = 0, Counter[str](), 0
    for file in sorted(folder.rglob("*.ptx")):
        files += 1
        text = file.read_text(errors="replace")
        try:
            module = PtxModule.read(text, file.name)
        except PtxError as error:
            refused[_reason(error)] += 1
            print(f"{file}: {error}".splitlines()[0], flush=True)
            continue
        for function in module.module.entries:
            try:
                module.lowered(function, types_of(function, text), function.block or (32, 1, 1), SHARED)
                read += 1
            except PtxError as error:
                refused[_reason(error)] += 1
                print(f"{file}:{function.name}: {error}".splitlines()[0], flush=True)
    print(f"{files} files: {read} kernels read, {refused.total()} refused")
    for reason, count in refused.most_common():
        print(f"{count:6} {reason}")
    return 0


def types_of(function: Function, text: str) -> list[Attribute]:
    """Types that the parameters may have: 64 bits are an address, and 128 bytes a tensor map if the kernel copies
    tensors.
    """
    maps = "cp.async.bulk.tensor" in text or "cp.reduce.async.bulk.tensor" in text
    return [_type(parameter, maps) for parameter in function.parameters]


def _type(parameter: Parameter, maps: bool) -> Attribute:
    if parameter.is_structure:
        return MAP if maps and (parameter.size, parameter.align) in ((128, 64), (128, 128)) else GLOBAL
    type = type_of(parameter.type)
    return GLOBAL if type == i64 else type


def _reason(error: PtxError) -> str:
    return re.sub(r"%\w+|[-\d]+|\$\w+|_Z\w+", "*", error.problem)[:100]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
