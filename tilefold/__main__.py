# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tilefold` is the command `tilefold`."""

import sys

from tilefold.commands.process import main

if __name__ == "__main__":
    sys.exit(main())
