# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a file: its launches or its host program, with arguments, engines and checks."""
