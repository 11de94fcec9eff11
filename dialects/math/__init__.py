# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the functions of the dialect `math` mean in f32, for all that compute them."""
