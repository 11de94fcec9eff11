# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout algebra of CuTe (layout.hpp, stride.hpp, swizzle.hpp), one operation or family a file."""
