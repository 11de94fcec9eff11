# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator: kernels at any stage of lowering, executed and checked on the CPU by NumPy.

`engine` is the way in. `translate` turns a kernel into closures by the table in `rules`; `warp`, `schedule` and the
state spaces (`spaces`, `local`, `arena`) are the machine; `races`, `async_copy` and `costs` watch what it does.
"""
