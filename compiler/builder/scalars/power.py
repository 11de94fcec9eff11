# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Powers of values, fragments and numbers: what `**` means."""

import math as python
from typing import Any

from ....base.errors import Code, TilefoldError
from ..tensors.fragments import Vec, full_like
from .arithmetic import check_computed
from .dtypes import Float32
from .math import exp2, log2, rsqrt, sqrt
from .values import common_type, convert, is_number


def power(base: Any, exponent: Any) -> Any:
    """`base ** exponent`, not both numbers of Python.

    A static integer multiplies, ±0.5 is a root. Any other power is `exp2(exponent * log2(base))`, in Float32 at least:
    NaN of a negative base. Raises TilefoldError (E5002) for powers of integers that are no integers, or not static.
    """
    dtype = common_type(base, exponent)
    if is_number(exponent) and (isinstance(exponent, int) or exponent.is_integer()):
        return _repeated(base, int(exponent))
    if dtype.kind != "float":
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"the power of integers, {base!r} ** {exponent!r}, needs a static exponent",
            "write 1 << n for 2 ** n, or convert to cute.Float32",
        )
    check_computed(dtype)
    if is_number(exponent) and abs(exponent) == 0.5:
        return (sqrt if exponent > 0 else rsqrt)(base)
    wide = Float32 if dtype.bits < 32 else dtype
    if is_number(base):
        if base <= 0:
            raise TilefoldError(Code.BUILD_VALUE, f"{base} has no power by a value", "the base is positive")
        result = exp2(_to(exponent, wide) * python.log2(base))
    else:
        result = exp2(log2(_to(base, wide)) * (exponent if is_number(exponent) else _to(exponent, wide)))
    return _to(result, dtype)


def _to(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else x.to(dtype)


def _repeated(base: Any, exponent: int) -> Any:
    if exponent < 0:
        if base.dtype.kind != "float":
            raise TilefoldError(Code.BUILD_VALUE, f"{base!r} ** {exponent} is no integer", "convert to cute.Float32")
        return 1 / _repeated(base, -exponent)
    if exponent == 0:
        return _one(base)
    square: Any = base
    result: Any = None
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return result


def _one(like: Any) -> Any:
    return full_like(like, 1) if isinstance(like, Vec) else convert(1, like.dtype)
