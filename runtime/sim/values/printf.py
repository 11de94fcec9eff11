# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C's printf, as far as programs may use it."""

import re
from collections.abc import Sequence
from typing import Any

from ....dialects.ptx.sync import CONVERSION

_SHORT = {"hh": 8, "h": 16}
"""The bits of an integer of less than 32 that a conversion names."""


def format_values(format: str, values: Sequence[object], widths: Sequence[int]) -> str:
    """The text that printf writes for values, integers among them of these widths in bits. Conversions and values fit
    together; `tilefold.dialects.ptx.sync.conversions` finds the former.
    """
    rest = iter(zip(values, widths, strict=True))

    def replace(match: "re.Match[str]") -> str:
        return "%" if match["kind"] is None else _format_one(match, *next(rest))

    return CONVERSION.sub(replace, format)


def _format_one(match: "re.Match[str]", value: Any, bits: int) -> str:
    form, kind = f"%{match['form']}", match["kind"]
    if kind == "s":
        return f"{form}s" % value
    if kind in "fFeEgG":
        return f"{form}{kind}" % float(value)
    bits = _SHORT.get(match["size"] or "", bits)
    number = int(value) & ((1 << bits) - 1)
    if kind in "di":
        return f"{form}d" % (number - (number >> (bits - 1) << bits))
    if kind == "p":
        return f"{form}s" % f"{number:#x}"
    if kind == "c":
        return f"{form}s" % chr(number & 0xFF)
    return f"{form}{'d' if kind == 'u' else kind}" % number
