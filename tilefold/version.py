# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The version of tilefold. A module of its own: where a checkout named `tilefold` lies beside a script, Python takes
the checkout's folder for the package, and never runs the package's `__init__.py`."""

VERSION = "0.1.0"
