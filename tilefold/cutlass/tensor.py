# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors, fragments and vectors, and the functions of programs on them (`cutlass.cute.tensor`, `cutlass.vector`)."""

from tilefold.builder.instructions.math import where
from tilefold.builder.tensors.fragments import ReductionOp, full_like
from tilefold.builder.tensors.fragments import Vec as TensorSSA
from tilefold.builder.tensors.layouts import rank
from tilefold.builder.tensors.tensors import Tensor
from tilefold.builder.tensors.vectors import broadcast_to, create_mask, from_elements, full, outerproduct

_Tensor = Tensor
"""The class of tensors, to which programs add methods of their own."""

__all__ = [
    "ReductionOp", "Tensor", "TensorSSA", "broadcast_to", "create_mask", "from_elements", "full", "full_like",
    "outerproduct", "rank", "where",
]  # fmt: skip
