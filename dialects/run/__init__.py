# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `run` dialect: how a file runs its kernels and checks their results."""

from xdsl.ir import Dialect

from .ops import ArgOp, CheckOp, LaunchOp

RUN = Dialect("run", [LaunchOp, ArgOp, CheckOp], [])

__all__ = ["RUN", "ArgOp", "CheckOp", "LaunchOp"]
