# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils.gemm`: the pieces of a product that programs share, by target."""

from ...public import publish
from . import sm100

__all__ = ["sm100"]

publish(__name__)
