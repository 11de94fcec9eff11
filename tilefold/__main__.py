# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tilefold` is the command `tilefold`."""

import sys

from tilefold.cli import main

sys.exit(main())
