# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator: kernels at any stage of lowering, executed and checked on the CPU by NumPy.

`sim_engine` is the entry; `preparation` places the arguments and chooses the rules. `translate` turns a kernel into
closures by the table in `rules/`, and `warp` is the state of a running warp. `memory/` has the state spaces and the
costs of accesses, `ordering/` schedules, barriers, asynchronous copies and races, `values/` values by lane, `atoms/`
the execution of atoms.
"""
