# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One call of torch that compares the types of several tensors with earlier ones, instead of six for each tensor.

It is the comparison by which compiled code of torch finds out whether it may be used again (`TensorGuards`, in
torch/csrc/dynamo/guards.cpp): of each tensor the class, the dispatch keys (device, layout, conjugate and negative
views, wrappers), the element type, the number of the device, sizes and strides. Torch does not promise that it stays;
so it is used where it is found and passes a test, and everything else works without it.
"""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType

Extents = Sequence[int | None]
"""The extents, or strides, that a tensor must have; None for any."""


def tensor_check(
    tensors: Sequence[object], sizes: Sequence[Extents], strides: Sequence[Extents]
) -> Callable[..., bool] | None:
    """A function that takes tensors in the same number and says whether they are like these, but for the sizes and
    strides, which must be those given here. The tensors must be distinct objects, here and in each call, or it says
    False.

    None if torch does not offer this, or not for such tensors.
    """
    if not _works(sys.modules["torch"]):
        return None
    return _make_guard(tensors, [list(size) for size in sizes], [list(stride) for stride in strides])


def _make_guard(tensors: Sequence[object], sizes: object, strides: object) -> Callable[..., bool] | None:
    guards = sys.modules["torch"]._C._dynamo.guards.TensorGuards(
        *tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides
    )
    check: Callable[..., bool] = guards.check
    return check if check(*tensors) is True else None


@cache
def _works(torch: ModuleType) -> bool:
    """Whether this torch distinguishes all that it must."""
    try:
        tensor = torch.zeros(2, 3)
        pair = torch.zeros(2, 2, 3)  # whose parts are like the tensor
        fixed = _make_guard((tensor, pair[0]), [[2, 3], [2, 3]], [[3, 1], [3, 1]])
        free = _make_guard((tensor,), [[None, 3]], [[None, 1]])
        if fixed is None or free is None:
            return False
        others = (
            torch.zeros(3, 2), torch.zeros(3, 2).t(), torch.zeros(2, 3, 1), torch.zeros(2, 3, dtype=torch.int32),
            torch.zeros(2, 3, device="meta"), torch.nn.Parameter(tensor), torch._neg_view(tensor), tensor.to_sparse(),
        )  # fmt: skip
        return (
            fixed(pair[0], pair[1]) is True
            and all(fixed(tensor, other) is False and fixed(other, tensor) is False for other in (*others, None, 3))
            and free(torch.zeros(5, 3)) is True
            and free(torch.zeros(5, 6)[:, ::2]) is False
            and free(torch.zeros(5, 4)) is False
        )
    except Exception:  # whatever became of the private interface
        return False
