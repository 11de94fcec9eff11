# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a `.cute` file fills a kernel's arguments and states the results to expect.

`fill_argument` gives an argument its first values, `check_results` judges a condition over the arguments afterwards.
Both read the expressions of `dialects/run/grammar.py` and evaluate them on NumPy arrays, never by Python's `eval`.
"""

from .condition import CheckResult, check_results
from .fill import Filled, fill_argument

__all__ = ["CheckResult", "Filled", "check_results", "fill_argument"]
