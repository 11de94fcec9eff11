# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text: reading it, and making operations of stage `instr` of it, which the simulator runs."""
