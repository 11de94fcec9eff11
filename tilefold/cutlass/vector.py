# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors made of elements (`cutlass.vector`)."""

from tilefold.builder.instructions.math import where
from tilefold.builder.tensors.fragments import full_like
from tilefold.builder.tensors.vectors import broadcast_to, from_elements, full, outerproduct

__all__ = ["broadcast_to", "from_elements", "full", "full_like", "outerproduct", "where"]
