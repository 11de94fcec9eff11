# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs at their stages, and their launches: lowering, machine code, devices, arguments, checks, output."""
