# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types and values of an IR, as programs annotate with them."""

from xdsl.ir import Attribute as Type
from xdsl.ir import SSAValue as Value

__all__ = ["Type", "Value"]
