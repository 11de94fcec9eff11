# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `cute` dialect: layouts, as the public CuTe IR writes them. Types hold values, operations compute them."""

# The dialect itself is `dialect.CUTE`: kernels of `tile` need none of its operations, and defining them takes time.
from .attributes import CoordAttr, LayoutAttr, QuotedAttr, ShapeAttr, TilerAttr, parse_quoted

__all__ = ["CoordAttr", "LayoutAttr", "QuotedAttr", "ShapeAttr", "TilerAttr", "parse_quoted"]
