# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printing from a kernel."""

from xdsl.dialects.builtin import StringAttr

from ...dialects.tile import PrintOp, PrintTensorOp
from .state import emit
from .tensors import Tensor


def print_tensor(tensor: Tensor, text: str = "tensor") -> None:
    """Each thread that gets here prints the tensor after a text, then its elements, a row of mode 0 a line."""
    emit(PrintTensorOp.build(operands=[tensor.ssa], properties={"text": StringAttr(text)}))


def print_layout(tensor: Tensor, text: str = "tensor") -> None:
    """Each thread that gets here prints the text, then where the tensor is and its layout."""
    emit(PrintOp.build(operands=[tensor.ssa], properties={"text": StringAttr(text)}))
