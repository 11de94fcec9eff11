# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands as tools of the Model Context Protocol, for agents and harnesses."""
