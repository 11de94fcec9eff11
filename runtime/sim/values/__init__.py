# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of a simulated kernel, lane by lane."""
