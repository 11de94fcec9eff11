# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays as the library takes them, those of NumPy, torch and JAX alike: their types, places for results, refusals."""

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from tilefold.base.errors import Code
from tilefold.runtime.arrays.array import array_of
from tilefold.runtime.arrays.signature import Dynamic, Marked
from tilefold.runtime.errors import LaunchError

Array = Any
"""An array of NumPy or JAX, or a torch tensor."""
FLOATS = ("float16", "bfloat16", "float32")
"""The elements of most functions, by the names that all libraries share."""
_NAMES: dict[object, str] = {}
_ALIGN = 16


def dtype_of(x: Array) -> str:
    """The name of the elements of an array, such as `bfloat16`."""
    dtype = x.dtype
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).removeprefix("torch.")
    return name


def refuse(function: str, problem: str, hint: str = "") -> NoReturn:
    """LaunchError (E3106) for arguments that a function does not take."""
    raise LaunchError(Code.RUN_ARGUMENT, f"{function}: {problem}", hint)


def is_torch(x: object) -> bool:
    """Whether an object is a tensor of torch, without importing it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_jax(x: object) -> bool:
    """Whether an object is an array of JAX."""
    return type(x).__module__.partition(".")[0] in ("jax", "jaxlib")


def check_array(function: str, name: str, x: Array, dtypes: Sequence[str], ranks: int | tuple[int, ...] = ()) -> None:
    """LaunchError (E3106) for an argument that is not an array, or one of other elements or another number of modes."""
    if not hasattr(x, "dtype") or not hasattr(x, "shape"):
        refuse(function, f"{name} is a {type(x).__name__}", "pass an array of NumPy or JAX, or a tensor of torch")
    if dtype_of(x) not in dtypes:
        refuse(function, f"{name} has elements of {dtype_of(x)}", f"it may have {', '.join(dtypes)}")
    rank, wanted = len(x.shape), (ranks,) if isinstance(ranks, int) else ranks
    if wanted and rank not in wanted:
        refuse(function, f"{name} has {rank} modes", f"it may have {' or '.join(map(str, wanted))}")


def check_shape(function: str, name: str, x: Array, shape: Sequence[int]) -> None:
    """LaunchError (E3106) for an argument of another shape."""
    if tuple(x.shape) != tuple(shape):
        refuse(function, f"{name} has the shape {tuple(x.shape)}; it should have {tuple(shape)}")


def like(x: Array, shape: Sequence[int], dtype: str | None = None) -> Array:
    """A place for a result: an array of the same library and device, unwritten."""
    if is_torch(x):
        return x.new_empty(shape, dtype=x.dtype if dtype is None else getattr(sys.modules["torch"], dtype))
    import numpy as np

    return np.empty(shape, x.dtype if dtype is None else numpy_type(dtype))


def numpy_type(name: str) -> Any:
    """The type of NumPy or ml_dtypes of this name."""
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def matrix_of(x: Array) -> Array:
    """An array as a matrix of its last mode's rows, which are contiguous: the same memory if that can be."""
    shape = x.shape
    if len(shape) != 2:
        x = x.reshape(-1, shape[-1])
    if shape[-1] != 1 and step_of(x, 1) != 1:
        return contiguous(x)
    return x


def contiguous(x: Array) -> Array:
    """The array, or a copy of it whose last mode is contiguous."""
    if is_torch(x):
        return x.contiguous()
    import numpy as np

    return np.ascontiguousarray(x)


def step_of(x: Array, mode: int) -> int:
    """The elements from one index of a mode to the next."""
    return x.stride(mode) if is_torch(x) else x.strides[mode] // x.itemsize


def vector_for(matrix: Array, *others: Array | None) -> int:
    """The adjacent elements of a matrix's rows that can be moved at a time: 16 bytes, or fewer where rows of one of
    the matrices do not begin there.
    """
    vector = max(_ALIGN // matrix.itemsize, 1)
    for x in (matrix, *others):
        if x is not None:
            place = x.data_ptr() if is_torch(x) else array_of("x", x).place
            unit = place | x.shape[-1] * x.itemsize | _ALIGN
            if len(x.shape) > 1:
                unit |= step_of(x, 0) * x.itemsize
            unit &= -unit
            if unit < _ALIGN:
                vector = min(vector, max(unit // x.itemsize, 1))
    while matrix.shape[-1] % vector:
        vector //= 2
    return vector


def vector_of_heads(x: Array, *rows: Array) -> int:
    """The same for the halves of the heads of (batch, tokens, heads, D), and rows that go with each half."""
    half = x.shape[3] // 2
    vector = min(max(_ALIGN // x.itemsize, 1), *(vector_for(row) * row.itemsize // 2 for row in rows))
    place = x.data_ptr() if is_torch(x) else array_of("x", x).place
    steps = [place // x.itemsize, half, *(step_of(x, mode) for mode in range(3) if x.shape[mode] > 1)]
    while vector > 1 and any(step % vector for step in steps):
        vector //= 2
    return vector


_ROWS = Dynamic(modes=(0,))


def any_rows(x: Array | None) -> Any:
    """An argument whose first extent is not part of the kernel's type."""
    return None if x is None else Marked(x, _ROWS)
