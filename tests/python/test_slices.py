# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices and negative indices of tensors, fragments and tensors of coordinates mean what NumPy's mean."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

from tilefold import cute

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

A = np.arange(48, dtype=np.float32).reshape(6, 8)
CASES = (
    lambda x: x[0, 1:3],
    lambda x: x[-1, 2:],
    lambda x: x[1:4, -2],
    lambda x: x[::2, 1:8:3],
    lambda x: x[2:-1, :],
    lambda x: x[:, -3:],
)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("memory", ["gmem", "dynamic", "smem", "swizzled", "rmem"])
def test_slices_as_numpy(case: Callable[[Any], Any], memory: str) -> None:
    wanted = np.asarray(case(A))

    @cute.kernel
    def kernel(A: cute.Tensor, out: cute.Tensor):
        layout: Any = cute.make_layout((6, 8), stride=(8, 1))
        if memory == "swizzled":
            layout = cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, layout)
        x: Any = A
        if memory in ("smem", "swizzled"):
            x = cute.make_smem_tensor(layout, cute.Float32)
        elif memory == "rmem":
            x = cute.make_rmem_tensor(layout, cute.Float32)
        if x is not A:
            cute.basic_copy(A, x)
        out.store(case(x).load())

    out = np.zeros_like(wanted)
    given = cute.dynamic(A) if memory == "dynamic" and not _is_open(case) else A
    kernel(given, out).launch(grid=1, block=1, device="sim")
    assert out.tolist() == wanted.tolist()


def _is_open(case: Callable[[Any], Any]) -> bool:
    """Whether the length of a view depends on that of the tensor."""
    seen: list[Any] = []

    class Recorder:
        def __getitem__(self, index: tuple[Any, ...]) -> None:
            seen.extend(part for part in index if isinstance(part, slice))

    case(Recorder())
    return any(part.stop is None or part.stop < 0 for part in seen)


def test_elements_are_counted_from_the_end() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor, out: cute.Tensor):
        A[-1, -8] = 5.0
        out[0], out[1], out[-1] = A[-1], A[-6, 1], A.load()[-2, -1]
        out[2] = cute.make_identity_tensor(A)[-1, 3][0]
        A[0, 1:3] = cute.full((2,), 9, cute.Float32)

    given, out = A.copy(), np.zeros(5, np.float32)
    kernel(given, out).launch(grid=1, block=1, device="sim")
    assert out.tolist() == [47, 1, 5, 0, 39]
    assert given[-1, 0] == 5
    assert given[0].tolist() == [0, 9, 9, 3, 4, 5, 6, 7]


MISTAKES = (
    (lambda x, n: x[-7, 0], "coordinate -7 is out of range for extent 6"),
    (lambda x, n: x[0, n : n + 4], "known only when the kernel runs"),
    (lambda x, n: x[3:3, 0], "no coordinates in ascending order"),
    (lambda x, n: x[::-1, 0], "no coordinates in ascending order"),
    (lambda x, n: x[1:3], "do not fit"),
)


@pytest.mark.parametrize(("case", "message"), MISTAKES)
def test_mistakes(case: Callable[[Any, Any], Any], message: str) -> None:
    @cute.kernel
    def kernel(A: cute.Tensor, n: cute.Int32):
        case(A, n)

    array: NDArray[Any] = A
    with pytest.raises(TilefoldError, match=message):
        kernel(array, 3).launch(grid=1, block=1, device="sim")
