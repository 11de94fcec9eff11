# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `cute` dialect: layouts. So far its attributes, which the `tile` dialect's types and operations carry."""

from xdsl.ir import Dialect

from .attributes import CoordAttr, LayoutAttr, TilerAttr, parse_quoted

CUTE = Dialect("cute", [], [LayoutAttr, CoordAttr, TilerAttr])

__all__ = ["CUTE", "CoordAttr", "LayoutAttr", "TilerAttr", "parse_quoted"]
