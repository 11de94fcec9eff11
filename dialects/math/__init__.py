# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The f32 functions of the dialect `math`, defined once for every stage and back end."""
