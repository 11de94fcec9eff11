# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors, fragments and the functions of programs on them (`cutlass.cute.tensor`)."""

from tilefold.builder.tensors.fragments import ReductionOp
from tilefold.builder.tensors.fragments import Vec as TensorSSA
from tilefold.builder.tensors.layouts import rank
from tilefold.builder.tensors.tensors import Tensor

_Tensor = Tensor
"""The class of tensors, to which programs add methods of their own."""

__all__ = ["ReductionOp", "Tensor", "TensorSSA", "rank"]
