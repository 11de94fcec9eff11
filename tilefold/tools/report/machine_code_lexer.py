# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lexer for machine code as nvdisasm prints it. Pygments has none: its `sass` is a language of style sheets."""

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Text


class MachineCodeLexer(RegexLexer):
    """Addresses, predicates, instructions, registers, labels and numbers."""

    name = "Machine code of NVIDIA GPUs"
    tokens = {
        "root": [
            (r"/\*[0-9a-f]+\*/", Comment),
            (r"`\([^)]*\)|^\S+:$", Name.Label),
            (r"\b(?:U?R(?:\d+|Z)|U?P(?:\d+|T)|SR_[\w.]+|B\d+)\b", Name.Variable),
            (r"-?0x[0-9a-f]+\b|-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b", Number),
            (r"\b[A-Z][A-Z0-9_]+(?:\.[\w:]+)*", Keyword),
            (r"\s+|.", Text),
        ]
    }  # fmt: skip
