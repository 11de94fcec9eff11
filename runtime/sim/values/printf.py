# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C's printf, as far as programs may use it."""

import re
from collections.abc import Sequence
from typing import Any

_CONVERSION = re.compile(r"%(%|ll[dux]|[diuxfegps])")


def format_values(format: str, values: Sequence[object], widths: Sequence[int]) -> str:
    """The text that printf writes for values, integers among them of these widths in bits. Conversions and values fit
    together; `tilefold.dialects.ptx.sync.conversions` finds the former.
    """
    rest = iter(zip(values, widths, strict=True))

    def replace(match: "re.Match[str]") -> str:
        conversion = match[1]
        if conversion == "%":
            return "%"
        return _format_one(conversion[-1], *next(rest))

    return _CONVERSION.sub(replace, format)


def _format_one(conversion: str, value: Any, bits: int) -> str:
    if conversion == "s":
        return str(value)
    if conversion in "feg":
        return f"%{conversion}" % float(value)
    number = int(value)
    if conversion in "di":
        return str(number)
    number &= (1 << bits) - 1
    if conversion == "p":
        return f"{number:#x}"
    return f"{number:x}" if conversion == "x" else str(number)
