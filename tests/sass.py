# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code as text, by nvdisasm of the package nvidia-cuda-nvdisasm, and the instructions in it."""

import re
from collections import Counter

from tilefold.compiler.machine.nvdisasm import disassemble

_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
_FUNCTION = re.compile(r"^\.text\.(\S+):$", re.MULTILINE)


def instructions(cubin: bytes) -> dict[str, Counter[str]]:
    """For each kernel, how often each instruction stands in its machine code, by name without what follows a dot."""
    parts = _FUNCTION.split(disassemble(cubin))[1:]
    return {
        name: Counter(mnemonic.partition(".")[0] for mnemonic in _INSTRUCTION.findall(text))
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }
