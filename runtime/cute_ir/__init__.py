# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host programs of the public CuTe IR: the part that launches kernels, interpreted within a budget.

`host_engine` is the entry. Its rules are the simulator's, for a single lane, with those of `rules` for launches and
for the C functions that a program may call.
"""
