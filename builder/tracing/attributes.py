# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes that objects of a kernel lack: where they are, and the forms here of NumPy's and torch's methods;
and the base of objects whose attributes change.
"""

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import get_type_hints

_WRITE = "a fragment is a value that never changes: r = cute.make_rmem_tensor(x.shape, x.dtype), r.store(x), r[i] = v"
_HOST = "a fragment has values only when the kernel runs: store it to a tensor, and read that after the launch"
_ORDER = "a fragment is in the registers of one thread: cute.range loops over its elements x[i]"
_PRINT = 'cute.printf("{}", x[i]) prints an element when the kernel runs'
_NO_LAYOUT = "a fragment has no layout in memory; the tensor that it is loaded from does"

_FRAGMENTS: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(("fill", "put", "itemset", "setfield", "resize", "setflags", "masked_fill_"), _WRITE),
    **dict.fromkeys(("item", "tolist", "tobytes", "tofile", "tostring", "dump", "dumps", "numpy", "cpu"), _HOST),
    **dict.fromkeys(("data", "ctypes", "base", "to_device", "getfield"), _HOST),
    **dict.fromkeys(("sort", "argsort", "partition", "argpartition", "searchsorted", "nonzero", "choose"), _ORDER),
    **dict.fromkeys(("argmin", "cumsum", "cumprod", "compress", "trace", "diagonal", "take"), _ORDER),
    **dict.fromkeys(("flags", "strides", "stride", "layout", "byteswap", "newbyteorder"), _NO_LAYOUT),
    **dict.fromkeys(("T", "mT", "transpose", "swapaxes", "permute"), "take another view of the tensor: cute.select"),
    **dict.fromkeys(("astype", "type"), "write x.to(cute.Float32)"),
    **dict.fromkeys(("view", "bitcast"), "cute.arch.bitcast(x[i], cute.Int32) has the bits of an element"),
    **dict.fromkeys(("copy", "clone", "detach", "contiguous"), "a fragment never changes, so it needs no copy"),
    **dict.fromkeys(("flatten", "ravel", "flat"), "write x.reshape(x.size)"),
    **dict.fromkeys(("squeeze", "unsqueeze"), "write x.reshape(shape)"),
    **dict.fromkeys(("ndim", "dim"), "write x.rank"),
    **dict.fromkeys(("itemsize", "nbytes", "device"), "write x.dtype.bits and x.size"),
    **dict.fromkeys(("numel", "__len__"), "write x.size"),
    **dict.fromkeys(("clip", "clamp"), "write max(min(x, high), low)"),
    **dict.fromkeys(("conj", "conjugate", "real", "imag"), "the elements are real numbers"),
    **dict.fromkeys(("dot", "matmul", "mm"), "write (x * y).sum(), or cute.gemm on fragments of a tiled MMA"),
    "argmax": "write cute.argmax(x)",
    "mean": "write x.sum() / x.size",
    "var": "write m = x.sum() / x.size and ((x - m) * (x - m)).sum() / x.size",
    "std": "write m = x.sum() / x.size and cute.math.sqrt(((x - m) * (x - m)).sum() / x.size)",
    "ptp": "write x.max() - x.min()",
    "round": "write round(x), which gives Int32, or cute.math.round_even(x)",
    "abs": "write abs(x)",
    "pow": "write x ** 2",
    "repeat": "write x.broadcast_to(shape)",
    "expand": "write x.broadcast_to(shape)",
    "store": "the tensor is first: write t.store(x)",
    "load": "it is loaded already",
    "relu": "write max(x, 0)",
    "sigmoid": "write 1 / (1 + cute.math.exp(-x))",
    "print": _PRINT,
})  # fmt: skip
"""The forms here of methods of arrays, for fragments."""

_VALUES: Mapping[str, str] = MappingProxyType({
    "store": "an element is written by t[i, j] = v",
    "load": "t[i, j] has loaded it already",
    **{name: _FRAGMENTS[name] for name in ("astype", "type", "round", "abs", "pow", "relu", "sigmoid")},
    **dict.fromkeys(("item", "tolist", "numpy", "cpu"), "its number is known only when the kernel runs: store it"),
    **dict.fromkeys(("clip", "clamp"), "write max(min(x, high), low)"),
})  # fmt: skip
"""The same for values; only fragments have sums and the like."""


def attribute_hint(owner: object, name: str) -> str:
    """A hint for an attribute that an object of this package lacks; empty where there is none."""
    kind = type(owner)
    part = _result(kind, "get_slice")
    if part not in (None, kind) and hasattr(part, name):
        return f"a thread's part has it: write .get_slice(thread).{name}(...)"
    loaded = _result(kind, "load")
    if kind.__name__ == "Tensor" and loaded is not None:
        of_all = f"t.load() has all elements: write t.load().{name}(...)" if hasattr(loaded, name) else ""
        return of_all or (f"of x = t.load(): {_FRAGMENTS[name]}" if name in _FRAGMENTS else "")
    if kind.__name__ == "Vec":
        return _FRAGMENTS.get(name, "")
    return _VALUES.get(name, "") if kind.__name__ in ("Int", "Float", "Bool") else ""


def _result(kind: type, method: str) -> type | None:
    """The class that a method of a class returns; None where it has none, or says none."""
    function = getattr(kind, method, None)
    if function is None or getattr(function, "__module__", None) not in sys.modules:
        return None
    try:
        returned = get_type_hints(function).get("return")
    except NameError:
        return None
    return returned if isinstance(returned, type) else None


class Composite:
    """The base of frozen dataclasses of this package whose fields are values, or hold some: control flow carries these,
    and makes the object anew of them.
    """

    __slots__ = ()


class Stateful:
    """The base of classes of this package whose attributes change, and are carried as those of a user's object."""

    __slots__ = ()
