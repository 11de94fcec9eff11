# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong rewrites, planted in passes and the emission one at a time: tests and `tilefold bisect` must find each."""
