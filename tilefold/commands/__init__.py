# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The subcommands, one module each: `add_arguments(parser)` declares its options, `execute(args)` runs it."""
