# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host: the part of a program that launches kernels, interpreted within a budget.

`engine` is the way in. Its rules are the simulator's, for a single lane, with those of `rules` for the C functions that
a program may call and for launches.
"""
